//! The keys under which blocks are sealed.

use crate::secret::{hexadecimal, mac};
use zeroize::Zeroizing;

/// A key. Its id is derived from it, so that two keys have two ids and one key has the same id everywhere.
#[derive(Clone)]
pub struct Key {
    id: String,
    secret: Zeroizing<[u8; 32]>,
}

impl Key {
    /// Takes the 32 bytes of a key.
    pub fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        let id = hexadecimal(&mac(&*secret, &[b"portiere audit key id"])[..8]);
        Key { id, secret }
    }
    /// The id by which blocks name it. Not a secret.
    pub fn id(&self) -> &str {
        &self.id
    }
    /// Returns the code over these parts.
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
    /// The key that seals.
    pub current: Option<Key>,
    /// Keys that sealed earlier blocks, and still verify them.
    pub old: Vec<Key>,
}

impl Keys {
    /// Returns the key of that id.
    pub fn find(&self, id: &str) -> Option<&Key> {
        self.current.iter().chain(&self.old).find(|key| key.id == id)
    }
}
