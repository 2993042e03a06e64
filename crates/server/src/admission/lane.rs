//! Places for one kind of work, with a queue in front that is bounded by time.

use app::turnstile::{LEAST, Taken};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::tally::nanos;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest wait that is told: work that has stalled for so long may resume at any moment.
const MOST: Duration = Duration::from_secs(60);

/// Places for requests of one kind.
pub struct Lane {
    places: Arc<Semaphore>,
    count: usize,
    /// The longest that a request waits for a place.
    pub(super) budget: Duration,
    waiting: AtomicUsize,
    /// How long a place is taken.
    taken: Taken,
    /// The moment from which `moved` counts.
    made: Instant,
    /// When a place was last taken or given back, in nanoseconds.
    moved: AtomicU64,
    admitted: AtomicU64,
    refused: AtomicU64,
}

/// What a lane does now and has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// Places in all.
    pub places: usize,
    /// Places that are taken.
    pub running: usize,
    /// Requests that wait for one.
    pub waiting: usize,
    /// How long a request that arrives now would wait.
    pub expected_wait: Duration,
    /// The longest that a request may wait.
    pub budget: Duration,
    /// Requests that were let in.
    pub admitted_total: u64,
    /// Requests that were told to come back later.
    pub refused_total: u64,
}

/// A place, given back when it is dropped.
pub struct Permit {
    lane: Arc<Lane>,
    since: Instant,
    _place: OwnedSemaphorePermit,
}

/// A request that waits, until this is dropped.
struct Waits<'a>(&'a Lane);

impl Lane {
    pub(super) fn new(count: usize, budget: Duration) -> Arc<Self> {
        Arc::new(Lane {
            places: Arc::new(Semaphore::new(count)),
            count,
            budget,
            waiting: AtomicUsize::new(0),
            taken: Taken::default(),
            made: Instant::now(),
            moved: AtomicU64::new(0),
            admitted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Takes a place, in order of arrival.
    ///
    /// # Errors
    /// When to come back, if no place would be free within the budget.
    pub(super) async fn enter(self: &Arc<Self>) -> Result<Permit, Duration> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(self.permit(place));
        }
        let wait = self.expected_wait();
        if wait > self.budget {
            return Err(self.refuse(wait - self.budget));
        }
        self.waiting.fetch_add(1, Relaxed);
        let waits = Waits(self);
        let place = tokio::time::timeout(self.budget, Arc::clone(&self.places).acquire_owned()).await;
        drop(waits);
        match place {
            Ok(Ok(place)) => Ok(self.permit(place)),
            // The lane got slower than it was: the current mean is the best guess.
            _ => Err(self.refuse(self.expected_wait())),
        }
    }

    /// Returns how long a new request would wait for a place. The mean is of finished requests; if none finishes any
    /// more, the wait is at least as long as nothing has moved already.
    fn expected_wait(&self) -> Duration {
        if self.places.available_permits() > 0 {
            return Duration::ZERO;
        }
        let before = self.waiting.load(Relaxed) as u64 + 1;
        let usual = self.taken.turns(before, self.count as u64);
        let still = self.clock(Instant::now()).saturating_sub(self.moved.load(Relaxed));
        usual.max(Duration::from_nanos(still))
    }

    fn permit(self: &Arc<Self>, place: OwnedSemaphorePermit) -> Permit {
        let since = Instant::now();
        self.admitted.fetch_add(1, Relaxed);
        self.moved.store(self.clock(since), Relaxed);
        Permit { lane: Arc::clone(self), since, _place: place }
    }

    /// Converts a moment to the scale of [`Lane::moved`].
    fn clock(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.made))
    }

    fn refuse(&self, wait: Duration) -> Duration {
        self.refused.fetch_add(1, Relaxed);
        wait.clamp(LEAST, MOST)
    }

    /// Returns the state, for metrics.
    pub fn state(&self) -> LaneState {
        LaneState {
            places: self.count,
            running: self.count.saturating_sub(self.places.available_permits()),
            waiting: self.waiting.load(Relaxed),
            expected_wait: self.expected_wait(),
            budget: self.budget,
            admitted_total: self.admitted.load(Relaxed),
            refused_total: self.refused.load(Relaxed),
        }
    }
}

impl LaneState {
    /// Returns the share of the budget that a new request would use up.
    pub fn share(&self) -> f64 {
        self.expected_wait.as_secs_f64() / self.budget.as_secs_f64()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = Instant::now();
        self.lane.moved.store(self.lane.clock(now), Relaxed);
        self.lane.taken.note(now.saturating_duration_since(self.since));
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn who_finds_a_place_waits_for_nobody_and_who_would_wait_too_long_is_told_at_once() {
        let lane = Lane::new(2, Duration::from_secs(10));
        let (first, second) = (lane.enter().await.unwrap(), lane.enter().await.unwrap());
        // A place is taken for 30 s: the next one is free in 15 s.
        lane.taken.note(Duration::from_secs(30));
        assert_eq!(lane.enter().await.err(), Some(Duration::from_secs(5)));
        let state = lane.state();
        assert_eq!((state.running, state.waiting, state.admitted_total, state.refused_total), (2, 0, 2, 1));
        assert_eq!(state.expected_wait, Duration::from_secs(15));
        drop((first, second));
        assert_eq!((lane.state().running, lane.state().expected_wait), (0, Duration::ZERO));
    }

    #[tokio::test]
    async fn who_waits_gets_the_next_place_and_who_goes_away_leaves_the_queue() {
        let lane = Lane::new(1, Duration::from_secs(60));
        let first = lane.enter().await.unwrap();
        let (mut next, mut gone) = (JoinSet::new(), JoinSet::new());
        let waits = |lane: Arc<Lane>| async move { lane.enter().await.is_ok() };
        next.spawn(waits(Arc::clone(&lane)));
        while lane.state().waiting == 0 {
            tokio::task::yield_now().await;
        }
        gone.spawn(waits(Arc::clone(&lane)));
        while lane.state().waiting == 1 {
            tokio::task::yield_now().await;
        }
        gone.shutdown().await;
        assert_eq!(lane.state().waiting, 1);
        drop(first);
        assert_eq!(next.join_all().await, [true]);
        assert_eq!(lane.state().waiting, 0);
    }

    #[tokio::test]
    async fn where_nobody_is_done_any_more_newcomers_are_told_at_once() {
        // Red without `still` in expected_wait: no request ever finished, so the mean knows nothing.
        let lane = Lane::new(1, Duration::from_millis(20));
        let hangs = lane.enter().await.unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let mut newcomer = Box::pin(lane.enter());
        let told = newcomer.as_mut().poll(context);
        assert!(matches!(told, std::task::Poll::Ready(Err(wait)) if wait == LEAST));
        assert!(lane.state().share() > 1.0);
        drop(newcomer);
        drop(hangs);
        assert_eq!(lane.state().share(), 0.0);
        // A time without any request is not a time in which requests did not finish.
        let left = lane.moved.load(Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        let _next = lane.enter().await.unwrap();
        assert!(lane.moved.load(Relaxed) > left, "it is reckoned from when the last place was taken");
    }

    #[tokio::test]
    async fn what_took_longer_than_was_thought_is_refused_when_the_budget_is_over() {
        let lane = Lane::new(1, Duration::from_millis(20));
        let _first = lane.enter().await.unwrap();
        assert_eq!(lane.enter().await.err(), Some(LEAST));
        assert_eq!((lane.state().waiting, lane.state().refused_total), (0, 1));
    }
}
