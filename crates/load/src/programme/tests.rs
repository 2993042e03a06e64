//! Searches, sweeps and repeats against a simulated server.

use super::*;
use crate::interrupt::Interrupt;
use crate::plan::tests::plan;
use crate::report::{Failure, Lateness};
use crate::visitor::Step;
use crate::wire::Fault;
use std::time::Instant;

/// A server that sustains up to 100 iterations a second.
fn server(plans: &[Plan]) -> Report {
    let rate = match plans[0].pace {
        Pace::Open { rate, .. } => rate,
        Pace::Closed { .. } => 120.0,
    };
    let mut report = report(plans[0].workload.name(), 100, rate);
    report.failed = u64::from(rate > 100.0);
    report.beside = plans[1..].iter().map(|plan| self::report(plan.workload.name(), 1, 1.0)).collect();
    report
}

fn step(step: Step) -> crate::report::StepReport {
    let (latency, refusal) = Default::default();
    crate::report::StepReport { step, count: 100, refused: 0, failed: 0, latency, refusal }
}

fn report(name: &str, count: u64, rate: f64) -> Report {
    Report { steps: vec![step(Step::Introspect)], ..crate::report::tests::report(name, count, rate) }
}

#[test]
fn a_search_ends_between_what_held_and_what_did_not() {
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
    let series = search(&plan(), None, &terms, &mut |plans| Ok(server(plans))).unwrap();
    let found = series.found.unwrap();
    assert!(found.rate <= 100.0 && found.not.is_some_and(|not| not > 100.0 && not <= found.rate * 1.06), "{found:?}");
    assert!(series.trials.is_sorted_by_key(|trial| trial.offered));
    assert_eq!(series.runs[0].iterations_per_second, found.rate);
    assert_eq!(found.due, Some(100), "there were more in the one that did not hold");
    let strict = Terms { p99: Duration::from_micros(1), ..terms };
    // Red where a search that finds no rate is an error: its trials, which say why, were lost.
    let none = search(&plan(), None, &strict, &mut |plans| Ok(server(plans))).unwrap();
    let why = none.found_none.as_deref().unwrap();
    assert!(why.starts_with("no rate near 60.0/s keeps p99") && none.to_string().contains(why), "{why}");
    assert!(none.found.is_none() && none.runs.len() == 1 && none.trials.len() > 2);
    let fails = |plans: &[Plan]| Ok(Report { iterations_per_second: 0.0, ..server(plans) });
    let none = Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut { fails }).unwrap();
    assert!(none.runs.len() == 1 && none.cut_short.is_some_and(|why| why.starts_with("not one sign-in")));
}

/// Red where the cause is not checked: waits for one of too few users counted as the server's limit.
#[test]
fn a_limit_that_too_few_users_set_is_the_generators() {
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
    let mut crowded = |plans: &[Plan]| {
        let mut report = server(plans);
        report.waited_for_users = report.failed * 50;
        Ok(report)
    };
    let mut found = |users| search(&plan(), users, &terms, &mut crowded).unwrap().found.unwrap();
    // A hundred and some per second, each for at most half a second, need fifty and some users.
    assert!(found(Some(20)).by_generator && found(Some(20)).to_string().contains("--vus"));
    assert!(!found(Some(80)).by_generator && !found(None).by_generator);
}

/// Red without `is_starved` and `is_by_lateness`: what shares the generator's core is blamed on the server.
#[test]
fn a_limit_that_the_want_of_a_core_set_is_the_generators() {
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
    let found = |waited: f64, p99: f64, late: Option<f64>| {
        let mut starved = |plans: &[Plan]| {
            let lateness = late.map(|p99| Lateness { p50: 0.0, p99 });
            let mut report = Report { generator_waited: Some(waited), lateness, ..server(plans) };
            if std::mem::take(&mut report.failed) > 0 {
                (report.p99_of_all, report.latency.p99) = (Some(p99), p99);
            }
            Ok(report)
        };
        search(&plan(), None, &terms, &mut starved).unwrap().found.unwrap()
    };
    let without_a_core = found(0.8, 9000.0, None);
    assert!(without_a_core.by_generator && without_a_core.to_string().contains("limit of the generator"));
    assert!(found(0.3, 600.0, Some(180.0)).by_generator, "420 ms of it are the server's");
    assert!(!found(0.3, 900.0, Some(180.0)).by_generator && !found(0.05, 510.0, Some(30.0)).by_generator);
    // Typical for two cores on which the server runs, too. Red where that share of the time counts as one of the
    // latency.
    assert!(!found(0.3, 600.0, Some(0.1)).by_generator && !found(0.3, 600.0, None).by_generator);
}

