//! The state that the engine's threads share: whether batches are accepted, and statistics.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::tally::{Histogram, SIZES, Spread, TIMES};

/// The result of the check of the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The last stop was clean: no check was needed.
    Spared,
    /// The check is running.
    Running,
    /// The check found nothing.
    Passed,
    /// The check did not finish.
    Abandoned(String),
    /// The file is damaged.
    Damaged(String),
}

/// What the engine has done since it was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Transactions that reached the disk.
    pub commits: u64,
    /// Batches that were answered, whatever the answer.
    pub batches: u64,
    /// How many of these did not commit because the data had changed.
    pub conflicts: u64,
    /// Batches that were refused because too many were waiting.
    pub turned_away: u64,
    /// The largest number of batches in one transaction.
    pub largest_group: u64,
    /// The milliseconds that a COMMIT takes, as a moving average.
    pub commit_ms: f64,
    /// Pages in the write-ahead log.
    pub wal_pages: u32,
    /// How often the write-ahead log was copied into the database, in the background or by the writer.
    pub checkpoints: u64,
    /// Fetches that were too long for the caller's thread and moved to a thread of their own.
    pub long_fetches: u64,
    /// How long each copy took that the writer did itself, during which nothing was committed.
    pub checkpoint_times: Spread,
    /// Batches that wait for the writer or are being written.
    pub waiting: usize,
    /// How long each COMMIT took.
    pub commit_times: Spread,
    /// How many batches each transaction had.
    pub group_sizes: Spread,
}

/// Whether batches are accepted.
#[derive(Debug)]
enum Standing {
    Well,
    /// The last group failed; the next one is tried nevertheless.
    Troubled(String),
    /// Nothing is written any more.
    Ended(String),
}

pub(super) struct State {
    pub(super) commits: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) conflicts: AtomicU64,
    pub(super) turned_away: AtomicU64,
    pub(super) largest_group: AtomicU64,
    pub(super) wal_pages: AtomicU32,
    pub(super) checkpoints: AtomicU64,
    pub(super) checkpoint_times: Histogram,
    pub(super) long_fetches: AtomicU64,
    /// Batches that were handed over and not yet answered.
    pub(super) waiting: AtomicUsize,
    pub(super) group_sizes: Histogram,
    commit_times: Histogram,
    commit_ms: AtomicU64,
    /// When the group began that is being written.
    begun: Mutex<Option<Instant>>,
    standing: Mutex<Standing>,
    check: Mutex<Check>,
}

/// After this long, the disk is taken to be stalled: nothing fails, and callers that write wait.
const STALLED: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn new() -> Self {
        State {
            commits: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            largest_group: AtomicU64::new(0),
            wal_pages: AtomicU32::new(0),
            checkpoints: AtomicU64::new(0),
            checkpoint_times: Histogram::new(&TIMES),
            long_fetches: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            group_sizes: Histogram::new(&SIZES),
            commit_times: Histogram::new(&TIMES),
            commit_ms: AtomicU64::new(0f64.to_bits()),
            begun: Mutex::new(None),
            standing: Mutex::new(Standing::Well),
            check: Mutex::new(Check::Spared),
        }
    }

    /// Whether a batch may be handed over at all.
    pub(super) fn accepts(&self) -> Result<(), String> {
        match &*hold(&self.standing) {
            Standing::Ended(why) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Whether batches are expected to commit.
    pub(super) fn writable(&self) -> Result<(), String> {
        match &*hold(&self.standing) {
            Standing::Well => self.is_moving(Instant::now()),
            Standing::Troubled(why) | Standing::Ended(why) => Err(why.clone()),
        }
    }

    /// Whether the disk confirms writes.
    fn is_moving(&self, now: Instant) -> Result<(), String> {
        let since = hold(&self.begun).map(|begun| now.saturating_duration_since(begun));
        match since.filter(|since| *since >= STALLED) {
            Some(since) => Err(format!("the disk has not confirmed a write for {} s", since.as_secs())),
            None => Ok(()),
        }
    }

    /// Marks the beginning of a group's write, or its end (`None`).
    pub(super) fn at_work(&self, begun: Option<Instant>) {
        *hold(&self.begun) = begun;
    }

    /// Marks that a group reached the disk.
    pub(super) fn well(&self) {
        let mut standing = hold(&self.standing);
        if matches!(*standing, Standing::Troubled(_)) {
            *standing = Standing::Well;
        }
    }

    /// Marks that a group failed.
    pub(super) fn troubled(&self, why: &str) {
        let mut standing = hold(&self.standing);
        if !matches!(*standing, Standing::Ended(_)) {
            *standing = Standing::Troubled(why.to_owned());
        }
    }

    /// Marks that nothing is written any more. The first reason stays.
    pub(super) fn end(&self, why: &str) {
        let mut standing = hold(&self.standing);
        if !matches!(*standing, Standing::Ended(_)) {
            *standing = Standing::Ended(why.to_owned());
        }
    }

    pub(super) fn check(&self) -> Check {
        hold(&self.check).clone()
    }

    pub(super) fn checked(&self, found: Check) {
        *hold(&self.check) = found;
    }

    pub(super) fn commit_ms(&self) -> f64 {
        f64::from_bits(self.commit_ms.load(Relaxed))
    }

    /// Updates the average commit time, which covers about the last twenty commits. Called only by the writer.
    pub(super) fn committed(&self, took: Duration) {
        let (before, now) = (self.commit_ms(), took.as_secs_f64() * 1e3);
        let average = if self.commits.fetch_add(1, Relaxed) == 0 { now } else { before + (now - before) / 20.0 };
        self.commit_ms.store(average.to_bits(), Relaxed);
        self.commit_times.took(took);
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            batches: self.batches.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            turned_away: self.turned_away.load(Relaxed),
            largest_group: self.largest_group.load(Relaxed),
            commit_ms: self.commit_ms(),
            wal_pages: self.wal_pages.load(Relaxed),
            checkpoints: self.checkpoints.load(Relaxed),
            checkpoint_times: self.checkpoint_times.spread(),
            long_fetches: self.long_fetches.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            commit_times: self.commit_times.spread(),
            group_sizes: self.group_sizes.spread(),
        }
    }
}

/// Takes a lock whose holder may have panicked: every value here is consistent at any time.
pub(super) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_stands_still_is_told_although_nothing_failed() {
        // Red without `is_moving` in `writable`: callers would wait on a database that reports that all is well.
        let (state, now) = (State::new(), Instant::now());
        assert_eq!(state.is_moving(now + STALLED), Ok(()), "nothing is written");
        state.at_work(Some(now));
        assert_eq!(state.is_moving(now + STALLED / 2), Ok(()));
        let why = state.is_moving(now + STALLED).unwrap_err();
        assert_eq!(why, "the disk has not confirmed a write for 5 s");
        if let Some(long_ago) = now.checked_sub(2 * STALLED) {
            state.at_work(Some(long_ago));
            assert!(state.writable().is_err_and(|why| why.starts_with("the disk has not")));
        }
        state.at_work(None);
        assert_eq!(state.writable(), Ok(()));
    }
}
