//! The audit log behind the requests: sealing what was committed, delivering what was sealed, taking out what is old, and
//! reading it.
//!
//! One node does each of these for all, for as long as its lease runs. Nothing here is waited for by a request.

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
pub(crate) use rejections::Rejections;
pub use seal::Sealed;
pub use verify::Verified;

use crate::jobs::{Complaint, LEASE};
use crate::{App, Fault};
use alarm::{About, Alarms};
use mark::Marked;
use retire::Retired;
use rules::audit::Keys;
use rules::{Span, Time};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::tables::ALIEN_ROW;

/// The lease of whoever seals and retires.
pub(crate) const SEAL: &str = "audit.seal";
/// Between two looks at what there is to seal or to deliver.
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks at a lease that another node has, or after a failure.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// The shortest rest between two steps while much is left.
const REST: Duration = Duration::from_millis(10);
/// Between two looks at what is too old or too much.
const RETIRE_EVERY: Duration = Duration::from_secs(20);
/// How long a node that ends goes on sealing what it leaves.
const LAST: Duration = Duration::from_secs(2);

/// What an operator chose for the audit log.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What seals, and what sealed before.
    pub keys: Keys,
    /// How long lines are kept.
    pub retention: Span,
    /// The most lines that are kept: beyond that the oldest go before their time.
    pub max_lines: Option<i64>,
    /// The most lines that are kept whatever else holds: beyond that, lines go that were not sealed or not delivered.
    pub ceiling: Option<i64>,
    /// Whether a command that reads lines leaves one of its own.
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

/// The terms, once they are known, and what was found since.
#[derive(Default)]
pub struct Books {
    terms: OnceLock<Terms>,
    alarms: Alarms,
    marked: Marked,
    idle: Mutex<Option<String>>,
}

impl Books {
    /// What an operator chose.
    pub fn terms(&self) -> &Terms {
        self.terms.get_or_init(Terms::default)
    }

    fn idle(&self) -> MutexGuard<'_, Option<String>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job of one node, as far as this node knows.
struct Tenure {
    job: String,
    until: Option<Time>,
}

impl Tenure {
    fn of(job: impl Into<String>) -> Self {
        Tenure { job: job.into(), until: None }
    }

    /// Whether this node has the job. Most of the time nobody has to be asked.
    async fn holds(&mut self, app: &App) -> Result<bool, Fault> {
        let now = app.clock.now();
        // One that runs for longer than it was given for is of a clock that has been set back since.
        if self.until.is_none_or(|until| until <= now + Span(LEASE.0 / 2) || until > now + LEASE) {
            self.until = None;
            self.until = app.leads(&self.job).await?;
        }
        Ok(self.until.is_some())
    }
}

/// What one step of the background came to.
enum Step {
    /// There may be more to do at once.
    More,
    /// All is done for now.
    Idle,
    /// Another node does it.
    Elsewhere,
}

/// How long to rest after a step: while much is left, requests have the database for most of the time.
fn rest(step: &Step, took: Duration) -> Duration {
    match step {
        Step::More => REST.max(took * 4).min(EVERY),
        Step::Idle => EVERY,
        Step::Elsewhere => ELSEWHERE,
    }
}

impl App {
    /// The id of the key under which this node seals.
    pub fn audit_key(&self) -> Option<String> {
        self.books.terms().keys.current.as_ref().map(|key| key.id().to_owned())
    }

    /// Why this node does not seal the audit log, as far as the background found; another node may.
    pub fn audit_idle(&self) -> Option<String> {
        self.books.idle().clone()
    }

    /// Says what an operator chose, and reads the mark. Once, before anything is sealed.
    pub fn open_books(&self, terms: Terms) {
        self.books.marked.recall(&terms);
        drop(self.books.terms.set(terms));
    }

    /// Seals and retires until it is dropped.
    pub async fn keep_books(&self) {
        let (mut tenure, mut looked) = (Tenure::of(SEAL), None);
        let mut complaints = [Complaint::default(), Complaint::default()];
        loop {
            let began = Instant::now();
            let step = match self.books_step(&mut tenure, &mut looked, &mut complaints).await {
                Ok(step) => {
                    complaints[0].over();
                    self.books.alarms.over(About::Rows);
                    step
                }
                Err(fault) => {
                    if let Fault::Unavailable(why) = &fault
                        && why.starts_with(ALIEN_ROW)
                    {
                        self.books.alarms.raise(About::Rows, why);
                    }
                    complaints[0].tell(&fault, "the audit log could not be sealed");
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
        complaints: &mut [Complaint; 2],
    ) -> Result<Step, Fault> {
        let goes_on = self.look_at_end().await?.is_ok();
        self.keep_mark(false).await?;
        if tenure.until.is_none()
            && let Some(why) = self.cannot_seal().await?
        {
            // Known before it is told: whoever reads the log may ask at once.
            *self.books.idle() = Some(why.clone());
            complaints[1].tell(&why, "this node does not seal the audit log");
            return Ok(Step::Elsewhere);
        }
        *self.books.idle() = None;
        if !goes_on {
            return Ok(Step::Elsewhere);
        }
        if !tenure.holds(self).await? {
            self.books.alarms.over(About::Old);
            return Ok(Step::Elsewhere);
        }
        let due = looked.is_none_or(|at| at.elapsed() >= RETIRE_EVERY);
        let retired = due && self.retire_step(&mut complaints[1]).await?;
        if due && !retired {
            *looked = Some(Instant::now());
        }
        // After each block that goes: new lines do not wait until the last one that is due has gone.
        match self.seal_once().await? {
            Sealed::All(_) if !retired => Ok(Step::Idle),
            _ => Ok(Step::More),
        }
    }

    /// Seals what this process leaves at its end, and keeps the end of the log as it saw it. What waited for the next start could
    /// be taken out meanwhile, and nothing would show it.
    pub async fn close_books(&self) {
        if let Err(fault) = self.seal_rest().await {
            tracing::debug!(%fault, "the last lines of the audit log wait for whoever seals next");
        }
        if let Err(fault) = self.keep_mark(true).await {
            tracing::warn!(%fault, "the end of the audit log as this node saw it was not kept");
        }
    }

    async fn seal_rest(&self) -> Result<(), Fault> {
        let began = Instant::now();
        if self.look_at_end().await?.is_err() || self.cannot_seal().await?.is_some() {
            return Ok(());
        }
        // Where another node is faster it goes on, too.
        while began.elapsed() < LAST && matches!(self.seal_once().await?, Sealed::Some(1..)) {}
        Ok(())
    }

    /// Takes out the oldest block if its time has come; whether there may be another one.
    async fn retire_step(&self, complaint: &mut Complaint) -> Result<bool, Fault> {
        let retired = self.retire_once().await?;
        match &retired {
            Retired::Held(why) => complaint.tell(why, "old audit lines are kept"),
            _ => complaint.over(),
        }
        match &retired {
            Retired::Wrong(why) => self.books.alarms.raise(About::Old, why),
            _ => self.books.alarms.over(About::Old),
        }
        Ok(retired == Retired::Block)
    }
}
