//! Werkzeug's (Flask's) hashes. Salts are text, keys hexadecimal.
//!
//! ```text
//! pbkdf2:sha256:600000$SALT$KEY
//! scrypt:32768:8:1$SALT$KEY                 N, r, p
//! ```

use super::{ParseError, Recipe, pbkdf2, scrypt, text};

pub(super) fn read_pbkdf2(text: &str) -> Result<Recipe, ParseError> {
    let [method, salt, key] = text::fields(text, '$')?;
    let [_, digest, iterations] = text::fields(method, ':')?;
    pbkdf2::recipe(pbkdf2::digest(digest)?, text::number(iterations)?, salt.as_bytes().to_vec(), hex(key)?)
}

pub(super) fn read_scrypt(text: &str) -> Result<Recipe, ParseError> {
    let [method, salt, key] = text::fields(text, '$')?;
    let [_, n, r, p] = text::fields(method, ':')?;
    let cost = scrypt::Cost::of_n(text::number(n)?, text::number(r)?, text::number(p)?)?;
    scrypt::recipe(cost, salt.as_bytes().to_vec(), hex(key)?)
}

fn hex(text: &str) -> Result<Vec<u8>, ParseError> {
    text::hex(text).ok_or(ParseError::Malformed("not hexadecimal"))
}
