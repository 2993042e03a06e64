//! The pause after a connection could not be accepted.

use std::io;
use std::time::Duration;

/// How long to wait after `accept` failed.
#[derive(Default)]
pub struct Pause {
    failures: u32,
}

impl Pause {
    /// Waits; logs a failure that persists only once, as this line.
    pub async fn after(&mut self, error: io::Error, line: &'static str) {
        let Some(failures) = self.counted(&error) else { return };
        if failures == 1 {
            tracing::error!(%error, "{line}");
        }
        tokio::time::sleep(Duration::from_millis(10 << failures.min(6))).await;
    }

    /// Counts consecutive failures, with this one. A connection that died before it was accepted is nobody's fault; any
    /// other failure (no file descriptors, no memory) passes only with time, and a busy loop would worsen it.
    fn counted(&mut self, error: &io::Error) -> Option<u32> {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        Some(self.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_counted_and_who_died_at_the_door_is_not() {
        // Red where `after` logs more than the first: whoever takes all files would fill the log.
        let mut pause = Pause::default();
        let none_left = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert_eq!(pause.counted(&io::ErrorKind::ConnectionAborted.into()), None);
        assert_eq!([(); 3].map(|()| pause.counted(&none_left)), [Some(1), Some(2), Some(3)]);
    }
}
