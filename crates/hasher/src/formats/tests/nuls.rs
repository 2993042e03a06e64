//! A NUL in a password: nobody types one by mistake, but a client that sends one may have signed in with a variant of
//! the password, which must not replace it.

use super::{SNOWMAN, parse, vectors::VECTORS, verify};
use crate::formats::Stored;

/// `password`, padded with NULs to this many bytes.
fn filled(password: &[u8], bytes: usize) -> Vec<u8> {
    let mut key = password.to_vec();
    key.resize(bytes, 0);
    key
}

/// Variants of the password with NULs, which formats may take for it: behind it, up to and beyond HMAC's two block
/// sizes, in front of it, and with a repetition behind a NUL.
fn variants(password: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<_> = [password.len() + 1, 64, 65, 128, 129].map(|bytes| filled(password, bytes)).into();
    all.extend([[b"\0", password].concat(), [password, b"\0", password].concat()]);
    all
}

/// Tries all spellings, as a sign-in does.
fn is_right(stored: &Stored, typed: &[u8]) -> bool {
    verify(stored, typed) || stored.spellings(typed).iter().any(|other| verify(stored, other))
}

/// Red without the NULs in `hears_all_of` of bcrypt, PBKDF2, scrypt, Firebase, or in spelling.rs, is_plain and trimmed:
/// the next sign-in with the variant would have stored it, and the password itself would be wrong from then on.
#[test]
fn a_variant_of_a_password_is_never_stored_in_its_place() {
    let mut right = Vec::new();
    for &(password, text) in VECTORS.iter().filter(|(password, _)| [SNOWMAN, b"", b"user1password"].contains(password))
    {
        let stored = parse(text);
        assert!(stored.hears_all_of(password) || text.starts_with("$2x$"), "{text}");
        for variant in variants(password).iter().filter(|variant| is_right(&stored, variant)) {
            assert!(!stored.hears_all_of(variant), "{text}: {} bytes", variant.len());
            right.push(stored.scheme());
        }
    }
    right.sort_unstable();
    right.dedup();
    assert_eq!(right, ["bcrypt", "drupal", "firebase scrypt", "pbkdf2", "phpass", "scrypt"]);
}

/// An HMAC pads a key with NULs up to a block, and takes the digest of a longer key.
#[test]
fn an_hmac_hears_all_but_the_nuls_that_fill_up_its_block() {
    for (text, block) in [
        ("$pbkdf2-sha1$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$+7QSwSD+8rhTCSyVsC7Tbr4S+vc", 64),
        ("$pbkdf2-sha256$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$GchB9f+KYWTp/XAPdZt4/VfhtjYIoIb0mnmKJ3df+E8", 64),
        ("$pbkdf2-sha512$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS8", 128),
        ("$scrypt$ln=10,r=8,p=1$bW3tndO6lzLmPAdgjBFi7A$oYAuT/kQCyIafLMe5SmC4Tr3COYoTDklcJgQHLhpN1Q", 64),
    ] {
        let stored = parse(text);
        for bytes in [SNOWMAN.len() + 1, block - 1, block, block + 1, 3 * block] {
            let variant = filled(SNOWMAN, bytes);
            assert_eq!(verify(&stored, &variant), bytes <= block, "{text} {bytes}");
            assert_eq!(stored.hears_all_of(&variant), bytes > block, "{text} {bytes}");
        }
        assert!(stored.hears_all_of(b"nul\0inside") && stored.hears_all_of(b"\0before") && stored.hears_all_of(b""));
    }
}

/// WordPress and other PHP programs may have put a backslash and a zero for a NUL; the owner may as well type these.
#[test]
fn what_stands_for_a_nul_in_php_is_not_replaced_by_it() {
    for text in
        ["$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0", "$wp$2y$04$abcdefghijklmnopqrstuuEGMIWjYVBOZeWWtvtgpSHx6RDBRa73a"]
    {
        let stored = parse(text);
        assert!(stored.spellings(b"a\0b").iter().any(|other| **other == *br"a\0b"), "{text}");
        assert!(!stored.hears_all_of(b"a\0b") && stored.hears_all_of(b"a0b"), "{text}");
    }
}
