//! What a report says about a run.

use super::*;
use crate::timeline::Sketch;
use std::time::Duration;

/// `count` iterations of 10 ms at `rate`.
pub fn report(workload: &str, count: u64, rate: f64) -> Report {
    let mut latencies = Latencies::default();
    let mut sketch = Sketch::default();
    (0..count).for_each(|_| latencies.add(Duration::from_millis(10)));
    (0..count).for_each(|_| sketch.add(Duration::from_millis(10)));
    let slice = Slice {
        from: 0.0,
        seconds: 1.0,
        level: 1.0,
        done: count,
        ended: Some(count),
        failed: 0,
        refused: 0,
        latencies: sketch,
    };
    Report {
        workload: workload.to_owned(),
        target: "http://localhost:1".to_owned(),
        pace: String::new(),
        accounts: None,
        seconds: 1.0,
        iterations: count,
        iterations_per_second: rate,
        requests: count,
        requests_per_second: rate,
        failed: 0,
        refused: 0,
        unfinished: 0,
        waited_for_users: 0,
        connections_opened: None,
        rested: 0,
        latency: Latency::from(&latencies),
        p99_of_all: p99_of_all(&latencies, 0),
        steps: vec![],
        failures: vec![],
        refusals: vec![],
        generator_cores: None,
        others_cores: None,
        stolen_cores: None,
        generator_busiest: 0.0,
        generator_waited: Some(0.0),
        pacing_us: None,
        lateness: None,
        server: None,
        notes: vec![],
        timeline: vec![slice],
        beside: vec![],
    }
}

