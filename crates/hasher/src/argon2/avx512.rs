//! The compression function with 512-bit vectors.
//!
//! The block is an 8 x 8 matrix of pairs of words (RFC 9106 §3.6): P works on the sixteen words of each row, then on
//! those of each column. Here a vector holds the same word of all eight rows, and after a transposition of all eight
//! columns. So eight rounds run side by side, the sixteen vectors of a block are one state of P, and its diagonal step is
//! only another choice of vectors: nothing is permuted within a round. Blocks stay in memory in the order of the row
//! step, which costs one transposition on the way in and one on the way out of the column step.

use std::arch::x86_64::*;

use super::{
    block::Block,
    fill::{Kernel, Step},
    x86::{self, Blocks},
};

/// The kernel for CPUs with AVX-512F; a value exists only where that was detected.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// `None` where the CPU lacks AVX-512F.
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Avx512(()))
    }
}

impl Kernel for Avx512 {
    /// Word `i` of row `r`, naturally at `16 r + i`, is element `r` of vector `i`.
    fn place(word: usize) -> usize {
        8 * (word % 16) + word / 16
    }

    #[inline(always)]
    fn compress(self, memory: &mut [Block], step: Step) -> u64 {
        let Blocks { previous, reference, target } = Blocks::of(memory, step);
        // SAFETY: `self` proves AVX-512F.
        #[allow(unsafe_code, reason = "a function that needs AVX-512F")]
        unsafe {
            if step.merge {
                compress::<true>(previous, reference, target)
            } else {
                compress::<false>(previous, reference, target)
            }
        }
    }

    #[inline(always)]
    fn prefetch(self, memory: &[Block], block: usize) {
        x86::prefetch(memory, block);
    }
}

/// The sixteen vectors of a block.
type State = [__m512i; 16];

macro_rules! mul_add {
    ($v:ident, $([$x:expr, $y:expr]),*) => {
        $(
            let product = _mm512_mul_epu32($v[$x], $v[$y]);
            $v[$x] = _mm512_add_epi64(_mm512_add_epi64($v[$x], $v[$y]), _mm512_add_epi64(product, product));
        )*
    };
}

macro_rules! rotate_xor {
    ($v:ident, $by:literal, $([$x:expr, $y:expr]),*) => {
        $( $v[$x] = _mm512_ror_epi64::<$by>(_mm512_xor_si512($v[$x], $v[$y])); )*
    };
}

/// GB of RFC 9106 §3.6, four at a time.
macro_rules! quarter_rounds {
    ($v:ident, $([$a:literal, $b:literal, $c:literal, $d:literal]),*) => {
        mul_add!($v, $([$a, $b]),*);
        rotate_xor!($v, 32, $([$d, $a]),*);
        mul_add!($v, $([$c, $d]),*);
        rotate_xor!($v, 24, $([$b, $c]),*);
        mul_add!($v, $([$a, $b]),*);
        rotate_xor!($v, 16, $([$d, $a]),*);
        mul_add!($v, $([$c, $d]),*);
        rotate_xor!($v, 63, $([$b, $c]),*);
    };
}

/// P of RFC 9106 §3.6, eight at a time.
macro_rules! round {
    ($v:ident) => {
        quarter_rounds!($v, [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]);
        quarter_rounds!($v, [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]);
    };
}

/// G of RFC 9106 §3.5; returns the first word of the result.
#[target_feature(enable = "avx512f")]
fn compress<const MERGE: bool>(previous: &Block, reference: &Block, target: &mut Block) -> u64 {
    let mut v: State = std::array::from_fn(|i| _mm512_xor_si512(load(previous, i), load(reference, i)));
    round!(v);
    v = transpose(v);
    round!(v);
    v = transpose(v);
    let mut first = 0;
    for (i, z) in v.into_iter().enumerate() {
        let mut mixed = xor3(z, load(previous, i), load(reference, i));
        if MERGE {
            mixed = _mm512_xor_si512(mixed, load(target, i));
        }
        if i == 0 {
            first = _mm_cvtsi128_si64(_mm512_castsi512_si128(mixed)) as u64;
        }
        store(target, i, mixed);
    }
    first
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &Block, i: usize) -> __m512i {
    let words = &block.0[8 * i..8 * i + 8];
    // SAFETY: eight words of the block, and blocks are aligned to 64 bytes.
    #[allow(unsafe_code, reason = "a vector load")]
    unsafe {
        _mm512_load_si512(words.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(block: &mut Block, i: usize, vector: __m512i) {
    let words = &mut block.0[8 * i..8 * i + 8];
    // SAFETY: eight words of the block, and blocks are aligned to 64 bytes.
    #[allow(unsafe_code, reason = "a vector store")]
    unsafe {
        _mm512_store_si512(words.as_mut_ptr().cast(), vector);
    }
}

/// From the words of the rows to those of the columns and back. Word `2 c + h` of row `r` is word `2 r + h` of column
/// `c`: two 8 x 8 transpositions, of the vectors with even and of those with odd numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(v: State) -> State {
    let even = transpose8([v[0], v[2], v[4], v[6], v[8], v[10], v[12], v[14]]);
    let odd = transpose8([v[1], v[3], v[5], v[7], v[9], v[11], v[13], v[15]]);
    std::array::from_fn(|i| if i % 2 == 0 { even[i / 2] } else { odd[i / 2] })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transpose8(v: [__m512i; 8]) -> [__m512i; 8] {
    // Single elements within pairs of vectors, then halves of halves, then halves: what `a` and `b` mean changes.
    let even: [__m512i; 4] = std::array::from_fn(|i| _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]));
    let odd: [__m512i; 4] = std::array::from_fn(|i| _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
    let [r0, r4, r2, r6] = quarters(even);
    let [r1, r5, r3, r7] = quarters(odd);
    [r0, r1, r2, r3, r4, r5, r6, r7]
}

/// Transposes a 4 x 4 matrix of 128-bit elements; the rows of the result come in the order 0, 2, 1, 3.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(v: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (a, b) = (_mm512_shuffle_i64x2::<EVEN>(v[0], v[1]), _mm512_shuffle_i64x2::<EVEN>(v[2], v[3]));
    let (c, d) = (_mm512_shuffle_i64x2::<ODD>(v[0], v[1]), _mm512_shuffle_i64x2::<ODD>(v[2], v[3]));
    [
        _mm512_shuffle_i64x2::<EVEN>(a, b),
        _mm512_shuffle_i64x2::<ODD>(a, b),
        _mm512_shuffle_i64x2::<EVEN>(c, d),
        _mm512_shuffle_i64x2::<ODD>(c, d),
    ]
}
