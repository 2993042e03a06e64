//! CO-10, R10: a credential is good byte for byte, or not at all.

use crate::scale::{ALTERED_CREDENTIALS, scaled};
use crate::support::*;

/// Everything close to `good` that is not `good`: prefixes, longer ones, flipped bits, other last characters, other
/// case, white space around it. Of a long credential every `step`th place is tried, and all of the last 90.
fn near(good: &str, step: usize) -> Vec<String> {
    let places: Vec<usize> = (0..good.len()).filter(|at| at % step == 0 || at + 90 > good.len()).collect();
    let mut near: Vec<String> = places.iter().map(|at| good[..*at].to_owned()).collect();
    near.extend((1..=64).map(|more| format!("{good}{}", "A".repeat(more))));
    for at in places {
        let bytes = good.as_bytes();
        let flipped = (0..7).map(|bit| bytes[at] ^ (1 << bit)).filter(|byte| (0x21..0x7f).contains(byte));
        near.extend(flipped.map(|byte| format!("{}{}{}", &good[..at], char::from(byte), &good[at + 1..])));
    }
    let alphabet = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').chain(*b"-_=+/.~");
    near.extend(alphabet.map(|last| format!("{}{}", &good[..good.len() - 1], char::from(last))));
    near.extend([
        good.to_uppercase(),
        good.to_lowercase(),
        format!(" {good}"),
        format!("{good} "),
        format!("{good}\n"),
    ]);
    near.extend([
        format!("{good}="),
        format!("{good}=="),
        format!("{good}."),
        format!("{good}\u{0}"),
        format!("\"{good}\""),
    ]);
    near.retain(|text| text != good);
    near
}

#[test]
fn co_10_access_and_refresh_tokens() {
    // red if the verified-token cache were keyed by a part of the token: app/cache.rs; or a lax from_base64url.
    let server = default_server();
    for format in ["jwt", "opaque"] {
        let (app, person) =
            (App::add(server, Grants::Usual, &["--trusted", "--access-token", format]), Person::add(server));
        for _ in 0..scaled(ALTERED_CREDENTIALS) {
            let tokens = app.tokens(&mut Browser::new(server), &person);
            assert!(app.is_active(&tokens.access));
            let step = if format == "jwt" { 5 } else { 1 };
            for (good, step) in [(&tokens.access, step), (&tokens.refresh, 1)] {
                for text in near(good, step) {
                    let answer = app.post("/oauth2/introspect", &[("token", &text)]);
                    assert!(answer.status == 400 || !answer.json()["active"].as_bool().unwrap(), "{good} {text}");
                }
            }
            for text in near(&tokens.refresh, 4) {
                assert_ne!(app.refresh(&text).status, 200, "{text}");
            }
            assert!(app.is_active(&tokens.access), "R10: none of it harms the real one");
        }
    }
}

#[test]
fn co_10_codes_and_device_codes() {
    // red if rules/oauth/code.rs, redeem, compared less than the whole handle.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    for _ in 0..scaled(ALTERED_CREDENTIALS) {
        let code = app.code(&mut browser, &person, &app.ask());
        for text in near(&code, 2) {
            assert_eq!(app.redeem(&text).status, 400, "{text}");
        }
        let device = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
        let device = device["device_code"].as_str().unwrap().to_owned();
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        for text in near(&device, 2) {
            let answer = app.post("/oauth2/token", &[("grant_type", grant), ("device_code", &text)]);
            assert!(
                ["invalid_grant", "invalid_request"].contains(&answer.error().as_str()),
                "{text}: {}",
                answer.text()
            );
        }
    }
}

#[test]
fn co_10_sessions_and_client_secrets() {
    // red if rules/login/session.rs, Cookie::read, or rules/oauth/client_auth.rs, prove, took less than every byte.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    for _ in 0..scaled(ALTERED_CREDENTIALS) {
        let browser = Browser::of(server, &person);
        let (name, value) = browser.jar.iter().find(|(name, _)| name.starts_with("sid-")).unwrap();
        for text in near(value, 1) {
            // White space around a cookie's value, and quotes, are not part of it on the wire.
            if text.trim() == value || text.contains(['\n', '\0', ';', ',']) {
                continue;
            }
            let answer = server.send(&Call::get("/account").header("cookie", &format!("{name}={text}")));
            assert_ne!(answer.status, 200, "{text}");
        }
    }
    for text in near(SECRET, 1) {
        let fields = [("grant_type", "client_credentials"), ("client_id", app.id.as_str()), ("client_secret", &text)];
        assert!([400, 401].contains(&server.post("/oauth2/token", &fields).status), "{text}");
    }
}
