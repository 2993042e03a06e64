//! Finds the limit: the highest rate that the server still sustains.

use crate::report::{Report, told};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The terms that a server has to keep.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The limit of the 99th percentile; [`Terms::judged`] says of which iterations.
    pub p99: Duration,
    /// The share of iterations that may fail, be refused or not end in time.
    pub errors: f64,
    /// How near to the limit the search comes, as a share.
    pub precision: f64,
}

/// Returns a share in percent, as it was typed: seven hundredths are not quite seven percent.
pub(crate) fn in_percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// How many iterations have to be due for a 99th percentile: with fewer it is just the longest latency.
pub(crate) const ENOUGH: u64 = 100;

/// The iterations whose 99th percentile decides about a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// All that were due: an iteration without an answer counts as slower than any other.
    All,
    /// Those that were answered: more than 1 % were not, so all have no percentile, and the terms allow the errors.
    Answered,
}

impl Judged {
    /// Returns that percentile of a report, in milliseconds.
    pub fn p99(self, report: &Report) -> Option<f64> {
        match self {
            Judged::All => report.p99_of_all,
            Judged::Answered => (report.iterations > 0).then_some(report.latency.p99),
        }
    }

    /// Formats it for a table: `p99 of all 12.30 ms`.
    pub(crate) fn told(self, report: &Report) -> String {
        format!("p99 of {} {} ms", self.whose(), told(report.iterations, self.p99(report).unwrap_or_default()))
    }

    /// Names the iterations that it covers.
    pub(crate) const fn whose(self) -> &'static str {
        match self {
            Judged::All => "all",
            Judged::Answered => "the answered",
        }
    }
}

impl Terms {
    /// Returns true if the server kept the terms.
    pub fn hold(&self, report: &Report) -> bool {
        self.hold_without(0.0, report)
    }

    /// Returns the same for a p99 that is lower by `millis` milliseconds.
    pub(crate) fn hold_without(&self, millis: f64, report: &Report) -> bool {
        let p99 = self.judged(report).and_then(|judged| judged.p99(report));
        let in_time = p99.is_some_and(|p99| p99 - millis <= self.p99.as_secs_f64() * 1000.0);
        in_time && report.error_rate() <= self.errors
    }

    /// Returns which p99 decides about a report: that of all if there is one, otherwise that of the answered iterations
    /// if the terms allow that many errors. `None` if they do not, which is verdict enough.
    pub fn judged(&self, report: &Report) -> Option<Judged> {
        match report.p99_of_all {
            Some(_) => Some(Judged::All),
            None => (report.iterations > 0 && report.error_rate() <= self.errors).then_some(Judged::Answered),
        }
    }
}

/// Returns the highest rate, to within `precision` (a share, such as 0.05), at which `holds` returns true. `None` if
/// neither the first rate holds nor a thousandth of it.
///
/// Doubles from `first` until a rate does not hold (or halves until one does), then bisects. Each trial is one call of
/// `holds`, which measures at that rate.
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

    fn terms(errors: f64) -> Terms {
        Terms { p99: Duration::from_millis(500), errors, precision: 0.05 }
    }

    /// Red without `round`: `--errors 7` came back as 7.000000000000001 %.
    #[test]
    fn a_share_is_told_as_it_was_typed() {
        for typed in ["0", "0.001", "0.1", "1.1", "7", "12.25", "14", "28", "57", "100"] {
            let percent: f64 = typed.parse().unwrap();
            assert_eq!(in_percent(percent / 100.0).to_string(), typed);
        }
    }

    /// Red where latencies always cover only answered iterations: a server that drops the slow ones would seem fast.
    #[test]
    fn who_was_not_answered_is_later_than_anybody_where_that_can_be_said() {
        let holds = |errors: f64, p99_of_all: Option<f64>| {
            let report = Report { failed: 3, p99_of_all, ..crate::report::tests::report("jwks", 97, 97.0) };
            terms(errors).hold(&report)
        };
        let all = [holds(0.05, Some(500.0)), holds(0.05, Some(501.0)), holds(0.02, Some(10.0)), holds(0.02, None)];
        assert_eq!(all, [true, false, false, false]);
    }

    /// Red without `Judged::Answered`: from 1 % on, no allowed share of errors lets a rate hold.
    #[test]
    fn errors_that_are_borne_leave_the_percentile_of_the_answered() {
        let of = |errors: f64, p99: f64| {
            let like = crate::report::tests::report("jwks", 97, 97.0);
            let latency = crate::report::Latency { p99, ..like.latency };
            let report = Report { failed: 3, p99_of_all: None, latency, ..like };
            (terms(errors).judged(&report), terms(errors).hold(&report))
        };
        assert_eq!(of(0.05, 500.0), (Some(Judged::Answered), true));
        assert_eq!(of(0.05, 501.0), (Some(Judged::Answered), false));
        assert_eq!(of(0.02, 10.0), (None, false));
        let none = Report { failed: 9, p99_of_all: None, ..crate::report::tests::report("jwks", 0, 0.0) };
        assert!(terms(1.0).judged(&none).is_none() && !terms(1.0).hold(&none), "nobody has no percentile");
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
