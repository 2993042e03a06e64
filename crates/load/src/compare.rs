//! Compares two results: how much faster one is, and how certain that is.
//!
//! With enough runs, the intervals come from the differences between runs: Welch's t on the logarithm of the ratio of
//! the means, with the variances of the means by the delta method. Otherwise they come from a bootstrap (Efron 1979)
//! over slices of time: slices are drawn again with replacement, many times, and the middle 95 % of the resulting
//! ratios are the interval. They are drawn in blocks, because a slice resembles its neighbors (Künsch 1989). A
//! bootstrap shows how much a run varies within itself; it is too certain, because it misses what differs between runs.

use crate::Refusal;
use crate::doubts::{differences, doubts, of_terms};
use crate::report::Report;
use crate::series::{Found, Series};
use crate::timeline::{Sketch, Slice};
use crate::welch::{Mean, welch};
use serde::Serialize;
use std::fmt;

pub use crate::welch::student;

/// The number of non-empty slices that a side needs for a verdict: with fewer, most draws are alike, and none shows
/// what else might have happened.
const SLICES: usize = 5;
/// The iterations that a side (when comparing runs, each run) needs for a verdict on its p95 and its p99: with fewer,
/// that percentile is the longest latency or nearly so, and the mean of several longest latencies is not a percentile
/// either.
const TAILS: [u64; 2] = [20, 100];
/// The number of runs of each side that is enough for an interval over runs.
const RUNS: usize = 5;
/// The number of draws: fewer in tests, which compare many results and are not optimized.
const DRAWS: usize = if cfg!(test) { 400 } else { 2000 };
/// The share that lies outside of the interval, on each side.
const TAIL: f64 = 0.025;

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The file that it was read from, if any.
    pub file: Option<String>,
    /// The URL that was measured.
    pub target: Option<String>,
}

/// The comparison of B with A.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Side A.
    pub a: Side,
    /// Side B.
    pub b: Side,
    /// The programme that the workloads belong to, if both sides have the same: `w3` or `w6`.
    pub programme: Option<String>,
    /// How the intervals were computed, and what they are worth.
    pub method: String,
    /// The comparison of each workload.
    pub parts: Vec<Part>,
    /// What makes a side worth less than it looks.
    pub notes: Vec<String>,
}

/// The comparison of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// The name of the workload.
    pub workload: String,
    /// True if both are open loops in which nothing failed: their rates are what was offered.
    pub offered: bool,
    /// What the ends of its figures' intervals mean: 95 %, or the least and the most that two searches leave open.
    pub interval: &'static str,
    /// What could not be compared.
    pub notes: Vec<String>,
    /// Rate, latencies, and the share that succeeded.
    pub figures: Vec<Figure>,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// The value of A.
    pub a: f64,
    /// The value of B.
    pub b: f64,
    /// The ratio of B to A.
    pub ratio: f64,
    /// The lower end of the ratio's interval; the interval is unbounded if there is too little data.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The interval of a figure with too little data to say anything.
const OPEN: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl Figure {
    /// Returns true if there was enough data for a verdict. An interval that covers 1 and has no end on a side shows
    /// nothing, not even that there is no difference. Ratios have no end at zero either: it is as far away as infinity.
    pub fn is_judged(&self) -> bool {
        self.differs() || (self.low > 0.0 && self.high.is_finite())
    }

    /// Returns true if the interval is known, and does not cover 1.
    pub fn differs(&self) -> bool {
        let is_known = !self.low.is_nan() && !self.high.is_nan();
        is_known && !(self.low..=self.high).contains(&1.0)
    }

    /// Returns the figure as it is; without an interval if there is no verdict.
    fn settled(self) -> Figure {
        let (low, high) = if self.is_judged() { (self.low, self.high) } else { OPEN };
        Figure { low, high, ..self }
    }
}

