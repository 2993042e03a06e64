//! Hashes of other systems, as their exports contain them. Each function returns a [`Stored`] whose text is
//! self-contained except for secrets, which it names by [`KeyId`]; a digest that is too fast to be stored comes as
//! [`Imported::Fast`] and has to be wrapped first.
//!
//! [`text`] reads what other systems keep as one text: PHC strings, bcrypt, phpass, Drupal, WordPress, Django and
//! authentik, Werkzeug, LDAP, ASP.NET Core Identity.

mod auth0;
mod firebase;
mod fusionauth;
mod json;
mod keycloak;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use zeroize::Zeroizing;

pub use super::wrapped::Salted;
pub use {
    auth0::auth0,
    firebase::{Firebase, firebase},
    fusionauth::fusionauth,
    json::BadJson,
    keycloak::keycloak,
};

use super::{Digest, ParseError, Stored, bcrypt, ldap, limits, text::fields, wrapped::Inner};
use crate::pepper::KeyId;

/// An imported hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It can be stored.
    Stored(Stored),
    /// It has to be wrapped in Argon2id first, which costs one hash.
    Fast(Fast),
}

impl From<Stored> for Imported {
    fn from(stored: Stored) -> Self {
        Imported::Stored(stored)
    }
}

/// A digest of the password that is too fast to be stored. Wiped on drop; prints only its algorithm.
#[derive(Clone, PartialEq, Eq)]
pub struct Fast {
    inner: Inner,
    value: Zeroizing<Vec<u8>>,
}

impl Fast {
    /// Takes the digest `value` of a password, with the salt where it stood.
    ///
    /// # Errors
    /// [`ParseError`] when `value` does not have the digest's length, or the salt is empty or longer than 128 bytes.
    pub fn new(digest: Digest, salt: Salted, value: &[u8]) -> Result<Self, ParseError> {
        if value.len() != digest.bytes() {
            return Err(ParseError::Malformed("the digest has the wrong length"));
        }
        Ok(Fast { inner: Inner::new(digest, salt)?, value: Zeroizing::new(value.to_vec()) })
    }
    /// As [`Fast::new`], from hexadecimal digits in either case.
    ///
    /// # Errors
    /// As [`Fast::new`], and when `value` is not hexadecimal.
    pub fn hex(digest: Digest, salt: Salted, value: &str) -> Result<Self, ParseError> {
        let value = super::text::hex(value).ok_or(ParseError::Malformed("not hexadecimal"))?;
        Fast::new(digest, salt, &Zeroizing::new(value))
    }
    /// As [`Fast::new`], from base64 in either alphabet, padded or not.
    ///
    /// # Errors
    /// As [`Fast::new`], and when `value` is not base64.
    pub fn base64(digest: Digest, salt: Salted, value: &str) -> Result<Self, ParseError> {
        Fast::new(digest, salt, &Zeroizing::new(super::text::any_base64(value)?))
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }
    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }
}

impl std::fmt::Debug for Fast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fast({} …)", self.inner.digest().name())
    }
}

/// Reads any hash that names its own algorithm.
///
/// # Errors
/// [`ParseError`] says why the text is none.
pub fn text(text: &str) -> Result<Imported, ParseError> {
    limits::TEXT.length(text.as_bytes())?;
    match ldap::fast(text).or_else(|| salted_digest(text)) {
        Some(fast) => fast.map(Imported::Fast),
        None => text.parse().map(Imported::Stored),
    }
}

/// Reads whatever another system stored: a text that names its format, or the JSON object of one account. Its fields
/// tell which object it is:
///
/// | fields | whose |
/// |---|---|
/// | `credentialData`, `secretData` | Keycloak's credential: see [`keycloak`] |
/// | `encryptionScheme` | FusionAuth's user: see [`fusionauth`] |
/// | `passwordHash` or `password_hash` that begins with `$` | Auth0's user, as its support exports it: see [`text`] |
/// | `passwordHash` otherwise | Firebase's user with the project's parameters: see [`firebase`] |
/// | `encrypted_password` | Devise's user: see [`devise_json`] |
/// | `algorithm`, or a user with `custom_password_hash` | what is imported into Auth0: see [`auth0`] |
///
/// A byte order mark in front, as programs on Windows write it, is skipped.
///
/// # Errors
/// As [`text`] and these functions; [`ParseError::Json`] when it is JSON that cannot be read, or of no known shape.
pub fn any(given: &str) -> Result<Imported, ParseError> {
    // Before anything is read.
    limits::JSON.length(given.as_bytes())?;
    let given = given.strip_prefix('\u{feff}').unwrap_or(given);
    let begun = given.trim_start();
    match begun.as_bytes().first() {
        // `{SSHA}…` of LDAP begins like an object, too.
        Some(b'{') if !ldap::is_scheme(begun) => object(given),
        Some(b'[' | b'"') => Err(json::WHOLE.error("is not an object")),
        _ => text(given),
    }
}

