//! Decides which free visitor of a thread takes the next start of an open loop.
//!
//! Usually that is the visitor that was freed last: so no more visitors are used than there are iterations at a time,
//! each with a connection that was used a moment ago. In a circle the next would be the visitor that has rested
//! longest, whose connection the server may have closed by then, and a run with many users would measure handshakes.
//! Visitors that hold tokens take turns in a circle all the same: a server should be asked about many tokens, not just
//! about a few.

use crate::plan::Workload;
use std::cell::RefCell;
use std::collections::VecDeque;
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::sync::{Notify, Semaphore};

/// The free visitors of a thread. They and the task that hands out starts run one at a time on that thread.
pub struct Turns {
    in_a_circle: bool,
    free: RefCell<VecDeque<Sender<bool>>>,
    freed: Notify,
}

impl Turns {
    /// Creates the turns for visitors with this workload.
    pub fn of(workload: Workload) -> Turns {
        Turns { in_a_circle: workload.holds_tokens(), free: RefCell::default(), freed: Notify::new() }
    }

    /// Waits for the next start; the result says if it was due before anybody was free. A leaving visitor drops it.
    pub fn wait(&self) -> Receiver<bool> {
        let (sender, receiver) = channel();
        self.free.borrow_mut().push_back(sender);
        self.freed.notify_one();
        receiver
    }

    /// Removes visitors that have left.
    pub fn tidy(&self) {
        self.free.borrow_mut().retain(|visitor| !visitor.is_closed());
    }

    /// Hands out the starts that come through the gate, until there are no more.
    pub async fn hand_out(&self, gate: &Semaphore) {
        // Starts at the gate that were due while no visitor was free.
        let mut late = 0_usize;
        while let Ok(start) = gate.acquire().await {
            start.forget();
            let mut waited = late > 0;
            late = late.saturating_sub(1);
            while !self.call(waited) {
                self.freed.notified().await;
                (waited, late) = (true, gate.available_permits());
            }
        }
    }

    /// Calls the next free visitor; returns false if there is none.
    fn call(&self, waited: bool) -> bool {
        let next = || {
            let mut free = self.free.borrow_mut();
            if self.in_a_circle { free.pop_front() } else { free.pop_back() }
        };
        std::iter::from_fn(next).any(|visitor| visitor.send(waited).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// Hands out starts to visitors while `work` runs.
    fn handed(workload: Workload, work: impl AsyncFnOnce(&Turns, &Semaphore)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(LocalSet::new().run_until(async {
            let (turns, gate) = (Rc::new(Turns::of(workload)), Rc::new(Semaphore::new(0)));
            let (own, at) = (Rc::clone(&turns), Rc::clone(&gate));
            let porter = spawn_local(async move { own.hand_out(&at).await });
            yield_now().await;
            work(&turns, &gate).await;
            porter.abort();
        }));
    }

    async fn let_go(gate: &Semaphore, starts: usize) {
        gate.add_permits(starts);
        // Often enough for every task to wake another one.
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Red where they always take turns in a circle: each start used the connection that had rested longest.
    #[test]
    fn whoever_was_freed_last_is_called_first_but_for_those_who_hold_tokens() {
        for (workload, order) in [(Workload::Flow, [2, 1, 0]), (Workload::Introspect, [0, 1, 2])] {
            handed(workload, async |turns, gate| {
                let mut free = [turns.wait(), turns.wait(), turns.wait()];
                for (before, next) in order.into_iter().enumerate() {
                    let_go(gate, 1).await;
                    assert_eq!(free[next].try_recv(), Ok(false), "{workload:?}");
                    assert!(order[before + 1..].iter().all(|later| free[*later].try_recv().is_err()), "{workload:?}");
                }
            });
        }
    }

    #[test]
    fn whoever_has_left_is_not_called() {
        handed(Workload::Flow, async |turns, gate| {
            let (mut stays, leaves) = (turns.wait(), turns.wait());
            drop(leaves);
            let_go(gate, 1).await;
            assert_eq!(stays.try_recv(), Ok(false));
            drop(turns.wait());
            turns.tidy();
            assert!(turns.free.borrow().is_empty());
        });
    }

    /// Red without `late`: of the starts that were due while all were busy, only the first counted as having waited.
    #[test]
    fn starts_that_are_due_while_nobody_is_free_have_waited() {
        handed(Workload::Flow, async |turns, gate| {
            let_go(gate, 3).await;
            let mut both = [turns.wait(), turns.wait()];
            let_go(gate, 0).await;
            assert_eq!(both.each_mut().map(|one| one.try_recv()), [Ok(true), Ok(true)]);
            let mut third = turns.wait();
            let_go(gate, 0).await;
            assert_eq!(third.try_recv(), Ok(true));
            let mut rested = turns.wait();
            let_go(gate, 1).await;
            assert_eq!(rested.try_recv(), Ok(false));
        });
    }
}
