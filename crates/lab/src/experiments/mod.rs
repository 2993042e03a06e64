//! `portiere lab`: named experiments, each one page of a report. An experiment changes one thing, in natural settings: there
//! is no slow mode in the product for its sake.
//!
//! Each is a file with one [`Experiment`] in it: what is supposed, how it is measured, what others have published, and a
//! function that measures. The conclusion is drawn by [`report`](crate::report), from the figures alone.

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
    /// By which it is run.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// What is supposed beforehand.
    pub hypothesis: &'static str,
    /// How it is measured.
    pub method: &'static str,
    /// What others have published about the same.
    pub published: Option<Published>,
    /// Measures.
    #[serde(skip)]
    pub run: fn(&mut Bench<'_>, &mut Sheet) -> Result<(), Halt>,
}

/// Figures of another program on another machine, for orientation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Published {
    /// Whose.
    pub source: &'static str,
    /// What, and how much.
    pub rows: &'static [(&'static str, &'static str)],
}

/// Why an experiment ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It cannot be made here.
    Skipped(String),
    /// It went wrong.
    Failed(String),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Halt::Failed(refusal.to_string())
    }
}

/// All there are, in the order of the report.
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

/// Those of these names, in the order of the report.
///
/// # Errors
/// [`Refusal::Use`], where one is unknown, with the nearest names.
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

/// Letters that have to be put in, taken out or changed to get from one word to the other (Levenshtein); the start of a word
/// is as good as the word.
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

/// Makes an experiment. Whatever happens in it, something comes back.
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
