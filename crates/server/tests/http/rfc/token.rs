//! RFC 6749 §4.1.3, §4.4, §5, §6, RFC 7636 §4.6, RFC 9068, OpenID Connect Core §2, §3.1.3, §12: the token endpoint.

use crate::support::*;
use sha2::Digest as _;

/// A code of a new person, with the application that may redeem it.
fn with_code() -> (App, String) {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let code = app.code(&mut Browser::new(server), &person, &app.ask());
    (app, code)
}

#[test]
fn rfc6749_5_1_the_answer_is_whole_and_kept_by_nobody() {
    let (app, code) = with_code();
    let answer = app.redeem(&code).must_be(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("pragma"), Some("no-cache"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let json = answer.json();
    assert_eq!(json["token_type"], "Bearer");
    assert_eq!(json["expires_in"], 900);
    assert_eq!(json["scope"], "openid profile email");
}

#[test]
fn rfc6749_5_1_no_token_says_that_it_lasts_longer_than_its_session_or_its_line() {
    // red without `ends` in rules/oauth/token.rs, issue.
    let server = Server::leaked(&[
        ("PORTIERE_SESSION_ABSOLUTE", "5m"),
        ("PORTIERE_SESSION_IDLE", "5m"),
        ("PORTIERE_REFRESH_ABSOLUTE", "10m"),
        ("PORTIERE_REFRESH_IDLE", "10m"),
    ]);
    let person = Person::add(server);
    for (format, scope, most) in [("jwt", "openid", 300), ("opaque", "openid", 300), ("jwt", "offline_access", 600)] {
        let app = App::add(server, Grants::Usual, &["--trusted", "--access-token", format]);
        let ask = app.ask().with("scope", scope);
        let first = app.tokens_for(&mut Browser::new(server), &person, &ask);
        let second = Tokens::of(&app.refresh(&first.refresh));
        for tokens in [first, second] {
            let (lasts, told) = (tokens.json["expires_in"].as_i64().unwrap(), app.introspect(&tokens.access));
            assert!(lasts <= most && lasts > most - 200, "{format}, {scope}: {lasts}");
            let says = told["exp"].as_i64().unwrap() - told["iat"].as_i64().unwrap();
            assert!((lasts..=lasts + 1).contains(&says), "{format}, {scope}: {says} and {lasts}");
        }
    }
    server.kill();
}

#[test]
fn rfc6749_4_1_3_redirect_uri_has_to_be_the_same() {
    for uri in [None, Some("https://other.test/cb"), Some("")] {
        let (app, code) = with_code();
        let mut fields = vec![("grant_type", "authorization_code"), ("code", &code), ("code_verifier", VERIFIER)];
        fields.extend(uri.map(|uri| ("redirect_uri", uri)));
        app.post("/oauth2/token", &fields).must_fail(400, "invalid_grant");
    }
}

#[test]
fn rfc6749_4_1_3_a_code_that_never_was_is_invalid_grant() {
    let (app, _) = with_code();
    app.redeem("nothing").must_fail(400, "invalid_grant");
    app.post("/oauth2/token", &[("grant_type", "authorization_code")]).must_fail(400, "invalid_request");
}

#[test]
fn rfc6749_4_1_2_a_code_dies_of_age() {
    let server = short_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let code = app.code(&mut Browser::new(server), &person, &app.ask());
    std::thread::sleep(std::time::Duration::from_millis(5_050));
    app.redeem(&code).must_fail(400, "invalid_grant");
}

#[test]
fn rfc6749_5_2_unknown_and_missing_grants() {
    let (app, _) = with_code();
    app.post("/oauth2/token", &[("grant_type", "password"), ("username", "a"), ("password", "b")])
        .must_fail(400, "unsupported_grant_type");
    app.post("/oauth2/token", &[("code", "x")]).must_fail(400, "invalid_request");
}

#[test]
fn rfc6749_5_2_a_grant_that_was_not_registered_is_unauthorized_client() {
    let server = default_server();
    let app = App::web(server);
    // Whatever else is wrong: red where `own` or `redeem` look at the grant last.
    for more in [[("scope", "openid")], [("scope", "")], [("resource", "https://elsewhere.test")]] {
        let own = [&[("grant_type", "client_credentials")][..], &more[..]].concat();
        app.post("/oauth2/token", &own).must_fail(400, "unauthorized_client");
    }
    let service = App::trusted(server);
    server.must(&["client", "set", &service.id, "--remove-grant", "authorization_code"], "");
    let code = [("grant_type", "authorization_code"), ("code", "x")];
    service.post("/oauth2/token", &code).must_fail(400, "unauthorized_client");
    let device = [("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", "x")];
    app.post("/oauth2/token", &device).must_fail(400, "unauthorized_client");
}

#[test]
fn rfc6749_3_2_only_post_and_only_forms() {
    let server = default_server();
    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD"] {
        let answer = server.send(&Call::new(method, "/oauth2/token")).must_be(405);
        assert_eq!(answer.header("allow"), Some("POST"));
        // Programs come here. Red without `for_programs`.
        assert!(answer.header("content-type").unwrap().starts_with("application/json"), "{method}");
        if method != "HEAD" {
            assert_eq!(answer.json()["error_description"], "this method is not allowed here; allowed: POST");
        }
    }
    for path in ["/oauth2/token", "/oauth2/userinfo", "/.well-known/openid-configuration", "/oauth2/jwks", "/api/v1/me"]
    {
        let answer = server.send(&Call::get(path).header("host", "elsewhere.test")).must_be(421);
        let told = answer.json();
        let where_to = told["error_description"].as_str().or(told["type"].as_str()).unwrap_or_default();
        assert!(where_to.contains(&server.issuer), "{path}: {told}");
    }
    let json = Call::new("POST", "/oauth2/token").body("application/json", r#"{"grant_type":"client_credentials"}"#);
    server.send(&json).must_be(415);
}

#[test]
fn rfc9110_8_3_no_body_is_a_form_without_parameters() {
    // Red without `is_unstated` in extract.rs, form.
    let server = default_server();
    let app = App::add(server, Grants::All, &[]);
    let stranger = App { server, id: app.id.clone(), secret: Some("wrong"), redirect: app.redirect.clone() };
    let bare = |app: &App, path: &str| server.send(&Call::new("POST", path).header("authorization", &app.basic()));
    bare(&app, "/oauth2/device").must_be(200);
    bare(&app, "/oauth2/introspect").must_fail(400, "invalid_request");
    bare(&stranger, "/oauth2/introspect").must_fail(401, "invalid_client");
    server.send(&Call::new("POST", "/oauth2/token")).must_fail(401, "invalid_client");
}

#[test]
fn rfc9110_9_2_1_head_issues_nothing_and_signs_nobody_out() {
    // Red with `both` or `only_get` in routes.rs in place of `by_asking`.
    let server = default_server();
    for (path, allowed) in [("/oauth2/authorize", "GET, POST"), ("/oauth2/logout", "GET, POST"), ("/continue", "GET")] {
        let answer = server.send(&Call::new("HEAD", path)).must_be(405);
        assert_eq!((answer.header("allow"), answer.header("set-cookie")), (Some(allowed), None), "{path}");
    }
}

#[test]
fn rfc6749_6_refresh_rotates_and_keeps_the_grant() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let first = app.tokens(&mut Browser::new(server), &person);
    let second = Tokens::of(&app.refresh(&first.refresh));
    assert_ne!(first.refresh, second.refresh);
    assert_ne!(first.access, second.access);
    assert_eq!(second.json["scope"], first.json["scope"]);
    Tokens::of(&app.refresh(&second.refresh));
}

#[test]
fn oidc_core_12_2_an_id_token_after_refresh_says_the_same_of_the_sign_in() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let first = app.tokens(&mut Browser::new(server), &person);
    let second = Tokens::of(&app.refresh(&first.refresh));
    let (before, after) = (jwt(&first.id).claims, jwt(&second.id).claims);
    for claim in ["iss", "sub", "aud", "auth_time", "acr", "amr", "sid"] {
        assert_eq!(before[claim], after[claim], "{claim}");
    }
    assert_eq!(before["nonce"], "n-0S6");
    assert_eq!(after.get("nonce"), None);
}

