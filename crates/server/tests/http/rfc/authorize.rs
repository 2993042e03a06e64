//! RFC 6749 §4.1, OpenID Connect Core §3.1.2, RFC 9207: the authorization endpoint.

use crate::support::*;

#[test]
fn rfc6749_3_1_get_and_post_do_the_same() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let by_get = browser.get(&app.ask().target()).must_be(303).landed();
    let posted = browser.send(Call::post("/oauth2/authorize", &app.ask().pairs())).must_be(303);
    let by_post = browser.follow(posted).landed();
    assert!(by_get.contains_key("code") && by_post.contains_key("code"));
    assert_eq!(by_get["state"], by_post["state"]);
}

#[test]
fn rfc6749_3_1_unknown_parameters_are_ignored_and_empty_ones_omitted() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let ask = app.ask().with("unheard_of", "x").with("nonce", "").with("display", "wap");
    let landed = browser.get(&ask.target()).landed();
    let id = Tokens::of(&app.redeem(&landed["code"])).id;
    assert_eq!(jwt(&id).claims.get("nonce"), None);
}

#[test]
fn rfc6749_4_1_2_state_and_rfc9207_2_iss_come_back_byte_for_byte() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let state = "a b+c&d=é\"<%2F>";
    let landed = browser.get(&app.ask().with("state", state).target()).landed();
    assert_eq!(landed["state"], state);
    assert_eq!(landed["iss"], server.issuer);
}

#[test]
fn rfc9207_2_errors_carry_iss_too() {
    let server = default_server();
    let app = App::web(server);
    let landed = server.get(&app.ask().with("prompt", "none").target()).must_be(303).landed();
    assert_eq!((landed["error"].as_str(), &landed["iss"]), ("login_required", &server.issuer));
    assert_eq!(landed["state"], "s-te");
}

#[test]
fn rfc6749_4_1_2_1_each_wrong_request_has_its_own_code() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for (name, value, code) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("scope", "bogus", "invalid_scope"),
        ("scope", "", "invalid_scope"),
        ("prompt", "none login", "invalid_request"),
        ("max_age", "-1", "invalid_request"),
        ("request", "e30.e30.", "request_not_supported"),
        ("request_uri", "https://x.test/r", "request_uri_not_supported"),
        ("registration", "{}", "registration_not_supported"),
        ("resource", "https://other.test", "invalid_target"),
        ("claims", "[]", "invalid_request"),
        ("claims", "{", "invalid_request"),
        ("response_mode", "web_message", "invalid_request"),
        ("prompt", "create", "invalid_request"),
    ] {
        let landed = browser.get(&app.ask().with(name, value).target()).must_be(303).landed();
        assert_eq!(landed["error"], code, "{name}={value}");
        assert_eq!(landed["state"], "s-te");
        assert!(!landed.contains_key("code"));
    }
}

#[test]
fn rfc6749_4_1_2_1_an_unknown_client_or_redirect_uri_stays_here() {
    let server = default_server();
    let app = App::web(server);
    let other = App::web(server);
    for ask in [
        app.ask().with("client_id", "nobody"),
        app.ask().without("client_id"),
        app.ask().without("redirect_uri"),
        app.ask().with("redirect_uri", &other.redirect),
    ] {
        server.get(&ask.target()).must_stay_here();
        server.get(&ask.with("prompt", "none").target()).must_stay_here();
    }
}

#[test]
fn rfc6749_4_1_2_1_a_disabled_client_stays_here_too() {
    let server = default_server();
    let app = App::web(server);
    app.change("disable");
    server.get(&app.ask().with("prompt", "none").target()).must_stay_here();
}

#[test]
fn response_modes_query_fragment_and_form_post() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let query = browser.get(&app.ask().with("response_mode", "query").target());
    assert!(query.location().unwrap().starts_with(&format!("{}?code=", app.redirect)));
    let fragment = browser.get(&app.ask().with("response_mode", "fragment").target());
    assert!(fragment.location().unwrap().starts_with(&format!("{}#code=", app.redirect)));
    let page = browser.get(&app.ask().with("response_mode", "form_post").target()).must_be(200);
    let form = Form::find(&page.text(), &app.redirect).unwrap();
    assert_eq!((form.value("state"), form.value("iss")), ("s-te", server.issuer.as_str()));
    Tokens::of(&app.redeem(form.value("code")));
}

