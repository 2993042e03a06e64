//! Stored hashes as text: read strictly, kept in one canonical spelling, and prepared for the slow part.
//!
//! A hash that names its own algorithm is read by [`Stored::from_str`]; one that needs context (a signer key, a
//! separate salt column) comes through [`import`]. Either way the result is one of a few recipes, and
//! [`Display`](fmt::Display) writes the text that is kept: Django's, Werkzeug's or Keycloak's PBKDF2 is
//! `$pbkdf2-sha256$…` from then on. Secrets are never in the text; it names them by id.
//!
//! Rooms: a file per family; `text` reads pieces, `limits` is the table of what is admitted, `serial` computes what has
//! no kernel, `romix` scrypt, `prf` HMAC, `check` decides at the end, `draft` makes new hashes.

mod argon2;
mod aspnet;
mod bcrypt;
mod bound;
mod chain;
mod check;
mod django;
mod draft;
mod firebase;
pub mod import;
mod ldap;
pub(crate) mod limits;
mod pbkdf2;
mod prf;
mod romix;
mod scrypt;
pub(crate) mod serial;
mod sha_crypt;
mod spelling;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod werkzeug;
mod wrapped;

use std::{fmt, str::FromStr};

use zeroize::Zeroizing;

pub use limits::Limit;
pub use serial::Digest;

pub(crate) use {
    argon2::Argon2Hash,
    bound::BoundHash,
    check::{Check, Prepared},
    draft::{Draft, params},
};

use {
    bcrypt::BcryptHash, chain::ChainHash, firebase::FirebaseHash, import::BadJson, pbkdf2::Pbkdf2Hash,
    scrypt::ScryptHash, sha_crypt::ShaCryptHash, wrapped::WrappedHash,
};

use crate::{
    gate::Refusal,
    pepper::{Key, KeyId, Keys, Role},
};

/// A stored hash, of any format that can be verified, within the limits.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored(pub(crate) Recipe);

/// How a stored hash was made.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Recipe {
    Argon2(Argon2Hash),
    Bound(BoundHash),
    Wrapped(WrappedHash),
    Bcrypt(BcryptHash),
    Pbkdf2(Pbkdf2Hash),
    Scrypt(ScryptHash),
    Chain(ChainHash),
    ShaCrypt(ShaCryptHash),
    Firebase(FirebaseHash),
}

/// Whose password it is. A bound verifier is worth nothing for anybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The realm: what user ids are unique in.
    pub realm: &'a str,
    /// The id of the user, which never changes and never passes to another.
    pub user: &'a str,
}

/// Why a text is no stored hash that can be verified here. The texts are fixed and repeat nothing of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// It does not follow the format.
    Malformed(&'static str),
    /// It may be a hash, but of an algorithm, version or option that is not supported.
    Unsupported(&'static str),
    /// It is in JSON, and that cannot be read.
    Json(BadJson),
    /// A parameter of it lies outside what is admitted.
    Limit(Limit),
}

impl fmt::Display for ParseError {
    /// Of what, says whoever asked for a hash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Malformed(why) => write!(f, "malformed: {why}"),
            ParseError::Unsupported(why) => write!(f, "unsupported: {why}"),
            ParseError::Json(bad) => bad.fmt(f),
            ParseError::Limit(limit) => write!(f, "outside the limits: {limit}"),
        }
    }
}

impl std::error::Error for ParseError {}

impl From<Limit> for ParseError {
    fn from(limit: Limit) -> Self {
        ParseError::Limit(limit)
    }
}

type Reader = fn(&str) -> Result<Recipe, ParseError>;