#[test]
fn rfc6749_4_4_client_credentials_speak_of_no_person() {
    let server = default_server();
    let app = App::trusted(server);
    let answer = app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", "api")]);
    let tokens = Tokens::of(&answer);
    assert!(tokens.refresh.is_empty() && tokens.id.is_empty());
    assert_eq!(tokens.json["scope"], "api");
    let claims = jwt(&tokens.access).claims;
    assert_eq!(claims["client_id"], app.id);
    assert_ne!(claims["sub"], app.id, "AU-08: no client looks like a person");
    let people = [("grant_type", "client_credentials"), ("scope", "openid")];
    app.post("/oauth2/token", &people).must_fail(400, "invalid_scope");
    // RFC 6749 §3.3: a scope has at least one token.
    app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", " ")]).must_fail(400, "invalid_scope");
    let unknown = [("grant_type", "client_credentials"), ("scope", "api admin")];
    app.post("/oauth2/token", &unknown).must_fail(400, "invalid_scope");
}

#[test]
fn rfc7636_4_6_the_verifier_has_to_fit() {
    let long = "a".repeat(129);
    for verifier in [None, Some("x".repeat(43).as_str()), Some(CHALLENGE), Some("short"), Some(long.as_str()), Some("")]
    {
        let (app, code) = with_code();
        let mut fields = vec![("grant_type", "authorization_code"), ("code", &code), ("redirect_uri", &app.redirect)];
        fields.extend(verifier.map(|verifier| ("code_verifier", verifier)));
        app.post("/oauth2/token", &fields).must_fail(400, "invalid_grant");
    }
}

