//! Tokens that visitors hold are renewed between iterations.

use crate::provider::Manner;
use crate::{measured, measured_until, plan};
use load::plan::{Pace, Plan, Workload};
use load::report::Report;
use load::visitor::Step;
use std::time::Duration;

#[test]
fn tokens_are_renewed_before_they_expire() {
    let (report, provider) = measured(Manner::Brief, Workload::Userinfo);
    assert!(report.failed == 0 && report.iterations > 0, "{report}");
    assert!(provider.seen("/token") >= report.iterations, "each read comes after a refresh");
    let (_, lasting) = measured(Manner::Good, Workload::Userinfo);
    assert_eq!(lasting.seen("/token"), 5, "one for each visitor and the rehearsal");
}

/// Red where an iteration renews: what is measured is the refresh, and not what was asked.
#[test]
fn a_renewal_is_in_nobodys_latency_and_no_request_of_an_iteration() {
    let closed = Pace::Closed { visitors: 2, pause: Duration::ZERO };
    let open = Pace::Open { rate: 5.0, visitors: 4 };
    for (pace, workload) in [(closed, Workload::Userinfo), (open, Workload::Introspect), (closed, Workload::Profile)] {
        let read = |url: &str| Plan { pace, duration: Duration::from_millis(900), ..plan(url, workload) };
        // Where the machine stands still for a moment, that is in half of what a short window has.
        let is_quick = |report: &Report| report.iterations > 0 && report.latency.p50 < 100.0;
        let (report, _) = measured_until(Manner::Brief, read, is_quick);
        assert!(report.failed == 0 && is_quick(&report), "{report}");
        // Both are of what ended in the window.
        assert_eq!(report.requests_per_second, report.iterations_per_second, "{report}");
    }
}

/// Red where what comes of a renewal is forgotten; and where whoever lost its tokens has lost them for good.
#[test]
fn a_renewal_that_is_refused_is_a_failure_of_the_iteration_after_it_and_of_no_other() {
    for workload in [Workload::Introspect, Workload::Userinfo] {
        let (report, provider) = measured(Manner::Withdrawn, workload);
        assert!(report.failed > 0, "{report}");
        assert_eq!((report.failures[0].step, report.failures[0].reason.as_str()), (Step::Refresh, "400 invalid_grant"));
        assert_eq!(report.failures.len(), 1, "{report}");
        assert!(provider.seen("/login") > 5, "it signs in again: {report}");
    }
}
