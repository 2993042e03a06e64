//! What is at stake: attempts that were let in and may turn out to be failures, under each counter that many share.
//!
//! A failure of an address is counted when it is known, after a hash or a database lookup. A parallel guesser would be
//! let in as often as they can ask before the first failure is known. So each attempt puts its failure at stake before
//! the counters are read; the rules count it with those that are there. Where these fill what is left, the next one
//! waits until one of them ends: two hundred people behind one address are no guessers until they fail.
//!
//! It is kept in memory, since a good sign-in shall not cost a write: a node knows its own attempts. What several nodes
//! let in beyond the limit at once is counted all the same, and must drain before the next.

use crate::Fault;
use crate::turnstile::{Taken, busy};
use rules::Handle;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The attempts of this node.
#[derive(Default)]
pub(crate) struct Stakes(Arc<Lanes>);

#[derive(Default)]
struct Lanes {
    held: Mutex<Held>,
    /// How long a failure is at stake.
    taken: Taken,
}

#[derive(Default)]
struct Held {
    lanes: HashMap<Handle, Lane>,
    /// The number of the next attempt.
    next: u64,
}

/// What is at stake under one counter.
#[derive(Default)]
struct Lane {
    /// Attempts in flight, in the order in which they came.
    under_way: BTreeSet<u64>,
    /// How many wait for one of these to end.
    waiting: usize,
    ended: Arc<Notify>,
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.waiting == 0
    }

    /// Returns how many attempts in flight came before this one.
    fn before(&self, number: u64) -> usize {
        self.under_way.range(..number).count()
    }
}

/// An attempt that wants to be let in, and waits where others are before it.
pub(crate) struct Hopeful<'a> {
    lanes: &'a Arc<Lanes>,
    keys: Vec<Handle>,
    until: Instant,
    turn: Option<Turn>,
}

/// A failure that may come. It is dropped when the attempt was judged and counted.
pub(crate) struct Stake {
    lanes: Arc<Lanes>,
    keys: Vec<Handle>,
    number: u64,
    since: Instant,
}

/// A place among the attempts that wait.
struct Turn {
    lanes: Arc<Lanes>,
    key: Handle,
    ended: Arc<Notify>,
}

impl Stakes {
    /// Begins an attempt whose failure would count under these keys, and which waits at most `patience` altogether.
    pub(crate) fn hopeful(&self, keys: Vec<Handle>, patience: Duration) -> Hopeful<'_> {
        Hopeful { lanes: &self.0, keys, until: Instant::now() + patience, turn: None }
    }

    /// Whether no attempt would have to wait: it does not ask for the names of counters, which cost a hash.
    pub(crate) fn nobody_waits(&self) -> bool {
        self.0.held().lanes.values().all(|lane| lane.waiting == 0)
    }

    /// Returns how much longer than `patience` an attempt would wait that came now.
    pub(crate) fn crowded(&self, keys: &[Handle], patience: Duration) -> Option<Duration> {
        let longest = keys.iter().map(|key| self.0.expected(key)).max()?;
        longest.checked_sub(patience).filter(|excess| !excess.is_zero())
    }
}

impl Hopeful<'_> {
    /// Puts the failure at stake, behind the attempts that wait already.
    pub(crate) async fn stake(&mut self) -> Result<Stake, Fault> {
        if let Some(turn) = self.turn.take().or_else(|| self.lanes.behind(&self.keys)) {
            turn.come(self.until).await?;
        }
        Ok(self.lanes.put(&self.keys))
    }

    /// Takes the stake back: under this key too many are in flight, until only `left` of them are.
    pub(crate) fn step_back(&mut self, stake: Stake, key: Handle, left: usize) {
        self.turn = Some(stake.into_turn(key, left));
    }
}

impl Stake {
    /// Returns how many attempts in flight came before, under each of the keys. To be called before the counters are
    /// read: an attempt that has ended by then is counted there, so that none is missed.
    pub(crate) fn beside(&self) -> Vec<usize> {
        let held = self.lanes.held();
        let before = |key: &Handle| held.lanes.get(key).map_or(0, |lane| lane.before(self.number));
        self.keys.iter().map(before).collect()
    }

