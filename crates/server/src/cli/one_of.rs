//! Values from a small known set: shells offer them, and errors about other values are in our own words.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// A parser for one of them. It may accept more spellings than it offers.
#[derive(Clone)]
pub struct OneOf<T> {
    names: Vec<&'static str>,
    read: fn(&str) -> Result<T, String>,
}

impl<T> OneOf<T> {
    /// Returns a parser that offers `names`.
    pub fn new(names: impl IntoIterator<Item = &'static str>, read: fn(&str) -> Result<T, String>) -> Self {
        OneOf { names: names.into_iter().collect(), read }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let text = value.to_str().ok_or_else(|| Error::new(ErrorKind::InvalidUtf8).with_cmd(command))?;
        (self.read)(text).map_err(|why| {
            let name = arg.map(ToString::to_string).unwrap_or_default();
            Error::raw(ErrorKind::ValueValidation, format!("invalid value '{text}' for '{name}': {why}\n"))
                .with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(|name| PossibleValue::new(*name))))
    }
}
