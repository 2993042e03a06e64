//! The verification: the prediction, written down first, is compared with what a private server then does.

use super::demand::Operation;
use super::predict::{Generator, stations};
use super::probe::{Probes, Progress};
use super::simulate::{self, Outcome, Step, in_steps};
use crate::private::{Private, Setup};
use load::Refusal;
use load::interrupt::Interrupt;
use load::plan::{Arrivals, Pace, Plan, Workload};
use load::report::Report;
use load::run::run;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// How far throughput may be off.
const THROUGHPUT: f64 = 0.15;
/// How far a 95th percentile may be off.
const P95: f64 = 0.30;

/// Virtual users of a closed loop per core: enough to fill it.
const USERS: usize = 16;
/// The share of the predicted limit at which latencies are compared.
const SHARE: f64 = 0.5;
/// Operations per simulation: in a day's mix one in twenty signs in, and a 95th percentile takes thousands of sign-ins.
const OPERATIONS: usize = 200_000;

/// One run, predicted before it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The workload, as the load generator calls it.
    pub workload: String,
    /// Whether it is a closed or an open loop.
    pub pace: String,
    /// The rate that is offered; `None` in a closed loop.
    pub offered: Option<f64>,
    /// Virtual users; in an open loop the most at once.
    pub users: usize,
    /// The predicted result.
    pub predicted: Outcome,
    /// The prediction for each kind of request in it.
    pub steps: Vec<Step>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The workload and its pace.
    pub what: String,
    /// The name of the figure.
    pub figure: String,
    /// What was predicted.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
    /// How far the prediction may be off, as a share.
    pub allowed: f64,
}

impl Compared {
    /// Returns how far the prediction is off, as a share of the measurement.
    pub fn difference(&self) -> f64 {
        if self.measured > 0.0 { self.predicted / self.measured - 1.0 } else { f64::INFINITY }
    }

    /// Whether it is within the allowed difference.
    pub fn is_within(&self) -> bool {
        self.difference().abs() <= self.allowed
    }
}

/// The whole verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// The file to which the prediction was written before anything was run.
    pub file: String,
    /// The comparison of each figure.
    pub compared: Vec<Compared>,
    /// Notes of the load generator.
    pub notes: Vec<String>,
}

impl Verification {
    /// Returns how many predictions are off by more than allowed, as a sentence without a full stop; `None` if none is.
    pub fn shortfall(&self) -> Option<String> {
        let (all, outside) = (self.compared.len(), self.compared.iter().filter(|one| !one.is_within()).count());
        (outside > 0).then(|| format!("{outside} of {all} predictions are outside of what they should keep"))
    }
}

/// Predicts the runs. The load generator runs on the same cores, so it is part of the model.
pub fn predict(probes: &Probes) -> Vec<Trial> {
    let stations = stations(probes, Generator::Here);
    let users = USERS * probes.machine.cores;
    let both = [(Operation::SignIn, Workload::Flow), (Operation::Day, Workload::Day)];
    let trials = both.map(|(operation, workload)| {
        let offered = stations.needs(operation).bound() * SHARE;
        let closed = in_steps(&stations, operation, simulate::Arrivals::Users(users), OPERATIONS);
        let open = in_steps(&stations, operation, simulate::Arrivals::People(offered), OPERATIONS);
        let trial = |pace: &str, offered, users, (predicted, steps)| Trial {
            workload: workload.name().to_owned(),
            pace: pace.to_owned(),
            offered,
            users,
            predicted,
            steps,
        };
        [trial("closed", None, users, closed), trial("open", Some(offered), 4 * users, open)]
    });
    trials.into_iter().flatten().collect()
}

/// Writes a prediction durably to disk.
///
/// # Errors
/// [`Refusal::Failure`].
pub fn write_down(file: &Path, trials: &[Trial]) -> Result<(), Refusal> {
    let failed = |error: std::io::Error| Refusal::Failure(format!("{} cannot be written: {error}", file.display()));
    let text = serde_json::to_string_pretty(trials).map_err(|error| Refusal::Failure(error.to_string()))?;
    let mut written = File::create(file).map_err(failed)?;
    written.write_all(text.as_bytes()).and_then(|()| written.write_all(b"\n")).map_err(failed)?;
    written.sync_all().map_err(failed)
}

/// How to verify.
pub struct How<'a> {
    /// The file with the prediction.
    pub file: &'a Path,
    /// Whether runs are short, which shows only that it works.
    pub quick: bool,
    /// The handle through which it may be ended early.
    pub interrupt: &'a Interrupt,
}

