//! Stored hashes as text: the PHC string format of Argon2, read strictly and written canonically.
//!
//! ```text
//! $argon2id$v=19$m=19456,t=2,p=1[,keyid=KEYID]$SALT$TAG
//! ```
//!
//! Parameters come in this order, numbers are decimal without leading zeros, the rest is unpadded standard base64 with
//! zero trailing bits. A missing `v=` means version 1.0 (16), as in hashes made before 2016.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::{
    pepper::KeyId,
    policy::{BadCost, Cost},
};

/// Longest text that is looked at, in bytes: more than any hash within the limits needs.
const MAX_TEXT: usize = 512;

/// A stored hash, of any format that can be verified. More formats become more variants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stored {
    /// Argon2 in the PHC string format.
    Argon2(Argon2Hash),
}

impl FromStr for Stored {
    type Err = ParseError;

    /// Reads a stored hash. Never panics; every text is either one exact hash or refused.
    ///
    /// # Errors
    /// See [`ParseError`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT {
            return Err(ParseError::Malformed("longer than any stored hash"));
        }
        let rest = text.strip_prefix('$').ok_or(ParseError::Malformed("does not begin with $"))?;
        let (name, rest) = rest.split_once('$').ok_or(ParseError::Malformed("has no fields"))?;
        match Algorithm::named(name) {
            Some(algorithm) => Argon2Hash::parse(algorithm, rest).map(Stored::Argon2),
            None => Err(ParseError::Unsupported("unknown algorithm")),
        }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stored::Argon2(hash) => hash.fmt(f),
        }
    }
}

/// Why a text is no stored hash that can be verified here. The texts are fixed and repeat nothing of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// It does not follow the format.
    Malformed(&'static str),
    /// It may be a hash, but of an algorithm, version or option that is not supported.
    Unsupported(&'static str),
    /// Its cost exceeds what may be imported: see [`Cost`].
    Limit(BadCost),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Malformed(why) => write!(f, "malformed password hash: {why}"),
            ParseError::Unsupported(why) => write!(f, "unsupported password hash: {why}"),
            ParseError::Limit(bad) => write!(f, "password hash outside the limits: {bad}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// The variants of Argon2 (RFC 9106 §3.1, type y).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Argon2d: data-dependent addressing. Verified, never written.
    Argon2d,
    /// Argon2i: data-independent addressing. Verified, never written.
    Argon2i,
    /// Argon2id: the one that new hashes use (RFC 9106 §4).
    Argon2id,
}

impl Algorithm {
    const ALL: [Algorithm; 3] = [Algorithm::Argon2d, Algorithm::Argon2i, Algorithm::Argon2id];

    /// The identifier in the PHC string format.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Argon2d => "argon2d",
            Algorithm::Argon2i => "argon2i",
            Algorithm::Argon2id => "argon2id",
        }
    }
    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// The versions of Argon2 that exist in the wild (RFC 9106 §3.1, v).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Version 1.0, which overwrites memory in later passes. Verified, never written.
    V16 = 16,
    /// Version 1.3, of RFC 9106.
    V19 = 19,
}

/// An Argon2 hash: everything but the password and the pepper.
#[derive(Clone, PartialEq, Eq)]
pub struct Argon2Hash {
    algorithm: Algorithm,
    version: Version,
    cost: Cost,
    key_id: Option<KeyId>,
    salt: Vec<u8>,
    tag: Vec<u8>,
}

impl Argon2Hash {
    /// Salt lengths that are accepted, in bytes (RFC 9106 §3.1 asks for at least 8).
    pub const SALT: std::ops::RangeInclusive<usize> = 8..=64;
    /// Tag lengths that are accepted, in bytes. The PHC string format asks for at least 12: fewer can be hit by chance.
    pub const TAG: std::ops::RangeInclusive<usize> = 12..=64;

