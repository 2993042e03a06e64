//! What is said afterwards: one structure, shown as an aligned table or written as JSON.

mod limits;
mod refusals;

pub use refusals::Refusals;

use crate::plan::{Arrivals, Pace, Shape};
use crate::record::{Latencies, Record};
use crate::timeline::{Sketch, Slice, slices};
use crate::visitor::{Scene, Step};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What is said where the server's own processes were named and are not there any more.
const GONE: &str =
    "a process of --server-pid ended in the window: how much of the processors the server used is not known";

/// Time that passed, and processor time spent in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// On the clock.
    pub time: Duration,
    /// By the generator itself, where it can be read.
    pub generator: Option<Duration>,
    /// By all else on this machine, where it can be read: also by the server, unless its processes were named.
    pub others: Option<Duration>,
    /// By the server, when its processes were named.
    pub server: Option<Duration>,
    /// True when one of those ended meanwhile: what they spent is not known.
    pub server_is_gone: bool,
    /// Responses to all that ran side by side.
    pub requests: u64,
    /// How long the window was, where it ended before its time.
    pub cut: Option<Duration>,
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
    /// Different accounts that people signed in with; `None` where nobody does, and in a result of before this was told.
    #[serde(default)]
    pub accounts: Option<usize>,
    /// Length of the window in seconds; the warm-up is not in it.
    pub seconds: f64,
    /// Iterations without a setback.
    pub iterations: u64,
    /// Iterations without a setback that ended in the window, a second: in an open loop others than [`Report::iterations`], which
    /// are those that were due in it, where answers take long.
    pub iterations_per_second: f64,
    /// Responses to iterations that ended in the window, also to those that ended early.
    pub requests: u64,
    /// Those, a second.
    pub requests_per_second: f64,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that the server refused with 503 or 429, and Retry-After.
    pub refused: u64,
    /// Iterations that were under way at the end, or (open loop) due and not done in time.
    pub unfinished: u64,
    /// Starts of an open loop that found no free user: their wait is in the latencies, and is the generator's.
    #[serde(default)]
    pub waited_for_users: u64,
    /// Connections that were made in those iterations, whose handshakes are in their latencies; `None` in a result of before this was
    /// told.
    #[serde(default)]
    pub connections_opened: Option<u64>,
    /// Pauses of 100 ms that a visitor made because no connection could be made: going on at once, it would only go round.
    #[serde(default)]
    pub rested: u64,
    /// Whole iterations without a setback; in an open loop from their scheduled start.
    pub latency: Latency,
    /// The 99th percentile in milliseconds over all that was due, where what failed, was refused or was not answered is later than
    /// anything; `None` where that is more than 1 %, and in a result of before this was told.
    #[serde(default)]
    pub p99_of_all: Option<f64>,
    /// The steps, in order.
    pub steps: Vec<StepReport>,
    /// What failed, most frequent first.
    pub failures: Vec<Failure>,
    /// What was refused, most frequent first.
    #[serde(default)]
    pub refusals: Vec<Refusals>,
    /// Processors that the generator kept busy: 1 is one whole core; of what runs side by side the first one says it.
    pub generator_cores: Option<f64>,
    /// Processors that all else on the generator's machine kept busy: other programs, and the server where it is there, unless its
    /// processes were named. `None` where that cannot be read, of what ran beside, and in a result of before this was told.
    #[serde(default)]
    pub others_cores: Option<f64>,
    /// The share of the window in which the busiest thread of the generator was on a processor.
    #[serde(default)]
    pub generator_busiest: f64,
    /// The share in which that thread was ready and others had the processors; `None` where that cannot be read.
    #[serde(default = "nothing")]
    pub generator_waited: Option<f64>,
    /// How late the starts of an open loop began that found a free user; `None` in a closed loop, where none did, and in a result of
    /// before this was told.
    #[serde(default)]
    pub lateness: Option<Lateness>,
    /// What the server spent, when its processes were named; of what runs side by side the first one says it.
    pub server: Option<Server>,
    /// What has to be known about how it was measured.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The window in slices.
    #[serde(default)]
    pub timeline: Vec<Slice>,
    /// What ran at the same time.
    #[serde(default)]
    pub beside: Vec<Report>,
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

/// What a result of before has for a share that could not be read.
fn nothing() -> Option<f64> {
    Some(0.0)
}

/// How late the generator itself was, in milliseconds: from when a start was due until it began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99 % were no later.
    pub p99: f64,
}

impl Lateness {
    fn of(all: &Latencies) -> Option<Lateness> {
        (all.count() > 0).then(|| Lateness { p50: all.quantile(0.5), p99: all.quantile(0.99) })
    }
}

/// One step of the iterations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// Which.
    pub step: Step,
    /// How often it was finished.
    pub count: u64,
    /// How often it was refused with 503 or 429, and Retry-After.
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
    /// Responses for each second of its processor time, those of what ran beside it too; `None` when that was too short to be read.
    pub requests_per_cpu_second: Option<f64>,
}

