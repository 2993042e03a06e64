//! Two results beside one another: how much faster, and how sure that is.
//!
//! Where there are enough runs, the intervals come from how far one run lies from the next: Welch's t on the logarithm of the
//! ratio of the means, whose variances are those of the means by the delta method. Otherwise they are those of a bootstrap
//! (Efron 1979) over slices of time: slices are drawn again with replacement, many times, and the middle 95 % of the ratios
//! that come out are the interval. They are drawn in blocks, since a slice is like its neighbours (Künsch 1989); that shows how
//! much a run varies within itself, and is too sure of itself by what differs between runs.

use crate::Refusal;
use crate::doubts::{differences, doubts, of_terms};
use crate::report::Report;
use crate::series::{Found, Series};
use crate::timeline::{Sketch, Slice};
use crate::welch::{Mean, welch};
use serde::Serialize;
use std::fmt;

pub use crate::welch::student;

/// Runs of each that are enough for an interval over runs.
const RUNS: usize = 5;
/// Times that is drawn.
const DRAWS: usize = 2000;
/// What lies outside of the interval, on each side.
const TAIL: f64 = 0.025;

/// B beside A.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Where the intervals come from, and what they are worth.
    pub method: String,
    /// By workload.
    pub parts: Vec<Part>,
    /// What makes a side worth less than it looks.
    pub notes: Vec<String>,
}

/// One workload.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Which.
    pub workload: String,
    /// True when both are open loops in which nothing failed: their rates are what was offered.
    pub offered: bool,
    /// What the ends of its figures' intervals are: of 95 %, or the least and the most that two searches leave open.
    pub interval: &'static str,
    /// What could not be compared.
    pub notes: Vec<String>,
    /// Rate, latencies, and the share that came out well.
    pub figures: Vec<Figure>,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// Of A.
    pub a: f64,
    /// Of B.
    pub b: f64,
    /// B over A.
    pub ratio: f64,
    /// The interval of the ratio.
    pub low: f64,
    /// Its other end.
    pub high: f64,
}

impl Figure {
    /// True when the interval does not cover 1.
    pub fn differs(&self) -> bool {
        !(self.low..=self.high).contains(&1.0)
    }
}

/// Compares `b` with `a`.
///
/// # Errors
/// [`Refusal::Use`] when they are not of the same workloads, or hold too little, or when one is a sweep or a search that found nothing.
pub fn compare(a: &Series, b: &Series) -> Result<Comparison, Refusal> {
    if let Some((name, _)) = [("A", a), ("B", b)].iter().find(|(_, one)| one.found.is_none() && !one.trials.is_empty())
    {
        let what = "a sweep over rates (w4), or a search that found none";
        let line = format!("{name} is {what}, and has no one figure: compare single rates, or searches that ended");
        return Err(Refusal::Use(line));
    }
    let (of_a, of_b) = (workloads(a), workloads(b));
    let names = |of: &[(&str, Vec<&Report>)]| of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = match (&a.found, &b.found) {
        (None, None) => None,
        (Some(of_a), Some(of_b)) => Some((of_a, of_b)),
        _ => return Err(Refusal::Use("one is a search, the other is not".to_owned())),
    };
    if of_a.is_empty() && found.is_none() || names(&of_a) != names(&of_b) {
        return Err(Refusal::Use(format!("A is of {}, B of {}", names(&of_a), names(&of_b))));
    }
    if let Some((found_a, found_b)) = found {
        let apart = of_a.iter().zip(&of_b).flat_map(|((_, a), (_, b))| differences(a, b));
        let notes = of_terms(found_a, found_b).into_iter().chain(apart).chain(doubts(a, b)).collect();
        return Ok(Comparison { notes, ..limits(found_a, found_b) });
    }
    let pairs = || of_a.iter().zip(&of_b);
    let by_runs = pairs().all(|((_, a), (_, b))| a.len().min(b.len()) >= RUNS);
    let parts = pairs().map(|((name, a), (_, b))| part(name, (a, b), by_runs)).collect::<Result<_, _>>()?;
    let method = match by_runs {
        true => format!("Welch's t over {} and {} runs", of_a[0].1.len(), of_b[0].1.len()),
        false => {
            "bootstrap over slices of time, in blocks; it does not see what differs from run to run (--repeat 5)".into()
        }
    };
    Ok(Comparison { method, parts, notes: doubts(a, b) })
}