/// Makes the predicted runs against a private server with its own people.
///
/// # Errors
/// [`Refusal::Failure`], also if it was ended early: a part of a verification is none.
pub fn verify(
    trials: &[Trial],
    (program, within): (&Path, &Path),
    how: &How<'_>,
    progress: Progress<'_>,
) -> Result<Verification, Refusal> {
    progress("verification: starting a private server", 0.0);
    let stopped = |_| Refusal::Failure("the proof was interrupted: what was measured before it is not lost".to_owned());
    let people = if how.quick { 100 } else { 1000 };
    let setup = Setup { people, within: Some(within.to_owned()), ..Setup::of(program) };
    let server = Private::start(&setup)?;
    let (mut compared, mut notes) = (Vec::new(), Vec::new());
    for (at, trial) in trials.iter().enumerate() {
        progress(&format!("verification: {} {}", trial.workload, trial.pace), at as f64 / trials.len() as f64);
        let interrupt = how.interrupt.clone();
        let report = run(&Plan { interrupt, ..plan(&server, trial, how.quick)? }, None);
        // Whatever its result: a run that ended early is not the run that was predicted.
        how.interrupt.check().map_err(stopped)?;
        let report = report?;
        let what = match trial.offered {
            Some(rate) => format!("{}, {rate:.0}/s offered", trial.workload),
            None => format!("{}, {} users without a pause", trial.workload, trial.users),
        };
        notes.extend(remarks(&what, &report));
        compared.extend(compare(&what, trial, &report));
    }
    server.stop();
    Ok(Verification { file: how.file.display().to_string(), compared, notes })
}

fn plan(server: &Private, trial: &Trial, quick: bool) -> Result<Plan, Refusal> {
    let workload = if trial.workload == Workload::Flow.name() { Workload::Flow } else { Workload::Day };
    let pace = match trial.offered {
        Some(rate) => Pace::Open { rate, visitors: trial.users },
        None => Pace::Closed { visitors: trial.users, pause: Duration::ZERO },
    };
    let (warmup, duration) = if quick { (1, 2) } else { (4, 15) };
    let (warmup, duration) = (Duration::from_secs(warmup), Duration::from_secs(duration));
    // Random arrivals, as in the simulation. Even starts would let each flow meet the next one always at the same
    // point, and depending on that point all of them would be fast or slow.
    Ok(Plan { pace, arrivals: Arrivals::Poisson, warmup, duration, ..server.plan(workload)? })
}

/// The steps of a day's mix that are compared. The mix itself is not: five in a hundred sign in, so its 95th percentile
/// lies in the gap between them and all others, where chance decides on which side it falls.
const OF_A_DAY: [&str; 2] = ["login", "refresh"];

/// Compares the rate in a closed loop, and latencies in an open one.
fn compare(what: &str, trial: &Trial, report: &Report) -> Vec<Compared> {
    let one = |figure: &str, predicted, measured, allowed| Compared {
        what: what.to_owned(),
        figure: figure.to_owned(),
        predicted,
        measured,
        allowed,
    };
    let rate = |predicted| one("a second", predicted, report.iterations_per_second, THROUGHPUT);
    let Some(offered) = trial.offered else { return vec![rate(trial.predicted.rate)] };
    let mut compared = vec![rate(offered.min(trial.predicted.rate))];
    // At half of the limit the offered rate is carried, or latencies would mean nothing: that alone verifies nothing.
    compared.retain(|one| !one.is_within());
    if trial.workload == Workload::Flow.name() {
        compared.push(one("p95 ms", trial.predicted.p95, report.latency.p95, P95));
        return compared;
    }
    for step in trial.steps.iter().filter(|step| OF_A_DAY.contains(&step.name.as_str())) {
        let measured = report.steps.iter().find(|found| found.step.name() == step.name);
        let measured = measured.map_or(0.0, |found| found.latency.p95);
        compared.push(one(&format!("p95 ms of {}", step.name), step.p95, measured, P95));
    }
    compared
}

fn remarks(what: &str, report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.failed + report.refused > 0 {
        notes.push(format!("{what}: {} failed, {} refused", report.failed, report.refused));
    }
    let limits = report.limits_of_generator();
    notes.extend(limits.iter().chain(&report.notes).map(|note| format!("{what}: {note}")));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_that_falls_short_says_by_how_many() {
        let of = |predicted: &[f64]| {
            let (what, figure) = (String::new(), String::new());
            let one = Compared { what, figure, predicted: 0.0, measured: 100.0, allowed: 0.15 };
            let compared =
                predicted.iter().map(|predicted| Compared { predicted: *predicted, ..one.clone() }).collect();
            Verification { file: String::new(), compared, notes: vec![] }.shortfall()
        };
        assert_eq!(of(&[90.0, 110.0]), None);
        let said = "1 of 2 predictions are outside of what they should keep";
        assert_eq!(of(&[90.0, 117.0]).as_deref(), Some(said));
    }
}
