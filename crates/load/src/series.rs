//! Several measurements: repeats and their spread; searches and sweeps, and their trials.

use crate::made::Made;
use crate::record::variation;
use crate::report::{Report, told};
use crate::search::{ENOUGH, Judged, in_percent};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The same measurement several times, or a search or a sweep with its trials.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// The name of several workloads together: `w3`, `w4` or `w6`; `None` for one, and in results from before this
    /// field.
    #[serde(default)]
    pub programme: Option<String>,
    /// Each run; of a search the one at the limit, of a sweep the one that its rates are based on.
    pub runs: Vec<Report>,
    /// How much the runs differ; `None` for fewer than two.
    pub spread: Option<Spread>,
    /// The rates that were offered, from the lowest to the highest.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// The result of a search.
    #[serde(default)]
    pub found: Option<Found>,
    /// Why a completed search found no rate, if so.
    #[serde(default)]
    pub found_none: Option<String>,
    /// Why it ended early, if it did.
    #[serde(default)]
    pub cut_short: Option<String>,
    /// Where, when and by which version it was measured.
    #[serde(default)]
    pub made: Option<Made>,
}

/// One rate of a search or a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Iterations per second.
    pub offered: f64,
    /// Whether the server kept the terms; `None` in a sweep, which has no terms.
    pub holds: Option<bool>,
    /// Which p99 decided that; `None` if there were more errors than allowed, in a sweep, and in older results.
    #[serde(default)]
    pub judged: Option<Judged>,
    /// What was measured at this rate.
    pub report: Report,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The highest rate that held.
    pub rate: f64,
    /// The lowest rate above it that did not hold; `None` if every rate held.
    pub not: Option<f64>,
    /// The 99th percentile that had to be kept, in milliseconds.
    pub p99_ms: f64,
    /// The share of errors that was allowed.
    pub errors: f64,
    /// Which p99 decided about the rate that held; `None` in results from before this field.
    #[serde(default)]
    pub judged: Option<Judged>,
    /// The iterations due in the trial that held or in the one that did not, whichever had fewer; `None` in results
    /// from before this field.
    #[serde(default)]
    pub due: Option<u64>,
    /// True if the generator was the bottleneck where the rate did not hold, or had too few users to tell: the limit
    /// may be the generator's.
    pub by_generator: bool,
}

/// Coefficients of variation over the runs, as shares; of several streams side by side, those of the most variable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of the iterations per second.
    pub rate: f64,
    /// Of the mean latency; `None` if fewer than two runs have one.
    pub mean: Option<f64>,
    /// Of the 99th percentile, likewise.
    pub p99: Option<f64>,
    /// True if mean and p99 of enough runs are close enough together to be quoted.
    pub accepted: bool,
}

impl Spread {
    /// The number of runs that a series needs to be accepted.
    pub const RUNS: usize = 3;

    /// Whether the runs differ too much, however many there are.
    pub fn is_noisy(&self) -> bool {
        let beyond = |value: Option<f64>, most: f64| value.is_some_and(|value| value >= most);
        beyond(self.mean, Series::MAX_MEAN) || beyond(self.p99, Series::MAX_P99)
    }

    /// Returns the verdict in a few words.
    pub fn verdict(&self) -> &'static str {
        match (self.accepted, self.is_noisy(), self.mean) {
            (true, ..) => "accepted",
            (false, true, _) => "noisy",
            (false, false, Some(_)) => "close together, and too few to be accepted",
            (false, false, None) => "too few in which anything came out well",
        }
    }

    /// Returns rate, mean and p99 in percent, as the text and the page show them.
    pub(crate) fn told(&self) -> [String; 3] {
        let told = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0));
        [Some(self.rate), self.mean, self.p99].map(told)
    }
}

impl Series {
    /// The most that the mean may vary.
    const MAX_MEAN: f64 = 0.03;
    /// The most that the 99th percentile may vary.
    const MAX_P99: f64 = 0.05;

