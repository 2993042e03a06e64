//! How long a server that refuses a request wants to be left alone.

use std::time::{Duration, SystemTime};

/// The time that is assumed if the server's value is not understood.
const UNKNOWN: Duration = Duration::from_secs(1);

/// Reads `Retry-After`, which is a number of seconds or a date (RFC 9110 §10.2.3). A date is compared with the answer's
/// own `Date`, so that the server's clock need not be right; without one, with the clock of this machine.
pub(super) fn retry_after(said: &str, date: Option<&str>) -> Duration {
    until(said, || date.and_then(read).unwrap_or_else(now))
}

fn until(said: &str, now: impl FnOnce() -> SystemTime) -> Duration {
    match (said.trim().parse(), read(said)) {
        (Ok(seconds), _) => Duration::from_secs(seconds),
        // A date in the past needs no wait.
        (_, Some(date)) => date.duration_since(now()).unwrap_or_default(),
        _ => UNKNOWN,
    }
}

fn read(date: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(date.trim()).ok()
}

#[allow(clippy::disallowed_methods, reason = "a server that has no clock of its own means everybody's")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red where a value that is not a number means one second.
    #[test]
    fn a_date_is_as_long_as_it_is_after_that_of_the_answer() {
        let of = |said: &str, date: &str| retry_after(said, Some(date)).as_secs();
        let (date, minute) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!((of("7", date), of(" 0 ", date)), (7, 0));
        // RFC 9110 §5.6.7: three formats of a date.
        for said in [minute, "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
            assert_eq!(of(said, date), 60, "{said}");
        }
        assert_eq!((of(date, minute), of("soon", date), of("-1", date), of("1.5", date)), (0, 1, 1, 1));
    }

    #[test]
    fn without_a_date_of_its_own_it_is_this_machines_clock() {
        let at = |seconds| move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let said = "Thu, 01 Jan 1970 00:02:00 GMT";
        assert_eq!(until(said, at(30)), Duration::from_secs(90));
        assert_eq!(until(said, at(500)), Duration::ZERO);
        // Long ago by any clock.
        assert_eq!((retry_after(said, None), retry_after(said, Some("x"))), (Duration::ZERO, Duration::ZERO));
        assert!(retry_after("Fri, 31 Dec 9999 23:59:59 GMT", None) > Duration::from_secs(1_000_000));
    }
}
