//! Reads values from file, environment and command line into the typed configuration.

use super::checks::Check;
use super::declare::Declared;
use super::options::SECTIONS;
use super::value::{Raw, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Where a value came from. A later one overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The default in the table.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Env,
    /// A flag of the command line.
    Flag,
}

impl Source {
    /// Returns its name: `default`, `file`, `env` or `flag`.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::File => "file",
            Source::Env => "env",
            Source::Flag => "flag",
        }
    }
}

/// A problem of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place: `portiere.toml:12`, `PORTIERE_STORE_URL`, `--listen`; empty if no single place is to blame.
    pub place: String,
    /// The option, if the problem is about one.
    pub option: Option<String>,
    /// What is wrong, as one sentence's predicate.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = self.option.as_deref().unwrap_or_default();
        let parts = [self.place.as_str(), option, self.message.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(": "))
    }
}

/// A value and where it was found.
pub struct Given {
    /// The value.
    pub raw: Raw,
    /// The kind of source.
    pub source: Source,
    /// The place, as in [`Problem::place`].
    pub place: String,
}

/// Gives each option its values and gathers what is wrong with them.
#[derive(Default)]
pub struct Reader {
    given: BTreeMap<&'static str, Vec<Given>>,
    pub(super) sources: BTreeMap<&'static str, Source>,
    pub(super) problems: Vec<Problem>,
}

impl Reader {
    /// Adds a value; later values win.
    pub fn give(&mut self, option: &'static Declared, given: Given) {
        self.given.entry(option.name).or_default().push(given);
    }

    /// Returns the value of `name`. Checks every value that was given, an overridden one too; the last one counts.
    pub fn take<T: Value>(&mut self, name: &'static str, default: impl FnOnce() -> T, check: impl Check<T>) -> T {
        let mut value = None;
        for given in self.given.remove(name).unwrap_or_default() {
            match T::parse(&given.raw).and_then(|parsed| check.check(&parsed).map(|()| parsed)) {
                Ok(parsed) => {
                    value = Some(parsed);
                    self.sources.insert(name, given.source);
                }
                Err(message) => {
                    self.problems.push(Problem { place: given.place, option: Some(name.to_owned()), message });
                }
            }
        }
        value.unwrap_or_else(default)
    }
}

/// Returns every option of the table.
pub fn declared() -> impl Iterator<Item = &'static Declared> {
    SECTIONS.iter().flat_map(|section| section.options)
}

/// Returns the option of that name.
pub fn find(name: &str) -> Option<&'static Declared> {
    declared().find(|option| option.name == name)
}

/// Returns the environment variable of an option: `PORTIERE_STORE_URL` for `store.url`.
pub fn variable(name: &str) -> String {
    format!("PORTIERE_{}", name.replace('.', "_").to_ascii_uppercase())
}

/// Returns `; did you mean …?` with the candidate that is fewest edits away, or nothing if all are far away. How far is
/// far depends on what follows the `prefix` that all of them have.
pub fn suggestion(prefix: &str, word: &str, candidates: impl Iterator<Item = String>) -> String {
    let nearest = candidates.map(|candidate| (edits(word, &candidate), candidate)).min();
    let most = (word.strip_prefix(prefix).unwrap_or(word).len() / 3).max(2);
    match nearest {
        Some((distance, candidate)) if distance <= most => format!("; did you mean {candidate}?"),
        _ => String::new(),
    }
}

/// Returns Levenshtein's distance in bytes.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
