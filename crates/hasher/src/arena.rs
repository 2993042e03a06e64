//! The memory in which a thread hashes: mapped once, kept between jobs, given back when idle.
//!
//! What a fill leaves behind would let someone who reads it test guesses faster than by hashing. The next job
//! overwrites it, or after a short idle time it is given back to the kernel, which hands out no page unwiped; wiping
//! after every job would cost a tenth of the throughput and only shorten that time. The mapping is left out of core
//! dumps, and a child process finds zeros in its place, where the kernel can do so.

use std::fmt;

use crate::argon2::Block;

/// The memory of one hashing thread, for [`fill`](crate::argon2::fill): mapped once and kept from one hash to the next.
///
/// On Linux it is aligned to huge pages, and backed by them where the kernel has some. Elsewhere it comes from the
/// ordinary allocator, and is wiped when it goes. What a fill leaves in it would let somebody who reads it test guesses
/// faster than by hashing: if nothing is to be hashed for a while, give it back with [`Arena::keep`].
///
/// **Core dumps and forks.** Linux is asked to leave the memory out of core dumps, and to give a child process zeros in
/// its place (from Linux 4.14 on). Both are requests: where the kernel refuses one, the content is in the dump, or the
/// child has a copy of it. In any case the arena of a child is its own, and can be used like any other. On other systems
/// nothing is asked for.
///
/// ```
/// use hasher::{
///     argon2::{Algorithm, Arena, Cost, H0, Params, Tag, Version, fill},
///     cpu::Level,
/// };
///
/// let params = Params::new(Algorithm::Argon2id, Version::V19, Cost::new(64, 2, 1)?, 32)?;
/// let mut arena = Arena::new(); // one for each thread, for as long as it hashes
/// for password in ["one", "two"] {
///     let h0 = H0::new(&params, password.as_bytes(), b"a salt of its own", b"", b"");
///     let mut tags = [Tag::default()];
///     fill(Level::best(), &params, &[h0], arena.blocks(params.memory_blocks())?, &mut tags);
///     assert_eq!(tags[0].len(), 32);
/// }
/// arena.keep(0); // back to the system, which wipes it
/// assert!(arena.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Arena {
    mapping: Option<system::Mapping>,
}

/// Does not print its content.
impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").finish_non_exhaustive()
    }
}

/// There is no memory for a job; nothing is known about the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for hashing")
    }
}

impl std::error::Error for NoMemory {}

impl Arena {
    /// An arena that holds nothing yet.
    pub const fn new() -> Self {
        Arena { mapping: None }
    }

    /// Returns `count` blocks, of 1 KiB each, with any content. Grows by mapping anew; maps nothing for none.
    ///
    /// # Errors
    /// [`NoMemory`] when the system refuses the memory. The arena is empty then.
    pub fn blocks(&mut self, count: usize) -> Result<&mut [Block], NoMemory> {
        if self.len() < count {
            // The old mapping goes first: both at once might exceed what the machine may give.
            self.mapping = None;
            self.mapping = Some(system::Mapping::new(count)?);
        }
        match &mut self.mapping {
            Some(mapping) => Ok(&mut mapping.blocks()[..count]),
            None => Ok(&mut []),
        }
    }

    /// How many blocks it holds: at least the most that it was asked for, in whole pages of the system.
    pub fn len(&self) -> usize {
        self.mapping.as_ref().map_or(0, system::Mapping::len)
    }

