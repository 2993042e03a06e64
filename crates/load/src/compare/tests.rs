//! Pairs of results, alike and different.

use super::*;
use crate::report::tests::report;
use std::time::Duration;

/// `runs` of 30 slices of about `rate` iterations each, about `millis` long.
fn series(runs: usize, rate: u64, millis: u64, seed: u64) -> Series {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut run = || {
        let mut report = report("jwks", 1, 1.0);
        let like = report.timeline[0].clone();
        report.timeline = (0..30)
            .map(|_| {
                let mut latencies = Sketch::default();
                let done = rng.u64(rate * 9 / 10..=rate * 11 / 10);
                (0..done).for_each(|_| latencies.add(Duration::from_micros(rng.u64(millis * 500..millis * 1500))));
                Slice { done, ended: Some(done), latencies, ..like.clone() }
            })
            .collect();
        let all = of_slices(&slices(&[&report]).unwrap());
        (report.iterations, report.iterations_per_second) = (report.timeline.iter().map(|one| one.done).sum(), all[0]);
        (report.latency.mean, report.latency.p50, report.latency.p95, report.latency.p99) =
            (all[1], all[2], all[3], all[4]);
        report
    };
    Series { runs: (0..runs).map(|_| run()).collect(), ..Series::default() }
}

#[test]
fn the_same_server_twice_shows_no_difference() {
    for runs in [1, 5] {
        let mut differing = 0;
        for seed in 0..10 {
            let comparison = compare(&series(runs, 100, 20, seed), &series(runs, 100, 20, seed + 100)).unwrap();
            let figures = &comparison.parts[0].figures;
            assert_eq!(figures.iter().map(|figure| figure.name).collect::<Vec<_>>(), NAMES);
            assert!(comparison.to_string().contains("no difference shown"));
            differing += figures.iter().filter(|figure| figure.differs()).count();
        }
        // One of twenty is reported to differ although it does not: that is the meaning of a 95 % interval.
        assert!(differing <= 6, "{differing} of 60");
    }
}

#[test]
fn a_server_that_is_a_fifth_faster_is_seen_with_its_ratio_in_the_interval() {
    for (runs, method) in [(1, "slices of time"), (6, "6 and 6 runs")] {
        let comparison = compare(&series(runs, 100, 24, 3), &series(runs, 120, 20, 4)).unwrap();
        assert!(comparison.method.contains(method), "{comparison}");
        let (rate, p99) = (&comparison.parts[0].figures[0], &comparison.parts[0].figures[4]);
        assert!(rate.differs() && rate.low < 1.2 && rate.high > 1.2 && rate.high < 1.4, "{comparison}");
        assert!(p99.differs() && p99.high < 0.95 && p99.ratio > 0.75, "{comparison}");
        assert!(comparison.to_string().contains("B is higher") && comparison.to_string().contains("B is lower"));
    }
}

#[test]
fn an_interval_covers_the_truth_about_as_often_as_it_says() {
    let covered = |seed| {
        let comparison = compare(&series(1, 60, 20, seed), &series(1, 60, 20, seed + 1000)).unwrap();
        !comparison.parts[0].figures[0].differs()
    };
    let count = (0..60).filter(|seed| covered(*seed)).count();
    assert!((50..=60).contains(&count), "{count} of 60");
}

#[test]
fn an_interval_over_runs_covers_the_truth_as_often_as_it_says() {
    let mut rng = fastrand::Rng::with_seed(7);
    let like = report("jwks", 1, 1.0);
    // About normal, with a deviation of 5 %.
    let mut value = || 1.0 + 0.05 * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0);
    let mut series = |scale: f64| {
        let run = |value: f64| Report { iterations_per_second: value * scale, ..like.clone() };
        Series { runs: (0..RUNS).map(|_| run(value())).collect(), ..Series::default() }
    };
    const TRIES: usize = 1000;
    let mut covers = || {
        let rate = compare(&series(1.0), &series(2.0)).unwrap().parts[0].figures[0].clone();
        (rate.low..=rate.high).contains(&2.0)
    };
    let count = (0..TRIES).filter(|_| covers()).count();
    assert!((930..=975).contains(&count), "{count} of {TRIES}");
}

