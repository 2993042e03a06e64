//! What people sign in with: one spelling is as good as another, and no spelling is another account.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::people::names::{Email, LoginKey, Username};

fuzz_target!(|text: &str| {
    if let Some(key) = LoginKey::of(text) {
        assert_eq!(LoginKey::of(key.as_str()).as_ref(), Some(&key), "folding settles at once");
    }
    if let Ok(name) = Username::parse(text) {
        assert_eq!(LoginKey::of(text).as_ref(), Some(name.key()), "one folding for registering and for signing in");
        assert_eq!(Username::parse(name.as_str()).expect("what was accepted"), name);
        assert!(!name.key().as_str().contains('@'));
    }
    if let Ok(email) = Email::parse(text) {
        assert_eq!(LoginKey::of(text).as_ref(), Some(email.key()));
        assert_eq!(format!("{}@{}", email.local(), email.domain()), email.as_str());
        assert!(Username::parse(text).is_err(), "no address is a username");
    }
});
