//! JW, AU: forged, confused and misdirected tokens at every place that reads one. (Client assertions: rfc/client_auth.rs.)

use crate::support::*;
use serde_json::{Value, json};

/// The places of ours that read a token: userinfo, introspection, and the hints of sign-in and sign-out.
struct Sinks {
    app: App,
    browser: Browser,
    tokens: Tokens,
}

impl Sinks {
    #[track_caller]
    fn open() -> Sinks {
        let server = default_server();
        let (app, person) = (App::trusted(server), Person::add(server));
        let mut browser = Browser::new(server);
        let tokens = app.tokens(&mut browser, &person);
        Sinks { app, browser, tokens }
    }

    /// Nothing takes `token` for an access token.
    #[track_caller]
    fn no_access(&self, token: &str) {
        let server = self.app.server;
        let answer = server.post("/oauth2/userinfo", &[("access_token", token)]);
        assert!([400, 401, 413].contains(&answer.status), "{} {token:.200}", answer.text());
        let told = self.app.post("/oauth2/introspect", &[("token", token)]);
        let active = told.status == 200 && told.json()["active"] == Value::Bool(true);
        assert!(!active && [200, 400, 413].contains(&told.status), "{} {token:.200}", told.text());
    }

    /// Nothing takes `token` for an ID token.
    #[track_caller]
    fn no_hint(&self, token: &str) {
        if token.len() > 8_000 {
            return;
        }
        let mut browser = self.browser.clone();
        let ask = self.app.ask().with("id_token_hint", token).with("prompt", "none");
        let answer = browser.get(&ask.target());
        // A NUL is refused before anything else is read, and so on a page of ours.
        if answer.status != 400 {
            assert_eq!(answer.landed().get("error").map(String::as_str), Some("invalid_request"), "{token:.200}");
        }
        let query = form_urlencoded::byte_serialize(token.as_bytes()).collect::<String>();
        browser.get(&format!("/oauth2/logout?id_token_hint={query}"));
        assert!(browser.is_signed_in(), "{token:.200}");
    }

    #[track_caller]
    fn nowhere(&self, token: &str) {
        self.no_access(token);
        self.no_hint(token);
    }
}

fn unsigned(header: &Value, claims: &Value, signature: &str) -> String {
    format!("{}.{}.{signature}", encode(header.to_string()), encode(claims.to_string()))
}

#[test]
fn jw_01_alg_none_in_every_spelling() {
    // red without the allow-list of algs in rules/jose/verify.rs, Header::check.
    let sinks = Sinks::open();
    for original in [&sinks.tokens.access, &sinks.tokens.id] {
        let real = jwt(original);
        for alg in [json!("none"), json!("None"), json!("nOnE"), json!("NONE"), json!(""), Value::Null] {
            let mut header = real.header.clone();
            header["alg"] = alg;
            sinks.nowhere(&unsigned(&header, &real.claims, ""));
            sinks.nowhere(&unsigned(&header, &real.claims, &encode(&real.signature)));
        }
        let mut header = real.header.clone();
        header.as_object_mut().unwrap().remove("alg");
        sinks.nowhere(&unsigned(&header, &real.claims, ""));
    }
}

#[test]
fn jw_02_a_public_key_is_no_shared_secret() {
    // red without `self.alg == header.alg` in rules/jose/verify.rs, may_have_signed; or with HS256 in jose/alg.rs.
    use aws_lc_rs::hmac;
    let sinks = Sinks::open();
    let jwks = sinks.app.server.get("/oauth2/jwks").json();
    for original in [&sinks.tokens.access, &sinks.tokens.id] {
        let real = jwt(original);
        for key in jwks["keys"].as_array().unwrap() {
            let own = ["n", "x", "y"].into_iter().filter_map(|part| key[part].as_str());
            let mut secrets: Vec<Vec<u8>> = own.map(|part| part.as_bytes().to_vec()).collect();
            secrets.extend(secrets.clone().iter().map(|text| decoded(text)));
            secrets.push(key.to_string().into_bytes());
            secrets.push(jwks.to_string().into_bytes());
            for secret in secrets {
                for (alg, algorithm) in
                    [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)]
                {
                    let mut header = real.header.clone();
                    header["alg"] = json!(alg);
                    header["kid"] = key["kid"].clone();
                    let signed = format!("{}.{}", encode(header.to_string()), encode(real.claims.to_string()));
                    let tag = hmac::sign(&hmac::Key::new(algorithm, &secret), signed.as_bytes());
                    sinks.no_access(&format!("{signed}.{}", encode(tag.as_ref())));
                    sinks.no_hint(&format!("{signed}.{}", encode(tag.as_ref())));
                }
            }
        }
    }
}

