//! A window that is over before anything is.

use crate::provider::{Manner, Provider};
use crate::{of_five, plan};
use load::plan::{Plan, Workload};
use load::run::run;
use load::visitor::Step;
use std::time::Duration;

/// Red without `Turn`: a server that answered all the time was told to have answered nothing, and nobody was told what to do.
#[test]
fn where_no_iteration_ends_the_steps_that_did_count() {
    // Code and refresh token are 20 ms each.
    let short = || {
        let provider = Provider::start(Manner::Slow);
        let plan = plan(&provider.url, Workload::Flow);
        run(&Plan { warmup: Duration::ZERO, duration: Duration::from_millis(35), ..plan }, None).unwrap()
    };
    let report = of_five(short, |report| report.requests > 0);
    let begun = report.steps.iter().find(|step| step.step == Step::Authorize).unwrap();
    assert!(report.iterations == 0 && report.unfinished == 4, "{report}");
    assert!(report.requests > 0 && begun.count > 0, "{report}");
    let said = "no iteration ended in the window of 35ms: requests and steps are of those under way; an iteration takes longer \
                (the first, alone, took ";
    assert!(report.notes.iter().any(|note| note.starts_with(said)), "{report}");
}
