//! FusionAuth's users, as its import API takes them.

use serde::Deserialize;

use super::{ParseError, Stored, json::WHOLE};
use crate::formats::{Digest, bcrypt, pbkdf2, text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    encryption_scheme: String,
    factor: u32,
    salt: String,
    password: String,
}

/// Reads a user of FusionAuth: JSON with `encryptionScheme`, `factor`, `salt` and `password`. Knows `bcrypt` (22 and 31
/// characters of bcrypt's base64) and `salted-pbkdf2-hmac-sha256`, `…-sha256-512` and `…-sha512-512` (base64).
///
/// # Errors
/// [`ParseError`] when the JSON or the scheme is something else, or a parameter is outside the limits.
pub fn fusionauth(user: &str) -> Result<Stored, ParseError> {
    let user: User = WHOLE.read(user)?;
    let (digest, bytes) = match user.encryption_scheme.as_str() {
        "bcrypt" => return bcrypt::of_parts(user.factor, &user.salt, &user.password).map(Stored),
        "salted-pbkdf2-hmac-sha256" => (Digest::Sha256, 32),
        "salted-pbkdf2-hmac-sha256-512" => (Digest::Sha256, 64),
        "salted-pbkdf2-hmac-sha512-512" => (Digest::Sha512, 64),
        _ => return Err(ParseError::Unsupported("scheme of FusionAuth other than bcrypt and PBKDF2")),
    };
    let key = text::any_base64(&user.password)?;
    if key.len() != bytes {
        return Err(ParseError::Malformed("length of the derived key is not the scheme's"));
    }
    pbkdf2::recipe(digest, user.factor, text::any_base64(&user.salt)?, key).map(Stored)
}