fn decoded(text: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap()
}

#[test]
fn jw_05_07_edited_claims_need_a_new_signature() {
    // red without the verification in rules/jose/verify.rs, verify.
    let sinks = Sinks::open();
    for original in [&sinks.tokens.access, &sinks.tokens.id] {
        let real = jwt(original);
        for (claim, value) in [
            ("sub", json!("admin")),
            ("exp", json!(9_999_999_999_i64)),
            ("exp", json!("9999999999")),
            ("exp", Value::Null),
            ("nbf", json!(true)),
            ("iat", json!([])),
            ("aud", json!([])),
            ("aud", json!(5)),
            ("aud", json!({ "a": 1 })),
            ("scope", json!("openid admin")),
            ("iss", json!("https://evil.test")),
        ] {
            let mut claims = real.claims.clone();
            claims[claim] = value;
            sinks.nowhere(&unsigned(&real.header, &claims, &encode(&real.signature)));
        }
        for signature in [String::new(), "A".into(), encode(vec![0; real.signature.len()]), encode([0; 64]), "=".into()]
        {
            sinks.nowhere(&unsigned(&real.header, &real.claims, &signature));
        }
    }
}

#[test]
fn jw_10_keys_come_from_our_records_and_never_from_the_token() {
    // red if app/keyring.rs, verifiers, or rules/jose/verify.rs took a key from the token. That such a header is refused
    // whoever signed it (FORBIDDEN, is_kid there): rfc/client_auth.rs.
    let sinks = Sinks::open();
    let own = EcKey::make();
    for original in [&sinks.tokens.access, &sinks.tokens.id] {
        let real = jwt(original);
        for extra in [
            json!({ "jwk": own.jwk("k") }),
            json!({ "jku": "http://127.0.0.1:9/" }),
            json!({ "x5u": "http://127.0.0.1:9/" }),
            json!({ "x5c": ["MIIB"] }),
            json!({ "kid": "../../../dev/null" }),
            json!({ "kid": "' OR 1=1--" }),
            json!({ "kid": "k".repeat(1024) }),
            json!({ "kid": "a\u{0}b" }),
            json!({ "kid": 7 }),
            json!({ "crit": ["x"] }),
            json!({ "b64": false }),
            json!({ "zip": "DEF" }),
            json!({ "cty": "JWT" }),
            json!({}),
        ] {
            let mut header = real.header.clone();
            header["alg"] = json!("ES256");
            header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            sinks.nowhere(&own.sign(&header, &real.claims));
        }
    }
}