/// Red where a field is required: earlier results could no longer be compared.
#[test]
fn a_result_of_before_is_read() {
    let mut json = serde_json::to_value(report("w1", 10, 10.0)).unwrap();
    for name in ["others_cores", "stolen_cores", "accounts", "connections_opened", "lateness"] {
        assert!(json.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    let read: Report = serde_json::from_value(json).unwrap();
    assert_eq!((read.accounts, read.connections_opened, read.lateness), (None, None, None));
    assert!(!read.to_string().contains("to sign in with"));
    let table = Report { accounts: Some(12), ..read }.to_string();
    assert!(table.contains("\n          12 accounts to sign in with\n"), "{table}");
}

#[test]
fn a_generator_that_was_the_bottleneck_says_so() {
    let mut report = report("jwks", 10, 10.0);
    assert!(!report.to_string().contains("bottleneck"));
    report.generator_busiest = 0.97;
    let table = report.to_string();
    assert!(table.contains("The generator was the bottleneck: its busiest thread was at 97 % of a core"), "{table}");
    // On a machine that others use, a thread that waits for a processor is not idle either.
    (report.generator_busiest, report.generator_waited) = (0.5, Some(0.4));
    assert!(!report.is_bound_by_generator());
    report.generator_waited = Some(0.46);
    let table = report.to_string();
    assert!(table.contains("at 50 % of a core and waited for one 46 % of the time (--threads)"), "{table}");
}

/// Red where only 95 % of the time running and waiting together counts: an open loop rests between its starts.
#[test]
fn a_generator_without_a_core_says_so() {
    let of = |running, waiting| Report {
        generator_busiest: running,
        generator_waited: Some(waiting),
        ..report("jwks", 10, 10.0)
    };
    let starved = of(0.029, 0.8);
    let table = starved.to_string();
    assert!(starved.is_starved() && starved.is_bound_by_generator() && !starved.is_busy());
    assert!(table.contains("        80.0 % of the time the generator waited for a core\n"), "{table}");
    assert!(
        table.contains("Others had the cores: the generator, which used 3 % of one, waited for one 80 % of the time"),
        "{table}"
    );
    let table = of(0.2, 0.8).to_string();
    assert!(table.contains("The generator was the bottleneck: it waited for a core 80 % of the time"), "{table}");
    // Beside the server on two cores, in a closed loop.
    let usual = of(0.18, 0.4);
    let table = usual.to_string();
    assert!(!usual.is_bound_by_generator() && !table.contains("bottleneck"), "{table}");
    assert!(table.contains("The generator waited for a core 40 % of the time, and the latencies have that"), "{table}");
    let rested = of(0.2, 0.05).to_string();
    assert!(rested.contains(" 5.0 % of the time") && !rested.contains("have that"), "{rested}");
    // In a result from before this field.
    assert!(!of(0.2, 0.0).to_string().contains("waited for a core"));
    let unread = Report { generator_waited: None, ..of(0.2, 0.0) };
    assert!(unread.to_string().contains("How long the generator waited for a core is not known"));
    let read = serde_json::to_value(&unread).unwrap();
    assert_eq!(serde_json::from_value::<Report>(read.clone()).unwrap().generator_waited, None);
    let mut before = read;
    before.as_object_mut().unwrap().remove("generator_waited");
    assert_eq!(serde_json::from_value::<Report>(before).unwrap().generator_waited, Some(0.0));
}

/// Red without `others_cores`: a user who measures on a busy machine does not see that.
#[test]
fn what_else_ran_on_the_machine_is_told() {
    let of = |others, server| Report { others_cores: Some(others), server, ..report("jwks", 10, 10.0) };
    let server = Some(Server { cpu_seconds: 1.0, cores: 1.0, requests_per_cpu_second: None });
    let alone = of(1.25, None).to_string();
    assert!(
        alone.contains("        1.25 cores by all else on this machine, the server included if it is there\n"),
        "{alone}"
    );
    assert!(!alone.contains("Other programs"), "{alone}");
    let apart = of(0.42, server);
    let table = apart.to_string();
    assert!(table.contains("        0.42 cores by other programs\n"), "{table}");
    assert!(
        table.contains("Other programs kept 0.42 cores busy meanwhile: the latencies have that in them."),
        "{table}"
    );
    assert!(apart.is_disturbed() && !apart.is_bound_by_generator());
    assert!(!of(0.1, server).to_string().contains("Other programs kept") && !report("jwks", 9, 9.0).is_disturbed());
}

/// Red without `stolen_cores`: what the host of a virtual machine took was said to be the work of other programs.
#[test]
fn what_the_host_took_is_not_the_work_of_other_programs() {
    let server = Server { cpu_seconds: 1.0, cores: 1.0, requests_per_cpu_second: None };
    let of = |server, others, stolen| {
        let cores = Report { others_cores: Some(others), stolen_cores: Some(stolen), ..report("jwks", 10, 10.0) };
        Report { server, ..cores }
    };
    let said = |server, others, stolen| of(server, others, stolen).limits_of_generator();
    let end = ": the latencies have that in them.";
    for (server, others, stolen, expected) in [
        (Some(server), 0.42, 0.3, "Other programs kept 0.42 cores busy meanwhile, and 0.30 were taken by the host"),
        (Some(server), 0.1, 0.1, "Other programs kept 0.10 cores busy meanwhile, and 0.10 were taken by the host"),
        (Some(server), 0.0, 0.3, "0.30 cores were taken by the host meanwhile"),
        (None, 1.25, 0.3, "0.30 cores were taken by the host meanwhile"),
    ] {
        assert_eq!(said(server, others, stolen), [format!("{expected}{end}")]);
    }
    assert_eq!([said(Some(server), 0.1, 0.04), said(None, 1.25, 0.1)], [Vec::<String>::new(), vec![]]);
    assert!(of(None, 1.25, 0.1).to_string().contains("        0.10 cores taken by the host (steal)\n"));
    assert!(!of(None, 1.25, 0.0).to_string().contains("by the host"));
}

/// Red without `lateness`: an open loop that began late looked like a slow server.
#[test]
fn a_generator_that_was_late_says_so() {
    let of = |p99| Report { lateness: Some(Lateness { p50: 0.05, p99 }), ..report("jwks", 100, 100.0) };
    let late = of(1.5);
    let table = late.to_string();
    assert!(
        late.is_late() && table.contains("the p99 of that is 1.50 ms, 15 % of the p99 of the latencies"),
        "{table}"
    );
    assert!(
        table.contains("        1.50 ms late, p99, the generator began what found a free user, p50 0.05\n"),
        "{table}"
    );
    let on_time = of(0.5);
    assert!(!on_time.is_late() && !on_time.to_string().contains("was late with its starts"));
    let nobody = Report { lateness: on_time.lateness, ..report("jwks", 0, 0.0) };
    assert!(!nobody.is_late() && !report("jwks", 9, 9.0).is_late());
    assert_eq!(Lateness::of(&Latencies::default()), None);
}

/// Red without `refusals`: the number of refusals says neither in which step nor with which status.
#[test]
fn a_refusal_says_where_with_what_and_how_soon() {
    let mut record = Record::default();
    let mut refuse = |step, status, count: u64, micros| {
        let mut latencies = Latencies::default();
        (0..count).for_each(|_| latencies.add(Duration::from_micros(micros)));
        record.refused.insert((step, status), latencies);
    };
    refuse(Step::Login, 503, 3, 2000);
    refuse(Step::Userinfo, 429, 6856, 800);
    refuse(Step::Userinfo, 503, 1, 5000);
    let report = Report { refused: 6860, refusals: Refusals::of(&record), ..report("w2", 10, 10.0) };
    let table = report.to_string();
    let lines = ["6856 x userinfo refused with 429, p50 0.80 ms", "3 x login refused with 503, p50 2.00 ms"];
    assert!(lines.iter().all(|line| table.contains(line)), "{table}");
    assert!(
        table.find("6856 x") < table.find("3 x login") && table.contains("1 x userinfo refused with 503"),
        "{table}"
    );
    let userinfo = StepReport::of(Step::Userinfo, &record);
    assert_eq!((userinfo.refused, userinfo.refusal.max.round()), (6857, 5.0), "a step has both");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["refusals"][0]["status"], &json["refusals"][0]["count"]), (&429.into(), &6856.into()), "{json}");
}

