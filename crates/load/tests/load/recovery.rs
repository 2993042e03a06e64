//! A server that still digests what it was offered before.

use crate::provider::{Manner, Provider};
use crate::{measured_until, of_five, plan, refused};
use load::plan::{Pace, Plan, Workload};
use load::programme::search;
use load::run::{run, together};
use load::search::Terms;
use load::series::Series;
use std::time::Duration;

/// Asks again what is not answered within a moment, for so long.
fn after_another(url: &str, recovery: Duration) -> Plan {
    let timeout = Duration::from_secs(1);
    Plan { timeout, recovery: Some(recovery), ..plan(url, Workload::Jwks) }
}

/// Red without `recovered`: the first answer that does not come in time ends it.
#[test]
fn a_server_that_answered_before_is_waited_for() {
    let patient = |url: &str| after_another(url, Duration::from_secs(60));
    let (report, digesting) = measured_until(Manner::Digesting, patient, |report| report.iterations > 0);
    assert!(report.iterations > 0 && digesting.seen("/jwks") > 2, "{report}");
    let unknown = || {
        let provider = Provider::start(Manner::Digesting);
        refused(&Plan { recovery: None, ..after_another(&provider.url, Duration::ZERO) })
    };
    // Where the machine stands still for longer than a request may take, it may be the metadata that does not come.
    let expected = "the first iteration failed: jwks: no response in time";
    assert_eq!(of_five(unknown, |line| line == expected), expected);
}

/// Red without `is_passing`: userinfo was measured in place of the account, and a note was all that said so.
#[test]
fn an_account_api_that_does_not_answer_now_is_not_taken_for_absent() {
    let provider = Provider::start(Manner::Waking);
    let profile = plan(&provider.url, Workload::Profile);
    let expected =
        "the first iteration failed: sign_in: 502 Bad Gateway; --no-account-api goes without the account API";
    assert_eq!(refused(&profile), expected);
    // Red without `without_account_api` in `rehearsed`.
    let without = |url: &str| Plan { without_account_api: true, ..plan(url, Workload::Profile) };
    let (report, other) = measured_until(Manner::Waking, without, |report| report.iterations > 0);
    assert!(other.seen("/userinfo") > 0 && other.seen("/api/v1/signin") == 0, "{report}");
    assert!(report.notes.iter().any(|note| note.ends_with("as it was asked for (--no-account-api)")), "{report}");
    // What is asked for once more is waited for.
    let report = run(&Plan { recovery: Some(Duration::from_secs(60)), ..profile }, None).unwrap();
    assert!(provider.seen("/api/v1/me") > 0 && provider.seen("/userinfo") == 0, "{report}");
    // Red where no other answer means that there is none.
    let (report, provider) = measured_until(Manner::Good, |url| plan(url, Workload::Profile), |one| one.iterations > 0);
    assert!(report.notes.iter().any(|note| note.starts_with("userinfo in place of the account")), "{report}");
    assert!(provider.seen("/userinfo") > 0);
}

#[test]
fn one_that_does_not_recover_ends_what_there_was_by_then_in_one_line() {
    let ended = || {
        let stuck = Provider::start(Manner::Stuck);
        // The answers of the rehearsal and of one iteration are all that it gives.
        let first = Plan { recovery: None, ..after_another(&stuck.url, Duration::ZERO) };
        let pace = Pace::Open { rate: 20.0, visitors: 4 };
        let terms = Terms { p99: Duration::from_secs(1), errors: 1.0, precision: 0.5 };
        let mut soon = |plans: &[Plan]| {
            let hurry = |plan: &Plan| Plan { recovery: plan.recovery.map(|_| Duration::from_secs(3)), ..plan.clone() };
            together(&plans.iter().map(hurry).collect::<Vec<_>>(), None)
        };
        search(&Plan { pace, ..first }, None, &terms, &mut soon)
    };
    let why = "the server did not recover within 3s of what it was offered before: jwks: no response in time";
    let told = |series: &Series| (series.trials.len(), series.cut_short.clone());
    let expected = (1, Some(why.to_owned()));
    // A machine that stands still for a second may have the first trial fail too.
    let series = of_five(ended, |series| series.as_ref().is_ok_and(|series| told(series) == expected)).unwrap();
    assert_eq!(told(&series), expected);
}
