//! Hashes as other systems keep them in one text: whatever is taken can be stored, and is stored in one way.
#![no_main]

use hasher::{
    KeyId, Stored,
    import::{self, Imported},
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
    let pepper = KeyId::new(b"pepper").expect("six bytes");
    for stored in [import::devise(text, None), import::devise(text, Some(pepper))].into_iter().flatten() {
        settles(&stored);
    }
});