/// The reports of each workload, those beside others too.
fn workloads(series: &Series) -> Vec<(&str, Vec<&Report>)> {
    let mut found: Vec<(&str, Vec<&Report>)> = Vec::new();
    for report in series.runs.iter().flat_map(|run| std::iter::once(run).chain(&run.beside)) {
        match found.iter_mut().find(|(name, _)| *name == report.workload) {
            Some((_, known)) => known.push(report),
            None => found.push((&report.workload, vec![report])),
        }
    }
    found
}

/// Of two searches: each limit lies between a rate that held and one that did not, and so does their ratio.
fn limits(a: &Found, b: &Found) -> Comparison {
    let (least, most) = (b.rate / a.not.unwrap_or(f64::INFINITY), b.not.unwrap_or(f64::INFINITY) / a.rate);
    let limit = Figure { name: "limit /s", a: a.rate, b: b.rate, ratio: b.rate / a.rate, low: least, high: most };
    let method = "each limit lies between the highest rate that held and the lowest that did not; what differs from run to run is not \
                  in that"
        .to_owned();
    let part = Part {
        workload: "search".to_owned(),
        offered: false,
        interval: "least to most",
        notes: vec![],
        figures: vec![limit],
    };
    Comparison { method, parts: vec![part], notes: vec![] }
}

const NAMES: [&str; 6] = ["iterations/s", "mean ms", "p50 ms", "p95 ms", "p99 ms", "came out well %"];

/// One value for each of the names. Without any iteration there is no latency, which is not a latency of zero.
type Row = [f64; 6];

fn part(name: &str, (a, b): (&[&Report], &[&Report]), by_runs: bool) -> Result<Part, Refusal> {
    let (of_a, of_b, intervals) = if by_runs { over_runs(a, b) } else { over_slices(a, b)? };
    let figure = |at: usize| {
        let (a, b, (low, high)) = (of_a[at], of_b[at], intervals[at]);
        Figure { name: NAMES[at], a, b, ratio: b / a, low, high }
    };
    let sides = [("A", a), ("B", b)];
    let idle = |runs: &[&Report]| match by_runs {
        true => runs.iter().any(|run| run.iterations == 0),
        false => runs.iter().all(|run| run.iterations == 0),
    };
    let idle = sides.iter().filter(|(_, runs)| idle(runs));
    let paces = sides.map(|(_, runs)| runs.first().map_or("", |run| run.pace.as_str()));
    let apart = (paces[0] != paces[1])
        .then(|| format!("A is of a {}, B of a {}: that is not the same load.", paces[0], paces[1]));
    let smooth = |run: &&Report| run.is_open() && run.unanswered() == 0;
    Ok(Part {
        workload: name.to_owned(),
        offered: sides.iter().all(|(_, runs)| runs.iter().all(smooth)),
        interval: "95 % interval",
        notes: idle
            .map(|(side, _)| format!("{side} has a run in which nothing came out well: latencies are not compared."))
            .chain(apart)
            .chain(differences(a, b))
            .collect(),
        figures: (0..NAMES.len()).map(figure).filter(|figure| !figure.ratio.is_nan()).collect(),
    })
}

type Intervals = [(f64, f64); 6];

fn over_runs(a: &[&Report], b: &[&Report]) -> (Row, Row, Intervals) {
    let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(|r| of_run(r)).collect(), b.iter().map(|r| of_run(r)).collect());
    let of = |runs: &[Row], at: usize| Mean::of(&runs.iter().map(|run| run[at]).collect::<Vec<_>>());
    let intervals = std::array::from_fn(|at| welch(&of(&a, at), &of(&b, at)));
    (std::array::from_fn(|at| of(&a, at).mean), std::array::from_fn(|at| of(&b, at).mean), intervals)
}

