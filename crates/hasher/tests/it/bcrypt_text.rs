//! Stored bcrypt hashes as text: what is read, what is refused, what is written.

use hasher::bcrypt::{Flavor, Hash};
use proptest::prelude::*;

const TEXT: &str = "$2b$10$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui";

fn parse(text: &str) -> Option<Hash> {
    text.parse().ok()
}

#[test]
fn a_hash_is_read_and_written() {
    let hash = parse(TEXT).unwrap();
    assert_eq!((hash.flavor, hash.cost), (Flavor::B, 10));
    assert_eq!(hash.to_string(), TEXT);
    for name in ["2a", "2b", "2x", "2y"] {
        let text = TEXT.replace("2b", name);
        assert_eq!(parse(&text).unwrap().to_string(), text);
    }
    for cost in ["04", "05", "12", "31"] {
        let text = TEXT.replace("10", cost);
        assert_eq!(parse(&text).unwrap().to_string(), text);
    }
}

#[test]
fn the_alphabet_is_bcrypts_own() {
    let hash = parse(&format!("$2b$04${}{}", "./ABCDEFGHIJKLMNOPQRSu", ".".repeat(31))).unwrap();
    assert_eq!(hash.salt[..3], [0x00, 0x10, 0x83]);
    assert_eq!(hash.tag, [0; 23]);
}

/// As written by implementations that copy the salt as given: 22 characters carry four bits too many, 31 two.
#[test]
fn bits_that_stand_for_nothing_are_ignored_and_written_as_zero() {
    let hash = parse(TEXT).unwrap();
    for last in ["v", "w", "9"] {
        let text = TEXT.replace("uu5s", &format!("u{last}5s"));
        assert_eq!(parse(&text).unwrap().to_string(), TEXT, "u is 48, {last} up to 63");
        assert_eq!(parse(&text).unwrap(), hash);
    }
    let text = format!("{}j", TEXT.strip_suffix('i').unwrap());
    assert_eq!(parse(&text).unwrap().to_string(), TEXT);
}

#[test]
fn everything_else_is_refused() {
    let bad = [
        "",
        "$",
        "$2b",
        "$2b$10",
        "$2b$10$",
        &TEXT[1..],
        &TEXT[..59],
        &format!("{TEXT}."),
        &format!("{TEXT}$"),
        &format!("{TEXT}\n"),
        &format!(" {TEXT}"),
        &TEXT.replace("2b", "2"),
        &TEXT.replace("2b", "2c"),
        &TEXT.replace("2b", "2B"),
        &TEXT.replace("10", "03"),
        &TEXT.replace("10", "32"),
        &TEXT.replace("10", "99"),
        &TEXT.replace("10", "9"),
        &TEXT.replace("10", "010"),
        &TEXT.replace("10", "+9"),
        &TEXT.replace("10", "1 "),
        &TEXT.replace("abc", "+bc"),
        &TEXT.replace("abc", "a=c"),
        &TEXT.replace("abc", "a$c"),
        &TEXT.replace("abc", "aé"),
        &TEXT.replace("Bui", "Bu="),
    ];
    for text in bad {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(salt: [u8; 16], tag: [[u8; 8]; 3], cost in 4u32..=31) {
        let tag = tag.as_flattened()[..23].try_into().unwrap();
        let hash = Hash { flavor: Flavor::Y, cost, salt, tag };
        prop_assert_eq!(parse(&hash.to_string()), Some(hash));
    }

    #[test]
    fn reading_never_panics_and_writing_settles(text in "\\$?(2[abxyz]\\$)?[0-9]{0,3}\\$?[./A-Za-z0-9$]{50,56}|.{0,80}") {
        if let Some(hash) = parse(&text) {
            prop_assert_eq!(parse(&hash.to_string()), Some(hash));
        }
    }
}
