//! CO-10, R10: a credential is good byte for byte, or not at all.
//!
//! | kind | where |
//! |---|---|
//! | access tokens, signed and opaque | introspection, revocation, userinfo, account API (header and cookie) |
//! | refresh tokens | introspection, revocation, token endpoint, account API (body and cookie) |
//! | codes, device codes, user codes | token endpoint, device page |
//! | client secrets, client assertions | token endpoint (assertions: rfc/client_auth.rs) |
//! | session cookies, flows and their cookies, cookies of known browsers, CSRF tokens | pages, account API |
//! | ID tokens as hints, and what is carried in their place | sign-out |
//! | set-up links | set-up page |
//! | tokens of hash workers | app/tests/workers.rs |
//! | the secret of metrics | monitoring/figures.rs |
//!
//! There are no API keys and no personal access tokens.

use crate::scale::{ALTERED_CREDENTIALS, scaled};
use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use load::wire::Jar;
use serde_json::{Value, json};

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
                app.revoke(&text);
            }
            for text in near_in_header(&tokens.access, step) {
                app.revoke(&text);
                let told = server.send(&Call::get("/oauth2/userinfo").bearer(&text));
                assert!([400, 401].contains(&told.status), "{text}");
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
        for text in near_in_header(value, 1) {
            let answer = server.send(&Call::get("/account").header("cookie", &format!("{name}={text}")));
            assert_ne!(answer.status, 200, "{text}");
        }
    }
    let grant = [("grant_type", "client_credentials")];
    for text in near(SECRET, 1) {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let basic = format!("Basic {}", STANDARD.encode(format!("{}:{encoded}", app.id)));
        let answer = server.send(&Call::post("/oauth2/token", &grant).header("authorization", &basic));
        assert!([400, 401].contains(&answer.status), "{text}");
        let fields = [("grant_type", "client_credentials"), ("client_id", app.id.as_str()), ("client_secret", &text)];
        assert!([400, 401].contains(&server.post("/oauth2/token", &fields).status), "{text}");
    }
}

/// The cookies of a jar, that whose name begins so with another value.
fn with_cookie(jar: &Jar, prefix: &str, text: &str) -> String {
    let changed = |(name, value): (&str, &str)| {
        let value = if name.starts_with(prefix) { text } else { value };
        format!("{name}={value}")
    };
    jar.iter().map(changed).collect::<Vec<_>>().join("; ")
}

#[test]
fn co_10_tokens_of_the_account_api() {
    // red if http/api/caller.rs read a token without the check of app/api.rs, open_account, or compared less of a CSRF token.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    let mut bearer = screens.sign_in(&person, false);
    for text in near_in_header(&bearer.access, 7) {
        let answer = server.send(&screens.call("GET", "me", &Value::Null).bearer(&text));
        assert!([400, 401].contains(&answer.status), "{text}");
    }
    for text in near(&bearer.refresh, 3) {
        let body = json!({ "client_id": screens.app.id, "refresh_token": text });
        assert_ne!(server.send(&screens.call("POST", "refresh", &body)).status, 200, "{text}");
    }
    assert!(bearer.is_open() && bearer.renew().status == 200, "R10: none of it harms the real ones");

    let mut kept = screens.sign_in(&person, true);
    let body = json!({ "client_id": screens.app.id });
    for (prefix, method, operation) in [("access-", "GET", "me"), ("refresh-", "POST", "refresh")] {
        let good = kept.browser.cookie(prefix).unwrap();
        for text in near_in_header(&good, 7) {
            let call =
                kept.call(method, operation, &body).header("cookie", &with_cookie(&kept.browser.jar, prefix, &text));
            assert!([400, 401, 403].contains(&server.send(&call).status), "{prefix} {text}");
        }
    }
    for text in near_in_header(&kept.csrf, 1) {
        let call = screens.call("POST", "refresh", &body).cookies(&kept.browser.jar).header("x-csrf-token", &text);
        assert_eq!(server.send(&call).status, 403, "{text}");
    }
    assert!(kept.is_open() && kept.renew().status == 200, "R10: none of it harms the real ones");
}

#[test]
fn co_10_flows_and_the_cookies_that_they_are_bound_to() {
    // red if app/flow.rs, open_flow, compared less than the whole tag, or read what is not the one way to write it.
    let server = default_server();
    let (person, mut browser) = (Person::add(server), Browser::new(server));
    let page = browser.get("/login").text();
    let form = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", &person.password);
    for text in near(form.value("flow"), 3) {
        assert_ne!(browser.clone().submit(&form.clone().fill("flow", &text)).status, 303, "{text}");
    }
    let good = browser.cookie("flow-").unwrap();
    for text in near_in_header(&good, 1) {
        let call =
            form.call().header("origin", &server.issuer).header("cookie", &with_cookie(&browser.jar, "flow-", &text));
        assert_ne!(server.send(&call).status, 303, "{text}");
    }
    browser.submit(&form).must_be(303);
}

