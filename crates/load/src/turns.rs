//! Who takes the next start of an open loop, among the visitors of one thread that are free.
//!
//! Mostly that is whoever was freed last: as few visitors are used as there are iterations at a time, each with a connection that was
//! used a moment ago. In a circle the next would be the one that has rested longest, whose connection the server may have closed by
//! then, and a run with many users would measure handshakes. Visitors that hold tokens take their turns in a circle all the same: a
//! server is asked about many tokens, and not about those of a few.

use crate::plan::Workload;
use std::cell::RefCell;
use std::collections::VecDeque;
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::sync::{Notify, Semaphore};

/// The visitors of a thread that are free. They and whoever hands starts out take turns on that thread.
pub struct Turns {
    in_a_circle: bool,
    free: RefCell<VecDeque<Sender<bool>>>,
    freed: Notify,
}

impl Turns {
    /// Among visitors who do this.
    pub fn of(workload: Workload) -> Turns {
        Turns { in_a_circle: workload.holds_tokens(), free: RefCell::default(), freed: Notify::new() }
    }

    /// Free for the next start; it says whether it was due before anybody was. Whoever leaves drops it.
    pub fn wait(&self) -> Receiver<bool> {
        let (sender, receiver) = channel();
        self.free.borrow_mut().push_back(sender);
        self.freed.notify_one();
        receiver
    }

    /// Forgets those who have left.
    pub fn tidy(&self) {
        self.free.borrow_mut().retain(|visitor| !visitor.is_closed());
    }

    /// Hands out the starts that come through the gate, until there is none any more.
    pub async fn hand_out(&self, gate: &Semaphore) {
        // Starts at the gate that were due while nobody was free.
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

    /// Calls the next who is there; false where nobody is.
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

    /// Starts that are due one after another, and what the visitors are told.
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
        // As often as anything may have to wake anything.
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Red where they always stand in a circle: each start met a connection that was as old as there are users.
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

    /// Red without `late`: of those that were due while all were busy only the first had waited.
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
