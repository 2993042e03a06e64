//! Several measurements: repeats, and how far they lie apart; searches and sweeps, and their trials.

use crate::record::variation;
use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The same measurement several times; or a search or a sweep, with its trials.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Each run; of a search the one at the limit, of a sweep the one that its rates go by.
    pub runs: Vec<Report>,
    /// How far they lie apart; `None` for fewer than two.
    pub spread: Option<Spread>,
    /// Rates that were offered, from the lowest to the highest.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// What a search came to.
    #[serde(default)]
    pub found: Option<Found>,
}

/// One rate of a search or a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Iterations a second.
    pub offered: f64,
    /// Whether the server kept the terms; `None` in a sweep, which has none.
    pub holds: Option<bool>,
    /// What it did.
    pub report: Report,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The highest rate that held.
    pub rate: f64,
    /// The lowest one above it that did not; `None` when every rate held.
    pub not: Option<f64>,
    /// The 99th percentile that had to be kept, in milliseconds.
    pub p99_ms: f64,
    /// The share of errors that was borne.
    pub errors: f64,
    /// True when the generator was the bottleneck where it did not hold: the limit may be the generator's.
    pub by_generator: bool,
}

/// Coefficients of variation over the runs of a series, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of iterations a second.
    pub rate: f64,
    /// Of the mean latency.
    pub mean: f64,
    /// Of the 99th percentile.
    pub p99: f64,
    /// True when mean and p99 lie close enough together to be quoted; otherwise the series is noisy.
    pub accepted: bool,
}

impl Series {
    /// The most that the mean may vary.
    pub const MAX_MEAN: f64 = 0.03;
    /// The most that the 99th percentile may vary.
    pub const MAX_P99: f64 = 0.05;

    /// Puts runs together.
    pub fn of(runs: Vec<Report>) -> Series {
        let over = |value: fn(&Report) -> f64| variation(&runs.iter().map(value).collect::<Vec<_>>());
        let figures = (over(|r| r.iterations_per_second), over(|r| r.latency.mean), over(|r| r.latency.p99));
        let spread = match figures {
            (Some(rate), Some(mean), Some(p99)) => {
                Some(Spread { rate, mean, p99, accepted: mean < Self::MAX_MEAN && p99 < Self::MAX_P99 })
            }
            _ => None,
        };
        Series { runs, spread, ..Series::default() }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { rate, not, p99_ms, errors, by_generator } = self;
        let errors = errors * 100.0;
        write!(f, "Holds {rate:.1} iterations/s with p99 at or below {p99_ms} ms and {errors} % of errors or fewer; ")?;
        match not {
            Some(not) => writeln!(f, "does not hold {not:.1}.")?,
            None => writeln!(f, "no rate was found that it does not hold.")?,
        }
        if *by_generator {
            writeln!(f, "That may be the limit of the generator, which was the bottleneck there (--threads).")?;
        }
        Ok(())
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(found) = &self.found {
            write!(f, "{found}")?;
        }
        self.runs.iter().try_for_each(|run| write!(f, "{run}"))?;
        trials(f, &self.trials)?;
        let Some(Spread { rate, mean, p99, accepted }) = self.spread else { return Ok(()) };
        let verdict = if accepted { "accepted" } else { "noisy" };
        let runs = self.runs.len();
        let [rate, mean, p99] = [rate, mean, p99].map(|share| share * 100.0);
        writeln!(f, "{runs} runs vary by {rate:.1} % in rate, {mean:.1} % in mean, {p99:.1} % in p99: {verdict}")
    }
}

fn trials(f: &mut fmt::Formatter<'_>, trials: &[Trial]) -> fmt::Result {
    if trials.is_empty() {
        return Ok(());
    }
    let columns = ["done/s", "failed", "refused", "unfinished", "p50 ms", "p95", "p99", "beside p99"];
    write!(f, "{:>12}", "offered/s")?;
    columns.iter().try_for_each(|column| write!(f, "{column:>11}"))?;
    writeln!(f)?;
    for Trial { offered, holds, report } in trials {
        let Report { iterations_per_second, failed, refused, unfinished, latency, .. } = report;
        write!(f, "{offered:>12.1}{iterations_per_second:>11.1}{failed:>11}{refused:>11}{unfinished:>11}")?;
        [latency.p50, latency.p95, latency.p99].iter().try_for_each(|value| write!(f, "{value:>11.2}"))?;
        match report.beside.iter().map(|beside| beside.latency.p99).reduce(f64::max) {
            Some(beside) => write!(f, "{beside:>11.2}")?,
            None => write!(f, "{:>11}", "")?,
        }
        let verdict = holds.map_or("", |holds| if holds { "  holds" } else { "  does not" });
        let bound = if report.is_bound_by_generator() { "  generator bound" } else { "" };
        writeln!(f, "{verdict}{bound}")?;
    }
    Ok(())
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
    }

    #[test]
    fn results_of_before_are_still_read() {
        let old = r#"{"runs":[{"workload":"jwks","target":"x","pace":"y","seconds":1,"iterations":1,
            "iterations_per_second":1,"requests":1,"requests_per_second":1,"failed":0,"refused":0,"unfinished":0,
            "latency":{"mean":1,"p50":1,"p90":1,"p95":1,"p99":1,"p999":1,"max":1},"steps":[],"failures":[],
            "generator_cores":null,"server":null}],"spread":null}"#;
        assert_eq!(serde_json::from_str::<Series>(old).unwrap().runs[0].iterations, 1);
    }
}
