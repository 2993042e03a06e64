//! Workers, the machines that hash passwords for a realm: which of them are let in, and under which names.

use crate::secret::{Handle, mac};
use crate::time::{Span, Time};

/// How long a token for enrolling a worker is valid.
pub const TOKEN_LIVES: Span = Span::minutes(10);
/// The longest name, in characters.
pub const LONGEST_NAME: usize = 40;

/// An enrolled machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// SHA-256 of its public key.
    pub key: Handle,
    /// What people call it.
    pub name: String,
    /// When it was enrolled.
    pub enrolled: Time,
    /// The address that it enrolled from.
    pub address: String,
    /// Since when it is asked for nothing, and why.
    pub quarantine: Option<(Time, String)>,
}

/// The handle under which a token is kept once it has enrolled the worker with this key: a worker that never received
/// the answer asks again with both, and is told the same. No token has this handle, so it lets no other key in.
#[must_use]
pub fn spent(token: Handle, key: Handle) -> Handle {
    Handle(mac(&token.0, &[b"enrolled", &key.0]))
}

/// A name: 1 to 40 letters, digits, dots, dashes and underscores.
///
/// # Errors
/// The end of a sentence whose subject is the named thing.
pub fn name(text: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("must be 1 to 40 letters, digits, dots, dashes and underscores"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "hash-1", "worker_2.example.net", &"x".repeat(40)] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["", "two words", "büro", "a\nb", "a/b", &"x".repeat(41)] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
