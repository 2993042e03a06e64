//! The two databases of a move, and how each is reached.

use super::tls::Given;
use crate::boot::BootError;
use crate::cli::outcome::{Failure, Outcome, Reply, say};
use crate::cli::reach::own;
use crate::cli::request::Request;
use crate::config::{Config, SecretFile, StoreUrl};
use crate::control;
use crate::database::{Database, address, unmigrated};
use app::App;
use rustix::fs::{Access, access, statvfs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::dialect::Dialect;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::claim::Mover;
use store::moving::{Named, Trouble, before, fence};
use store::sqlite::{self, Onlooker, OpenError, Options, Sqlite};

/// How long the holder of a file may take to answer or to release the file.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest that one page, or the count of one table, may take.
const SLOW: Duration = Duration::from_secs(300);
/// Connections that read a file at the same time: as many tables are copied at once.
const READERS: u32 = 3;

/// What is done to a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Change nothing, and fail where the other acts would not reach the source.
    Look,
    /// Stop writes.
    Raise {
        /// The move's ID, if it has none already.
        id: String,
        /// The target's name.
        peer: String,
    },
    /// Mark the source as moved.
    Left {
        /// The move's ID.
        id: String,
    },
    /// Let writes go on.
    Lift {
        /// The move's ID.
        id: String,
    },
}

/// An act on a file that a server holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtSource {
    file: PathBuf,
    act: Act,
}

impl AtSource {
    /// Whether nothing is changed, so that the answer comes at once.
    pub fn is_look(&self) -> bool {
        matches!(self.act, Act::Look)
    }

    /// Carries out the act, in the server.
    pub async fn execute(self, app: &App) -> Reply {
        if app.engine.file() != Some(&self.file) {
            let file = self.file.display();
            return Err(Failure::Failed(format!(
                "{file} is in use by a process that is not the server of this data folder"
            )));
        }
        let engine = Named::new(Arc::clone(&app.engine), format!("sqlite:{}", self.file.display()));
        let id = perform(&engine, &self.act).await?;
        Ok(Outcome::new(id.clone(), json!(id)))
    }
}

/// Carries out an act. Returns the move's ID.
async fn perform(engine: &dyn Engine, act: &Act) -> Result<String, Trouble> {
    match act {
        Act::Look => Ok(String::new()),
        Act::Raise { id, peer } => fence::raise(engine, id, peer).await,
        Act::Left { id } => fence::left(engine, id).await.map(|()| id.clone()),
        Act::Lift { id } => fence::lift(engine, id).await.map(|()| id.clone()),
    }
}

/// Returns a database's name: its URL without a password, or the whole path of its file.
fn name(config: &Config) -> String {
    match config.database() {
        Some(file) => format!("sqlite:{}", absolute(&file).display()),
        None => address(config),
    }
}

/// Returns the same path whichever links lead to the file: the one under which a server has it open. A path that leads
/// nowhere is refused when it is opened.
fn absolute(file: &Path) -> PathBuf {
    sqlite::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// How a database is reached.
pub struct Way {
    /// Its URL.
    pub url: StoreUrl,
    /// The file with its password, if the URL has none.
    pub password: Option<SecretFile>,
    /// TLS files for it alone.
    pub tls: Given,
}

/// Returns the configuration for a database that may take its time.
fn patient(config: &Config, way: Way) -> Config {
    let mut config = config.clone();
    (config.store.url, config.store.password_file) = (way.url, way.password);
    way.tls.over(&mut config);
    config.store.timeout = config.store.timeout.max(SLOW);
    config
}

/// The database that everything is moved from.
pub struct Source<'a> {
    /// The database's name.
    pub name: String,
    /// The data folder in which a server may listen that holds the database.
    pub data: &'a Path,
    config: Config,
    /// How long the holder of the file may take.
    patience: Duration,
}

impl<'a> Source<'a> {
    /// Opens nothing yet.
    pub fn new(config: &'a Config, way: Way) -> Self {
        let data = &config.server.data;
        let config = patient(config, way);
        Source { name: name(&config), data, config, patience: PATIENCE }
    }

    /// Opens the source for reading, beside the process that holds it.
    pub async fn reading(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }

    /// Checks whether the source can be closed to writes: through the server of this data folder, if its file is held.
    /// Changes nothing.
    pub async fn is_within_reach(&self) -> Result<(), Failure> {
        let held = self.config.database().is_some_and(|file| sqlite::is_held(&absolute(&file)));
        if held { self.act(Act::Look).await.map(drop) } else { Ok(()) }
    }

