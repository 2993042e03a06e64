//! The only thread that writes. It takes the first waiting batch and all other waiting batches up to a limit, and
//! commits them together; while the disk syncs, the next group gathers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::answer::{self, Answered, To};
use super::fault::Fault;
use super::group::{self, Batch, Outcome};
use super::keeper::{Keeper, Rest};
use super::migrate;
use super::place::Place;
use super::ready::Ready;
use super::state::State;
use crate::engine::{CommitError, Unavailable};
use crate::schema::Migration;

/// A job for the writer.
pub(super) enum Job {
    /// A batch, and where its answer goes.
    Batch(Batch, To),
    /// Bring the schema to this program's version.
    Migrate(oneshot::Sender<Result<(), Unavailable>>),
    /// Change the schema with these statements.
    Alter(Vec<String>, oneshot::Sender<Result<(), Unavailable>>),
    /// Finish the waiting jobs, then end.
    Stop,
}

/// After this long without a job, the writer tidies up.
const IDLE: Duration = Duration::from_secs(2);

/// The pause between two steps of tidying up.
const STEP: Duration = Duration::from_millis(5);

/// The least time between the beginnings of two commits while several callers write.
pub const PACE: Duration = Duration::from_millis(1);

/// With this many batches, a commit is shared well enough, unless many more are just arriving.
pub const ENOUGH: usize = 16;

/// Arrivals are few if they are fewer than one in this many of the group.
const FEW: usize = 8;

/// How long the writer sleeps between two looks at a queue that fills fast; the system adds about as much.
const NAP: Duration = Duration::from_micros(20);

pub(super) struct Writer {
    pub(super) jobs: Receiver<Job>,
    pub(super) place: Place,
    pub(super) keeper: Keeper,
    pub(super) state: Arc<State>,
    pub(super) migrations: &'static [Migration],
    pub(super) group_limit: usize,
    /// The number of batches in the last group.
    pub(super) last_group: usize,
    /// How many batches were waiting when the last group was done, including the group itself.
    pub(super) callers: usize,
    /// When the last group began.
    pub(super) began: Instant,
    pub(super) complaints: Complaints,
    pub(super) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A group being gathered: its batches, and in the same order where their answers go.
#[derive(Default)]
struct Group {
    batches: Vec<Batch>,
    answers: Vec<To>,
}

/// The reason why nothing can be acknowledged.
const ELSEWHERE: &str = "the file of the database, or its log, was removed or replaced under the server";

/// The disk cannot be trusted any more, for this reason: the process has to end.
struct Fatal(String);

impl Writer {
    /// Runs until it is told to stop, no sender is left, or the disk fails.
    pub(super) fn run(mut self, conn: &Connection) {
        let _end = End { state: Arc::clone(&self.state), on_fatal: Arc::clone(&self.on_fatal) };
        if let Err(Fatal(why)) = self.serve(conn) {
            self.state.end(&why);
            (self.on_fatal)(&why);
        }
        // Jobs that came after the stop were never begun.
        for job in self.jobs.try_iter() {
            let why = "the database is closed".to_owned();
            match job {
                Job::Batch(batch, to) => {
                    self.state.waiting.fetch_sub(1, Relaxed);
                    drop(to.send(Answered::new(Err(CommitError::Unavailable(why)), batch)));
                }
                Job::Migrate(answer) | Job::Alter(_, answer) => drop(answer.send(Err(Unavailable(why)))),
                Job::Stop => {}
            }
        }
    }

    fn serve(&mut self, conn: &Connection) -> Result<(), Fatal> {
        let mut ready = Ready::new(conn);
        let mut group = Group::default();
        let mut next = self.wait(conn)?;
        while let Some(job) = next {
            next = match job {
                Job::Batch(batch, answer) => {
                    group.push(batch, answer);
                    let after = self.gather(&mut group);
                    self.state.at_work(Some(Instant::now()));
                    self.commit(&mut ready, &mut group)?;
                    self.state.at_work(None);
                    after
                }
                Job::Migrate(answer) => {
                    told(migrate::run(conn, self.migrations), answer)?;
                    None
                }
                Job::Alter(statements, answer) => {
                    told(migrate::alter(conn, &statements), answer)?;
                    None
                }
                Job::Stop => break,
            };
            if next.is_none() {
                next = self.wait(conn)?;
            }
        }
        self.state.end("the database is closed");
        fatal_only(self.keeper.finish(conn)).map(drop)
    }

