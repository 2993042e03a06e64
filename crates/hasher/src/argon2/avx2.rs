//! The compression function with 256-bit vectors.
//!
//! Words lie in their natural order, and a vector holds two neighboring pairs of one row of the 8 x 8 matrix of pairs
//! (RFC 9106 §3.6). A row is one state of P: four vectors, whose diagonal step rotates elements within vectors. In the
//! column step eight vectors hold two states, element by element in 128-bit halves, and the diagonal step moves single
//! elements between two vectors without crossing halves.

use std::{arch::x86_64::*, mem::MaybeUninit};

use super::{
    block::Block,
    fill::{Cache, Kernel, Step},
    x86::{self, Blocks},
};

/// The kernel for CPUs with AVX2; a value exists only where that was detected.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// `None` where the CPU lacks AVX2.
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

impl Kernel for Avx2 {
    fn place(word: usize) -> usize {
        word
    }

    #[inline(always)]
    fn compress(self, memory: &mut [Block], step: Step) -> u64 {
        let Blocks { previous, reference, target } = Blocks::of(memory, step);
        // SAFETY: `self` proves AVX2.
        #[allow(unsafe_code, reason = "a function that needs AVX2")]
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
        x86::prefetch(memory, block, cache, 0..x86::LINES);
    }
}

macro_rules! mul_add {
    ($v:ident, $([$x:expr, $y:expr]),*) => {
        $(
            let product = _mm256_mul_epu32($v[$x], $v[$y]);
            $v[$x] = _mm256_add_epi64(_mm256_add_epi64($v[$x], $v[$y]), _mm256_add_epi64(product, product));
        )*
    };
}

macro_rules! rotate_xor {
    ($v:ident, $rotate:expr, $([$x:expr, $y:expr]),*) => {
        $( $v[$x] = $rotate(_mm256_xor_si256($v[$x], $v[$y])); )*
    };
}

/// GB of RFC 9106 §3.6, two vectors of four at a time. Each of the four parts of the state is two vectors.
macro_rules! quarter_rounds {
    ($v:ident, $orders:ident) => {
        mul_add!($v, [0, 2], [1, 3]);
        rotate_xor!($v, rotate32, [6, 0], [7, 1]);
        mul_add!($v, [4, 6], [5, 7]);
        rotate_xor!($v, |v| _mm256_shuffle_epi8(v, load_order(&$orders.by24)), [2, 4], [3, 5]);
        mul_add!($v, [0, 2], [1, 3]);
        rotate_xor!($v, |v| _mm256_shuffle_epi8(v, load_order(&$orders.by16)), [6, 0], [7, 1]);
        mul_add!($v, [4, 6], [5, 7]);
        rotate_xor!($v, rotate63, [2, 4], [3, 5]);
    };
}

/// Shuffles of the bytes of a vector that rotate each of its words to the right.
#[repr(align(32))]
struct Order([u8; 32]);

struct Orders {
    by16: Order,
    by24: Order,
}

impl Order {
    const fn rotate(bytes: usize) -> Self {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 32 {
            // The order is counted within each 128-bit half.
            order[i] = ((i & 8) + (i + bytes) % 8) as u8;
            i += 1;
        }
        Order(order)
    }
}

static ORDERS: Orders = Orders { by16: Order::rotate(2), by24: Order::rotate(3) };

/// Two states of eight vectors: the even ones are one, the odd ones the other.
type Pair = [__m256i; 8];

/// P on two rows: four vectors each, taken in turn.
#[inline]
#[target_feature(enable = "avx2")]
fn rows(mut v: Pair, orders: &Orders) -> Pair {
    const ONE: i32 = 0b00_11_10_01;
    const TWO: i32 = 0b01_00_11_10;
    const THREE: i32 = 0b10_01_00_11;
    quarter_rounds!(v, orders);
    for i in 0..2 {
        v[2 + i] = _mm256_permute4x64_epi64::<ONE>(v[2 + i]);
        v[4 + i] = _mm256_permute4x64_epi64::<TWO>(v[4 + i]);
        v[6 + i] = _mm256_permute4x64_epi64::<THREE>(v[6 + i]);
    }
    quarter_rounds!(v, orders);
    for i in 0..2 {
        v[2 + i] = _mm256_permute4x64_epi64::<THREE>(v[2 + i]);
        v[4 + i] = _mm256_permute4x64_epi64::<TWO>(v[4 + i]);
        v[6 + i] = _mm256_permute4x64_epi64::<ONE>(v[6 + i]);
    }
    v
}