#[test]
fn a_page_that_posts_by_itself_is_no_answer_to_the_password() {
    // red without at_once in app/sign_in.rs, follow: loading the page again would send the password again.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    for more in [("prompt", "consent"), ("prompt", "login"), ("max_age", "0")] {
        let ask = app.ask().with("response_mode", "form_post").with(more.0, more.1);
        let page = browser.get(&ask.target()).must_be(200);
        let next = browser.log_in_on(&page, &person.name, &person.password).must_be(303);
        let mut page = browser.follow(next).must_be(200);
        if let Some(consent) = Form::find(&page.text(), "/consent") {
            page = browser.submit(&consent.fill("decision", "allow")).must_be(200);
        }
        let form = Form::find(&page.text(), &app.redirect).unwrap_or_else(|| panic!("{more:?}: {}", page.text()));
        Tokens::of(&app.redeem(form.value("code")));
    }
}

#[test]
fn rfc8252_7_3_any_port_of_a_loopback_address_is_taken_for_a_native_client() {
    let server = default_server();
    let person = Person::add(server);
    let app = App::public(server, "http://127.0.0.1/cb", &["--native"]);
    let mut browser = Browser::new(server);
    let ask = app.ask().with("redirect_uri", "http://127.0.0.1:51004/cb");
    let code = app.code(&mut browser, &person, &ask);
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", "http://127.0.0.1:51004/cb"),
        ("code_verifier", VERIFIER),
    ];
    Tokens::of(&app.post("/oauth2/token", &fields));
}

#[test]
fn rfc8252_8_6_a_native_client_is_not_authorized_again_in_silence() {
    let server = default_server();
    let person = Person::add(server);
    // RFC 8252 §8.5: a secret that every copy of the program has changes nothing.
    let shipped = App::shipped(server, "http://127.0.0.1/cb");
    for app in [App::public(server, "http://127.0.0.1/cb", &["--native"]), shipped] {
        let mut browser = Browser::new(server);
        app.code(&mut browser, &person, &app.ask());
        let landed = browser.get(&app.ask().with("prompt", "none").target()).landed();
        assert_eq!(landed["error"], "consent_required");
    }
}

#[test]
fn oidc_core_5_5_single_claims_need_consent_like_their_scopes() {
    // red without Request::asked in rules/oauth/step.rs, or ClaimsRequest::within in rules/oauth/claims.rs.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let bare = app.ask().with("scope", "openid");
    app.code(&mut browser, &person, &bare);
    let silent = bare.with("prompt", "none");
    assert!(browser.get(&silent.target()).landed().contains_key("code"));
    for claims in [r#"{"userinfo":{"email":null}}"#, r#"{"id_token":{"groups":null}}"#] {
        let asked = app.ask().with("scope", "openid").with("prompt", "none").with("claims", claims);
        assert_eq!(browser.get(&asked.target()).landed()["error"], "consent_required", "{claims}");
    }
}

#[test]
fn oidc_core_3_1_2_1_prompt_none_never_shows_a_page() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let silent = app.ask().with("prompt", "none").target();
    assert_eq!(server.get(&silent).landed()["error"], "login_required");
    let mut browser = Browser::of(server, &person);
    assert_eq!(browser.get(&silent).landed()["error"], "consent_required");
    app.code(&mut browser, &person, &app.ask());
    assert!(browser.get(&silent).landed().contains_key("code"));
    let wider = app.ask().with("prompt", "none").with("scope", "openid groups");
    assert_eq!(browser.get(&wider.target()).landed()["error"], "consent_required");
}

#[test]
fn oidc_core_3_1_2_1_prompt_login_asks_again_and_moves_auth_time() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let before = jwt(&app.tokens(&mut browser, &person).id).claims["auth_time"].as_i64().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let page = browser.get(&app.ask().with("prompt", "login").target()).must_be(200);
    assert!(Form::find(&page.text(), "/login").is_some());
    let landed = browser.go_through(page, &person).landed();
    let after = jwt(&Tokens::of(&app.redeem(&landed["code"])).id).claims["auth_time"].as_i64().unwrap();
    assert!(after > before, "{after} > {before}");
}

#[test]
fn oidc_core_3_1_2_1_prompt_consent_asks_although_it_was_given() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    app.code(&mut browser, &person, &app.ask());
    assert!(browser.get(&app.ask().target()).landed().contains_key("code"));
    let page = browser.get(&app.ask().with("prompt", "consent").target()).must_be(200);
    assert!(Form::find(&page.text(), "/consent").is_some());
}

