//! One password to hash: what goes in, what comes out, and what kind of work it is.

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::{
    gate::Refusal,
    pepper::Pepper,
    phc::{Algorithm, Argon2Hash, Version},
    policy::Cost,
};

/// Jobs of one kind differ only in their bytes: they take the same time and the same memory, and the same kernel can
/// run them side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) algorithm: Algorithm,
    pub(crate) version: Version,
    pub(crate) cost: Cost,
}

impl Kind {
    pub(crate) fn of(hash: &Argon2Hash) -> Self {
        Kind { algorithm: hash.algorithm(), version: hash.version(), cost: hash.cost() }
    }
    /// Memory that it needs, in KiB.
    pub(crate) fn memory(self) -> u64 {
        u64::from(self.cost.memory())
    }
}

/// The bytes that a tag depends on.
pub(crate) struct Input {
    pub(crate) password: Zeroizing<Vec<u8>>,
    pub(crate) salt: Vec<u8>,
    pub(crate) pepper: Option<Pepper>,
    /// Length of the tag, in bytes.
    pub(crate) tag: usize,
}

/// The tag of one input.
pub(crate) type Tag = Zeroizing<Vec<u8>>;

/// A tag to compute, and where to send it.
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) input: Input,
    pub(crate) reply: oneshot::Sender<Result<Tag, Refusal>>,
}