    /// Notes that it was let in, and that `more` may be: the attempt that waits next checks again.
    pub(crate) fn let_in(&self, more: i64) {
        let held = self.lanes.held();
        let lanes = self.keys.iter().filter_map(|key| held.lanes.get(key)).filter(|lane| more > 0 && lane.waiting > 0);
        lanes.for_each(|lane| lane.ended.notify_one());
    }

    /// Waits in turn instead. Its other keys now have one fewer, and what woke it there woke no other attempt. Under
    /// this key, those that it waits for may have gone while it checked: the attempts that they woke saw it beside
    /// them, and stepped back as it does. So if no more than `left` are there now, a waiting one checks again.
    fn into_turn(mut self, key: Handle, left: usize) -> Turn {
        let keys = std::mem::take(&mut self.keys);
        let mut held = self.lanes.held();
        let lane = held.lanes.entry(key).or_default();
        lane.waiting += 1;
        let ended = Arc::clone(&lane.ended);
        for other in &keys {
            held.take_out(other, |lane| {
                lane.under_way.remove(&self.number);
                if *other != key || lane.before(self.number) <= left {
                    lane.ended.notify_one();
                }
            });
        }
        drop(held);
        Turn { lanes: Arc::clone(&self.lanes), key, ended }
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        self.lanes.taken.note(self.since.elapsed());
        let mut held = self.lanes.held();
        for key in &self.keys {
            held.take_out(key, |lane| {
                lane.under_way.remove(&self.number);
                // If none waits yet, this is kept for one that is about to.
                lane.ended.notify_one();
            });
        }
    }
}

impl Turn {
    /// Waits until an attempt ends, at most `until`; refuses at once where that would not be enough.
    async fn come(self, until: Instant) -> Result<(), Fault> {
        let patience = until.saturating_duration_since(Instant::now());
        let expected = self.lanes.expected(&self.key);
        if expected > patience {
            return Err(busy(expected - patience));
        }
        match tokio::time::timeout(patience, self.ended.notified()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(busy(self.lanes.expected(&self.key))),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lanes.held().take_out(&self.key, |lane| lane.waiting -= 1);
    }
}

impl Held {
    /// Takes something out of a lane, and removes the lane with the last of it.
    fn take_out(&mut self, key: &Handle, out: impl FnOnce(&mut Lane)) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        out(lane);
        if lane.is_empty() {
            self.lanes.remove(key);
        }
    }
}

impl Lanes {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(self: &Arc<Self>, keys: &[Handle]) -> Stake {
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        for key in keys {
            held.lanes.entry(*key).or_default().under_way.insert(number);
        }
        drop(held);
        Stake { lanes: Arc::clone(self), keys: keys.to_vec(), number, since: Instant::now() }
    }

    /// Returns a place behind the attempts that wait under one of the keys, if there are any.
    fn behind(self: &Arc<Self>, keys: &[Handle]) -> Option<Turn> {
        let mut held = self.held();
        let key = *keys.iter().find(|key| held.lanes.get(key).is_some_and(|lane| lane.waiting > 0))?;
        let lane = held.lanes.get_mut(&key)?;
        lane.waiting += 1;
        let ended = Arc::clone(&lane.ended);
        drop(held);
        Some(Turn { lanes: Arc::clone(self), key, ended })
    }

