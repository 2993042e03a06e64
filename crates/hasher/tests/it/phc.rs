//! The parser: total, strict, and the inverse of the writer.

use hasher::{ParseError, Stored};
use proptest::prelude::*;

use crate::cases;

const GOOD: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

fn parse(text: &str) -> Result<Stored, ParseError> {
    text.parse()
}

#[test]
fn a_canonical_text_comes_back_as_it_was() {
    for text in [
        GOOD,
        "$argon2i$v=16$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA",
        "$argon2d$v=19$m=1048576,t=64,p=64,keyid=azE$AAAAAAAAAAA$AAAAAAAAAAAAAAAA",
    ] {
        assert_eq!(parse(text).map(|stored| stored.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn a_missing_version_is_the_one_before_versions() {
    let old = parse("$argon2i$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA").unwrap();
    assert_eq!(old.to_string(), "$argon2i$v=16$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA");
}

/// The `argon2` of npm writes lanes before passes, others begin with passes: red where `m` has to come first.
#[test]
fn costs_are_read_in_any_order_and_written_in_one() {
    for order in ["m=19456,p=1,t=2", "t=2,m=19456,p=1", "p=1,t=2,m=19456"] {
        let stored: Stored = GOOD.replace("m=19456,t=2,p=1", order).parse().unwrap();
        assert_eq!(stored.to_string(), GOOD);
    }
    for bent in ["m=19456,t=2,t=2", "m=19456,t=2", "m=19456,t=2,q=1", "m=19456,t=2,keyid=azE,p=1", "m,t=2,p=1"] {
        assert!(GOOD.replace("m=19456,t=2,p=1", bent).parse::<Stored>().is_err(), "{bent}");
    }
}

#[test]
fn what_deviates_is_malformed() {
    let replaced = [
        ("$v=19", "$v=19$"),
        ("m=19456,t=2", "t=2,t=2"),
        ("m=19456", "m=019456"),
        ("m=19456", "m=+19456"),
        ("m=19456", "m= 19456"),
        ("m=19456", "m="),
        ("m=19456", "m=4294967296"),
        ("m=19456", "M=19456"),
        (",p=1", ""),
        ("p=1", "p=1,"),
        ("p=1", "p=1,p=1"),
        ("p=1", "p=1,x=1"),
        ("p=1", "p=1,keyid="),
        ("p=1", "p=1,keyid=azE,keyid=azE"),
        ("p=1", "p=1,keyid=AAAAAAAAAAAA"),
        ("c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2FsdA=="),
        ("c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2FsdB"),
        ("c29tZXNhbHRzb21lc2FsdA", "c29tZXNhbHRzb21lc2Fsd-"),
        ("c29tZXNhbHRzb21lc2FsdA", "c29tZQ"),
        ("c29tZXNhbHRzb21lc2FsdA", ""),
        ("nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "nf65EOgLrQM"),
        ("i/4", "i/4$"),
        ("i/4", "i/4\n"),
        ("i/4", "i/4 "),
    ];
    for (from, to) in replaced {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD);
        assert!(
            matches!(parse(&text), Err(ParseError::Malformed(_) | ParseError::Limit(_))),
            "{text}: {:?}",
            parse(&text)
        );
    }
    for text in ["", "$", "$$", "$argon2id", "$argon2id$", "$argon2id$v=19", "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA"] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse(&format!("{GOOD}{}", "A".repeat(1100))).is_err());
}

#[test]
fn what_is_not_supported_is_said_so() {
    for (from, to) in [
        ("argon2id", "argon2"),
        ("argon2id", "Argon2id"),
        ("argon2id", "yescrypt"),
        ("v=19", "v=18"),
        ("v=19", "v=019"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert!(matches!(parse(&text), Err(ParseError::Unsupported(_))), "{text}: {:?}", parse(&text));
    }
}

#[test]
fn costs_beyond_the_import_caps_are_refused() {
    for (from, to) in [
        ("m=19456", "m=1048577"),
        ("m=19456", "m=4294967295"),
        ("t=2", "t=65"),
        ("t=2", "t=0"),
        ("p=1", "p=0"),
        ("p=1", "p=65"),
        ("m=19456,t=2,p=1", "m=15,t=2,p=2"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert!(matches!(parse(&text), Err(ParseError::Limit(_))), "{text}: {:?}", parse(&text));
    }
}

#[test]
fn a_stored_hash_does_not_print_salt_or_tag() {
    let debug = format!("{:?}", parse(GOOD).unwrap());
    assert!(debug.contains("argon2id") && !debug.contains("c29t") && !debug.contains("115, 111"), "{debug}");
}

/// Text that is nearly a hash: pieces of one, in any order.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "$",
        "argon2id",
        "argon2i",
        "argon2d",
        "v=19",
        "v=16",
        "m=",
        "t=",
        "p=",
        ",",
        "=",
        "0",
        "1",
        "8",
        "19456",
        "keyid",
        "data",
        "AAAAAAAAAAA",
        "AAAAAAAAAAAAAAAA",
        "é",
        "\0",
        "-",
        "4294967296",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// A whole hash of random values, as text.
fn whole() -> impl Strategy<Value = String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as B64};
    let bytes = |low, high| prop::collection::vec(any::<u8>(), low..=high);
    let name = prop::sample::select(vec!["argon2d", "argon2i", "argon2id"]);
    let keyid = prop::option::of(bytes(1, 8));
    let cost = (1u32..=64, 1u32..=64).prop_flat_map(|(t, p)| (8 * p..=1 << 20, Just(t), Just(p)));
    (name, prop::bool::ANY, cost, keyid, bytes(8, 64), bytes(12, 64)).prop_map(
        |(name, new, (m, t, p), id, salt, tag)| {
            let version = if new { 19 } else { 16 };
            let id = id.map(|id| format!(",keyid={}", B64.encode(id))).unwrap_or_default();
            format!("${name}$v={version}$m={m},t={t},p={p}{id}${}${}", B64.encode(salt), B64.encode(tag))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_one_hash_or_refused(text in prop_oneof![".{0,80}", nearly()]) {
        if let Ok(stored) = parse(&text) {
            prop_assert_eq!(parse(&stored.to_string()), Ok(stored));
        }
    }

    #[test]
    fn writing_and_reading_are_inverse(text in whole()) {
        prop_assert_eq!(parse(&text).map(|stored| stored.to_string()), Ok(text));
    }

    #[test]
    fn one_changed_byte_is_another_hash_or_refused(text in whole(), at in any::<prop::sample::Index>(), to in 0x20u8..0x7f) {
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert_ne!(parse(&changed).ok(), parse(&text).ok());
    }
}
