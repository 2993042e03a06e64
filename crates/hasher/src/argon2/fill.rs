//! The fill: which blocks make up each block, for several walks through memory in lock step (RFC 9106 §3.2 to §3.4).

use std::ops::Range;

use zeroize::Zeroizing;

use super::{
    Tag,
    block::Block,
    h0::{self, H0},
    params::{Algorithm, Params, Version},
};

/// Fills with equal parameters. Each has [`Params::memory_blocks`] of the memory, one after the other.
pub(super) struct Job<'a> {
    pub(super) params: &'a Params,
    pub(super) h0s: &'a [H0],
}

/// One application of the compression function G (RFC 9106 §3.5). The fields are indices into the memory.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) previous: usize,
    pub(super) reference: usize,
    /// The block to be written; not one of the others.
    pub(super) target: usize,
    /// Whether the result is merged with the content of `target` (later passes of version 1.3), or replaces it.
    pub(super) merge: bool,
}

/// The compression function for one kind of CPU. A value of this type proves that this CPU runs it.
pub(super) trait Kernel: Copy {
    /// Where in a [`Block`] this kernel keeps a word. Word 0 is at 0.
    fn place(word: usize) -> usize;
    /// Computes the target of `step` and returns its first word, from which the next reference follows.
    fn compress(self, memory: &mut [Block], step: Step) -> u64;
    /// Asks for a block to be brought into a cache. A hint: any index is fine.
    fn prefetch(self, memory: &[Block], block: usize, cache: Cache);
}

/// How near to the core a block is brought.
#[derive(Clone, Copy)]
pub(super) enum Cache {
    First,
    Second,
}

/// Blocks of each walk between two pauses: eight walks take half a millisecond for this many.
const PIECE: u32 = 512;

/// Fills the memory and computes the tags, with a pause before each piece.
pub(super) fn run<K: Kernel>(
    kernel: K,
    job: &Job,
    (memory, tags): (&mut [Block], &mut [Tag]),
    pause: &mut dyn FnMut(),
) {
    begin::<K>(job, memory);
    for pass in 0..job.params.cost.passes() {
        for slice in 0..Params::SLICES {
            let plan = Plan::new(job, pass, slice);
            let walks = job.h0s.len() * plan.lanes as usize;
            let mut first = 0;
            while first < walks {
                let together = plan.together.min(walks - first);
                match together {
                    1 => plan.walk::<K, 1>(kernel, first, memory, pause),
                    2 => plan.walk::<K, 2>(kernel, first, memory, pause),
                    3 => plan.walk::<K, 3>(kernel, first, memory, pause),
                    4 => plan.walk::<K, 4>(kernel, first, memory, pause),
                    5 => plan.walk::<K, 5>(kernel, first, memory, pause),
                    6 => plan.walk::<K, 6>(kernel, first, memory, pause),
                    7 => plan.walk::<K, 7>(kernel, first, memory, pause),
                    _ => plan.walk::<K, 8>(kernel, first, memory, pause),
                }
                first += together;
            }
        }
    }
    finish::<K>(job, memory, tags);
}

/// The first two blocks of each lane (RFC 9106 §3.2 steps 3 and 4).
fn begin<K: Kernel>(job: &Job, memory: &mut [Block]) {
    let lane_blocks = job.params.lane_blocks() as usize;
    for (h0, memory) in job.h0s.iter().zip(memory.chunks_exact_mut(job.params.memory_blocks())) {
        for (lane, memory) in (0..).zip(memory.chunks_exact_mut(lane_blocks)) {
            for (index, block) in (0..).zip(&mut memory[..2]) {
                let mut bytes = Zeroizing::new([0; Block::BYTES]);
                h0.first(index, lane, &mut bytes[..]);
                *block = Block::from_bytes(&bytes, K::place);
            }
        }
    }
}

/// The tag of each job from the last blocks of its lanes (RFC 9106 §3.2 steps 7 and 8).
fn finish<K: Kernel>(job: &Job, memory: &[Block], tags: &mut [Tag]) {
    let lane_blocks = job.params.lane_blocks() as usize;
    for (tag, memory) in tags.iter_mut().zip(memory.chunks_exact(job.params.memory_blocks())) {
        let mut last = Zeroizing::new(Block::ZERO);
        for lane in memory.chunks_exact(lane_blocks) {
            last.merge(&lane[lane_blocks - 1]);
        }
        *tag = Tag::new(vec![0; job.params.tag_bytes as usize]);
        h0::expand(&[&Zeroizing::new(last.to_bytes(K::place))[..]], tag);
    }
}

/// One slice of one pass, for all jobs and lanes. Walks are numbered lane by lane, by job within a lane: the walks of
/// one lane follow the same addresses where these do not depend on the password.
struct Plan<'a> {
    params: &'a Params,
    jobs: usize,
    pass: u32,
    slice: u32,
    lanes: u32,
    segment_blocks: u32,
    lane_blocks: u32,
    memory_blocks: usize,
    /// How many walks go in lock step.
    together: usize,
    merge: bool,
    independent: bool,
}