    /// Returns how long the last of those that wait there will wait.
    fn expected(&self, key: &Handle) -> Duration {
        let held = self.held();
        let (waiting, at_once) = held.lanes.get(key).map_or((0, 1), |lane| (lane.waiting, lane.under_way.len().max(1)));
        self.taken.turns(waiting as u64, at_once as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const ADDRESS: Handle = Handle([1; 32]);
    const NETWORK: Handle = Handle([2; 32]);
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A counter of failures that never drain, and how many of them are allowed.
    struct Counter {
        failures: AtomicUsize,
        allowed: usize,
    }

    impl Counter {
        fn new(allowed: usize) -> Arc<Self> {
            Arc::new(Counter { failures: AtomicUsize::new(0), allowed })
        }
        /// How many may be let in at once.
        fn room(&self) -> usize {
            self.allowed - self.failures.load(SeqCst)
        }
    }

    /// Makes an attempt, as the callers do: whether it was let in. Reading and counting take a moment, as in a
    /// database.
    async fn attempt(stakes: &Stakes, counter: &Counter, fails: bool) -> Result<bool, Fault> {
        let mut hopeful = stakes.hopeful(vec![ADDRESS, NETWORK], PATIENCE);
        loop {
            let stake = hopeful.stake().await?;
            let beside = stake.beside()[0];
            tokio::task::yield_now().await;
            let room = counter.room();
            tokio::task::yield_now().await;
            match room {
                0 => return Ok(false),
                room if beside >= room => hopeful.step_back(stake, ADDRESS, room - 1),
                room => {
                    stake.let_in(i64::try_from(room - beside).unwrap() - 1);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    counter.failures.fetch_add(usize::from(fails), SeqCst);
                    tokio::task::yield_now().await;
                    return Ok(true);
                }
            }
        }
    }

    #[allow(clippy::disallowed_methods, reason = "each rival is waited for")]
    async fn rush(counter: &Arc<Counter>, count: usize, fails: bool) -> usize {
        let stakes = Arc::new(Stakes::default());
        let rivals: Vec<_> = (0..count)
            .map(|_| {
                let (stakes, counter) = (Arc::clone(&stakes), Arc::clone(counter));
                tokio::spawn(async move { attempt(&stakes, &counter, fails).await.unwrap() })
            })
            .collect();
        let mut let_in = 0;
        for rival in rivals {
            let_in += usize::from(rival.await.unwrap());
        }
        assert!(stakes.0.held().lanes.is_empty(), "nothing is left behind");
        let_in
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_any_number_of_guesses_at_once_as_many_are_heard_as_in_turn() {
        // Red without `beside`, or if it were called after the counter was read.
        for allowed in [1, 9, 50] {
            assert_eq!(rush(&Counter::new(allowed), 300, true).await, allowed);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_crowd_that_does_not_fail_is_let_in_whole() {
        // Red without `notify_one` at the end of a stake: an attempt that steps back would wait until patience is over.
        for allowed in [1, 9] {
            assert_eq!(rush(&Counter::new(allowed), 300, false).await, 300);
        }
    }

    /// Two attempts from one address.
    fn two(stakes: &Stakes) -> [Hopeful<'_>; 2] {
        [(); 2].map(|()| stakes.hopeful(vec![ADDRESS], PATIENCE))
    }

    #[tokio::test]
    async fn who_gives_up_waiting_keeps_nobody_else_from_their_turn() {
        let stakes = Stakes::default();
        let [mut first, mut second] = two(&stakes);
        let under_way = first.stake().await.unwrap();
        let stake = second.stake().await.unwrap();
        assert_eq!((under_way.beside(), stake.beside()), (vec![0], vec![1]));
        second.step_back(stake, ADDRESS, 0);
        let mut third = stakes.hopeful(vec![NETWORK, ADDRESS], PATIENCE);
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let (mut waits, mut behind) = (Box::pin(second.stake()), Box::pin(third.stake()));
        assert!(waits.as_mut().poll(context).is_pending() && behind.as_mut().poll(context).is_pending());
        drop(under_way);
        // It was woken, and is not there any more.
        drop(waits);
        assert!(behind.await.is_ok());
        drop((first, second, third));
        assert!(stakes.0.held().lanes.is_empty());
    }

    #[tokio::test]
    async fn who_goes_on_to_wait_elsewhere_passes_the_turn_on() {
        // Red without `notify_one` in `into_turn`: the second, and any behind it, would wait until patience is over.
        let stakes = Stakes::default();
        let [mut first, mut second] = two(&stakes);
        let mut wide = stakes.hopeful(vec![ADDRESS, NETWORK], PATIENCE);
        let under_way = first.stake().await.unwrap();
        let [one, other] = [wide.stake().await.unwrap(), second.stake().await.unwrap()];
        wide.step_back(one, ADDRESS, 0);
        second.step_back(other, ADDRESS, 0);
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let (mut woken, mut behind) = (Box::pin(wide.stake()), Box::pin(second.stake()));
        assert!(woken.as_mut().poll(context).is_pending() && behind.as_mut().poll(context).is_pending());
        drop(under_way);
        let stake = woken.await.unwrap();
        assert!(behind.as_mut().poll(context).is_pending());
        wide.step_back(stake, NETWORK, 0);
        assert!(behind.await.is_ok());
        drop((first, second, wide));
        assert!(stakes.0.held().lanes.is_empty());
    }

    #[tokio::test]
    async fn of_those_who_step_back_from_each_other_one_looks_again() {
        // Red without `left` in `into_turn`: all would wait for one that has gone, until another ends or patience is
        // over.
        for stay in [0, 1, 5] {
            let stakes = Stakes::default();
            let [mut first, mut second] = two(&stakes);
            let [mut third, mut fourth] = two(&stakes);
            let mut staying = Vec::new();
            for _ in 0..stay {
                staying.push(stakes.hopeful(vec![ADDRESS], PATIENCE).stake().await.unwrap());
            }
            let under_way = first.stake().await.unwrap();
            let looks = [second.stake().await.unwrap(), third.stake().await.unwrap()];
            let stake = fourth.stake().await.unwrap();
            fourth.step_back(stake, ADDRESS, stay);
            drop(under_way);
            let woken = fourth.stake().await.unwrap();
            assert_eq!(woken.beside(), [stay + 2]);
            let [one, other] = looks;
            third.step_back(other, ADDRESS, stay);
            fourth.step_back(woken, ADDRESS, stay);
            second.step_back(one, ADDRESS, stay);
            let stake = tokio::time::timeout(PATIENCE / 2, third.stake()).await.unwrap().unwrap();
            assert_eq!(stake.beside(), [stay]);
        }
    }

    #[tokio::test]
    async fn who_steps_back_from_those_who_stay_wakes_nobody() {
        // Red if an attempt that steps back always woke the next: they would check in turn while any is in flight.
        let stakes = Stakes::default();
        let [mut first, mut second] = two(&stakes);
        let _under_way = first.stake().await.unwrap();
        let stake = second.stake().await.unwrap();
        second.step_back(stake, ADDRESS, 0);
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        assert!(Box::pin(second.stake()).as_mut().poll(context).is_pending());
    }

    #[tokio::test]
    async fn who_would_wait_too_long_is_told_so_at_once() {
        // Red without `expected`.
        let stakes = Stakes::default();
        let [mut first, mut second] = two(&stakes);
        let _under_way = first.stake().await.unwrap();
        let stake = second.stake().await.unwrap();
        stakes.0.taken.note(PATIENCE * 2);
        second.step_back(stake, ADDRESS, 0);
        assert!(stakes.crowded(&[NETWORK, ADDRESS], PATIENCE).is_some(), "nor would anybody who comes");
        assert!(!stakes.nobody_waits() && Stakes::default().nobody_waits());
        assert_eq!((stakes.crowded(&[NETWORK], PATIENCE), stakes.crowded(&[], PATIENCE)), (None, None));
        let asked = Instant::now();
        assert!(matches!(second.stake().await, Err(Fault::Busy(wait)) if wait > rules::Span::seconds(15)));
        assert!(asked.elapsed() < PATIENCE / 2);
    }

    #[tokio::test]
    async fn who_is_counted_nowhere_waits_for_nobody() {
        let stakes = Stakes::default();
        let stake = stakes.hopeful(Vec::new(), Duration::ZERO).stake().await.unwrap();
        assert!(stake.beside().is_empty() && stakes.0.held().lanes.is_empty());
    }
}
