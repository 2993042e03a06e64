//! Argon2 in the PHC string format, read strictly and written canonically.
//!
//! ```text
//! $argon2id$v=19$m=19456,t=2,p=1[,keyid=KEYID][,data=DATA]$SALT$TAG
//! ```
//!
//! m, t and p are read in any order; numbers are decimal without leading zeros, the rest is unpadded standard base64
//! with zero trailing bits. A missing `v=` means version 1.0 (16), as in hashes made before 2016.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{Check, ParseError, Prepared, Recipe, key, limits, text};
use crate::{
    argon2::{Algorithm, Cost, H0, Params, Version},
    gate::Refusal,
    job::{Input, Kind},
    pepper::{Key, KeyId, Keys, Role},
};

/// An Argon2 hash: everything but the password and the pepper.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Argon2Hash {
    params: Params,
    key_id: Option<KeyId>,
    data: Vec<u8>,
    salt: Vec<u8>,
    tag: Vec<u8>,
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

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    Argon2Hash::parse(text).map(Recipe::Argon2)
}

impl Argon2Hash {
    /// Makes a hash of these parts.
    ///
    /// # Errors
    /// [`ParseError::Limit`] when salt, data or tag are too short or too long.
    pub(super) fn new(params: Params, key_id: Option<KeyId>, salt: Vec<u8>, tag: Vec<u8>) -> Result<Self, ParseError> {
        limits::ARGON2_SALT.length(&salt)?;
        limits::ARGON2_TAG.length(&tag)?;
        Ok(Argon2Hash { params, key_id, data: Vec::new(), salt, tag })
    }
    /// A hash as new ones are written, whose tag comes later.
    pub(super) fn blank(params: Params, key_id: Option<KeyId>, salt: Vec<u8>) -> Self {
        Argon2Hash { params, key_id, data: Vec::new(), salt, tag: Vec::new() }
    }
    pub(super) fn with_tag(self, tag: &[u8]) -> Self {
        Argon2Hash { tag: tag.to_vec(), ..self }
    }

    /// Everything besides the inputs that decides the tag.
    pub(crate) fn params(&self) -> Params {
        self.params
    }
    /// The pepper that it was made with, if any.
    pub(crate) fn key_id(&self) -> Option<KeyId> {
        self.key_id
    }
    pub(crate) fn salt(&self) -> &[u8] {
        &self.salt
    }
    /// True if it has associated data, which hashes made here never have.
    pub(crate) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let rest = text.strip_prefix('$').ok_or(ParseError::Malformed("does not begin with $"))?;
        let (name, rest) = rest.split_once('$').ok_or(ParseError::Malformed("has no fields"))?;
        let algorithm = Algorithm::named(name).ok_or(ParseError::Unsupported("unknown variant of Argon2"))?;
        let (version, rest) = match rest.strip_prefix("v=") {
            None => (Version::V16, rest),
            Some(rest) => match rest.split_once('$') {
                Some(("16", rest)) => (Version::V16, rest),
                Some(("19", rest)) => (Version::V19, rest),
                Some(_) => return Err(ParseError::Unsupported("version of Argon2 is neither 16 nor 19")),
                None => return Err(ParseError::Malformed("ends after the version")),
            },
        };
        let [parameters, salt, tag] = text::fields(rest, '$')?;
        let (cost, options) = any_cost(parameters)?;
        let (key_id, data) = self::options(options)?;
        let (salt, tag) = (text::b64(salt)?, text::b64(tag)?);
        let params = Params { algorithm, version, cost, tag_bytes: tag.len() as u32 };
        Ok(Argon2Hash { data, ..Argon2Hash::new(params, key_id, salt, tag)? })
    }

    pub(super) fn prepare(&self, password: &[u8], keys: &Keys) -> Result<Prepared, Refusal> {
        let h0 = self.h0(password, pepper(self.key_id, keys)?);
        Ok(Prepared { kind: Kind::Argon2(self.params), input: Input::Argon2(h0), check: Check::Tag(self.tag.clone()) })
    }

    /// H0 (RFC 9106 §3.2): all that the slow part depends on.
    pub(super) fn h0(&self, password: &[u8], pepper: Option<&Key>) -> H0 {
        H0::new(&self.params, password, &self.salt, pepper.map_or(&[], Key::bytes), &self.data)
    }
}

/// The pepper of this id, if there is an id.
pub(super) fn pepper(id: Option<KeyId>, keys: &Keys) -> Result<Option<&Key>, Refusal> {
    id.map(|id| key(keys, Role::Pepper, id)).transpose()
}

impl fmt::Display for Argon2Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { algorithm, version, cost, .. } = self.params;
        write!(f, "${}$v={}${}", algorithm.name(), version as u32, Costs(cost))?;
        if let Some(id) = self.key_id {
            write!(f, ",keyid={id}")?;
        }
        if self.has_data() {
            write!(f, ",data={}", STANDARD_NO_PAD.encode(&self.data))?;
        }
        write!(f, "${}${}", STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.tag))
    }
}

/// Writes a cost as the PHC string format does.
pub(super) struct Costs(pub(super) Cost);

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m={},t={},p={}", self.0.memory(), self.0.passes(), self.0.lanes())
    }
}

/// Reads `m=…,t=…,p=…` in this order, and returns what follows.
pub(super) fn cost(text: &str) -> Result<(Cost, std::str::Split<'_, char>), ParseError> {
    let mut parts = text.split(',');
    let mut number = |name| text::parameter(parts.next().unwrap_or_default(), name);
    let cost = limits::argon2(number("m")?, number("t")?, number("p")?)?;
    Ok((cost, parts))
}

/// Reads the three numbers of a cost in any order, and returns what follows: npm's `argon2` writes `m=…,p=…,t=…`,
/// others begin with `t`.
fn any_cost(text: &str) -> Result<(Cost, std::str::Split<'_, char>), ParseError> {
    const NAMES: [char; 3] = ['m', 't', 'p'];
    let mut parts = text.split(',');
    let mut numbers = [None; 3];
    for _ in NAMES {
        let part = parts.next().unwrap_or_default();
        let found = NAMES.iter().position(|name| part.starts_with(*name)).filter(|at| numbers[*at].is_none());
        let at = found.ok_or(ParseError::Malformed("m, t and p are needed, once each"))?;
        numbers[at] = Some(text::parameter(part, &part[..1])?);
    }
    let [memory, passes, lanes] = numbers.map(Option::unwrap_or_default);
    Ok((limits::argon2(memory, passes, lanes)?, parts))
}

/// Reads `[keyid=…][,data=…]`.
fn options(mut parts: std::str::Split<'_, char>) -> Result<(Option<KeyId>, Vec<u8>), ParseError> {
    const KEY_ID: ParseError = ParseError::Malformed("keyid must be 1 to 8 bytes of unpadded base64");
    let (mut key_id, mut data) = (None, Vec::new());
    let mut next = parts.next();
    if let Some(id) = next.and_then(|part| part.strip_prefix("keyid=")) {
        key_id = Some(KeyId::from_base64(id).map_err(|_| KEY_ID)?);
        next = parts.next();
    }
    if let Some(text) = next.and_then(|part| part.strip_prefix("data=")) {
        data = text::b64(text)?;
        limits::ARGON2_DATA.length(&data)?;
        next = parts.next();
    }
    match next {
        None => Ok((key_id, data)),
        Some(_) => Err(ParseError::Malformed("unknown or repeated parameter")),
    }
}
