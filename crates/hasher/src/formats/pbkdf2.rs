//! PBKDF2-HMAC (RFC 8018 §5.2), kept in the PHC string format.
//!
//! ```text
//! $pbkdf2-sha256$i=600000,l=32$SALT$KEY     B64; sha1 and plain `pbkdf2` are the same, sha384 and sha512 too
//! $pbkdf2-sha256$600000$SALT$KEY            passlib: B64 with . for +
//! ```

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

use super::{Check, Digest, ParseError, Prepared, Recipe, limits, serial::Serial, text};
use crate::job::{Input, Kind};

/// A PBKDF2 hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pbkdf2Hash {
    digest: Digest,
    iterations: u32,
    salt: Vec<u8>,
    key: Vec<u8>,
}

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let [nothing, name, parameters, salt, key] = text::fields(text, '$')?;
    if !nothing.is_empty() {
        return Err(ParseError::Malformed("does not begin with $"));
    }
    let digest = match name.strip_prefix("pbkdf2") {
        Some("") => Digest::Sha1,
        Some(rest) => digest(rest.strip_prefix('-').unwrap_or_default())?,
        None => return Err(ParseError::Malformed("no PBKDF2")),
    };
    let Some((iterations, length)) = parameters.split_once(',') else {
        // With `i=` it is the PHC string format, without the length.
        if parameters.starts_with("i=") {
            return recipe(digest, text::parameter(parameters, "i")?, text::b64(salt)?, text::b64(key)?);
        }
        return recipe(digest, text::number(parameters)?, text::adapted(salt)?, text::adapted(key)?);
    };
    let (iterations, length) = (text::parameter(iterations, "i")?, text::parameter(length, "l")?);
    let key = text::b64(key)?;
    if key.len() != length as usize {
        return Err(ParseError::Malformed("l is not the length of the derived key"));
    }
    recipe(digest, iterations, text::b64(salt)?, key)
}

/// The digest of this name, if PBKDF2 is used with it.
pub(super) fn digest(name: &str) -> Result<Digest, ParseError> {
    const UNKNOWN: ParseError =
        ParseError::Unsupported("PBKDF2 with a digest other than sha1, sha256, sha384 and sha512");
    Digest::named(name).filter(|digest| *digest != Digest::Md5).ok_or(UNKNOWN)
}

/// A hash of these parts, if they are within the limits.
pub(super) fn recipe(digest: Digest, iterations: u32, salt: Vec<u8>, key: Vec<u8>) -> Result<Recipe, ParseError> {
    limits::serial(&Serial::pbkdf2(digest, iterations, key.len()))?;
    limits::SALT.length(&salt)?;
    limits::TAG.length(&key)?;
    Ok(Recipe::Pbkdf2(Pbkdf2Hash { digest, iterations, salt, key }))
}

impl Pbkdf2Hash {
    /// Whether all of the password counts, which is the key of an HMAC.
    pub(super) fn hears_all_of(&self, password: &[u8]) -> bool {
        self.digest.tells_apart(password)
    }

    pub(super) fn prepare(&self, password: &[u8]) -> Prepared {
        let serial = Serial::pbkdf2(self.digest, self.iterations, self.key.len());
        prepared(serial, password, &self.salt, &self.key)
    }
}

/// Prepares serial work whose tag is the stored one, or its first block.
pub(super) fn prepared(serial: Serial, password: &[u8], salt: &[u8], stored: &[u8]) -> Prepared {
    let right = match serial {
        Serial::Pbkdf2 { bytes, .. } | Serial::Scrypt { bytes, .. } => {
            stored.iter().copied().take(bytes as usize).collect()
        }
        Serial::Chain { .. } | Serial::ShaCrypt { .. } => stored.to_vec(),
    };
    let input = Input::Serial { password: Zeroizing::new(password.to_vec()), salt: salt.to_vec() };
    Prepared { kind: Kind::Serial(serial), input, check: Check::Tag(right) }
}

impl fmt::Display for Pbkdf2Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$pbkdf2-{}$i={},l={}", self.digest.name(), self.iterations, self.key.len())?;
        write!(f, "${}${}", STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.key))
    }
}
