//! Watches whether a queue stays nearly full for so long that people are better sent to another node.
//!
//! A full queue refuses by itself, at once and with a time to come back, and a full moment is harmless: the server goes
//! on at its capacity. A queue is strained once it has been nearly full for some time, and until it has shrunk to half
//! and stayed there, so that the state does not flap.

use crate::admission::Admission;
use crate::database::Database;
use crate::metrics::{Store, Together};
use hasher::Hasher;
use rules::Span;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::tally::{Spread, nanos};

/// From this share of its limit on, a queue is nearly full. Lower than the share at which newcomers are asked to come
/// back: otherwise a flood of them would be turned away here for ever while other nodes have nothing to do.
const FULL: f64 = 0.7;
/// Below this share a queue has shrunk.
const EASED: f64 = 0.5;
/// How long a queue has to stay shrunk.
const EASED_FOR: Duration = Duration::from_secs(2);
/// The pause between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// When to come back to a database that does not answer: it is not known for how long.
const AWAY: Duration = Duration::from_secs(2);
/// The least and the most that a client is asked to stay away from a database that answers.
const BACK: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The queues: the hash threads, the database, and the admission lanes in the order of [`Admission::lanes`].
const QUEUES: [&str; 5] = ["hashing", "database", "tokens", "pages", "passwords"];

/// The state of the queues.
pub struct Strain {
    max_wait: Duration,
    /// How long a queue has to be nearly full to be strained; zero for never.
    after: Duration,
    strained: [AtomicBool; QUEUES.len()],
    /// How long a request that comes now would wait for the database, in nanoseconds.
    database: AtomicU64,
}

impl Strain {
    /// Returns the state without strain: `max_wait` is the budget for passwords, and a queue is strained after `after`.
    pub fn new(max_wait: Duration, after: Duration) -> Self {
        Strain { max_wait, after, strained: Default::default(), database: AtomicU64::new(0) }
    }

    /// Returns the longest that a password may wait.
    pub fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Returns how long a request at the last look would have waited for the database.
    pub fn database_wait(&self) -> Duration {
        Duration::from_nanos(self.database.load(Relaxed))
    }

    /// Returns when to come back to the database: once it will have done what waits for it, as far as that can be
    /// foreseen. The time goes out in whole seconds, rounded up, as every other wait does.
    pub fn database_back(&self) -> Span {
        let [least, most] = BACK;
        match self.database_wait() {
            Duration::ZERO => AWAY.into(),
            wait => wait.clamp(least, most).into(),
        }
    }

    /// Sets the wait that the last look found.
    #[cfg(test)]
    pub fn say_database_wait(&self, wait: Duration) {
        self.database.store(nanos(wait), Relaxed);
    }

    /// Returns every queue, and whether it is strained.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, bool)> {
        QUEUES.into_iter().zip(self.strained.iter().map(|strained| strained.load(Relaxed)))
    }

    /// Returns why people are better sent to another node.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let strained = self.all().filter(|(_, strained)| *strained);
        strained.map(|(queue, _)| {
            format!("the {queue} queue has been nearly full for too long: send people to another node")
        })
    }

    /// Watches the queues until the future is dropped.
    pub async fn watch(&self, hasher: &Hasher, database: &Database, admission: &Admission) {
        let (mut queues, mut commits) = ([Queue::default(); QUEUES.len()], Commits::default());
        loop {
            tokio::time::sleep(EVERY).await;
            let (store, now) = (Store::of(database), Instant::now());
            let wait = commits.wait((store.waiting().0, store.together()), store.commit_times(), now);
            self.database.store(nanos(wait), Relaxed);
            let hashing = hasher.state().expected_wait.as_secs_f64() / self.max_wait.as_secs_f64();
            // Requests that wait for the database hold places in the lanes, so admission's budget is the limit.
            let database = wait.as_secs_f64() / admission.max_wait().as_secs_f64();
            let [tokens, pages, passwords] = admission.lanes().map(|(_, lane)| lane.share());
            self.judge(&mut queues, [hashing, database, tokens, pages, passwords], now);
        }
    }

    /// Judges each queue by the share of its limit that waits, and logs each change.
    fn judge(&self, queues: &mut [Queue; QUEUES.len()], shares: [f64; QUEUES.len()], now: Instant) {
        if self.after.is_zero() {
            return;
        }
        for (at, (queue, share)) in queues.iter_mut().zip(shares).enumerate() {
            if queue.look(share, self.after, now) {
                let strained = queue.strained;
                self.strained[at].store(strained, Relaxed);
                match strained {
                    true => tracing::warn!(queue = QUEUES[at], "strained: not ready until the queue has shrunk"),
                    false => tracing::info!(queue = QUEUES[at], "no longer strained"),
                }
            }
        }
    }
}

/// How fast the database was lately. The limit of its own queue says nothing: admission lets in far less.
#[derive(Default)]
struct Commits {
    times: Lately,
    groups: Lately,
    /// When a group last began, or nothing waited.
    moved: Option<Instant>,
}

