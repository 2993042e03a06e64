//! The way to a realm: through the running server, or, if none runs, to the database itself.

use super::backup::Backup;
use super::migrate::newest;
use super::outcome::{Failure, Outcome, Reply, say};
use super::request::{Place, Request};
use crate::boot::{BootError, FIRST_REALM, Instance};
use crate::config::Config;
use crate::control;
use crate::database::{Database, Found, address};
use rules::id::RealmId;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop, and another command to end, before it is called stuck.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Has requests carried out wherever the database is held.
pub struct Reach<'a> {
    config: &'a Config,
    /// What is wrong with the configuration: then only a server is asked.
    wrong: Option<Failure>,
    here: Option<Instance>,
    /// How much of Portiere's data the database had before this process opened it, once that was looked at.
    found: Option<Found>,
    /// Whether the variables that are no options were told.
    has_spelled: bool,
    patience: Duration,
}

impl<'a> Reach<'a> {
    /// Opens nothing yet.
    pub fn new(config: &'a Config) -> Self {
        Reach { config, wrong: None, here: None, found: None, has_spelled: false, patience: PATIENCE }
    }

    /// Keeps this process from opening the database, if the configuration is wrong.
    pub fn beside(self, wrong: Option<Failure>) -> Self {
        Reach { wrong, ..self }
    }

    /// Has a request carried out: by the server if one listens, else on the database, which this process then holds.
    /// While the database is held and nobody listens, a server starts or stops, or another command runs.
    pub async fn ask(&mut self, request: &Request) -> Reply {
        let began = Instant::now();
        loop {
            if let Some(instance) = &self.here {
                let hears_workers = !self.config.workers.listen.is_empty();
                let place = Place { data: &self.config.server.data, serves: false, hears_workers };
                let done = Box::pin(request.clone().execute(&instance.app, place));
                return app::asked::by_operator(rustix::process::geteuid().as_raw(), done).await;
            }
            if let Some(reply) = control::ask(&self.config.server.data, request).await? {
                return reply.and_then(|outcome| request.believed(outcome));
            }
            if request.needs_server() {
                let data = self.config.server.data.display();
                return Err(Failure::Later(format!("no server runs on {data}: only a running server knows this")));
            }
            let opened = match request {
                Request::Backup(backup) if self.config.database().is_some() => {
                    match Box::pin(self.copy(request, backup)).await? {
                        Some(outcome) => return Ok(outcome),
                        None => None,
                    }
                }
                _ => self.open(request).await?,
            };
            match opened {
                Some(instance) => self.here = Some(instance),
                None if began.elapsed() < self.patience => tokio::time::sleep(PAUSE).await,
                None => {
                    let data = self.config.server.data.display();
                    return Err(Failure::Later(format!("{data} is in use by a process that does not answer")));
                }
            }
        }
    }

