//! Redirect URIs, registered (first line) and asked for (the rest): the answer never goes to another origin.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rules::oauth::{
    client::Client,
    redirect::{Verified, origin},
    registration::{redirect_problem, resource_problem},
};
use rules::realm::{Realm, Settings};

static REALM: LazyLock<Realm> = LazyLock::new(|| Realm {
    id: "main".into(),
    issuer: "https://login.example.com".to_owned(),
    settings: Settings::default(),
});

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let registered = serde_json::json!({
        "id": "app",
        "name": "App",
        "grants": ["authorization_code"],
        "scope": "openid",
        "auth_methods": ["none"],
        "native": true,
        "id_token_alg": "RS256",
        "access_format": "jwt",
        "access_alg": "ES256",
    });
    serde_json::from_value(registered).expect("a client")
});

/// The host of an origin, without scheme and port.
fn host(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => &authority[..at],
        _ => authority,
    }
}

fuzz_target!(|text: &str| {
    let (registered, asked) = text.split_once('\n').unwrap_or((text, text));
    resource_problem(asked, &REALM);
    if redirect_problem(registered, true).is_some() {
        return;
    }
    for native in [true, false] {
        let client = Client { native, redirect_uris: vec![registered.to_owned()], ..CLIENT.clone() };
        let Some(to) = Verified::accept(&client, asked) else {
            assert_ne!(registered, asked, "what is registered is accepted");
            continue;
        };
        assert_eq!(to.as_str(), asked);
        if registered != asked {
            assert!(native, "only the port of a native client varies");
            assert!(["http://127.0.0.1", "http://[::1]"].iter().any(|loopback| asked.starts_with(loopback)));
            assert_eq!(host(origin(registered)), host(to.origin()));
        }
    }
});
