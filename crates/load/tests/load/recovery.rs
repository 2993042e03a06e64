//! A server that still digests what it was offered before.

use crate::provider::{Manner, Provider};
use crate::{plan, refused};
use load::plan::{Pace, Plan, Workload};
use load::programme::search;
use load::run::{run, together};
use load::search::Terms;
use std::time::Duration;

/// Asks again what is not answered within a moment, for so long.
fn after_another(provider: &Provider, recovery: Duration) -> Plan {
    let timeout = Duration::from_secs(1);
    Plan { timeout, recovery: Some(recovery), ..plan(&provider.url, Workload::Jwks) }
}

/// Red without `recovered`: the first answer that does not come in time ends it.
#[test]
fn a_server_that_answered_before_is_waited_for() {
    let digesting = Provider::start(Manner::Digesting);
    let report = run(&after_another(&digesting, Duration::from_secs(60)), None).unwrap();
    assert!(report.iterations > 0 && digesting.seen("/jwks") > 2, "{report}");
    let unknown = Provider::start(Manner::Digesting);
    let line = refused(&Plan { recovery: None, ..after_another(&unknown, Duration::ZERO) });
    assert_eq!(line, "the first iteration failed: jwks: no response in time");
}

#[test]
fn one_that_does_not_recover_ends_what_there_was_by_then_in_one_line() {
    let stuck = Provider::start(Manner::Stuck);
    // The answers of the rehearsal and of one iteration are all that it gives.
    let first = Plan { recovery: None, ..after_another(&stuck, Duration::ZERO) };
    let pace = Pace::Open { rate: 20.0, visitors: 4 };
    let terms = Terms { p99: Duration::from_secs(1), errors: 1.0, precision: 0.5 };
    let mut soon = |plans: &[Plan]| {
        let hurry = |plan: &Plan| Plan { recovery: plan.recovery.map(|_| Duration::from_secs(3)), ..plan.clone() };
        together(&plans.iter().map(hurry).collect::<Vec<_>>(), None)
    };
    let series = search(&Plan { pace, ..first }, None, &terms, &mut soon).unwrap();
    let why = "the server did not recover within 3s of what it was offered before: jwks: no response in time";
    assert_eq!((series.trials.len(), series.cut_short.as_deref()), (1, Some(why)));
}
