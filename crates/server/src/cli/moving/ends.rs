//! The two databases of a move, and how each is reached.

use crate::boot::BootError;
use crate::cli::outcome::{Failure, Outcome, Reply, say};
use crate::cli::reach::own;
use crate::cli::request::Request;
use crate::config::{Config, SecretFile, StoreUrl};
use crate::control;
use crate::database::{Database, address};
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
use store::moving::{Named, Trouble, before, fence};
use store::sqlite::{self, Onlooker, OpenError, Options, Sqlite};

/// How long whoever holds a file may take to answer or to let go of it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest that one page, or the count of one table, may take.
const SLOW: Duration = Duration::from_secs(300);
/// Connections that read a file at a time: as many tables are copied at once.
const READERS: u32 = 3;

/// What is done to a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Writes end.
    Raise {
        /// What the move is called, if it is not called something already.
        id: String,
        /// The target's name.
        peer: String,
    },
    /// It was moved.
    Left {
        /// What the move is called.
        id: String,
    },
    /// Writes go on.
    Lift {
        /// What the move is called.
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
    /// In the server.
    pub async fn execute(self, app: &App) -> Reply {
        if app.engine.file() != Some(&self.file) {
            let file = self.file.display();
            return Err(Failure::Failed(format!(
                "{file} is held by a process that is not the server of this data folder"
            )));
        }
        let engine = Named::new(Arc::clone(&app.engine), format!("sqlite:{}", self.file.display()));
        let id = perform(&engine, &self.act).await?;
        Ok(Outcome::new(id.clone(), json!(id)))
    }
}

/// What the move is called afterwards.
async fn perform(engine: &dyn Engine, act: &Act) -> Result<String, Trouble> {
    match act {
        Act::Raise { id, peer } => fence::raise(engine, id, peer).await,
        Act::Left { id } => fence::left(engine, id).await.map(|()| id.clone()),
        Act::Lift { id } => fence::lift(engine, id).await.map(|()| id.clone()),
    }
}

/// What a database is called: its URL without a password, its file with its whole path.
fn name(config: &Config) -> String {
    match config.database() {
        Some(file) => format!("sqlite:{}", absolute(&file).display()),
        None => address(config),
    }
}

/// The same path whatever links lead to its folder.
fn absolute(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), file.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => file.to_owned(),
    }
}

/// How a database is reached.
pub struct Way {
    /// Its URL.
    pub url: StoreUrl,
    /// The file of its password, where the URL has none.
    pub password: Option<SecretFile>,
}

/// The configuration of a database that may take its time.
fn patient(config: &Config, way: Way) -> Config {
    let mut config = config.clone();
    (config.store.url, config.store.password_file) = (way.url, way.password);
    config.store.timeout = config.store.timeout.max(SLOW);
    config
}

/// Where everything is.
pub struct Source<'a> {
    /// What it is called.
    pub name: String,
    /// The data folder in which a server may listen that holds it.
    data: &'a Path,
    config: Config,
}

impl<'a> Source<'a> {
    /// Nothing is opened yet.
    pub fn new(config: &'a Config, way: Way) -> Self {
        let data = &config.server.data;
        let config = patient(config, way);
        Source { name: name(&config), data, config }
    }

    /// To be read, beside whoever holds it.
    pub async fn reading(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }

