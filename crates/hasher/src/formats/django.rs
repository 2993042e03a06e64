//! Django's password column, and so authentik's. Salts are text.
//!
//! ```text
//! pbkdf2_sha256$600000$SALT$KEY             padded base64; pbkdf2_sha1 too
//! argon2$argon2id$v=19$…                    PHC
//! bcrypt_sha256$$2b$12$…                    hexadecimal SHA-256 before bcrypt
//! bcrypt$$2b$12$…
//! scrypt$16384$SALT$8$5$KEY                 N, salt, r, p
//! ```

use super::{ParseError, Recipe, argon2, bcrypt, pbkdf2, scrypt, text};

const PREFIX: ParseError = ParseError::Malformed("not one of Django's prefixes");

pub(super) fn read_pbkdf2(text: &str) -> Result<Recipe, ParseError> {
    let [name, iterations, salt, key] = text::fields(text, '$')?;
    let digest = match name {
        "pbkdf2_sha1" => "sha1",
        "pbkdf2_sha256" => "sha256",
        _ => return Err(ParseError::Unsupported("PBKDF2 of Django with a digest other than sha1 and sha256")),
    };
    let digest = pbkdf2::digest(digest)?;
    pbkdf2::recipe(digest, text::number(iterations)?, salt.as_bytes().to_vec(), text::padded(key)?)
}

pub(super) fn read_argon2(text: &str) -> Result<Recipe, ParseError> {
    argon2::read(text.strip_prefix("argon2").ok_or(PREFIX)?)
}

pub(super) fn read_bcrypt(text: &str) -> Result<Recipe, ParseError> {
    bcrypt::read(text.strip_prefix("bcrypt$").ok_or(PREFIX)?)
}

pub(super) fn read_bcrypt_sha256(text: &str) -> Result<Recipe, ParseError> {
    bcrypt::read_after_django(text.strip_prefix("bcrypt_sha256$").ok_or(PREFIX)?)
}

pub(super) fn read_scrypt(text: &str) -> Result<Recipe, ParseError> {
    let [_, n, salt, r, p, key] = text::fields(text, '$')?;
    let cost = scrypt::Cost::of_n(text::number(n)?, text::number(r)?, text::number(p)?)?;
    scrypt::recipe(cost, salt.as_bytes().to_vec(), text::padded(key)?)
}
