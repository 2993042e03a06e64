//! scrypt (RFC 7914), kept in the PHC string format.
//!
//! ```text
//! $scrypt$ln=17,r=8,p=1$SALT$KEY            B64, passlib's too
//! $7$NRRRRRPPPPPSALT$KEY                    libxcrypt and libsodium: N, r, p and KEY in crypt(3)'s digits, SALT raw
//! ```

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{ParseError, Prepared, Recipe, limits, pbkdf2::prepared, serial::Serial, text};

/// An scrypt hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ScryptHash {
    cost: Cost,
    salt: Vec<u8>,
    key: Vec<u8>,
}

/// The parameters of scrypt, within the limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) log_n: u8,
    pub(super) r: u32,
    pub(super) p: u32,
}

impl Cost {
    /// # Errors
    /// [`ParseError::Limit`] names the parameter.
    pub(super) fn new(log_n: u32, r: u32, p: u32) -> Result<Self, ParseError> {
        let cost = Cost { log_n: log_n.try_into().unwrap_or(u8::MAX), r, p };
        limits::serial(&cost.serial(0))?;
        Ok(cost)
    }
    /// From N itself, which must be a power of two.
    pub(super) fn of_n(n: u32, r: u32, p: u32) -> Result<Self, ParseError> {
        match n.is_power_of_two() {
            true => Cost::new(n.ilog2(), r, p),
            false => Err(ParseError::Malformed("scrypt's N must be a power of two")),
        }
    }
    /// The work for a stored key of `bytes`.
    pub(super) fn serial(self, bytes: usize) -> Serial {
        Serial::scrypt(self.log_n, self.r, self.p, bytes)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ln={},r={},p={}", self.log_n, self.r, self.p)
    }
}

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let text = text.strip_prefix("$scrypt$").ok_or(ParseError::Malformed("no scrypt"))?;
    let [parameters, salt, key] = text::fields(text, '$')?;
    let (cost, mut rest) = cost(parameters)?;
    if rest.next().is_some() {
        return Err(ParseError::Malformed("scrypt has ln, r and p, and nothing else"));
    }
    recipe(cost, text::b64(salt)?, text::b64(key)?)
}

/// Reads `ln=…,r=…,p=…`, and returns what follows.
pub(super) fn cost(text: &str) -> Result<(Cost, std::str::Split<'_, char>), ParseError> {
    let mut parts = text.split(',');
    let mut number = |name| text::parameter(parts.next().unwrap_or_default(), name);
    let cost = Cost::new(number("ln")?, number("r")?, number("p")?)?;
    Ok((cost, parts))
}

pub(super) fn read_crypt(text: &str) -> Result<Recipe, ParseError> {
    const MALFORMED: ParseError =
        ParseError::Malformed("$7$ needs N, r and p in 11 digits of crypt(3), salt and 43 digits");
    let text = text.strip_prefix("$7$").ok_or(MALFORMED)?;
    let (text, key) = text.rsplit_once('$').ok_or(MALFORMED)?;
    let (parameters, salt) = text.split_at_checked(11).ok_or(MALFORMED)?;
    let digits: Vec<u32> = parameters.bytes().map(text::crypt_value).collect::<Option<_>>().ok_or(MALFORMED)?;
    let number = |digits: &[u32]| digits.iter().rev().fold(0, |sum, digit| sum << 6 | digit);
    let key = match text::crypt_decode(key) {
        Some((bytes, 0)) if key.len() == 43 => bytes,
        _ => return Err(MALFORMED),
    };
    recipe(Cost::new(digits[0], number(&digits[1..6]), number(&digits[6..]))?, salt.as_bytes().to_vec(), key)
}

/// A hash of these parts, if they are within the limits.
pub(super) fn recipe(cost: Cost, salt: Vec<u8>, key: Vec<u8>) -> Result<Recipe, ParseError> {
    limits::SALT.length(&salt)?;
    limits::TAG.length(&key)?;
    Ok(Recipe::Scrypt(ScryptHash { cost, salt, key }))
}

impl ScryptHash {
    pub(super) fn prepare(&self, password: &[u8]) -> Prepared {
        prepared(self.cost.serial(self.key.len()), password, &self.salt, &self.key)
    }
}

impl fmt::Display for ScryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (salt, key) = (STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.key));
        write!(f, "$scrypt${}${salt}${key}", self.cost)
    }
}
