//! What remains to be decided when the slow part is done.

use aes::{
    Aes256,
    cipher::{KeyIvInit, StreamCipher},
};
use ctr::Ctr128BE;
use hmac::Mac;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{bound::finish, prf::Prf};
use crate::job::{Input, Kind};

/// A verification that lacks only the slow part.
pub(crate) struct Prepared {
    pub(crate) kind: Kind,
    pub(crate) input: Input,
    pub(crate) check: Check,
}

/// Decides whether a tag is the right one.
pub(crate) enum Check {
    /// The tag is exactly this.
    Tag(Vec<u8>),
    /// The tag begins with these bytes, and the lowest bits of its next byte are these.
    Drupal { bytes: Vec<u8>, last: u8 },
    /// The tag is the key under which the signer key becomes the stored hash.
    Firebase { signer: Zeroizing<Vec<u8>>, hash: Vec<u8> },
    /// No tag is the right one.
    Never,
    /// No tag is the right one, and nobody is to notice.
    Decoy,
    /// The tag is what the authenticator still lacks.
    Bound { begun: Prf<Sha256>, verifier: [u8; 32] },
}

impl Check {
    /// Bits of the 33rd byte that Drupal keeps.
    pub(crate) const DRUPAL_LAST: u8 = 0b11;

    /// True if computing the tag teaches a worker nothing, and its answer proves nothing by itself.
    pub(crate) fn is_blind(&self) -> bool {
        matches!(self, Check::Bound { .. } | Check::Decoy)
    }

    /// True if `tag` was made from the right password; compares in constant time.
    pub(crate) fn accepts(&self, tag: &[u8]) -> bool {
        match self {
            Check::Never | Check::Decoy => false,
            Check::Tag(right) => right.ct_eq(tag).into(),
            Check::Drupal { bytes, last } => match tag.split_at_checked(bytes.len()) {
                Some((first, [next, ..])) => (first.ct_eq(bytes) & (next & Self::DRUPAL_LAST).ct_eq(last)).into(),
                _ => false,
            },
            Check::Firebase { signer, hash } => sealed(tag, signer).is_some_and(|sealed| sealed.ct_eq(hash).into()),
            Check::Bound { begun, verifier } => finish(begun.clone(), tag).verify(verifier.into()).is_ok(),
        }
    }
}

/// AES-256-CTR of the signer key under the tag, counting from zero.
fn sealed(tag: &[u8], signer: &Zeroizing<Vec<u8>>) -> Option<Zeroizing<Vec<u8>>> {
    let mut cipher = Ctr128BE::<Aes256>::new_from_slices(tag, &[0; 16]).ok()?;
    let mut sealed = signer.clone();
    cipher.apply_keystream(&mut sealed);
    Some(sealed)
}