    /// Copies a database file as it is, which needs neither the keys nor this program's schema. Returns nothing while
    /// another process holds the file.
    async fn copy(&mut self, request: &Request, backup: &Backup) -> Result<Option<Outcome>, Failure> {
        self.may_open(request).await?;
        let database = match Database::connect(self.config).await {
            Ok(database) => database,
            Err(BootError::InUse) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (engine, realm) = (database.engine(), RealmId::from(FIRST_REALM));
        let copying = backup.execute_alone(&*engine, &realm);
        let copied = app::asked::by_operator(rustix::process::geteuid().as_raw(), copying).await;
        database.close();
        copied.map(Some)
    }

    async fn open(&mut self, request: &Request) -> Result<Option<Instance>, Failure> {
        let found = self.may_open(request).await?;
        match Box::pin(Instance::open(self.config, None)).await {
            Ok(instance) => {
                if found != Found::Realm {
                    say(&begun(self.config));
                }
                // `migrate` says so itself.
                if !matches!(request, Request::Migrate)
                    && let Some(told) = migrated(instance.schema_before)
                {
                    say(&told);
                }
                Ok(Some(instance))
            }
            Err(BootError::InUse) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that this process may open the database itself, before anything is made. Returns what is there.
    async fn may_open(&mut self, request: &Request) -> Result<Found, Failure> {
        let data = &self.config.server.data;
        self.wrong.clone().map_or(Ok(()), Err)?;
        names_its_database(self.config)?;
        let found = match self.found {
            Some(found) => found,
            None => found(self.config).await?,
        };
        if !self.has_spelled {
            spelled(self.config, found != Found::Realm && request.begins())?;
            self.has_spelled = true;
        }
        if found != Found::Realm && !request.begins() {
            return Err(Failure::Failed(missing(self.config, found)));
        }
        self.found = Some(found);
        // A server that runs carries this out for root, too.
        own(data).map_err(|why| match why {
            Failure::Failed(why) => Failure::Failed(format!("{why}, or start their server")),
            other => other,
        })?;
        Ok(found)
    }

    /// Releases the database, if this process holds it; until it is asked again, others may do with it what they like.
    pub async fn close(&mut self) {
        self.found = None;
        let Some(instance) = self.here.take() else { return };
        // The nodes of a database server seal by themselves, under a key that may not be in this folder.
        if self.config.database().is_some() {
            instance.app.close_books().await;
        }
        instance.close().await;
    }
}

/// Says which variables are no options. Refuses to begin a database while one is nearly an option: what was meant, and
/// perhaps where the database is, is not known.
pub fn spelled(config: &Config, begins: bool) -> Result<(), Failure> {
    let misspelled: Vec<_> = config.unknown.iter().filter(|unknown| begins && unknown.is_misspelled()).collect();
    if misspelled.is_empty() {
        config.unknown.iter().for_each(|unknown| say(&unknown.to_string()));
        return Ok(());
    }
    let lines = misspelled.into_iter().map(|unknown| format!("{unknown} Correct or unset it; no database was made"));
    Err(Failure::Use(lines.collect::<Vec<_>>().join("\n")))
}

/// Returns what a database holds of Portiere, before anything is made: a file has to exist, and a server is asked.
async fn found(config: &Config) -> Result<Found, BootError> {
    match config.database() {
        Some(file) => Ok(if file.exists() { Found::Realm } else { Found::Nothing }),
        None => Database::look(config, &RealmId::from(FIRST_REALM)).await,
    }
}

/// Refuses a database that holds nothing of Portiere.
pub async fn must_be_there(config: &Config) -> Result<(), Failure> {
    match found(config).await? {
        Found::Realm => Ok(()),
        less => Err(Failure::Failed(missing(config, less))),
    }
}

/// Says why a command that makes no database is not carried out.
fn missing(config: &Config, found: Found) -> String {
    match (config.database(), found) {
        (Some(_), _) => format!("there is no database in {}; is --data right?", config.server.data.display()),
        (None, Found::Tables) => {
            format!("the tables of Portiere in {} are empty; is store.url right?", address(config))
        }
        (None, _) => format!("there are no tables of Portiere in {}; is store.url right?", address(config)),
    }
}

/// Says where a database was made: an operator whose server is elsewhere did not mean to make one.
fn begun(config: &Config) -> String {
    let data = &config.server.data;
    match config.database() {
        Some(_) => {
            let data = data.canonicalize().unwrap_or_else(|_| data.clone());
            format!("a new database was made in {}: is that the --data of your server?", data.display())
        }
        None => format!("Portiere was set up in {}: is that the store.url of your server?", address(config)),
    }
}

/// Says that a command, which may only have asked, brought a database to this program's schema.
fn migrated(before: i64) -> Option<String> {
    let now = newest();
    (0 < before && before < now).then(|| {
        format!(
            "the database was migrated from schema {before} to {now}; if that was not meant, see \"Upgrades\" in the \
             guide's page on operating"
        )
    })
}

/// Refuses a data folder of another user: files that root made there would keep that user's server from starting.
pub fn own(data: &Path) -> Result<(), Failure> {
    let Ok(folder) = fs::metadata(data) else { return Ok(()) };
    let owner = folder.uid();
    match owner == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(Failure::Failed(not_ours(data, owner, &fs::read_to_string(USERS).unwrap_or_default()))),
    }
}

/// Checks that the database is named, which a command that opens the database itself needs: if the server has the name
/// in its environment, so must the command.
pub fn names_its_database(config: &Config) -> Result<(), Failure> {
    let wrong = config.without_server();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Use(wrong.join("\n"))) }
}

/// The users of this machine: passwd(5).
const USERS: &str = "/etc/passwd";

/// Says what the user of this command can do about it, whichever command it is.
fn not_ours(data: &Path, owner: u32, users: &str) -> String {
    let data = data.display();
    match name_of(owner, users) {
        Some(name) => format!("{data} belongs to {name}: run this as that user (sudo -u {name} …)"),
        None => format!("{data} belongs to user {owner}: run this as that user (sudo -u '#{owner}' …)"),
    }
}

