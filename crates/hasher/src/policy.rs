//! What a hash costs, and when a stored one is older than today's policy.

use crate::{
    pepper::KeyId,
    phc::{Algorithm, Argon2Hash, Version},
};

/// Length of a new salt, in bytes (RFC 9106 §3.1 recommends 128 bits).
pub const SALT_BYTES: usize = 16;
/// Length of a new tag, in bytes (RFC 9106 §4 recommends 256 bits).
pub const TAG_BYTES: usize = 32;

/// The three cost parameters of Argon2 (RFC 9106 §3.1), always within the limits of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    memory: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// Most memory of one hash, in KiB: 1 GiB.
    pub const MAX_MEMORY: u32 = 1 << 20;
    /// Most passes over the memory.
    pub const MAX_PASSES: u32 = 64;
    /// Most lanes.
    pub const MAX_LANES: u32 = 64;

    /// `memory` in KiB (8 per lane to [`Cost::MAX_MEMORY`]), `passes` (1 to [`Cost::MAX_PASSES`]), `lanes` (1 to
    /// [`Cost::MAX_LANES`]).
    ///
    /// # Errors
    /// [`BadCost`] names the parameter that lies outside these limits.
    pub const fn new(memory: u32, passes: u32, lanes: u32) -> Result<Self, BadCost> {
        if lanes == 0 || lanes > Self::MAX_LANES {
            return Err(BadCost("lanes must be 1 to 64"));
        }
        if passes == 0 || passes > Self::MAX_PASSES {
            return Err(BadCost("passes must be 1 to 64"));
        }
        if memory < 8 * lanes || memory > Self::MAX_MEMORY {
            return Err(BadCost("memory must be 8 KiB per lane to 1 GiB"));
        }
        Ok(Cost { memory, passes, lanes })
    }
    /// Memory, in KiB: the parameter m.
    pub const fn memory(self) -> u32 {
        self.memory
    }
    /// Passes over the memory: the parameter t.
    pub const fn passes(self) -> u32 {
        self.passes
    }
    /// Lanes: the parameter p.
    pub const fn lanes(self) -> u32 {
        self.lanes
    }
    /// How many 1 KiB blocks are computed: m times t.
    pub const fn blocks(self) -> u64 {
        self.memory as u64 * self.passes as u64
    }
    /// True when an attacker pays at least as much for `self` as for `other`, both in memory and in blocks. Two costs
    /// may each fail this: one has more memory, the other more passes.
    const fn covers(self, other: Cost) -> bool {
        self.memory >= other.memory && self.blocks() >= other.blocks()
    }
}

/// A cost parameter lies outside the limits of [`Cost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCost(pub(crate) &'static str);

impl std::fmt::Display for BadCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadCost {}

/// What new hashes look like: Argon2id version 1.3 at this cost, with a 16-byte salt and a 32-byte tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The cost of a new hash.
    pub cost: Cost,
}

impl Default for Policy {
    /// m=19456 (19 MiB), t=2, p=1: OWASP's row that fits a machine with 512 MiB.
    fn default() -> Self {
        Policy { cost: Cost { memory: 19_456, passes: 2, lanes: 1 } }
    }
}

impl Policy {
    /// Argon2id with `memory` in KiB, `passes` and `lanes`.
    ///
    /// # Errors
    /// As [`Cost::new`].
    pub const fn new(memory: u32, passes: u32, lanes: u32) -> Result<Self, BadCost> {
        match Cost::new(memory, passes, lanes) {
            Ok(cost) => Ok(Policy { cost }),
            Err(bad) => Err(bad),
        }
    }

    /// True when the cost covers one of the equally strong rows of OWASP's Password Storage Cheat Sheet: 46 MiB once,
    /// 19 MiB twice, 12 MiB three times, 9 MiB four times, 7 MiB five times.
    pub fn meets_owasp(&self) -> bool {
        const ROWS: [(u32, u32); 5] = [(47_104, 1), (19_456, 2), (12_288, 3), (9_216, 4), (7_168, 5)];
        ROWS.iter().any(|&(memory, passes)| self.cost.memory >= memory && self.cost.passes >= passes)
    }

