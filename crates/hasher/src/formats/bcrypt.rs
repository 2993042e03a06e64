//! bcrypt, alone and with what systems do to the password before it.
//!
//! ```text
//! $2b$10$SALT22TAG31                        as it is (2a, 2x and 2y too)
//! $wp$2y$10$SALT22TAG31                     WordPress 6.8: base64(HMAC-SHA-384("wp-sha384", password))
//! bcrypt_sha256$$2b$12$SALT22TAG31          Django: hexadecimal SHA-256
//! $bcrypt-sha256$v=2,t=2b,r=12$SALT22$TAG31 passlib: base64(HMAC-SHA-256(SALT22, password))
//! $bcrypt-sha256$2b,12$SALT22$TAG31         passlib before 1.7.3: base64(SHA-256(password))
//! $devise$importid=ID$2a$11$SALT22TAG31     Devise: the password, then its pepper
//! ```
//!
//! bcrypt itself hashes only the first 72 bytes, and WordPress trims blanks first. For a stored hash nothing can be
//! done about that; a password of which not all counts is not rehashed, since the rest may be a typo. Neither is one
//! with a NUL: bcrypt repeats the password with a NUL after each, so that `pw\0pw` is the same as `pw`.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use super::{
    Check, Digest, ParseError, Prepared, Recipe, key, limits,
    spelling::{is_plain, trimmed},
    text,
};
use crate::{
    bcrypt::{BadText, Flavor, Hash, Job},
    gate::Refusal,
    job::{Input, Kind},
    pepper::{KeyId, Keys, Role},
};

/// A bcrypt hash: everything but the password and Devise's pepper.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BcryptHash {
    before: Before,
    hash: Hash,
}

/// What is done to the password before bcrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    WordPress,
    Django,
    Passlib,
    PasslibOld,
    Devise(KeyId),
}

const MALFORMED: ParseError = ParseError::Malformed("bcrypt needs a two-digit cost and 53 characters");

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    recipe(Before::Nothing, text)
}

pub(super) fn read_wordpress(text: &str) -> Result<Recipe, ParseError> {
    recipe(Before::WordPress, text.strip_prefix("$wp").ok_or(MALFORMED)?)
}

/// Reads what follows `bcrypt_sha256$`.
pub(super) fn read_after_django(text: &str) -> Result<Recipe, ParseError> {
    recipe(Before::Django, text)
}

pub(super) fn read_devise(text: &str) -> Result<Recipe, ParseError> {
    const KEY_ID: ParseError = ParseError::Malformed("importid must be 1 to 8 bytes of unpadded base64");
    let text = text.strip_prefix("$devise$importid=").ok_or(KEY_ID)?;
    let (id, hash) = text.split_at(text.find('$').ok_or(MALFORMED)?);
    recipe(Before::Devise(KeyId::from_base64(id).map_err(|_| KEY_ID)?), hash)
}

pub(super) fn read_passlib(text: &str) -> Result<Recipe, ParseError> {
    let text = text.strip_prefix("$bcrypt-sha256$").ok_or(MALFORMED)?;
    let [parameters, salt, tag] = text::fields(text, '$')?;
    let (before, flavor, cost) = match parameters.strip_prefix("v=2,t=") {
        Some(rest) => {
            let (flavor, cost) = rest.split_once(",r=").ok_or(MALFORMED)?;
            (Before::Passlib, flavor, cost)
        }
        None => {
            let (flavor, cost) = parameters.split_once(',').ok_or(MALFORMED)?;
            (Before::PasslibOld, flavor, cost)
        }
    };
    let hash = of_fields(flavor, text::number(cost)?, salt, tag)?;
    Ok(Recipe::Bcrypt(BcryptHash { before, hash }))
}

/// A hash of Devise, whose pepper is the key `id`.
pub(super) fn with_devise_pepper(text: &str, id: KeyId) -> Result<Recipe, ParseError> {
    recipe(Before::Devise(id), text)
}

/// A hash whose salt and tag come separately, each in bcrypt's base64.
pub(super) fn of_parts(cost: u32, salt: &str, tag: &str) -> Result<Recipe, ParseError> {
    let hash = of_fields(Flavor::A.name(), cost, salt, tag)?;
    Ok(Recipe::Bcrypt(BcryptHash { before: Before::Nothing, hash }))
}

