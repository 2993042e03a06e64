//! New hashes: prepared like a verification, and sealed with the tag that comes back.

use sha2::Sha256;

use super::{
    Argon2Hash, BoundHash, Recipe, Stored, Subject,
    bound::begin,
    import::Fast,
    prf::Prf,
    wrapped::{Inner, WrappedHash},
};
use crate::{
    argon2::{Algorithm, Cost, Params, Version},
    job::{Input, Kind},
    pepper::{Key, KeyId, Keys},
    policy::{SALT_BYTES, TAG_BYTES},
};

/// The parameters of a new hash at this cost: Argon2id version 1.3 and a 32-byte tag (RFC 9106 §4).
pub(crate) const fn params(cost: Cost) -> Params {
    Params { algorithm: Algorithm::Argon2id, version: Version::V19, cost, tag_bytes: TAG_BYTES as u32 }
}

/// A new hash that lacks only the slow part.
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) input: Input,
    pub(crate) seal: Seal,
}

/// Turns a tag into the stored hash.
pub(crate) struct Seal {
    hash: Argon2Hash,
    form: Form,
}

enum Form {
    Plain,
    Wrapped(Inner),
    Bound { ids: (KeyId, KeyId), begun: Prf<Sha256> },
}

impl Draft {
    /// A hash of `password`, with the first pepper and bound by the first binding key, where there are any.
    pub(crate) fn new(
        cost: Cost,
        password: &[u8],
        salt: [u8; SALT_BYTES],
        (subject, keys): (Subject<'_>, &Keys),
    ) -> Self {
        let hash = Argon2Hash::blank(params(cost), keys.pepper().map(Key::id), salt.to_vec());
        let h0 = hash.h0(password, keys.pepper());
        let form = match (keys.pepper(), keys.binding()) {
            (Some(pepper), Some(binding)) => {
                Form::Bound { ids: (pepper.id(), binding.id()), begun: begin(binding, subject, &h0) }
            }
            _ => Form::Plain,
        };
        Draft { kind: Kind::Argon2(hash.params()), input: Input::Argon2(h0), seal: Seal { hash, form } }
    }

    /// A slow hash whose password is a fast digest of an unknown password.
    pub(crate) fn wrap(cost: Cost, fast: &Fast, salt: [u8; SALT_BYTES], keys: &Keys) -> Self {
        let hash = Argon2Hash::blank(params(cost), keys.pepper().map(Key::id), salt.to_vec());
        let h0 = hash.h0(fast.value(), keys.pepper());
        let form = Form::Wrapped(fast.inner().clone());
        Draft { kind: Kind::Argon2(hash.params()), input: Input::Argon2(h0), seal: Seal { hash, form } }
    }
}

impl Seal {
    /// The stored hash, once the slow part has given `tag`.
    pub(crate) fn stored(self, tag: &[u8]) -> Stored {
        Stored(match self.form {
            Form::Plain => Recipe::Argon2(self.hash.with_tag(tag)),
            Form::Wrapped(inner) => Recipe::Wrapped(WrappedHash::new(inner, self.hash.with_tag(tag))),
            Form::Bound { ids, begun } => Recipe::Bound(BoundHash::seal(&self.hash, ids, begun, tag)),
        })
    }
}
