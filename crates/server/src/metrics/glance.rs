//! What nobody but the database knows. It is asked every few seconds and not by a scrape, which is needed most while it is
//! away; and only where metrics are served at all.

use app::audit::Lag;
use app::{App, Fault};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen last, if anything was.
#[derive(Default)]
pub struct Glance(Mutex<Option<Seen>>);

/// What was seen in the database.
#[derive(Clone)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// How far the audit log is behind.
    pub audit: Lag,
    /// Workers that were found to be wrong and are asked nothing any more.
    pub quarantined: usize,
    /// Those that may be asked.
    pub enrolled: usize,
}

impl Glance {
    /// As it was seen last.
    pub fn seen(&self) -> Option<Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks again and again until it is dropped.
    pub async fn renew(&self, app: &App) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look(app).await;
        }
    }

    /// Looks once. Where the database does not answer, what was seen before stays, and grows old.
    pub async fn look(&self, app: &App) {
        let Ok(Ok(seen)) = tokio::time::timeout(PATIENCE, Seen::now(app)).await else { return };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

impl Seen {
    async fn now(app: &App) -> Result<Self, Fault> {
        let (audit, workers) = (app.audit_lag().await?, app.workers().await?);
        let quarantined = workers.iter().filter(|worker| worker.quarantine.is_some()).count();
        Ok(Seen { at: Instant::now(), audit, quarantined, enrolled: workers.len() - quarantined })
    }
}
