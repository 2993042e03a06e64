//! Two results beside one another: how much faster, and how sure that is.
//!
//! The intervals are those of a bootstrap (Efron 1979): what was measured is drawn again with replacement, many times, and the
//! middle 95 % of the ratios that come out are the interval. Where there are enough runs, runs are drawn: they show how far
//! one run lies from the next. Otherwise slices of time are, in blocks, since a slice is like its neighbours (Künsch 1989);
//! that shows how much a run varies within itself, and is too sure of itself by what differs between runs.

use crate::Refusal;
use crate::report::Report;
use crate::series::{Found, Series};
use crate::timeline::{Sketch, Slice};
use serde::Serialize;
use std::fmt;

/// Runs of each that are enough to draw from.
const RUNS: usize = 5;
/// Times that is drawn.
const DRAWS: usize = 2000;
/// What lies outside of the interval, on each side.
const TAIL: f64 = 0.025;

/// B beside A.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was drawn, and what the intervals are worth.
    pub method: String,
    /// By workload.
    pub parts: Vec<Part>,
}

/// One workload.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Which.
    pub workload: String,
    /// True when both are open loops: their rates are what was offered.
    pub offered: bool,
    /// Rate and latencies.
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
/// [`Refusal::Use`] when they are not of the same workloads, or hold too little.
pub fn compare(a: &Series, b: &Series) -> Result<Comparison, Refusal> {
    match (&a.found, &b.found) {
        (Some(a), Some(b)) => return Ok(limits(a, b)),
        (None, None) => {}
        _ => return Err(Refusal::Use("one is a search, the other is not".to_owned())),
    }
    let (of_a, of_b) = (workloads(a), workloads(b));
    let names = |of: &[(&str, Vec<&Report>)]| of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if of_a.is_empty() || names(&of_a) != names(&of_b) {
        return Err(Refusal::Use(format!("A is of {}, B of {}", names(&of_a), names(&of_b))));
    }
    let pairs = || of_a.iter().zip(&of_b);
    let by_runs = pairs().all(|((_, a), (_, b))| a.len().min(b.len()) >= RUNS);
    let parts = pairs().map(|((name, a), (_, b))| part(name, (a, b), by_runs)).collect::<Result<_, _>>()?;
    let method = match by_runs {
        true => format!("bootstrap over {} and {} runs", of_a[0].1.len(), of_b[0].1.len()),
        false => {
            "bootstrap over slices of time, in blocks; it does not see what differs from run to run (--repeat 5)".into()
        }
    };
    Ok(Comparison { method, parts })
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
    let method = "each limit lies between the highest rate that held and the lowest that did not".to_owned();
    Comparison { method, parts: vec![Part { workload: "search".to_owned(), offered: false, figures: vec![limit] }] }
}

const NAMES: [&str; 5] = ["iterations/s", "mean ms", "p50 ms", "p95 ms", "p99 ms"];

fn part(name: &str, (a, b): (&[&Report], &[&Report]), by_runs: bool) -> Result<Part, Refusal> {
    let mut rng = fastrand::Rng::with_seed(20);
    let (drawn, figures) = if by_runs {
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(|r| of_run(r)).collect(), b.iter().map(|r| of_run(r)).collect());
        let mut once = || ratios(mean(&drawn(&a, 1, &mut rng)), mean(&drawn(&b, 1, &mut rng)));
        ((0..DRAWS).map(|_| once()).collect::<Vec<_>>(), (mean(&a), mean(&b)))
    } else {
        let (a, b) = (slices(a)?, slices(b)?);
        let block = |count: usize| (count as f64).cbrt().round() as usize;
        let (of_a, of_b) = (block(a.len()), block(b.len()));
        let mut once = || ratios(of_slices(&drawn(&a, of_a, &mut rng)), of_slices(&drawn(&b, of_b, &mut rng)));
        ((0..DRAWS).map(|_| once()).collect::<Vec<_>>(), (of_slices(&a), of_slices(&b)))
    };
    let figure = |at: usize| {
        let mut column: Vec<f64> = drawn.iter().map(|row| row[at]).filter(|ratio| ratio.is_finite()).collect();
        column.sort_by(f64::total_cmp);
        let (a, b) = (figures.0[at], figures.1[at]);
        let (low, high) = (percentile(&column, TAIL), percentile(&column, 1.0 - TAIL));
        Figure { name: NAMES[at], a, b, ratio: b / a, low, high }
    };
    let figures = (0..NAMES.len()).map(figure).filter(|figure| figure.ratio.is_finite()).collect();
    let offered = [a, b].iter().all(|runs| runs.iter().all(|run| run.pace.starts_with("open loop")));
    Ok(Part { workload: name.to_owned(), offered, figures })
}

fn of_run(report: &Report) -> [f64; 5] {
    let latency = &report.latency;
    [report.iterations_per_second, latency.mean, latency.p50, latency.p95, latency.p99]
}

fn mean(runs: &[[f64; 5]]) -> [f64; 5] {
    std::array::from_fn(|at| runs.iter().map(|run| run[at]).sum::<f64>() / runs.len() as f64)
}

fn slices<'a>(reports: &[&'a Report]) -> Result<Vec<&'a Slice>, Refusal> {
    let slices: Vec<_> = reports.iter().flat_map(|report| &report.timeline).collect();
    match slices.len() {
        0..2 => Err(Refusal::Use(format!("too little to compare: {RUNS} runs of each are needed, or a timeline"))),
        _ => Ok(slices),
    }
}

fn of_slices<S: std::borrow::Borrow<Slice>>(slices: &[S]) -> [f64; 5] {
    let mut all = Sketch::default();
    let mut seconds = 0.0;
    for slice in slices.iter().map(std::borrow::Borrow::borrow) {
        all.merge(&slice.latencies);
        seconds += slice.seconds;
    }
    [all.count() as f64 / seconds, all.mean(), all.quantile(0.5), all.quantile(0.95), all.quantile(0.99)]
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

fn ratios(a: [f64; 5], b: [f64; 5]) -> [f64; 5] {
    std::array::from_fn(|at| b[at] / a[at])
}

/// Of sorted values; 1 when there is none.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(1.0)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Part { workload, offered, figures } in &self.parts {
            writeln!(f, "{workload:20}{:>12}{:>12}{:>9}   95 % interval", "A", "B", "B / A")?;
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
                writeln!(f, "Both are open loops: the rate is what was offered.")?;
            }
        }
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
                    Slice { done, latencies, ..like.clone() }
                })
                .collect();
            let all: [f64; 5] = of_slices(&report.timeline);
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
            let comparison = compare(&series(runs, 100, 20, 1), &series(runs, 100, 20, 2)).unwrap();
            let names: Vec<_> = comparison.parts[0].figures.iter().map(|figure| figure.name).collect();
            assert_eq!(names, NAMES);
            let differing = comparison.parts[0].figures.iter().filter(|figure| figure.differs()).count();
            assert!(differing == 0, "{comparison}");
            assert!(comparison.to_string().contains("no difference shown"));
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
