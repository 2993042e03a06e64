//! How fast a worker answers: a guess at first, then what its answers show.

use std::time::{Duration, Instant};

use super::frame::Ready;
use crate::job::Kind;

/// Weight of a new measurement of the time that an answer takes.
const WEIGHT: f64 = 1.0 / 16.0;
/// A worker's pace is known after this many answers during which it was busy throughout: twice as many as it holds,
/// within these limits.
const ENOUGH: (u32, u32) = (24, 256);
/// An ask is late after this many times its expected time, and this much more.
const LATE: (f64, Duration) = (3.0, Duration::from_millis(50));
/// After each such time without an ask, half of `base` is forgotten, down to this many nanoseconds: a worker that is
/// thought too slow to be asked anything could not show that it no longer is.
const FORGETS: (Duration, f64) = (Duration::from_secs(2), 250e6);

/// What is known about a worker's speed.
pub(super) struct Speed {
    /// Nanoseconds that a unit of work takes it when it has enough to do.
    pub(super) pace: f64,
    /// Whether the pace was measured.
    pub(super) is_measured: bool,
    /// Nanoseconds that an answer takes beyond its work.
    pub(super) base: f64,
    /// `base`, as it was guessed at first.
    guess: f64,
    /// Nanoseconds that answers took lately.
    pub(super) latency: f64,
    /// Since when it has had enough to do, the work that it did since then, and in how many answers.
    busy: Option<(Instant, f64, u32)>,
    /// Since when it has held nothing, or when something was last forgotten.
    idle: Option<Instant>,
}

/// How long after it was sent an ask is late, if its answer was expected after `expected` nanoseconds.
pub(super) fn patience(expected: f64) -> Duration {
    Duration::from_nanos((expected * LATE.0) as u64) + LATE.1
}

impl Speed {
    /// The speed of a worker that has shown nothing. What it says of itself is a first guess, within bounds: its work
    /// shows soon enough. `unit` is how many nanoseconds a thread here takes for a unit of work.
    pub(super) fn said((ready, kind): (&Ready, Kind), unit: f64) -> Self {
        let said = 1e12 / (ready.rate.max(1) as f64 * kind.work());
        let pace = said.max(unit / 64.0);
        let guess = pace * kind.work() * (f64::from(ready.threads.max(1)) - 1.0);
        Speed { pace, is_measured: false, base: guess, guess, latency: 0.0, busy: None, idle: None }
    }

    /// Nanoseconds after which it has answered this much work.
    pub(super) fn takes(&self, work: f64) -> f64 {
        self.base + work * self.pace
    }

    /// An answer took `time`, where the worker held `load` of work and the answer was expected after `expected`
    /// nanoseconds. By how much it is late does not count: where everything stands still for a moment, all that is in
    /// flight is late at once, by as much.
    pub(super) fn took(&mut self, time: Duration, (load, expected): (f64, f64), is_first: bool) {
        let took = time.as_nanos() as f64;
        self.latency = if is_first { took } else { self.latency + (took - self.latency) * WEIGHT };
        // Sooner than possible at its pace: it is faster than was thought.
        if took < load * self.pace {
            self.pace = (took / load).max(self.pace / 2.0);
        }
        let besides = (time.min(patience(expected)).as_nanos() as f64 - load * self.pace).max(0.0);
        self.base += (besides - self.base) * WEIGHT;
    }

    /// An answer that was expected after `expected` nanoseconds has not come.
    pub(super) fn is_late(&mut self, expected: f64) {
        self.base += (patience(expected).as_nanos() as f64 - self.base).max(0.0) * WEIGHT;
    }

    /// Takes in `work` that it did while it had enough to do, holding `most` asks at a time; `None`: it had not enough.
    pub(super) fn worked(&mut self, work: Option<f64>, most: usize, now: Instant) {
        let Some(done) = work else {
            self.busy = None;
            return;
        };
        let enough = (most as u32 * 2).clamp(ENOUGH.0, ENOUGH.1);
        let (since, work, answers) = self.busy.get_or_insert((now, 0.0, 0));
        if *since == now && *answers == 0 {
            return;
        }
        (*work, *answers) = (*work + done, *answers + 1);
        if *answers < enough {
            return;
        }
        let found = now.saturating_duration_since(*since).as_nanos() as f64 / *work;
        self.pace = if self.is_measured { (self.pace + found) / 2.0 } else { found };
        (self.is_measured, self.busy) = (true, None);
    }

    /// Takes in whether it holds nothing now. Call this every few hundredths of a second.
    pub(super) fn rests(&mut self, rests: bool, now: Instant) {
        if !rests {
            self.idle = None;
            return;
        }
        let since = *self.idle.get_or_insert(now);
        if now.saturating_duration_since(since) >= FORGETS.0 {
            let least = self.guess.max(FORGETS.1);
            self.base -= (self.base - least).max(0.0) / 2.0;
            self.idle = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    fn speed() -> (Speed, Kind) {
        let kind = Kind::of_policy(Policy::default().cost());
        (Speed::said((&Ready { threads: 2, holds: 24, rate: 300_000, memory: 1 << 20 }, kind), 300.0), kind)
    }

    #[test]
    fn whoever_was_slow_for_a_moment_is_asked_again() {
        // Red where `took` counts each of them in full: 24 that stood still for 8 s made it 6 s slower for good.
        let (mut speed, kind) = speed();
        let before = speed.takes(kind.work());
        for held in 1..=24 {
            let load = f64::from(held) * kind.work();
            speed.took(Duration::from_secs(8), (load, before + load * speed.pace), false);
        }
        assert!(speed.takes(kind.work()) < 1e9, "{}", speed.takes(kind.work()));
        // Red without `rests`: a worker that is asked nothing has nothing to show.
        speed.base = 6e9;
        let begun = Instant::now();
        (0..150).for_each(|tenth| speed.rests(true, begun + Duration::from_millis(100) * tenth));
        assert!(speed.base < 4e8, "{}", speed.base);
        let slow = speed.base;
        (0..150).for_each(|tenth| speed.rests(tenth % 10 > 0, begun + Duration::from_millis(100) * tenth));
        assert!((speed.base - slow).abs() < 1.0, "it is asked");
    }

    #[test]
    fn what_takes_long_again_and_again_is_known_soon() {
        // Red where lateness counts for nothing.
        let (mut speed, kind) = speed();
        for _ in 0..60 {
            let expected = speed.takes(kind.work());
            speed.took(Duration::from_secs(4), (kind.work(), expected), false);
        }
        assert!(speed.takes(kind.work()) > 3e9, "{}", speed.takes(kind.work()));
    }
}
