//! The pepper: a secret key of Argon2 (RFC 9106 §3.1, K) that is kept outside the database.

use std::{fmt, sync::Arc};

use zeroize::Zeroizing;

/// Names a pepper in a stored hash (`keyid` of the PHC string format): 1 to 8 bytes, not secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    bytes: [u8; KeyId::MAX],
    len: u8,
}

impl KeyId {
    /// Longest id, in bytes.
    pub const MAX: usize = 8;

    /// From 1 to 8 bytes; `None` for any other length.
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..id.len()).filter(|room| !room.is_empty())?.copy_from_slice(id);
        Some(KeyId { bytes, len: id.len() as u8 })
    }
    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A 256-bit key that goes into every hash beside the password, so that the database alone is not enough to guess
/// passwords. Whoever loses it loses every password hashed with it. Cheap to clone; wiped when the last clone drops.
#[derive(Clone)]
pub struct Pepper {
    id: KeyId,
    key: Arc<Zeroizing<[u8; 32]>>,
}

impl Pepper {
    /// The pepper `key`, which stored hashes refer to as `id`.
    pub fn new(id: KeyId, key: [u8; 32]) -> Self {
        Pepper { id, key: Arc::new(Zeroizing::new(key)) }
    }
    /// The name that stored hashes carry.
    pub fn id(&self) -> KeyId {
        self.id
    }
    pub(crate) fn key(&self) -> &[u8] {
        &self.key[..]
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pepper({:?}, …)", self.id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_has_one_to_eight_bytes() {
        assert_eq!(KeyId::new(b""), None);
        assert_eq!(KeyId::new(b"k").unwrap().as_bytes(), b"k");
        assert_eq!(KeyId::new(b"12345678").unwrap().as_bytes(), b"12345678");
        assert_eq!(KeyId::new(b"123456789"), None);
    }

    #[test]
    fn a_pepper_does_not_print_its_key() {
        let pepper = Pepper::new(KeyId::new(b"k1").unwrap(), [0xab; 32]);
        assert!(!format!("{pepper:?}").contains("171"));
    }
}
