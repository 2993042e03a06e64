//! How long a batch took, and for how much of that its thread had a core.
//!
//! Callers wait for the whole of it, but only the part in which the thread ran says which number of lanes is best: where
//! a container may use a quarter of a core, or others are at work, a thread stands still now and then, and a number of
//! lanes that happened to be tried just then would look bad for good.

use std::time::{Duration, Instant};

use crate::native::Kernel;

/// What a batch took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) elapsed: Duration,
    /// How long its thread ran meanwhile.
    pub(crate) ran: Duration,
}

impl Took {
    /// How many times as long it took as its thread ran.
    pub(crate) fn stretch(self) -> f64 {
        // A batch that took no time at all says nothing.
        if self.ran.is_zero() { 1.0 } else { self.elapsed.as_secs_f64() / self.ran.as_secs_f64() }
    }
}

impl From<Duration> for Took {
    /// A batch whose thread had a core all the time.
    fn from(elapsed: Duration) -> Self {
        Took { elapsed, ran: elapsed }
    }
}

/// Measures what a batch takes.
pub(crate) struct Stopwatch {
    begun: Instant,
    had: Option<Duration>,
}

impl Stopwatch {
    /// Begins on the thread of this kernel.
    pub(crate) fn start(kernel: &impl Kernel) -> Self {
        Stopwatch { begun: Instant::now(), had: kernel.ran() }
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// What it took so far, on the same thread.
    pub(crate) fn took(&self, kernel: &impl Kernel) -> Took {
        let elapsed = self.begun.elapsed();
        let ran = self.had.and_then(|had| kernel.ran()?.checked_sub(had));
        // The two clocks may differ by a little.
        Took { elapsed, ran: ran.filter(|ran| !ran.is_zero()).map_or(elapsed, |ran| ran.min(elapsed)) }
    }
}

/// How long the calling thread ran since it started; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn ran() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ran() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cpu::Level, native::Native};
    use std::thread;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_stood_still_did_not_run() {
        // Red where both are the same clock.
        let kernel = Native::new(Level::Portable);
        let watch = Stopwatch::start(&kernel);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(5) {}
        thread::sleep(Duration::from_millis(50));
        let took = watch.took(&kernel);
        assert!(took.elapsed >= Duration::from_millis(55), "{took:?}");
        assert!(took.ran <= took.elapsed - Duration::from_millis(45), "{took:?}");
        assert!(took.stretch() > 1.5, "{took:?}");
    }

    #[test]
    fn where_the_system_does_not_tell_a_thread_ran_all_the_time() {
        let took = Took::from(Duration::from_millis(5));
        assert_eq!((took.ran, took.stretch()), (took.elapsed, 1.0));
        assert_eq!(Took::from(Duration::ZERO).stretch(), 1.0, "not a number, which no later one would mend");
    }
}