/// Compares `b` with `a`.
///
/// # Errors
/// [`Refusal::Use`] if the workloads differ, if a side holds too little, or if one is a sweep or a search that found
/// nothing.
pub fn compare(a: &Series, b: &Series) -> Result<Comparison, Refusal> {
    if let Some((name, _)) = [("A", a), ("B", b)].iter().find(|(_, one)| one.found.is_none() && !one.trials.is_empty())
    {
        let what = "a sweep over rates (w4), or a search that found none";
        let line = format!("{name} is {what}, and has no one figure: compare single rates, or searches that ended");
        return Err(Refusal::Use(line));
    }
    let (of_a, of_b) = (workloads(a), workloads(b));
    let holds_none = |(_, series, runs): &(&str, &Series, bool)| *runs && series.found.is_none();
    if let Some((name, ..)) = [("A", a, of_a.is_empty()), ("B", b, of_b.is_empty())].iter().find(|one| holds_none(one))
    {
        return Err(Refusal::Use(format!("{name} holds no runs")));
    }
    let names = |of: &[(&str, Vec<&Report>)]| of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = match (&a.found, &b.found) {
        (None, None) => None,
        (Some(of_a), Some(of_b)) => Some((of_a, of_b)),
        _ => return Err(Refusal::Use("one is a search, the other is not".to_owned())),
    };
    if names(&of_a) != names(&of_b) {
        let whole = |series: &Series, names: String| match &series.programme {
            Some(programme) => format!("{programme} ({names})"),
            None => names,
        };
        let (of_a, of_b) = (whole(a, names(&of_a)), whole(b, names(&of_b)));
        return Err(Refusal::Use(format!("A is of {of_a}, B of {of_b}")));
    }
    if let Some((found_a, found_b)) = found {
        let apart = of_a.iter().zip(&of_b).flat_map(|((_, a), (_, b))| differences(a, b));
        let notes = of_terms(found_a, found_b).into_iter().chain(apart).chain(doubts(a, b)).collect();
        return Ok(Comparison { a: Side::of(a), b: Side::of(b), notes, ..limits(found_a, found_b) });
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
    let programme = a.programme.clone().filter(|_| a.programme == b.programme);
    Ok(Comparison { a: Side::of(a), b: Side::of(b), programme, method, parts, notes: doubts(a, b) })
}

impl Side {
    fn of(series: &Series) -> Side {
        Side { file: None, target: series.target().map(str::to_owned) }
    }
}

/// Returns the reports of each workload, including those that ran beside others.
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

/// Compares two searches: each limit lies between a rate that held and one that did not, which bounds their ratio.
fn limits(a: &Found, b: &Found) -> Comparison {
    let (least, most) = (b.rate / a.not.unwrap_or(f64::INFINITY), b.not.unwrap_or(f64::INFINITY) / a.rate);
    let limit =
        Figure { name: "limit /s", a: a.rate, b: b.rate, ratio: b.rate / a.rate, low: least, high: most }.settled();
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
    let (a, b) = (Side::default(), Side::default());
    Comparison { a, b, programme: None, method, parts: vec![part], notes: vec![] }
}

const NAMES: [&str; 6] = ["iterations/s", "mean ms", "p50 ms", "p95 ms", "p99 ms", "came out well %"];

/// One value for each of `NAMES`. Without any iteration there is no latency, which is not a latency of zero.
type Row = [f64; 6];

fn part(name: &str, (a, b): (&[&Report], &[&Report]), by_runs: bool) -> Result<Part, Refusal> {
    let (of_a, of_b, intervals) = if by_runs { over_runs(a, b) } else { over_slices(a, b)? };
    let sides = [("A", a), ("B", b)];
    let thin = sides.map(|(side, runs)| (side, thin(runs, by_runs)));
    let figure = |at: usize| {
        let (low, high) = if thin.iter().any(|(_, thin)| thin[at]) { OPEN } else { intervals[at] };
        Figure { name: NAMES[at], a: of_a[at], b: of_b[at], ratio: of_b[at] / of_a[at], low, high }.settled()
    };
    let figures: Vec<_> = (0..NAMES.len()).map(figure).filter(|figure| !figure.ratio.is_nan()).collect();
    let few = thin.iter().filter_map(|(side, thin)| too_few(side, thin, &figures));
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
            .chain(few)
            .chain(apart)
            .chain(differences(a, b))
            .collect(),
        figures,
    })
}

