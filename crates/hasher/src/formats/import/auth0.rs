//! Auth0's `custom_password_hash` of bulk imports, which other systems export too.

use serde::Deserialize;
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use super::{
    Digest, Fast, Imported, ParseError, Salted, Stored,
    json::{Part, WHOLE},
};
use crate::formats::{scrypt, text};

#[derive(Deserialize)]
struct Custom {
    algorithm: String,
    hash: Encoded,
    salt: Option<Encoded>,
    password: Option<Password>,
    /// scrypt's N, r, p and length.
    cost: Option<u32>,
    #[serde(rename = "blockSize")]
    block_size: Option<u32>,
    parallelization: Option<u32>,
    keylen: Option<u32>,
}

#[derive(Deserialize)]
struct Encoded {
    value: String,
    encoding: Option<String>,
    position: Option<String>,
    /// Of an HMAC.
    digest: Option<String>,
    key: Option<Box<Encoded>>,
}

/// Wiped: it may be a fast digest, which is as good as the password.
impl Drop for Encoded {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

#[derive(Deserialize)]
struct Password {
    encoding: Option<String>,
}

/// Reads the JSON object `custom_password_hash`. Knows `argon2`, `bcrypt`, `ldap` and `pbkdf2` (whose value is a text
/// that names its algorithm), `scrypt`, and `md5`, `sha1`, `sha256`, `sha512` and `hmac` (fast). A `password_hash` is
/// bcrypt: [`super::text`] reads it.
///
/// # Errors
/// [`ParseError`] when the JSON, the algorithm or an encoding is something else, or a parameter is outside the limits.
pub fn auth0(custom: &str) -> Result<Imported, ParseError> {
    imported(WHOLE.read(custom)?)
}

/// Reads the value of that field of a user.
pub(super) fn of_user(custom: Value) -> Result<Imported, ParseError> {
    imported(Part("custom_password_hash").read_value(custom)?)
}

fn imported(custom: Custom) -> Result<Imported, ParseError> {
    if !matches!(
        custom.password.as_ref().and_then(|password| password.encoding.as_deref()),
        None | Some("utf8" | "ascii")
    ) {
        return Err(ParseError::Unsupported("encoding of passwords other than utf8"));
    }
    let prefix = match custom.algorithm.as_str() {
        "argon2" => "$argon2",
        "bcrypt" => "$2",
        "pbkdf2" => "$pbkdf2",
        "ldap" => "{",
        "scrypt" => return scrypt(&custom).map(Imported::Stored),
        digest @ ("md5" | "sha1" | "sha256" | "sha512") => return fast(digest, &custom).map(Imported::Fast),
        "hmac" => return hmac(&custom).map(Imported::Fast),
        _ => return Err(ParseError::Unsupported("an unknown algorithm of Auth0")),
    };
    match custom.salt {
        Some(_) => Err(ParseError::Unsupported("a salt beside a hash that has its own")),
        None if !custom.hash.value.starts_with(prefix) => {
            Err(ParseError::Malformed("the value does not match the algorithm"))
        }
        None => super::text(&custom.hash.value),
    }
}

fn scrypt(custom: &Custom) -> Result<Stored, ParseError> {
    let salt = custom.salt.as_ref().ok_or(ParseError::Malformed("scrypt needs a salt"))?;
    // The defaults of these fields, which are Node's.
    let (n, r, p) =
        (custom.cost.unwrap_or(16_384), custom.block_size.unwrap_or(8), custom.parallelization.unwrap_or(1));
    let key = custom.hash.bytes("base64")?;
    if custom.keylen.is_some_and(|length| length as usize != key.len()) {
        return Err(ParseError::Malformed("keylen is not the length of the hash"));
    }
    scrypt::recipe(scrypt::Cost::of_n(n, r, p)?, salt.bytes("utf8")?, key).map(Stored)
}

fn fast(digest: &str, custom: &Custom) -> Result<Fast, ParseError> {
    let digest = Digest::named(digest).ok_or(ParseError::Unsupported("unknown digest"))?;
    let salt = match &custom.salt {
        None => Salted::Not,
        Some(salt) => match salt.position.as_deref() {
            Some("prefix") => Salted::Before(salt.bytes("utf8")?),
            Some("suffix") => Salted::After(salt.bytes("utf8")?),
            _ => return Err(ParseError::Malformed("position of the salt must be prefix or suffix")),
        },
    };
    Fast::new(digest, salt, &Zeroizing::new(custom.hash.bytes("base64")?))
}

/// An HMAC of the password, whose key is in the export like a salt: no secret of it is needed later.
fn hmac(custom: &Custom) -> Result<Fast, ParseError> {
    let Encoded { digest: Some(digest), key: Some(key), .. } = &custom.hash else {
        return Err(ParseError::Malformed("hmac needs a digest and a key in the hash"));
    };
    if custom.salt.is_some() {
        return Err(ParseError::Unsupported("a salt beside an HMAC"));
    }
    let digest =
        Digest::named(digest).ok_or(ParseError::Unsupported("an HMAC of another digest than MD5, SHA-1 and SHA-2"))?;
    let salt = Salted::Key(key.bytes("utf8")?);
    Fast::new(digest, salt, &Zeroizing::new(custom.hash.bytes("base64")?))
}

impl Encoded {
    /// The bytes, in the encoding that it names, or else in `usual`.
    fn bytes(&self, usual: &str) -> Result<Vec<u8>, ParseError> {
        match self.encoding.as_deref().unwrap_or(usual) {
            "base64" => text::any_base64(&self.value),
            "hex" => text::hex(&self.value).ok_or(ParseError::Malformed("not hexadecimal")),
            "utf8" => Ok(self.value.as_bytes().to_vec()),
            _ => Err(ParseError::Unsupported("encoding other than base64, hex and utf8")),
        }
    }
}