#[test]
fn jw_11_13_14_malformed_tokens_are_refused_and_harm_nothing() {
    // red without both limits of length: LONGEST in app/introspect.rs, and MAX_TOKEN in rules/jose/verify.rs.
    let sinks = Sinks::open();
    let pbes2 = encode(r#"{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483647,"p2s":"AAAA"}"#);
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    for token in [
        format!("{pbes2}.AAAA.AAAA.AAAA.AAAA"),
        ".".repeat(50_000),
        "a.b.c".into(),
        "..".into(),
        ".".into(),
        "a".into(),
        format!("{}.{}.AAAA", encode("[]"), encode("[]")),
        format!("{}.{}.AAAA", encode("null"), encode("{}")),
        format!("{}.{}.AAAA", encode(r#"{"alg":"ES256","alg":"none"}"#), encode("{}")),
        format!("{}.{}.AAAA", encode(&deep), encode("{}")),
        format!("{}.{}.AAAA", encode([0xff, 0xfe]), encode("{}")),
        "é.ü.ß".into(),
        "\u{0}.a.b".into(),
        " ".into(),
        "%00".into(),
        "e30.e30.".into(),
        "e30=.e30=.AAAA".into(),
    ] {
        sinks.nowhere(&token);
    }
    let long = Call::get("/oauth2/userinfo").bearer(&".".repeat(900 * 1024)).try_send(sinks.app.server.port);
    assert!(long.is_none_or(|answer| [400, 401, 431].contains(&answer.status)));
    assert!(sinks.app.is_active(&sinks.tokens.access), "and it still answers");
}

#[test]
fn jw_16_each_kind_of_token_has_its_own_place() {
    // held more than once: by `typ` in rules/jose/verify.rs, Header::check, by the claims that each kind has to have, and by
    // the audience; the test below takes the last two away.
    let sinks = Sinks::open();
    sinks.no_access(&sinks.tokens.id);
    sinks.no_hint(&sinks.tokens.access);
    sinks.no_hint(&sinks.tokens.refresh);
    sinks.no_access(&sinks.tokens.refresh[..sinks.tokens.refresh.len() - 1]);
    let as_access = sinks.app.server.post("/oauth2/userinfo", &[("access_token", &sinks.tokens.refresh)]);
    assert_eq!(as_access.status, 401);
    sinks.app.refresh(&sinks.tokens.access).must_fail(400, "invalid_grant");
    sinks.app.redeem(&sinks.tokens.refresh).must_fail(400, "invalid_grant");
    assert!(sinks.app.is_active(&sinks.tokens.refresh), "and none of this burns anything");
}

#[test]
fn jw_16_an_access_token_of_typ_jwt_is_still_no_id_token() {
    // red without the look for client_id in app/authorize.rs, hint.
    let server = default_server();
    let person = Person::add(server);
    // Its name is a URI, and its tokens are for itself: their audience is that of its ID tokens.
    let id = format!("https://{}.test", unique("self"));
    let redirect = format!("{id}/cb");
    let line =
        ["client", "add", "--id", &id, "--redirect-uri", &redirect, "--resource", &id, "--trusted", "--secret-stdin"];
    server.must(&[&line[..], &["--access-token-typ", "JWT", "--access-token-alg", "RS256"]].concat(), SECRET);
    let app = App { server, id, secret: Some(SECRET), redirect };
    let mut browser = Browser::new(server);
    let tokens = app.tokens_for(&mut browser, &person, &app.ask().with("resource", &app.id));
    let sinks = Sinks { app, browser, tokens };
    let access = jwt(&sinks.tokens.access);
    assert_eq!((&access.header["typ"], &access.claims["aud"]), (&json!("JWT"), &json!(sinks.app.id)));
    sinks.no_hint(&sinks.tokens.access);
    sinks.no_access(&sinks.tokens.id);
}

#[test]
fn au_01_introspection_shows_nobody_the_tokens_of_others() {
    // red without may_see in rules/oauth/introspect.rs.
    let sinks = Sinks::open();
    let other = App::trusted(sinks.app.server);
    for token in [&sinks.tokens.access, &sinks.tokens.refresh] {
        assert_eq!(other.introspect(token), json!({ "active": false }));
        sinks.app.server.post("/oauth2/introspect", &[("token", token)]).must_fail(401, "invalid_client");
    }
}

#[test]
fn au_07_what_one_client_is_told_of_a_token_is_told_to_no_other() {
    // red if app/introspect.rs, look, remembered the answer instead of what the signature proves.
    let server = default_server();
    let person = Person::add(server);
    let uri = format!("https://{}.test/api", unique("rs"));
    for format in ["jwt", "opaque"] {
        let app = App::add(server, Grants::Usual, &["--trusted", "--resource", &uri, "--access-token", format]);
        let entitled = App::add(server, Grants::Usual, &["--resource", &uri, "--resource-server"]);
        let elsewhere = App::add(server, Grants::Usual, &["--resource", &format!("{uri}/other"), "--resource-server"]);
        let stranger = App::trusted(server);
        let token = app.tokens(&mut Browser::new(server), &person).access;
        let told = |asker: &App| asker.introspect(&token);
        for order in [[&stranger, &app, &elsewhere, &entitled], [&app, &stranger, &entitled, &elsewhere]] {
            for asker in order {
                match asker.id == app.id || asker.id == entitled.id {
                    true => assert_eq!(told(asker)["client_id"], app.id.as_str(), "{format}"),
                    false => assert_eq!(told(asker), json!({ "active": false }), "{format}"),
                }
            }
        }
        app.revoke(&token).must_be(200);
        for asker in [&entitled, &app, &elsewhere, &stranger] {
            assert_eq!(told(asker), json!({ "active": false }), "{format}");
        }
    }
}

#[test]
fn au_04_userinfo_and_introspection_look_at_the_scope() {
    // red without the look for openid in rules/oauth/userinfo.rs, read, or for the scope of a claim in claims_of; without
    // `tells`, or half of it, in rules/oauth/introspect.rs, access.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let without = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "email"));
    server.send(&Call::get("/oauth2/userinfo").bearer(&without.access)).must_fail(403, "insufficient_scope");
    let bare = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid"));
    let told = server.send(&Call::get("/oauth2/userinfo").bearer(&bare.access)).must_be(200).json();
    assert_eq!(told.as_object().unwrap().keys().collect::<Vec<_>>(), ["sub"]);
    // RFC 7662 §2.2: `username` is a claim about the person like any other, and no resource server is told more than userinfo.
    let uri = format!("https://{}.test/api", unique("rs"));
    let api = App::add(server, Grants::Usual, &["--resource", &uri, "--resource-server"]);
    for format in ["jwt", "opaque"] {
        let app = App::add(server, Grants::Usual, &["--trusted", "--resource", &uri, "--access-token", format]);
        let ask = app.ask().with("resource", &uri);
        let bare = app.tokens_for(&mut browser, &person, &ask.clone().with("scope", "openid email")).access;
        let full = app.tokens_for(&mut browser, &person, &ask.with("scope", "openid profile")).access;
        let named = |token: &str| [&app, &api].map(|asker| asker.introspect(token)["username"].clone());
        assert_eq!(named(&bare), [Value::Null, Value::Null], "{format}");
        assert_eq!(named(&full), [json!(person.name), json!(person.name)], "{format}");
        server.must(&["client", "set", &app.id, "--remove-scope", "profile"], "");
        assert_eq!(named(&full), [Value::Null, Value::Null], "DI-03: {format}");
        assert!(app.is_active(&full) && api.is_active(&full), "{format}");
    }
}

#[test]
fn au_05_no_claim_of_a_person_is_one_of_the_protocol() {
    // red without the list of settable claims in rules/people/user.rs, Profile::with.
    let server = default_server();
    let person = Person::add(server);
    for claim in [
        "iss",
        "sub",
        "aud",
        "exp",
        "iat",
        "nbf",
        "jti",
        "azp",
        "amr",
        "acr",
        "auth_time",
        "cnf",
        "client_id",
        "scope",
        "sid",
        "nonce",
        "act",
        "typ",
        "groups",
        "role",
        "email_verified",
        "phone_number_verified",
    ] {
        let output = server.command(&["user", "set", &person.name, &format!("{claim}=x")], "");
        assert_ne!(output.code, 0, "{claim}");
    }
}

#[test]
fn au_08_no_application_is_taken_for_a_person() {
    // red without the question for a person in app/admin/clients.rs, add_client; what such a client got before it was asked
    // is told apart by own_subject in rules/oauth/token.rs.
    let sinks = Sinks::open();
    let server = sinks.app.server;
    let sub = jwt(&sinks.tokens.id).claims["sub"].as_str().unwrap().to_owned();
    // Some begin with a dash.
    let id = format!("--id={sub}");
    let line = ["client", "add", &id, "--secret-stdin", "--grant", "client_credentials", "--scope", "api"];
    let refused = server.command(&line, SECRET);
    assert_eq!((refused.code, refused.err.contains("is the id of a person")), (1, true), "{}", refused.err);
}