/// One walk through one segment.
#[derive(Clone, Copy)]
struct Walk {
    lane: u32,
    /// First block of the job's memory.
    base: usize,
    previous: usize,
    reference: usize,
    target: usize,
}

/// Most walks in lock step where one job has several lanes.
const LANES_TOGETHER: usize = 4;

impl<'a> Plan<'a> {
    fn new(job: &Job<'a>, pass: u32, slice: u32) -> Self {
        let params = job.params;
        let lanes = params.cost.lanes();
        Plan {
            params,
            jobs: job.h0s.len(),
            pass,
            slice,
            lanes,
            segment_blocks: params.segment_blocks(),
            lane_blocks: params.lane_blocks(),
            memory_blocks: params.memory_blocks(),
            together: if lanes == 1 { job.h0s.len() } else { LANES_TOGETHER },
            merge: pass > 0 && params.version == Version::V19,
            independent: match params.algorithm {
                Algorithm::Argon2d => false,
                Algorithm::Argon2i => true,
                Algorithm::Argon2id => pass == 0 && slice < Params::SLICES / 2,
            },
        }
    }

    /// Fills the segments of `N` walks in lock step: at each position every walk compresses one block, then finds where
    /// its next reference lies and asks for it, so that it arrives while the others compress.
    #[inline(never)]
    fn walk<K: Kernel, const N: usize>(&self, kernel: K, first: usize, memory: &mut [Block], pause: &mut dyn FnMut()) {
        let mut walks: [Walk; N] = std::array::from_fn(|i| self.begin(first + i));
        // The first two blocks of a lane are there before the first slice.
        let start = if self.pass == 0 && self.slice == 0 { 2 } else { 0 };
        if self.independent {
            return self.walk_independent(kernel, &mut walks, (start, memory), pause);
        }
        for walk in &mut walks {
            walk.reference = self.reference(walk, start, memory[walk.previous].0[0]);
            ask::<K, N>(kernel, memory, walk.reference, walk.target);
        }
        for piece in self.pieces(start) {
            pause();
            for index in piece {
                for walk in &mut walks {
                    let word = kernel.compress(memory, self.step(walk));
                    walk.advance();
                    walk.reference = self.reference(walk, index + 1, word);
                    ask::<K, N>(kernel, memory, walk.reference, walk.target);
                }
            }
        }
    }

    /// As [`Plan::walk`], with addresses that are known beforehand: the fewer walks there are, the further ahead each
    /// asks for its references.
    fn walk_independent<K: Kernel, const N: usize>(
        &self,
        kernel: K,
        walks: &mut [Walk; N],
        (start, memory): (u32, &mut [Block]),
        pause: &mut dyn FnMut(),
    ) {
        let ahead = const { if N < 3 { 4 - N as u32 } else { 1 } };
        let mut addresses: [Addresses; N] = std::array::from_fn(|i| Addresses::new::<K>(self, walks[i].lane));
        // The walks of one lane are neighbors, and the first of them has the addresses for all.
        let mut first = [0; N];
        for i in 1..N {
            first[i] = if walks[i].lane == walks[i - 1].lane { first[i - 1] } else { i };
        }
        for i in 0..N {
            if first[i] == i {
                addresses[i].next(kernel);
            }
            for index in start..start + ahead {
                let word = addresses[first[i]].word::<K>(index);
                ask::<K, N>(kernel, memory, self.reference(&walks[i], index, word), walks[i].target);
            }
        }
        for piece in self.pieces(start) {
            pause();
            for index in piece {
                let later = index + ahead;
                for i in 0..N {
                    walks[i].reference = self.reference(&walks[i], index, addresses[first[i]].word::<K>(index));
                    kernel.compress(memory, self.step(&walks[i]));
                    walks[i].advance();
                    if later < self.segment_blocks {
                        if first[i] == i && later.is_multiple_of(Addresses::TOGETHER) {
                            addresses[i].next(kernel);
                        }
                        let word = addresses[first[i]].word::<K>(later);
                        ask::<K, N>(kernel, memory, self.reference(&walks[i], later, word), walks[i].target);
                    }
                }
            }
        }
    }

    /// The positions of the segment from `start` on, piece by piece.
    fn pieces(&self, start: u32) -> impl Iterator<Item = Range<u32>> {
        let end = self.segment_blocks;
        (start..end).step_by(PIECE as usize).map(move |from| from..end.min(from.saturating_add(PIECE)))
    }