impl Report {
    /// How busy a thread of the generator has to be to have set the limit itself.
    const BOUND: f64 = 0.95;
    /// The share of the time without a core from which on a generator measures its own wait. Beside the server on two cores it waits
    /// for 40 % of the time in closed loops, and is none the worse for it.
    const STARVED: f64 = 0.5;
    /// The share of a core below which a generator that has none is not itself what was too much.
    const IDLE: f64 = 0.1;
    /// The share from which on the wait is worth a sentence.
    const WAITS: f64 = 0.1;
    /// The share of the p99 from which on the generator's own lateness is worth a sentence.
    const LATE: f64 = 0.1;
    /// The share of starts that may find no free user.
    const MAY_WAIT: f64 = 0.01;

    /// Makes a report of what was recorded.
    pub fn of(scene: &Scene, record: Record, spent: Spent) -> Report {
        let plan = &scene.plan;
        let none_ended = (record.is_empty() && record.unfinished > 0).then(|| none_ended(scene, &spent));
        let record = record.with_cut_if_empty();
        // The window is exact; processor times are read a little late at both ends, so they become shares of their own time.
        let window = spent.cut.unwrap_or(plan.duration);
        let seconds = window.as_secs_f64();
        let requests_per_second = record.requests as f64 / seconds;
        let cores = |cpu: Duration| cpu.as_secs_f64() / spent.time.as_secs_f64();
        let iterations = record.iterations.count();
        let (failed, refused) = (record.failed.values().sum(), record.refused.values().map(Latencies::count).sum());
        let unfinished = match &scene.schedule {
            None => record.unfinished,
            Some(schedule) => schedule.due_within(plan.warmup + window).saturating_sub(iterations + failed + refused),
        };
        // Who is under way at the end of a closed loop is not late.
        let late = if matches!(plan.pace, Pace::Open { .. }) { unfinished } else { 0 };
        let shape = match plan.shape {
            Shape::Steady => String::new(),
            Shape::Ramp(time) => format!(", climbing for {time:?}"),
            Shape::Day => ", a day with its morning".to_owned(),
        };
        let arrivals = match (plan.pace, plan.arrivals) {
            (Pace::Open { .. }, Arrivals::Poisson) => ", by chance",
            _ => "",
        };
        let server = spent.server.map(|cpu| Server {
            cpu_seconds: cpu.as_secs_f64(),
            cores: cores(cpu),
            requests_per_cpu_second: (!cpu.is_zero()).then(|| spent.requests as f64 / seconds / cores(cpu)),
        });
        let gone = spent.server_is_gone.then(|| GONE.to_owned());
        Report {
            workload: plan.name(),
            target: plan.target.to_string().trim_end_matches('/').to_owned(),
            pace: format!("{}{shape}{arrivals}", plan.pace),
            accounts: plan.accounts(),
            seconds,
            iterations,
            iterations_per_second: record.ended as f64 / seconds,
            requests: record.requests,
            requests_per_second,
            failed,
            refused,
            unfinished,
            waited_for_users: record.waited,
            connections_opened: Some(record.connections),
            rested: record.rested,
            latency: Latency::from(&record.iterations),
            p99_of_all: p99_of_all(&record.iterations, failed + refused + late),
            steps: scene.steps().into_iter().map(|step| StepReport::of(step, &record)).collect(),
            timeline: slices(plan, &record.slices, window),
            generator_busiest: record.busy.running,
            generator_waited: record.busy.waiting,
            lateness: Lateness::of(&record.lateness),
            refusals: Refusals::of(&record),
            failures: failures(record),
            generator_cores: spent.generator.map(cores),
            others_cores: spent.others.map(cores),
            server,
            notes: scene.notes.iter().cloned().chain(gone).chain(none_ended).collect(),
            beside: Vec::new(),
        }
    }

    /// True for an open loop.
    pub fn is_open(&self) -> bool {
        self.pace.starts_with("open loop")
    }

    /// Iterations that were due, or begun, and did not come out well.
    pub fn unanswered(&self) -> u64 {
        self.failed + self.refused + self.unfinished
    }

    /// All that were due, or begun.
    pub fn due(&self) -> u64 {
        self.iterations + self.unanswered()
    }

    /// What did not come out well, as a share of all.
    pub fn error_rate(&self) -> f64 {
        let all = self.due();
        if all == 0 { 0.0 } else { self.unanswered() as f64 / all as f64 }
    }
}

/// What to do where the window was over before anything was.
fn none_ended(scene: &Scene, spent: &Spent) -> String {
    let window = spent.cut.map_or(scene.plan.duration, |cut| Duration::from_millis(cut.as_millis() as u64));
    let first = scene.first.map(|took| format!(" (the first, alone, took {:.2} s)", took.as_secs_f64()));
    format!(
        "no iteration ended in the window of {window:?}: requests and steps are of those under way; an iteration takes longer{}: \
         raise --duration, or lower --vus",
        first.unwrap_or_default()
    )
}

/// The 99th percentile over those that were answered and so many that never were.
fn p99_of_all(answered: &Latencies, missing: u64) -> Option<f64> {
    let (count, all) = (answered.count(), answered.count() + missing);
    (count > 0 && missing * 100 <= all).then(|| answered.quantile((0.99 * all as f64 / count as f64).min(1.0)))
}

