//! Machines that hash passwords for a realm: who is let in, under which name.

use crate::secret::{Handle, mac};
use crate::time::{Span, Time};

/// How long a token is good with which a worker is enrolled.
pub const TOKEN_LIVES: Span = Span::minutes(10);
/// The longest name, in characters.
pub const LONGEST_NAME: usize = 40;

/// A machine that was enrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// SHA-256 of its public key.
    pub key: Handle,
    /// What people call it.
    pub name: String,
    /// When it was enrolled.
    pub enrolled: Time,
    /// From where.
    pub address: String,
    /// Since when it is asked nothing, and why.
    pub quarantine: Option<(Time, String)>,
}

/// As what a token is kept once it has enrolled the worker of a key: who never heard the answer asks again with both, and is
/// told the same. Nobody has a token with this handle, so that it lets no other key in.
#[must_use]
pub fn spent(token: Handle, key: Handle) -> Handle {
    Handle(mac(&token.0, &[b"enrolled", &key.0]))
}

/// A name: 1 to 40 letters, digits, dots, dashes and underscores.
///
/// # Errors
/// The end of a sentence that begins with what it is the name of.
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
