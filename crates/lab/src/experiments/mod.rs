//! `portiere lab`: named experiments, each one page of a report. An experiment changes one thing under realistic
//! conditions: the product has no slow mode for its sake.
//!
//! Each is a file with one [`Experiment`] in it: a hypothesis, a method, what others have published, and a function
//! that measures. [`report`](crate::report) draws the conclusion, only from the figures.

mod audit;
pub mod bench;
mod commits;
mod engines;
mod group_commit;
mod journal;
mod lanes;
mod last_seen;
mod logging;
mod overload;
mod parameters;
mod readers;
mod signatures;
mod tokens;
mod workers;

use crate::report::{End, Outcome, Sheet};
use bench::Bench;
use load::Refusal;
use serde::Serialize;
use std::time::Instant;

/// One experiment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Experiment {
    /// The name by which it is run.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// The hypothesis, stated beforehand.
    pub hypothesis: &'static str,
    /// How it is measured.
    pub method: &'static str,
    /// What others have published about the same question.
    pub published: Option<Published>,
    /// The function that measures.
    #[serde(skip)]
    pub run: fn(&mut Bench<'_>, &mut Sheet) -> Result<(), Halt>,
}

/// Figures of another program on another machine, for orientation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    /// Where the figures come from.
    pub source: &'static str,
    /// What was measured, and its value.
    pub rows: &'static [(&'static str, &'static str)],
}

/// Why an experiment ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It cannot be run here.
    Skipped(String),
    /// It went wrong.
    Failed(String),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Halt::Failed(refusal.to_string())
    }
}

/// All experiments, in the order of the report.
pub const ALL: [Experiment; 13] = [
    overload::EXPERIMENT,
    parameters::EXPERIMENT,
    lanes::EXPERIMENT,
    workers::EXPERIMENT,
    tokens::EXPERIMENT,
    signatures::EXPERIMENT,
    journal::EXPERIMENT,
    group_commit::EXPERIMENT,
    audit::EXPERIMENT,
    last_seen::EXPERIMENT,
    readers::EXPERIMENT,
    engines::EXPERIMENT,
    logging::EXPERIMENT,
];

/// Returns the experiments of these names, in the order of the report.
///
/// # Errors
/// [`Refusal::Use`] if a name is unknown, with the nearest names.
pub fn named(names: &[String]) -> Result<Vec<Experiment>, Refusal> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|one| one.name != name.as_str())) {
        let mut known = ALL.map(|one| (distance(unknown, one.name), one.name));
        known.sort();
        let nearest: Vec<&str> = known.iter().take(3).map(|(_, name)| *name).collect();
        let line =
            format!("no experiment is called {unknown}; the nearest are {} (portiere lab list)", nearest.join(", "));
        return Err(Refusal::Use(line));
    }
    Ok(ALL.into_iter().filter(|one| names.iter().any(|name| name == one.name)).collect())
}

/// Returns how many letters have to be inserted, deleted or changed to turn one word into the other (Levenshtein); a
/// prefix counts as the whole word.
fn distance(from: &str, to: &str) -> usize {
    if !from.is_empty() && to.starts_with(from) {
        return 0;
    }
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut now = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = before[column] + usize::from(letter != *other);
            now.push(changed.min(before[column + 1] + 1).min(now[column] + 1));
        }
        before = now;
    }
    before[to.len()]
}

/// Runs an experiment. Whatever happens in it, there is an outcome.
pub fn make(experiment: Experiment, bench: &mut Bench<'_>) -> Outcome {
    let (begun, mut sheet) = (Instant::now(), Sheet::default());
    let end = match (experiment.run)(bench, &mut sheet) {
        Ok(()) => End::Done,
        Err(Halt::Skipped(why)) => End::Skipped(why),
        Err(Halt::Failed(why)) => End::Failed(why),
    };
    bench.remarks().into_iter().for_each(|remark| sheet.note(remark));
    Outcome::of(experiment, sheet, end, begun.elapsed().as_secs_f64())
}
