//! The compression function in plain 64-bit arithmetic: for every CPU, and the oracle of the other kernels.

use super::{
    block::Block,
    fill::{Cache, Kernel, Step},
};

/// The kernel that runs anywhere. Words lie in their natural order.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Kernel for Portable {
    fn place(word: usize) -> usize {
        word
    }

    #[inline]
    fn compress(self, memory: &mut [Block], step: Step) -> u64 {
        let mut mixed = memory[step.previous];
        mixed.merge(&memory[step.reference]);
        let mut kept = mixed;
        if step.merge {
            kept.merge(&memory[step.target]);
        }
        for row in 0..8 {
            round(&mut mixed.0, |i| 16 * row + i);
        }
        for column in 0..8 {
            round(&mut mixed.0, |i| 16 * (i / 2) + 2 * column + i % 2);
        }
        mixed.merge(&kept);
        memory[step.target] = mixed;
        mixed.0[0]
    }

    fn prefetch(self, _: &[Block], _: usize, _: Cache) {}
}

/// P of RFC 9106 §3.6 on the sixteen words whose places `at` gives.
#[inline(always)]
fn round(block: &mut [u64; Block::WORDS], at: impl Fn(usize) -> usize) {
    let mut v: [u64; 16] = std::array::from_fn(|i| block[at(i)]);
    for [a, b, c, d] in [
        [0, 4, 8, 12],
        [1, 5, 9, 13],
        [2, 6, 10, 14],
        [3, 7, 11, 15],
        [0, 5, 10, 15],
        [1, 6, 11, 12],
        [2, 7, 8, 13],
        [3, 4, 9, 14],
    ] {
        v[a] = mul_add(v[a], v[b]);
        v[d] = (v[d] ^ v[a]).rotate_right(32);
        v[c] = mul_add(v[c], v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(24);
        v[a] = mul_add(v[a], v[b]);
        v[d] = (v[d] ^ v[a]).rotate_right(16);
        v[c] = mul_add(v[c], v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(63);
    }
    for (i, word) in v.into_iter().enumerate() {
        block[at(i)] = word;
    }
}

/// x + y + 2 * low(x) * low(y), modulo 2^64.
#[inline(always)]
fn mul_add(x: u64, y: u64) -> u64 {
    let product = (x & 0xffff_ffff).wrapping_mul(y & 0xffff_ffff);
    x.wrapping_add(y).wrapping_add(product << 1)
}
