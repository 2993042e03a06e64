//! The unit of Argon2's memory.

use zeroize::DefaultIsZeroes;

/// 1 KiB of Argon2's memory (RFC 9106 §3.4): 128 words of 64 bits. The order of the words is up to the kernel that
/// fills them; only the first word has the same place for all, because the next reference follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub(crate) [u64; Block::WORDS]);

impl Block {
    /// Bytes in a block.
    pub const BYTES: usize = 1024;
    /// Words in a block.
    pub(crate) const WORDS: usize = Block::BYTES / 8;
    /// A block of zeros.
    pub const ZERO: Block = Block([0; Block::WORDS]);

    /// The block with these bytes, its words where `place` says.
    pub(super) fn from_bytes(bytes: &[u8; Block::BYTES], place: impl Fn(usize) -> usize) -> Block {
        let mut block = Block::ZERO;
        for (word, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
            block.0[place(word)] = u64::from_le_bytes(*bytes);
        }
        block
    }

    /// The bytes of a block whose words are where `place` says.
    pub(super) fn to_bytes(self, place: impl Fn(usize) -> usize) -> [u8; Block::BYTES] {
        let mut bytes = [0; Block::BYTES];
        for (word, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *bytes = self.0[place(word)].to_le_bytes();
        }
        bytes
    }

    /// Exclusive or of two blocks in the same order.
    pub(super) fn merge(&mut self, other: &Block) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word ^= other;
        }
    }
}

impl Default for Block {
    fn default() -> Self {
        Block::ZERO
    }
}

impl DefaultIsZeroes for Block {}
