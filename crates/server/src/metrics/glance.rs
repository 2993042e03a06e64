//! What a scrape does not ask for itself: it is needed most while the database is away, or a disk stands still. It is looked at every
//! few seconds, and only where metrics are served at all.

use super::room::{Room, Surveyor};
use crate::http::Site;
use crate::http::is_ready;
use app::audit::Lag;
use app::{App, Fault};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen last.
pub struct Glance {
    data: PathBuf,
    surveyor: Surveyor,
    looked: Mutex<Looked>,
}

/// What there is to tell.
#[derive(Clone)]
pub struct Looked {
    /// When the database last answered; when the first look began, where it never did.
    pub at: Instant,
    /// What it said.
    pub seen: Option<Seen>,
    /// Whether the server is ready.
    pub is_ready: bool,
    /// The room on the disk; nothing where its file system does not answer.
    pub room: Option<Room>,
}

/// What was seen in the database.
#[derive(Clone)]
pub struct Seen {
    /// How far the audit log is behind.
    pub audit: Lag,
    /// Workers that were found to be wrong and are asked nothing any more.
    pub quarantined: usize,
    /// Those that may be asked.
    pub enrolled: usize,
}

impl Looked {
    /// Nothing yet.
    pub fn nothing() -> Self {
        Looked { at: Instant::now(), seen: None, is_ready: false, room: None }
    }
}

impl Glance {
    /// Of a server with this data folder.
    pub fn of(data: &Path) -> Self {
        Glance { data: data.to_owned(), surveyor: Surveyor::default(), looked: Mutex::new(Looked::nothing()) }
    }

    /// As it was seen last.
    pub fn looked(&self) -> Looked {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks again and again until it is dropped.
    pub async fn renew(&self, site: &Site) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look(site).await;
        }
    }

    /// Looks once. Where the database does not answer, what it said before stays, and grows old.
    pub async fn look(&self, site: &Site) {
        let (seen, is_ready, room) = tokio::join!(
            tokio::time::timeout(PATIENCE, Seen::now(&site.app)),
            is_ready(site),
            self.surveyor.look(&self.data, site.app.engine.file(), PATIENCE),
        );
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        (looked.is_ready, looked.room) = (is_ready, room);
        if let Ok(Ok(seen)) = seen {
            (looked.at, looked.seen) = (Instant::now(), Some(seen));
        }
    }
}

impl Seen {
    async fn now(app: &App) -> Result<Self, Fault> {
        let (audit, workers) = (app.audit_lag().await?, app.workers().await?);
        let quarantined = workers.iter().filter(|worker| worker.quarantine.is_some()).count();
        Ok(Seen { audit, quarantined, enrolled: workers.len() - quarantined })
    }
}
