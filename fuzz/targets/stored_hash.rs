//! Stored password hashes, as an import brings them: what is read is written in one way, and read again as the same.
#![no_main]

use hasher::Stored;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(stored) = text.parse::<Stored>() {
        let written = stored.to_string();
        let again: Stored = written.parse().expect("what was written is read");
        assert_eq!(again, stored);
        assert_eq!(again.to_string(), written);
    }
});