/// Returns the name of a user, if the file of users has it.
fn name_of(user: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(user)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{Operator, config, instance, request};
    use store::engine::Engine as _;
    use store::migrations::MIGRATIONS;
    use store::moving::catalogue;
    use store::sqlite::{Options, Sqlite};

    /// Returns the outcome of a backup into a file of the data folder, where no server runs.
    async fn backup(data: &Path, name: &str) -> Outcome {
        let line = format!("backup {}", data.join(name).display());
        Reach::new(&config(data)).ask(&request(&line, "").unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn a_database_of_an_older_schema_is_copied_as_it_is() {
        // Red where `ask` opens an instance for it: the original would be migrated first.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let first = MIGRATIONS[0].version;
        let old = Sqlite::open(Options::at(at("portiere.db")), &MIGRATIONS[..1]).unwrap();
        old.migrate().await.unwrap();
        old.close();
        drop(old);
        let notes = backup(folder.path(), "copy.db").await.notes;
        assert!(notes.len() == 1 && notes[0].contains(&format!("has schema {first}, not ")), "{notes:?}");
        for file in ["portiere.db", "copy.db"] {
            let sqlite = Sqlite::open(Options::at(at(file)), MIGRATIONS).unwrap();
            assert_eq!(catalogue::version(&sqlite).await.unwrap(), first, "{file}");
            sqlite.close();
        }
        assert!(!at("master.key").exists(), "no key was made");
    }

    #[tokio::test]
    async fn a_copy_needs_no_key_and_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        instance(folder.path()).await.close().await;
        fs::rename(at("master.key"), at("kept")).unwrap();
        assert_eq!(backup(folder.path(), "copy.db").await.notes, [""; 0]);
        assert!(at("copy.db").exists() && !at("master.key").exists());
        fs::rename(at("kept"), at("master.key")).unwrap();
        let config = config(folder.path());
        let mut operator = Operator::new(&config);
        let lines = operator.does("audit list").await.json;
        let copied = lines.as_array().unwrap().iter().find(|line| line["event"] == "database.copied").unwrap();
        assert_eq!(copied["detail"]["by"], "operator", "{copied}");
        operator.0.close().await;
    }

    #[tokio::test]
    async fn a_folder_that_is_in_use_may_be_free_later() {
        // Red with Failed for it in `ask`: scripts try again after 75 alone.
        let folder = tempfile::tempdir().unwrap();
        let holds = instance(folder.path()).await;
        let config = config(folder.path());
        let mut reach = Reach { patience: Duration::ZERO, ..Reach::new(&config) };
        let refused = reach.ask(&request("user list", "").unwrap()).await.unwrap_err();
        assert!(refused.told().ends_with("is in use by a process that does not answer"), "{refused:?}");
        assert_eq!(refused.exit_code(), 75);
        holds.close().await;
        // Likewise where only a server knows the answer, and none runs yet.
        for line in ["verifier status", "audit tail -f", "profile"] {
            let refused = Reach::new(&config).ask(&request(line, "").unwrap()).await.unwrap_err();
            assert!(refused.told().starts_with("no server runs on "), "{line}: {refused:?}");
            assert_eq!(refused.exit_code(), 75, "{line}");
        }
    }

    #[test]
    fn a_command_that_migrates_says_so() {
        let now = newest();
        assert_eq!([0, now, now + 1].map(migrated), [None, None, None]);
        let told = migrated(now - 1).unwrap();
        assert!(told.starts_with(&format!("the database was migrated from schema {} to {now}", now - 1)), "{told}");
    }

    #[test]
    fn a_folder_of_somebody_else_names_them_and_what_helps() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\n+:\nportiere:x:998:998::/var/lib/portiere:/usr/sbin/nologin\n";
        assert_eq!(name_of(998, users), Some("portiere"));
        assert_eq!(name_of(99, users), None);
        // A restore and a move take the place of a server: starting one does not help them.
        let said = |owner| not_ours(Path::new("/data"), owner, users);
        assert_eq!(said(998), "/data belongs to portiere: run this as that user (sudo -u portiere …)");
        assert_eq!(said(99), "/data belongs to user 99: run this as that user (sudo -u '#99' …)");
    }
}
