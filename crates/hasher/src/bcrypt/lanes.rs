//! The kernel: K Blowfish states that are walked in lock step.
//!
//! The layout decides the speed here, so that safe code is as fast as any:
//! - An S-box is an array of 256 words and is indexed by a byte: there is nothing to check.
//! - All states lie in one array, so that every look-up of every lane is one register plus a constant plus the byte.
//! - A state is not a multiple of 4 KiB: the same word of two lanes differs in the address bits by which a load is
//!   first compared with the stores before it.
//! - A round is one step of every lane, so the chain of one lane waits while those of the others run; K is a constant
//!   and the halves of all blocks stay in registers for as long as there are enough.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::tables;

/// P of Blowfish.
pub(super) type Subkeys = [u32; 18];
/// S of Blowfish.
pub(super) type Sboxes = [[u32; 256]; 4];

/// One Blowfish key schedule: 4,168 bytes, in whole cache lines.
#[derive(Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(super) struct State {
    pub(super) sboxes: Sboxes,
    pub(super) subkeys: Subkeys,
}

/// The states of K jobs, wiped when they go.
pub(super) struct Lanes<const K: usize> {
    states: [State; K],
}

impl<const K: usize> Lanes<K> {
    /// Blowfish before any key.
    pub(super) fn new() -> Self {
        Lanes { states: [const { tables::initial() }; K] }
    }

    /// Adds a key (or a salt) to the subkeys: `word(lane, 0..18)`.
    pub(super) fn mix(&mut self, word: impl Fn(usize, usize) -> u32) {
        for (lane, state) in self.states.iter_mut().enumerate() {
            state.subkeys.iter_mut().enumerate().for_each(|(at, subkey)| *subkey ^= word(lane, at));
        }
    }

    /// ExpandKey without a salt, after the key was mixed in: every word of the state is replaced by the ciphertext of
    /// the word before it. All of the time is spent here.
    pub(super) fn expand(&mut self) {
        let mut blocks = Blocks::of([0; 2]);
        for pair in 0..9 {
            self.encrypt(&mut blocks);
            self.put_subkeys(pair, &blocks);
        }
        for sbox in 0..4 {
            for pair in 0..128 {
                self.encrypt(&mut blocks);
                self.put_sbox(sbox, pair, &blocks);
            }
        }
    }

    /// ExpandKey with a salt: two of its four words are added to each plaintext, in turns. Done once for each hash.
    pub(super) fn expand_salted(&mut self, salts: &[[u32; 4]; K]) {
        let mut blocks = Blocks::of([0; 2]);
        for pair in 0..9 {
            blocks.add(salts, pair);
            self.encrypt(&mut blocks);
            self.put_subkeys(pair, &blocks);
        }
        for sbox in 0..4 {
            for pair in 0..128 {
                blocks.add(salts, pair + 1);
                self.encrypt(&mut blocks);
                self.put_sbox(sbox, pair, &blocks);
            }
        }
    }

    /// The ciphertext of one block in every lane, encrypted 64 times over.
    pub(super) fn encrypt_64_times(&self, block: [u32; 2]) -> Zeroizing<[[u32; 2]; K]> {
        let mut blocks = Blocks::of(block);
        (0..64).for_each(|_| self.encrypt(&mut blocks));
        let mut result = Zeroizing::new([[0; 2]; K]);
        for (lane, result) in result.iter_mut().enumerate() {
            *result = [blocks.left[lane], blocks.right[lane]];
        }
        blocks.left.zeroize();
        blocks.right.zeroize();
        result
    }

    /// Blowfish, with every round the same: a half gets its subkey before it is looked up and before F is added to it,
    /// so the chain waits for nothing but F. (In the textbook's order the subkey would be one more step of the chain.)
    #[inline(always)]
    fn encrypt(&self, blocks: &mut Blocks<K>) {
        let Blocks { mut left, mut right } = *blocks;
        for lane in 0..K {
            left[lane] ^= self.states[lane].subkeys[0];
            right[lane] ^= self.states[lane].subkeys[1];
        }
        for round in 0..16 {
            for lane in 0..K {
                let state = &self.states[lane];
                let next = right[lane] ^ state.f(left[lane]);
                right[lane] = left[lane] ^ state.subkeys[round + 2];
                left[lane] = next;
            }
        }
        *blocks = Blocks { left: right, right: left };
    }

    #[inline(always)]
    fn put_subkeys(&mut self, pair: usize, blocks: &Blocks<K>) {
        for (lane, state) in self.states.iter_mut().enumerate() {
            state.subkeys[2 * pair] = blocks.left[lane];
            state.subkeys[2 * pair + 1] = blocks.right[lane];
        }
    }

    #[inline(always)]
    fn put_sbox(&mut self, sbox: usize, pair: usize, blocks: &Blocks<K>) {
        for (lane, state) in self.states.iter_mut().enumerate() {
            state.sboxes[sbox][2 * pair] = blocks.left[lane];
            state.sboxes[sbox][2 * pair + 1] = blocks.right[lane];
        }
    }
}

/// The blocks that are encrypted in every lane. The halves lie apart: pairs would be packed into 64-bit registers and
/// taken out again in every round.
struct Blocks<const K: usize> {
    left: [u32; K],
    right: [u32; K],
}

impl<const K: usize> Blocks<K> {
    /// The same block in every lane.
    fn of([left, right]: [u32; 2]) -> Self {
        Blocks { left: [left; K], right: [right; K] }
    }

    /// Adds the first half of each salt in even turns, the second half in odd ones.
    fn add(&mut self, salts: &[[u32; 4]; K], turn: usize) {
        let at = turn % 2 * 2;
        for (lane, salt) in salts.iter().enumerate() {
            self.left[lane] ^= salt[at];
            self.right[lane] ^= salt[at + 1];
        }
    }
}

impl State {
    /// What one round adds to the other half: four look-ups, one for each byte.
    #[inline(always)]
    fn f(&self, half: u32) -> u32 {
        let [s0, s1, s2, s3] = &self.sboxes;
        let byte = |place: u32| usize::from((half >> (8 * place)) as u8);
        (s0[byte(3)].wrapping_add(s1[byte(2)]) ^ s2[byte(1)]).wrapping_add(s3[byte(0)])
    }
}
