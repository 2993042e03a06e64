//! A fast digest of the password as the password of Argon2id: how MD5, SHA-1 and SHA-2 digests are stored from their
//! import on, since nobody can hash the password itself before its owner types it.
//!
//! ```text
//! $wrapped$d=sha1$argon2id$v=19$…
//! $wrapped$d=sha1,salt=before:SALT$argon2id$v=19$…
//! $wrapped$d=sha1,salt=after:SALT$argon2id$v=19$…
//! $wrapped$d=sha1,salt=key:SALT$argon2id$v=19$…       HMAC, whose key is the salt
//! ```

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

use super::{Argon2Hash, Digest, ParseError, Prepared, Recipe, limits, text};
use crate::{gate::Refusal, pepper::Keys};

/// How the inner digest is made from the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Inner {
    digest: Digest,
    salt: Salted,
}

/// Where the salt of a fast digest stood. Does not print the salt.
#[derive(Clone, PartialEq, Eq)]
pub enum Salted {
    /// There was none.
    Not,
    /// H(salt, password).
    Before(Vec<u8>),
    /// H(password, salt).
    After(Vec<u8>),
    /// HMAC of the password, with the salt as its key.
    Key(Vec<u8>),
}

impl fmt::Debug for Salted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Salted::Not => "Not",
            Salted::Before(_) => "Before(…)",
            Salted::After(_) => "After(…)",
            Salted::Key(_) => "Key(…)",
        })
    }
}

/// A fast digest inside an Argon2 hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WrappedHash {
    inner: Inner,
    outer: Argon2Hash,
}

impl Inner {
    /// # Errors
    /// [`ParseError::Limit`] when the salt is empty or too long.
    pub(super) fn new(digest: Digest, salt: Salted) -> Result<Self, ParseError> {
        if let Salted::Before(salt) | Salted::After(salt) | Salted::Key(salt) = &salt {
            limits::DIGEST_SALT.length(salt)?;
        }
        Ok(Inner { digest, salt })
    }
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }
    fn of(&self, password: &[u8]) -> Zeroizing<Vec<u8>> {
        match &self.salt {
            Salted::Not => self.digest.of(&[password]),
            Salted::Before(salt) => self.digest.of(&[salt, password]),
            Salted::After(salt) => self.digest.of(&[password, salt]),
            Salted::Key(salt) => self.digest.mac(salt, password),
        }
    }
}

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let text = text.strip_prefix("$wrapped$d=").ok_or(ParseError::Malformed("needs the digest first"))?;
    let end = text.find('$').ok_or(ParseError::Malformed("has no outer hash"))?;
    let (inner, outer) = text.split_at(end);
    let (digest, salt) = match inner.split_once(',') {
        None => (inner, Salted::Not),
        Some((digest, salt)) => (
            digest,
            match salt.strip_prefix("salt=").and_then(|salt| salt.split_once(':')) {
                Some(("before", salt)) => Salted::Before(text::b64(salt)?),
                Some(("after", salt)) => Salted::After(text::b64(salt)?),
                Some(("key", salt)) => Salted::Key(text::b64(salt)?),
                _ => return Err(ParseError::Malformed("salt must stand before or after, or be a key")),
            },
        ),
    };
    let digest = Digest::named(digest).ok_or(ParseError::Unsupported("unknown digest"))?;
    Ok(Recipe::Wrapped(WrappedHash { inner: Inner::new(digest, salt)?, outer: Argon2Hash::parse(outer)? }))
}

impl WrappedHash {
    pub(super) fn new(inner: Inner, outer: Argon2Hash) -> Self {
        WrappedHash { inner, outer }
    }
    pub(crate) fn outer(&self) -> &Argon2Hash {
        &self.outer
    }
    pub(super) fn scheme(&self) -> &'static str {
        match self.inner.digest {
            Digest::Md5 => "md5, wrapped",
            Digest::Sha1 => "sha1, wrapped",
            Digest::Sha256 => "sha256, wrapped",
            Digest::Sha384 => "sha384, wrapped",
            Digest::Sha512 => "sha512, wrapped",
        }
    }
    pub(super) fn prepare(&self, password: &[u8], keys: &Keys) -> Result<Prepared, Refusal> {
        self.outer.prepare(&self.inner.of(password), keys)
    }
}

impl fmt::Display for WrappedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$wrapped$d={}", self.inner.digest.name())?;
        match &self.inner.salt {
            Salted::Not => {}
            Salted::Before(salt) => write!(f, ",salt=before:{}", STANDARD_NO_PAD.encode(salt))?,
            Salted::After(salt) => write!(f, ",salt=after:{}", STANDARD_NO_PAD.encode(salt))?,
            Salted::Key(salt) => write!(f, ",salt=key:{}", STANDARD_NO_PAD.encode(salt))?,
        }
        self.outer.fmt(f)
    }
}
