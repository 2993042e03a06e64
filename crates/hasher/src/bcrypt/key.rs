//! A password as the 18 words that are mixed into Blowfish's subkeys.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{Flavor, lanes::Subkeys};

/// Bytes of a key that count: 18 words of four.
pub(crate) const BYTES: usize = 72;

/// The words of one key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Key {
    words: Subkeys,
    /// Mixed into the first word too, the first time only: [`Flavor::A`]'s mark of a key that the bug could confuse
    /// with others.
    mark: u32,
}

impl Key {
    /// No key.
    pub(super) const BLANK: Key = Key { words: [0; 18], mark: 0 };

    /// Sets the words: the key and a NUL after it, repeated to 72 bytes, four to a word, the first byte on top.
    pub(super) fn set(&mut self, flavor: Flavor, key: &[u8]) {
        let mut bytes = key.iter().chain(&[0]).cycle().take(BYTES).copied();
        let mut extended = false;
        let mut differs = false;
        for word in &mut self.words {
            let (mut correct, mut buggy) = (0u32, 0u32);
            for (place, byte) in bytes.by_ref().take(4).enumerate() {
                correct = correct << 8 | u32::from(byte);
                // As in C with a signed `char`: a byte from 0x80 sets every bit above it.
                buggy = buggy << 8 | i32::from(byte.cast_signed()).cast_unsigned();
                extended |= place > 0 && byte >= 0x80;
            }
            differs |= correct != buggy;
            *word = if flavor == Flavor::X { buggy } else { correct };
        }
        let marked = flavor == Flavor::A && extended && !differs;
        self.mark = u32::from(marked) << 16;
    }

    /// The words of every round.
    pub(super) fn words(&self) -> &Subkeys {
        &self.words
    }

    /// One word of the first key schedule, the salted one.
    pub(super) fn first(&self, word: usize) -> u32 {
        if word == 0 { self.words[0] ^ self.mark } else { self.words[word] }
    }
}
