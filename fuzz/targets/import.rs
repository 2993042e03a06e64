//! Hashes as other systems keep them: whatever is taken can be stored, and is stored in one way.
#![no_main]

use hasher::{
    Digest, KeyId, Stored,
    import::{self, Fast, Firebase, Imported, Salted},
};
use libfuzzer_sys::fuzz_target;

/// What is stored is read again as the same.
fn settles(stored: &Stored) {
    let written = stored.to_string();
    let again: Stored = written.parse().expect("what was written is read");
    assert_eq!(&again, stored);
    assert_eq!(again.to_string(), written);
}

fuzz_target!(|text: &str| {
    match import::text(text) {
        Ok(Imported::Stored(stored)) => {
            settles(&stored);
            assert_eq!(text.parse::<Stored>(), Ok(stored), "an import is no other reading");
        }
        Ok(Imported::Fast(_)) => assert!(text.parse::<Stored>().is_err(), "a fast digest is never stored"),
        Err(_) => {}
    }
    // What a text is does not depend on who asks, unless it is JSON.
    match import::any(text) {
        Ok(Imported::Stored(stored)) => settles(&stored),
        Ok(Imported::Fast(_)) | Err(_) => {}
    }
    if let (Ok(one), Ok(other)) = (import::text(text), import::any(text)) {
        assert_eq!(one, other);
    }
    let pepper = KeyId::new(b"pepper").expect("six bytes");
    for stored in [import::devise(text, None), import::devise(text, Some(pepper))].into_iter().flatten() {
        settles(&stored);
    }
    parts(text, pepper);
});

/// What comes in several columns, here one a line: the separator, hash and salt of Firebase; salt and value of a digest.
fn parts(text: &str, key: KeyId) {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    let small = |at: usize| u32::from(text.as_bytes().get(at).copied().unwrap_or(8) % 32);
    if let Ok(project) = Firebase::new(key, first, small(0), small(1))
        && let Ok(stored) = project.user(second, third)
    {
        settles(&stored);
    }
    let salt = first.as_bytes().to_vec();
    for salt in [Salted::Not, Salted::Before(salt.clone()), Salted::After(salt.clone()), Salted::Key(salt)] {
        for digest in [Digest::Md5, Digest::Sha1, Digest::Sha256, Digest::Sha384, Digest::Sha512] {
            let hex = Fast::hex(digest, salt.clone(), second);
            let base64 = Fast::base64(digest, salt.clone(), second);
            assert!(hex.is_err() || base64.is_err(), "no text is as long in both for one digest");
        }
    }
}
