//! SHA-crypt (U. Drepper, "Unix crypt using SHA-256 and SHA-512"), as Unix and OpenLDAP's `{CRYPT}` keep it.
//!
//! ```text
//! $5$SALT$TAG43                             SHA-256, 5,000 rounds; SALT of up to 16 characters as it is
//! $6$rounds=656000$SALT$TAG86               SHA-512
//! ```
//!
//! The rounds take the whole password, as phpass's do: of more than 511 bytes the beginning is hashed, to take the
//! time, and the password is wrong.

use std::fmt;

use zeroize::Zeroizing;

use super::{Check, Digest, ParseError, Prepared, Recipe, limits, serial::Serial, text};
use crate::job::{Input, Kind};

/// A hash of SHA-crypt.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ShaCryptHash {
    digest: Digest,
    /// [`USUAL`] if none are named: naming that number is another spelling, which crypt(3) keeps.
    rounds: Option<u32>,
    salt: String,
    tag: Vec<u8>,
}

/// Rounds where the text names none.
const USUAL: u32 = 5_000;

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    const MALFORMED: ParseError =
        ParseError::Malformed("SHA-crypt needs a salt and 43 or 86 digits of crypt(3)'s alphabet");
    let (digest, rest) = match (text.strip_prefix("$5$"), text.strip_prefix("$6$")) {
        (Some(rest), _) => (Digest::Sha256, rest),
        (_, Some(rest)) => (Digest::Sha512, rest),
        _ => return Err(MALFORMED),
    };
    let (rounds, rest) = match rest.strip_prefix("rounds=") {
        Some(rest) => {
            let (rounds, rest) = rest.split_once('$').ok_or(MALFORMED)?;
            (Some(text::number(rounds)?), rest)
        }
        None => (None, rest),
    };
    limits::SHA_CRYPT_ROUNDS.admit(rounds.unwrap_or(USUAL).into())?;
    let [salt, tag] = text::fields(rest, '$')?;
    limits::SHA_CRYPT_SALT.length(salt.as_bytes())?;
    let tag = decode(digest, tag).ok_or(MALFORMED)?;
    Ok(Recipe::ShaCrypt(ShaCryptHash { digest, rounds, salt: salt.to_owned(), tag }))
}

impl ShaCryptHash {
    pub(super) fn prepare(&self, password: &[u8]) -> Prepared {
        let (password, whole) = limits::SHA_CRYPT_PASSWORD.cut(password);
        let serial = Serial::sha_crypt(self.digest, self.rounds.unwrap_or(USUAL), password.len());
        let input = Input::Serial { password: Zeroizing::new(password.to_vec()), salt: self.salt.as_bytes().to_vec() };
        let check = if whole { Check::Tag(self.tag.clone()) } else { Check::Never };
        Prepared { kind: Kind::Serial(serial), input, check }
    }
}

impl fmt::Display for ShaCryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.digest == Digest::Sha256 { "$5$" } else { "$6$" })?;
        if let Some(rounds) = self.rounds {
            write!(f, "rounds={rounds}$")?;
        }
        write!(f, "{}${}", self.salt, encode(&self.tag))
    }
}

/// The order in which the bytes of a tag are written: by threes, from three parts of the tag that take turns; the
/// remainder comes last.
fn order(bytes: usize) -> impl Iterator<Item = usize> {
    let third = bytes / 3;
    let (first, rest) = match bytes {
        32 => ([20, 10, 0], &[30, 31][..]),
        _ => ([42, 21, 0], &[63][..]),
    };
    let step = if bytes == 32 { third * 2 + 1 } else { third + 1 };
    let triple = move |turn: usize| first.map(|at| (at + turn * step) % (third * 3));
    (0..third).flat_map(triple).chain(rest.iter().copied())
}

fn encode(tag: &[u8]) -> String {
    let ordered: Vec<u8> = order(tag.len()).map(|at| tag[at]).collect();
    text::crypt_encode(&ordered, 0, (8 * tag.len()).div_ceil(6))
}

fn decode(digest: Digest, text: &str) -> Option<Vec<u8>> {
    let bytes = digest.bytes();
    let (ordered, rest) = text::crypt_decode(text)?;
    if text.len() != (8 * bytes).div_ceil(6) || ordered.len() != bytes || rest != 0 {
        return None;
    }
    let mut tag = vec![0; bytes];
    order(bytes).zip(ordered).for_each(|(at, byte)| tag[at] = byte);
    Some(tag)
}
