//! Randomness as an argument.

use crate::id::{FamilyId, Kid, LifeId, UserId};
use crate::secret::{Secret, base64url, mac};
use crate::time::Time;
use zeroize::Zeroizing;

/// 256 bits drawn once per request. Everything random that a rule needs is derived from them by label, so that a
/// decision taken again after a conflict yields the same values, and a test writes `Fresh::new([7; 32])`.
#[derive(Clone)]
pub struct Fresh(Zeroizing<[u8; 32]>);

impl Fresh {
    /// From 32 random bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Fresh(Zeroizing::new(seed))
    }
    /// Returns randomness of its own for each try of a decision that has to come out differently when it is tried
    /// again, because the value that it made before was in use.
    pub fn of_try(&self, number: u32) -> Self {
        Fresh::new(self.bytes(&format!("try {number}")))
    }
    /// 256 bits for `label`; the same label gives the same bits.
    pub fn bytes(&self, label: &str) -> [u8; 32] {
        mac(&*self.0, &[label.as_bytes()])
    }
    /// A 256-bit secret as 43 characters of base64url.
    pub fn secret(&self, label: &str) -> Secret {
        Secret::new(base64url(&self.bytes(label)))
    }
    /// A 128-bit identifier as 22 characters of base64url. Not a secret.
    pub fn name(&self, label: &str) -> String {
        base64url(&self.bytes(label)[..16])
    }
    /// A 128-bit identifier that sorts by the time it was made: 48 bits of milliseconds, 80 bits of chance, as 26
    /// characters of base32hex (RFC 4648 §7) in lower case. Not a secret. New rows land beside each other.
    pub fn ordered(&self, label: &str, now: Time) -> String {
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&now.0.max(0).to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&self.bytes(label)[..10]);
        base32hex(&bytes)
    }
    /// A new person's `sub`.
    pub fn user(&self) -> UserId {
        UserId(self.name("user"))
    }
    /// A new family's id.
    pub fn family(&self, now: Time) -> FamilyId {
        FamilyId(self.ordered("family", now))
    }
    /// A new id of a client's life that began at `began`.
    pub fn life(&self, began: Time) -> LifeId {
        LifeId(self.ordered("life", began))
    }
    /// A new key's `kid`.
    pub fn kid(&self) -> Kid {
        Kid(self.name("kid"))
    }
}

/// The smallest id that [`Fresh::ordered`] can give at `time`.
pub fn first_id(time: Time) -> String {
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&time.0.max(0).to_be_bytes()[2..]);
    base32hex(&bytes)
}

/// The time at which [`Fresh::ordered`] made an id; `Time(0)` for any other text.
pub fn time_of(id: &str) -> Time {
    from_base32hex(id)
        .map_or(Time(0), |bytes| Time(bytes[..6].iter().fold(0, |time, byte| (time << 8) | i64::from(*byte))))
}

const BASE32HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// 16 bytes as 26 characters, most significant first.
pub fn base32hex(bytes: &[u8; 16]) -> String {
    let value = u128::from_be_bytes(*bytes);
    (0..26).rev().map(|digit| BASE32HEX[((value >> (5 * digit)) & 31) as usize] as char).collect()
}

/// Decodes what [`base32hex`] wrote; `None` for anything else.
pub fn from_base32hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 26 || !matches!(text.as_bytes()[0], b'0'..=b'7') {
        return None;
    }
    let mut value = 0u128;
    for byte in text.bytes() {
        let digit = BASE32HEX.iter().position(|&known| known == byte)?;
        value = (value << 5) | digit as u128;
    }
    Some(value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_names_sort_by_time_and_read_back() {
        let fresh = Fresh::new([7; 32]);
        let (early, late) = (fresh.ordered("x", Time(1_000)), fresh.ordered("x", Time(1_001)));
        assert!(early < late);
        assert_eq!(time_of(&late), Time(1_001));
        let bytes = from_base32hex(&early).expect("ours");
        assert_eq!(base32hex(&bytes), early);
        assert!(from_base32hex("zzzzzzzzzzzzzzzzzzzzzzzzzz").is_none());
    }

    #[test]
    fn labels_differ_and_the_same_label_repeats() {
        let fresh = Fresh::new([7; 32]);
        assert_ne!(fresh.bytes("a"), fresh.bytes("b"));
        assert_eq!(fresh.bytes("a"), fresh.bytes("a"));
    }
}