/// What a text begins with, and who reads it.
const FAMILIES: [(&str, Reader); 27] = [
    ("$argon2", argon2::read),
    ("$pv1$", bound::read),
    ("$wrapped$", wrapped::read),
    ("$2", bcrypt::read),
    ("$wp$", bcrypt::read_wordpress),
    ("$devise$", bcrypt::read_devise),
    ("$bcrypt-sha256$", bcrypt::read_passlib),
    ("$pbkdf2", pbkdf2::read),
    ("$scrypt$", scrypt::read),
    ("$7$", scrypt::read_crypt),
    ("$P$", chain::read_phpass),
    ("$H$", chain::read_phpass),
    ("$S$", chain::read_drupal),
    ("U$S$", chain::read_drupal_6),
    ("$5$", sha_crypt::read),
    ("$6$", sha_crypt::read),
    ("$1$", |_| Err(MD5_CRYPT)),
    ("$firebase$", firebase::read),
    ("pbkdf2_", django::read_pbkdf2),
    ("argon2$", django::read_argon2),
    ("bcrypt$", django::read_bcrypt),
    ("bcrypt_sha256$", django::read_bcrypt_sha256),
    ("scrypt$", django::read_scrypt),
    ("pbkdf2:", werkzeug::read_pbkdf2),
    ("scrypt:", werkzeug::read_scrypt),
    ("{", ldap::read),
    // Version 0 or 1 and zeroes, in base64.
    ("A", aspnet::read),
];

impl FromStr for Stored {
    type Err = ParseError;

    /// Reads a stored hash. Never panics; every text is either one exact hash or refused.
    ///
    /// # Errors
    /// See [`ParseError`]. A digest that is too fast to be stored as it is, is unsupported here: [`import::text`] takes
    /// it.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        limits::TEXT.length(text.as_bytes())?;
        match FAMILIES.iter().find(|(prefix, _)| text.starts_with(prefix)) {
            Some((_, read)) => read(text).map(Stored),
            None => Err(ParseError::Unsupported("unknown algorithm")),
        }
    }
}

impl fmt::Display for Stored {
    /// The canonical text, which is what to keep.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Recipe::Argon2(hash) => hash.fmt(f),
            Recipe::Bound(hash) => hash.fmt(f),
            Recipe::Wrapped(hash) => hash.fmt(f),
            Recipe::Bcrypt(hash) => hash.fmt(f),
            Recipe::Pbkdf2(hash) => hash.fmt(f),
            Recipe::Scrypt(hash) => hash.fmt(f),
            Recipe::Chain(hash) => hash.fmt(f),
            Recipe::ShaCrypt(hash) => hash.fmt(f),
            Recipe::Firebase(hash) => hash.fmt(f),
        }
    }
}

impl fmt::Debug for Stored {
    /// Without salt and tag: a log is no place for what a password can be guessed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({} …)", self.scheme())
    }
}

