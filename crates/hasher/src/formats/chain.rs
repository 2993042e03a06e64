//! phpass and Drupal 7: a salted digest, digested again with the password some thousand times.
//!
//! ```text
//! $P$NSALTSALTTAG22                         phpass: MD5, 2^N rounds; $H$ (phpBB) is the same
//! $S$NSALTSALTTAG43                         Drupal: SHA-512, of which 258 bits are kept
//! U$S$NSALTSALTTAG43                        Drupal 6 before: the same of the hexadecimal MD5
//! ```
//!
//! Every round takes the whole password, so the longest accepted one decides what such a hash may cost: 512 bytes with
//! Drupal, as in Drupal itself. Of a longer one the beginning is hashed, to take the time, and it is wrong.

use std::fmt;

use zeroize::Zeroizing;

use super::{Check, Digest, Limit, ParseError, Prepared, Recipe, limits, serial::Serial, text};
use crate::job::{Input, Kind};

/// A hash of phpass or Drupal.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ChainHash {
    form: Form,
    log_rounds: u32,
    salt: [u8; 8],
    tag: Vec<u8>,
    /// Bits after the last whole byte of the tag.
    last: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Phpass,
    Drupal,
    /// Made from the hash that Drupal 6 had stored.
    Drupal6,
}

impl Form {
    const fn digest(self) -> Digest {
        match self {
            Form::Phpass => Digest::Md5,
            Form::Drupal | Form::Drupal6 => Digest::Sha512,
        }
    }
    const fn prefix(self) -> &'static str {
        match self {
            Form::Phpass => "$P$",
            Form::Drupal => "$S$",
            Form::Drupal6 => "U$S$",
        }
    }
    const fn tag_characters(self) -> usize {
        match self {
            Form::Phpass => 22,
            Form::Drupal | Form::Drupal6 => 43,
        }
    }
    /// Longest password that can be right.
    const fn longest(self) -> Limit {
        match self {
            Form::Phpass => limits::PHPASS_PASSWORD,
            Form::Drupal | Form::Drupal6 => limits::DRUPAL_PASSWORD,
        }
    }
}

pub(super) fn read_phpass(text: &str) -> Result<Recipe, ParseError> {
    read(Form::Phpass, text)
}

pub(super) fn read_drupal(text: &str) -> Result<Recipe, ParseError> {
    read(Form::Drupal, text)
}

pub(super) fn read_drupal_6(text: &str) -> Result<Recipe, ParseError> {
    read(Form::Drupal6, &text[1..])
}

/// Reads what follows the three characters of the prefix.
fn read(form: Form, text: &str) -> Result<Recipe, ParseError> {
    const MALFORMED: ParseError = ParseError::Malformed("phpass needs a digit, 8 characters of salt and the tag");
    let bytes = text.as_bytes();
    let (Some(rounds), Some(salt)) = (bytes.get(3), bytes.get(4..12)) else { return Err(MALFORMED) };
    let tag = text.get(12..).filter(|tag| tag.len() == form.tag_characters()).ok_or(MALFORMED)?;
    let log_rounds = text::crypt_value(*rounds).ok_or(MALFORMED)?;
    limits::CHAIN_LOG_ROUNDS.admit(log_rounds.into())?;
    let salt = <[u8; 8]>::try_from(salt).map_err(|_| MALFORMED)?;
    if salt.iter().any(|&byte| text::crypt_value(byte).is_none()) {
        return Err(MALFORMED);
    }
    let (tag, last) = text::crypt_decode(tag).ok_or(MALFORMED)?;
    match (form, last) {
        (Form::Phpass, 1..) => Err(MALFORMED),
        _ => Ok(Recipe::Chain(ChainHash { form, log_rounds, salt, tag, last })),
    }
}

impl ChainHash {
    pub(super) fn scheme(&self) -> &'static str {
        match self.form {
            Form::Phpass => "phpass",
            Form::Drupal | Form::Drupal6 => "drupal",
        }
    }

    /// Whether the program that made it is known, and only trims what is typed (where a password is set and where
    /// people sign in): Drupal does. What made a `$P$` or `$H$` nobody knows.
    pub(super) fn is_of_drupal(&self) -> bool {
        matches!(self.form, Form::Drupal | Form::Drupal6)
    }

    pub(super) fn prepare(&self, password: &[u8]) -> Prepared {
        let (password, whole) = self.form.longest().cut(password);
        let check = match self.form {
            _ if !whole => Check::Never,
            Form::Phpass => Check::Tag(self.tag.clone()),
            Form::Drupal | Form::Drupal6 => Check::Drupal { bytes: self.tag.clone(), last: self.last },
        };
        let password = match self.form {
            Form::Phpass | Form::Drupal => Zeroizing::new(password.to_vec()),
            Form::Drupal6 => text::hex_text(&Digest::Md5.of(&[password])),
        };
        let serial = Serial::chain(self.form.digest(), 1 << self.log_rounds, password.len());
        Prepared { kind: Kind::Serial(serial), input: Input::Serial { password, salt: self.salt.to_vec() }, check }
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.form.prefix(), text::crypt_digit(self.log_rounds))?;
        self.salt.iter().try_for_each(|&byte| write!(f, "{}", char::from(byte)))?;
        f.write_str(&text::crypt_encode(&self.tag, self.last, self.form.tag_characters()))
    }
}