/// Red where every failure is the server's: a server that closes each connection uses up the generator's ports.
#[test]
fn failures_of_the_generator_are_not_the_servers() {
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
    let failing = |reason: &str| {
        let reason = reason.to_owned();
        move |plans: &[Plan]| {
            let mut report = server(plans);
            let failure = Failure { step: Step::Jwks, reason: reason.clone(), first: None, count: 50 * report.failed };
            report.failures = vec![failure; usize::from(report.failed > 0)];
            Ok(report)
        }
    };
    let found = |reason: &str| search(&plan(), None, &terms, &mut failing(reason)).unwrap().found.unwrap();
    assert!(found(&Fault::NoPorts.to_string()).by_generator && !found("503").by_generator);
    let strict = Terms { p99: Duration::from_micros(1), ..terms };
    let mut always = |plans: &[Plan]| {
        let failure = Failure { step: Step::Token, reason: "400 invalid_client".to_owned(), first: None, count: 9 };
        Ok(Report { failures: vec![failure], ..server(plans) })
    };
    let none = search(&plan(), None, &strict, &mut always).unwrap().found_none.unwrap();
    assert!(none.ends_with("; most that failed there: token: 400 invalid_client"), "{none}");
}

#[test]
fn what_is_repeated_without_end_is_not_made_beforehand() {
    let mut left = 3;
    let mut tires = |plans: &[Plan]| {
        left -= 1;
        if left == 0 { Err(Refusal::Failure("tired".to_owned())) } else { Ok(server(plans)) }
    };
    let series = Programme::Plain.carry_out(&plan(), u32::MAX, &mut tires).unwrap();
    assert_eq!((series.runs.len(), series.cut_short.as_deref()), (2, Some("tired")));
}

#[test]
fn errors_up_to_a_share_are_borne() {
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.02, precision: 0.05 };
    let found = search(&plan(), None, &terms, &mut |plans| Ok(server(plans))).unwrap().found.unwrap();
    assert_eq!((found.rate > 10_000.0, found.not), (true, None), "{found:?}");
}

#[test]
fn the_streams_of_w3_keep_their_proportions() {
    let plans = constant(&Plan { workload: Workload::Profile, ..plan() }, true);
    let rates: Vec<_> = plans.iter().map(|plan| (plan.workload.name(), plan.pace)).collect();
    let open = |rate| Pace::Open { rate, visitors: 4 };
    assert_eq!(rates, [("profile", open(600.0)), ("sign_in", open(3.0)), ("sign_up", open(5.0))]);
    assert_eq!(constant(&plan(), false).len(), 2);
}

#[test]
fn overload_offers_up_to_ten_times_what_was_managed() {
    let series = Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut |plans| Ok(server(plans))).unwrap();
    let offered: Vec<_> = series.trials.iter().map(|trial| trial.offered).collect();
    assert_eq!(offered, [60.0, 120.0, 240.0, 600.0, 1200.0]);
    assert!(series.trials.iter().all(|trial| trial.report.beside.len() == 3));
}

