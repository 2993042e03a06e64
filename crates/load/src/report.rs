//! The result of a measurement: one structure, shown as an aligned table or written as JSON.

mod drift;
mod limits;
mod refusals;
mod under_way;

pub(crate) use drift::is_drift;
pub use refusals::Refusals;

use crate::plan::{Arrivals, Pace, Plan, Shape};
use crate::record::{Failed, Latencies, Record};
use crate::timeline::{Slice, slices};
use crate::visitor::{Scene, Step};
use drift::drift;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The note for a run whose server processes were named and ended before the run did.
const GONE: &str =
    "a process of --server-pid ended in the window: how much of the processors the server used is not known";

/// Elapsed time, and processor time spent in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Wall-clock time.
    pub time: Duration,
    /// By the generator itself, if it can be read.
    pub generator: Option<Duration>,
    /// By everything else on this machine, if it can be read: including the server, unless its processes were named.
    pub others: Option<Duration>,
    /// By others on the host, if this is a virtual machine: time of this machine's cores that it did not get.
    pub stolen: Option<Duration>,
    /// By the server, if its processes were named.
    pub server: Option<Duration>,
    /// True if one of those processes ended meanwhile: what they spent is then unknown.
    pub server_is_gone: bool,
    /// Responses to all plans that ran side by side.
    pub requests: u64,
    /// The length of the window, if the run ended early.
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
    /// Different accounts that people signed in with; `None` where nobody signs in, and in results from before this
    /// field.
    #[serde(default)]
    pub accounts: Option<usize>,
    /// Length of the window in seconds, without the warm-up.
    pub seconds: f64,
    /// Iterations that succeeded.
    pub iterations: u64,
    /// Successful iterations that ended in the window, per second. In an open loop with slow answers these are not the
    /// same as [`Report::iterations`], which counts those that were due in the window.
    pub iterations_per_second: f64,
    /// Responses received by iterations that ended in the window, including iterations that ended early.
    pub requests: u64,
    /// The same per second.
    pub requests_per_second: f64,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that the server refused with 503 or 429, and Retry-After.
    pub refused: u64,
    /// Iterations that were in flight at the end, or (open loop) due and not done in time.
    pub unfinished: u64,
    /// Starts of an open loop that found no free user: the latencies include their wait, which the generator caused.
    #[serde(default)]
    pub waited_for_users: u64,
    /// Connections made by the iterations counted in `requests`, whose latencies include the handshakes; `None` in
    /// results from before this field.
    #[serde(default)]
    pub connections_opened: Option<u64>,
    /// Pauses of 100 ms that a visitor made because no connection could be made: without them it would retry in a tight
    /// loop.
    #[serde(default)]
    pub rested: u64,
    /// Whole iterations that succeeded; in an open loop measured from their scheduled start.
    pub latency: Latency,
    /// The 99th percentile in milliseconds over all that was due, where iterations that failed, were refused or got no
    /// answer count as slower than any other. In a closed loop, those got no answer that were still under way and
    /// already older than that percentile. `None` where all those are more than 1 %, and in results from before this
    /// field.
    #[serde(default)]
    pub p99_of_all: Option<f64>,
    /// The steps, in order.
    pub steps: Vec<StepReport>,
    /// What failed, most frequent first.
    pub failures: Vec<Failure>,
    /// What was refused, most frequent first.
    #[serde(default)]
    pub refusals: Vec<Refusals>,
    /// Processors that the generator kept busy: 1 is one whole core. Of plans side by side only the first has it.
    pub generator_cores: Option<f64>,
    /// Processors that everything else on the generator's machine kept busy: other programs, and the server if it runs
    /// there, unless its processes were named. `None` where it cannot be read, in `beside`, and in results from before
    /// this field.
    #[serde(default)]
    pub others_cores: Option<f64>,
    /// Processors that the host of a virtual machine took from the generator's machine while there was work for them.
    /// `None` where it cannot be read, in `beside`, and in results from before this field, in which the others have it.
    #[serde(default)]
    pub stolen_cores: Option<f64>,
    /// The share of the window in which the busiest thread of the generator was on a processor.
    #[serde(default)]
    pub generator_busiest: f64,
    /// The share in which that thread was ready to run but had no processor; `None` where that cannot be read.
    #[serde(default = "nothing")]
    pub generator_waited: Option<f64>,
    /// The processor time that it took the generator to release a start of an open loop, in microseconds, beside what
    /// its users did; `None` in a closed loop, and in results from before this field.
    #[serde(default)]
    pub pacing_us: Option<f64>,
    /// How late those starts of an open loop were that found a free user; `None` in a closed loop, where no start found
    /// one, and in results from before this field.
    #[serde(default)]
    pub lateness: Option<Lateness>,
    /// What the server spent, if its processes were named. Of plans side by side only the first has it.
    pub server: Option<Server>,
    /// What a reader must know about how this was measured.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The window in slices.
    #[serde(default)]
    pub timeline: Vec<Slice>,
    /// The reports of plans that ran at the same time.
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
    /// 90 % of the latencies are at or below this.
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