    /// Combines runs into a series.
    pub fn of(runs: Vec<Report>) -> Series {
        let streams = runs.iter().map(|run| 1 + run.beside.len()).min().unwrap_or(0);
        let stream = |number: usize| {
            runs.iter().filter_map(move |run| if number == 0 { Some(run) } else { run.beside.get(number - 1) })
        };
        // A run without any successful iteration has a rate, but no latency, which is not a latency of zero.
        let lively = |number: usize| stream(number).filter(|run| run.iterations > 0);
        let most = |values: &dyn Fn(usize) -> Vec<f64>| {
            (0..streams).filter_map(|number| variation(&values(number))).reduce(f64::max)
        };
        let latency = |of: fn(&Report) -> f64| most(&|number| lively(number).map(of).collect());
        let (mean, p99) = (latency(|run| run.latency.mean), latency(|run| run.latency.p99));
        // A stream beside the first may be rare, and have nothing due in a short window.
        let counted = (0..streams).map(|number| lively(number).count()).filter(|count| *count > 0).min().unwrap_or(0);
        let spread = most(&|number| stream(number).map(|run| run.iterations_per_second).collect()).map(|rate| {
            let spread = Spread { rate, mean, p99, accepted: false };
            Spread { accepted: counted >= Spread::RUNS && mean.is_some() && !spread.is_noisy(), ..spread }
        });
        Series { runs, spread, ..Series::default() }
    }

    /// Returns what was measured, in a word: the programme, or the workload of the first run.
    pub fn title(&self) -> &str {
        let first = self.runs.first().or(self.trials.first().map(|trial| &trial.report));
        self.programme.as_deref().or(first.map(|run| run.workload.as_str())).unwrap_or("load")
    }

    /// Returns the URL that was measured: that of the first run.
    pub fn target(&self) -> Option<&str> {
        let first = self.runs.first().or(self.trials.first().map(|trial| &trial.report));
        first.map(|run| run.target.as_str())
    }