/// Red where the plan's number of users is kept although more would raise the rate: forty users set the capacity.
#[test]
fn users_are_doubled_until_that_brings_next_to_nothing() {
    let offered = |grows, first, most: f64| {
        let mut closed = Vec::new();
        let mut carries = |plans: &[Plan]| match plans[0].pace {
            Pace::Closed { visitors, .. } => {
                closed.push((plans[0].workload, visitors, plans[0].duration.as_secs()));
                Ok(report(plans[0].workload.name(), 100, (visitors as f64).min(most)))
            }
            Pace::Open { .. } => Ok(server(plans)),
        };
        let pace = Pace::Closed { visitors: first, pause: Duration::ZERO };
        let plan = Plan { pace, workload: Workload::Flow, duration: Duration::from_secs(20), ..plan() };
        let series = Programme::Overload { grows }.carry_out(&plan, 1, &mut carries).unwrap();
        (series, closed)
    };
    let (series, closed) = offered(true, 40, 100.0);
    let of = |workload| closed.iter().filter(|one| one.0 == workload).map(|one| (one.1, one.2)).collect::<Vec<_>>();
    assert_eq!(of(Workload::Flow), [(40, 4), (80, 4), (160, 4), (320, 4), (160, 20)]);
    assert_eq!(of(Workload::Jwks), [(4, 2), (8, 2), (16, 2), (32, 2)]);
    assert_eq!((series.trials[1].offered, series.runs[0].iterations_per_second), (100.0, 100.0));
    let notes = &series.runs[0].notes;
    assert_eq!(notes[0], "W1 alone: 100.0/s in a short run with 160 users; twice as many bring less than 5 % more");
    assert_eq!(
        notes[3],
        "jwks alone: 32.0/s in a short run with 32 users; twice as many were not tried, and may bring more"
    );
    assert!(series.to_string().contains(&notes[3]) && notes.len() == 4);
    // An explicit number of users is kept.
    let (series, closed) = offered(false, 10, 100.0);
    assert_eq!((closed[0], closed[1].0), ((Workload::Flow, 10, 20), Workload::Introspect));
    assert_eq!(series.trials[1].offered, 10.0);
    assert_eq!(
        offered(true, 40, 41.0).1[..3],
        [(Workload::Flow, 40, 4), (Workload::Flow, 80, 4), (Workload::Flow, 40, 20)]
    );
}

/// Red where W4 uses introspection beside its flood although W1 used something else.
#[test]
fn what_w1_did_without_w4_does_without() {
    let beside = |shown: &[Step]| {
        let mut asks =
            |plans: &[Plan]| Ok(Report { steps: shown.iter().copied().map(step).collect(), ..server(plans) });
        let series = Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut asks).unwrap();
        series.trials[0].report.beside.iter().map(|one| one.workload.clone()).collect::<Vec<_>>()
    };
    assert_eq!(beside(&[Step::Token, Step::Userinfo]), ["userinfo", "refresh", "jwks"]);
    assert_eq!(beside(&[Step::Token]), ["refresh", "jwks"], "nobody can be asked about a token");
}

#[test]
fn what_was_measured_before_something_went_wrong_is_kept() {
    // Whatever is measured third fails.
    let dies_at = |call: u32| {
        let mut calls = 0;
        move |plans: &[Plan]| {
            calls += 1;
            if calls < call { Ok(server(plans)) } else { Err(Refusal::Failure("gone".into())) }
        }
    };
    let gone = Some("gone".to_owned());
    let twice = Programme::Plain.carry_out(&plan(), 5, &mut dies_at(3)).unwrap();
    assert_eq!((twice.runs.len(), &twice.cut_short, twice.spread.is_some()), (2, &gone, true));
    assert!(twice.to_string().contains("Ended before its time: gone\n"));
    // W1 alone, the three light ones, each also with twice the users, and the first two floods.
    let sweep = Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut dies_at(10)).unwrap();
    assert_eq!((sweep.runs.len(), sweep.trials.len(), &sweep.cut_short), (1, 2, &gone));
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 0.05 };
    // A closed loop, 60 (holds), 120 (does not), and then the failure.
    let found = search(&plan(), None, &terms, &mut dies_at(4)).unwrap();
    assert_eq!((found.trials.len(), found.found.unwrap().rate, &found.cut_short), (2, 60.0, &gone));
    // The closed loop alone is a result, and so are trials of which none held.
    let alone = search(&plan(), None, &terms, &mut dies_at(2)).unwrap();
    assert_eq!((alone.runs.len(), alone.trials.len(), &alone.cut_short), (1, 0, &gone));
    let open = Plan { pace: Pace::Open { rate: 300.0, visitors: 9 }, ..plan() };
    let low = search(&open, None, &terms, &mut dies_at(2)).unwrap();
    assert_eq!((low.found.is_none(), low.trials.len(), &low.cut_short), (true, 1, &gone));
    let sweep = Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut dies_at(5)).unwrap();
    assert_eq!((sweep.runs.len(), sweep.trials.len(), &sweep.cut_short), (1, 0, &gone));
    assert!(search(&plan(), None, &terms, &mut dies_at(1)).is_err());
    assert!(Programme::Plain.carry_out(&plan(), 5, &mut dies_at(1)).is_err());
    assert!(Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut dies_at(1)).is_err());
}