impl Commits {
    /// Returns how long a newcomer would wait behind so many.
    fn wait(&mut self, (waiting, together): (usize, Together<'_>), times: &Spread, now: Instant) -> Duration {
        let took = self.times.mean(times);
        let (beside, still) = match together {
            Together::Beside(connections) => (connections as f64, Duration::ZERO),
            Together::Grouped(sizes) => {
                let begun = self.groups.count;
                let size = self.groups.mean(sizes);
                if waiting == 0 || self.groups.count > begun {
                    self.moved = Some(now);
                }
                // The mean does not contain a commit that does not end.
                (size, now.saturating_duration_since(*self.moved.get_or_insert(now)))
            }
        };
        Duration::try_from_secs_f64(took * waiting as f64 / beside.max(1.0)).unwrap_or_default().max(still)
    }
}

/// The mean of the values that a histogram counted since the last look; the mean before if it counted none.
#[derive(Default)]
struct Lately {
    count: u64,
    sum: f64,
    mean: f64,
}

impl Lately {
    fn mean(&mut self, spread: &Spread) -> f64 {
        if spread.count > self.count {
            self.mean = (spread.sum - self.sum) / (spread.count - self.count) as f64;
            (self.count, self.sum) = (spread.count, spread.sum);
        }
        self.mean
    }
}

/// One queue, as the looks have found it.
#[derive(Clone, Copy, Default)]
struct Queue {
    strained: bool,
    /// Since when the looks contradict `strained`.
    contrary: Option<Instant>,
}

impl Queue {
    /// Takes the share of the limit that waits. Returns whether the queue changes its state now.
    fn look(&mut self, share: f64, after: Duration, now: Instant) -> bool {
        let (contrary, patience) = match self.strained {
            false => (share >= FULL, after),
            true => (share < EASED, EASED_FOR),
        };
        let since = *self.contrary.get_or_insert(now);
        if !contrary {
            self.contrary = None;
        } else if now.duration_since(since) >= patience {
            *self = Queue { strained: !self.strained, contrary: None };
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds at which the state changes, with a look every second.
    fn changes(shares: &[f64]) -> Vec<(usize, bool)> {
        let (mut queue, began) = (Queue::default(), Instant::now());
        let look = |(second, share): (usize, &f64)| {
            let now = began + Duration::from_secs(second as u64);
            queue.look(*share, Duration::from_secs(3), now).then_some((second, queue.strained))
        };
        shares.iter().enumerate().filter_map(look).collect()
    }

    #[test]
    fn places_at_the_door_that_are_all_taken_make_a_node_unready_too() {
        let strain = Strain::new(Duration::from_secs(3), Duration::from_secs(5));
        let (mut queues, began) = ([Queue::default(); QUEUES.len()], Instant::now());
        for second in 0..=5 {
            assert_eq!(strain.problems().count(), 0);
            strain.judge(&mut queues, [0.1, 0.1, 0.9, 0.1, 0.1], began + Duration::from_secs(second));
        }
        let problems: Vec<_> = strain.problems().collect();
        assert!(matches!(&problems[..], [one] if one.contains("tokens")), "{problems:?}");
        let alone = Strain::new(Duration::from_secs(3), Duration::ZERO);
        (0..20).for_each(|second| alone.judge(&mut queues, [1.0; 5], began + Duration::from_secs(second)));
        assert_eq!(alone.problems().count(), 0, "where it is told never to be");
    }

    /// Returns a histogram of so many values that sum up to so much.
    fn spread(count: u64, sum: f64) -> Spread {
        Spread { steps: Vec::new(), count, sum }
    }

    #[test]
    fn the_queue_of_the_database_is_as_long_as_it_takes() {
        let (mut commits, began) = (Commits::default(), Instant::now());
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        // Ten commits of 20 ms, of 4 batches each.
        let sizes = spread(10, 40.0);
        let wait = commits.wait((40, Together::Grouped(&sizes)), &spread(10, 0.2), at(0));
        assert_eq!(wait.as_millis(), 200, "ten more of these");
        // The disk became slow: the next ones take half a second.
        let sizes = spread(12, 48.0);
        let wait = commits.wait((40, Together::Grouped(&sizes)), &spread(12, 1.2), at(1));
        assert_eq!(wait.as_secs(), 5, "what was before does not count");
        // It stands still.
        for (second, known) in [(2, 5), (5, 5), (10, 9)] {
            let wait = commits.wait((40, Together::Grouped(&sizes)), &spread(12, 1.2), at(second));
            assert_eq!(wait.as_secs(), known, "after {second} s");
        }
        let wait = commits.wait((0, Together::Grouped(&sizes)), &spread(12, 1.2), at(60));
        assert_eq!(wait, Duration::ZERO, "nothing waits");
        let wait = Commits::default().wait((64, Together::Beside(16)), &spread(10, 0.2), at(0));
        assert_eq!(wait.as_millis(), 80, "a server, by its connections");
    }

    #[test]
    fn who_is_sent_away_from_the_database_is_told_to_come_when_it_is_through() {
        // red with a constant in `database_back`.
        let strain = Strain::new(Duration::from_secs(3), Duration::ZERO);
        for (waits, seconds) in [(0, 2), (1, 1), (900, 1), (7_200, 8), (3_600_000, 60)] {
            strain.say_database_wait(Duration::from_millis(waits));
            assert_eq!(strain.database_back().whole_seconds(), seconds, "{waits} ms");
        }
    }

    #[test]
    fn a_moment_strains_nothing_and_a_moment_eases_nothing() {
        assert_eq!(changes(&[0.9, 1.0, 0.9, 0.6, 0.9, 0.9, 0.9]), [], "it was interrupted");
        assert_eq!(changes(&[0.9, 1.0, 0.7, 0.9]), [(3, true)]);
        let back = [1.0, 1.0, 1.0, 1.0, 0.4, 0.6, 0.6, 0.4, 0.4, 0.3, 0.9];
        assert_eq!(changes(&back), [(3, true), (9, false)], "between half and full nothing changes");
    }
}
