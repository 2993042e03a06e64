//! Finding the limit: the highest rate that still holds.

use crate::report::Report;
use std::time::Duration;

/// What a server has to keep.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The 99th percentile, over all that was due: who was not answered waited longer than anybody.
    pub p99: Duration,
    /// The share of iterations that may fail, be refused or not end in time.
    pub errors: f64,
    /// How near to the limit the search comes, as a share.
    pub precision: f64,
}

impl Terms {
    /// True when a server kept them. Where more than 1 % was not answered no 99th percentile was kept, whatever errors are borne.
    pub fn hold(&self, report: &Report) -> bool {
        self.hold_at(report.p99_of_all, report)
    }

    /// The same, had its p99 been this one.
    pub(crate) fn hold_at(&self, p99_of_all: Option<f64>, report: &Report) -> bool {
        let in_time = p99_of_all.is_some_and(|p99| p99 <= self.p99.as_secs_f64() * 1000.0);
        in_time && report.error_rate() <= self.errors
    }
}

/// The highest rate, to within `precision` (a share, such as 0.05), at which `holds` says yes. `None` when the first does not
/// hold and neither does a thousandth of it.
///
/// Doubles from `first` until a rate does not hold (or halves until one does), then bisects. Each trial is one call of `holds`,
/// which measures at that rate.
///
/// # Errors
/// The first error of `holds` ends the search.
pub fn limit<E>(first: f64, precision: f64, mut holds: impl FnMut(f64) -> Result<bool, E>) -> Result<Option<f64>, E> {
    const DOUBLINGS: i32 = 10;
    let (mut low, mut high) = (first, first);
    if holds(first)? {
        for _ in 0..DOUBLINGS {
            high = low * 2.0;
            if !holds(high)? {
                break;
            }
            low = high;
        }
    } else {
        loop {
            low = high / 2.0;
            if low < first / 2f64.powi(DOUBLINGS) {
                return Ok(None);
            }
            if holds(low)? {
                break;
            }
            high = low;
        }
    }
    while high - low > low * precision.max(0.001) {
        let middle = low.midpoint(high);
        if holds(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(first: f64, truth: f64) -> (Option<f64>, usize) {
        let mut trials = 0;
        let found = limit(first, 0.05, |rate| {
            trials += 1;
            Ok::<_, ()>(rate <= truth)
        });
        (found.unwrap(), trials)
    }

    /// Red where latencies are those of who was answered: a server that drops the slow ones would be fast.
    #[test]
    fn a_server_that_answers_few_keeps_no_percentile() {
        let holds = |errors: f64, p99_of_all: Option<f64>| {
            let report = Report { failed: 3, p99_of_all, ..crate::report::tests::report("jwks", 97, 97.0) };
            Terms { p99: Duration::from_millis(500), errors, precision: 0.05 }.hold(&report)
        };
        let all = [holds(0.05, None), holds(0.05, Some(500.0)), holds(0.05, Some(501.0)), holds(0.02, Some(10.0))];
        assert_eq!(all, [false, true, false, false]);
    }

    #[test]
    fn the_limit_is_found_from_below_and_from_above() {
        for first in [1.0, 60.0, 99.0, 101.0, 5000.0] {
            let (found, trials) = search(first, 100.0);
            let found = found.unwrap();
            assert!((95.0..=100.0).contains(&found), "{found} from {first}");
            assert!(trials <= 16, "{trials} trials from {first}");
        }
    }

    #[test]
    fn a_server_that_holds_nothing_has_no_limit() {
        assert_eq!(search(100.0, 0.0).0, None);
    }

    #[test]
    fn a_server_that_holds_everything_ends_the_search() {
        let (found, trials) = search(1.0, f64::INFINITY);
        assert_eq!((found, trials), (Some(1024.0), 11));
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(limit(1.0, 0.1, |_| Err::<bool, _>("gone")), Err("gone"));
    }
}
