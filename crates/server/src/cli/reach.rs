//! The way to a realm: the running server, or, where none runs, the database itself.

use super::outcome::{Failure, Reply, say};
use super::request::{Place, Request};
use crate::boot::{BootError, Instance};
use crate::config::Config;
use crate::control;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop, and another command to end, before it is called stuck.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Carries out requests wherever the database is held.
pub struct Reach<'a> {
    config: &'a Config,
    here: Option<Instance>,
}

impl<'a> Reach<'a> {
    /// Nothing is opened yet.
    pub fn new(config: &'a Config) -> Self {
        Reach { config, here: None }
    }

    /// Has a request carried out: by the server if one listens, else on the database, which this process then holds.
    /// While the database is held by somebody who does not listen, a server starts or stops or another command runs.
    pub async fn ask(&mut self, request: &Request) -> Reply {
        let began = Instant::now();
        loop {
            if let Some(instance) = &self.here {
                let place = Place { data: &self.config.server.data, serves: false };
                let done = Box::pin(request.clone().execute(&instance.app, place));
                return app::asked::by_operator(rustix::process::geteuid().as_raw(), done).await;
            }
            if let Some(reply) = control::ask(&self.config.server.data, request).await? {
                return reply;
            }
            if request.needs_server() {
                let data = self.config.server.data.display();
                return Err(Failure::Failed(format!("no server runs on {data}: it alone knows")));
            }
            match self.open(request).await? {
                Some(instance) => self.here = Some(instance),
                None if began.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                None => {
                    let data = self.config.server.data.display();
                    return Err(Failure::Failed(format!("{data} is held by a process that does not answer")));
                }
            }
        }
    }

    async fn open(&self, request: &Request) -> Result<Option<Instance>, Failure> {
        let data = &self.config.server.data;
        let missing = self.config.database().is_some_and(|file| !file.exists());
        if missing && !request.begins() {
            let data = data.display();
            return Err(Failure::Failed(format!("there is no database in {data}; is --data right?")));
        }
        own(data)?;
        match Box::pin(Instance::open(self.config, None)).await {
            Ok(instance) => {
                if missing {
                    let data = data.canonicalize().unwrap_or_else(|_| data.clone());
                    // Not what whoever has a server elsewhere meant.
                    let data = data.display();
                    say(&format!("a new database was made in {data}: is that the --data of your server?"));
                }
                Ok(Some(instance))
            }
            Err(BootError::InUse) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets go of the database, if this process holds it.
    pub async fn close(self) {
        if let Some(instance) = self.here {
            instance.close().await;
        }
    }
}

/// Files that root makes in the data folder of somebody else would keep their server from starting.
pub fn own(data: &Path) -> Result<(), Failure> {
    let Ok(folder) = fs::metadata(data) else { return Ok(()) };
    let (owner, user) = (folder.uid(), rustix::process::geteuid().as_raw());
    match owner == user {
        true => Ok(()),
        false => {
            let data = data.display();
            Err(Failure::Failed(format!(
                "{data} belongs to user {owner}: run this as that user, or start their server"
            )))
        }
    }
}
