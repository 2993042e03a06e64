//! Values that a scrape does not ask for itself, since they matter most while the database is away or a disk hangs.
//! They are read every few seconds, and only if metrics are served at all.

use super::room::{Room, Surveyor};
use crate::http::Site;
use crate::http::is_ready;
use app::audit::Lag;
use app::{App, Fault};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The values read last.
pub struct Glance {
    data: PathBuf,
    surveyor: Surveyor,
    looked: Mutex<Looked>,
}

/// The values to report.
#[derive(Clone)]
pub struct Looked {
    /// When the database last answered; when the first look began, if it never did.
    pub at: Instant,
    /// What it answered.
    pub seen: Option<Seen>,
    /// Whether the server is ready.
    pub is_ready: bool,
    /// The room on the disk; nothing if its file system does not answer.
    pub room: Option<Room>,
}

/// The values read from the database.
#[derive(Clone)]
pub struct Seen {
    /// How far the audit log is behind.
    pub audit: Lag,
    /// Workers that gave wrong answers and are asked nothing any more.
    pub quarantined: usize,
    /// Workers that may be asked.
    pub enrolled: usize,
}

impl Looked {
    /// Nothing read yet.
    pub fn nothing() -> Self {
        Looked { at: Instant::now(), seen: None, is_ready: false, room: None }
    }
}

impl Glance {
    /// Makes the glance of a server with this data folder.
    pub fn of(data: &Path) -> Self {
        Glance { data: data.to_owned(), surveyor: Surveyor::default(), looked: Mutex::new(Looked::nothing()) }
    }

    /// Returns the values read last.
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

    /// Looks once. If the database does not answer, its previous values stay, and age.
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
