//! The one place that reads the clock.

use rules::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Tells the time: the machine's, or one that a test sets.
#[derive(Clone)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Clock(None)
    }
    /// A clock that stands still until it is moved.
    pub fn fixed(at: Time) -> Self {
        Clock(Some(Arc::new(AtomicI64::new(at.0))))
    }
    /// Moves a fixed clock; the machine's stays as it is.
    pub fn advance(&self, by: Span) {
        if let Some(fixed) = &self.0 {
            fixed.fetch_add(by.0, Ordering::SeqCst);
        }
    }
    /// Now.
    #[allow(clippy::disallowed_methods, reason = "time enters here")]
    pub fn now(&self) -> Time {
        match &self.0 {
            Some(fixed) => Time(fixed.load(Ordering::SeqCst)),
            None => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}