    /// Does something to it, through the server where one holds its file; what the move is called.
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
            if began.elapsed() > PATIENCE {
                let why = format!("{} is held by a process that does not answer", file.display());
                return Err(Failure::Failed(why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// What a target takes.
pub struct Takes {
    /// Its engine.
    pub dialect: Dialect,
    /// The longest packet, in bytes, where there is such a thing.
    pub packet: Option<u64>,
}

/// Where everything is to be.
pub struct Target {
    /// What it is called.
    pub name: String,
    config: Config,
}

impl Target {
    /// Nothing is opened yet.
    pub fn new(config: &Config, way: Way) -> Self {
        let config = patient(config, way);
        Target { name: name(&config), config }
    }

    /// Looks at it before anything is done there: whether it can be filled from a source, for the move `id` where that was begun.
    pub async fn inspect(&self, from: &dyn Engine, id: Option<&str>) -> Result<Takes, Failure> {
        if let Some(file) = self.config.database().map(|file| absolute(&file)) {
            let folder = file.parent().unwrap_or(Path::new("/"));
            own(folder)?;
            sqlite::vacant(&file).map_err(|Trouble(why)| Failure::Failed(format!("{}: {why}", self.name)))?;
            if std::fs::metadata(&file).map_or(true, |found| found.len() == 0) {
                sqlite::local(&file).map_err(|error| Failure::Failed(error.to_string()))?;
                if let Some(why) = lacks_room(folder, before::size(from).await?)? {
                    // What a server keeps has gaps that are not copied.
                    match from.dialect() {
                        Dialect::Sqlite => return Err(Failure::Failed(why)),
                        Dialect::Postgres | Dialect::Mysql => say(&format!("{why}; it may be enough all the same")),
                    }
                }
                return Ok(Takes { dialect: Dialect::Sqlite, packet: None });
            }
        }
        let engine = self.looking().await?;
        before::of_target(from, &*engine, id).await?;
        Ok(Takes { dialect: engine.dialect(), packet: before::packet(&*engine).await? })
    }

    /// To be filled: its schema is brought up.
    pub async fn open(&self) -> Result<Database, Failure> {
        let database = self.connect().await?;
        let engine = self.named(&database);
        store::moving::vacant(&engine).await?;
        engine.migrate().await.map_err(|error| Failure::Failed(error.0))?;
        Ok(database)
    }

    /// What it fails with names it.
    pub fn named(&self, database: &Database) -> Named {
        Named::new(database.engine(), &self.name)
    }

    /// As it is, for this process alone where it is a file.
    pub async fn connect(&self) -> Result<Database, Failure> {
        if let Some(file) = self.config.database() {
            own(absolute(&file).parent().unwrap_or(Path::new(".")))?;
        }
        Database::connect(&self.config).await.map_err(|error| match error {
            BootError::InUse => Failure::Failed(format!("{} is in use: by a server, or by another move", self.name)),
            other => unreached(&self.config, other),
        })
    }

    /// To be looked at, beside whoever fills it.
    pub async fn looking(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }
}

/// Whether a file of so many bytes can be made in a folder: what it lacks in room.
fn lacks_room(folder: &Path, bytes: u64) -> Result<Option<String>, Failure> {
    let failed = |error: rustix::io::Errno| Failure::Failed(format!("{}: {error}", folder.display()));
    let disk = statvfs(folder).map_err(failed)?;
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(failed)?;
    let (free, has) = (disk.f_bavail.saturating_mul(disk.f_frsize), bytes.div_ceil(1 << 20));
    let why = || format!("{}: {} MiB are free, and what is moved has {has} MiB", folder.display(), free >> 20);
    Ok((free < bytes).then(why))
}

/// Of two databases it has to be said which one cannot be reached; neither need be that of `store.url`.
fn unreached(config: &Config, error: BootError) -> Failure {
    let why = error.to_string();
    let why =
        ["store.url: ", "store.password_file: "].iter().find_map(|option| why.strip_prefix(option)).unwrap_or(&why);
    Failure::Failed(format!("{}: {why}", name(config)))
}

async fn look(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    let Some(file) = config.database() else {
        let database = Database::connect(config).await.map_err(|error| unreached(config, error))?;
        return Ok(Arc::new(Named::new(database.engine(), name(config))));
    };
    // Who may not look finds nothing.
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
    use super::*;
    use crate::config::{Raw, Sources, Value as _};

    #[test]
    fn a_file_is_not_begun_where_there_is_no_room_for_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(lacks_room(folder.path(), 0), Ok(None));
        let Ok(Some(line)) = lacks_room(folder.path(), 1 << 60) else { panic!() };
        assert!(line.contains("MiB are free, and what is moved has 1099511627776 MiB"), "{line}");
        assert!(lacks_room(&folder.path().join("none"), 0).is_err());
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
            let way = |path: &str| Way { url: url(path).unwrap(), password: None };
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
            let Failure::Failed(line) = failure else { panic!("{failure:?}") };
            assert!(line.contains(&format!("127.0.0.1:1/{path}: ")), "{line}");
            assert!(!line.contains("store.url") && !line.contains("secret"), "{line}");
        }
    }
}