#[test]
fn co_10_csrf_tokens() {
    // red if app/browser.rs, csrf_holds, compared less than every byte.
    let server = default_server();
    let mut browser = Browser::of(server, &Person::add(server));
    let form = browser.account_form("/account/signout");
    for text in near(form.value("csrf"), 1) {
        assert!([400, 403].contains(&browser.submit(&form.clone().fill("csrf", &text)).status), "{text}");
    }
    assert!(browser.is_signed_in());
}

#[test]
fn co_10_cookies_of_known_browsers() {
    // red if app/browser.rs, proof_of, compared less than every byte: a stranger would be heard as the owner is.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_FREE_FAILURES", "1"), ("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let person = Person::add(server);
    let good = Browser::of(server, &person).cookie("device-").unwrap();
    let mut stranger = Browser::new(server);
    let page = stranger.get("/login").text();
    let guess = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", "wrong wrong wrong");
    stranger.submit(&guess).must_be(422);
    let flow = stranger.cookie("flow-").unwrap();
    let known = |form: &Form, device: &str| {
        let [flow_name, device_name] = ["flow", "device"].map(|what| server.cookie_name(what));
        let cookies = format!("{flow_name}={flow}; {device_name}={device}");
        server.send(&form.call().header("origin", &server.issuer).header("cookie", &cookies)).status
    };
    for text in near_in_header(&good, 1) {
        assert_eq!(known(&guess, &text), 429, "{text}");
    }
    assert_eq!(known(&guess.fill("password", &person.password), &good), 303);
    server.kill();
}

#[test]
fn co_10_user_codes() {
    // red if rules/oauth/device.rs, user_code_handle, read less than all letters.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_FREE_FAILURES", "1000")]);
    let app = App::add(server, Grants::All, &[]);
    let asked = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
    let good = asked["user_code"].as_str().unwrap();
    // RFC 8628 §6.1: case, spaces and hyphens are not part of it.
    let letters = |text: &str| text.replace([' ', '-'], "").to_ascii_uppercase();
    let mut browser = Browser::of(server, &Person::add(server));
    let entry = Form::find(&browser.get("/device").must_be(200).text(), "/device").unwrap();
    for text in near(good, 1).into_iter().filter(|text| letters(text) != letters(good)) {
        assert!([400, 422].contains(&browser.submit(&entry.clone().fill("user_code", &text)).status), "{text}");
    }
    browser.submit(&entry.fill("user_code", good)).must_be(200);
    server.kill();
}

#[test]
fn co_10_set_up_links() {
    // red if app/setup.rs, is_open, compared less than the whole handle.
    let server = Server::leaked(&[]);
    let link = std::fs::read_to_string(server.data().join("setup-link")).unwrap();
    let good = link.trim().rsplit('#').next().unwrap();
    let owner = Person::stranger();
    let page = server.get("/setup").must_be(200).text();
    let form = Form::find(&page, "/setup").unwrap().fill("username", &owner.name).fill("password", &owner.password);
    for text in near(good, 1) {
        let call = form.clone().fill("token", &text).call().header("origin", &server.issuer);
        assert!([400, 422].contains(&server.send(&call).status), "{text}");
    }
    Browser::new(server).set_up(&owner).must_be(303);
    server.kill();
}

#[test]
fn co_10_hints_and_what_is_carried_in_their_place() {
    // red if app/posted.rs, read, compared less than the whole tag; or rules/jose/verify.rs less than the signature.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    for carried in [false, true] {
        let mut browser = Browser::new(server);
        let token = app.tokens(&mut browser, &person).id;
        let good = match carried {
            false => token,
            true => server.post("/oauth2/logout", &[("id_token_hint", &token)]).landed()["id_token_hint"].clone(),
        };
        let leave = |browser: &mut Browser, hint: &str| {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("id_token_hint", hint).finish();
            browser.get(&format!("/oauth2/logout?{query}"))
        };
        for text in near(&good, 9) {
            let page = leave(&mut browser, &text);
            assert!(page.status == 400 || Form::find(&page.text(), "/oauth2/logout/confirm").is_some(), "{text}");
        }
        assert!(browser.is_signed_in());
        leave(&mut browser, &good);
        assert!(!browser.is_signed_in(), "carried: {carried}");
    }
}