#[test]
fn where_nothing_came_out_well_no_latency_is_lower() {
    for runs in [1, 5] {
        let good = series(runs, 100, 20, 1);
        let mut bad = good.clone();
        for run in &mut bad.runs {
            (run.iterations, run.iterations_per_second, run.failed) = (0, 0.0, 3000);
            run.latency = Default::default();
            for slice in &mut run.timeline {
                (slice.done, slice.ended, slice.failed) = (0, Some(0), 100);
                slice.latencies = Sketch::default();
            }
        }
        for (a, b, side, verdict) in [(&good, &bad, "B", "B is lower"), (&bad, &good, "A", "B is higher")] {
            let comparison = compare(a, b).unwrap();
            let names: Vec<_> = comparison.parts[0].figures.iter().map(|figure| figure.name).collect();
            assert_eq!(names, ["iterations/s", "came out well %"], "{comparison}");
            let text = comparison.to_string();
            assert_eq!(text.matches(verdict).count(), 2, "{text}");
            assert!(text.contains(&format!("{side} has a run in which nothing came out well: latencies")), "{text}");
        }
    }
}

#[test]
fn what_fails_is_a_figure_and_then_the_rate_is_not_what_was_offered() {
    for runs in [1, 5] {
        let mut good = series(runs, 100, 20, 1);
        good.runs.iter_mut().for_each(|run| run.pace = "open loop, 100/s, at most 9 at once".to_owned());
        let mut bad = good.clone();
        for run in &mut bad.runs {
            (run.failed, run.iterations) = (run.iterations, run.iterations);
            run.timeline.iter_mut().for_each(|slice| slice.failed = slice.done);
        }
        assert!(compare(&good, &good).unwrap().to_string().contains("the rate is what was offered"));
        // Red without `apart`.
        let notes = |b: &Series| compare(&good, b).unwrap().parts[0].notes.concat();
        assert!(notes(&series(runs, 100, 20, 1)).ends_with("not the same load.") && notes(&good).is_empty());
        let comparison = compare(&good, &bad).unwrap();
        let well = comparison.parts[0].figures.last().unwrap();
        assert_eq!((well.name, well.a, well.b, well.differs()), ("came out well %", 100.0, 50.0, true), "{comparison}");
        assert!(!comparison.to_string().contains("the rate is what was offered"), "{comparison}");
    }
}

/// `counts` iterations of about 10 ms in the first slices of thirty, the other slices empty.
fn sparse(counts: &[u64], millis: u64) -> Series {
    let mut series = series(1, 100, millis, 1);
    for (at, slice) in series.runs[0].timeline.iter_mut().enumerate() {
        let done = counts.get(at).copied().unwrap_or_default();
        (slice.done, slice.ended, slice.latencies) = (done, Some(done), Sketch::default());
        (0..done).for_each(|n| slice.latencies.add(Duration::from_millis(millis + n % 3)));
    }
    series.runs[0].iterations = counts.iter().sum();
    series
}

