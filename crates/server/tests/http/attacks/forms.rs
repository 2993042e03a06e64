//! CS: forms that come from elsewhere.

use crate::support::*;

/// Every address that changes something, and a form that would do so.
fn changes() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    vec![
        ("/login", vec![("login", "x"), ("password", "y")]),
        ("/login/choose", vec![("choice", "continue")]),
        ("/consent", vec![("decision", "allow")]),
        ("/signup", vec![("username", "x"), ("password", "gorse violet anvil 41")]),
        ("/setup", vec![("token", "x"), ("username", "x"), ("password", "gorse violet anvil 41")]),
        ("/device", vec![("user_code", "BCDF-GHJK")]),
        ("/device/confirm", vec![("user_code", "BCDF-GHJK"), ("decision", "allow")]),
        ("/account/profile", vec![("name", "Mallory"), ("email", "mallory@evil.test")]),
        ("/account/password", vec![("current", "gorse violet anvil 41"), ("new", "teal marble oboe 77")]),
        ("/account/sessions/revoke", vec![("id", "x")]),
        ("/account/sessions/revoke-others", vec![]),
        ("/account/applications/revoke", vec![("client_id", "x")]),
        ("/account/signout", vec![]),
        ("/oauth2/logout/confirm", vec![("decision", "sign_out")]),
    ]
}

#[test]
fn cs_01_no_change_by_get_or_from_another_site() {
    // red without own_form in server/http/extract.rs at the door in question, or without csrf_holds in pages/mod.rs.
    let server = sign_up_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let csrf = browser.account_form("/account/signout").value("csrf").to_owned();
    for (path, fields) in changes() {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&fields).finish();
        let by_get = browser.get(&format!("{path}?csrf={csrf}&{query}"));
        assert!([200, 403, 405, 410].contains(&by_get.status), "{path}: {}", by_get.status);
        let mut full = fields.clone();
        full.push(("csrf", &csrf));
        for origin in
            ["https://evil.test", "null", "https://localhost.evil.test", &format!("{}.evil.test", server.issuer)]
        {
            let call = Call::post(path, &full).header("origin", origin);
            assert_eq!(browser.send(call).status, 403, "{path} from {origin}");
        }
        let fetched = Call::post(path, &full).header("sec-fetch-site", "cross-site");
        assert_eq!(browser.send(fetched).status, 403, "{path}");
        for token in [None, Some(""), Some("x"), Some(&csrf[1..])] {
            let mut bare = fields.clone();
            bare.extend(token.map(|token| ("csrf", token)));
            let answer = browser.send(Call::post(path, &bare));
            let refused = [403, 410, 422].contains(&answer.status) || (path == "/setup" && answer.status == 200);
            assert!(refused, "{path} with {token:?}: {}", answer.status);
        }
    }
    assert!(browser.is_signed_in());
    assert!(!browser.get("/account").text().contains("Mallory"));
    browser.sign_in(&person);
}

#[test]
fn cs_01_a_link_says_nothing_was_done_that_was_not() {
    // red without notice_holds in http/pages/account.rs, notice, or without the session in app/account.rs, seal_notice.
    let server = default_server();
    let (person, saved) = (Person::add(server), "Your profile is saved.");
    let mut browser = Browser::of(server, &person);
    let form = browser.account_form("/account/profile").fill("name", "Ada");
    let place = browser.submit(&form).must_be(303).location().unwrap().to_owned();
    assert!(browser.get(&place).text().contains(saved));
    let seal = place.split_once("&seal=").expect("a seal").1;
    let links = [
        "/account?done=profile_saved".to_owned(),
        "/account?done=profile_saved&seal=".to_owned(),
        format!("/account?done=profile_saved&seal={}", &seal[1..]),
        format!("/account?done=password_changed&seal={seal}"),
        format!("{place}&seal={seal}"),
    ];
    for link in links {
        let page = browser.get(&link).must_be(200).text();
        assert!(!page.contains(saved) && !page.contains("Your password is changed"), "{link}");
    }
    assert!(!Browser::of(server, &person).get(&place).must_be(200).text().contains(saved), "another session");
}

#[test]
fn cs_01_a_csrf_token_is_of_one_session() {
    // red without the session in app's csrf, which signs its id.
    let server = default_server();
    let (one, two) = (Person::add(server), Person::add(server));
    let (mut mine, mut theirs) = (Browser::of(server, &one), Browser::of(server, &two));
    let foreign = theirs.account_form("/account/signout");
    mine.submit(&foreign).must_be(403);
    assert!(mine.is_signed_in());
}

#[test]
fn cs_01_forms_are_forms() {
    // red without the media type in server/http/extract.rs, form.
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let csrf = browser.account_form("/account/signout").value("csrf").to_owned();
    for kind in ["text/plain", "application/json", "multipart/form-data; boundary=x", ""] {
        for path in ["/account/signout", "/login", "/oauth2/token", "/oauth2/authorize", "/oauth2/logout"] {
            let call = Call::new("POST", path).body(kind, format!("csrf={csrf}"));
            assert_eq!(browser.send(call).status, 415, "{path} {kind}");
        }
    }
    assert!(browser.is_signed_in());
}

#[test]
fn cs_04_origins_are_compared_whole() {
    // red without the equality in app's is_registered_origin, called by server/http/cors.rs.
    let server = default_server();
    let app = App::web(server);
    let good = app.redirect.strip_suffix("/cb").unwrap();
    for path in ["/oauth2/token", "/oauth2/userinfo", "/oauth2/revoke"] {
        let allowed = server
            .send(&Call::new("OPTIONS", path).header("origin", good).header("access-control-request-method", "POST"));
        assert_eq!(allowed.header("access-control-allow-origin"), Some(good), "{path}");
        assert_eq!(allowed.header("access-control-allow-credentials"), None);
        for origin in [
            "null",
            "https://evil.test",
            "https://localhost.evil.test",
            &format!("{good}.evil.test"),
            &format!("{good}:8443"),
            &good.replace("https", "http"),
            &good.to_uppercase(),
            &format!("{good}/"),
            "*",
            "",
        ] {
            for method in ["OPTIONS", "POST"] {
                let answer = server.send(&Call::new(method, path).header("origin", origin));
                assert_eq!(answer.header("access-control-allow-origin"), None, "{method} {path} from {origin}");
            }
        }
    }
}

#[test]
fn cs_04_pages_are_never_open_to_scripts_of_others() {
    // Red if server/http/routes.rs put a CORS layer over protocol() or own_pages(); without NO_METADATA in
    // http/front.rs, or where a name anywhere in a path made it metadata.
    let server = default_server();
    let app = App::web(server);
    let good = app.redirect.strip_suffix("/cb").unwrap();
    for path in [
        "/oauth2/authorize",
        "/oauth2/logout",
        "/oauth2/introspect",
        "/oauth2/device",
        "/login",
        "/account",
        "/consent",
        "/device",
        "/setup",
        "/",
        "/account/.well-known/x",
        "/consent/.well-known/openid-configuration",
        "/login/.well-known/openid-configuration",
        "/login/a/.well-known/x",
        "/nothing/.well-known/x/y",
        "/nothing.well-known/x",
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let answer = server.send(&Call::new(method, path).header("origin", good));
            assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{method} {path}");
        }
    }
    let answer = server.send(&Call::get("/api/v1/.well-known/x").header("origin", good));
    assert_ne!(answer.must_be(404).header("access-control-allow-origin"), Some("*"), "it says itself who may read it");
}
