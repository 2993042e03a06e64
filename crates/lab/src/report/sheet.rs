//! What an experiment measured: groups of variants that took turns under one condition.

use super::verdict::{Bound, Expect, Verdict};
use crate::capacity::figure::median;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// A quantity that is measured for each variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, as a noun that "of" can follow: `sign-ins a second`.
    pub name: Cow<'static, str>,
    /// The unit after a value, such as `/s` or ` ms`.
    pub unit: Cow<'static, str>,
}

/// Creates a figure.
pub const fn figure(name: &'static str, unit: &'static str) -> Figure {
    Figure { name: Cow::Borrowed(name), unit: Cow::Borrowed(unit) }
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// For the first figures: how they should compare with those of the first row. Further figures are shown but not
    /// judged.
    pub expected: Vec<Expect>,
    /// By round, then by figure.
    #[serde(deserialize_with = "rounds")]
    pub values: Vec<Vec<f64>>,
    /// By figure: on which side of its values the truth lies, if one of them stands for what could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Option<Bound>>,
}

impl Row {
    /// Creates a row without measurements.
    pub fn new(name: impl Into<String>, expected: &[Expect]) -> Row {
        Row { name: name.into(), expected: expected.to_vec(), values: Vec::new(), bounds: Vec::new() }
    }

    /// Adds a round, and which of its values are bounds; an empty list means none.
    pub fn add(&mut self, values: Vec<f64>, bounds: Vec<Option<Bound>>) {
        self.values.push(values);
        // If one round could not measure a figure, the row cannot state it, whatever the other rounds measured.
        self.bounds.resize(self.bounds.len().max(bounds.len()), None);
        self.bounds.iter_mut().zip(bounds).for_each(|(known, new)| *known = new.or(*known));
    }

    fn bound(&self, figure: usize) -> Option<Bound> {
        self.bounds.get(figure).copied().flatten()
    }

    /// Returns the values of a figure, round by round.
    pub fn of(&self, figure: usize) -> Vec<f64> {
        self.values.iter().filter_map(|round| round.get(figure).copied()).collect()
    }

    /// Returns the median; NaN if there are no values.
    pub fn median(&self, figure: usize) -> f64 {
        let mut values = self.of(figure);
        values.sort_by(f64::total_cmp);
        median(&values)
    }

    /// Returns the lowest and the highest value.
    pub fn range(&self, figure: usize) -> (f64, f64) {
        self.of(figure)
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }
}

/// Reads rounds: a value that is not a number is `null` in JSON.
fn rounds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rounds = Vec::<Vec<Option<f64>>>::deserialize(from)?;
    Ok(rounds.into_iter().map(|round| round.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()).collect())
}

/// Variants that took turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The condition, such as `1 core`.
    pub title: String,
    /// What was measured for each row.
    pub figures: Vec<Figure>,
    /// The variants; the others are compared with the first.
    pub rows: Vec<Row>,
    /// How often each is measured at most: less often than usual if one measurement takes long.
    #[serde(skip)]
    pub most_rounds: usize,
}

impl Group {
    /// Creates a group without measurements.
    pub fn new(title: impl Into<String>, figures: &[Figure], rows: Vec<Row>) -> Group {
        Group { title: title.into(), figures: figures.to_vec(), rows, most_rounds: usize::MAX }
    }

    /// Returns how a row compares with the first one.
    pub fn verdict(&self, row: usize, figure: usize) -> Verdict {
        let (a, b) = (&self.rows[0], &self.rows[row]);
        Verdict::of(&a.of(figure), &b.of(figure)).bounded(a.bound(figure), b.bound(figure))
    }

    /// Returns how many of the figures are judged.
    pub fn judged(&self) -> usize {
        self.rows.iter().skip(1).map(|row| row.expected.len()).max().unwrap_or(0).min(self.figures.len())
    }
}

/// Everything that an experiment reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// What a reader has to know besides the figures.
    pub notes: Vec<String>,
}

impl Sheet {
    /// Adds a note, once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}