    /// Waits for a job, and tidies up meanwhile.
    fn wait(&mut self, conn: &Connection) -> Result<Option<Job>, Fatal> {
        let mut patience = IDLE;
        while !self.keeper.tidy() {
            match self.jobs.recv_timeout(patience) {
                Ok(job) => return Ok(Some(job)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    // Tidying copies and syncs, so the disk may stall here, too.
                    self.state.at_work(Some(Instant::now()));
                    let rest = fatal_only(self.keeper.rest(conn));
                    self.state.at_work(None);
                    match rest? {
                        Some(Rest::More) => patience = STEP,
                        Some(Rest::Done) => break,
                        Some(Rest::Later) | None => patience = IDLE,
                    }
                }
            }
        }
        Ok(self.jobs.recv().ok())
    }

    /// Adds every waiting batch, up to the limit. Returns a job that is not a batch, if one came.
    ///
    /// Under load, commits begin at least [`PACE`] apart, or once all expected batches have come, so that more batches
    /// share the fixed cost of a commit. A lone writer is never kept waiting.
    fn gather(&self, group: &mut Group) -> Option<Job> {
        let mut other = self.drain(group);
        if self.last_group <= 1 && group.batches.len() <= 1 {
            return other;
        }
        // Sleeps instead of listening, since each arrival would wake the thread. If many write, enough have soon come.
        let many = self.last_group >= ENOUGH;
        let mut came = group.batches.len();
        while other.is_none()
            && group.batches.len() < self.group_limit
            && !is_complete(group.batches.len(), came, self.callers)
        {
            let rest = PACE.saturating_sub(self.began.elapsed());
            if rest < NAP {
                break;
            }
            thread::sleep(if many { NAP } else { rest });
            let before = group.batches.len();
            other = self.drain(group);
            came = group.batches.len() - before;
        }
        other
    }

    fn drain(&self, group: &mut Group) -> Option<Job> {
        while group.batches.len() < self.group_limit {
            match self.jobs.try_recv().ok()? {
                Job::Batch(batch, answer) => group.push(batch, answer),
                other => return Some(other),
            }
        }
        None
    }

    /// Commits a group, then sends all its answers.
    fn commit(&mut self, ready: &mut Ready<'_>, group: &mut Group) -> Result<(), Fatal> {
        self.began = Instant::now();
        self.last_group = group.batches.len();
        let size = self.last_group as u64;
        self.state.batches.fetch_add(size, Relaxed);
        self.state.group_sizes.observe(size);
        self.state.largest_group.fetch_max(size, Relaxed);
        let mut done = group::run(ready, &mut group.batches);
        // Checked before any answer is sent.
        if done.as_ref().is_ok_and(|committed| committed.took.is_some()) && !self.place.stands() {
            done = Err(Fault::Fatal(ELSEWHERE.to_owned()));
        }
        self.callers = self.state.waiting.fetch_sub(self.last_group, Relaxed);
        match done {
            Ok(committed) => {
                if let Some(took) = committed.took {
                    self.state.committed(took);
                }
                self.state.well();
                let conflict = |outcome: &&Outcome| matches!(outcome, Err(CommitError::Conflict { .. }));
                let conflicts = committed.outcomes.iter().filter(conflict).count();
                self.state.conflicts.fetch_add(conflicts as u64, Relaxed);
                group.answer(committed.outcomes, self.began);
            }
            Err(Fault::Fatal(why)) => {
                let lost = CommitError::Unknown(why.clone());
                group.answer(std::iter::repeat_n(Err(lost), group.batches.len()), self.began);
                return Err(Fatal(why));
            }
            Err(fault) => {
                let why = fault.text();
                self.complain(&why);
                self.state.troubled(&why);
                let lost = CommitError::Unavailable(why);
                group.answer(std::iter::repeat_n(Err(lost), group.batches.len()), self.began);
                fatal_only(self.keeper.make_room(ready.conn()))?;
            }
        }
        fatal_only(self.keeper.after_group(ready.conn())).map(drop)
    }
}

/// Counts the groups that failed since the last such failure that was logged.
#[derive(Default)]
pub(super) struct Complaints {
    told: Option<Instant>,
    left_out: u64,
}

/// The least time between two log lines about failing groups: the log may be on the full disk.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

impl Writer {
    fn complain(&mut self, why: &str) {
        let Complaints { told, left_out } = &mut self.complaints;
        if told.is_some_and(|at| at.elapsed() < COMPLAIN_EVERY) {
            *left_out += 1;
            return;
        }
        tracing::error!(batches = self.last_group, error = why, left_out = *left_out, "a group was rolled back");
        (*told, *left_out) = (Some(Instant::now()), 0);
    }
}

/// Whether a group of this size need not wait any longer; `came` of its batches arrived last. It must have enough
/// batches, and either all callers that were waiting when the last group was answered are back, or few still arrive.
fn is_complete(size: usize, came: usize, callers: usize) -> bool {
    size >= ENOUGH && (size >= callers || came * FEW < size)
}

impl Group {
    fn push(&mut self, batch: Batch, to: To) {
        self.batches.push(batch);
        self.answers.push(to);
    }