    /// Returns what a programme consists of: `w6: w1, w5`.
    fn makeup(&self) -> Option<String> {
        let reports = self.runs.iter().chain(self.trials.iter().map(|trial| &trial.report));
        let mut names: Vec<&str> = Vec::new();
        for report in reports.flat_map(|report| std::iter::once(report).chain(&report.beside)) {
            if !names.contains(&report.workload.as_str()) {
                names.push(&report.workload);
            }
        }
        self.programme.as_ref().map(|programme| format!("{programme}: {}", names.join(", ")))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { rate, not, p99_ms, errors, judged, due, by_generator } = self;
        let errors = in_percent(*errors);
        let digits = if *rate < 10.0 { 3 } else { 1 };
        let whose = judged.map(|judged| format!(" of {}", judged.whose())).unwrap_or_default();
        write!(
            f,
            "Holds {rate:.digits$} iterations/s with p99{whose} at or below {p99_ms} ms and {errors} % of errors or fewer; "
        )?;
        match not {
            Some(not) => writeln!(f, "does not hold {not:.digits$}.")?,
            None => writeln!(f, "no rate was found that it does not hold.")?,
        }
        if let Some(due) = due.filter(|due| *due < ENOUGH) {
            writeln!(
                f,
                "No more than {due} were due in a trial: the p99 of fewer than {ENOUGH} is the longest of them (--duration)."
            )?;
        }
        if *by_generator {
            writeln!(
                f,
                "That may be the limit of the generator, which was the bottleneck there or had no core (--threads, --vus, or a core of its own)."
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(makeup) = self.makeup() {
            writeln!(f, "{makeup}")?;
        }
        if let Some(found) = &self.found {
            write!(f, "{found}")?;
        }
        if let Some(why) = &self.found_none {
            writeln!(f, "Found none: {why}")?;
        }
        self.runs.iter().try_for_each(|run| write!(f, "{run}"))?;
        tables(&self.trials).iter().try_for_each(|table| write!(f, "{table}"))?;
        setbacks(&self.trials).iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if let Some(made) = &self.made {
            writeln!(f, "{made}")?;
        }
        if let Some(why) = &self.cut_short {
            writeln!(f, "Ended before its time: {why}")?;
        }
        let Some(spread) = self.spread else { return Ok(()) };
        let ([rate, mean, p99], verdict, runs) = (spread.told(), spread.verdict(), self.runs.len());
        writeln!(f, "{runs} runs vary by {rate} in rate, {mean} in mean, {p99} in p99: {verdict}")
    }
}

/// A table of figures by rate, as the text and the page show it.
pub(crate) struct Table {
    /// Names of the columns.
    pub head: Vec<&'static str>,
    /// One row for each rate, or for each stream beside it.
    pub rows: Vec<Vec<String>>,
}

/// The columns shown for each report.
const FIGURES: [&str; 7] = ["done/s", "failed", "refused", "unfinished", "p50 ms", "p95", "p99"];

fn figures(report: &Report) -> [String; 7] {
    let Report { iterations_per_second: done, failed, refused, unfinished, latency, .. } = report;
    let [p50, p95, p99] = [latency.p50, latency.p95, latency.p99].map(|value| told(report.iterations, value));
    [rate(*done), failed.to_string(), refused.to_string(), unfinished.to_string(), p50, p95, p99]
}

/// Formats a rate: with one decimal, or with three significant digits below ten.
pub(crate) fn rate(value: f64) -> String {
    let size = value.log10();
    let digits = if size < 1.0 && value > 0.0 { (2.0 - size.floor()).min(9.0) as usize } else { 1 };
    format!("{value:.digits$}")
}

/// Returns a table of the trials, and one of what ran beside them, if anything did.
pub(crate) fn tables(trials: &[Trial]) -> Vec<Table> {
    let row = |trial: &Trial, name: Option<&str>, report: &Report, remark: String| {
        let offered = rate(trial.offered);
        let cells = std::iter::once(offered).chain(name.map(str::to_owned)).chain(figures(report));
        cells.chain([remark]).collect::<Vec<_>>()
    };
    let head = |name: Option<&'static str>| {
        let names = std::iter::once("offered/s").chain(name).chain(FIGURES);
        names.chain([""]).collect::<Vec<_>>()
    };
    let own = trials.iter().map(|trial| row(trial, None, &trial.report, trial.remark()));
    let beside = trials.iter().flat_map(|trial| trial.report.beside.iter().map(move |report| (trial, report)));
    let beside = beside.map(|(trial, report)| row(trial, Some(&report.workload), report, String::new()));
    let tables = [(head(None), own.collect()), (head(Some("beside it")), beside.collect::<Vec<_>>())];
    tables.into_iter().map(|(head, rows)| Table { head, rows }).filter(|table| !table.rows.is_empty()).collect()
}

/// Lists the most frequent failures and refusals at each rate, and beside it.
pub(crate) fn setbacks(trials: &[Trial]) -> Vec<String> {
    /// The number of failures per trial, and of refusals.
    const SAID: usize = 2;
    let of = |trial: &Trial, beside: &str, report: &Report| {
        let line = |count: u64, what: String| format!("{}/s{beside}: {count} x {what}", rate(trial.offered));
        let failed = report.failures.iter().take(SAID).map(|one| line(one.count, one.to_string()));
        let refused = report.refusals.iter().take(SAID).map(|one| line(one.count, one.to_string()));
        failed.chain(refused).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for trial in trials {
        lines.extend(of(trial, "", &trial.report));
        for report in &trial.report.beside {
            lines.extend(of(trial, &format!(", {} beside it", report.workload), report));
        }
    }
    lines
}

impl Trial {
    /// Says whether it held, by which p99, and whether that says more about the generator than about the server.
    fn remark(&self) -> String {
        let verdict = self.holds.map(|holds| if holds { "holds" } else { "does not hold" });
        let judged = self.judged.map(|judged| judged.told(&self.report));
        let all = || std::iter::once(&self.report).chain(&self.report.beside);
        let due = self.report.due();
        let little = (verdict.is_some() && due < ENOUGH).then(|| format!("of {due} due"));
        let bound = all().any(|one| one.is_busy() || one.is_starved() && !one.is_kept_out());
        let bound = bound.then_some("generator bound");
        let taken = all().any(|one| one.is_kept_out() || one.is_disturbed()).then_some("cores taken by others");
        let late = all().any(Report::is_late).then_some("generator late");
        let few = all().any(Report::lacks_users).then_some("no user free");
        let means = all().any(Report::lacks_means).then_some("no port or file left");
        verdict
            .into_iter()
            .chain(judged.as_deref())
            .chain(little.as_deref())
            .chain(bound)
            .chain(taken)
            .chain(late)
            .chain(few)
            .chain(means)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0).max(self.head[at].len());
        let widths: Vec<usize> = (0..self.head.len()).map(|at| width(at).max(10)).collect();
        let head = self.head.iter().map(|name| (*name).to_owned()).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_lie_close_together_are_accepted() {
        let run = |millis: f64| {
            let mut run = crate::report::tests::report("jwks", 10, 10.0);
            (run.latency.mean, run.latency.p99) = (millis, millis);
            run
        };
        let verdict = |of: [f64; 3]| Series::of(of.map(run).to_vec()).spread.unwrap().accepted;
        assert!(verdict([10.0, 10.1, 10.2]) && !verdict([10.0, 10.5, 11.0]));
        assert_eq!(Series::of(vec![run(1.0)]).spread, None);
        let two = Series::of(vec![run(10.0), run(10.1)]).spread.unwrap();
        assert!(!two.accepted && !two.is_noisy() && two.verdict().contains("too few"));
        // Red where only the first stream is checked.
        let with = |millis: f64| Report { beside: vec![run(millis)], ..run(10.0) };
        let beside = Series::of(vec![with(10.0), with(13.0), with(10.0)]).spread.unwrap();
        assert!(beside.is_noisy() && beside.mean > Some(0.1), "{beside:?}");
    }

    /// Red where no latency counts as 0 ms: three runs that agree and one without any success would be noisy.
    #[test]
    fn a_run_without_any_success_has_no_part_in_the_spread_of_latencies() {
        let run = |count: u64| crate::report::tests::report("jwks", count, count as f64);
        let of = |counts: &[u64]| Series::of(counts.iter().map(|count| run(*count)).collect());
        let spread = of(&[10, 0, 10, 10]).spread.unwrap();
        let none = |share: Option<f64>| share.is_some_and(|share| share < 1e-9);
        assert!(none(spread.mean) && none(spread.p99) && spread.verdict() == "accepted", "{spread:?}");
        assert!(spread.rate > 0.5, "a rate of none is one: {spread:?}");
        let two = of(&[10, 0, 10]).spread.unwrap();
        assert!(!two.accepted && none(two.mean) && two.verdict().contains("too few to be accepted"), "{two:?}");
        let one = of(&[10, 0]);
        let (text, page) = (one.to_string(), crate::page::of(&one));
        assert!(text.contains("in rate, – in mean, – in p99: too few in which anything came out well"), "{text}");
        assert!(page.contains("– in mean and – in p99: too few"), "{page}");
        let read: Series = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        assert_eq!(read.spread.map(|spread| (spread.mean, spread.accepted)), Some((None, false)));
        assert_eq!(of(&[0, 0]).spread, None);
        // A stream beside the first may have nothing due.
        let with = |count: u64| Report { beside: vec![run(0), run(count)], ..run(10) };
        assert!(Series::of(vec![with(5), with(5), with(5)]).spread.unwrap().accepted);
        assert!(!Series::of(vec![with(5), with(5), with(0)]).spread.unwrap().accepted);
    }

    /// Red with one decimal for all: a table said that nothing was offered and something was done.
    #[test]
    fn a_low_rate_has_three_digits() {
        let rates = [0.0, 0.01234, 0.5, 4.0, 12.34, 1000.0].map(rate);
        assert_eq!(rates, ["0.0", "0.0123", "0.500", "4.00", "12.3", "1000.0"]);
    }

    #[test]
    fn trials_and_what_ran_beside_them_have_the_same_columns() {
        let trial = |offered, holds, busiest| {
            let mut report = crate::report::tests::report("w1", 10, 9.5);
            report.beside = vec![crate::report::tests::report("jwks", 3, 3.0)];
            report.generator_busiest = busiest;
            Trial { offered, holds, judged: None, report }
        };
        let series = Series { trials: vec![trial(5.0, Some(true), 0.1), trial(20.0, None, 0.99)], ..Series::default() };
        let text = series.to_string();
        let cells: Vec<Vec<_>> = text.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
        let figures = ["done/s", "failed", "refused", "unfinished", "p50", "ms", "p95", "p99"];
        assert_eq!(cells[0], [&["offered/s"][..], &figures].concat());
        assert_eq!(cells[1][..5], ["5.00", "9.50", "0", "0", "0"]);
        assert_eq!(cells[1][8..].join(" "), format!("holds, of {} due", series.trials[0].report.due()));
        assert_eq!(cells[2][8..].join(" "), "generator bound");
        assert_eq!(cells[3], [&["offered/s", "beside", "it"][..], &figures].concat());
        assert_eq!(
            (cells[4][..3].join(" "), cells[5][..3].join(" ")),
            ("5.00 jwks 3.00".into(), "20.0 jwks 3.00".into())
        );
        assert_eq!(cells.len(), 6);
        let mut few = trial(20.0, Some(false), 0.1);
        (few.report.waited_for_users, few.report.iterations) = (50, 500);
        assert_eq!(few.remark(), "does not hold, no user free");
        // Red without `is_kept_out`: a generator at 1 % of a core was reported as the bottleneck.
        (few.report.waited_for_users, few.report.generator_busiest, few.report.generator_waited) = (0, 0.01, Some(0.9));
        assert_eq!(few.remark(), "does not hold, cores taken by others");
    }

    /// Red without `judged`: the p99 printed beside a verdict need not be the one that decided it.
    #[test]
    fn a_verdict_says_whose_p99_it_goes_by() {
        // Three digits, as in a histogram.
        let report = crate::report::tests::report("jwks", 97, 97.0);
        let some = Report { failed: 3, p99_of_all: None, ..report.clone() };
        let remark = |holds, judged, report| Trial { offered: 1.0, holds: Some(holds), judged, report }.remark();
        assert_eq!(remark(true, Some(Judged::All), report), "holds, p99 of all 10.01 ms, of 97 due");
        assert_eq!(remark(true, Some(Judged::Answered), some.clone()), "holds, p99 of the answered 10.01 ms");
        assert_eq!(remark(false, None, some), "does not hold");
        let found = |judged| {
            let found =
                Found { rate: 9.0, not: None, p99_ms: 500.0, errors: 0.05, judged, due: Some(99), by_generator: false };
            found.to_string()
        };
        assert!(found(Some(Judged::Answered)).contains("with p99 of the answered at or below 500 ms and 5 % of"));
        assert!(
            found(Some(Judged::All)).contains("with p99 of all at or below") && found(None).contains("with p99 at")
        );
        // Red without `due`: the p99 of ninety-nine is just the slowest of them.
        assert!(found(None).contains("No more than 99 were due in a trial: the p99 of fewer than 100 is the longest"));
    }

    #[test]
    fn results_of_before_are_still_read() {
        let old = r#"{"runs":[{"workload":"jwks","target":"x","pace":"y","seconds":1,"iterations":1,
            "iterations_per_second":1,"requests":1,"requests_per_second":1,"failed":0,"refused":0,"unfinished":0,
            "latency":{"mean":1,"p50":1,"p90":1,"p95":1,"p99":1,"p999":1,"max":1},"steps":[],"failures":[],
            "generator_cores":null,"server":null}],"spread":null}"#;
        let read = serde_json::from_str::<Series>(old).unwrap();
        assert_eq!((read.runs[0].iterations, read.runs[0].refusals.len(), read.programme.as_deref()), (1, 0, None));
        assert_eq!(read.title(), "jwks");
    }
}