/// Red without `thin`: one slice that holds everything has no variance, and makes any verdict look certain.
#[test]
fn a_handful_of_iterations_is_certain_of_nothing() {
    let many = series(1, 100, 20, 2);
    let unjudged = |few: &Series| {
        let (one, other) = (compare(&many, few).unwrap(), compare(few, &many).unwrap());
        let names = |comparison: &Comparison| -> Vec<_> {
            let unjudged = comparison.parts[0].figures.iter().filter(|figure| !figure.is_judged());
            unjudged.inspect(|figure| assert!(!figure.differs())).map(|figure| figure.name).collect()
        };
        assert_eq!(names(&one), names(&other));
        for (comparison, side) in [(one, "B"), (other.clone(), "A")] {
            let (text, said) = (comparison.to_string(), format!("Too few came out well in {side} for a verdict on "));
            assert_eq!(text.matches("too few for a verdict").count(), names(&comparison).len(), "{text}");
            assert_eq!(text.contains(&said), !names(&comparison).is_empty(), "{text}");
        }
        names(&other)
    };
    assert_eq!(unjudged(&sparse(&[4], 90)), NAMES[1..]);
    assert_eq!(unjudged(&sparse(&[1, 1, 1, 1], 90)), NAMES[1..]);
    assert_eq!(unjudged(&sparse(&[9, 9, 9, 9, 200], 90)), NAMES[..0], "five slices");
    assert_eq!(unjudged(&sparse(&[3; 6], 90)), NAMES[3..5], "18 in all");
    assert_eq!(unjudged(&sparse(&[3; 7], 90)), NAMES[4..5], "21 in all");
    assert_eq!(unjudged(&many), NAMES[..0]);
    let json = serde_json::to_value(compare(&many, &sparse(&[4], 90)).unwrap()).unwrap();
    let figure = &json["parts"][0]["figures"][4];
    assert!(figure["low"].is_null() && figure["high"].is_null() && figure["ratio"].is_number(), "{figure}");
    // Over runs the iterations of each run count: the longest of thirty each are no p99. Red where they are added up.
    let over_runs = |iterations: [u64; 5]| {
        let mut short = series(5, 100, 20, 3);
        short.runs.iter_mut().zip(iterations).for_each(|(run, count)| run.iterations = count);
        let comparison = compare(&series(5, 100, 20, 4), &short).unwrap();
        let of_b = comparison.parts[0].notes.iter().find(|note| note.contains("came out well in B")).cloned();
        of_b.unwrap_or_default()
    };
    assert_eq!(over_runs([30; 5]), "Too few came out well in B for a verdict on p99 ms.");
    assert_eq!(over_runs([9000, 9000, 99, 9000, 9000]), "Too few came out well in B for a verdict on p99 ms.");
    assert_eq!(over_runs([10; 5]), "Too few came out well in B for a verdict on p95 ms, p99 ms.");
    assert_eq!(over_runs([100; 5]), "");
}

/// Red where every interval that covers 1 shows no difference: one without an end covers everything.
#[test]
fn an_interval_without_an_end_shows_nothing() {
    let figure = |low, high| Figure { name: NAMES[0], a: 1.0, b: 1.0, ratio: 1.0, low, high }.settled();
    let verdict = |low, high| (figure(low, high).is_judged(), figure(low, high).differs());
    for (low, high) in [(0.0, f64::INFINITY), (0.0, 1.5), (0.5, f64::INFINITY), (f64::NAN, 0.9), (1.1, f64::NAN), OPEN]
    {
        assert_eq!(verdict(low, high), (false, false), "{low} to {high}");
        assert_eq!((figure(low, high).low, figure(low, high).high), OPEN, "no verdict has no ends");
    }
    for (low, high) in [(0.0, 0.9), (0.0, 0.0), (1.1, f64::INFINITY), (f64::INFINITY, f64::INFINITY)] {
        assert_eq!(verdict(low, high), (true, true), "{low} to {high}");
    }
    assert_eq!((verdict(0.9, 1.1), verdict(0.5, 0.9)), ((true, false), (true, true)));
    // A rate that most draws leave out, on both sides.
    let text = compare(&sparse(&[200], 90), &sparse(&[200], 90)).unwrap().to_string();
    let rate = text.lines().find(|line| line.starts_with(NAMES[0])).unwrap();
    assert!(rate.ends_with("too few for a verdict"), "{text}");
    // Red without `of_draw`: draws of none but empty slices have a share of nothing, not of zero.
    let share = compare(&series(1, 100, 20, 1), &sparse(&[9; 5], 90)).unwrap().parts[0].figures[5].clone();
    assert!(share.is_judged() && !share.differs() && share.low > 0.9, "{share:?}");
}