#[test]
fn starts_that_found_no_free_user_are_the_generators() {
    let mut report = report("w1", 990, 10.0);
    (report.unfinished, report.waited_for_users) = (10, 10);
    assert!(!report.is_bound_by_generator() && !report.to_string().contains("free user"));
    report.waited_for_users = 11;
    let table = report.to_string();
    assert!(report.is_bound_by_generator() && !report.is_busy());
    assert!(
        table.contains("11 starts waited for a free user, or found none by the end: raise --vus (w3 has four users"),
        "{table}"
    );
}

/// Red without `rests`: a loop that had pauses is described as "no pause".
#[test]
fn pauses_without_a_connection_are_told() {
    let mut report = report("jwks", 90, 10.0);
    assert!(!report.to_string().contains("paused for"));
    report.rested = 12;
    let table = report.to_string();
    assert!(
        table.contains("no connection could be made a user paused for 100ms before the next try, 12 x: those"),
        "{table}"
    );
    assert!(!report.is_bound_by_generator(), "a server that is gone is no limit of the generator");
}

#[test]
fn a_soak_that_was_ended_early_has_no_quarters() {
    let mut report = report("jwks", 10, 10.0);
    report.timeline = (0..3).map(|_| Slice { seconds: 30.0, ..report.timeline[0].clone() }).collect();
    assert_eq!(drift(&report.timeline), None);
}

#[test]
fn a_long_run_says_how_its_end_differs_from_its_beginning() {
    let mut report = report("jwks", 10, 10.0);
    let slice = |_| Slice { seconds: 10.0, ..report.timeline[0].clone() };
    let timeline: Vec<_> = (0..8).map(slice).collect();
    assert_eq!(drift(&timeline[..5]), None);
    report.timeline = timeline;
    report.timeline[7].latencies.add(Duration::from_secs(2));
    report.timeline[7].ended = Some(12);
    // Red where only the table has it: JSON and the page consist of the same notes.
    report.notes = beyond_figures(&Record::default(), &report.timeline);
    let expected = "first quarter 1.0/s, p50 10.07 ms, p99 10.17 ms; last 1.1/s, p50 10.08 ms, p99 1";
    assert!(report.notes.len() == 1 && report.notes[0].starts_with(expected), "{:?}", report.notes);
    assert!(is_drift(&report.notes[0]));
    let table = report.to_string();
    assert_eq!(table.matches(expected).count(), 1, "{table}");
    report.timeline[0].level = 7.0;
    assert_eq!(drift(&report.timeline), None, "a ramp is no soak");
}

#[test]
fn who_was_not_answered_waited_longer_than_anybody() {
    let mut latencies = Latencies::default();
    (1..=1000).for_each(|n| latencies.add(Duration::from_millis(n)));
    let p99 = |missing| p99_of_all(&latencies, missing).map(f64::round);
    // The 995th of 1005, and the 1000th of 1010: the five and ten after it have no latency.
    assert_eq!([p99(0), p99(5), p99(10), p99(11)], [Some(990.0), Some(995.0), Some(1000.0), None]);
    assert_eq!(p99_of_all(&Latencies::default(), 0), None);
}

#[test]
fn what_was_not_answered_is_an_error() {
    let mut report = report("jwks", 96, 10.0);
    (report.failed, report.refused, report.unfinished) = (1, 2, 1);
    assert!((report.error_rate() - 0.04).abs() < 1e-9);
    assert_eq!(Report { iterations: 0, ..self::report("jwks", 0, 0.0) }.error_rate(), 0.0);
}
