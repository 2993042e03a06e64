//! The keys under which blocks are sealed.

use crate::secret::{hexadecimal, mac};
use zeroize::Zeroizing;

/// A key. Its id comes out of it, so that two keys have two ids and one key has the same everywhere.
#[derive(Clone)]
pub struct Key {
    id: String,
    secret: Zeroizing<[u8; 32]>,
}

impl Key {
    /// From its 32 bytes.
    pub fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        let id = hexadecimal(&mac(&*secret, &[b"portiere audit key id"])[..8]);
        Key { id, secret }
    }
    /// What blocks call it. Not a secret.
    pub fn id(&self) -> &str {
        &self.id
    }
    /// The code of these parts.
    pub(super) fn code(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(&*self.secret, parts)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

/// The keys that a node has.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Seals.
    pub current: Option<Key>,
    /// Sealed once, and still tell whether they did.
    pub old: Vec<Key>,
}

impl Keys {
    /// The key of that id.
    pub fn find(&self, id: &str) -> Option<&Key> {
        self.current.iter().chain(&self.old).find(|key| key.id == id)
    }
}