    fn begin(&self, walk: usize) -> Walk {
        let (lane, job) = (walk / self.jobs, walk % self.jobs);
        let base = job * self.memory_blocks;
        let lane_start = base + lane * self.lane_blocks as usize;
        let start = if self.pass == 0 && self.slice == 0 { 2 } else { 0 };
        let target = lane_start + (self.slice * self.segment_blocks) as usize + start;
        let previous = if target == lane_start { lane_start + self.lane_blocks as usize - 1 } else { target - 1 };
        Walk { lane: lane as u32, base, previous, reference: previous, target }
    }

    #[inline(always)]
    fn step(&self, walk: &Walk) -> Step {
        Step { previous: walk.previous, reference: walk.reference, target: walk.target, merge: self.merge }
    }

    /// The block to which that at `index` of the segment refers (RFC 9106 §3.4.2), by the 64 bits `word` = J1 and J2.
    #[inline(always)]
    fn reference(&self, walk: &Walk, index: u32, word: u64) -> usize {
        let (j1, j2) = (word & 0xffff_ffff, word >> 32);
        let lane = match (self.lanes, self.pass, self.slice) {
            (1, ..) => 0,
            (_, 0, 0) => walk.lane,
            (lanes, ..) => (j2 as u32) % lanes,
        };
        // All finished segments; in the walk's own lane also the blocks of this segment, but never the previous one. In
        // the first pass the finished segments begin at block 0, later right after the current segment.
        let finished = if self.pass == 0 { self.slice } else { Params::SLICES - 1 } * self.segment_blocks;
        let area = if lane == walk.lane { finished + index - 1 } else { finished - u32::from(index == 0) };
        let from =
            if self.pass == 0 || self.slice == Params::SLICES - 1 { 0 } else { (self.slice + 1) * self.segment_blocks };
        let x = (j1 * j1) >> 32;
        let y = (u64::from(area) * x) >> 32;
        let mut block = from + area - 1 - y as u32;
        if block >= self.lane_blocks {
            block -= self.lane_blocks;
        }
        walk.base + (lane * self.lane_blocks + block) as usize
    }
}

/// Asks for the block that one of `N` walks reads next, and for the one that it writes after the next.
///
/// A core waits for few lines at a time on behalf of its first-level cache (some 24 on Zen 4), where the blocks of
/// several walks would wait for each other: three or more walks have theirs brought into the second level, which is
/// near enough. One or two walks are back too soon for that, and for them the CPU sees by itself what is written next.
#[inline(always)]
fn ask<K: Kernel, const N: usize>(kernel: K, memory: &[Block], reference: usize, target: usize) {
    if N < 3 {
        kernel.prefetch(memory, reference, Cache::First);
    } else {
        kernel.prefetch(memory, reference, Cache::Second);
        kernel.prefetch(memory, target + 1, Cache::Second);
    }
}

impl Walk {
    #[inline(always)]
    fn advance(&mut self) {
        self.previous = self.target;
        self.target += 1;
    }
}

/// The addresses of one segment where they do not depend on the password (RFC 9106 §3.4.1.2).
struct Addresses {
    /// Zeros, the input with its counter, an intermediate result, and the last two blocks of addresses.
    blocks: [Block; 5],
}

impl Addresses {
    const ZERO: usize = 0;
    const INPUT: usize = 1;
    const BETWEEN: usize = 2;
    const FIRST: usize = 3;
    /// Where the counter is in the input: it counts blocks of addresses from 1.
    const COUNTER: usize = 6;
    /// Addresses in one block.
    const TOGETHER: u32 = Block::WORDS as u32;

    fn new<K: Kernel>(plan: &Plan, lane: u32) -> Self {
        let mut blocks = [Block::ZERO; 5];
        let input = [
            u64::from(plan.pass),
            u64::from(lane),
            u64::from(plan.slice),
            plan.memory_blocks as u64,
            u64::from(plan.params.cost.passes()),
            plan.params.algorithm as u64,
        ];
        for (word, value) in input.into_iter().enumerate() {
            blocks[Self::INPUT].0[K::place(word)] = value;
        }
        Addresses { blocks }
    }

    /// Computes the next block of addresses; the one before stays.
    fn next<K: Kernel>(&mut self, kernel: K) {
        let counter = &mut self.blocks[Self::INPUT].0[K::place(Self::COUNTER)];
        let target = Self::FIRST + *counter as usize % 2;
        *counter += 1;
        let step = |reference, target| Step { previous: Self::ZERO, reference, target, merge: false };
        kernel.compress(&mut self.blocks, step(Self::INPUT, Self::BETWEEN));
        kernel.compress(&mut self.blocks, step(Self::BETWEEN, target));
    }

    /// J1 and J2 of the block at `index` of the segment, which must be within the last two blocks of addresses.
    #[inline(always)]
    fn word<K: Kernel>(&self, index: u32) -> u64 {
        let block = Self::FIRST + (index / Self::TOGETHER) as usize % 2;
        self.blocks[block].0[K::place((index % Self::TOGETHER) as usize)]
    }
}
