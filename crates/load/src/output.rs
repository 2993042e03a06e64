//! Files for results: known to be writable before anybody waits for what should be in them.

use crate::Refusal;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

/// Makes sure that a file can be written. One that is not there yet is made and removed again, so that nothing is left of it
/// if there is no result, however that ends.
///
/// # Errors
/// [`Refusal::Failure`].
pub fn try_out(file: &Path) -> Result<(), Refusal> {
    let outcome = match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => std::fs::remove_file(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new().append(true).open(file).map(drop),
        Err(error) => Err(error),
    };
    outcome.map_err(|error| cannot(file, &error))
}

/// Writes a result; what was there is replaced.
///
/// # Errors
/// [`Refusal::Failure`].
pub fn write(file: &Path, text: &str) -> Result<(), Refusal> {
    std::fs::write(file, text).map_err(|error| cannot(file, &error))
}

fn cannot(file: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failure(format!("{} cannot be written: {error}", file.display()))
}
