//! The hashes around the fill: the pre-hash H0 before it, the variable-length H' on both sides (RFC 9106 §3.2, §3.3).

use std::fmt;

use blake2::{
    Blake2bVarCore,
    digest::block_api::{Buffer, UpdateCore, VariableOutputCore},
};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::params::Params;

/// The 64-byte pre-hash of parameters, password, salt, secret and associated data. Nothing else of them enters the
/// fill: the holder of an H0 can compute the tag but learns none of the inputs. Wiped on drop; never printed.
///
/// Its bytes stay at one place, whoever owns it: a move by value would leave a copy behind that nobody wipes.
pub struct H0(Box<[u8; 64]>);

impl H0 {
    /// H0 of these inputs (RFC 9106 §3.2 step 1). Empty `secret` or `data` means none.
    ///
    /// # Panics
    /// When an input is longer than 2^32 - 1 bytes (RFC 9106 §3.1), far beyond any that is read from a request: its
    /// length would be that of another input.
    pub fn new(params: &Params, password: &[u8], salt: &[u8], secret: &[u8], data: &[u8]) -> H0 {
        let cost = params.cost;
        let numbers = [
            cost.lanes(),
            params.tag_bytes,
            cost.memory(),
            cost.passes(),
            params.version as u32,
            params.algorithm as u32,
        ]
        .map(u32::to_le_bytes);
        let fields = [password, salt, secret, data];
        let lengths = fields.map(|field| length(field.len()));
        let mut parts = [&[][..]; 14];
        for (part, number) in parts.iter_mut().zip(&numbers) {
            *part = number;
        }
        for (pair, (length, field)) in parts[6..].chunks_exact_mut(2).zip(lengths.iter().zip(fields)) {
            pair.copy_from_slice(&[length, field]);
        }
        let mut h0 = H0(Box::new([0; 64]));
        blake2b(&parts, &mut h0.0[..]);
        h0
    }

    /// The bytes, to send to where the tag is computed.
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// An H0 that was computed elsewhere.
    pub fn from_bytes(bytes: &[u8; 64]) -> H0 {
        let mut h0 = H0(Box::new([0; 64]));
        h0.0.copy_from_slice(bytes);
        h0
    }

    /// The input of H' for a first block: H0, `block` (0 or 1), `lane` (RFC 9106 §3.2 steps 3 and 4).
    pub(super) fn first(&self, block: u32, lane: u32, bytes: &mut [u8]) {
        expand(&[&self.0[..], &block.to_le_bytes(), &lane.to_le_bytes()], bytes);
    }
}

impl Clone for H0 {
    fn clone(&self) -> Self {
        H0::from_bytes(&self.0)
    }
}

impl Drop for H0 {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for H0 {}

impl fmt::Debug for H0 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("H0(..)")
    }
}

/// The length of an input, as it goes into H0.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("no input of Argon2 is longer than 2^32 - 1 bytes").to_le_bytes()
}

/// H', a hash of any length (RFC 9106 §3.3), of the concatenated `parts`: fills `out`, which is not empty.
pub(super) fn expand(parts: &[&[u8]], out: &mut [u8]) {
    // The length of a tag is a `u32` of `Params`, which allows no empty tag; blocks are 1 KiB.
    let length = (out.len() as u32).to_le_bytes();
    let mut prefixed = Vec::with_capacity(parts.len() + 1);
    prefixed.push(&length[..]);
    prefixed.extend_from_slice(parts);
    if out.len() <= 64 {
        return blake2b(&prefixed, out);
    }
    let mut link = Zeroizing::new([0; 64]);
    blake2b(&prefixed, &mut link[..]);
    let mut rest = out;
    loop {
        let (half, after) = rest.split_at_mut(32);
        half.copy_from_slice(&link[..32]);
        rest = after;
        let previous = link.clone();
        if rest.len() <= 64 {
            return blake2b(&[&previous[..]], rest);
        }
        blake2b(&[&previous[..]], &mut link[..]);
    }
}

/// BLAKE2b of the concatenated `parts`, 1 to 64 bytes long as `out` is.
fn blake2b(parts: &[&[u8]], out: &mut [u8]) {
    let mut core = <Blake2bVarCore as VariableOutputCore>::new(out.len()).expect("BLAKE2b goes up to 64 bytes");
    let mut buffer = Buffer::<Blake2bVarCore>::default();
    for part in parts {
        buffer.digest_blocks(part, |blocks| core.update_blocks(blocks));
    }
    let mut whole = Zeroizing::new([0; 64]);
    core.finalize_variable_core(&mut buffer, (&mut *whole).into());
    out.copy_from_slice(&whole[..out.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_input_has_its_length() {
        assert_eq!((length(0), length(258), length(u32::MAX as usize)), ([0; 4], [2, 1, 0, 0], [0xFF; 4]));
    }

    /// Red where the length is cut to 32 bits: an input of 4 GiB would count as empty.
    #[test]
    #[cfg(target_pointer_width = "64")]
    #[should_panic = "no input of Argon2 is longer"]
    fn an_input_beyond_the_longest_is_no_shorter_one() {
        length(1 << 32);
    }

    /// Only a pointer moves, so what is wiped in the end is all there ever was.
    #[test]
    fn the_bytes_stay_where_they_are() {
        let h0 = H0::from_bytes(&[7; 64]);
        let place = h0.as_bytes().as_ptr();
        let moved = std::hint::black_box([h0]);
        assert_eq!(moved[0].as_bytes().as_ptr(), place);
        let copy = moved[0].clone();
        drop(moved);
        assert_eq!(copy.as_bytes(), &[7; 64]);
    }
}
