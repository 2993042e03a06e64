//! What is said afterwards: one structure, shown as an aligned table or written as JSON.

use crate::plan::{Pace, Plan};
use crate::record::{Latencies, Record, variation};
use crate::run::counted_slots;
use crate::visitor::Step;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Time that passed, and processor time spent in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// On the clock.
    pub time: Duration,
    /// By the generator itself, where it can be read.
    pub generator: Option<Duration>,
    /// By the server, when its processes were named.
    pub server: Option<Duration>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`crate::plan::Workload::name`].
    pub workload: String,
    /// The base URL.
    pub target: String,
    /// Closed or open loop, and its numbers.
    pub pace: String,
    /// Length of the window in seconds; the warm-up is not in it.
    pub seconds: f64,
    /// Iterations without a setback.
    pub iterations: u64,
    /// Those, a second.
    pub iterations_per_second: f64,
    /// Responses received, also in iterations that ended early.
    pub requests: u64,
    /// Those, a second.
    pub requests_per_second: f64,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that the server refused with 503 and Retry-After.
    pub refused: u64,
    /// Iterations that were under way at the end, or (open loop) due and not done in time.
    pub unfinished: u64,
    /// Whole iterations without a setback; in an open loop from their scheduled start.
    pub latency: Latency,
    /// The steps, in order.
    pub steps: Vec<StepReport>,
    /// What failed, most frequent first.
    pub failures: Vec<Failure>,
    /// Processors that the generator kept busy: 1 is one whole core.
    pub generator_cores: Option<f64>,
    /// What the server spent, when its processes were named.
    pub server: Option<Server>,
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % stayed at or below.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl From<&Latencies> for Latency {
    fn from(all: &Latencies) -> Self {
        let [p50, p90, p95, p99, p999] = [0.5, 0.9, 0.95, 0.99, 0.999].map(|share| all.quantile(share));
        Latency { mean: all.mean(), p50, p90, p95, p99, p999, max: all.max() }
    }
}

/// One step of the iterations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// Which.
    pub step: Step,
    /// How often it was finished.
    pub count: u64,
    /// How often it was refused with 503 and Retry-After.
    pub refused: u64,
    /// How often it failed.
    pub failed: u64,
    /// How long it took.
    pub latency: Latency,
    /// How long a refusal took.
    #[serde(default)]
    pub refusal: Latency,
}

/// One way in which iterations failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Where.
    pub step: Step,
    /// Status and error code, or a sentence.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// What the server spent in the window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Processor time in seconds, user and system.
    pub cpu_seconds: f64,
    /// Processors that it kept busy.
    pub cores: f64,
    /// Responses for each second of its processor time; `None` when that was too short to be read.
    pub requests_per_cpu_second: Option<f64>,
}

impl Report {
    /// Makes a report of what was recorded.
    pub fn of(plan: &Plan, record: Record, spent: Spent) -> Report {
        // The window is exact; processor times are read a little late at both ends, so they become shares of their own time.
        let seconds = plan.duration.as_secs_f64();
        let requests_per_second = record.requests as f64 / seconds;
        let cores = |cpu: Duration| cpu.as_secs_f64() / spent.time.as_secs_f64();
        let iterations = record.iterations.count();
        let (failed, refused) = (record.failed.values().sum(), record.refused.values().map(Latencies::count).sum());
        let unfinished = match plan.pace {
            Pace::Closed { .. } => record.unfinished,
            Pace::Open { rate, .. } => {
                let slots = counted_slots(plan, rate);
                (slots.end - slots.start).saturating_sub(iterations + failed + refused)
            }
        };
        let server = spent.server.map(|cpu| Server {
            cpu_seconds: cpu.as_secs_f64(),
            cores: cores(cpu),
            requests_per_cpu_second: (!cpu.is_zero()).then(|| requests_per_second / cores(cpu)),
        });
        Report {
            workload: plan.workload.name().to_owned(),
            target: plan.target.origin(),
            pace: plan.pace.to_string(),
            seconds,
            iterations,
            iterations_per_second: iterations as f64 / seconds,
            requests: record.requests,
            requests_per_second,
            failed,
            refused,
            unfinished,
            latency: Latency::from(&record.iterations),
            steps: plan.workload.steps().iter().map(|step| StepReport::of(*step, &record)).collect(),
            failures: failures(record),
            generator_cores: spent.generator.map(cores),
            server,
        }
    }
}

