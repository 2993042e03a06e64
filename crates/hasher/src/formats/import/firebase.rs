//! Firebase Authentication's export.

use std::fmt;

use serde::{Deserialize, de::IgnoredAny};

use super::{ParseError, Stored, json::WHOLE, key_id};
use crate::{
    formats::{firebase::recipe, scrypt::Cost, text},
    pepper::KeyId,
};

/// The password hash parameters of a Firebase project, without the signer key: that is a secret, configured as an
/// import key.
#[derive(Clone)]
pub struct Firebase {
    signer: KeyId,
    separator: Vec<u8>,
    cost: Cost,
}

/// Prints no salt separator, which goes into every salt.
impl fmt::Debug for Firebase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Firebase").field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Firebase {
    /// Takes what the console shows: `base64_salt_separator`, `rounds` and `mem_cost`; `signer` names the import key
    /// that holds `base64_signer_key`.
    ///
    /// # Errors
    /// [`ParseError`] when the separator is not base64 or the cost is outside the limits.
    pub fn new(signer: KeyId, separator: &str, rounds: u32, mem_cost: u32) -> Result<Self, ParseError> {
        Ok(Firebase { signer, separator: text::any_base64(separator)?, cost: Cost::new(mem_cost, rounds, 1)? })
    }
    /// Reads one account's `passwordHash` and `salt`, in base64 of either alphabet.
    ///
    /// # Errors
    /// [`ParseError`] when they are not base64 or of a length outside the limits.
    pub fn user(&self, hash: &str, salt: &str) -> Result<Stored, ParseError> {
        let mut salt = text::any_base64(salt)?;
        salt.extend_from_slice(&self.separator);
        recipe(self.cost, self.signer, salt, text::any_base64(hash)?).map(Stored)
    }
}

/// Reads one account of `firebase auth:export` as JSON: `passwordHash` and `salt`, and beside them the project's
/// `base64_salt_separator`, `rounds` and `mem_cost` as the console shows them. `import_key` names the import key that
/// holds `base64_signer_key`.
///
/// # Errors
/// As [`Firebase::new`] and [`Firebase::user`], and when the JSON is something else or contains the signer key.
pub fn firebase(user: &str) -> Result<Stored, ParseError> {
    let user: User = WHOLE.read(user)?;
    if user.base64_signer_key.is_some() {
        return Err(ParseError::Unsupported("the signer key is a secret: import_key names it, beside the database"));
    }
    let project = Firebase::new(
        key_id(&user.import_key)?,
        &user.base64_salt_separator.unwrap_or_default(),
        user.rounds,
        user.mem_cost,
    )?;
    project.user(&user.password_hash, &user.salt)
}

#[derive(Deserialize)]
struct User {
    #[serde(rename = "passwordHash")]
    password_hash: String,
    salt: String,
    base64_salt_separator: Option<String>,
    rounds: u32,
    mem_cost: u32,
    import_key: String,
    base64_signer_key: Option<IgnoredAny>,
}
