//! Properties of the parsers: total, strict, and the inverse of the writer.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as B64};
use proptest::prelude::*;

use super::{ALICE, keys, vectors::VECTORS};
use crate::{
    Stored,
    formats::import::{self, Imported},
};

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "$", "$$", ":", ",", "=", "{", "}", "argon2id", "argon2", "$argon2id$v=19$", "v=16", "m=64,t=1,p=1", "keyid=azE",
    "bindid=YjE", "data=AAAA", "$pv1$", "$wrapped$d=sha1", "salt=before:AAAA", "$2b$", "$2a$", "10", "$wp",
    "$devise$importid=azE", "$bcrypt-sha256$", "v=2,t=2b,r=10", "2b,10", "pbkdf2_sha256$", "bcrypt_sha256$", "bcrypt$",
    "scrypt$", "$pbkdf2", "-sha512", "$i=1000,l=16", "1000", "16384", "$scrypt$", "ln=14,r=8,p=1", "$7$C6..../....",
    "$P$9", "$H$9", "$S$C", "U$S$C", "$5$", "$6$rounds=1000$", "{PBKDF2_SHA256}", "$firebase$", "pbkdf2:sha256:1000", "scrypt:16384:8:1", "{SSHA}", "{CRYPT}",
    "{PBKDF2-SHA256}", "{ARGON2}", "AQAAAAEAACcQAAAAEA", "AAAB", "abcdefghijklmnopqrstuu",
    "zxGOZEy/WPRLMjjU2/y65oP0ZJGIbym", "AAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA", "==", "é", "\0", "-", "4294967296",
    "00112233445566778899aabbccddeeff", "984478476IagS59wHZvyQMArzfx58u.",
];

/// Text that is nearly a hash: pieces of one, in any order.
fn nearly() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat())
}

fn bytes(low: usize, high: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), low..=high).prop_map(|bytes| B64.encode(bytes))
}

/// A canonical text of random values within the limits.
fn canonical() -> impl Strategy<Value = String> {
    let costs = (1u32..=64, 1u32..=64)
        .prop_flat_map(|(t, p)| (8 * p..=1 << 20, Just(t), Just(p)))
        .prop_map(|(m, t, p)| format!("m={m},t={t},p={p}"));
    let version = prop::sample::select(vec!["d$v=16", "d$v=19", "i$v=16", "i$v=19", "id$v=16", "id$v=19"]);
    let id = || prop::option::of(bytes(1, 8)).prop_map(|id| id.map(|id| format!(",keyid={id}")).unwrap_or_default());
    let argon2 = (version, costs.clone(), id(), bytes(8, 64), bytes(12, 64))
        .prop_map(|(version, costs, id, salt, tag)| format!("$argon2{version}${costs}{id}${salt}${tag}"))
        .boxed();
    let bound = (costs, bytes(1, 8), bytes(1, 8), bytes(8, 64), bytes(32, 32))
        .prop_map(|(costs, key, bind, salt, tag)| format!("$pv1${costs},keyid={key},bindid={bind}${salt}${tag}"));
    let pbkdf2 = (
        prop::sample::select(vec!["sha1", "sha256", "sha384", "sha512"]),
        1_000u32..=10_000_000,
        bytes(4, 128),
        bytes(16, 512),
    )
        .prop_map(|(digest, i, salt, key)| format!("$pbkdf2-{digest}$i={i},l={}${salt}${key}", key.len() * 3 / 4));
    let scrypt = (10u32..=14, 1u32..=8, 1u32..=8, bytes(4, 128), bytes(16, 512))
        .prop_map(|(n, r, p, salt, key)| format!("$scrypt$ln={n},r={r},p={p}${salt}${key}"));
    let wrapped = (prop::sample::select(vec!["md5", "sha1,salt=after:AAAA", "sha512,salt=before:AA"]), argon2.clone())
        .prop_map(|(inner, argon2)| format!("$wrapped$d={inner}{argon2}"));
    prop_oneof![argon2, bound, pbkdf2, scrypt, wrapped]
}

/// A hash of another implementation with one piece of it replaced.
fn damaged() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![Just(String::new()), "[$,:=.A-Za-z0-9]", Just("é".to_owned()), Just("$".to_owned()), "[0-9]{1,11}"];
    let cut = (any::<prop::sample::Index>(), 0usize..4);
    (prop::sample::select(VECTORS), cut, piece).prop_map(|((_, text), (at, length), piece)| {
        let at = at.index(text.len());
        format!("{}{piece}{}", &text[..at], &text[(at + length).min(text.len())..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// And it can be prepared, or the refusal names what is missing: no panic at any point before the slow part.
    #[test]
    fn any_text_is_one_hash_or_refused(text in prop_oneof![1 => ".{0,80}", 3 => nearly(), 6 => damaged()]) {
        if let Ok(Imported::Stored(stored)) = import::text(&text) {
            let kept = stored.to_string();
            prop_assert_eq!(kept.parse::<Stored>(), Ok(stored.clone()), "{}", kept);
            let _ = stored.prepare(b"password", ALICE, &keys());
        }
        let _ = import::devise(&text, None);
        let _ = import::keycloak(&text, &text);
        let _ = import::auth0(&text);
        let _ = import::fusionauth(&text);
        let _ = import::any(&text);
    }

    #[test]
    fn writing_and_reading_are_inverse(text in canonical()) {
        prop_assert_eq!(text.parse::<Stored>().map(|stored| stored.to_string()), Ok(text));
    }

    #[test]
    fn one_changed_byte_is_another_hash_or_refused(text in canonical(), at in any::<prop::sample::Index>(), to in 0x20u8..0x7f) {
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert_ne!(changed.parse::<Stored>().ok(), text.parse::<Stored>().ok());
    }
}
