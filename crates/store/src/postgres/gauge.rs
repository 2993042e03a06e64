//! How busy connections are, and the engine's statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::tally::{Histogram, Spread, TIMES};

/// What an engine has done since it was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Batches that were answered.
    pub batches: u64,
    /// How many of these were committed.
    pub committed: u64,
    /// How often a batch was retried, because the server had picked it as the victim of a deadlock or could not
    /// serialize it.
    pub retried: u64,
    /// Connections that were made, including lost ones.
    pub connections: u64,
    /// The milliseconds from a batch's turn on its connection to its commit, as a moving average.
    pub commit_ms: f64,
    /// How long that took for each batch.
    pub commit_times: Spread,
}

/// Collects the figures of [`Stats`].
pub(super) struct Tally {
    batches: AtomicU64,
    committed: AtomicU64,
    retried: AtomicU64,
    pub(super) connections: AtomicU64,
    commit_ms: AtomicU64,
    commit_times: Histogram,
}

impl Tally {
    pub(super) fn new() -> Self {
        Tally {
            batches: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            commit_ms: AtomicU64::new(0f64.to_bits()),
            commit_times: Histogram::new(&TIMES),
        }
    }

    /// Notes that a flight was answered; `committed` is the time that a committed batch took.
    pub(super) fn ended(&self, batch: bool, committed: Option<Duration>) {
        if !batch {
            return;
        }
        self.batches.fetch_add(1, Relaxed);
        let Some(took) = committed else { return };
        self.commit_times.took(took);
        // The average covers about the last twenty. Of two at the same moment, one may be missed.
        let (before, now) = (f64::from_bits(self.commit_ms.load(Relaxed)), took.as_secs_f64() * 1e3);
        let average = if self.committed.fetch_add(1, Relaxed) == 0 { now } else { before + (now - before) / 20.0 };
        self.commit_ms.store(average.to_bits(), Relaxed);
    }

    /// Returns the pause before retry number `tries` of a batch: longer each time, and different from the pauses of its
    /// rivals.
    pub(super) fn pause(&self, tries: u32) -> Duration {
        let nth = self.retried.fetch_add(1, Relaxed);
        // Spreads successive values over the whole range (Knuth's multiplicative hash).
        let share = nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        Duration::from_micros(share % (2000 << tries.min(5)))
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            batches: self.batches.load(Relaxed),
            committed: self.committed.load(Relaxed),
            retried: self.retried.load(Relaxed),
            connections: self.connections.load(Relaxed),
            commit_ms: f64::from_bits(self.commit_ms.load(Relaxed)),
            commit_times: self.commit_times.spread(),
        }
    }
}

/// How busy one connection is.
#[derive(Debug)]
pub(super) struct Gauge {
    load: AtomicUsize,
    began: Instant,
    /// Since when its first flight is on the way, in milliseconds after `began` plus one; 0 if there is none.
    front: AtomicU64,
}

/// A connection whose first flight is older is avoided: something takes long there.
const LONG: Duration = Duration::from_millis(50);

impl Gauge {
    pub(super) fn new() -> Self {
        Gauge { load: AtomicUsize::new(0), began: Instant::now(), front: AtomicU64::new(0) }
    }

    /// Sets since when its first flight is on the way.
    pub(super) fn at(&self, since: Option<Instant>) {
        let since = since.map_or(0, |at| at.duration_since(self.began).as_millis() as u64 + 1);
        self.front.store(since, Relaxed);
    }

    pub(super) fn front(&self, since: Instant) {
        self.at(Some(since));
    }

    /// The number of flights that wait or are in flight.
    pub(super) fn load(&self) -> usize {
        self.load.load(Relaxed)
    }

    /// Whether its first flight takes long.
    pub(super) fn is_slow(&self) -> bool {
        let since = self.front.load(Relaxed);
        since > 0 && self.began + Duration::from_millis(since) + LONG < Instant::now()
    }
}

/// A place on a connection, given back on drop.
#[derive(Debug)]
pub(super) struct Ticket(Arc<Gauge>);

impl Ticket {
    pub(super) fn take(gauge: &Arc<Gauge>) -> Self {
        gauge.load.fetch_add(1, Relaxed);
        Ticket(Arc::clone(gauge))
    }

    pub(super) fn gauge(&self) -> &Gauge {
        &self.0
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Relaxed);
    }
}
