//! The one place that reads the clock.

use rules::realm::SKEW;
use rules::{Span, Time};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells the time: the machine's, or one that a test sets.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine(Arc<Mutex<Pace>>),
    Fixed { began: Time, now: Arc<AtomicI64>, passed: Arc<AtomicI64> },
}

/// How the machine's clock has run compared with a clock that nobody sets.
struct Pace {
    /// A moment, by both clocks.
    before: (Time, Instant),
    /// Since when the machine's clock has been ahead of the time that has passed.
    leapt: Option<Instant>,
    began: Instant,
}

/// A clock that was set forward is believed after this long: it was behind before.
const BELIEVED_AFTER: Duration = Duration::from_secs(3600);

impl Clock {
    /// Returns the machine's clock.
    pub fn system() -> Self {
        let began = Instant::now();
        Clock(Source::Machine(Arc::new(Mutex::new(Pace { before: (machine(), began), leapt: None, began }))))
    }
    /// Returns a clock that stands still until it is moved.
    pub fn fixed(at: Time) -> Self {
        let start = || Arc::new(AtomicI64::new(at.0));
        Clock(Source::Fixed { began: at, now: start(), passed: start() })
    }
    /// Lets time pass on a fixed clock; the machine's clock stays as it is.
    pub fn advance(&self, by: Span) {
        if let Source::Fixed { passed, .. } = &self.0 {
            passed.fetch_add(by.0, Ordering::SeqCst);
        }
        self.set(by);
    }
    /// Sets a fixed clock forward or back, without any time passing; the machine's clock stays as it is.
    pub fn set(&self, by: Span) {
        if let Source::Fixed { now, .. } = &self.0 {
            now.fetch_add(by.0, Ordering::SeqCst);
        }
    }
    /// Returns the current time.
    pub fn now(&self) -> Time {
        match &self.0 {
            Source::Machine(_) => machine(),
            Source::Fixed { now, .. } => Time(now.load(Ordering::SeqCst)),
        }
    }
    /// Returns the current time or, for an hour after the clock was set forward, the time that has passed: what is
    /// removed by the clock does not come back when it is set right. Sees leaps only if it is called now and then.
    pub fn steady(&self) -> Time {
        match &self.0 {
            Source::Machine(pace) => {
                pace.lock().unwrap_or_else(PoisonError::into_inner).judge(machine(), Instant::now())
            }
            Source::Fixed { now, passed, .. } => {
                let (now, passed) = (Time(now.load(Ordering::SeqCst)), Time(passed.load(Ordering::SeqCst)));
                now.min(passed)
            }
        }
    }
    /// Whether the clock has run for so long that it would have been set by now, had it been behind at the start (on a
    /// machine without a battery for its clock, it begins years ago).
    pub(crate) fn has_settled(&self) -> bool {
        match &self.0 {
            Source::Machine(pace) => {
                pace.lock().unwrap_or_else(PoisonError::into_inner).began.elapsed() >= BELIEVED_AFTER
            }
            Source::Fixed { began, passed, .. } => {
                let passed = Time(passed.load(Ordering::SeqCst)).since(*began);
                passed >= Span::from(BELIEVED_AFTER)
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "time enters here")]
fn machine() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time(0) + Span::from(since)
}

impl Pace {
    fn judge(&mut self, now: Time, at: Instant) -> Time {
        let due = self.before.0 + Span::from(at.saturating_duration_since(self.before.1));
        let leapt = *self.leapt.get_or_insert(at);
        if now <= due + SKEW || at.saturating_duration_since(leapt) >= BELIEVED_AFTER {
            (self.before, self.leapt) = ((now, at), None);
            return now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_forward_is_believed_after_an_hour() {
        // Red without `leapt`, without BELIEVED_AFTER, or where a clock that is behind is not believed at once.
        let (start, began) = (Time(1_000_000_000), Instant::now());
        let mut pace = Pace { before: (start, began), leapt: None, began };
        let mut at = |minutes: u64, ahead: Span| {
            let passed = Duration::from_secs(60 * minutes);
            let now = start + Span::minutes(minutes as i64) + ahead;
            let judged = pace.judge(now, began + passed);
            judged.0 - (start + Span::minutes(minutes as i64)).0
        };
        assert_eq!(at(10, SKEW), SKEW.0, "that is how clocks run");
        assert_eq!(at(20, Span::days(1)), SKEW.0, "as it ran before");
        assert_eq!(at(79, Span::days(1)), SKEW.0);
        assert_eq!(at(79, Span(0)), 0, "it is set right");
        assert_eq!(at(100, Span::days(1)), 0, "once more");
        assert_eq!(at(159, Span::days(1)), 0);
        assert_eq!(at(160, Span::days(1)), Span::days(1).0, "it was behind before");
        assert_eq!(at(170, Span::days(1)), Span::days(1).0);
        assert_eq!(at(180, Span(0)), 0);
    }
}
