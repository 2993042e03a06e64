//! An end before its time.

use crate::provider::{Manner, Provider};
use crate::{of_five, plan};
use load::interrupt::Interrupt;
use load::plan::{Pace, Plan, Workload};
use load::programme::Programme;
use load::report::Report;
use load::run::run;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch::Sender;

/// What a plan of an hour comes to when somebody wants its end after so long.
fn ended_after(plan: Plan, millis: u64) -> Result<Report, load::Refusal> {
    let (sender, interrupt) = Interrupt::by_hand();
    let begun = Instant::now();
    let ender = thread::spawn(move || {
        thread::sleep(Duration::from_millis(millis));
        sender.send_replace(Some(Instant::now()));
    });
    let outcome = run(&Plan { duration: Duration::from_secs(3600), interrupt, ..plan }, None);
    ender.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "it ended when it was asked to");
    outcome
}

/// Red without the checks in `observe` and `wait` of `run.rs` (it goes on for an hour), and without `due_within` in the report (all of
/// an hour's starts are unfinished).
#[test]
fn what_was_measured_by_then_is_the_result() {
    let provider = Provider::start(Manner::Good);
    let paces = [
        Pace::Closed { visitors: 4, pause: Duration::ZERO },
        Pace::Closed { visitors: 4, pause: Duration::from_secs(60) },
        Pace::Open { rate: 200.0, visitors: 4 },
    ];
    for pace in paces {
        let ended = || ended_after(Plan { pace, ..plan(&provider.url, Workload::Jwks) }, 1_500);
        // Where the machine stands still as it begins, the end may come before the window.
        let report = of_five(ended, |report| report.as_ref().is_ok_and(|report| report.seconds >= 0.1)).unwrap();
        assert!((0.1..10.0).contains(&report.seconds), "{report}");
        // All that were due and are done have ended in it, and so have some that were due in the warm-up.
        let ended = report.iterations_per_second * report.seconds;
        assert!(ended > report.iterations as f64 - 0.5 && report.failed == 0, "{report}");
        // An hour has 720,000 starts.
        assert!(report.unfinished <= 2_000, "{report}");
        // Red where `busy` is given up: it was never idle.
        assert!(report.generator_busiest > 0.0 || report.iterations < 10, "{report}");
        let counted: u64 = report.timeline.iter().map(|slice| slice.done).sum();
        let length: f64 = report.timeline.iter().map(|slice| slice.seconds).sum();
        assert!(counted == report.iterations && (length - report.seconds).abs() < 1e-6, "{report}");
    }
}

/// Red without `check` in `observe` and in `wait_until_ready`, and without `unless` in the rehearsal.
#[test]
fn an_end_before_the_window_is_one_without_a_result() {
    let good = Provider::start(Manner::Good);
    let warm = Plan { warmup: Duration::from_secs(3600), ..plan(&good.url, Workload::Jwks) };
    let closed = Provider::start(Manner::Closed);
    // The rehearsal tries again and again.
    let timeout = Duration::from_secs(3600);
    let stuck = Provider::start(Manner::Stuck);
    let waits = Plan { timeout, ..plan(&stuck.url, Workload::Jwks) };
    // Uses up the answers that it gives; on a busy machine a request may be given up before it has come.
    while stuck.seen("/jwks") < 2 {
        drop(run(&Plan { timeout: Duration::from_millis(50), ..waits.clone() }, None));
    }
    let busy = Plan { timeout, ..plan(&closed.url, Workload::Userinfo) };
    for plan in [warm, waits] {
        let refusal = ended_after(plan, 300).unwrap_err();
        assert_eq!(refusal, load::Refusal::Failure("interrupted".to_owned()));
    }
    assert!(ended_after(busy, 300).is_err());
}

/// Runs what it is given; with the last of so many runs somebody begins to want the end.
fn unwanted_after(
    runs: usize,
    sender: &Sender<Option<Instant>>,
) -> impl FnMut(&[Plan]) -> Result<Report, load::Refusal> + '_ {
    let mut calls = 0;
    move |plans| {
        calls += 1;
        let report = run(&plans[0], None);
        if calls == runs {
            sender.send_replace(Some(Instant::now()));
        }
        report
    }
}

/// Red without the `check` in `carry_out` and in `whole`: the next run would begin, and a cut trial would be judged.
#[test]
fn a_series_ends_with_what_is_whole() {
    let provider = Provider::start(Manner::Good);
    let (sender, interrupt) = Interrupt::by_hand();
    let plan = Plan { interrupt, ..plan(&provider.url, Workload::Jwks) };
    let mut runner = unwanted_after(3, &sender);
    let series = Programme::Plain.carry_out(&plan, 5, &mut runner).unwrap();
    // Red where the last run is thrown away, whole or not.
    assert_eq!((series.runs.len(), series.cut_short.as_deref()), (3, Some("interrupted")));
    sender.send_replace(None);
    let mut runner = unwanted_after(1, &sender);
    let series = Programme::Plain.carry_out(&plan, 1, &mut runner).unwrap();
    assert_eq!(
        (series.runs.len(), series.cut_short.as_deref()),
        (1, Some("interrupted")),
        "half a run is better than none"
    );
    assert!(Programme::Overload { grows: true }.carry_out(&plan, 1, &mut runner).is_err());
}
