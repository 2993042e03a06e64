//! Argon2 (RFC 9106), with several fills in lock step on one core.
//!
//! The fill is a chain: which block comes next is known only when the last one is done, and it may lie anywhere in
//! memory. One password alone leaves a core waiting for memory most of the time; with several, the loads of one hide
//! behind the arithmetic of the others. Every tag is what any other implementation computes.
//!
//! [`H0`] takes in all secrets; [`fill`] does the slow work and needs only `H0` and [`Params`]. An [`Arena`] is memory
//! for it that is worth keeping: on Linux in huge pages, and out of core dumps where the kernel can do so.
//!
//! It can be used without the pool:
//!
//! ```
//! use hasher::{
//!     argon2::{Algorithm, Arena, Cost, H0, Params, Tag, Version, fill},
//!     cpu::Level,
//! };
//!
//! let cost = Cost::new(64, 2, 1)?; // KiB, passes, lanes
//! let params = Params::new(Algorithm::Argon2id, Version::V19, cost, 32)?;
//! // Two passwords in lock step, each with its own salt; no secret and no associated data.
//! let h0s = [H0::new(&params, b"one", b"salt of one", b"", b""), H0::new(&params, b"two", b"salt of two", b"", b"")];
//! let mut arena = Arena::new(); // wiped when it goes: what a fill leaves in it is worth something to an attacker
//! let mut tags = vec![Tag::default(); h0s.len()];
//! fill(Level::best(), &params, &h0s, arena.blocks(h0s.len() * params.memory_blocks())?, &mut tags);
//!
//! // The same as alone, and the same from every kernel.
//! let mut alone = [Tag::default()];
//! fill(Level::Portable, &params, &h0s[1..], arena.blocks(params.memory_blocks())?, &mut alone);
//! assert_eq!(alone[0], tags[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod fill;
mod h0;
mod params;
mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use crate::arena::{Arena, NoMemory};
pub use block::Block;
pub use h0::H0;
pub use params::{Algorithm, BadCost, Cost, Params, Version};
use zeroize::Zeroizing;

use crate::cpu::Level;

/// Most fills in lock step.
pub const MAX_TOGETHER: usize = 8;

/// The result of a fill; wiped on drop.
pub type Tag = Zeroizing<Vec<u8>>;

/// Computes the tags for `h0s` in lock step. `memory` may hold anything before; afterwards it holds what an attacker
/// would need to skip the work, so its owner must wipe or reuse it: an [`Arena`] is wiped when it goes. A `level` that
/// this CPU lacks is replaced by the portable one: all compute the same.
///
/// # Panics
/// Unless there are 1 to [`MAX_TOGETHER`] inputs, as many tags, and [`Params::memory_blocks`] for each in `memory`.
pub fn fill(level: Level, params: &Params, h0s: &[H0], memory: &mut [Block], tags: &mut [Tag]) {
    fill_with_pauses(level, params, h0s, (memory, tags), &mut || {});
}

/// As [`fill`], with a `pause` several times a millisecond: for threads that let others go first.
///
/// # Panics
/// As [`fill`].
pub(crate) fn fill_with_pauses(
    level: Level,
    params: &Params,
    h0s: &[H0],
    (memory, tags): (&mut [Block], &mut [Tag]),
    pause: &mut dyn FnMut(),
) {
    assert!((1..=MAX_TOGETHER).contains(&h0s.len()), "1 to {MAX_TOGETHER} together");
    assert_eq!(h0s.len(), tags.len(), "one tag for each input");
    assert_eq!(memory.len(), h0s.len() * params.memory_blocks(), "the memory of each input");
    let job = fill::Job { params, h0s };
    #[cfg(target_arch = "x86_64")]
    match level {
        Level::Avx512 => {
            if let Some(kernel) = avx512::Avx512::new() {
                return fill::run(kernel, &job, (memory, tags), pause);
            }
        }
        Level::Avx2 => {
            if let Some(kernel) = avx2::Avx2::new() {
                return fill::run(kernel, &job, (memory, tags), pause);
            }
        }
        Level::Portable => {}
    }
    let _ = level;
    fill::run(portable::Portable, &job, (memory, tags), pause);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest time without a pause is that of a piece: the rest takes too little to keep others waiting.
    #[test]
    fn there_is_a_pause_before_each_piece() {
        let cost = Cost::new(8192, 2, 1).unwrap();
        for algorithm in [Algorithm::Argon2i, Algorithm::Argon2d, Algorithm::Argon2id] {
            let params = Params { algorithm, version: Version::V19, cost, tag_bytes: 32 };
            let mut memory = vec![Block::ZERO; 3 * params.memory_blocks()];
            let h0s = [1, 2, 3].map(|number| H0::from_bytes(&[number; 64]));
            let mut tags = [1, 2, 3].map(|_| Tag::new(Vec::new()));
            let mut pauses = 0;
            fill_with_pauses(Level::best(), &params, &h0s, (&mut memory, &mut tags), &mut || pauses += 1);
            assert_eq!(pauses, 2 * 8192 / 512, "{algorithm:?}");
        }
    }
}