fn of_run(report: &Report) -> Row {
    let latency = &report.latency;
    let [mean, p50, p95, p99] = match report.iterations {
        0 => [f64::NAN; 4],
        _ => [latency.mean, latency.p50, latency.p95, latency.p99],
    };
    // Who is under way at the end of a closed loop has done nothing wrong.
    let missing = if report.is_open() { report.unanswered() } else { report.failed + report.refused };
    let well = share(report.iterations as f64, (report.iterations + missing) as f64);
    [report.iterations_per_second, mean, p50, p95, p99, well]
}

/// In per cent; of nothing, nothing came out well.
fn share(done: f64, due: f64) -> f64 {
    if due > 0.0 { done / due * 100.0 } else { 0.0 }
}

fn over_slices(a: &[&Report], b: &[&Report]) -> Result<(Row, Row, Intervals), Refusal> {
    let mut rng = fastrand::Rng::with_seed(20);
    let (a, b) = (slices(a)?, slices(b)?);
    let block = |count: usize| (count as f64).cbrt().round() as usize;
    let (of_a, of_b) = (block(a.len()), block(b.len()));
    let mut once = || ratios(of_slices(&drawn(&a, of_a, &mut rng)), of_slices(&drawn(&b, of_b, &mut rng)));
    let drawn: Vec<_> = (0..DRAWS).map(|_| once()).collect();
    let interval = |at: usize| {
        let mut column: Vec<f64> = drawn.iter().map(|row| row[at]).filter(|ratio| !ratio.is_nan()).collect();
        column.sort_by(f64::total_cmp);
        (percentile(&column, TAIL), percentile(&column, 1.0 - TAIL))
    };
    Ok((of_slices(&a), of_slices(&b), std::array::from_fn(interval)))
}

/// A slice, and how many iterations were due in it.
type Piece<'a> = (&'a Slice, f64);

fn slices<'a>(reports: &[&'a Report]) -> Result<Vec<Piece<'a>>, Refusal> {
    let slices: Vec<_> = reports.iter().flat_map(|report| pieces(report)).collect();
    match slices.len() {
        0..2 => Err(Refusal::Use(format!("too little to compare: {RUNS} runs of each are needed, or a timeline"))),
        _ => Ok(slices),
    }
}

/// The slices of a run. Which of them had what never ended is not known: it is spread by what each lacks of its rate, and no more
/// than there was, since starts are not as even as their rate.
fn pieces(report: &Report) -> Vec<Piece<'_>> {
    let ended = |slice: &Slice| (slice.done + slice.failed + slice.refused) as f64;
    let lacks = |slice: &Slice| (slice.level * slice.seconds - ended(slice)).max(0.0);
    let all: f64 = report.timeline.iter().map(lacks).sum();
    let unfinished = if report.is_open() { report.unfinished as f64 } else { 0.0 };
    let part = |slice: &Slice| match all > 0.0 {
        true => lacks(slice) / all,
        false => 1.0 / report.timeline.len() as f64,
    };
    report.timeline.iter().map(|slice| (slice, ended(slice) + unfinished * part(slice))).collect()
}