/// Red where every trial rehearses like the first: a server still busy with the previous one would end a search.
#[test]
fn only_what_was_not_tried_before_is_rehearsed_as_if_nothing_were_known() {
    let mut known = Vec::new();
    let mut told = |plans: &[Plan]| {
        known.push(plans.iter().map(|plan| plan.recovery).collect::<Vec<_>>());
        Ok(server(plans))
    };
    let slow = Plan { timeout: Duration::from_secs(50), ..plan() };
    Programme::Plain.carry_out(&slow, 3, &mut told).unwrap();
    Programme::Growth.carry_out(&plan(), 2, &mut told).unwrap();
    Programme::Overload { grows: false }.carry_out(&plan(), 1, &mut told).unwrap();
    let terms = Terms { p99: Duration::from_millis(500), errors: 0.0, precision: 1.0 };
    search(&plan(), None, &terms, &mut told).unwrap();
    let (twice, minute) = (Some(Duration::from_secs(100)), Some(Duration::from_secs(60)));
    assert_eq!(known[..3], [[None], [twice], [twice]]);
    assert_eq!(known[3..7], [[None], [minute], [None], [minute]]);
    assert_eq!(known[7], [None]);
    assert_eq!(known[8..14], [[None], [minute]].repeat(3));
    assert_eq!(known[14..19], vec![vec![minute; 4]; 5]);
    assert_eq!(known[19], [None]);
    assert!(known.len() > 20 && known[20..].iter().all(|trial| *trial == [minute]));
    known.clear();
    let mut told = |plans: &[Plan]| {
        known.push(plans.iter().map(|plan| plan.recovery).collect::<Vec<_>>());
        Ok(server(plans))
    };
    let open = Plan { pace: Pace::Open { rate: 60.0, visitors: 9 }, ..plan() };
    search(&open, None, &terms, &mut told).unwrap();
    assert_eq!(known[..2], [[None], [minute]]);
}

/// Red where an interrupt always discards the last run.
#[test]
fn only_a_run_that_was_itself_cut_is_thrown_away() {
    let kept = |seconds: f64, unfinished: u64| {
        let (sender, interrupt) = Interrupt::by_hand();
        let mut calls = 0;
        let mut ends_in_the_third = |plans: &[Plan]| {
            calls += 1;
            let whole = server(plans);
            if calls < 3 {
                return Ok(whole);
            }
            sender.send_replace(Some(Instant::now()));
            Ok(Report { seconds, unfinished, pace: "open loop, 1/s, at most 1 at once".to_owned(), ..whole })
        };
        let plan = Plan { interrupt, ..plan() };
        Programme::Plain.carry_out(&plan, 5, &mut ends_in_the_third).unwrap().runs.len()
    };
    // The window is a second; answers awaited after it belong to the run, too.
    assert_eq!([kept(1.0, 0), kept(0.4, 0), kept(1.0, 3)], [3, 2, 2]);
}

#[test]
fn growth_is_w1_and_then_a_day() {
    let plan = Plan { workload: Workload::Flow, ..plan() };
    let series = Programme::Growth.carry_out(&plan, 2, &mut |plans| Ok(server(plans))).unwrap();
    let names: Vec<_> = series.runs.iter().map(|run| run.workload.as_str()).collect();
    assert_eq!(names, ["w1", "w1", "w5", "w5"]);
    assert!(series.spread.is_none());
}

/// Red without `Series::programme`: a result of W3 looked like one of `profile`.
#[test]
fn a_result_says_which_programme_it_is_of() {
    let said = |programme: Programme| {
        let series = programme.carry_out(&plan(), 1, &mut |plans| Ok(server(plans))).unwrap();
        let read: Series = serde_json::from_str(&serde_json::to_string(&series).unwrap()).unwrap();
        (read.title().to_owned(), series.to_string().lines().next().unwrap_or_default().to_owned())
    };
    let (title, first) = said(Programme::Constant { sign_ups: true });
    assert_eq!((title.as_str(), first.as_str()), ("w3", "w3: profile, sign_in, sign_up"));
    let (title, first) = said(Programme::Overload { grows: true });
    assert_eq!((title.as_str(), first.as_str()), ("w4", "w4: jwks, introspect, refresh"));
    let (title, first) = said(Programme::Plain);
    assert!(title == "jwks" && first.starts_with("jwks at "), "{first}");
}