/// The share that results from before the field became optional have where it could not be read.
fn nothing() -> Option<f64> {
    Some(0.0)
}

/// How late the generator itself was, in milliseconds: from when a start was due until it began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99 % of the starts were no later.
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
    /// Which step.
    pub step: Step,
    /// How often it was finished.
    pub count: u64,
    /// How often it was refused with 503 or 429, and Retry-After.
    pub refused: u64,
    /// How often it failed.
    pub failed: u64,
    /// How long it took when it was finished.
    pub latency: Latency,
    /// How long the refusals took.
    #[serde(default)]
    pub refusal: Latency,
}

/// One way in which iterations failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// In which step.
    pub step: Step,
    /// Status and error code, or a sentence.
    pub reason: String,
    /// What the first of them said beyond that, such as the user; `None` also in results from before this field.
    #[serde(default)]
    pub first: Option<String>,
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
    /// Responses (with those of `beside`) per second of its processor time; `None` if that time was too short to be
    /// read.
    pub requests_per_cpu_second: Option<f64>,
}

impl Report {
    /// A generator thread that is at least this busy has set the limit itself.
    const BOUND: f64 = 0.95;
    /// A generator that waits for a core for at least this share of the time measures its own wait. Beside the server
    /// on two cores it waits 40 % of the time in closed loops, which does no harm.
    const STARVED: f64 = 0.5;
    /// Below this share of a core, a generator that lacks a core is not itself the one that used too much.
    const IDLE: f64 = 0.1;
    /// From this share on, the wait is reported in a sentence.
    const WAITS: f64 = 0.1;
    /// From this share of the p99 on, the generator's own lateness is reported in a sentence.
    const LATE: f64 = 0.1;
    /// The share of starts that may find no free user.
    const MAY_WAIT: f64 = 0.01;

    /// Builds a report from a record.
    pub fn of(scene: &Scene, record: Record, spent: Spent) -> Report {
        let plan = &scene.plan;
        let none_ended = (record.is_empty() && record.unfinished > 0).then(|| none_ended(scene, &spent));
        let record = record.with_cut_if_empty();
        // The window is exact; processor times are read slightly late at both ends, so they are divided by their own
        // time.
        let window = spent.cut.unwrap_or(plan.duration);
        let seconds = window.as_secs_f64();
        let cores = |cpu: Duration| cpu.as_secs_f64() / spent.time.as_secs_f64();
        let iterations = record.iterations.count();
        let (failed, refused): (u64, u64) = (
            record.failed.values().map(|failed| failed.count).sum(),
            record.refused.values().map(Latencies::count).sum(),
        );
        let unfinished = match &scene.schedule {
            None => record.unfinished,
            Some(schedule) => schedule.due_within(plan.warmup + window).saturating_sub(iterations + failed + refused),
        };
        // An iteration in flight at the end of a closed loop is not late by that alone.
        let late = match plan.pace {
            Pace::Open { .. } => unfinished,
            Pace::Closed { .. } => under_way::late(&record, failed + refused),
        };
        let server = spent.server.map(|cpu| Server {
            cpu_seconds: cpu.as_secs_f64(),
            cores: cores(cpu),
            requests_per_cpu_second: (!cpu.is_zero()).then(|| spent.requests as f64 / seconds / cores(cpu)),
        });
        let gone = spent.server_is_gone.then(|| GONE.to_owned());
        let timeline = slices(plan, &record.slices, window);
        let beyond = beyond_figures(&record, &timeline);
        Report {
            workload: plan.name(),
            target: plan.target.to_string().trim_end_matches('/').to_owned(),
            pace: pace(plan),
            accounts: plan.accounts(),
            seconds,
            iterations,
            iterations_per_second: record.ended as f64 / seconds,
            requests: record.requests,
            requests_per_second: record.requests as f64 / seconds,
            failed,
            refused,
            unfinished,
            waited_for_users: record.waited,
            connections_opened: Some(record.connections),
            rested: record.rested,
            latency: Latency::from(&record.iterations),
            p99_of_all: p99_of_all(&record.iterations, failed + refused + late),
            steps: scene.steps().into_iter().map(|step| StepReport::of(step, &record)).collect(),
            timeline,
            generator_busiest: record.busy.running,
            generator_waited: record.busy.waiting,
            pacing_us: record.paced.each_us(),
            lateness: Lateness::of(&record.lateness),
            refusals: Refusals::of(&record),
            failures: failures(record),
            generator_cores: spent.generator.map(cores),
            others_cores: spent.others.map(cores),
            stolen_cores: spent.stolen.map(cores),
            server,
            notes: scene.notes.iter().cloned().chain(gone).chain(none_ended).chain(beyond).collect(),
            beside: Vec::new(),
        }
    }

