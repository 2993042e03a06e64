//! Passwords of any length: what they cost, and that the cost is known beforehand.

use super::{ALICE, keys, parse, vectors::VECTORS, verify};
use crate::{
    MAX_PASSWORD, Stored,
    formats::{Digest, Recipe, serial::Serial},
    job::Kind,
};

fn kind(stored: &Stored, bytes: usize) -> Kind {
    stored.prepare(&vec![b'x'; bytes], ALICE, &keys()).unwrap().kind
}

/// Formats that take the password in every round cost more for a longer one, up to the longest that is accepted. All
/// others cost the same for every password.
#[test]
fn the_longest_password_is_the_dearest() {
    let mut rounds = 0;
    for (_, text) in VECTORS {
        let stored = parse(text);
        let lengths = [0, 1, 8, 40, 64, 200, 511, 512, 513, 1023, 1024, 1025, MAX_PASSWORD];
        let kinds = lengths.map(|bytes| kind(&stored, bytes));
        assert!(kinds.is_sorted_by(|one, next| one.work() <= next.work()), "{text}");
        let longest = match &stored.0 {
            Recipe::Chain(_) if text.starts_with("U$S$") => 0,
            Recipe::Chain(hash) if hash.scheme() == "drupal" => 512,
            Recipe::Chain(_) => 1024,
            Recipe::ShaCrypt(_) => 511,
            _ => 0,
        };
        for (length, kind) in lengths.iter().zip(kinds).filter(|(length, _)| **length >= longest) {
            assert_eq!(kind, kinds[lengths.len() - 1], "{text}: {length}");
        }
        if longest > 0 {
            assert!(kinds[0].work() * 4.0 < kinds[lengths.len() - 1].work(), "{text}: learned apart");
            rounds += 1;
        }
    }
    assert!(rounds > 12, "phpass, Drupal and SHA-crypt are among them");
}

/// A password that is too long costs as much as the longest, and is wrong: also where its beginning is right, and where
/// another system would take it.
#[test]
fn what_is_too_long_is_wrong() {
    for (text, length) in [
        ("$P$5saltsaltzNQofezyrFl564TWCfz3K1", 1024),
        ("$S$7saltsalthN32hKOfwUdx.V0b/BtwFa7feZ3pfHZs5mh07924WIw", 512),
        ("$5$rounds=1001$longpassword$Fd9WOQWbHGOl8A1Jtq6.kZM5pgk7CgVfxijDBT8CZmD", 511),
    ] {
        let stored = parse(text);
        assert!(verify(&stored, &vec![b'x'; length]), "{text}");
        for more in [1, 100, MAX_PASSWORD - length] {
            assert!(!verify(&stored, &vec![b'x'; length + more]), "{text}: {more} more");
        }
    }
    // hashlib of Python 3.11
    for (text, length) in
        [("$P$5saltsalt8MT/ljwXMbpL.mkF9F1JS0", 1025), ("$S$7saltsaltR7SAuKvlXlTAX2CmrTGz1XHmCnsQmneFoqX2mh9sMDU", 513)]
    {
        assert!(!verify(&parse(text), &vec![b'x'; length]), "{text}");
    }
}

/// RFC 1321 §3.1 and FIPS 180-4 §5.1: a one bit, zeroes, and the length in 64 or 128 bits.
#[test]
fn compressions_are_counted_as_the_digests_do() {
    for (digest, bytes, blocks) in [
        (Digest::Md5, 39, 1), // and 16 of the digest before: 55
        (Digest::Md5, 40, 2),
        (Digest::Md5, 103, 2),
        (Digest::Md5, 1024, 17),
        (Digest::Sha512, 47, 1),
        (Digest::Sha512, 48, 2),
        (Digest::Sha512, 512, 5),
    ] {
        assert_eq!(Serial::chain(digest, 1, bytes), Serial::Chain { digest, rounds: 1, blocks }, "{bytes}");
    }
}