/// P on two columns, one in the lower and one in the upper halves of eight vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn columns(mut v: Pair, orders: &Orders) -> Pair {
    quarter_rounds!(v, orders);
    let [a0, a1, b0, b1, c0, c1, d0, d1] = v;
    v = [a0, a1, middle(b0, b1), middle(b1, b0), c1, c0, middle(d1, d0), middle(d0, d1)];
    quarter_rounds!(v, orders);
    let [a0, a1, b0, b1, c0, c1, d0, d1] = v;
    [a0, a1, middle(b1, b0), middle(b0, b1), c1, c0, middle(d0, d1), middle(d1, d0)]
}

/// In each half: the second element of `a`, the first of `b`.
#[inline]
#[target_feature(enable = "avx2")]
fn middle(a: __m256i, b: __m256i) -> __m256i {
    _mm256_alignr_epi8::<8>(b, a)
}

/// G of RFC 9106 §3.5; returns the first word of the result.
#[target_feature(enable = "avx2")]
fn compress<const MERGE: bool>(previous: &Block, reference: &Block, target: &mut Block) -> u64 {
    // If the compiler knew these orders, it would use two instructions for one.
    let orders = std::hint::black_box(&ORDERS);
    // Clearing it first, or returning arrays of vectors from `mix_rows`, would cost a fiftieth of the whole fill.
    let mut mixed = MaybeUninit::uninit();
    mix_rows::<0>(previous, reference, &mut mixed, orders);
    mix_rows::<1>(previous, reference, &mut mixed, orders);
    mix_rows::<2>(previous, reference, &mut mixed, orders);
    mix_rows::<3>(previous, reference, &mut mixed, orders);
    // SAFETY: four times eight vectors of four words make up a block, and `at` of `mix_rows` covers each vector once.
    #[allow(unsafe_code, reason = "a block that was written in parts")]
    let rows = unsafe { mixed.assume_init_ref() };
    let sources = Sources { previous, reference, rows };
    mix_columns::<0, MERGE>(&sources, target, orders);
    mix_columns::<1, MERGE>(&sources, target, orders);
    mix_columns::<2, MERGE>(&sources, target, orders);
    mix_columns::<3, MERGE>(&sources, target, orders);
    target.0[0]
}

/// The row step on one of four pairs of rows.
#[inline]
#[target_feature(enable = "avx2")]
fn mix_rows<const PAIR: usize>(previous: &Block, reference: &Block, mixed: &mut MaybeUninit<Block>, orders: &Orders) {
    let at = |i: usize| 8 * PAIR + 4 * (i % 2) + i / 2;
    let v = std::array::from_fn(|i| _mm256_xor_si256(load(previous, at(i)), load(reference, at(i))));
    for (i, mix) in rows(v, orders).into_iter().enumerate() {
        assert!(at(i) < Block::WORDS / 4);
        // SAFETY: the vector is within the block, and blocks are aligned to 64 bytes.
        #[allow(unsafe_code, reason = "a vector store")]
        unsafe {
            _mm256_store_si256(mixed.as_mut_ptr().cast::<__m256i>().add(at(i)), mix);
        }
    }
}

/// What a result is made of: the two inputs and what the row step made of them.
struct Sources<'a> {
    previous: &'a Block,
    reference: &'a Block,
    rows: &'a Block,
}

/// The column step on one of four pairs of columns, and the final exclusive or.
#[inline]
#[target_feature(enable = "avx2")]
fn mix_columns<const PAIR: usize, const MERGE: bool>(sources: &Sources, target: &mut Block, orders: &Orders) {
    let at = |i: usize| 4 * i + PAIR;
    let v = columns(std::array::from_fn(|i| load(sources.rows, at(i))), orders);
    for (i, mix) in v.into_iter().enumerate() {
        let mut z = _mm256_xor_si256(load(sources.previous, at(i)), load(sources.reference, at(i)));
        if MERGE {
            z = _mm256_xor_si256(z, load(target, at(i)));
        }
        store(target, at(i), _mm256_xor_si256(z, mix));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate32(v: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(v)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate63(v: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_srli_epi64::<63>(v), _mm256_add_epi64(v, v))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_order(order: &Order) -> __m256i {
    // SAFETY: `Order` is 32 bytes long and aligned to 32.
    #[allow(unsafe_code, reason = "a vector load")]
    unsafe {
        _mm256_load_si256(order.0.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block, i: usize) -> __m256i {
    let words = &block.0[4 * i..4 * i + 4];
    // SAFETY: four words of the block, and blocks are aligned to 64 bytes.
    #[allow(unsafe_code, reason = "a vector load")]
    unsafe {
        _mm256_load_si256(words.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(block: &mut Block, i: usize, vector: __m256i) {
    let words = &mut block.0[4 * i..4 * i + 4];
    // SAFETY: four words of the block, and blocks are aligned to 64 bytes.
    #[allow(unsafe_code, reason = "a vector store")]
    unsafe {
        _mm256_store_si256(words.as_mut_ptr().cast(), vector);
    }
}