/// Reads the JSON object of one account.
fn object(given: &str) -> Result<Imported, ParseError> {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(rename = "credentialData")]
        credential_data: Option<Value>,
        #[serde(rename = "secretData")]
        secret_data: Option<Value>,
        #[serde(rename = "encryptionScheme")]
        encryption_scheme: Option<IgnoredAny>,
        #[serde(rename = "passwordHash")]
        exported: Option<String>,
        password_hash: Option<String>,
        custom_password_hash: Option<Value>,
        encrypted_password: Option<IgnoredAny>,
        algorithm: Option<IgnoredAny>,
    }
    match json::WHOLE.read(given)? {
        Shape { credential_data: Some(data), secret_data: Some(secret), .. } => keycloak::of_parts(data, secret),
        Shape { credential_data: Some(_), .. } => Err(json::WHOLE.error("lacks the field secretData")),
        Shape { secret_data: Some(_), .. } => Err(json::WHOLE.error("lacks the field credentialData")),
        Shape { encryption_scheme: Some(_), .. } => fusionauth(given),
        Shape { exported: Some(hash), .. } | Shape { password_hash: Some(hash), .. } if hash.starts_with('$') => {
            return text(&hash);
        }
        Shape { exported: Some(_), .. } => firebase(given),
        Shape { custom_password_hash: Some(hash), .. } => return auth0::of_user(hash),
        Shape { encrypted_password: Some(_), .. } => devise_json(given),
        Shape { algorithm: Some(_), .. } => return auth0(given),
        _ => Err(json::WHOLE.error("has none of the fields of a known export")),
    }
    .map(Imported::Stored)
}

/// Reads `md5$SALT$HEX` and `sha1$SALT$HEX` of early versions of Django, H(salt, password); and these,
/// `sha256$SALT$HEX` and so on of Werkzeug before 3.0: an HMAC whose key is the salt. Werkzeug's salts had 8
/// characters, later 16; Django's 5, later 12 and 22.
fn salted_digest(text: &str) -> Option<Result<Fast, ParseError>> {
    let (digest, both) = match text.split_once('$')?.0 {
        "md5" => (Digest::Md5, true),
        "sha1" => (Digest::Sha1, true),
        "sha256" => (Digest::Sha256, false),
        "sha384" => (Digest::Sha384, false),
        "sha512" => (Digest::Sha512, false),
        _ => return None,
    };
    Some(fields(text, '$').and_then(|[_, salt, value]| match salt.as_bytes() {
        [] => Fast::hex(digest, Salted::Not, value),
        salt if !both || matches!(salt.len(), 8 | 16) => Fast::hex(digest, Salted::Key(salt.to_vec()), value),
        salt => Fast::hex(digest, Salted::Before(salt.to_vec()), value),
    }))
}

/// Reads Devise's `encrypted_password`. `pepper` names the import key that holds `config.pepper`, where one was set.
///
/// # Errors
/// [`ParseError`] when it is not bcrypt.
pub fn devise(text: &str, pepper: Option<KeyId>) -> Result<Stored, ParseError> {
    limits::TEXT.length(text.as_bytes())?;
    match pepper {
        Some(id) => bcrypt::with_devise_pepper(text, id),
        None => bcrypt::read(text),
    }
    .map(Stored)
}

/// Reads a user of Devise as JSON: `encrypted_password` and, where `config.pepper` was set, `import_key`, the name of
/// the import key that holds it.
///
/// # Errors
/// [`ParseError`] when it is anything else.
pub fn devise_json(user: &str) -> Result<Stored, ParseError> {
    #[derive(Deserialize)]
    struct User {
        encrypted_password: String,
        import_key: Option<String>,
    }
    let user: User = json::WHOLE.read(user)?;
    devise(&user.encrypted_password, user.import_key.as_deref().map(key_id).transpose()?)
}

/// Reads the name of an import key as people write it.
fn key_id(name: &str) -> Result<KeyId, ParseError> {
    KeyId::new(name.as_bytes()).ok_or(ParseError::Malformed("the name of an import key must have 1 to 8 bytes"))
}
