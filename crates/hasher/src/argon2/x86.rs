//! What the kernels of x86-64 have in common.

use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

use super::{
    block::Block,
    fill::{Cache, Step},
};

/// The blocks of a step: two to read, which may be the same, and another one to write.
pub(super) struct Blocks<'a> {
    pub(super) previous: &'a Block,
    pub(super) reference: &'a Block,
    pub(super) target: &'a mut Block,
}

impl<'a> Blocks<'a> {
    #[inline(always)]
    pub(super) fn of(memory: &'a mut [Block], step: Step) -> Self {
        let Step { previous, reference, target, .. } = step;
        assert!(previous < memory.len() && reference < memory.len() && target < memory.len());
        assert!(previous != target && reference != target);
        let memory = memory.as_mut_ptr();
        // SAFETY: all three lie within the slice, which is borrowed for as long as they are, and the block that is
        // written is neither of those that are only read.
        #[allow(unsafe_code, reason = "three blocks of one slice, one of them written")]
        unsafe {
            Blocks {
                previous: &*memory.add(previous),
                reference: &*memory.add(reference),
                target: &mut *memory.add(target),
            }
        }
    }
}

/// Cache lines in a block.
pub(super) const LINES: usize = Block::BYTES / 64;

/// Asks for a block before it is needed, line by line in the given order.
#[inline(always)]
pub(super) fn prefetch(memory: &[Block], block: usize, cache: Cache, lines: impl Iterator<Item = usize>) {
    let start = memory.as_ptr().wrapping_add(block).cast::<i8>();
    for line in lines {
        // SAFETY: a prefetch of any address has no effect but on the caches.
        #[allow(unsafe_code, reason = "prefetch is a hint, but takes a pointer")]
        unsafe {
            match cache {
                Cache::First => _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64 * line)),
                Cache::Second => _mm_prefetch::<_MM_HINT_T1>(start.wrapping_add(64 * line)),
            }
        }
    }
}
