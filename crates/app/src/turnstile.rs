//! A few at a time through one gate each: parallel attempts on one account.
//!
//! Attempts are counted as failed before they are hashed and given back on success. Without a turnstile two hundred
//! honest sign-ins to one account at once would look like two hundred guesses.

use rules::{Handle, Span};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Fault;

/// Attempts on one account that are worked on at the same time; fewer than the failures that cost nothing.
const AT_ONCE: usize = 4;

/// Attempts on one account that wait for these. What waits takes up one of the places for passwords, of which whoever
/// knocks at one account alone shall not have many.
const WAITING: usize = 32;

type Gates = Arc<Mutex<HashMap<Handle, Arc<Semaphore>>>>;

/// Lets a few at a time through for each key.
pub(crate) struct Turnstile(Gates);

/// A place behind the turnstile; dropping it lets the next one through.
pub(crate) struct Pass {
    gates: Gates,
    key: Handle,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turnstile {
    pub(crate) fn new() -> Self {
        Turnstile(Arc::default())
    }

    /// Waits for a place, at most `patience`.
    pub(crate) async fn pass(&self, key: Handle, patience: Duration) -> Result<Pass, Fault> {
        let gate = {
            let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let gate = gates.entry(key).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)));
            // The map has one; everybody who is behind the gate or waits before it has another.
            if Arc::strong_count(gate) > AT_ONCE + WAITING {
                return Err(Fault::Busy(Span::seconds(1)));
            }
            Arc::clone(gate)
        };
        let mut pass = Pass { gates: Arc::clone(&self.0), key, permit: None };
        match tokio::time::timeout(patience, gate.acquire_owned()).await {
            Ok(Ok(permit)) => {
                pass.permit = Some(permit);
                Ok(pass)
            }
            _ => Err(Fault::Busy(Span::seconds(1))),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        // The map alone holds it: nobody is behind it or waits before it.
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
        assert!(turnstile.0.lock().expect("not poisoned").is_empty());
    }
}
