//! scrypt's computation (RFC 7914 §3 to §6), in memory that is mapped for one job and then returned to the system,
//! which wipes it: the usual crates take memory from the allocator, which keeps it, unwiped, and ends the process when
//! there is none.

use sha2::Sha256;
use zeroize::Zeroizing;

use super::prf::pbkdf2;
use crate::{
    arena::{Arena, NoMemory},
    argon2::Block,
};

/// One Salsa20 block.
type Salsa = [u32; 16];

/// Two Salsa20 blocks; `r` of these pairs make one element of the memory.
const PAIR_BYTES: usize = 128;
/// 64-bit words of a pair.
const PAIR_WORDS: usize = PAIR_BYTES / 8;
/// Pairs in a block of the arena; no pair lies in two blocks.
const PAIRS: usize = Block::BYTES / PAIR_BYTES;

/// Fills `key` with scrypt of `password` under `salt`, N = 2^`log_n`. Needs 128·N·r bytes, and another 256·r·p.
///
/// # Errors
/// [`NoMemory`] when there is no memory.
pub(super) fn scrypt(
    (password, salt): (&[u8], &[u8]),
    (log_n, r, p): (u8, u32, u32),
    key: &mut [u8],
) -> Result<(), NoMemory> {
    let r = r as usize;
    let (mut blocks, mut arena) = (zeroed(p as usize * r * PAIR_BYTES)?, Arena::new());
    let memory = arena.blocks((r << log_n).div_ceil(PAIRS))?;
    let mut mixer = Mixer { now: zeroed(2 * r)?, next: zeroed(2 * r)? };
    pbkdf2::<Sha256>(password, salt, 1, &mut blocks);
    for block in blocks.chunks_exact_mut(r * PAIR_BYTES) {
        mixer.read(block);
        mixer.mix_all(memory, 1 << log_n);
        mixer.write(block);
    }
    pbkdf2::<Sha256>(password, &blocks, 1, key);
    Ok(())
}

/// This many zeroes, which are wiped at the end.
fn zeroed<T: Clone + Default>(count: usize) -> Result<Zeroizing<Vec<T>>, NoMemory>
where
    Vec<T>: zeroize::Zeroize,
{
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| NoMemory)?;
    room.resize(count, T::default());
    Ok(Zeroizing::new(room))
}

/// One element of the memory, 2r Salsa20 blocks, while it is mixed.
struct Mixer {
    now: Zeroizing<Vec<Salsa>>,
    next: Zeroizing<Vec<Salsa>>,
}

impl Mixer {
    fn read(&mut self, bytes: &[u8]) {
        for (word, bytes) in self.now.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        for (word, bytes) in self.now.as_flattened().iter().zip(bytes.as_chunks_mut::<4>().0) {
            *bytes = word.to_le_bytes();
        }
    }

    /// scryptROMix (§5): writes N elements, then reads N of them, each where the state so far says.
    fn mix_all(&mut self, memory: &mut [Block], n: usize) {
        for at in 0..n {
            self.keep(memory, at);
            self.mix();
        }
        for _ in 0..n {
            self.add(memory, self.integer() & (n - 1));
            self.mix();
        }
    }

    /// Integerify (§5), as far as needed: N is at most 2^21.
    fn integer(&self) -> usize {
        self.now.last().map_or(0, |salsa| salsa[0] as usize)
    }

    fn keep(&self, memory: &mut [Block], at: usize) {
        let (pairs, _) = self.now.as_chunks::<2>();
        for (number, pair) in (at * pairs.len()..).zip(pairs) {
            let block = &mut memory[number / PAIRS].0.as_chunks_mut::<PAIR_WORDS>().0[number % PAIRS];
            let halves = pair.as_flattened().as_chunks::<2>().0;
            for (word, &[low, high]) in block.iter_mut().zip(halves) {
                *word = u64::from(low) | u64::from(high) << 32;
            }
        }
    }

    fn add(&mut self, memory: &[Block], at: usize) {
        let (pairs, _) = self.now.as_chunks_mut::<2>();
        for (number, pair) in (at * pairs.len()..).zip(pairs) {
            let block = &memory[number / PAIRS].0.as_chunks::<PAIR_WORDS>().0[number % PAIRS];
            let halves = pair.as_flattened_mut().as_chunks_mut::<2>().0;
            for (word, [low, high]) in block.iter().zip(halves) {
                *low ^= *word as u32;
                *high ^= (*word >> 32) as u32;
            }
        }
    }

    /// scryptBlockMix (§4): even results first, then odd ones.
    fn mix(&mut self) {
        let half = self.now.len() / 2;
        let Some(mut state) = self.now.last().copied() else { return };
        for (number, salsa) in self.now.iter().enumerate() {
            state.iter_mut().zip(salsa).for_each(|(to, from)| *to ^= from);
            let mixed = salsa20_8(state);
            state.iter_mut().zip(mixed).for_each(|(to, mixed)| *to = to.wrapping_add(mixed));
            self.next[number / 2 + number % 2 * half] = state;
        }
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

/// The rounds of Salsa20/8 (§3), before the input is added. Word by word: the compiler's code for that is as fast as
/// vector instructions, which have to rotate the rows.
fn salsa20_8(mut x: Salsa) -> Salsa {
    for _ in 0..4 {
        for [a, b, c, d] in [[0, 4, 8, 12], [5, 9, 13, 1], [10, 14, 2, 6], [15, 3, 7, 11]] {
            quarter(&mut x, a, b, c, d);
        }
        for [a, b, c, d] in [[0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14]] {
            quarter(&mut x, a, b, c, d);
        }
    }
    x
}

#[inline(always)]
fn quarter(x: &mut Salsa, a: usize, b: usize, c: usize, d: usize) {
    x[b] ^= x[a].wrapping_add(x[d]).rotate_left(7);
    x[c] ^= x[b].wrapping_add(x[a]).rotate_left(9);
    x[d] ^= x[c].wrapping_add(x[b]).rotate_left(13);
    x[a] ^= x[d].wrapping_add(x[c]).rotate_left(18);
}
