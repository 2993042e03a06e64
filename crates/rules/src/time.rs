//! Time as the rules see it: milliseconds since 1970-01-01T00:00:00Z, always an argument, never read here.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time, in milliseconds. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Time {
    /// The moment `seconds` after 1970, as JWT's NumericDate counts (RFC 7519 §2).
    pub const fn from_seconds(seconds: i64) -> Self {
        Time(seconds.saturating_mul(1000))
    }
    /// Whole seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
    /// How long ago `earlier` was; zero when it lies ahead.
    pub const fn since(self, earlier: Time) -> Span {
        let gap = self.0.saturating_sub(earlier.0);
        Span(if gap < 0 { 0 } else { gap })
    }
    /// True once `self` lies at or before `now`: a thing that expires at t is dead at t.
    pub const fn has_come(self, now: Time) -> bool {
        self.0 <= now.0
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// `n` seconds.
    pub const fn seconds(n: i64) -> Self {
        Span(n.saturating_mul(1000))
    }
    /// `n` minutes.
    pub const fn minutes(n: i64) -> Self {
        Span::seconds(n.saturating_mul(60))
    }
    /// `n` hours.
    pub const fn hours(n: i64) -> Self {
        Span::minutes(n.saturating_mul(60))
    }
    /// `n` days.
    pub const fn days(n: i64) -> Self {
        Span::hours(n.saturating_mul(24))
    }
    /// Whole seconds, rounded up, so that "retry after" is never too early.
    pub const fn whole_seconds(self) -> i64 {
        self.0.saturating_add(999) / 1000
    }
}

/// In whole milliseconds, rounded down.
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Span(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Duration::from_millis(span.0.unsigned_abs())
    }
}

impl std::ops::Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl std::ops::Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl std::ops::Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
