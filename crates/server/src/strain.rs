//! Whether a queue is nearly full for so long that people are better sent elsewhere.
//!
//! A queue that is full refuses by itself, at once and with a time to come back, and a moment of it is nothing: the
//! server goes on at its capacity. It is strained once that lasted, and until the queue has shrunk to half and stayed
//! there, so that it does not go to and fro.

use crate::database::Database;
use hasher::Hasher;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// From this share of what may wait on, a queue is nearly full. Below the one at which newcomers are asked to come back, or
/// a flood of them would be turned away here for ever while other nodes have nothing to do.
const FULL: f64 = 0.7;
/// Below this share it has shrunk.
const EASED: f64 = 0.5;
/// How long it has to stay shrunk.
const EASED_FOR: Duration = Duration::from_secs(2);
/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// The queues.
const QUEUES: [&str; 2] = ["hashing", "database"];

/// How it stands with the queues.
pub struct Strain {
    max_wait: Duration,
    /// Never strained where it is zero.
    after: Duration,
    strained: [AtomicBool; QUEUES.len()],
}

impl Strain {
    /// Not strained, with this budget for passwords; strained once a queue was nearly full for so long.
    pub fn new(max_wait: Duration, after: Duration) -> Self {
        Strain { max_wait, after, strained: Default::default() }
    }

    /// The longest that a password may wait.
    pub fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Every queue, and whether it is strained.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, bool)> {
        QUEUES.into_iter().zip(self.strained.iter().map(|strained| strained.load(Relaxed)))
    }

    /// Why people are better sent elsewhere.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let strained = self.all().filter(|(_, strained)| *strained);
        strained.map(|(queue, _)| format!("too much waits for {queue}, for too long: send people to another node"))
    }

    /// Looks at the queues until it is dropped.
    pub async fn watch(&self, hasher: &Hasher, database: &Database) {
        if self.after.is_zero() {
            return std::future::pending().await;
        }
        let mut queues = [Queue::default(); QUEUES.len()];
        loop {
            tokio::time::sleep(EVERY).await;
            let waiting = hasher.state().expected_wait.as_secs_f64();
            let shares = [waiting / self.max_wait.as_secs_f64(), database.queue()];
            let now = Instant::now();
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
}

/// One queue as it was looked at.
#[derive(Clone, Copy, Default)]
struct Queue {
    strained: bool,
    /// Since when it says the contrary.
    contrary: Option<Instant>,
}

impl Queue {
    /// Looks at the share of what may wait that waits. Answers whether it is strained, or no longer, from now on.
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

    /// The seconds at which it changes, looked at every second.
    fn changes(shares: &[f64]) -> Vec<(usize, bool)> {
        let (mut queue, began) = (Queue::default(), Instant::now());
        let look = |(second, share): (usize, &f64)| {
            let now = began + Duration::from_secs(second as u64);
            queue.look(*share, Duration::from_secs(3), now).then_some((second, queue.strained))
        };
        shares.iter().enumerate().filter_map(look).collect()
    }

    #[test]
    fn a_moment_strains_nothing_and_a_moment_eases_nothing() {
        assert_eq!(changes(&[0.9, 1.0, 0.9, 0.6, 0.9, 0.9, 0.9]), [], "it was interrupted");
        assert_eq!(changes(&[0.9, 1.0, 0.7, 0.9]), [(3, true)]);
        let back = [1.0, 1.0, 1.0, 1.0, 0.4, 0.6, 0.6, 0.4, 0.4, 0.3, 0.9];
        assert_eq!(changes(&back), [(3, true), (9, false)], "between half and full nothing changes");
    }
}