#[test]
fn what_did_not_end_in_an_open_loop_did_not_come_out_well() {
    let mut open = series(1, 100, 20, 1);
    let run = &mut open.runs[0];
    run.pace = "open loop, 400/s, at most 9 at once".to_owned();
    run.timeline.iter_mut().for_each(|slice| slice.level = 400.0);
    run.unfinished = 30 * 300;
    let well = of_slices(&slices(&[run]).unwrap())[5];
    assert!((20.0..30.0).contains(&well), "{well}");
    run.unfinished = 0;
    // Red where a slice with fewer starts than the mean is charged the mean: random starts are uneven.
    assert_eq!(of_slices(&slices(&[run]).unwrap())[5], 100.0);
    (run.iterations, run.unfinished) = (25, 75);
    assert_eq!(of_run(run)[5], 25.0);
    run.pace = "closed loop, 75 users, no pause".to_owned();
    assert_eq!(of_run(run)[5], 100.0);
}

#[test]
fn a_sweep_is_not_compared() {
    let one = series(1, 100, 20, 1);
    let trial = crate::series::Trial { offered: 1.0, holds: None, judged: None, report: one.runs[0].clone() };
    let sweep = Series { trials: vec![trial], ..one.clone() };
    for (a, b, side) in [(&sweep, &one, "A"), (&one, &sweep, "B"), (&sweep, &sweep, "A")] {
        let refusal = compare(a, b).unwrap_err();
        assert!(refusal.to_string().starts_with(&format!("{side} is a sweep")) && refusal.exit_code() == 2);
    }
}

#[test]
fn two_searches_are_compared_by_what_held_and_what_did_not() {
    let found =
        |rate, not| Found { rate, not, p99_ms: 500.0, errors: 0.0, judged: None, due: None, by_generator: false };
    let series = |found| Series { found: Some(found), ..Series::default() };
    let (a, b) = (series(found(100.0, Some(105.0))), series(found(102.0, Some(107.0))));
    assert!(!compare(&a, &b).unwrap().parts[0].figures[0].differs());
    let figure = compare(&a, &series(found(110.0, None))).unwrap().parts[0].figures[0].clone();
    assert!(figure.differs() && figure.high == f64::INFINITY);
    // Where A held every rate, nothing bounds the ratio from below.
    let text = compare(&series(found(100.0, None)), &series(found(102.0, Some(107.0)))).unwrap().to_string();
    assert!(text.contains("too few for a verdict") && !text.contains("no difference"), "{text}");
    assert_eq!(compare(&a, &Series::default()).unwrap_err().to_string(), "B holds no runs");
    let plain = self::series(1, 10, 10, 1);
    assert_eq!(compare(&a, &plain).unwrap_err().to_string(), "one is a search, the other is not");
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let (a, mut b) = (series(1, 10, 10, 1), series(1, 10, 10, 2));
    b.runs[0].workload = "w1".to_owned();
    assert_eq!(compare(&a, &b).unwrap_err().to_string(), "A is of jwks, B of w1");
    // Red without the programme: W3 is more than the reads that it begins with.
    let of = |programme: &str| Series { programme: Some(programme.to_owned()), ..a.clone() };
    assert_eq!(compare(&of("w3"), &b).unwrap_err().to_string(), "A is of w3 (jwks), B of w1");
    assert!(compare(&of("w3"), &of("w3")).unwrap().to_string().lines().any(|line| line == "w3: jwks"));
    assert!(compare(&of("w3"), &a).unwrap().programme.is_none(), "a result of before has none");
    // Red without `holds_none`: "A is of , B of ".
    let none: Series = serde_json::from_str(r#"{"runs":[]}"#).unwrap();
    for (one, other, side) in [(&none, &none, "A"), (&none, &a, "A"), (&a, &none, "B")] {
        let refusal = compare(one, other).unwrap_err();
        assert_eq!((refusal.to_string(), refusal.exit_code()), (format!("{side} holds no runs"), 2));
    }
    let mut short = a.clone();
    short.runs[0].timeline.clear();
    assert!(compare(&a, &short).unwrap_err().to_string().starts_with("too little to compare"));
}