#[test]
fn oidc_core_3_1_2_1_prompt_select_account_offers_a_choice() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let ask = app.ask().with("prompt", "select_account");
    let page = browser.get(&ask.target()).must_be(200);
    let choice = Form::find(&page.text(), "/login/choose").unwrap();
    let answer = browser.submit(&choice.clone().fill("choice", "continue"));
    assert!(browser.follow(answer).landed().contains_key("code"));
    let answer = browser.submit(&choice.fill("choice", "other"));
    assert!(Form::find(&browser.follow(answer).text(), "/login").is_some());
}

#[test]
fn oidc_core_3_1_2_1_max_age_zero_asks_again_and_a_long_one_does_not() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    assert!(browser.get(&app.ask().with("max_age", "3600").target()).landed().contains_key("code"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let page = browser.get(&app.ask().with("max_age", "0").target()).must_be(200);
    let landed = browser.go_through(page, &person).landed();
    assert!(jwt(&Tokens::of(&app.redeem(&landed["code"])).id).claims["auth_time"].is_i64());
    let silent = app.ask().with("max_age", "0").with("prompt", "none");
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(browser.get(&silent.target()).landed()["error"], "login_required");
}

#[test]
fn oidc_core_3_1_2_1_id_token_hint_of_somebody_else_is_never_silent() {
    let server = default_server();
    let (app, one, two) = (App::trusted(server), Person::add(server), Person::add(server));
    let hint = app.tokens(&mut Browser::new(server), &one).id;
    let mut browser = Browser::of(server, &two);
    let ask = app.ask().with("id_token_hint", &hint);
    let landed = browser.get(&ask.clone().with("prompt", "none").target()).landed();
    assert_eq!(landed["error"], "login_required");
    let page = browser.get(&ask.target()).must_be(200);
    let landed = browser.go_through(page, &two).landed();
    assert_eq!(landed["error"], "login_required", "two signed in where one was expected");
    let mut right = Browser::of(server, &one);
    assert!(right.get(&ask.with("prompt", "none").target()).landed().contains_key("code"));
}

#[test]
fn oidc_core_3_1_2_1_whoever_the_hint_names_can_sign_in_where_somebody_else_is() {
    // red without asks_for_somebody_else_than in app/authorize.rs, show: the page would be for the one who is signed in.
    let server = default_server();
    let (app, one, two) = (App::trusted(server), Person::add(server), Person::add(server));
    let hint = app.tokens(&mut Browser::new(server), &one).id;
    for (name, value) in [("max_age", "86400"), ("prompt", "login")] {
        let mut browser = Browser::of(server, &two);
        let page = browser.get(&app.ask().with("id_token_hint", &hint).with(name, value).target()).must_be(200);
        assert!(!page.text().contains(&two.name), "{name}: {}", page.text());
        let landed = browser.go_through(page, &one).landed();
        assert!(landed.contains_key("code"), "{name}: {landed:?}");
    }
}

#[test]
fn oidc_core_5_5_1_claims_sub_of_somebody_else_is_login_required() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for sub in [r#""value":"somebody""#, r#""values":["somebody","else"]"#] {
        let claims = format!(r#"{{"id_token":{{"sub":{{{sub}}}}}}}"#);
        let landed = browser.get(&app.ask().with("claims", &claims).with("prompt", "none").target()).landed();
        assert_eq!(landed["error"], "login_required", "{sub}");
    }
}

#[test]
fn oidc_core_5_5_1_1_an_essential_acr_that_nobody_reaches_is_an_error() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let claims = r#"{"id_token":{"acr":{"essential":true,"values":["urn:gold"]}}}"#;
    let landed = browser.get(&app.ask().with("claims", claims).target()).landed();
    assert_eq!(landed["error"], "unmet_authentication_requirements");
}

#[test]
fn oidc_core_5_5_single_claims_go_where_they_were_asked_for() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let claims = r#"{"id_token":{"email":null},"userinfo":{"preferred_username":null}}"#;
    let ask = app.ask().with("scope", "openid").with("claims", claims);
    let tokens = app.tokens_for(&mut Browser::new(server), &person, &ask);
    assert_eq!(jwt(&tokens.id).claims["email"], person.email);
    let told = server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200).json();
    assert_eq!(told["preferred_username"], person.name);
    assert_eq!(told.get("email"), None);
}

