//! The two databases of a move, and how each is reached.

use crate::boot::BootError;
use crate::cli::outcome::{Failure, Outcome, Reply};
use crate::cli::reach::own;
use crate::cli::request::Request;
use crate::config::{Config, StoreUrl, Value as _};
use crate::control;
use crate::database::Database;
use app::App;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::{Trouble, fence};
use store::sqlite::{Onlooker, OpenError, Options, Sqlite};

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
        let id = perform(&*app.engine, &self.act).await?;
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
    match (config.database(), config.store.url.show()) {
        (Some(file), _) => format!("sqlite:{}", absolute(&file).display()),
        (None, shown) => shown.unwrap_or_default().trim_matches('"').to_owned(),
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

/// The configuration of a database that may take its time.
fn patient(config: &Config, url: StoreUrl) -> Config {
    let mut config = config.clone();
    config.store.url = url;
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
    pub fn new(config: &'a Config, url: StoreUrl) -> Self {
        let data = &config.server.data;
        let config = patient(config, url);
        Source { name: name(&config), data, config }
    }

    /// To be read, beside whoever holds it.
    pub async fn reading(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }

    /// Does something to it, through the server where one holds its file; what the move is called.
    pub async fn act(&self, act: Act) -> Result<String, Failure> {
        let Some(file) = self.config.database().map(|file| absolute(&file)) else {
            let database = Database::connect(&self.config).await?;
            return Ok(perform(&*database.engine(), &act).await?);
        };
        own(file.parent().unwrap_or(self.data))?;
        let began = Instant::now();
        loop {
            match Sqlite::open(Options::at(&file), MIGRATIONS) {
                Ok(sqlite) => {
                    let done = perform(&sqlite, &act).await;
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

/// Where everything is to be.
pub struct Target {
    /// What it is called.
    pub name: String,
    config: Config,
}

impl Target {
    /// Nothing is opened yet.
    pub fn new(config: &Config, url: StoreUrl) -> Self {
        let config = patient(config, url);
        Target { name: name(&config), config }
    }

    /// To be filled: its schema is brought up.
    pub async fn open(&self) -> Result<Database, Failure> {
        let database = self.connect().await?;
        database.engine().migrate().await.map_err(|error| Failure::Failed(error.0))?;
        Ok(database)
    }

    /// As it is, for this process alone where it is a file.
    pub async fn connect(&self) -> Result<Database, Failure> {
        if let Some(file) = self.config.database() {
            own(absolute(&file).parent().unwrap_or(Path::new(".")))?;
        }
        Database::connect(&self.config).await.map_err(|error| match error {
            BootError::InUse => Failure::Failed(format!("{} is in use: by a server, or by another move", self.name)),
            other => other.into(),
        })
    }

    /// To be looked at, beside whoever fills it.
    pub async fn looking(&self) -> Result<Arc<dyn Engine>, Failure> {
        look(&self.config).await
    }
}

async fn look(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    let Some(file) = config.database() else {
        return Ok(Database::connect(config).await?.engine());
    };
    if !file.exists() {
        return Err(Failure::Failed(format!("there is no database {}", file.display())));
    }
    own(absolute(&file).parent().unwrap_or(Path::new(".")))?;
    match Onlooker::open(&file, READERS) {
        Ok(onlooker) => Ok(Arc::new(onlooker)),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}
