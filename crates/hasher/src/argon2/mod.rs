//! Argon2 (RFC 9106), with several fills in lock step on one core.
//!
//! The fill is a chain: which block comes next is known only when the last one is done, and it lies anywhere in memory.
//! One password alone leaves a core waiting for memory most of the time; with several, the loads of one hide behind the
//! arithmetic of the others. Nothing of the algorithm changes: every tag is what any other implementation computes.
//!
//! [`H0`] takes in all secrets, [`fill`] does the slow work and needs only `H0` and [`Params`].

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

pub use block::Block;
pub use h0::H0;
pub use params::{Algorithm, BadCost, Cost, Params, Version};
use zeroize::Zeroizing;

use crate::cpu::Level;

/// Most fills in lock step.
pub const MAX_TOGETHER: usize = 8;

/// The result of a fill; wiped on drop.
pub type Tag = Zeroizing<Vec<u8>>;

/// Computes the tags that belong to `h0s`, in lock step. `memory` may hold anything before; afterwards it holds what an
/// attacker would need to skip the work, so its owner wipes or reuses it. A `level` that this CPU lacks is replaced by
/// the portable one: all compute the same.
///
/// # Panics
/// Unless there are 1 to [`MAX_TOGETHER`] inputs, as many tags, and [`Params::memory_blocks`] for each in `memory`.
pub fn fill(level: Level, params: &Params, h0s: &[H0], memory: &mut [Block], tags: &mut [Tag]) {
    assert!((1..=MAX_TOGETHER).contains(&h0s.len()), "1 to {MAX_TOGETHER} together");
    assert_eq!(h0s.len(), tags.len(), "one tag for each input");
    assert_eq!(memory.len(), h0s.len() * params.memory_blocks(), "the memory of each input");
    let job = fill::Job { params, h0s };
    #[cfg(target_arch = "x86_64")]
    match level {
        Level::Avx512 => {
            if let Some(kernel) = avx512::Avx512::new() {
                return fill::run(kernel, &job, memory, tags);
            }
        }
        Level::Avx2 => {
            if let Some(kernel) = avx2::Avx2::new() {
                return fill::run(kernel, &job, memory, tags);
            }
        }
        Level::Portable => {}
    }
    let _ = level;
    fill::run(portable::Portable, &job, memory, tags);
}