#[test]
fn oidc_core_3_1_2_4_saying_no_is_access_denied() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let page = browser.get(&app.ask().target()).must_be(200);
    let consent = Form::find(&page.text(), "/consent").unwrap();
    let landed = browser.submit(&consent.fill("decision", "deny")).landed();
    assert_eq!(landed["error"], "access_denied");
    // Red without `deny` in app/authorize.rs, consent.
    let list = server.must(&["audit", "list", "--client", &app.id, "--kind", "consent.denied", "--json"], "");
    let lines: Vec<serde_json::Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(lines.len(), 1, "{list}");
    assert!(
        lines[0]["user"].is_string() && lines[0]["session"].is_string() && lines[0]["request"].is_string(),
        "{list}"
    );
    assert!(browser.get(&app.ask().with("prompt", "none").target()).landed().contains_key("error"));
}

#[test]
fn rfc6749_4_1_2_1_a_state_that_is_too_long_comes_back_with_the_error_that_says_so() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let state = "s".repeat(5000);
    let landed = Browser::of(server, &person).get(&app.ask().with("state", &state).target()).landed();
    assert_eq!((landed["error"].as_str(), &landed["state"]), ("invalid_request", &state));
}

#[test]
fn oidc_core_3_1_2_6_a_request_that_is_too_long_is_told_to_its_client_like_any_other_error() {
    // red without the whole length in rules/oauth/authorize.rs, lengths.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let long = app.ask().with("login_hint", &"x".repeat(12 * 1024));
    let silent = long.clone().with("prompt", "none");
    let signed_in = Browser::of(server, &person);
    for (mut browser, ask) in [(Browser::new(server), &silent), (signed_in.clone(), &silent), (signed_in, &long)] {
        let landed = browser.get(&ask.target()).must_be(303).landed();
        assert_eq!((landed["error"].as_str(), landed["state"].as_str()), ("invalid_request", "s-te"));
        assert_eq!(landed["iss"], server.issuer);
        browser.get(&ask.clone().with("redirect_uri", "https://evil.test/cb").target()).must_stay_here();
        browser.get(&ask.clone().with("client_id", "nobody").target()).must_stay_here();
    }
    // Where nobody is known and something may be shown, they are asked before they are sent back.
    let page = server.get(&long.target()).must_stay_here().text();
    assert!(page.contains(&format!("{}?error=invalid_request", app.redirect)), "{page}");
}

#[test]
fn form_post_2_the_way_back_from_our_own_page_posts_as_well() {
    // red without `posted` in http/error.rs, to_page: some applications take nothing but POST at that address.
    let server = default_server();
    let app = App::web(server);
    let ask = app.ask().with("scope", "bogus");
    let answer = server.get(&ask.clone().with("response_mode", "form_post").target()).must_stay_here();
    let back = Form::find(&answer.text(), &app.redirect).unwrap();
    assert_eq!((back.value("error"), back.value("state")), ("invalid_scope", "s-te"));
    assert_eq!(back.value("iss"), server.issuer);
    let origin = app.redirect.strip_suffix("/cb").unwrap();
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains(&format!("form-action 'self' {origin};")), "{policy}");
    for (mode, mark) in [("query", '?'), ("fragment", '#')] {
        let page = server.get(&ask.clone().with("response_mode", mode).target()).must_stay_here();
        assert!(Form::find(&page.text(), &app.redirect).is_none());
        assert!(page.text().contains(&format!("{}{mark}error=invalid_scope", app.redirect)), "{}", page.text());
        assert!(page.header("content-security-policy").unwrap().contains("form-action 'self';"));
    }
}

#[test]
fn initiating_user_registration_1_prompt_create_shows_the_sign_up_page() {
    let server = sign_up_server();
    let app = App::trusted(server);
    let mut browser = Browser::new(server);
    let page = browser.get(&app.ask().with("prompt", "create").target()).must_be(200);
    let name = unique("newcomer");
    let form = Form::find(&page.text(), "/signup").unwrap();
    let answer =
        browser.submit(&form.fill("username", &name).fill("email", "").fill("password", "gorse violet anvil 41"));
    let landed = browser.follow(answer).landed();
    let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&landed["code"])).access);
    assert_eq!(server.send(&told).json()["preferred_username"], name);
}

#[test]
fn oidc_core_3_1_2_1_login_hint_and_ui_locales_shape_the_page() {
    let server = default_server();
    let app = App::web(server);
    let page = server.get(&app.ask().with("login_hint", "ann@x.test").with("ui_locales", "de").target()).must_be(200);
    assert_eq!(Form::find(&page.text(), "/login").unwrap().value("login"), "ann@x.test");
    assert!(page.text().contains("lang=\"de\""));
}

