//! Lets a few at a time through one gate per key: parallel attempts on one account.
//!
//! Attempts are counted as failed before they are hashed and given back on success. Without a turnstile two hundred
//! honest sign-ins to one account at once would look like two hundred guesses.

use crate::{App, Fault};
use rules::Handle;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::tally::nanos;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Attempts on one account that are worked on at the same time; fewer than the failures that cost nothing.
const AT_ONCE: usize = 4;

/// Attempts on one account that wait for these. Each takes up one of the places for passwords, of which a client that
/// knocks at a single account shall not have many.
const WAITING: usize = 32;

/// An attempt that is done moves the mean by the difference divided by this.
const WEIGHT: u64 = 16;

/// The shortest time that anybody is asked to stay away.
pub const LEAST: Duration = Duration::from_secs(1);

/// Lets a few at a time through for each key.
pub(crate) struct Turnstile(Arc<Gates>);

#[derive(Default)]
struct Gates {
    of: Mutex<HashMap<Handle, Arc<Semaphore>>>,
    /// How long a place is taken, whatever the key.
    taken: Taken,
}

/// How long places are taken, in nanoseconds: a moving mean.
#[derive(Default)]
pub struct Taken(AtomicU64);

/// A place behind the turnstile; dropping it lets the next one through.
pub(crate) struct Pass {
    gates: Arc<Gates>,
    key: Handle,
    place: Option<(OwnedSemaphorePermit, Instant)>,
}

impl Turnstile {
    pub(crate) fn new() -> Self {
        Turnstile(Arc::default())
    }

    /// Waits for a place, at most `patience`; refuses at once where that would not be enough.
    pub(crate) async fn pass(&self, key: Handle, patience: Duration) -> Result<Pass, Fault> {
        let gate = {
            let mut gates = self.0.open();
            let gate = gates.entry(key).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)));
            let (before, wait) = self.0.expected(gate);
            if before >= AT_ONCE + WAITING {
                return Err(busy(wait));
            }
            if wait > patience {
                return Err(busy(wait - patience));
            }
            Arc::clone(gate)
        };
        let mut pass = Pass { gates: Arc::clone(&self.0), key, place: None };
        match tokio::time::timeout(patience, gate.acquire_owned()).await {
            Ok(Ok(permit)) => {
                pass.place = Some((permit, Instant::now()));
                Ok(pass)
            }
            // Slower than expected: what the mean says now is the best guess.
            _ => Err(busy(self.0.open().get(&key).map_or(Duration::ZERO, |gate| self.0.expected(gate).1))),
        }
    }
}

impl App {
    /// Returns how long an attempt waits for a hash, and for the attempts before it.
    pub(crate) fn patience(&self) -> Duration {
        self.realm.settings.hash_wait.into()
    }
}

/// Asks the client to come back after so long, or a little later.
pub(crate) fn busy(wait: Duration) -> Fault {
    Fault::Busy(wait.max(LEAST).into())
}

impl Taken {
    /// Notes that a place was taken for so long.
    pub fn note(&self, took: Duration) {
        let (took, mean) = (nanos(took), self.0.load(Relaxed));
        // Of two updates at once one may be lost, which a mean bears.
        self.0.store(if mean == 0 { took } else { mean - mean / WEIGHT + took / WEIGHT }, Relaxed);
    }

    /// Returns how long `turns` turns take, of which `at_once` go at the same time.
    pub fn turns(&self, turns: u64, at_once: u64) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed).saturating_mul(turns) / at_once)
    }
}

impl Gates {
    fn open(&self) -> MutexGuard<'_, HashMap<Handle, Arc<Semaphore>>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many are behind a gate or wait before it, and how long another one would wait.
    fn expected(&self, gate: &Arc<Semaphore>) -> (usize, Duration) {
        // The map holds one reference; each attempt holds another.
        let before = Arc::strong_count(gate) - 1;
        let turns = (before + 1).saturating_sub(AT_ONCE) as u64;
        (before, self.taken.turns(turns, AT_ONCE as u64))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some((permit, since)) = self.place.take() {
            drop(permit);
            self.gates.taken.note(since.elapsed());
        }
        let mut gates = self.gates.open();
        // Only the map holds the gate: no attempt is behind it or waits before it.
        if gates.get(&self.key).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            gates.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_few_pass_at_a_time_and_nothing_is_left_behind() {
        let turnstile = Turnstile::new();
        let key = Handle([1; 32]);
        let mut passes = Vec::new();
        for _ in 0..AT_ONCE {
            passes.push(turnstile.pass(key, Duration::from_secs(1)).await.expect("a place"));
        }
        assert!(turnstile.pass(key, Duration::from_millis(10)).await.is_err());
        passes.pop();
        passes.push(turnstile.pass(key, Duration::from_secs(1)).await.expect("a place"));
        passes.clear();
        let mut crowd: Vec<_> =
            (0..=AT_ONCE + WAITING).map(|_| Box::pin(turnstile.pass(key, Duration::from_secs(60)))).collect();
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let at_once: Vec<_> = crowd
            .iter_mut()
            .filter_map(|knock| match knock.as_mut().poll(context) {
                std::task::Poll::Ready(passed) => Some(passed),
                std::task::Poll::Pending => None,
            })
            .collect();
        assert_eq!(at_once.iter().filter(|passed| passed.is_ok()).count(), AT_ONCE);
        assert_eq!(at_once.iter().filter(|passed| passed.is_err()).count(), 1, "one too many, and told so at once");
        drop((crowd, at_once));
        assert!(turnstile.0.of.lock().expect("not poisoned").is_empty());
    }
    #[tokio::test]
    async fn who_would_wait_too_long_is_told_so_at_once_and_when_to_come() {
        // Red without `expected`: nobody would be told before their patience is over, and then to wait a second.
        let (turnstile, key) = (Turnstile::new(), Handle([1; 32]));
        let mut passes = Vec::new();
        for _ in 0..AT_ONCE {
            passes.push(turnstile.pass(key, LEAST).await.expect("a place"));
        }
        // An attempt takes 30 s: the next of four places is free in 7.5.
        turnstile.0.taken.0.store(30_000_000_000, Relaxed);
        let refused = turnstile.pass(key, Duration::from_secs(2)).await;
        assert!(matches!(refused, Err(Fault::Busy(wait)) if wait == rules::Span(5_500)));
        assert!(turnstile.pass(Handle([2; 32]), Duration::ZERO).await.is_ok(), "another account waits for nobody");
        turnstile.0.taken.0.store(1, Relaxed);
        let refused = turnstile.pass(key, Duration::from_millis(10)).await;
        assert!(matches!(refused, Err(Fault::Busy(wait)) if wait == LEAST.into()), "slower than was thought");
    }
}