#[test]
fn rfc7636_4_4_1_only_s256_and_required() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let public = App::public(server, "https://spa.test/cb", &[]);
    let mut browser = Browser::of(server, &person);
    for app in [&app, &public] {
        for ask in [
            app.ask().without("code_challenge").without("code_challenge_method"),
            app.ask().without("code_challenge"),
            app.ask().without("code_challenge_method"),
            app.ask().with("code_challenge_method", "plain"),
            app.ask().with("code_challenge", "short"),
        ] {
            assert_eq!(browser.get(&ask.target()).landed()["error"], "invalid_request");
        }
    }
}

#[test]
fn oidc_core_2_the_id_token_is_signed_and_true() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    let id = jwt(&tokens.id);
    assert!(id.is_signed_by(&server.get("/oauth2/jwks").json()));
    assert_eq!((&id.header["alg"], &id.header["typ"]), (&"RS256".into(), &"JWT".into()));
    let claims = &id.claims;
    assert_eq!((&claims["iss"], &claims["aud"]), (&server.issuer.clone().into(), &app.id.clone().into()));
    assert_eq!(claims["nonce"], "n-0S6");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 900);
    assert!((now() - claims["auth_time"].as_i64().unwrap()).abs() < 30);
    assert!(claims["sub"].as_str().is_some_and(|sub| sub.is_ascii() && sub.len() <= 255 && sub != person.name));
    assert!(claims["amr"].as_array().is_some_and(|amr| amr.contains(&"pwd".into())));
    let half = &sha2::Sha256::digest(tokens.access.as_bytes())[..16];
    assert_eq!(claims["at_hash"], encode(half));
    assert_eq!(claims.get("email"), None, "claims of people come from userinfo");
}

#[test]
fn rfc9068_2_the_access_token_is_a_jwt_of_its_own_kind() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    let access = jwt(&tokens.access);
    assert!(access.is_signed_by(&server.get("/oauth2/jwks").json()));
    assert_eq!((&access.header["alg"], &access.header["typ"]), (&"ES256".into(), &"at+jwt".into()));
    for claim in ["iss", "sub", "aud", "exp", "iat", "jti", "client_id", "scope"] {
        assert!(access.claims.get(claim).is_some(), "{claim}");
    }
    assert_eq!(access.claims["aud"], server.issuer);
    assert_eq!(access.claims["sub"], jwt(&tokens.id).claims["sub"]);
}

#[test]
fn rfc8707_2_the_resource_is_the_audience() {
    let server = default_server();
    let person = Person::add(server);
    let options = ["--trusted", "--resource", "https://one.test/api", "--resource", "https://two.test/api"];
    let app = App::add(server, Grants::Usual, &options);
    let mut browser = Browser::new(server);
    let both = app.tokens(&mut browser, &person);
    assert_eq!(jwt(&both.access).claims["aud"].as_array().unwrap().len(), 2);
    let one = app.tokens_for(&mut browser, &person, &app.ask().with("resource", "https://one.test/api"));
    assert_eq!(jwt(&one.access).claims["aud"], "https://one.test/api");
    let wider =
        [("grant_type", "refresh_token"), ("refresh_token", &one.refresh), ("resource", "https://two.test/api")];
    app.post("/oauth2/token", &wider).must_fail(400, "invalid_target");
    let foreign = Call::get("/oauth2/userinfo").bearer(&both.access);
    server.send(&foreign).must_fail(401, "invalid_token");
}

#[test]
fn rfc8707_2_a_resource_named_twice_is_one_audience() {
    // Red without `contains` in rules/oauth/params.rs, `all`, or `distinct` of the resources in cli/registration.rs.
    let server = default_server();
    let person = Person::add(server);
    let api = "https://one.test/api";
    let app = App::add(server, Grants::Usual, &["--trusted", "--resource", api, api]);
    let mut browser = Browser::of(server, &person);
    let code = browser.get(&format!("{0}&resource={api}&resource={api}", app.ask().target())).landed()["code"].clone();
    let asked = Tokens::of(&app.redeem(&code));
    let again =
        [("grant_type", "refresh_token"), ("refresh_token", &*asked.refresh), ("resource", api), ("resource", api)];
    let renewed = Tokens::of(&app.post("/oauth2/token", &again));
    for access in [app.tokens(&mut browser, &person).access, asked.access, renewed.access] {
        assert_eq!(jwt(&access).claims["aud"], api);
    }
}