    /// A hash as it is written today.
    pub(crate) fn new(cost: Cost, key_id: Option<KeyId>, salt: Vec<u8>, tag: Vec<u8>) -> Self {
        Argon2Hash { algorithm: Algorithm::Argon2id, version: Version::V19, cost, key_id, salt, tag }
    }
    /// The variant.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }
    /// The cost parameters.
    pub fn cost(&self) -> Cost {
        self.cost
    }
    /// Which pepper it was made with, if any.
    pub fn key_id(&self) -> Option<KeyId> {
        self.key_id
    }
    pub(crate) fn salt(&self) -> &[u8] {
        &self.salt
    }
    pub(crate) fn tag(&self) -> &[u8] {
        &self.tag
    }

    /// Reads what follows `$argon2id$`.
    fn parse(algorithm: Algorithm, text: &str) -> Result<Self, ParseError> {
        let (version, text) = match text.strip_prefix("v=") {
            None => (Version::V16, text),
            Some(text) => match text.split_once('$') {
                Some(("16", rest)) => (Version::V16, rest),
                Some(("19", rest)) => (Version::V19, rest),
                Some(_) => return Err(ParseError::Unsupported("version of Argon2 is neither 16 nor 19")),
                None => return Err(ParseError::Malformed("ends after the version")),
            },
        };
        let mut fields = text.split('$');
        let (Some(params), Some(salt), Some(tag), None) = (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(ParseError::Malformed("needs parameters, salt and tag"));
        };
        let (cost, key_id) = parameters(params)?;
        let salt = decode(salt, Self::SALT, "salt must be 8 to 64 bytes of unpadded base64")?;
        let tag = decode(tag, Self::TAG, "tag must be 12 to 64 bytes of unpadded base64")?;
        Ok(Argon2Hash { algorithm, version, cost, key_id, salt, tag })
    }
}

impl fmt::Display for Argon2Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, version, cost) = (self.algorithm.name(), self.version as u32, self.cost);
        write!(f, "${name}$v={version}$m={},t={},p={}", cost.memory(), cost.passes(), cost.lanes())?;
        if let Some(id) = self.key_id {
            write!(f, ",keyid={}", STANDARD_NO_PAD.encode(id.as_bytes()))?;
        }
        write!(f, "${}${}", STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.tag))
    }
}

impl fmt::Debug for Argon2Hash {
    /// Without salt and tag: a log is no place for what a password can be guessed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Argon2Hash({} v{} {:?} …)", self.algorithm.name(), self.version as u32, self.cost)
    }
}

/// `m=…,t=…,p=…[,keyid=…]`, in this order.
fn parameters(text: &str) -> Result<(Cost, Option<KeyId>), ParseError> {
    const ORDER: ParseError = ParseError::Malformed("parameters must be m, t, p in this order");
    let mut parts = text.split(',');
    let mut number = |name: &str| {
        let value = parts.next().and_then(|part| part.strip_prefix(name)).ok_or(ORDER)?;
        decimal(value).ok_or(ParseError::Malformed("numbers must be minimal decimals of at most 32 bits"))
    };
    let cost = Cost::new(number("m=")?, number("t=")?, number("p=")?).map_err(ParseError::Limit)?;
    let mut key_id = None;
    for part in parts {
        match part.split_once('=') {
            Some(("keyid", id)) if key_id.is_none() => {
                let id = decode(id, 1..=KeyId::MAX, "keyid must be 1 to 8 bytes of unpadded base64")?;
                key_id = KeyId::new(&id);
            }
            Some(("data", _)) => return Err(ParseError::Unsupported("associated data")),
            _ => return Err(ParseError::Malformed("unknown or repeated parameter")),
        }
    }
    Ok((cost, key_id))
}

/// A decimal of the PHC string format: digits only, no leading zero, no sign.
fn decimal(text: &str) -> Option<u32> {
    let minimal = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if minimal && digits { text.parse().ok() } else { None }
}

/// Unpadded base64 of a length within `bytes`; anything else is malformed for the reason given.
fn decode(text: &str, bytes: std::ops::RangeInclusive<usize>, why: &'static str) -> Result<Vec<u8>, ParseError> {
    STANDARD_NO_PAD.decode(text).ok().filter(|decoded| bytes.contains(&decoded.len())).ok_or(ParseError::Malformed(why))
}
