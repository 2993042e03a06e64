//! The compression function with 512-bit vectors.
//!
//! The block is an 8 x 8 matrix of pairs of words (RFC 9106 §3.6): P works on the sixteen words of each row, then on
//! those of each column. Here a vector holds the same word of all eight rows, and after a transposition of all eight
//! columns. So eight rounds run side by side, the sixteen vectors of a block are one state of P, and its diagonal step
//! is but another choice of vectors: nothing is permuted within a round. Blocks stay in memory in the order of the row
//! step, which costs one transposition on the way in and one on the way out of the column step.
//!
//! A transposition exchanges the three bits of the column, which number the vectors, with those of the row, which
//! number the elements: one shuffle of each vector for each pair of bits. The lowest pair needs none. P sees its words
//! as a 4 x 4 matrix and does the same to all columns, and to all diagonals, of that matrix: words that enter two of
//! its columns further on leave two columns further on, and two of its columns are one column of the block. So odd rows
//! are kept with their columns in the order 1, 0, 3, 2, …: the lowest bit of a vector's number is that of the row xor
//! that of the column, in both orders. What is left is to flip that bit of the elements where it is 1, which one of the
//! other shuffles does as well.

use std::arch::{asm, x86_64::*};

use super::{
    block::Block,
    fill::{Cache, Kernel, Step},
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
    /// Word `half` of the pair at `row` and `column`. The bits of a row are in the order 2, 0, 1.
    fn place(word: usize) -> usize {
        let (row, column, half) = (word / 16, word % 16 / 2, word % 2);
        let vector = 2 * (column ^ (row & 1)) + half;
        let element = (row & 4) | (row & 1) << 1 | (row & 2) >> 1;
        8 * vector + element
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
    fn prefetch(self, memory: &[Block], block: usize, cache: Cache) {
        // Nothing begins before all lines are there. Ascending, Zen 4 takes them for a stream and fetches on beyond.
        x86::prefetch(memory, block, cache, (0..x86::LINES).rev());
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

macro_rules! swap_xor {
    ($v:ident, $([$x:expr, $y:expr]),*) => {
        $( $v[$x] = swap_halves(_mm512_xor_si512($v[$x], $v[$y])); )*
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
        swap_xor!($v, $([$d, $a]),*);
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

/// How many input vectors stay in registers, beside those that are computed with, until they are needed once more; the
/// others are loaded again.
const KEPT: usize = 12;

/// G of RFC 9106 §3.5; returns the first word of the result.
#[target_feature(enable = "avx512f")]
fn compress<const MERGE: bool>(previous: &Block, reference: &Block, target: &mut Block) -> u64 {
    let input: State = std::array::from_fn(|i| _mm512_xor_si512(load(previous, i), load(reference, i)));
    let mut v = input;
    round!(v);
    v = transpose(v);
    round!(v);
    v = transpose(v);
    let mut first = 0;
    for (i, z) in v.into_iter().enumerate() {
        let mut mixed =
            if i < KEPT { _mm512_xor_si512(z, input[i]) } else { xor3(z, load(previous, i), load(reference, i)) };
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

/// Rotates by 32. The compiler would turn any intrinsic for it into a rotation, which on some CPUs has to wait for the
/// multiplications (on Zen 4 both use the same units), while a shuffle does not.
#[inline]
#[target_feature(enable = "avx512f")]
fn swap_halves(vector: __m512i) -> __m512i {
    // Miri knows the intrinsic, and no assembly.
    if cfg!(miri) {
        return _mm512_shuffle_epi32::<_MM_PERM_CDAB>(vector);
    }
    let swapped;
    // SAFETY: one instruction of AVX-512F, from a register to a register.
    #[allow(unsafe_code, reason = "an instruction that no intrinsic leads to")]
    unsafe {
        asm!(
            "vpshufd {swapped}, {vector}, 0xb1",
            vector = in(zmm_reg) vector,
            swapped = lateout(zmm_reg) swapped,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    swapped
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

/// Goes from the words of the rows to those of the columns and back (see above): the bits in the number of a vector are
/// those of the column, or of the row, and the bits in the number of an element are those of the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(mut v: State) -> State {
    // The highest bit, 8 in the number of a vector and 4 in that of an element; with it the bit that is to be flipped.
    for i in 0..8 {
        (v[i], v[i + 8]) = if i & 2 == 0 { halves(v[i], v[i + 8]) } else { flipped_halves(v[i], v[i + 8]) };
    }
    // The middle bit, 4 in the number of a vector and 1 in that of an element.
    for i in [0, 1, 2, 3, 8, 9, 10, 11] {
        (v[i], v[i + 4]) = (_mm512_unpacklo_epi64(v[i], v[i + 4]), _mm512_unpackhi_epi64(v[i], v[i + 4]));
    }
    v
}

/// The lower halves of both, and the upper halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    const LOWER: i32 = 0b01_00_01_00;
    const UPPER: i32 = 0b11_10_11_10;
    (_mm512_shuffle_i64x2::<LOWER>(a, b), _mm512_shuffle_i64x2::<UPPER>(a, b))
}

/// The same, with the quarters of each half in the other order.
#[inline]
#[target_feature(enable = "avx512f")]
fn flipped_halves(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    const LOWER: i32 = 0b00_01_00_01;
    const UPPER: i32 = 0b10_11_10_11;
    (_mm512_shuffle_i64x2::<LOWER>(a, b), _mm512_shuffle_i64x2::<UPPER>(a, b))
}