/// Returns which figures a side has too little data for. If nothing succeeded, that alone is enough for a verdict.
fn thin(runs: &[&Report], by_runs: bool) -> [bool; 6] {
    let slices = || runs.iter().flat_map(|run| &run.timeline);
    let with = |count: fn(&Slice) -> u64| slices().filter(|slice| count(slice) > 0).count();
    let (well, ended) =
        (with(|slice| slice.latencies.count()), with(|slice| slice.done + slice.failed + slice.refused));
    let (few, few_ended) = (!by_runs && well < SLICES, !by_runs && (1..SLICES).contains(&ended));
    let count: u64 = match by_runs {
        true => runs.iter().map(|run| run.iterations).min().unwrap_or_default(),
        false => slices().map(|slice| slice.latencies.count()).sum(),
    };
    [false, few, few, few || count < TAILS[0], few || count < TAILS[1], few_ended]
}

/// Names the figures shown for which a side has too little data.
fn too_few(side: &str, thin: &[bool; 6], shown: &[Figure]) -> Option<String> {
    let names = NAMES.iter().zip(thin).filter(|(name, thin)| **thin && shown.iter().any(|one| one.name == **name));
    let names: Vec<_> = names.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("Too few came out well in {side} for a verdict on {}.", names.join(", ")))
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
    // An iteration in flight at the end of a closed loop has not failed.
    let missing = if report.is_open() { report.unanswered() } else { report.failed + report.refused };
    let well = share(report.iterations as f64, (report.iterations + missing) as f64);
    [report.iterations_per_second, mean, p50, p95, p99, well]
}

/// Returns a share in percent; zero if nothing was due.
fn share(done: f64, due: f64) -> f64 {
    if due > 0.0 { done / due * 100.0 } else { 0.0 }
}

fn over_slices(a: &[&Report], b: &[&Report]) -> Result<(Row, Row, Intervals), Refusal> {
    let mut rng = fastrand::Rng::with_seed(20);
    let (a, b) = (slices(a)?, slices(b)?);
    let block = |count: usize| (count as f64).cbrt().round() as usize;
    let (of_a, of_b) = (block(a.len()), block(b.len()));
    let mut once = || ratios(of_draw(&drawn(&a, of_a, &mut rng), &a), of_draw(&drawn(&b, of_b, &mut rng), &b));
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

/// Returns the slices of a run. It is not known in which of them the unfinished iterations were due: they are spread
/// according to how far each slice falls short of its rate, and no further, because starts are not as even as their
/// rate.
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

/// Returns the values of slices that were drawn from `all`. A draw in which nothing was due says nothing about the share
/// that came out well, unless nothing was due at all.
fn of_draw(drawn: &[Piece<'_>], all: &[Piece<'_>]) -> Row {
    let is_idle = |slices: &[Piece<'_>]| slices.iter().all(|(_, due)| *due == 0.0);
    let mut row = of_slices(drawn);
    if is_idle(drawn) && !is_idle(all) {
        row[NAMES.len() - 1] = f64::NAN;
    }
    row
}

/// Draws as many as there are, with replacement, in blocks of neighbors.
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

/// Returns a percentile of sorted values; not a number if there is none.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.as_deref().unwrap_or("unknown");
        match &self.file {
            Some(file) => write!(f, "{file} ({target})"),
            None => f.write_str(target),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A: {}\nB: {}", self.a, self.b)?;
        if let Some(programme) = &self.programme {
            let names: Vec<&str> = self.parts.iter().map(|part| part.workload.as_str()).collect();
            writeln!(f, "{programme}: {}", names.join(", "))?;
        }
        for Part { workload, offered, interval, notes, figures } in &self.parts {
            writeln!(f, "{workload:20}{:>12}{:>12}{:>9}   {interval}", "A", "B", "B / A")?;
            for figure in figures {
                let Figure { name, a, b, ratio, low, high } = figure;
                if !figure.is_judged() {
                    writeln!(f, "{name:20}{a:>12.2}{b:>12.2}{ratio:>9.3}   too few for a verdict")?;
                    continue;
                }
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
mod tests;
