//! The audit log behind the requests: sealing entries that were committed, delivering entries that were sealed,
//! removing old ones, and reading them.
//!
//! One node does each of these jobs for all nodes, for as long as its lease runs. No request waits for anything here.

mod alarm;
mod deliver;
mod lag;
mod mark;
mod operator;
mod read;
mod rejections;
mod retire;
mod seal;
pub mod sink;
#[cfg(test)]
mod tests;
mod told;
mod trouble;
mod verify;
pub mod wire;

pub use deliver::Stream;
pub use lag::{Lag, Lagging};
pub use mark::{Accepted, Kept, Shelf};
pub use read::{Failures, Filter, Page};
pub(crate) use rejections::{Rejections, Strangers};
pub use seal::{Rekeyed, Sealed};
pub use told::tell_of_copy;
pub use verify::Verified;

use crate::complaint::Complaints;
use crate::leases::LEASE;
use crate::{App, Fault};
use alarm::{About, Alarms};
use mark::Marked;
use retire::Retired;
use rules::audit::Keys;
use rules::{Span, Time};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The lease of the node that seals and retires.
pub(crate) const SEAL: &str = "audit.seal";
/// Between two checks for entries to seal or to deliver.
const EVERY: Duration = Duration::from_secs(1);
/// Between two checks of a lease that another node has, or after a failure.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// The shortest rest between two steps while much is left.
const REST: Duration = Duration::from_millis(10);
/// Between two checks for entries that are too old or too many.
const RETIRE_EVERY: Duration = Duration::from_secs(20);
/// How long a node that stops goes on sealing the entries that it leaves.
const LAST: Duration = Duration::from_secs(2);

/// An operator's settings for the audit log.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The key that seals, and the keys that sealed before.
    pub keys: Keys,
    /// How long entries are kept.
    pub retention: Span,
    /// The most entries that are kept: beyond that, the oldest go before their time.
    pub max_lines: Option<i64>,
    /// The most entries that are kept in any case: beyond that, even entries that were not sealed or not delivered go.
    pub ceiling: Option<i64>,
    /// Whether a command that reads entries leaves an entry of its own.
    pub reads: bool,
    /// Where this node keeps its mark.
    pub shelf: Option<Kept>,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            keys: Keys::default(),
            retention: Span::days(90),
            max_lines: None,
            ceiling: None,
            reads: false,
            shelf: None,
        }
    }
}

/// What is said where the log is not sealed, by this node or now, and where what is old stays.
const IDLE: &str = "this node does not seal the audit log";
const UNSEALED: &str = "the audit log could not be sealed";
const HELD: &str = "old audit lines cannot be removed yet";

/// The [`Terms`], once they are known, and what was found since.
#[derive(Default)]
pub struct Books {
    terms: OnceLock<Terms>,
    alarms: Alarms,
    marked: Marked,
    idle: Mutex<Option<String>>,
}

impl Books {
    /// Returns what an operator chose.
    pub fn terms(&self) -> &Terms {
        self.terms.get_or_init(Terms::default)
    }

    fn idle(&self) -> MutexGuard<'_, Option<String>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that one node does at a time, as far as this node knows.
struct Tenure {
    job: String,
    until: Option<Time>,
}

impl Tenure {
    fn of(job: impl Into<String>) -> Self {
        Tenure { job: job.into(), until: None }
    }

    /// Whether this node has the job. Most of the time the database need not be asked.
    async fn holds(&mut self, app: &App) -> Result<bool, Fault> {
        let now = app.clock.now();
        // A lease that runs longer than it was granted for comes from a clock that has been set back since.
        if self.until.is_none_or(|until| until <= now + Span(LEASE.0 / 2) || until > now + LEASE) {
            self.until = None;
            self.until = app.leads(&self.job).await?;
        }
        Ok(self.until.is_some())
    }
}

/// The outcome of one step in the background.
enum Step {
    /// There may be more to do at once.
    More,
    /// All is done for now.
    Idle,
    /// Another node does it.
    Elsewhere,
}

/// Returns how long to rest after a step: while much is left, requests have the database for most of the time.
fn rest(step: &Step, took: Duration) -> Duration {
    match step {
        Step::More => REST.max(took * 4).min(EVERY),
        Step::Idle => EVERY,
        Step::Elsewhere => ELSEWHERE,
    }
}

impl App {
    /// Returns the id of the key with which this node seals.
    pub fn audit_key(&self) -> Option<String> {
        self.books.terms().keys.current.as_ref().map(|key| key.id().to_owned())
    }

