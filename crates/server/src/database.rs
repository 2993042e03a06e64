//! The database that the configuration names, behind any of the supported engines.

use crate::boot::BootError;
use crate::config::{Config, Loss, Replication, Statements, StoreUrl, Synchronous, Value as _};
use crate::receivers;
use app::Fault;
use rules::id::RealmId;
use rules::keys::Key;
use std::num::NonZeroUsize;
use std::sync::Arc;
use store::engine::{CommitError, Durability, Engine};
use store::migrations::MIGRATIONS;
use store::moving::catalogue;
use store::moving::marks::{self, Arrival, Mark, Marks};
use store::mysql::Mysql;
use store::postgres::Postgres;
use store::remote::{self, Settings};
use store::sqlite::{self, Check, Options, Sqlite};
use store::tables::realms::Issuer;

/// An open database.
#[derive(Clone)]
pub enum Database {
    /// A SQLite file of this server.
    Sqlite(Arc<Sqlite>),
    /// A PostgreSQL server.
    Postgres(Arc<Postgres>),
    /// A MySQL or MariaDB server.
    Mysql(Arc<Mysql>),
}

/// How much of Portiere's data a database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, not even a table.
    Nothing,
    /// Tables without a realm, left by a set-up, or a move, that was cut short.
    Tables,
    /// The realm.
    Realm,
}

/// Returns the name of a database server for messages: its URL without a password.
pub fn address(config: &Config) -> String {
    config.store.url.show().unwrap_or_default().trim_matches('"').to_owned()
}

impl Database {
    /// Opens the database as it is, to serve from it. Fails if it is not ours, was moved away or is incomplete.
    pub async fn open(config: &Config) -> Result<Self, BootError> {
        let database = Database::connect(config).await?;
        let fit = async {
            // The URL may lead to another program's database: nothing is made in it.
            let vacant = store::moving::vacant(&*database.engine()).await;
            vacant.map_err(|trouble| trouble.told(|why| format!("store.url: {why}")))?;
            database.arrived().await
        };
        match fit.await {
            Ok(_) => Ok(database),
            Err(why) => {
                database.close();
                Err(why)
            }
        }
    }

    /// Migrates the schema to this program's version. A database that was moved here is served from now on, and the
    /// move can no longer be given up. Returns the version that the schema had; 0 if it was made.
    pub async fn begin(&self) -> Result<i64, BootError> {
        let engine = self.engine();
        self.arrived().await?;
        let before = catalogue::version(&*engine).await?;
        // Migrates first of all: a node that cannot migrate the schema has not served from the database.
        engine.migrate().await.map_err(|error| unmigrated(error.0))?;
        while let Some(arrived) = self.arrived().await? {
            match marks::serve(&*engine, &arrived).await {
                // Another node was first, or the move was given up at this moment.
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(Fault::from(error).into()),
            }
        }
        Ok(before)
    }

    /// Returns the move that brought everything here, if no node has served from the database yet.
    async fn arrived(&self) -> Result<Option<Mark<Arrival>>, BootError> {
        let marks = Marks::read(&*self.engine()).await?;
        match marks.obstacle() {
            Some(why) if marks.is_leaving() => Err(BootError::Away(why)),
            Some(why) => Err(BootError::Other(why)),
            None => Ok(marks.into.filter(|into| into.state == Arrival::Ready)),
        }
    }

    /// Returns how much of Portiere's data is there. May be called before [`Database::begin`]: makes nothing.
    pub async fn found(&self, realm: &RealmId) -> Result<Found, BootError> {
        let engine = self.engine();
        let begun = catalogue::has(&*engine, "realms").await;
        if !begun? {
            return Ok(Found::Nothing);
        }
        let issuer = store::tables::ask(&*engine, realm, Issuer).await.map_err(|error| BootError::Away(error.0))?;
        Ok(if issuer.is_some() { Found::Realm } else { Found::Tables })
    }