impl StepReport {
    fn of(step: Step, record: &Record) -> Self {
        let latencies = record.steps.get(&step).cloned().unwrap_or_default();
        let mut refusals = Latencies::default();
        record.refused.iter().filter(|((at, _), _)| *at == step).for_each(|(_, one)| refusals.merge(one));
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step.name(), self.reason)
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
        if let Some(accounts) = self.accounts {
            let word = if accounts == 1 { "account" } else { "accounts" };
            writeln!(f, "{accounts:>12} {word} to sign in with")?;
        }
        writeln!(f, "{:>12.1} iterations/s {:>12.1} requests/s", self.iterations_per_second, self.requests_per_second)?;
        let Report { iterations, failed, refused, unfinished, .. } = self;
        writeln!(f, "{iterations:>12} done {failed:>10} failed {refused:>10} refused {unfinished:>10} unfinished")?;
        if let Some(opened) = self.connections_opened.filter(|opened| *opened > 0) {
            writeln!(f, "{opened:>12} connections made in the window, whose handshakes are in the latencies")?;
        }
        if let Some(cores) = self.generator_cores {
            write!(f, "{cores:>12.2} cores by the generator")?;
            match self.server {
                Some(server) => writeln!(f, ", {:.2} by the server ({:.2} s)", server.cores, server.cpu_seconds)?,
                None => writeln!(f)?,
            }
        }
        if let Some((cores, whose)) = self.others_told() {
            writeln!(f, "{cores:>12.2} cores by {whose}")?;
        }
        if let Some(waited) = self.wait_of_generator() {
            writeln!(f, "{waited:>12.1} % of the time the generator waited for a core")?;
        }
        if let Some(Lateness { p50, p99 }) = self.lateness {
            writeln!(f, "{p99:>12.2} ms late, p99, the generator began what found a free user, p50 {p50:.2}")?;
        }
        self.limits_of_generator().iter().chain(&self.notes).try_for_each(|note| writeln!(f, "{note}"))?;
        if let Some(rate) = self.server.and_then(|server| server.requests_per_cpu_second) {
            writeln!(f, "{rate:>12.0} requests per second of server CPU")?;
        }
        let columns = ["count", "mean ms", "p50", "p90", "p95", "p99", "p99.9", "max"];
        write!(f, "{:20}", "")?;
        columns.iter().try_for_each(|column| write!(f, "{column:>10}"))?;
        writeln!(f)?;
        row(f, "iteration", self.iterations, &self.latency)?;
        // A workload of one step would say the same twice.
        let several = |step: &&StepReport| self.steps.len() > 1 && step.count + step.failed + step.refused > 0;
        for step in self.steps.iter().filter(several) {
            row(f, step.step.name(), step.count, &step.latency)?;
        }
        drift(f, &self.timeline)?;
        for failure in &self.failures {
            writeln!(f, "{:>12} x {failure}", failure.count)?;
        }
        for refusal in &self.refusals {
            writeln!(f, "{:>12} x {refusal}", refusal.count)?;
        }
        self.beside.iter().try_for_each(|report| write!(f, "beside it: {report}"))
    }
}

/// How the last quarter of a long run differs from the first: what leaks or grows shows here.
fn drift(f: &mut fmt::Formatter<'_>, timeline: &[Slice]) -> fmt::Result {
    /// In seconds; a shorter run says little about it.
    const LONG: f64 = 60.0;
    let steady = timeline.windows(2).all(|pair| pair[0].level == pair[1].level);
    // One that was ended early may have fewer slices than quarters.
    if !steady || timeline.len() < 4 || timeline.iter().map(|slice| slice.seconds).sum::<f64>() < LONG {
        return Ok(());
    }
    let quarter = |slices: &[Slice]| {
        let (mut all, mut managed, mut seconds) = (Sketch::default(), 0, 0.0);
        for slice in slices {
            all.merge(&slice.latencies);
            managed += slice.managed();
            seconds += slice.seconds;
        }
        let [p50, p99] = [0.5, 0.99].map(|share| told(all.count(), all.quantile(share)));
        (managed as f64 / seconds, p50, p99)
    };
    let length = timeline.len() / 4;
    let (first, last) = (quarter(&timeline[..length]), quarter(&timeline[timeline.len() - length..]));
    write!(f, "first quarter {:.1}/s, p50 {} ms, p99 {} ms; ", first.0, first.1, first.2)?;
    writeln!(f, "last {:.1}/s, p50 {} ms, p99 {} ms", last.0, last.1, last.2)
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, latency: &Latency) -> fmt::Result {
    write!(f, "{name:20}{count:>10}")?;
    let Latency { mean, p50, p90, p95, p99, p999, max } = *latency;
    [mean, p50, p90, p95, p99, p999, max].iter().try_for_each(|value| write!(f, "{:>10}", told(count, *value)))?;
    writeln!(f)
}

/// A latency in milliseconds of so many. Nobody's latency is not zero.
pub(crate) fn told(count: u64, millis: f64) -> String {
    if count > 0 { format!("{millis:.2}") } else { "–".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests;