#[test]
fn oidc_core_3_1_2_1_ui_locales_hold_on_every_page_of_the_way() {
    // red with None for the locales in server/http: pages/login.rs, pages/signup.rs, oauth/authorize.rs, oauth/logout.rs,
    // door.rs.
    let server = sign_up_server();
    let (app, person) = (App::web(server), Person::add(server));
    let ask = app.ask().with("ui_locales", "de");
    let mut browser = Browser::new(server);
    let mut german = |target: &str| {
        let page = browser.get(target).must_be(200);
        assert!(page.text().contains("lang=\"de\""), "{target}");
        page.text()
    };
    let flow = Form::find(&german(&ask.clone().with("prompt", "create").target()), "/signup").unwrap();
    german(&format!("/login?flow={}", flow.value("flow")));
    german(&format!("/signup?flow={}", flow.value("flow")));
    let mut browser = Browser::of(server, &person);
    let choice = browser.get(&ask.with("prompt", "select_account").target()).must_be(200);
    let other = Form::find(&choice.text(), "/login/choose").unwrap().fill("choice", "other");
    let answer = browser.submit(&other);
    let page = browser.follow(answer);
    assert!(page.text().contains("lang=\"de\""), "{}", page.text());
}

#[test]
fn oidc_core_3_1_2_1_ui_locales_hold_on_the_pages_at_the_end_of_the_way() {
    // red where the others are, and without To::Out in app/flow.rs, ui_locales.
    let server = sign_up_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let ask = app.ask().with("ui_locales", "de");
    let german = |page: Answer, what: &str| {
        assert!(page.text().contains("lang=\"de\""), "{what}: {}", page.text());
        page.text()
    };
    for (wrong, value) in [("scope", "bogus"), ("redirect_uri", "https://evil.test/cb"), ("client_id", "nobody")] {
        german(server.get(&ask.clone().with(wrong, value).target()).must_stay_here(), wrong);
    }
    german(server.get(&format!("{}&state=twice", ask.target())).must_stay_here(), "a parameter that comes twice");

    let posted = ask.with("response_mode", "form_post");
    let mut browser = Browser::new(server);
    let page = browser.get(&posted.target());
    let answer = browser.log_in_on(&page, &person.name, &person.password);
    german(browser.follow(answer).must_be(200), "after a password");
    german(browser.get(&posted.target()).must_be(200), "while signed in");
    let mut newcomer = Browser::new(server);
    let page = newcomer.get(&posted.with("prompt", "create").target()).text();
    let form = Form::find(&page, "/signup").unwrap().fill("username", &unique("new")).fill("email", "");
    let answer = newcomer.submit(&form.fill("password", &person.password));
    german(newcomer.follow(answer).must_be(200), "after a sign-up");

    let page = german(browser.get("/oauth2/logout?ui_locales=de").must_be(200), "before signing out");
    let form = Form::find(&page, "/oauth2/logout/confirm").unwrap().fill("decision", "sign_out");
    let left = browser.submit(&form).must_be(303);
    german(browser.follow(left).must_be(200), "signed out");
}

#[test]
fn oidc_core_5_5_1_a_value_of_the_wrong_type_is_no_value_left_out() {
    // red without values in rules/oauth/authorize.rs: somebody else than was asked for would be let in.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for claims in [
        r#"{"id_token":{"sub":{"value":5}}}"#,
        r#"{"id_token":{"sub":"ada"}}"#,
        r#"{"id_token":{"sub":{"values":"ada"}}}"#,
        r#"{"id_token":{"sub":{"values":["ada",1]}}}"#,
        r#"{"id_token":{"acr":{"essential":true,"value":1}}}"#,
        r#"{"id_token":{"sub":{"value":"ada"}},"id_token":{}}"#,
    ] {
        let landed = browser.get(&app.ask().with("claims", claims).target()).must_be(303).landed();
        assert_eq!(landed.get("error").map(String::as_str), Some("invalid_request"), "{claims}");
    }
    for claims in
        [r#"{"id_token":{"sub":null}}"#, r#"{"id_token":{"acr":{"value":1}}}"#, r#"{"userinfo":{"sub":{"value":1}}}"#]
    {
        let landed = browser.get(&app.ask().with("claims", claims).target()).must_be(303).landed();
        assert!(landed.contains_key("code"), "{claims}: {landed:?}");
    }
}
