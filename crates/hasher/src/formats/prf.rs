//! HMAC (RFC 2104) that leaves nothing of its key behind, and PBKDF2 (RFC 8018 §5.2) with it.
//!
//! The `hmac` crate wipes its states, but not the block that it makes of the key: a password, or a pepper, stays on the
//! stack of the thread that hashed with it. So the two states are primed here, from a block that is wiped.

use hmac::{
    EagerHash, KeyInit,
    digest::{
        FixedOutput, InvalidLength, MacMarker, Output, OutputSizeUser, Update,
        block_api::{Block, BlockSizeUser, Buffer, FixedOutputCore, UpdateCore},
        common::{Key, KeySizeUser},
    },
};
use zeroize::Zeroizing;

use super::serial::kept;
use crate::job::Tag;

/// What the key is mixed with before the message, and before the digest of that (RFC 2104 §2).
const IPAD: u8 = 0x36;
const OPAD: u8 = 0x5C;

/// HMAC under a key, and the message so far.
#[derive(Clone)]
pub(crate) struct Prf<H: EagerHash> {
    inner: H::Core,
    outer: H::Core,
    buffer: Buffer<H::Core>,
}

impl<H: EagerHash> Prf<H> {
    /// From a key of any length: a key longer than a block is replaced by its digest.
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut block = Zeroizing::new(Block::<H::Core>::default());
        match block.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => {
                let mut digest = Zeroizing::new(Output::<H::Core>::default());
                // In one place: moving a state would leave behind what it has buffered.
                let (mut hash, mut buffer) = (H::Core::default(), Buffer::<H::Core>::default());
                buffer.digest_blocks(key, |blocks| hash.update_blocks(blocks));
                hash.finalize_fixed_core(&mut buffer, &mut digest);
                // No digest is longer than a block.
                block.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
            }
        }
        let mut primed = |pad: u8| {
            block.iter_mut().for_each(|byte| *byte ^= pad);
            let mut hash = H::Core::default();
            hash.update_blocks(std::slice::from_ref(&*block));
            hash
        };
        let (inner, outer) = (primed(IPAD), primed(IPAD ^ OPAD));
        Prf { inner, outer, buffer: Buffer::<H::Core>::default() }
    }

    /// Does the rest, in one place as well: a message may be a password, too.
    fn finish(&mut self, out: &mut Output<Self>) {
        let Prf { inner, outer, buffer } = self;
        let mut digest = Zeroizing::new(Output::<H::Core>::default());
        inner.finalize_fixed_core(buffer, &mut digest);
        buffer.reset();
        buffer.digest_blocks(&digest, |blocks| outer.update_blocks(blocks));
        outer.finalize_fixed_core(buffer, out);
    }
}

impl<H: EagerHash> KeySizeUser for Prf<H> {
    type KeySize = <H::Core as BlockSizeUser>::BlockSize;
}

impl<H: EagerHash> KeyInit for Prf<H> {
    fn new(key: &Key<Self>) -> Self {
        Self::of(key)
    }
    fn new_from_slice(key: &[u8]) -> Result<Self, InvalidLength> {
        Ok(Self::of(key))
    }
}

impl<H: EagerHash> Update for Prf<H> {
    fn update(&mut self, data: &[u8]) {
        let Prf { inner, buffer, .. } = self;
        buffer.digest_blocks(data, |blocks| inner.update_blocks(blocks));
    }
}

impl<H: EagerHash> OutputSizeUser for Prf<H> {
    type OutputSize = <H::Core as OutputSizeUser>::OutputSize;
}

impl<H: EagerHash> FixedOutput for Prf<H> {
    fn finalize_into(mut self, out: &mut Output<Self>) {
        self.finish(out);
    }
}

impl<H: EagerHash> MacMarker for Prf<H> {}

/// HMAC of the whole message.
pub(super) fn mac<H: EagerHash>(key: &[u8], message: &[u8]) -> Tag {
    let (mut prf, mut tag) = (Prf::<H>::of(key), Output::<Prf<H>>::default());
    prf.update(message);
    prf.finish(&mut tag);
    kept(tag)
}

/// Fills `key` with PBKDF2-HMAC.
pub(super) fn pbkdf2<H: EagerHash>(password: &[u8], salt: &[u8], iterations: u32, key: &mut [u8]) {
    match pbkdf2::pbkdf2::<Prf<H>>(password, salt, iterations, key) {
        Ok(()) => (),
        Err(InvalidLength) => unreachable!("HMAC takes a key of any length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{Hmac, Mac};
    use md5::Md5;
    use sha1::Sha1;
    use sha2::{Sha256, Sha384, Sha512};

    /// Compares keys and messages of lengths around a block and its end, and empty ones.
    fn agrees<H: EagerHash>() {
        let bytes: Vec<u8> = (0..400u32).map(|at| (at * 7) as u8).collect();
        for length in [0, 1, 20, 63, 64, 65, 127, 128, 129, 300] {
            for message in [0, 1, 55, 56, 64, 111, 112, 128, 400] {
                let (key, message) = (&bytes[400 - length..], &bytes[..message]);
                let mut theirs = <Hmac<H> as KeyInit>::new_from_slice(key).unwrap();
                Mac::update(&mut theirs, message);
                assert_eq!(mac::<H>(key, message)[..], theirs.finalize().into_bytes()[..], "{length}");
            }
            let (mut ours, mut theirs) = ([0; 150], [0; 150]);
            pbkdf2::<H>(&bytes[..length], b"salt", 3, &mut ours);
            pbkdf2::pbkdf2_hmac::<H>(&bytes[..length], b"salt", 3, &mut theirs);
            assert_eq!(ours, theirs, "{length}");
        }
    }

    #[test]
    fn it_computes_what_the_crate_of_the_field_computes() {
        agrees::<Md5>();
        agrees::<Sha1>();
        agrees::<Sha256>();
        agrees::<Sha384>();
        agrees::<Sha512>();
    }
}
