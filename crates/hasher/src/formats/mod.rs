//! Stored hashes as text: read strictly, kept in one canonical spelling, and prepared for the slow part.
//!
//! A hash that names its own algorithm is read by [`Stored::from_str`]; a hash that needs context (a signer key, a
//! separate salt column) comes through [`import`]. Either way the result is one of a few recipes, and
//! [`Display`](fmt::Display) writes the text to store: PBKDF2 of Django, Werkzeug or Keycloak becomes
//! `$pbkdf2-sha256$…`. The text contains no secrets; it names them by id.
//!
//! Modules: one file per family; `text` reads pieces, `limits` is the table of what is admitted, `serial` computes
//! hashes without a kernel, `romix` scrypt, `prf` HMAC, `check` decides at the end, `draft` makes new hashes, `refused`
//! says what a text is that is none.

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
pub(crate) mod prf;
mod refused;
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

/// Whose password it is. A bound verifier is worthless for anybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The realm, within which user ids are unique.
    pub realm: &'a str,
    /// The id of the user, which never changes and is never given to another user.
    pub user: &'a str,
}

/// Why a text is not a stored hash that can be verified here. The messages are fixed and repeat nothing of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// It does not follow the format.
    Malformed(&'static str),
    /// It may be a hash, but of an algorithm, version or option that is not supported.
    Unsupported(&'static str),
    /// It is JSON that cannot be read.
    Json(BadJson),
    /// One of its parameters lies outside the limits.
    Limit(Limit),
}

impl fmt::Display for ParseError {
    /// Says what is wrong; the caller adds with what.
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

/// What a text begins with, and its reader.
const FAMILIES: [(&str, Reader); 26] = [
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

    /// Reads a stored hash. Never panics; every text is either exactly one hash or is refused.
    ///
    /// # Errors
    /// See [`ParseError`]. A digest that is too fast to be stored as it is is unsupported here: [`import::text`] reads
    /// it.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        limits::TEXT.length(text.as_bytes())?;
        if let Some(why) = refused::by_name(text).or_else(|| refused::line(text)) {
            return Err(ParseError::Unsupported(why));
        }
        match FAMILIES.iter().find(|(prefix, _)| text.starts_with(prefix)) {
            Some((_, read)) => read(text).map(Stored),
            None => Err(ParseError::Unsupported(refused::unknown(text))),
        }
    }
}

impl fmt::Display for Stored {
    /// Writes the canonical text, which is the one to store.
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
    /// Prints neither salt nor tag: a log is no place for anything that helps to guess a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({} …)", self.scheme())
    }
}

impl Stored {
    /// Every name that [`Stored::scheme`] returns.
    pub const SCHEMES: [&str; 16] = [
        "argon2id",
        "argon2id, bound",
        "argon2i",
        "argon2d",
        "bcrypt",
        "pbkdf2",
        "scrypt",
        "firebase scrypt",
        "sha-crypt",
        "phpass",
        "drupal",
        "md5, wrapped",
        "sha1, wrapped",
        "sha256, wrapped",
        "sha384, wrapped",
        "sha512, wrapped",
    ];

    /// The algorithm, for statistics on how many hashes of each kind are left.
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

    /// The keys that are needed to verify it. An import should refuse a hash whose key is not configured.
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

    /// Does all the cheap work before the slow part: pre-hash, H0, pepper. Where every round takes the password, the
    /// kind of the remaining work depends on its length; the longest allowed password is the most expensive.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] when a key that it needs is missing, [`Refusal::Limit`] when it is outside the limits.
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

    /// Whether all of the password counts, so that no other one is accepted: bcrypt ends after 72 bytes, WordPress and
    /// Drupal trim blanks, and an HMAC ignores NULs at the end of its key. A password into which another program may
    /// have put a backslash need not be what its owner types.
    pub(crate) fn hears_all_of(&self, password: &[u8]) -> bool {
        match &self.0 {
            Recipe::Bcrypt(hash) => hash.hears_all_of(password),
            Recipe::Chain(hash) if hash.is_of_drupal() => spelling::is_trimmed(password),
            Recipe::Chain(_) => spelling::is_plain(password),
            Recipe::Pbkdf2(hash) => hash.hears_all_of(password),
            // scrypt begins and ends with PBKDF2-HMAC-SHA-256 of the password.
            Recipe::Scrypt(_) | Recipe::Firebase(_) => Digest::Sha256.tells_apart(password),
            // These digest the password beside its length or within a message, where a NUL is a byte like any other.
            Recipe::Argon2(_) | Recipe::Bound(_) | Recipe::Wrapped(_) | Recipe::ShaCrypt(_) => true,
        }
    }

    /// How many spellings of a password there may be, including the typed one.
    pub(crate) fn tries(&self) -> u32 {
        match &self.0 {
            Recipe::Bcrypt(hash) if hash.is_of_wordpress() => 2,
            Recipe::Chain(hash) if hash.is_of_drupal() => 2,
            Recipe::Chain(_) => 1 + spelling::OF_PHPASS as u32,
            _ => 1,
        }
    }

    /// The other spellings that the program which made the hash may have been given for this password.
    pub(crate) fn spellings(&self, password: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
        match &self.0 {
            Recipe::Bcrypt(hash) if hash.is_of_wordpress() => spelling::of_wordpress(password),
            Recipe::Chain(hash) if hash.is_of_drupal() => spelling::of_drupal(password),
            Recipe::Chain(_) => spelling::of_phpass(password),
            _ => Vec::new(),
        }
    }
}

/// Finds the key of this role and name; the refusal says which kind is missing.
fn key(keys: &Keys, role: Role, id: KeyId) -> Result<&Key, Refusal> {
    keys.find(role, id).ok_or(Refusal::Unsupported(match role {
        Role::Pepper => "made with a pepper that is not configured",
        Role::Binding => "bound by a key that is not configured",
        Role::Import => "needs a key of the system it was imported from, which is not configured",
    }))
}

/// A digest that could be guessed fast if it were stored.
const FAST: ParseError = ParseError::Unsupported("a fast digest, which is stored only wrapped: import it");
