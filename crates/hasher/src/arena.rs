//! The memory in which a thread hashes: mapped once, kept between jobs, given back when idle.
//!
//! What a fill leaves behind would let someone who reads it test guesses faster than by hashing. It is overwritten by the
//! next job or given back to the kernel, which hands out no page unwiped, after a short idle time; wiping after every
//! job would cost a tenth of the throughput and only shorten that time. The mapping is left out of core dumps and, for
//! children, of forks.

use std::fmt;

use crate::argon2::Block;

/// The memory of one hashing thread.
#[derive(Default)]
pub struct Arena {
    mapping: Option<system::Mapping>,
}

/// There is no memory for a job; nothing is known about the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for hashing")
    }
}

impl std::error::Error for Fault {}

impl Arena {
    /// An arena that holds nothing yet.
    pub const fn new() -> Self {
        Arena { mapping: None }
    }

    /// `count` blocks with any content. Grows by mapping anew, never shrinks.
    ///
    /// # Errors
    /// [`Fault`] when the system refuses the memory. The arena is empty then.
    pub fn blocks(&mut self, count: usize) -> Result<&mut [Block], Fault> {
        if self.mapping.as_ref().is_none_or(|mapping| mapping.len() < count) {
            // The old one goes first: both at once might exceed what the machine may give.
            self.release();
            self.mapping = Some(system::Mapping::new(count)?);
        }
        let mapping = self.mapping.as_mut().ok_or(Fault)?;
        Ok(&mut mapping.blocks()[..count])
    }

    /// Gives everything back to the system, which wipes it. The next job maps it again.
    pub fn release(&mut self) {
        self.mapping = None;
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a mapping of our own: its alignment and huge pages halve the time of a hash")]
mod system {
    use std::{ffi::c_void, ptr::NonNull};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::{Block, Fault};

    /// The size of a huge page of x86-64, and of aarch64 with 4 KiB pages. With others the alignment does no harm.
    const HUGE_PAGE: usize = 2 << 20;

    /// Anonymous memory, aligned to huge pages and backed by them where the kernel has some.
    pub(super) struct Mapping {
        start: NonNull<Block>,
        bytes: usize,
    }

    // SAFETY: the memory belongs to this value alone, as a `Box<[Block]>` would own it, and no thread is special to it.
    unsafe impl Send for Mapping {}

    impl Mapping {
        pub(super) fn new(blocks: usize) -> Result<Self, Fault> {
            let bytes = blocks.checked_mul(Block::BYTES).and_then(|bytes| bytes.checked_next_multiple_of(HUGE_PAGE));
            let bytes = bytes.filter(|&bytes| bytes > 0 && bytes < isize::MAX as usize - HUGE_PAGE).ok_or(Fault)?;
            let whole = bytes + HUGE_PAGE;
            // SAFETY: a new mapping wherever the kernel likes: no existing memory is touched.
            let raw = unsafe {
                mmap_anonymous(std::ptr::null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            };
            let raw = raw.map_err(|_| Fault)?.cast::<u8>();
            // What lies before and after the aligned part goes back at once.
            let before = raw.align_offset(HUGE_PAGE);
            let start = raw.wrapping_add(before);
            unmap(raw, before);
            unmap(start.wrapping_add(bytes), whole - before - bytes);
            let start = NonNull::new(start.cast::<Block>()).ok_or(Fault)?;
            for advice in [Advice::LinuxHugepage, Advice::LinuxDontDump, Advice::LinuxDontFork] {
                // A kernel that knows no huge pages refuses; everything works without, only slower.
                // SAFETY: the range is the mapping made above, and none of these changes what it reads as here.
                let _ = unsafe { madvise(start.as_ptr().cast::<c_void>(), bytes, advice) };
            }
            Ok(Mapping { start, bytes })
        }

        /// How many blocks it has.
        pub(super) fn len(&self) -> usize {
            self.bytes / Block::BYTES
        }

        pub(super) fn blocks(&mut self) -> &mut [Block] {
            // SAFETY: the mapping is readable, writable, aligned beyond what `Block` needs, `len()` blocks long, zero
            // where never written, which is a valid `Block`, and borrowed as long as the result lives.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            unmap(self.start.as_ptr().cast(), self.bytes);
        }
    }

    /// Gives `bytes` from `start` back, a part of a mapping that nothing refers to any more.
    fn unmap(start: *mut u8, bytes: usize) {
        if bytes > 0 {
            // SAFETY: both callers own this range and give up every pointer to it. It fails only for ranges that are
            // no mapping, and then there is nothing to give back.
            let _ = unsafe { munmap(start.cast(), bytes) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Block, Fault};

    /// Memory of the ordinary allocator, which `Block` aligns; wiped before it is freed, because not every allocator
    /// gives it back to the system.
    pub(super) struct Mapping(Vec<Block>);

    impl Mapping {
        pub(super) fn new(blocks: usize) -> Result<Self, Fault> {
            let mut memory = Vec::new();
            memory.try_reserve_exact(blocks).map_err(|_| Fault)?;
            memory.resize(blocks, Block::ZERO);
            Ok(Mapping(memory))
        }

        pub(super) fn len(&self) -> usize {
            self.0.len()
        }

        pub(super) fn blocks(&mut self) -> &mut [Block] {
            &mut self.0
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            zeroize::Zeroize::zeroize(&mut self.0[..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_until_released() {
        let mut arena = Arena::new();
        let held = |arena: &Arena| arena.mapping.as_ref().map_or(0, |mapping| mapping.len());
        assert_eq!(held(&arena), 0);
        let first = arena.blocks(5000).unwrap().as_ptr();
        let mapped = held(&arena);
        assert!((5000..5000 + 4096).contains(&mapped));
        assert_eq!(arena.blocks(100).unwrap().len(), 100);
        assert_eq!(arena.blocks(5000).unwrap().as_ptr(), first);
        assert_eq!(held(&arena), mapped);
        arena.release();
        assert_eq!(held(&arena), 0);
    }

    #[test]
    fn blocks_are_aligned_and_writable_to_the_last() {
        let mut arena = Arena::new();
        for count in [1, 2048, 2049, 9000] {
            let blocks = arena.blocks(count).unwrap();
            assert_eq!(blocks.as_ptr() as usize % 64, 0);
            assert_eq!(blocks.len(), count);
            blocks.fill(Block::ZERO);
        }
    }

    #[test]
    fn a_count_that_no_machine_has_is_refused() {
        for count in [usize::MAX, usize::MAX / Block::BYTES, 1 << 50] {
            assert_eq!(Arena::new().blocks(count).err(), Some(Fault));
        }
    }
}
