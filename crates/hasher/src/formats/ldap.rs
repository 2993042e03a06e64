//! LDAP's userPassword (RFC 2307, OpenLDAP's schemes): `{SCHEME}` in any case, then what the scheme has.
//!
//! ```text
//! {PBKDF2-SHA256}10000$SALT$KEY             adapted base64; {PBKDF2} is SHA-1
//! {CRYPT}$2y$10$…                           bcrypt only; {BCRYPT} and {BLF-CRYPT} are the same
//! {ARGON2}$argon2id$…                       {ARGON2I} and {ARGON2ID} too
//! {SSHA}, {SHA}, {SMD5}, {MD5}, {SSHA256} … fast: stored only wrapped
//! ```

use std::cmp::Ordering;

use super::{Digest, FAST, ParseError, Recipe, argon2, bcrypt, import::Fast, pbkdf2, text, wrapped::Salted};

const SCHEME: ParseError = ParseError::Unsupported("scheme of LDAP");

/// The schemes that are fast digests, with and without a salt after the password.
const DIGESTS: [(&str, Digest, bool); 10] = [
    ("MD5", Digest::Md5, false),
    ("SMD5", Digest::Md5, true),
    ("SHA", Digest::Sha1, false),
    ("SSHA", Digest::Sha1, true),
    ("SHA256", Digest::Sha256, false),
    ("SSHA256", Digest::Sha256, true),
    ("SHA384", Digest::Sha384, false),
    ("SSHA384", Digest::Sha384, true),
    ("SHA512", Digest::Sha512, false),
    ("SSHA512", Digest::Sha512, true),
];

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let (scheme, rest) = split(text)?;
    match scheme.as_str() {
        "PBKDF2" | "PBKDF2-SHA1" => pbkdf2(Digest::Sha1, rest),
        "PBKDF2-SHA256" => pbkdf2(Digest::Sha256, rest),
        "PBKDF2-SHA512" => pbkdf2(Digest::Sha512, rest),
        "CRYPT" if !rest.starts_with("$2") => Err(ParseError::Unsupported("{CRYPT} of anything but bcrypt")),
        "CRYPT" | "BCRYPT" | "BLF-CRYPT" => bcrypt::read(rest),
        "ARGON2" | "ARGON2I" | "ARGON2ID" => argon2::read(rest),
        _ if digest(&scheme).is_some() => Err(FAST),
        _ => Err(SCHEME),
    }
}

/// Reads a fast digest. `None` when the text is something else.
pub(super) fn fast(text: &str) -> Option<Result<Fast, ParseError>> {
    let (scheme, rest) = split(text).ok()?;
    let (digest, salted) = digest(&scheme)?;
    Some(text::padded(rest).and_then(|mut value| match (value.len().cmp(&digest.bytes()), salted) {
        (Ordering::Greater, true) => {
            let salt = value.split_off(digest.bytes());
            Fast::new(digest, Salted::After(salt), &value)
        }
        (Ordering::Equal, false) => Fast::new(digest, Salted::Not, &value),
        _ => Err(ParseError::Malformed("length of the digest")),
    }))
}

fn digest(scheme: &str) -> Option<(Digest, bool)> {
    DIGESTS.iter().find(|(name, ..)| *name == scheme).map(|&(_, digest, salted)| (digest, salted))
}

fn split(text: &str) -> Result<(String, &str), ParseError> {
    let (scheme, rest) = text.strip_prefix('{').and_then(|text| text.split_once('}')).ok_or(SCHEME)?;
    Ok((scheme.to_ascii_uppercase(), rest))
}

fn pbkdf2(digest: Digest, text: &str) -> Result<Recipe, ParseError> {
    let [iterations, salt, key] = text::fields(text, '$')?;
    pbkdf2::recipe(digest, text::number(iterations)?, text::adapted(salt)?, text::adapted(key)?)
}
