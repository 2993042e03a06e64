//! Experiments: verdicts, pages, and the turns that variants take.

mod pages;
mod turns;
mod verdicts;

use lab::experiments::{Experiment, Halt, Published};
use lab::report::{Expect, Figure, Group, Row, figure};

/// Variants with values of one figure, round by round; the first is what the others are compared with.
fn group(variants: &[(&str, &[Expect], &[f64])]) -> Group {
    let figures: [Figure; 1] = [figure("hashes a second", "/s")];
    let row = |(name, expected, values): &(&str, &[Expect], &[f64])| Row {
        values: values.iter().map(|value| vec![*value]).collect(),
        ..Row::new(*name, expected)
    };
    Group::new("", &figures, variants.iter().map(row).collect())
}

/// One that measures nothing.
fn experiment() -> Experiment {
    Experiment {
        name: "made-up",
        title: "Made up <i>",
        hypothesis: "It is | what *it* is.",
        method: "By hand & <b>.",
        published: Some(Published { source: "A book <u>.", rows: &[("rate|it", "1 & 2")] }),
        run: |_, _| Err(Halt::Failed("not meant to be run".to_owned())),
    }
}