    /// Whether it holds no memory at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the memory beyond `count` blocks back to the system, which wipes it, except for less than 2 MiB where a
    /// huge page would be cut, which the system would not free. On systems other than Linux all of it goes.
    pub fn keep(&mut self, count: usize) {
        match &mut self.mapping {
            Some(mapping) if count > 0 => mapping.keep(count),
            _ => self.mapping = None,
        }
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a mapping of our own: its alignment and huge pages halve the time of a hash")]
mod system {
    use std::{ffi::c_void, ptr::NonNull};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::{Block, NoMemory};

    /// The size of a huge page of x86-64, and of aarch64 with 4 KiB pages. With other sizes the alignment does no harm.
    const HUGE_PAGE: usize = 2 << 20;
    /// Whole pages, whatever their size.
    const PAGES: usize = 64 << 10;

    /// Anonymous memory, aligned to huge pages and backed by them where the kernel has some. The remainder, smaller
    /// than one, is not: a whole one would be resident beyond what was requested, and count against no ceiling.
    pub(super) struct Mapping {
        start: NonNull<Block>,
        bytes: usize,
    }

    // SAFETY: the memory belongs to this value alone, as a `Box<[Block]>` would own it, and no thread is special to it.
    unsafe impl Send for Mapping {}

    impl Mapping {
        pub(super) fn new(blocks: usize) -> Result<Self, NoMemory> {
            let bytes = blocks.checked_mul(Block::BYTES).and_then(|bytes| bytes.checked_next_multiple_of(PAGES));
            let bytes = bytes.filter(|&bytes| bytes > 0 && bytes < isize::MAX as usize - HUGE_PAGE).ok_or(NoMemory)?;
            let whole = bytes + HUGE_PAGE;
            // SAFETY: a new mapping wherever the kernel likes: no existing memory is touched.
            let raw = unsafe {
                mmap_anonymous(std::ptr::null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            };
            let raw = raw.map_err(|_| NoMemory)?.cast::<u8>();
            // The memory before and after the aligned part goes back at once.
            let before = raw.align_offset(HUGE_PAGE);
            let start = raw.wrapping_add(before);
            unmap(raw, before);
            unmap(start.wrapping_add(bytes), whole - before - bytes);
            let start = NonNull::new(start.cast::<Block>()).ok_or(NoMemory)?;
            let huge = bytes / HUGE_PAGE * HUGE_PAGE;
            // Never `LinuxDontFork`: a child has this value, too, and would find memory of others in the hole.
            let advices =
                [(Advice::LinuxHugepage, huge), (Advice::LinuxDontDump, bytes), (Advice::LinuxWipeOnFork, bytes)];
            for (advice, bytes) in advices {
                // Best effort, as the documentation says: a kernel without huge pages, or one that is older than an
                // advice, refuses it. Without huge pages everything works, only slower.
                // SAFETY: the range begins with the mapping made above and is no longer than it. None of these advices
                // changes what is read from it here, and a child reads zeros, which are valid blocks.
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

    impl Mapping {
        /// Gives back the memory beyond `blocks` blocks, in whole huge pages.
        pub(super) fn keep(&mut self, blocks: usize) {
            let bytes = blocks.saturating_mul(Block::BYTES).checked_next_multiple_of(HUGE_PAGE);
            if let Some(bytes) = bytes.filter(|bytes| *bytes < self.bytes)
                && unmap(self.start.as_ptr().cast::<u8>().wrapping_add(bytes), self.bytes - bytes)
            {
                self.bytes = bytes;
            }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            unmap(self.start.as_ptr().cast(), self.bytes);
        }
    }

    /// Gives `bytes` from `start` back: a part of a mapping that nothing refers to any more. Returns whether the range
    /// is gone. If the process has as many mappings as it may have (`vm.max_map_count`), none can be split, and none
    /// ends: then only the pages go back, and the range stays, full of zeros.
    fn unmap(start: *mut u8, bytes: usize) -> bool {
        // SAFETY: every caller owns this range and gives up every pointer to it.
        let gone = bytes == 0 || unsafe { munmap(start.cast(), bytes) }.is_ok();
        if !gone {
            // SAFETY: as above. The range is still mapped and anonymous, and becomes zeros, which are valid blocks.
            let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxDontNeed) };
        }
        gone
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Block, NoMemory};

    /// Memory of the ordinary allocator, which `Block` aligns; wiped before it is freed, because not every allocator
    /// gives it back to the system.
    pub(super) struct Mapping(Vec<Block>);

    impl Mapping {
        pub(super) fn new(blocks: usize) -> Result<Self, NoMemory> {
            let mut memory = Vec::new();
            memory.try_reserve_exact(blocks).map_err(|_| NoMemory)?;
            memory.resize(blocks, Block::ZERO);
            Ok(Mapping(memory))
        }

        pub(super) fn len(&self) -> usize {
            self.0.len()
        }

        pub(super) fn blocks(&mut self) -> &mut [Block] {
            &mut self.0
        }

        /// Gives everything back: the allocator might move a part of it, and leave a copy where it was.
        pub(super) fn keep(&mut self, _blocks: usize) {
            *self = Mapping(Vec::new());
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
    fn memory_is_kept_until_given_back() {
        let mut arena = Arena::new();
        assert_eq!(arena.len(), 0);
        let first = arena.blocks(5000).unwrap().as_ptr();
        let mapped = arena.len();
        assert!((5000..5064).contains(&mapped), "whole pages, not whole huge pages: {mapped}");
        assert_eq!(arena.blocks(100).unwrap().len(), 100);
        assert_eq!(arena.blocks(5000).unwrap().as_ptr(), first);
        assert_eq!(arena.len(), mapped);
        arena.keep(0);
        assert_eq!(arena.len(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_part_is_given_back_in_whole_huge_pages() {
        let mut arena = Arena::new();
        let memory = arena.blocks(9000).unwrap();
        memory.fill(Block([7; Block::WORDS]));
        let first = memory.as_ptr();
        for (keep, left) in [(8193, 9024), (8192, 8192), (5000, 6144), (6144, 6144), (1, 2048)] {
            arena.keep(keep);
            assert_eq!(arena.len(), left, "{keep}");
            let memory = arena.blocks(keep).unwrap();
            assert!(memory.as_ptr() == first && memory[keep - 1].0 == [7; Block::WORDS]);
        }
        // Mapped anew: the old content is gone.
        assert_eq!(arena.blocks(9000).unwrap()[0].0, [0; Block::WORDS]);
        arena.keep(9000);
        assert_eq!(arena.len(), 9024);
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
            assert_eq!(Arena::new().blocks(count).err(), Some(NoMemory));
        }
    }

    #[test]
    fn no_blocks_are_no_memory_that_is_missing() {
        let mut arena = Arena::new();
        assert!(arena.blocks(0).unwrap().is_empty() && arena.is_empty());
        arena.blocks(1).unwrap();
        assert!(arena.blocks(0).unwrap().is_empty() && !arena.is_empty());
    }

    /// Red with `LinuxDontFork`: the child, which has the arena as well, dies of its first look at it, or finds memory
    /// of others there.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    #[allow(unsafe_code, reason = "no safe call forks, and the test is about what a child finds")]
    fn a_child_has_an_arena_of_its_own_full_of_zeros() {
        let mut arena = Arena::new();
        arena.blocks(5000).unwrap().fill(Block([7; Block::WORDS]));
        // SAFETY: until it ends, the child calls nothing that takes a lock: other threads of this process, which it
        // lacks, may have held one. A panic would not be told, and is not needed to tell by the status.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let blocks = arena.blocks(5000).unwrap_or_default();
            let wiped = blocks.len() == 5000 && blocks.iter().all(|block| *block == Block::ZERO);
            blocks.fill(Block([8; Block::WORDS]));
            let own = blocks.iter().all(|block| block.0 == [8; Block::WORDS]);
            // SAFETY: ends the child at once, without the parent's destructors.
            unsafe { libc::_exit(i32::from(!wiped) + 2 * i32::from(!own)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above, and writes to a variable of this function.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(child > 0 && waited == child && status == 0, "what became of the child: {status:#x}");
        assert!(
            arena.blocks(5000).unwrap().iter().all(|block| block.0 == [7; Block::WORDS]),
            "the parent keeps its own"
        );
    }
}
