//! JSON of one account. Errors do not repeat a word of it: a fast digest is as good as the password.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Value, error::Category};
use zeroize::Zeroizing;

use super::{ParseError, limits};

/// What is wrong with a piece of JSON. Repeats nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadJson {
    /// The whole of it, or the field whose value is wrong.
    pub part: &'static str,
    /// What is wrong.
    pub problem: &'static str,
    /// Line and column, from 1, where they are known.
    pub place: Option<(usize, usize)>,
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.part, self.problem)?;
        match self.place {
            Some((line, column)) => write!(f, ", at line {line}, column {column}"),
            None => Ok(()),
        }
    }
}

/// A piece of JSON, by its name in errors.
#[derive(Clone, Copy)]
pub(super) struct Part(pub(super) &'static str);

/// The whole JSON that was given.
pub(super) const WHOLE: Part = Part("the JSON");

/// How serde's error begins if a field is missing, and what to report instead: the name is ours, the rest may be input.
macro_rules! missing {
    ($($name:literal)+) => { [$((concat!("missing field `", $name, "`"), concat!("lacks the field ", $name))),+] };
}

const MISSING: [(&str, &str); 13] = missing!(
    "algorithm" "hash" "value" "salt" "hashIterations" "encryptionScheme" "factor" "password" "passwordHash" "rounds"
    "mem_cost" "import_key" "encrypted_password"
);

impl Part {
    /// Reads the JSON if it is within the length limit. Fields that are not asked for are ignored.
    pub(super) fn read<T: DeserializeOwned>(self, text: &str) -> Result<T, ParseError> {
        limits::JSON.length(text.as_bytes())?;
        serde_json::from_str(text).map_err(|error| self.told(&error))
    }

    /// Reads the value of a field: an object, or a text that is the JSON of one.
    pub(super) fn read_value<T: DeserializeOwned>(self, value: Value) -> Result<T, ParseError> {
        match value {
            Value::Object(_) => serde_json::from_value(value).map_err(|error| self.told(&error)),
            Value::String(text) => self.read(&Zeroizing::new(text)),
            _ => Err(self.error("is neither an object nor the text of one")),
        }
    }

    pub(super) fn error(self, problem: &'static str) -> ParseError {
        ParseError::Json(BadJson { part: self.0, problem, place: None })
    }

    fn told(self, error: &serde_json::Error) -> ParseError {
        let said = Zeroizing::new(error.to_string());
        if let Some((_, problem)) = MISSING.iter().find(|(begins, _)| said.starts_with(begins)) {
            return self.error(problem);
        }
        let problem = match error.classify() {
            Category::Eof => "ends too early",
            Category::Syntax | Category::Io => "cannot be read",
            Category::Data if said.starts_with("duplicate field") => "has a field twice",
            Category::Data => "has a field of another type or value than the system exports",
        };
        // A value that was read before has no place.
        let place = Some((error.line(), error.column())).filter(|(line, _)| *line > 0);
        ParseError::Json(BadJson { part: self.0, problem, place })
    }
}