fn of_slices(slices: &[Piece<'_>]) -> Row {
    let mut all = Sketch::default();
    let (mut seconds, mut due, mut managed) = (0.0, 0.0, 0);
    for (slice, due_in_it) in slices {
        all.merge(&slice.latencies);
        managed += slice.managed();
        seconds += slice.seconds;
        due += due_in_it;
    }
    let count = all.count() as f64;
    let [mean, p50, p95, p99] = match all.count() {
        0 => [f64::NAN; 4],
        _ => [all.mean(), all.quantile(0.5), all.quantile(0.95), all.quantile(0.99)],
    };
    [managed as f64 / seconds, mean, p50, p95, p99, share(count, due)]
}

/// As many as there are, drawn with replacement in blocks of neighbours.
fn drawn<T: Clone>(from: &[T], block: usize, rng: &mut fastrand::Rng) -> Vec<T> {
    let mut drawn = Vec::with_capacity(from.len() + block);
    while drawn.len() < from.len() {
        let first = rng.usize(..from.len());
        drawn.extend((first..first + block.max(1)).map(|at| from[at % from.len()].clone()));
    }
    drawn.truncate(from.len());
    drawn
}

fn ratios(a: Row, b: Row) -> Row {
    std::array::from_fn(|at| b[at] / a[at])
}

/// Of sorted values; 1 when there is none.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(1.0)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Part { workload, offered, interval, notes, figures } in &self.parts {
            writeln!(f, "{workload:20}{:>12}{:>12}{:>9}   {interval}", "A", "B", "B / A")?;
            for figure in figures {
                let Figure { name, a, b, ratio, low, high } = figure;
                let verdict = match figure.differs() {
                    true if *ratio > 1.0 => "B is higher",
                    true => "B is lower",
                    false => "no difference shown",
                };
                writeln!(f, "{name:20}{a:>12.2}{b:>12.2}{ratio:>9.3}   {low:.3} to {high:.3}   {verdict}")?;
            }
            if *offered {
                writeln!(f, "Both are open loops in which nothing failed: the rate is what was offered.")?;
            }
            notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        writeln!(f, "Method: {}.", self.method)
    }
}

#[cfg(test)]
mod tests {
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
            report.iterations_per_second = all[0];
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
            // One of twenty is said to differ that does not: that is what an interval of 95 % says.
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
                assert!(
                    text.contains(&format!("{side} has a run in which nothing came out well: latencies")),
                    "{text}"
                );
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
            assert_eq!(
                (well.name, well.a, well.b, well.differs()),
                ("came out well %", 100.0, 50.0, true),
                "{comparison}"
            );
            assert!(!comparison.to_string().contains("the rate is what was offered"), "{comparison}");
        }
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
        // Red where a slice with fewer starts than the mean is charged the mean: by chance they are uneven.
        assert_eq!(of_slices(&slices(&[run]).unwrap())[5], 100.0);
        (run.iterations, run.unfinished) = (25, 75);
        assert_eq!(of_run(run)[5], 25.0);
        run.pace = "closed loop, 75 users, no pause".to_owned();
        assert_eq!(of_run(run)[5], 100.0);
    }

    #[test]
    fn a_sweep_is_not_compared() {
        let one = series(1, 100, 20, 1);
        let trial = crate::series::Trial { offered: 1.0, holds: None, report: one.runs[0].clone() };
        let sweep = Series { trials: vec![trial], ..one.clone() };
        for (a, b, side) in [(&sweep, &one, "A"), (&one, &sweep, "B"), (&sweep, &sweep, "A")] {
            let refusal = compare(a, b).unwrap_err();
            assert!(refusal.to_string().starts_with(&format!("{side} is a sweep")) && refusal.exit_code() == 2);
        }
    }

    #[test]
    fn two_searches_are_compared_by_what_held_and_what_did_not() {
        let found = |rate, not| Found { rate, not, p99_ms: 500.0, errors: 0.0, by_generator: false };
        let series = |found| Series { found: Some(found), ..Series::default() };
        let (a, b) = (series(found(100.0, Some(105.0))), series(found(102.0, Some(107.0))));
        assert!(!compare(&a, &b).unwrap().parts[0].figures[0].differs());
        let figure = compare(&a, &series(found(110.0, None))).unwrap().parts[0].figures[0].clone();
        assert!(figure.differs() && figure.high == f64::INFINITY);
        assert!(compare(&a, &Series::default()).is_err());
    }

    #[test]
    fn what_cannot_be_compared_is_one_line() {
        let (a, mut b) = (series(1, 10, 10, 1), series(1, 10, 10, 2));
        b.runs[0].workload = "w1".to_owned();
        assert_eq!(compare(&a, &b).unwrap_err().to_string(), "A is of jwks, B of w1");
        let mut short = a.clone();
        short.runs[0].timeline.clear();
        assert!(compare(&a, &short).unwrap_err().to_string().starts_with("too little to compare"));
    }
}
