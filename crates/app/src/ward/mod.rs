//! Guards a database server that may lose acknowledged commits at a failover: nothing acknowledged is undone.
//!
//! Every batch that ended something is written to a journal on this node after its COMMIT and before its
//! acknowledgement. When another server answers, the [`Gate`] lets nobody in until the journal was replayed to it; and
//! what was issued before is not believed until every node that was there has done the same (the fence).

mod clocks;
mod fence;
mod issuer;
mod journal;
mod nodes;
mod replay;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use clocks::Clocks;
pub use clocks::told as clock_told;
pub use fence::Status;
pub(crate) use issuer::Elsewhere;
pub use journal::{Journal, KEPT, Kept, Memory};
pub(crate) use nodes::Journals;
pub use nodes::Shown;

use rules::Time;
use rules::ending::Record;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::engine::{CommitError, Engine, Write};
use store::gate::{self, Gate};
use store::tally::{Histogram, TIMES};
use store::turn;
use tokio::sync::{RwLock, oneshot};

/// A caller that waits this long for the journal is told that the outcome of its commit is unknown. Less than
/// `refresh.grace`, so that a client that retries is still given the successor that it was not told of.
const STALLED: Duration = Duration::from_secs(5);

/// Guards the commits that this node acknowledged.
pub struct Ward {
    gate: Arc<Gate>,
    journal: Kept,
    /// Held for reading from before a commit until its record is in the journal: a replay waits for that.
    turn: RwLock<()>,
    /// Whether the server that answers could lose commits that it acknowledges.
    lossy: AtomicBool,
    /// How long records took to get into the journal.
    times: Histogram,
    seen: Mutex<Seen>,
}

/// What this node saw at its last check of the server.
#[derive(Default)]
struct Seen {
    status: Option<Status>,
    trouble: Option<String>,
    /// The greatest mark that this process has set for this node, or may have set.
    mark: Option<i64>,
    /// When another process was last seen to have set a mark for this node.
    double: Option<Time>,
}

impl Ward {
    /// Creates a ward over this engine, with no server let in yet.
    pub fn new(engine: Arc<dyn Engine>, journal: Kept) -> Self {
        Ward {
            gate: Arc::new(Gate::new(engine)),
            journal,
            turn: RwLock::new(()),
            lossy: AtomicBool::new(true),
            times: Histogram::new(&TIMES),
            seen: Mutex::default(),
        }
    }

    /// Returns the engine that all other code works on.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Whether acknowledgements wait for the journal at present.
    pub(crate) fn keeps(&self) -> bool {
        self.lossy.load(SeqCst)
    }

    /// Commits, then notes in the journal what the commit ended. Runs to its end even if the caller stops waiting: what
    /// others can see in the database has to be in the journal.
    #[allow(clippy::disallowed_methods, reason = "it is awaited here; only a caller that disappears leaves it behind")]
    pub(crate) async fn commit(self: &Arc<Self>, writes: Vec<Write>, record: Record) -> Result<(), CommitError> {
        let (ward, (commits, committed)) = (Arc::clone(self), oneshot::channel());
        let mut work = tokio::spawn(async move { turn::waiting(ward.commit_and_note(writes, &record, commits)).await });
        // A committed batch goes on into the journal in its turn, however long that takes.
        let stalls = async {
            let _ = committed.await;
            tokio::time::sleep(STALLED).await;
        };
        tokio::select! {
            biased;
            done = &mut work => match done {
                Ok((done, waited)) => {
                    turn::waited(waited);
                    done
                }
                Err(error) => Err(CommitError::Unknown(error.to_string())),
            },
            () = stalls => Err(CommitError::Unknown(format!("the journal has not answered for {STALLED:?}"))),
        }
    }

    async fn commit_and_note(
        &self,
        writes: Vec<Write>,
        record: &Record,
        commits: oneshot::Sender<()>,
    ) -> Result<(), CommitError> {
        let unknown = |why: String| CommitError::Unknown(why);
        // While this node makes sure that nothing is undone, which may take minutes, a caller is told so at once.
        let Ok(_turn) = self.turn.try_read() else { return Err(CommitError::Unavailable(gate::CLOSED.to_owned())) };
        let entered = self.gate.passes();
        // A batch that cannot be noted afterwards would take effect all the same, and a caller told to come back would
        // find it done: a code used up, a token replaced by another.
        self.journal.works().map_err(|why| CommitError::Unavailable(format!("the journal: {why}")))?;
        self.gate.commit(writes).await?;
        // The caller may have stopped waiting.
        let _ = commits.send(());
        let begun = Instant::now();
        let noted = self.journal.append(record).await;
        self.times.took(begun.elapsed());
        noted.map_err(|why| unknown(format!("the journal: {why}")))?;
        match self.gate.passes() == entered {
            true => Ok(()),
            false => Err(unknown("the database failed over before the commit was in the journal".to_owned())),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
