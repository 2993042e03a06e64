//! bcrypt hashes as text: what is read is written in one way, and only the bits that stand for nothing may change.
#![no_main]

use hasher::bcrypt::Hash;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(hash) = text.parse::<Hash>() {
        let written = hash.to_string();
        assert_eq!(written.parse().as_ref(), Ok(&hash));
        let differ = written.bytes().zip(text.bytes()).enumerate().filter(|(_, (ours, theirs))| ours != theirs);
        assert_eq!(written.len(), text.len());
        assert!(differ.map(|(at, _)| at).all(|at| at == 28 || at == 59), "the last characters of salt and tag");
    }
});
