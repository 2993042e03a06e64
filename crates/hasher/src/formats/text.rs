//! Readers for the pieces of stored hashes. Each accepts only one spelling of a value, unless it says otherwise.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};

use zeroize::Zeroizing;

use super::ParseError;

/// The alphabet of crypt(3), phpass and Drupal, in which the lowest bits come first.
const CRYPT: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Cuts `text` at every `separator` into exactly `N` fields.
pub(crate) fn fields<const N: usize>(text: &str, separator: char) -> Result<[&str; N], ParseError> {
    let mut parts = text.split(separator);
    let mut fields = [""; N];
    for field in &mut fields {
        *field = parts.next().ok_or(ParseError::Malformed("too few fields"))?;
    }
    if parts.next().is_some() { Err(ParseError::Malformed("too many fields")) } else { Ok(fields) }
}

/// Reads `NAME=NUMBER`.
pub(crate) fn parameter(text: &str, name: &str) -> Result<u32, ParseError> {
    let value = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    number(value.ok_or(ParseError::Malformed("parameters are missing, unknown or in another order"))?)
}

/// A decimal of the PHC string format: digits only, no leading zero, no sign, at most 32 bits.
pub(crate) fn number(text: &str) -> Result<u32, ParseError> {
    let minimal = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = if minimal && digits { text.parse().ok() } else { None };
    value.ok_or(ParseError::Malformed("numbers must be minimal decimals of at most 32 bits"))
}

/// Standard base64 without padding, with zero trailing bits: B64 of the PHC string format.
pub(crate) fn b64(text: &str) -> Result<Vec<u8>, ParseError> {
    STANDARD_NO_PAD.decode(text).map_err(|_| ParseError::Malformed("not unpadded base64"))
}

/// Standard base64 with padding.
pub(crate) fn padded(text: &str) -> Result<Vec<u8>, ParseError> {
    STANDARD.decode(text).map_err(|_| ParseError::Malformed("not padded base64"))
}

/// The "adapted" base64 of passlib: B64 with `.` for `+`.
pub(crate) fn adapted(text: &str) -> Result<Vec<u8>, ParseError> {
    if text.contains('+') {
        return Err(ParseError::Malformed("not adapted base64"));
    }
    b64(&text.replace('.', "+"))
}

/// Base64 as exports have it: either alphabet, with or without padding.
pub(crate) fn any_base64(text: &str) -> Result<Vec<u8>, ParseError> {
    let bare = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let standard = |byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    // Wiped, because it may be the text of a secret.
    let bare: Zeroizing<Vec<u8>> = Zeroizing::new(bare.bytes().map(standard).collect());
    STANDARD_NO_PAD.decode(&*bare).map_err(|_| ParseError::Malformed("not base64"))
}

/// Reads hexadecimal digits in either case; `None` for anything else. They may be those of a digest, which is as good
/// as a password: the buffer has its final size at once, since one that grows leaves copies behind.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(pairs.len());
    for &[high, low] in pairs {
        bytes.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Some(bytes)
}

/// The two lower-case hexadecimal digits of a byte.
pub(crate) fn hex_digits(byte: &u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

/// Lower-case hexadecimal digits of secret bytes.
pub(crate) fn hex_text(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    // Of its final size at once: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(2 * bytes.len()));
    text.extend(bytes.iter().flat_map(hex_digits));
    text
}

/// The value of one character of crypt(3)'s alphabet.
pub(crate) fn crypt_value(byte: u8) -> Option<u32> {
    CRYPT.iter().position(|&known| known == byte).map(|value| value as u32)
}

/// The character of crypt(3)'s alphabet for a value below 64.
pub(crate) fn crypt_digit(value: u32) -> char {
    char::from(CRYPT[value as usize % 64])
}

/// Reads crypt(3)'s alphabet, lowest bits first: the bytes, and the bits after the last whole byte.
pub(crate) fn crypt_decode(text: &str) -> Option<(Vec<u8>, u8)> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for byte in text.bytes() {
        held |= crypt_value(byte)? << bits;
        bits += 6;
        if bits >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    Some((bytes, held as u8))
}

/// Writes `bytes` and the bits after them, in the form that [`crypt_decode`] reads, in `characters` characters.
pub(crate) fn crypt_encode(bytes: &[u8], last: u8, characters: usize) -> String {
    let byte = |at: usize| u32::from(if at == bytes.len() { last } else { bytes.get(at).copied().unwrap_or(0) });
    let digit = |at: usize| {
        let bit = at * 6;
        crypt_digit((byte(bit / 8) | byte(bit / 8 + 1) << 8) >> (bit % 8) & 63)
    };
    (0..characters).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        assert_eq!(number("0"), Ok(0));
        assert_eq!(number("4294967295"), Ok(u32::MAX));
        for text in ["", "00", "01", "+1", "-1", " 1", "1 ", "4294967296", "٣", "1_0"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn crypt_reads_what_it_writes() {
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).map(|n| (n * 37 + 11) as u8).collect();
            let characters = (length * 8usize).div_ceil(6);
            assert_eq!(crypt_decode(&crypt_encode(&bytes, 0, characters)), Some((bytes, 0)), "{length}");
        }
        assert_eq!(crypt_decode("zzz"), Some((vec![255, 255], 3)));
        assert_eq!(crypt_encode(&[255, 255], 3, 3), "zzz");
        assert_eq!(crypt_decode("a+"), None);
    }

    #[test]
    fn hexadecimal_comes_in_pairs() {
        assert_eq!(hex("00fFa1"), Some(vec![0, 255, 161]));
        assert_eq!((hex("0"), hex("0g"), hex("é")), (None, None, None));
        assert_eq!(hex_digits(&0xa7), *b"a7");
    }
}