impl StepReport {
    fn of(step: Step, record: &Record) -> Self {
        let latencies = record.steps.get(&step).cloned().unwrap_or_default();
        let refusals = record.refused.get(&step).cloned().unwrap_or_default();
        StepReport {
            step,
            count: latencies.count(),
            refused: refusals.count(),
            failed: record.failed.iter().filter(|((at, _), _)| *at == step).map(|(_, count)| count).sum(),
            latency: Latency::from(&latencies),
            refusal: Latency::from(&refusals),
        }
    }
}

fn failures(record: Record) -> Vec<Failure> {
    let mut failures: Vec<_> =
        record.failed.into_iter().map(|((step, reason), count)| Failure { step, reason, count }).collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    failures
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} at {}: {}, {:.1} s", self.workload, self.target, self.pace, self.seconds)?;
        writeln!(f, "{:>12.1} iterations/s {:>12.1} requests/s", self.iterations_per_second, self.requests_per_second)?;
        let Report { iterations, failed, refused, unfinished, .. } = self;
        writeln!(f, "{iterations:>12} done {failed:>10} failed {refused:>10} refused {unfinished:>10} unfinished")?;
        if let Some(cores) = self.generator_cores {
            write!(f, "{cores:>12.2} cores by the generator")?;
            match self.server {
                Some(server) => writeln!(f, ", {:.2} by the server ({:.2} s)", server.cores, server.cpu_seconds)?,
                None => writeln!(f)?,
            }
        }
        if let Some(rate) = self.server.and_then(|server| server.requests_per_cpu_second) {
            writeln!(f, "{rate:>12.0} requests per second of server CPU")?;
        }
        let columns = ["count", "mean ms", "p50", "p90", "p95", "p99", "p99.9", "max"];
        write!(f, "{:20}", "")?;
        columns.iter().try_for_each(|column| write!(f, "{column:>10}"))?;
        writeln!(f)?;
        row(f, "iteration", self.iterations, &self.latency)?;
        // A workload of one step would say the same twice.
        for step in self.steps.iter().filter(|_| self.steps.len() > 1) {
            row(f, step.step.name(), step.count, &step.latency)?;
        }
        for failure in &self.failures {
            writeln!(f, "{:>12} x {}: {}", failure.count, failure.step.name(), failure.reason)?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, latency: &Latency) -> fmt::Result {
    write!(f, "{name:20}{count:>10}")?;
    let Latency { mean, p50, p90, p95, p99, p999, max } = *latency;
    [mean, p50, p90, p95, p99, p999, max].iter().try_for_each(|value| write!(f, "{value:>10.2}"))?;
    writeln!(f)
}

/// The same measurement several times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Each run.
    pub runs: Vec<Report>,
    /// How far they lie apart; `None` for fewer than two.
    pub spread: Option<Spread>,
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
        Series { runs, spread }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runs.iter().try_for_each(|run| write!(f, "{run}"))?;
        let Some(Spread { rate, mean, p99, accepted }) = self.spread else { return Ok(()) };
        let verdict = if accepted { "accepted" } else { "noisy" };
        let runs = self.runs.len();
        let [rate, mean, p99] = [rate, mean, p99].map(|share| share * 100.0);
        writeln!(f, "{runs} runs vary by {rate:.1} % in rate, {mean:.1} % in mean, {p99:.1} % in p99: {verdict}")
    }
}