    /// Returns why this node does not seal the audit log, as far as the background task found; another node may.
    pub fn audit_idle(&self) -> Option<String> {
        self.books.idle().clone()
    }

    /// Sets what an operator chose, and reads the mark. To be called once, before anything is sealed.
    pub fn open_books(&self, terms: Terms) {
        self.books.marked.recall(&terms);
        drop(self.books.terms.set(terms));
    }

    /// Seals and retires until it is dropped.
    pub async fn keep_books(&self) {
        let (mut tenure, mut looked, mut complaints) = (Tenure::of(SEAL), None, Complaints::default());
        loop {
            let began = Instant::now();
            let step = match self.books_step(&mut tenure, &mut looked, &mut complaints).await {
                Ok(step) => {
                    complaints.over(UNSEALED);
                    self.books.alarms.over(About::Rows);
                    step
                }
                Err(fault) => {
                    if let Fault::Unavailable(why) = &fault
                        && fault.is_alien()
                    {
                        self.books.alarms.raise(About::Rows, why);
                    }
                    complaints.tell(&fault, UNSEALED);
                    tenure.until = None;
                    Step::Elsewhere
                }
            };
            tokio::time::sleep(rest(&step, began.elapsed())).await;
        }
    }

    async fn books_step(
        &self,
        tenure: &mut Tenure,
        looked: &mut Option<Instant>,
        complaints: &mut Complaints,
    ) -> Result<Step, Fault> {
        let goes_on = self.look_at_end().await?.is_ok();
        // A mark that cannot be kept is an alarm, and no reason to stop: what is not sealed can be changed unseen, too,
        // and is not delivered either.
        drop(self.keep_mark(false).await);
        if tenure.until.is_none()
            && let Some(why) = self.cannot_seal().await?
        {
            // Stored before it is logged: a reader of the log may ask at once.
            *self.books.idle() = Some(why.clone());
            complaints.tell(&why, IDLE);
            return Ok(Step::Elsewhere);
        }
        *self.books.idle() = None;
        complaints.over(IDLE);
        if !goes_on {
            return Ok(Step::Elsewhere);
        }
        if !tenure.holds(self).await? {
            self.books.alarms.over(About::Old);
            return Ok(Step::Elsewhere);
        }
        let due = looked.is_none_or(|at| at.elapsed() >= RETIRE_EVERY);
        let retired = due && self.retire_step(complaints).await?;
        if due && !retired {
            *looked = Some(Instant::now());
        }
        // After each block that goes: new entries do not wait until the last block that is due has gone.
        match self.seal_once().await? {
            Sealed::All(_) if !retired => Ok(Step::Idle),
            _ => Ok(Step::More),
        }
    }

    /// Seals the entries that this process leaves when it stops, and keeps the end of the log as it saw it. Entries
    /// that waited for the next start could be removed meanwhile, and nothing would show it.
    pub async fn close_books(&self) {
        if let Err(fault) = self.seal_rest().await {
            tracing::debug!(%fault, "the last lines of the audit log were left for the next node to seal");
        }
        if let Err(fault) = self.keep_mark(true).await {
            tracing::warn!(%fault, "the mark of the end of the audit log was not saved");
        }
    }

    async fn seal_rest(&self) -> Result<(), Fault> {
        let began = Instant::now();
        if self.look_at_end().await?.is_err() || self.cannot_seal().await?.is_some() {
            return Ok(());
        }
        // Where another node is faster, that node goes on with the rest, too.
        while began.elapsed() < LAST && matches!(self.seal_once().await?, Sealed::Some(1..)) {}
        Ok(())
    }

    /// Removes the oldest block if its time has come; returns whether there may be another one.
    async fn retire_step(&self, complaints: &mut Complaints) -> Result<bool, Fault> {
        let retired = self.retire_once().await?;
        match &retired {
            Retired::Held(why) => complaints.tell(why, HELD),
            _ => complaints.over(HELD),
        }
        match &retired {
            Retired::Wrong(why) => self.books.alarms.raise(About::Old, why),
            _ => self.books.alarms.over(About::Old),
        }
        Ok(retired == Retired::Block)
    }
}