    /// Sends all answers, and leaves the group empty.
    fn answer(&mut self, outcomes: impl IntoIterator<Item = Outcome>, begun: Instant) {
        let outcomes = outcomes.into_iter().zip(self.batches.drain(..));
        let answered = outcomes.map(|(outcome, batch)| Answered::new(outcome, batch).of_group(begun));
        answer::all(self.answers.drain(..).zip(answered));
    }
}

/// Sends the result of a change of the schema.
fn told(done: Result<(), Fault>, answer: oneshot::Sender<Result<(), Unavailable>>) -> Result<(), Fatal> {
    let done = match done {
        Err(Fault::Fatal(why)) => return Err(Fatal(why)),
        Err(fault) => Err(Unavailable(fault.text())),
        Ok(()) => Ok(()),
    };
    // The caller may not be waiting any more.
    drop(answer.send(done));
    Ok(())
}

/// Failed tidying is tried again later, unless the disk itself failed.
fn fatal_only<T>(done: Result<T, Fault>) -> Result<Option<T>, Fatal> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Fault::Fatal(why)) => Err(Fatal(why)),
        Err(fault) => {
            tracing::warn!(error = fault.text(), "the log could not be copied into the database");
            Ok(None)
        }
    }
}

/// Marks that nothing is written any more, however the thread ends.
struct End {
    state: Arc<State>,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Drop for End {
    fn drop(&mut self) {
        if !thread::panicking() {
            return self.state.end("the writer has stopped");
        }
        // A process that lives on without the writer would refuse every write until it is restarted.
        let why = "the thread that writes to the database broke down";
        self.state.end(why);
        (self.on_fatal)(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{Options, Sqlite};
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};

    #[test]
    fn a_group_waits_for_those_who_are_coming_back() {
        // Red without `callers`: 64 writers fall into two halves that take turns.
        assert!(!is_complete(32, 32, 64), "the other half is on its way");
        assert!(is_complete(64, 32, 64), "all are there");
        assert!(is_complete(40, 4, 64), "whoever is not back by now does not come");
        assert!(is_complete(ENOUGH, ENOUGH, 1), "nobody was waiting");
        assert!(!is_complete(ENOUGH - 1, 0, 0), "too few to go before their time");
    }

    /// A receiver to which the writer cannot deliver an answer.
    struct Broken;

    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("nobody is woken");
        }
    }

    #[test]
    fn a_writer_that_breaks_down_is_not_outlived() {
        // Red without `on_fatal` in End: every write would be refused, and nothing would restart the process.
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let on_fatal = Arc::new(move |why: &str| tell.send(why.to_owned()).unwrap());
        let engine = Sqlite::open(Options { on_fatal, ..Options::at(folder.path().join("facts.db")) }, &[]).unwrap();
        let (answer, mut done) = oneshot::channel();
        let waker = Waker::from(Arc::new(Broken));
        assert!(Pin::new(&mut done).poll(&mut Context::from_waker(&waker)).is_pending());
        engine.jobs.send(Job::Migrate(answer)).unwrap();
        let why = told.recv().unwrap();
        assert!(why.contains("broke down"), "{why}");
        assert_eq!(engine.state.accepts(), Err(why));
    }

    #[test]
    fn a_writer_that_is_told_to_stop_is_no_reason_to_end() {
        // Red without `panicking` in End.
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let on_fatal = Arc::new(move |why: &str| tell.send(why.to_owned()).unwrap());
        let engine = Sqlite::open(Options { on_fatal, ..Options::at(folder.path().join("facts.db")) }, &[]).unwrap();
        engine.close();
        drop(engine);
        assert!(told.recv().is_err(), "nobody was told anything");
    }
}