    /// True when `hash`, just verified, should be replaced: another algorithm, version or pepper, a shorter salt or
    /// tag, or a cost that today's covers and exceeds. A hash that costs more in memory or in blocks is left alone.
    pub(crate) fn outdates(&self, hash: &Argon2Hash, pepper: Option<KeyId>) -> bool {
        let (old, new) = (hash.cost(), self.cost);
        hash.algorithm() != Algorithm::Argon2id
            || hash.version() != Version::V19
            || hash.key_id() != pepper
            || hash.salt().len() < SALT_BYTES
            || hash.tag().len() < TAG_BYTES
            || (new.covers(old) && !old.covers(new))
    }

    /// The cost with which to replace `hash`: today's, or its own where today's would lower it.
    pub(crate) fn raise(&self, hash: &Argon2Hash) -> Cost {
        if self.cost.covers(hash.cost()) { self.cost } else { hash.cost() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(memory: u32, passes: u32) -> Argon2Hash {
        Argon2Hash::new(Cost::new(memory, passes, 1).unwrap(), None, vec![1; 16], vec![2; 32])
    }

    #[test]
    fn a_cheaper_hash_is_replaced_and_a_dearer_one_is_not() {
        let policy = Policy::default();
        let table = [
            (19_456, 2, false),
            (19_456, 1, true),
            (9_216, 4, true),
            (9_216, 5, false), // fewer KiB, but more blocks: replacing it would lower one of them
            (47_104, 1, false),
            (65_536, 3, false),
            (8, 1, true),
        ];
        for (memory, passes, outdated) in table {
            assert_eq!(policy.outdates(&stored(memory, passes), None), outdated, "m={memory} t={passes}");
        }
    }

    #[test]
    fn a_replacement_never_lowers_the_cost() {
        let policy = Policy::default();
        assert_eq!(policy.raise(&stored(4_096, 3)), policy.cost);
        assert_eq!(policy.raise(&stored(65_536, 3)), Cost::new(65_536, 3, 1).unwrap());
        assert_eq!(policy.raise(&stored(9_216, 5)), Cost::new(9_216, 5, 1).unwrap());
    }

    #[test]
    fn another_pepper_a_short_tag_or_an_older_algorithm_is_replaced() {
        let policy = Policy::default();
        let key = KeyId::new(b"k2");
        assert!(policy.outdates(&stored(19_456, 2), key));
        let cost = policy.cost;
        assert!(!policy.outdates(&Argon2Hash::new(cost, key, vec![1; 16], vec![2; 32]), key));
        assert!(policy.outdates(&Argon2Hash::new(cost, None, vec![1; 8], vec![2; 32]), None));
        assert!(policy.outdates(&Argon2Hash::new(cost, None, vec![1; 16], vec![2; 16]), None));
        for text in ["$argon2i$v=19$", "$argon2d$v=19$", "$argon2id$v=16$", "$argon2id$"] {
            let text =
                format!("{text}m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
            let crate::Stored::Argon2(hash) = text.parse().unwrap();
            assert!(policy.outdates(&hash, None), "{text}");
        }
    }

    #[test]
    fn owasp_rows_pass_and_less_does_not() {
        for (memory, passes, meets) in
            [(19_456, 2, true), (47_104, 1, true), (7_168, 5, true), (7_168, 4, false), (19_455, 2, false)]
        {
            assert_eq!(Policy::new(memory, passes, 1).unwrap().meets_owasp(), meets);
        }
    }

    #[test]
    fn costs_outside_the_limits_are_refused() {
        for (memory, passes, lanes) in
            [(7, 1, 1), (8, 0, 1), (8, 1, 0), (15, 1, 2), (1 << 21, 1, 1), (64, 65, 1), (4096, 1, 65)]
        {
            assert!(Cost::new(memory, passes, lanes).is_err(), "m={memory} t={passes} p={lanes}");
        }
    }
}
