//! Short values that come back to us: scopes, session cookies, ids. What is read is written in one way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::{
    fresh::{base32hex, from_base32hex},
    login::cookie::Cookie,
    oauth::scope::Scope,
    secret::{base64url, from_base64url},
};

fuzz_target!(|text: &str| {
    if let Ok(scope) = Scope::parse(text) {
        assert_eq!(Scope::parse(&String::from(scope.clone())).as_ref(), Ok(&scope));
    }
    if let Some(cookie) = Cookie::read(text) {
        assert_eq!(cookie.write(), text);
    }
    if let Some(bytes) = from_base64url(text) {
        assert_eq!(base64url(&bytes), text, "one text for the same bytes");
    }
    if let Some(bytes) = from_base32hex(text) {
        assert_eq!(base32hex(&bytes), text);
    }
});