    /// Returns what a master key has sealed. May be called before [`Database::begin`]: the table is as the first schema
    /// made it, and if there is no table yet, nothing was sealed.
    pub async fn sealed(&self, realm: &RealmId) -> Result<Vec<Key>, BootError> {
        let begun = catalogue::has(&*self.engine(), "signing_keys").await;
        if !begun? {
            return Ok(Vec::new());
        }
        let asked = store::tables::ask(&*self.engine(), realm, store::tables::keys::All).await;
        asked.map_err(|error| BootError::Away(error.0))
    }

    /// Connects to the database as it is, without the checks of [`Database::open`].
    pub async fn connect(config: &Config) -> Result<Self, BootError> {
        Database::with(config, config.store.connections).await
    }

    /// Returns what the named server holds of Portiere's data, before the server is opened for work: its account may
    /// have no room for more connections than that work takes.
    pub async fn look(config: &Config, realm: &RealmId) -> Result<Found, BootError> {
        let database = Database::with(config, 2).await?;
        let found = database.found(realm).await;
        database.close();
        found
    }

    async fn with(config: &Config, connections: usize) -> Result<Self, BootError> {
        let settings = |config: &Config, url: &str| Settings {
            connections: NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN),
            ..settings(config, url)
        };
        let other = |error: remote::OpenError| named(config, &error);
        Ok(match &config.store.url {
            StoreUrl::Sqlite(_) => {
                let options = file_options(config);
                // Opening the file would change how its log is kept, and who may read it.
                sqlite::vacant(&options.path).map_err(|trouble| trouble.told(|why| format!("store.url: {why}")))?;
                match Sqlite::open(options, MIGRATIONS) {
                    Ok(sqlite) => Database::Sqlite(Arc::new(sqlite)),
                    Err(sqlite::OpenError::InUse(_)) => return Err(BootError::InUse),
                    Err(error) => return Err(BootError::Other(error.to_string())),
                }
            }
            StoreUrl::Postgres(url) => Database::Postgres(Arc::new(
                Postgres::open(settings(config, url.reveal()), MIGRATIONS).await.map_err(other)?,
            )),
            StoreUrl::Mysql(url) => {
                Database::Mysql(Arc::new(Mysql::open(settings(config, url.reveal()), MIGRATIONS).await.map_err(other)?))
            }
        })
    }

    /// Checks `store.url` and the files beside it, as far as that is possible without contacting a server.
    pub fn judge(config: &Config) -> Result<(), BootError> {
        let judged = match &config.store.url {
            StoreUrl::Sqlite(_) => Ok(()),
            StoreUrl::Postgres(url) => Postgres::judge(&settings(config, url.reveal())),
            StoreUrl::Mysql(url) => Mysql::judge(&settings(config, url.reveal())),
        };
        judged.map_err(|error| named(config, &error))
    }

    /// Returns the engine that the use cases work on.
    pub fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Database::Sqlite(sqlite) => sqlite.clone(),
            Database::Postgres(postgres) => postgres.clone(),
            Database::Mysql(mysql) => mysql.clone(),
        }
    }

    /// Describes for operators what an acknowledged write is worth. Begins with the class, as `node list` shows it.
    pub fn promise(&self, durability: Durability) -> &'static str {
        match (durability, self) {
            (Durability::ZeroLoss, _) => "zero-loss: nothing acknowledged is lost over failover",
            (Durability::DurableNode, _) => "durable: nothing acknowledged is lost while the disk survives",
            (Durability::Bounded, Database::Sqlite(_)) => {
                "bounded-loss: power loss may undo the last writes (store.synchronous = normal)"
            }
            (Durability::Bounded, _) => "bounded-loss: a failure of the database server may undo the last writes",
        }
    }

    /// Returns a claim of the operator about the server that the server does not confirm.
    pub fn contradiction(&self, durability: Durability) -> Option<&'static str> {
        match self {
            Database::Postgres(postgres) if postgres.replication() == remote::Replication::Strict => (durability
                != Durability::ZeroLoss)
                .then_some("store.replication is strict, but no standby confirms the server's commits"),
            _ => None,
        }
    }

    /// Returns the known damage to the database.
    pub fn damage(&self) -> Option<String> {
        match self {
            Database::Sqlite(sqlite) => match sqlite.check() {
                Check::Damaged(what) => Some(what),
                _ => None,
            },
            // The database servers watch over their own files.
            Database::Postgres(_) | Database::Mysql(_) => None,
        }
    }

    /// Commits what waits and closes the database.
    pub fn close(&self) {
        if let Database::Sqlite(sqlite) = self {
            sqlite.close();
        }
    }
}