    /// True for an open loop.
    pub fn is_open(&self) -> bool {
        self.pace.starts_with("open loop")
    }

    /// Returns the iterations that were due, or had begun, and did not succeed.
    pub fn unanswered(&self) -> u64 {
        self.failed + self.refused + self.unfinished
    }

    /// Returns all iterations that were due, or had begun.
    pub fn due(&self) -> u64 {
        self.iterations + self.unanswered()
    }

    /// Returns the share of all iterations that did not succeed.
    pub fn error_rate(&self) -> f64 {
        let all = self.due();
        if all == 0 { 0.0 } else { self.unanswered() as f64 / all as f64 }
    }
}

/// Describes the load: the pace of a plan, its shape, and how its starts are spaced.
fn pace(plan: &Plan) -> String {
    let shape = match plan.shape {
        Shape::Steady => String::new(),
        Shape::Ramp(time) => format!(", climbing for {time:?}"),
        Shape::Day => ", a day with its morning".to_owned(),
    };
    let arrivals = match (plan.pace, plan.arrivals) {
        (Pace::Open { .. }, Arrivals::Poisson) => ", by chance",
        _ => "",
    };
    format!("{}{shape}{arrivals}", plan.pace)
}

/// Says what the figures of a whole run do not show: what never ended, and how the run changed.
fn beyond_figures(record: &Record, timeline: &[Slice]) -> Vec<String> {
    [under_way::told(record), drift(timeline)].into_iter().flatten().collect()
}

/// Advises what to do when no iteration ended in the window.
fn none_ended(scene: &Scene, spent: &Spent) -> String {
    let window = spent.cut.map_or(scene.plan.duration, |cut| Duration::from_millis(cut.as_millis() as u64));
    let first = scene.first.map(|took| format!(" (the first, alone, took {:.2} s)", took.as_secs_f64()));
    format!(
        "no iteration ended in the window of {window:?}: requests and steps are of those under way; an iteration takes longer{}: \
         raise --duration, or lower --vus",
        first.unwrap_or_default()
    )
}

/// Returns the 99th percentile over the answered iterations and `missing` ones that were never answered.
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
            failed: record.failed.iter().filter(|((at, _), _)| *at == step).map(|(_, failed)| failed.count).sum(),
            latency: Latency::from(&latencies),
            refusal: Latency::from(&refusals),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step.name(), self.reason)?;
        self.first.as_ref().map_or(Ok(()), |first| write!(f, ", first {first}"))
    }
}

fn failures(record: Record) -> Vec<Failure> {
    let each = record.failed.into_iter();
    let mut failures: Vec<_> =
        each.map(|((step, reason), Failed { count, first })| Failure { step, reason, first, count }).collect();
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
        if let Some(cores) = self.stolen() {
            writeln!(f, "{cores:>12.2} cores taken by the host (steal)")?;
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
        // With a single step, its row would repeat the one above.
        let several = |step: &&StepReport| self.steps.len() > 1 && step.count + step.failed + step.refused > 0;
        for step in self.steps.iter().filter(several) {
            row(f, step.step.name(), step.count, &step.latency)?;
        }
        for failure in &self.failures {
            writeln!(f, "{:>12} x {failure}", failure.count)?;
        }
        for refusal in &self.refusals {
            writeln!(f, "{:>12} x {refusal}", refusal.count)?;
        }
        self.beside.iter().try_for_each(|report| write!(f, "beside it: {report}"))
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, latency: &Latency) -> fmt::Result {
    write!(f, "{name:20}{count:>10}")?;
    let Latency { mean, p50, p90, p95, p99, p999, max } = *latency;
    [mean, p50, p90, p95, p99, p999, max].iter().try_for_each(|value| write!(f, "{:>10}", told(count, *value)))?;
    writeln!(f)
}

/// Formats a latency in milliseconds over `count` values. Without values it is a dash, not zero.
pub(crate) fn told(count: u64, millis: f64) -> String {
    if count > 0 { format!("{millis:.2}") } else { "–".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests;
