//! Hashes as other systems export them in JSON: whatever is taken can be stored, and is read again as the same.
#![no_main]

use hasher::{
    Stored,
    import::{self, Imported},
};
use libfuzzer_sys::fuzz_target;

fn settles(stored: &Stored) {
    let again: Stored = stored.to_string().parse().expect("what was written is read");
    assert_eq!(&again, stored);
}

fuzz_target!(|text: &str| {
    // Keycloak has two, one after the other.
    let (data, secret) = text.split_once('\n').unwrap_or((text, text));
    let each =
        [import::keycloak(data, secret), import::fusionauth(text), import::firebase(text), import::devise_json(text)];
    for stored in each.into_iter().flatten() {
        settles(&stored);
    }
    for imported in [import::auth0(text), import::any(text)] {
        if let Ok(Imported::Stored(stored)) = imported {
            settles(&stored);
        }
    }
});
