//! ASP.NET Core Identity: one padded base64 blob.
//!
//! ```text
//! 00 SALT(16) KEY(32)                                        version 2: PBKDF2-HMAC-SHA-1, 1,000 iterations
//! 01 PRF(4) ITERATIONS(4) LENGTH(4) SALT(LENGTH) KEY         version 3: big-endian; PRF 0, 1, 2 is SHA-1, -256, -512
//! ```

use super::{Digest, ParseError, Recipe, pbkdf2, refused, text};

const MALFORMED: ParseError = ParseError::Malformed("not a hash of ASP.NET Core Identity");

pub(super) fn read(text: &str) -> Result<Recipe, ParseError> {
    let blob = text::padded(text).map_err(|_| ParseError::Unsupported(refused::unknown(text)))?;
    match blob.split_first() {
        Some((0, rest)) if rest.len() == 48 => {
            let (salt, key) = rest.split_at(16);
            pbkdf2::recipe(Digest::Sha1, 1000, salt.to_vec(), key.to_vec())
        }
        Some((1, rest)) => {
            let (prf, rest) = word(rest)?;
            let (iterations, rest) = word(rest)?;
            let (length, rest) = word(rest)?;
            let digest = match prf {
                0 => Digest::Sha1,
                1 => Digest::Sha256,
                2 => Digest::Sha512,
                _ => return Err(MALFORMED),
            };
            let (salt, key) = rest.split_at_checked(length as usize).ok_or(MALFORMED)?;
            pbkdf2::recipe(digest, iterations, salt.to_vec(), key.to_vec())
        }
        _ => Err(MALFORMED),
    }
}

fn word(bytes: &[u8]) -> Result<(u32, &[u8]), ParseError> {
    let (word, rest) = bytes.split_first_chunk().ok_or(MALFORMED)?;
    Ok((u32::from_be_bytes(*word), rest))
}
