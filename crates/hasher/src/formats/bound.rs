//! The bound verifier, which is stored instead of a tag where other machines may compute tags.
//!
//! ```text
//! $pv1$m=19456,t=2,p=1,keyid=KEYID,bindid=KEYID$SALT$V
//! V = HMAC-SHA-256(k_bind, "v1" || realm || user || H0 || tag)
//! ```
//!
//! Argon2id, version 19, with a tag of 32 bytes; before each field of the HMAC stands its length in bytes as a 64-bit
//! big-endian number. H0 (RFC 9106 §3.2) covers parameters, password, salt and pepper, and is computed here: a wrong
//! password gives another H0, so no tag that anybody returns can make it right.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use hmac::Mac;
use sha2::Sha256;

use super::{
    Check, ParseError, Prepared, Recipe, Subject,
    argon2::{Argon2Hash, Costs, cost},
    draft::params,
    key, limits,
    prf::Prf,
    text,
};
use crate::{
    argon2::{Cost, H0},
    gate::Refusal,
    job::{Input, Kind},
    pepper::{Key, KeyId, Keys, Role},
};

/// A bound verifier: everything but the password, the account and the keys.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BoundHash {
    cost: Cost,
    pepper: KeyId,
    binding: KeyId,
    salt: Vec<u8>,
    verifier: [u8; 32],
}

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    const KEY_IDS: ParseError =
        ParseError::Malformed("needs keyid and bindid, of 1 to 8 bytes of unpadded base64 each");
    let text = text.strip_prefix("$pv1$").ok_or(ParseError::Malformed("not a bound verifier"))?;
    let [parameters, salt, verifier] = text::fields(text, '$')?;
    let (cost, mut parts) = cost(parameters)?;
    let mut id = |name| {
        let id = parts.next().and_then(|part| KeyId::from_base64(part.strip_prefix(name)?).ok());
        id.ok_or(KEY_IDS)
    };
    let (pepper, binding) = (id("keyid=")?, id("bindid=")?);
    if parts.next().is_some() {
        return Err(ParseError::Malformed("unknown or repeated parameter"));
    }
    let salt = text::b64(salt)?;
    limits::ARGON2_SALT.length(&salt)?;
    let verifier =
        text::b64(verifier)?.try_into().map_err(|_| ParseError::Malformed("the verifier must have 32 bytes"))?;
    Ok(Recipe::Bound(BoundHash { cost, pepper, binding, salt, verifier }))
}

impl BoundHash {
    /// Binds the tag of a hash that was made with a pepper; `begun` comes from [`begin`].
    pub(super) fn seal(hash: &Argon2Hash, (pepper, binding): (KeyId, KeyId), begun: Prf<Sha256>, tag: &[u8]) -> Self {
        let verifier = finish(begun, tag).finalize().into_bytes().into();
        BoundHash { cost: hash.params().cost, pepper, binding, salt: hash.salt().to_vec(), verifier }
    }
    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }
    pub(crate) fn pepper(&self) -> KeyId {
        self.pepper
    }
    pub(crate) fn binding(&self) -> KeyId {
        self.binding
    }
    pub(crate) fn salt(&self) -> &[u8] {
        &self.salt
    }

    pub(super) fn prepare(&self, password: &[u8], subject: Subject<'_>, keys: &Keys) -> Result<Prepared, Refusal> {
        let (pepper, binding) = (key(keys, Role::Pepper, self.pepper)?, key(keys, Role::Binding, self.binding)?);
        let hash = Argon2Hash::blank(params(self.cost), Some(self.pepper), self.salt.clone());
        let h0 = hash.h0(password, Some(pepper));
        let check = Check::Bound { begun: begin(binding, subject, &h0), verifier: self.verifier };
        Ok(Prepared { kind: Kind::Argon2(hash.params()), input: Input::Argon2(h0), check })
    }
}

/// The HMAC of all of the message except the tag.
pub(super) fn begin(binding: &Key, subject: Subject<'_>, h0: &H0) -> Prf<Sha256> {
    binding.authenticate(&[b"v1", subject.realm.as_bytes(), subject.user.as_bytes(), h0.as_bytes()])
}

/// Adds the last field of the message, in the form in which [`Key::authenticate`] writes the others.
pub(super) fn finish(begun: Prf<Sha256>, tag: &[u8]) -> Prf<Sha256> {
    begun.chain_update((tag.len() as u64).to_be_bytes()).chain_update(tag)
}

impl fmt::Display for BoundHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$pv1${},keyid={},bindid={}", Costs(self.cost), self.pepper, self.binding)?;
        write!(f, "${}${}", STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(self.verifier))
    }
}