impl Stored {
    /// The algorithm, for statistics: how many hashes are still of which kind.
    pub fn scheme(&self) -> &'static str {
        match &self.0 {
            Recipe::Argon2(hash) => hash.params().algorithm.name(),
            Recipe::Bound(_) => "argon2id, bound",
            Recipe::Wrapped(hash) => hash.scheme(),
            Recipe::Bcrypt(_) => "bcrypt",
            Recipe::Pbkdf2(_) => "pbkdf2",
            Recipe::Scrypt(_) => "scrypt",
            Recipe::Chain(hash) => hash.scheme(),
            Recipe::ShaCrypt(_) => "sha-crypt",
            Recipe::Firebase(_) => "firebase scrypt",
        }
    }

    /// The keys without which it cannot be verified. An import should refuse a hash whose key is not configured.
    pub fn keys(&self) -> impl Iterator<Item = (Role, KeyId)> {
        let (first, second) = match &self.0 {
            Recipe::Argon2(hash) => (hash.key_id().map(|id| (Role::Pepper, id)), None),
            Recipe::Bound(hash) => (Some((Role::Pepper, hash.pepper())), Some((Role::Binding, hash.binding()))),
            Recipe::Wrapped(hash) => (hash.outer().key_id().map(|id| (Role::Pepper, id)), None),
            Recipe::Bcrypt(hash) => (hash.key_id().map(|id| (Role::Import, id)), None),
            Recipe::Firebase(hash) => (Some((Role::Import, hash.key_id())), None),
            Recipe::Pbkdf2(_) | Recipe::Scrypt(_) | Recipe::Chain(_) | Recipe::ShaCrypt(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Does all the cheap work before the slow part: pre-hash, H0, pepper. The kind of work that is left depends on the
    /// length of the password where rounds take it again and again; the longest password there may be is the dearest.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] when a key it needs is not there, [`Refusal::Limit`] when it is outside the limits.
    pub(crate) fn prepare(&self, password: &[u8], subject: Subject<'_>, keys: &Keys) -> Result<Prepared, Refusal> {
        let prepared = match &self.0 {
            Recipe::Argon2(hash) => hash.prepare(password, keys)?,
            Recipe::Bound(hash) => hash.prepare(password, subject, keys)?,
            Recipe::Wrapped(hash) => hash.prepare(password, keys)?,
            Recipe::Bcrypt(hash) => hash.prepare(password, keys)?,
            Recipe::Pbkdf2(hash) => hash.prepare(password),
            Recipe::Scrypt(hash) => hash.prepare(password),
            Recipe::Chain(hash) => hash.prepare(password),
            Recipe::ShaCrypt(hash) => hash.prepare(password),
            Recipe::Firebase(hash) => hash.prepare(password, keys)?,
        };
        match limits::kind(&prepared.kind) {
            Ok(()) => Ok(prepared),
            Err(limit) => Err(Refusal::Limit(limit)),
        }
    }

    /// Whether all of a password counts, and no other one is as right: bcrypt ends after 72 bytes, WordPress takes off blanks, and an
    /// HMAC does not hear the NULs at the end of its key. What another program may have put a backslash into need not be what its owner
    /// types.
    pub(crate) fn hears_all_of(&self, password: &[u8]) -> bool {
        match &self.0 {
            Recipe::Bcrypt(hash) => hash.hears_all_of(password),
            Recipe::Chain(hash) if hash.is_of_php() => spelling::is_plain(password),
            Recipe::Pbkdf2(hash) => hash.hears_all_of(password),
            // It begins and ends with PBKDF2-HMAC-SHA-256 of the password.
            Recipe::Scrypt(_) | Recipe::Firebase(_) => Digest::Sha256.tells_apart(password),
            // These digest the password beside its length or as part of a message, where a NUL is a byte as others are.
            Recipe::Argon2(_) | Recipe::Bound(_) | Recipe::Wrapped(_) | Recipe::Chain(_) | Recipe::ShaCrypt(_) => true,
        }
    }

    /// How many spellings there may be of a password, with the one that is typed.
    pub(crate) fn tries(&self) -> u32 {
        match &self.0 {
            Recipe::Bcrypt(hash) if hash.is_of_wordpress() => 2,
            Recipe::Chain(hash) if hash.is_of_php() => 1 + spelling::OF_PHPASS as u32,
            _ => 1,
        }
    }

    /// What the program that made the hash may have been given in the place of this password, where that differs.
    pub(crate) fn spellings(&self, password: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
        match &self.0 {
            Recipe::Bcrypt(hash) if hash.is_of_wordpress() => spelling::of_wordpress(password),
            Recipe::Chain(hash) if hash.is_of_php() => spelling::of_phpass(password),
            _ => Vec::new(),
        }
    }
}

/// The key of this role and name, or the refusal that says which kind is missing.
fn key(keys: &Keys, role: Role, id: KeyId) -> Result<&Key, Refusal> {
    keys.find(role, id).ok_or(Refusal::Unsupported(match role {
        Role::Pepper => "made with a pepper that is not configured",
        Role::Binding => "bound by a key that is not configured",
        Role::Import => "needs a key of the system it was imported from, which is not configured",
    }))
}

/// A digest that would be an answer to fast guessing if it were stored.
const FAST: ParseError = ParseError::Unsupported("a fast digest, which is stored only wrapped: import it");

/// A thousand rounds of MD5, which are over at once; where only such hashes are known, their owners choose new passwords.
const MD5_CRYPT: ParseError =
    ParseError::Unsupported("md5-crypt ($1$), a fast digest: let its owner choose a password");