/// Says why the schema could not be migrated. Most reasons (a newer schema, rights that are missing) do not pass by
/// themselves; a dump or a long transaction that held a table ends at some time.
pub fn unmigrated(why: String) -> BootError {
    // What PostgreSQL, and MySQL and MariaDB, call a lock that was not to be had in time.
    let held = ["(55P03)", "error 1205: ", "error 3572: "].iter().any(|code| why.contains(code));
    if held { BootError::Away(why) } else { BootError::Other(why) }
}

/// Reports why a server cannot be used, under the option to look at.
fn named(config: &Config, error: &remote::OpenError) -> BootError {
    // The option may hold the password itself instead of the file's path.
    if let (Some(file), remote::OpenError::File(wrong, why)) = (&config.store.password_file, error)
        && **file == **wrong
    {
        return BootError::Other(file.wrong("store.password_file", why));
    }
    receivers::to_store(config).wrong(error, "store.url")
}

fn file_options(config: &Config) -> Options {
    let mut options = Options::at(config.database().unwrap_or_default());
    if let Some(readers) = config.store.readers {
        options.readers = u32::try_from(readers).unwrap_or(u32::MAX);
    }
    options.synchronous = match config.store.synchronous {
        Synchronous::Full => sqlite::Synchronous::Full,
        Synchronous::Normal => sqlite::Synchronous::Normal,
    };
    options
}

fn settings(config: &Config, url: &str) -> Settings {
    let store = &config.store;
    let loss = |loss: &Loss| match loss {
        Loss::Commits => remote::Loss::Commits,
        Loss::Database => remote::Loss::Database,
    };
    Settings {
        password: store.password_file.as_ref().map(|file| file.to_path_buf()),
        connections: NonZeroUsize::new(store.connections).unwrap_or(NonZeroUsize::MIN),
        tls: receivers::to_store(config).tls(),
        timeout: store.timeout,
        statements: match store.statements {
            Statements::Kept => remote::Statements::Kept,
            Statements::Unnamed => remote::Statements::Unnamed,
        },
        accepted: store.accept_loss.iter().map(loss).collect(),
        replication: match store.replication {
            Replication::Observed => remote::Replication::Observed,
            Replication::Strict => remote::Replication::Strict,
            Replication::Bounded => remote::Replication::Bounded,
        },
        ..Settings::at(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn only_a_server_that_does_not_answer_may_serve_later() {
        // Red with Away for both in receivers.rs: scripts would try again with the same wrong password for ever.
        let config = Config::load(Sources::default()).unwrap();
        let told = |error| named(&config, &error);
        let away = remote::OpenError::Unreachable("no answer".to_owned());
        assert!(matches!(told(away), BootError::Away(why) if why == "store.url: no answer"));
        let refused = remote::OpenError::Refused("no such password (28P01)".to_owned());
        assert!(matches!(told(refused), BootError::Other(why) if why == "store.url: no such password (28P01)"));
    }

    #[test]
    fn a_migration_that_a_dump_held_up_may_succeed_later() {
        // Red with Other for all of them: a start that a dump held up would not be tried again.
        let why = "schema version 3, step 1: canceling statement due to lock timeout (55P03)";
        let held = [why, "error 1205: Lock wait timeout exceeded; try restarting transaction"];
        assert!(held.iter().all(|why| matches!(unmigrated((*why).to_owned()), BootError::Away(told) if told == *why)));
        for why in ["schema: permission denied for schema public (42501)", "error 1142: ALTER command denied"] {
            assert!(matches!(unmigrated(why.to_owned()), BootError::Other(_)), "{why}");
        }
    }
}
