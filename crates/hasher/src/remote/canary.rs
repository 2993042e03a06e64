//! Asks whose answer is known, drawn so that nobody can tell them from others; and how an answer is judged.

use hmac::Mac;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::state::Lie;
use crate::{argon2::H0, formats::prf::Prf, job::Tag};

/// One ask in so many has a canary beside it, on average.
const ONE_IN: u8 = 64;

/// One in so many refusals to callers that do not wait for a second answer is computed again.
const LOOKS_AT: u8 = 8;

/// A worker's source of randomness, from 32 random bytes.
pub(crate) struct Chance {
    seed: Zeroizing<[u8; 32]>,
    drawn: u64,
    bytes: Vec<u8>,
}

impl Chance {
    pub(crate) fn new(seed: Zeroizing<[u8; 32]>) -> Self {
        Chance { seed, drawn: 0, bytes: Vec::new() }
    }

    /// Whether the next ask has a canary beside it, and whether the canary goes first.
    pub(crate) fn canary(&mut self) -> Option<bool> {
        let byte = self.byte();
        byte.is_multiple_of(ONE_IN).then_some((byte / ONE_IN).is_multiple_of(2))
    }

    /// Whether a refusal of the worker is computed again.
    pub(crate) fn looks(&mut self) -> bool {
        self.byte().is_multiple_of(LOOKS_AT)
    }

    /// A pre-hash that belongs to nothing.
    pub(crate) fn h0(&mut self) -> H0 {
        let mut bytes = [0; 64];
        for half in bytes.chunks_exact_mut(32) {
            half.copy_from_slice(&self.block());
        }
        H0::from_bytes(&bytes)
    }

    fn byte(&mut self) -> u8 {
        if self.bytes.is_empty() {
            self.bytes = self.block().to_vec();
        }
        self.bytes.pop().unwrap_or(0)
    }

    fn block(&mut self) -> [u8; 32] {
        self.drawn += 1;
        Prf::<Sha256>::of(&*self.seed).chain_update(self.drawn.to_be_bytes()).finalize().into_bytes().into()
    }
}

/// An answer that is compared with what is computed here.
pub(super) struct Test {
    /// The lie that a difference shows.
    pub(super) shows: Lie,
    pub(super) ours: Option<Tag>,
    pub(super) theirs: Option<Tag>,
}

impl Test {
    pub(super) fn of(shows: Lie, theirs: Option<Tag>) -> Self {
        Test { shows, ours: None, theirs }
    }

    /// Whether the answer was right, once both tags are there.
    pub(super) fn verdict(&self) -> Option<bool> {
        Some(self.ours.as_ref()?.ct_eq(self.theirs.as_ref()?).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_in_64_is_a_canary_and_no_two_are_the_same() {
        let mut chance = Chance::new(Zeroizing::new([7; 32]));
        let drawn: Vec<_> = (0..64_000).filter_map(|_| chance.canary()).collect();
        assert!((800..1200).contains(&drawn.len()), "{}", drawn.len());
        let before = drawn.iter().filter(|before| **before).count();
        assert!((drawn.len() / 3..drawn.len() * 2 / 3).contains(&before), "{before} of {}", drawn.len());
        assert_ne!(chance.h0().as_bytes(), chance.h0().as_bytes());
    }
}