#[test]
fn rfc8707_2_who_registered_no_resource_may_name_the_audience_that_the_tokens_have_anyway() {
    // red without the issuer in `resources` of rules/oauth/authorize.rs, or in `audiences` of code.rs: the code was burnt for it.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let (mut browser, issuer) = (Browser::of(server, &person), server.issuer.as_str());
    let code = browser.get(&app.ask().with("resource", issuer).target()).landed()["code"].clone();
    let tokens = Tokens::of(&server.send(&app.redemption_with(&code, &[("resource", issuer)])));
    let renewal = [("grant_type", "refresh_token"), ("refresh_token", &*tokens.refresh), ("resource", issuer)];
    let renewed = Tokens::of(&app.post("/oauth2/token", &renewal));
    for access in [tokens.access, renewed.access] {
        assert_eq!(jwt(&access).claims["aud"], issuer);
    }
    let other = [("grant_type", "refresh_token"), ("refresh_token", &*renewed.refresh), ("resource", "https://x.test")];
    app.post("/oauth2/token", &other).must_fail(400, "invalid_target");
    // Whoever registered others gets no token for the issuer by this.
    let app = App::add(server, Grants::Usual, &["--trusted", "--resource", "https://one.test/api"]);
    let refused = browser.get(&app.ask().with("resource", issuer).target()).landed();
    assert_eq!(refused["error"], "invalid_target");
}

#[test]
fn rfc8707_2_2_a_code_is_exchanged_for_a_narrower_audience_and_for_no_other() {
    // red without `audiences` in rules/oauth/code.rs, redeem.
    let server = default_server();
    let person = Person::add(server);
    let options = ["--trusted", "--resource", "https://one.test/api", "--resource", "https://two.test/api"];
    let app = App::add(server, Grants::Usual, &options);
    let mut browser = Browser::of(server, &person);
    let mut exchange = |resource: &str| {
        let code = browser.get(&app.ask().target()).landed()["code"].clone();
        server.send(&app.redemption_with(&code, &[("resource", resource)]))
    };
    let one = Tokens::of(&exchange("https://one.test/api"));
    assert_eq!(jwt(&one.access).claims["aud"], "https://one.test/api");
    let other =
        [("grant_type", "refresh_token"), ("refresh_token", &one.refresh), ("resource", "https://two.test/api")];
    let other = Tokens::of(&app.post("/oauth2/token", &other));
    assert_eq!(jwt(&other.access).claims["aud"], "https://two.test/api", "the grant itself is as wide as before");
    exchange("https://evil.test/api").must_fail(400, "invalid_target");
}

#[test]
fn oidc_core_11_offline_access_outlives_the_session_and_the_rest_does_not() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let bound = app.tokens(&mut browser, &person);
    let offline = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
    let sign_out = browser.account_form("/account/signout");
    browser.submit(&sign_out).must_be(303);
    app.refresh(&bound.refresh).must_fail(400, "invalid_grant");
    Tokens::of(&app.refresh(&offline.refresh));
}

#[test]
fn opaque_access_tokens_work_at_every_endpoint_of_ours() {
    let server = default_server();
    let person = Person::add(server);
    let app = App::add(server, Grants::Usual, &["--trusted", "--access-token", "opaque"]);
    let tokens = app.tokens(&mut Browser::new(server), &person);
    assert!(!tokens.access.contains('.') || tokens.access.split('.').count() != 3);
    assert!(app.is_active(&tokens.access));
    server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200);
    let answer = app.revoke(&tokens.access).must_be(200);
    assert_eq!(
        (answer.header("content-type"), answer.text().as_str()),
        (Some("application/json"), "{}"),
        "JSON that says nothing"
    );
    assert!(!app.is_active(&tokens.access));
    server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_fail(401, "invalid_token");
}

/// RFC 6749 §5.2, RFC 8707 §2: who names no resource has asked for none that is wrong. What their grant was for is gone, and a
/// library signs in again. Red where rules/oauth/token.rs, admit_grant, says invalid_target.
#[test]
fn rfc8707_2_a_grant_for_a_resource_that_is_gone_is_a_bad_grant() {
    let server = default_server();
    let person = Person::add(server);
    let (one, two) = ("https://one.test/api", "https://two.test/api");
    let app = App::add(server, Grants::Usual, &["--trusted", "--resource", one, "--resource", two]);
    let mut browser = Browser::new(server);
    let tokens = app.tokens(&mut browser, &person);
    let code = browser.get(&app.ask().target()).landed()["code"].clone();
    server.must(&["client", "set", &app.id, "--remove-resource", two], "");
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    app.redeem(&code).must_fail(400, "invalid_grant");
}