    /// Does something to the source, through the server if one holds its file. Returns the move's ID.
    pub async fn act(&self, act: Act) -> Result<String, Failure> {
        let Some(file) = self.config.database().map(|file| absolute(&file)) else {
            let database = Database::connect(&self.config).await.map_err(|error| unreached(&self.config, error))?;
            return Ok(perform(&Named::new(database.engine(), &self.name), &act).await?);
        };
        own(file.parent().unwrap_or(self.data))?;
        let began = Instant::now();
        loop {
            match Sqlite::open(Options::at(&file), MIGRATIONS) {
                Ok(sqlite) => {
                    let sqlite = Arc::new(sqlite);
                    let done = perform(&Named::new(Arc::<Sqlite>::clone(&sqlite), &self.name), &act).await;
                    sqlite.close();
                    return Ok(done?);
                }
                Err(OpenError::InUse(_)) => {}
                Err(error) => return Err(Failure::Failed(error.to_string())),
            }
            let request = Request::AtSource(AtSource { file: file.clone(), act: act.clone() });
            if let Some(reply) = control::ask(self.data, &request).await? {
                return reply.map(|outcome| outcome.text);
            }
            if began.elapsed() > self.patience {
                let why = format!(
                    "{} is in use, and no server that listens in {} has it: give --data the folder of the server that \
                     runs on it",
                    file.display(),
                    self.data.display()
                );
                return Err(Failure::Failed(why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// What a target can take.
pub struct Takes {
    /// Its engine.
    pub dialect: Dialect,
    /// The longest packet, in bytes, if the engine limits it.
    pub packet: Option<u64>,
}

/// The database that everything is moved to.
pub struct Target {
    /// The database's name.
    pub name: String,
    config: Config,
}

impl Target {
    /// Opens nothing yet.
    pub fn new(config: &Config, way: Way) -> Self {
        let config = patient(config, way);
        Target { name: name(&config), config }
    }

    /// Whether the target is a file, on which one server works alone.
    pub fn is_file(&self) -> bool {
        self.config.database().is_some()
    }

    /// Checks, before anything is done, whether a source fits into the target.
    pub async fn inspect(&self, from: &dyn Engine, mover: Mover<'_>) -> Result<Takes, Failure> {
        if let Some(file) = self.config.database().map(|file| absolute(&file)) {
            let folder = file.parent().unwrap_or(Path::new("/"));
            own(folder)?;
            sqlite::vacant(&file).map_err(|trouble| trouble.told(|why| format!("{}: {why}", self.name)))?;
            if std::fs::metadata(&file).map_or(true, |found| found.len() == 0) {
                sqlite::local(&file).map_err(|error| Failure::Failed(error.to_string()))?;
                if let Some(why) = lacks_room(folder, before::size(from).await?)? {
                    // The size of a server's database includes gaps that are not copied.
                    match from.dialect() {
                        Dialect::Sqlite => return Err(Failure::Failed(why)),
                        Dialect::Postgres | Dialect::Mysql => say(&format!("{why}; that may still be enough")),
                    }
                }
                return Ok(Takes { dialect: Dialect::Sqlite, packet: None });
            }
        }
        let engine = self.looking().await?;
        before::of_target(from, &*engine, mover).await?;
        Ok(Takes { dialect: engine.dialect(), packet: before::packet(&*engine).await? })
    }

    /// Opens the target to fill it, and migrates its schema.
    pub async fn open(&self) -> Result<Database, Failure> {
        let database = self.connect().await?;
        let engine = self.named(&database);
        store::moving::vacant(&engine).await?;
        engine.migrate().await.map_err(|error| unmigrated(error.0))?;
        Ok(database)
    }

    /// Returns the engine under the target's name, which its errors carry.
    pub fn named(&self, database: &Database) -> Named {
        Named::new(database.engine(), &self.name)
    }

    /// Connects to the target as it is, for this process alone if it is a file.
    pub async fn connect(&self) -> Result<Database, Failure> {
        if let Some(file) = self.config.database() {
            own(absolute(&file).parent().unwrap_or(Path::new(".")))?;
        }
        Database::connect(&self.config).await.map_err(|error| match error {
            BootError::InUse => Failure::Failed(format!("{} is in use by a server or another move", self.name)),
            other => unreached(&self.config, other),
        })
    }

    /// Opens the target for looking, beside the process that fills it.
    pub async fn looking(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }
}

/// Checks whether a file of so many bytes fits into a folder. Returns what is lacking.
fn lacks_room(folder: &Path, bytes: u64) -> Result<Option<String>, Failure> {
    let failed = |error: rustix::io::Errno| Failure::Failed(format!("{}: {error}", folder.display()));
    let disk = statvfs(folder).map_err(failed)?;
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(failed)?;
    let (free, has) = (disk.f_bavail.saturating_mul(disk.f_frsize), bytes.div_ceil(1 << 20));
    let why = || format!("{}: {} MiB are free, but the database to move has {has} MiB", folder.display(), free >> 20);
    Ok((free < bytes).then(why))
}

/// What errors about a server begin with, though options of the command may be meant.
const OPTIONS: [&str; 5] =
    ["store.url: ", "store.password_file: ", "store.authorities: ", "store.certificate: ", "store.key: "];

/// Names the database that cannot be reached: there are two, and neither has to be the one of `store.url`.
fn unreached(config: &Config, error: BootError) -> Failure {
    let why = error.to_string();
    let why = OPTIONS.iter().find_map(|option| why.strip_prefix(option)).unwrap_or(&why);
    let told = format!("{}: {why}", name(config));
    match error {
        BootError::Away(_) => Failure::away(told),
        _ => Failure::Failed(told),
    }
}

async fn look(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    let Some(file) = config.database() else {
        let database = Database::connect(config).await.map_err(|error| unreached(config, error))?;
        return Ok(Arc::new(Named::new(database.engine(), name(config))));
    };
    // A user who may not look finds nothing.
    own(absolute(&file).parent().unwrap_or(Path::new(".")))?;
    if !file.exists() {
        return Err(Failure::Failed(format!("there is no database {}", file.display())));
    }
    match Onlooker::open(&file, READERS) {
        Ok(onlooker) => Ok(Arc::new(Named::new(Arc::new(onlooker), name(config)))),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::checked;
    use super::*;
    use crate::config::{Raw, Sources, Value as _};

    #[test]
    fn a_file_is_not_begun_where_there_is_no_room_for_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(lacks_room(folder.path(), 0), Ok(None));
        let Ok(Some(line)) = lacks_room(folder.path(), 1 << 60) else { panic!() };
        assert!(line.contains("MiB are free, but the database to move has 1099511627776 MiB"), "{line}");
        assert!(lacks_room(&folder.path().join("none"), 0).is_err());
    }

    #[test]
    fn a_file_that_a_server_of_another_folder_holds_is_out_of_reach() {
        // Red without `is_within_reach` in `checked`: `move --check` would promise what the move cannot do.
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().join("other").display().to_string())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let file = folder.path().join("portiere.db");
        let url = StoreUrl::parse(&Raw::Text(format!("sqlite:{}", file.display()))).unwrap();
        let mut source = Source::new(&config, Way { url, password: None, tls: Given::default() });
        source.patience = Duration::ZERO;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let held = Sqlite::open(Options::at(&file), MIGRATIONS).unwrap();
            held.migrate().await.unwrap();
            let target = StoreUrl::parse(&Raw::Text(format!("sqlite:{}/new.db", folder.path().display()))).unwrap();
            let target = Target::new(&config, Way { url: target, password: None, tls: Given::default() });
            let refused = checked(&source, &target).await.unwrap_err();
            assert!(refused.told().contains("is in use, and no server that listens in"), "{refused:?}");
            held.close();
            drop(held);
            assert!(checked(&source, &target).await.is_ok());
        });
    }

    #[test]
    fn the_database_that_cannot_be_reached_is_named() {
        // red without `unreached` in Target::connect, look and Source::act.
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let url = |path: &str| StoreUrl::parse(&Raw::Text(format!("postgres://u:secret@127.0.0.1:1/{path}")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(async {
            let way = |path: &str| Way { url: url(path).unwrap(), password: None, tls: Given::default() };
            let source = Source::new(&config, way("from"));
            let target = Target::new(&config, way("to"));
            let act = Act::Lift { id: String::new() };
            [
                target.connect().await.err().unwrap(),
                target.looking().await.err().unwrap(),
                source.reading().await.err().unwrap(),
                source.act(act).await.unwrap_err(),
            ]
        });
        for (failure, path) in told.into_iter().zip(["to", "to", "from", "from"]) {
            let Failure::Later(line) = failure else { panic!("{failure:?}") };
            assert!(line.contains(&format!("127.0.0.1:1/{path}: ")), "{line}");
            assert!(!line.contains("store.url") && !line.contains("secret"), "{line}");
        }
    }
}
