//! The parameters of Argon2 (RFC 9106 §3.1).

use std::fmt;

/// The variants of Argon2 (RFC 9106 §3.1, type y).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Argon2d: data-dependent addressing. Verified, never written.
    Argon2d = 0,
    /// Argon2i: data-independent addressing. Verified, never written.
    Argon2i = 1,
    /// Argon2id: the variant of new hashes (RFC 9106 §4).
    Argon2id = 2,
}

/// The versions of Argon2 that exist in the wild (RFC 9106 §3.1, v).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Version 1.0, which overwrites memory in later passes. Verified, never written.
    V16 = 16,
    /// Version 1.3, of RFC 9106.
    V19 = 19,
}

/// The three cost parameters of Argon2 (RFC 9106 §3.1): memory in KiB, passes, lanes. Stored hashes have narrower
/// limits: [`Policy`](crate::Policy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    memory: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    /// Most memory of one hash, in KiB: 2 TiB, half of what RFC 9106 allows. Indices of blocks have 32 bits.
    pub const MAX_MEMORY: u32 = 1 << 31;
    /// Most lanes.
    pub const MAX_LANES: u32 = (1 << 24) - 1;

    /// `memory` in KiB (8 per lane to [`Cost::MAX_MEMORY`]), `passes` (at least 1), `lanes` (1 to [`Cost::MAX_LANES`]).
    ///
    /// # Errors
    /// [`BadCost`] names the parameter that lies outside these limits.
    pub const fn new(memory: u32, passes: u32, lanes: u32) -> Result<Self, BadCost> {
        if lanes == 0 || lanes > Self::MAX_LANES {
            return Err(BadCost("lanes must be 1 to 2^24 - 1"));
        }
        if passes == 0 {
            return Err(BadCost("passes must be 1 or more"));
        }
        if memory < 8 * lanes || memory > Self::MAX_MEMORY {
            return Err(BadCost("memory must be 8 KiB per lane to 2 TiB"));
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
}

/// A parameter lies outside the limits of [`Cost`] or [`Params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCost(pub(crate) &'static str);

impl fmt::Display for BadCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadCost {}

/// Everything besides the inputs that decides a tag. Jobs with equal parameters can be filled in lock step.
///
/// ```
/// use hasher::argon2::{Algorithm, Cost, Params, Version};
///
/// let cost = Cost::new(64, 2, 1)?;
/// assert_eq!(Params::new(Algorithm::Argon2id, Version::V19, cost, 32)?.tag_bytes(), 32);
/// assert!(Params::new(Algorithm::Argon2id, Version::V19, cost, 3).is_err());
/// # Ok::<(), hasher::argon2::BadCost>(())
/// ```
///
/// There is no other way to make one:
///
/// ```compile_fail
/// # use hasher::argon2::{Algorithm, Cost, Params, Version};
/// # let cost = Cost::new(64, 2, 1).unwrap();
/// let empty = Params { algorithm: Algorithm::Argon2id, version: Version::V19, cost, tag_bytes: 0 };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    /// The variant.
    pub algorithm: Algorithm,
    /// The version.
    pub version: Version,
    /// Memory (in KiB), passes and lanes.
    pub cost: Cost,
    /// At least [`Params::MIN_TAG`].
    pub(crate) tag_bytes: u32,
}

impl Params {
    /// Least length of a tag, in bytes (RFC 9106 §3.1, T). The greatest is 2^32 - 1.
    pub const MIN_TAG: u32 = 4;

    /// Parameters of a tag of `tag_bytes`.
    ///
    /// # Errors
    /// [`BadCost`] when the tag is shorter than [`Params::MIN_TAG`].
    pub const fn new(algorithm: Algorithm, version: Version, cost: Cost, tag_bytes: u32) -> Result<Self, BadCost> {
        match tag_bytes {
            0..Self::MIN_TAG => Err(BadCost("a tag must be 4 to 2^32 - 1 bytes")),
            _ => Ok(Params { algorithm, version, cost, tag_bytes }),
        }
    }
    /// Length of the tag, in bytes (RFC 9106 §3.1, T).
    pub const fn tag_bytes(&self) -> u32 {
        self.tag_bytes
    }

    /// Segments of a lane; while one is being filled, no other lane reads it (RFC 9106 §3.4, SL).
    pub(super) const SLICES: u32 = 4;

    /// Blocks of one segment: the part of one lane that one slice fills.
    pub(super) const fn segment_blocks(&self) -> u32 {
        self.cost.memory / (Self::SLICES * self.cost.lanes)
    }

    /// Blocks of one lane (RFC 9106 §3.2, q).
    pub(super) const fn lane_blocks(&self) -> u32 {
        Self::SLICES * self.segment_blocks()
    }

    /// How many blocks of memory (1 KiB each) one fill needs: m rounded down to a multiple of 4p (RFC 9106 §3.2, m').
    pub const fn memory_blocks(&self) -> usize {
        self.lane_blocks() as usize * self.cost.lanes as usize
    }
}