fn recipe(before: Before, text: &str) -> Result<Recipe, ParseError> {
    Ok(Recipe::Bcrypt(BcryptHash { before, hash: admitted(text.parse())? }))
}

fn of_fields(flavor: &str, cost: u32, salt: &str, tag: &str) -> Result<Hash, ParseError> {
    let flavor = Flavor::named(flavor).ok_or(BadText::FLAVOR);
    admitted(flavor.and_then(|flavor| Hash::of_parts(flavor, cost, salt, tag)))
}

/// The hash, if its cost is within the limits, which are narrower than those of the format.
fn admitted(read: Result<Hash, BadText>) -> Result<Hash, ParseError> {
    match read {
        Ok(hash) => limits::BCRYPT_COST.admit(hash.cost.into()).map(|()| hash).map_err(ParseError::Limit),
        Err(BadText::COST) => Err(ParseError::Limit(limits::BCRYPT_COST)),
        Err(BadText::FLAVOR) => Err(ParseError::Unsupported("a flavor of bcrypt other than 2a, 2b, 2x and 2y")),
        Err(_) => Err(MALFORMED),
    }
}

impl BcryptHash {
    /// The key that holds Devise's pepper.
    pub(crate) fn key_id(&self) -> Option<KeyId> {
        match self.before {
            Before::Devise(id) => Some(id),
            _ => None,
        }
    }

    pub(super) fn is_of_wordpress(&self) -> bool {
        matches!(self.before, Before::WordPress)
    }

    /// Whether all of the password counts.
    pub(super) fn hears_all_of(&self, password: &[u8]) -> bool {
        match self.before {
            // In $2x$, a byte from 0x80 hides those before it in its word of four.
            Before::Nothing | Before::Devise(_) => {
                let covers = self.hash.flavor == Flavor::X && !password.is_ascii();
                password.len() <= crate::bcrypt::KEY_BYTES && !password.contains(&0) && !covers
            }
            Before::WordPress => is_plain(password),
            Before::Django | Before::Passlib | Before::PasslibOld => true,
        }
    }

    pub(super) fn prepare(&self, password: &[u8], keys: &Keys) -> Result<Prepared, Refusal> {
        let Hash { flavor, cost, salt, tag } = self.hash;
        let key = self.key(password, keys)?;
        let input = Input::Bcrypt(Job { flavor, key, salt });
        Ok(Prepared { kind: Kind::Bcrypt { cost }, input, check: Check::Tag(tag.to_vec()) })
    }

    /// The key that bcrypt gets for this password.
    fn key(&self, password: &[u8], keys: &Keys) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        Ok(match self.before {
            Before::Nothing => Zeroizing::new(password.to_vec()),
            Before::WordPress => base64(&Digest::Sha384.mac(b"wp-sha384", trimmed(password))),
            Before::Django => text::hex_text(&Digest::Sha256.of(&[password])),
            Before::Passlib => base64(&Digest::Sha256.mac(self.hash.salt_text().as_bytes(), password)),
            Before::PasslibOld => base64(&Digest::Sha256.of(&[password])),
            Before::Devise(id) => Zeroizing::new([password, key(keys, Role::Import, id)?.bytes()].concat()),
        })
    }
}

/// Base64 of bytes as secret as the password; the text has its final size at once.
fn base64(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(STANDARD.encode(bytes).into_bytes())
}

impl fmt::Display for BcryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = &self.hash;
        let (name, cost) = (hash.flavor.name(), hash.cost);
        match self.before {
            Before::Nothing => hash.fmt(f),
            Before::WordPress => write!(f, "$wp{hash}"),
            Before::Django => write!(f, "bcrypt_sha256${hash}"),
            Before::Passlib => {
                write!(f, "$bcrypt-sha256$v=2,t={name},r={cost}${}${}", hash.salt_text(), hash.tag_text())
            }
            Before::PasslibOld => write!(f, "$bcrypt-sha256${name},{cost}${}${}", hash.salt_text(), hash.tag_text()),
            Before::Devise(id) => write!(f, "$devise$importid={id}{hash}"),
        }
    }
}
