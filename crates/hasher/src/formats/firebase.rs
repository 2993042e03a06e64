//! Firebase: scrypt makes the key under which the project's signer key is encrypted; what is stored is the result.
//!
//! ```text
//! $firebase$ln=14,r=8,p=1,importid=ID$SALT$HASH     SALT is the user's, then the project's separator
//! ```
//!
//! The signer key is a secret: it is configured as an import key, in base64 as the console shows it, and named by id.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use zeroize::Zeroizing;

use super::{Check, ParseError, Prepared, Recipe, key, limits, scrypt, text};
use crate::{
    gate::Refusal,
    job::{Input, Kind},
    pepper::{KeyId, Keys, Role},
};

/// Length of an AES-256 key, which the derived key is.
const KEY_BYTES: usize = 32;

/// A hash of Firebase: everything but the password and the signer key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FirebaseHash {
    cost: scrypt::Cost,
    key_id: KeyId,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let text = text.strip_prefix("$firebase$").ok_or(ParseError::Malformed("not a Firebase hash"))?;
    let [parameters, salt, hash] = text::fields(text, '$')?;
    let (cost, mut parts) = scrypt::cost(parameters)?;
    let key_id = parts.next().and_then(|part| KeyId::from_base64(part.strip_prefix("importid=")?).ok());
    match (key_id, parts.next()) {
        (Some(key_id), None) => recipe(cost, key_id, text::b64(salt)?, text::b64(hash)?),
        _ => Err(ParseError::Malformed("importid must follow, of 1 to 8 bytes of unpadded base64")),
    }
}

/// A hash of these parts, if they are within the limits.
pub(super) fn recipe(cost: scrypt::Cost, key_id: KeyId, salt: Vec<u8>, hash: Vec<u8>) -> Result<Recipe, ParseError> {
    limits::SALT.length(&salt)?;
    limits::FIREBASE_TAG.length(&hash)?;
    Ok(Recipe::Firebase(FirebaseHash { cost, key_id, salt, hash }))
}

impl FirebaseHash {
    /// The key that holds the project's signer key.
    pub(crate) fn key_id(&self) -> KeyId {
        self.key_id
    }

    pub(super) fn prepare(&self, password: &[u8], keys: &Keys) -> Result<Prepared, Refusal> {
        const NO_KEY: Refusal = Refusal::Unsupported("its import key is not a signer key of Firebase, which is base64");
        let signer = std::str::from_utf8(key(keys, Role::Import, self.key_id)?.bytes()).map_err(|_| NO_KEY)?;
        let signer = Zeroizing::new(text::any_base64(signer).map_err(|_| NO_KEY)?);
        // Encryption keeps the length: no password would ever match.
        if signer.len() != self.hash.len() {
            return Err(Refusal::Unsupported("its import key is another signer key: it is not as long as the hash"));
        }
        let input = Input::Serial { password: Zeroizing::new(password.to_vec()), salt: self.salt.clone() };
        let check = Check::Firebase { signer, hash: self.hash.clone() };
        Ok(Prepared { kind: Kind::Serial(self.cost.serial(KEY_BYTES)), input, check })
    }
}

impl fmt::Display for FirebaseHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$firebase${},importid={}", self.cost, self.key_id)?;
        write!(f, "${}${}", STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.hash))
    }
}
