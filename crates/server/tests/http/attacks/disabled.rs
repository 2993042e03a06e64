//! DI, RT-02: the matrix of {every grant and sink} x {what was taken away}. The commonest hole of this field is a
//! sibling path that lacks one check, so each state is tried against everything that was issued before it.

use crate::support::*;

/// An application with every grant, a consent page, and access tokens of that format.
fn app(format: &str) -> App {
    App::add(default_server(), Grants::All, &["--access-token", format])
}

const FORMATS: [&str; 2] = ["jwt", "opaque"];

#[test]
fn di_01_with_nothing_taken_away_everything_works() {
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        assert_eq!(issued.introspected().len(), 4);
        assert_eq!(issued.alive().len(), 9, "{:?}", issued.alive());
    }
}

#[test]
fn di_01_a_disabled_user_has_nothing_left() {
    // red without the check of the user in rules/oauth/token.rs (gate) or rules/oauth/family.rs, is_live.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        issued.person.change(default_server(), "disable");
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["own"], "{format}");
        issued.person.change(default_server(), "enable");
        assert_eq!(issued.alive(), ["own"], "{format}: what was dead does not come back");
    }
}

#[test]
fn di_01_a_removed_user_has_nothing_left() {
    // red without the rows that go with it in store/tables/users.rs, remove.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        issued.person.change(default_server(), "remove");
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["own"], "{format}");
    }
}

#[test]
fn di_01_a_disabled_client_has_nothing_left() {
    // red without the check of the client in rules/oauth/client_auth.rs (prove), authorize.rs (read), introspect.rs.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        issued.app.change("disable");
        assert_eq!(issued.alive(), ["account"], "{format}");
    }
}

#[test]
fn di_01_a_removed_client_has_nothing_left_and_its_name_revives_nothing() {
    // red without the rows that go with it in store/tables/clients.rs, remove.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        issued.app.change("remove");
        assert_eq!(issued.alive(), ["account"], "{format}");
        let (id, redirect) = (issued.app.id.clone(), issued.app.redirect.clone());
        let line = ["client", "add", "--id", &id, "--redirect-uri", &redirect, "--secret-stdin", "--scope", "openid"];
        default_server().must(&line, SECRET);
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["account"], "{format}: the new client has neither grants nor consent");
    }
}

#[test]
fn rt_02_what_nobody_was_asked_for_ends_when_an_application_is_trusted_no_longer() {
    // red without `distrusted` in app/admin/clients.rs, edit_client.
    for format in FORMATS {
        let app = App::add(default_server(), Grants::All, &["--trusted", "--access-token", format]);
        let mut issued = Issued::all(app);
        default_server().must(&["client", "set", &issued.app.id, "--trusted=no"], "");
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["account", "own"], "{format}");
        default_server().must(&["client", "set", &issued.app.id, "--trusted"], "");
        assert_eq!(issued.introspected(), [""; 0], "{format}: what was dead does not come back");
    }
}

#[test]
fn di_01_an_ended_session_leaves_only_what_outlives_it() {
    // red without each of: the session in rules/oauth/token.rs (admit), in family.rs (is_live), and the end of families and
    // codes with their session (rules/login/session.rs, leave).
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        let sign_out = issued.browser.account_form("/account/signout");
        issued.browser.submit(&sign_out).must_be(303);
        assert_eq!(issued.introspected(), ["offline access", "offline refresh"], "{format}");
        assert_eq!(issued.alive(), ["offline access", "offline refresh", "own"], "{format}");
    }
}

#[test]
fn di_01_sign_out_everywhere_else_ends_the_other_sessions_and_what_outlives_them() {
    // red without the revocation of families in login/session.rs, end_all_but.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        let mut other = Browser::of(default_server(), &issued.person);
        let others = other.account_form("/account/sessions/revoke-others");
        other.submit(&others).must_be(303);
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["own"], "{format}");
    }
}

#[test]
fn di_01_whoever_is_signed_in_nowhere_else_can_end_what_outlives_sessions() {
    // red if templates/account.html had the form beside other sessions alone: a trusted application has no consent that could be
    // taken away, so that nothing else ends what it holds.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let tokens = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
    let sign_out = browser.account_form("/account/signout");
    browser.submit(&sign_out).must_be(303);
    assert!(app.is_active(&tokens.access) && app.is_active(&tokens.refresh));
    let mut alone = Browser::of(server, &person);
    let others = alone.account_form("/account/sessions/revoke-others");
    alone.submit(&others).must_be(303);
    assert!(!app.is_active(&tokens.access) && !app.is_active(&tokens.refresh));
    assert!(alone.is_signed_in());
}

#[test]
fn di_02_a_revoked_consent_leaves_nothing_to_the_application() {
    // red without the revocation of families and codes in rules/oauth/consent.rs, revoke.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        let remove = issued.browser.account_form("/account/applications/revoke");
        assert_eq!(remove.value("client_id"), issued.app.id);
        issued.browser.submit(&remove).must_be(303);
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["account", "own"], "{format}");
    }
}

#[test]
fn di_01_a_new_password_set_by_an_operator_leaves_nothing() {
    // red without the end of sessions and families in app/admin/users.rs, set_password.
    for format in FORMATS {
        let mut issued = Issued::all(app(format));
        let line = ["user", "set-password", &issued.person.name, "--password-stdin"];
        default_server().must(&line, "teal marble oboe 77");
        assert_eq!(issued.introspected(), [""; 0], "{format}");
        assert_eq!(issued.alive(), ["own"], "{format}");
    }
}

#[test]
fn di_01_a_disabled_user_signs_in_nowhere() {
    // red without `is_enabled` in app/sign_in.rs, hash; or rules/login/session.rs, enter.
    let server = default_server();
    let (app, person) = (app("jwt"), Person::add(server));
    person.change(server, "disable");
    for target in
        ["/login".to_owned(), app.ask().target(), app.ask().with("prompt", "login").target(), "/device".into()]
    {
        let mut browser = Browser::new(server);
        let page = browser.get(&target).must_be(200);
        browser.log_in_on(&page, &person.name, &person.password).must_be(422);
        assert!(browser.cookie("sid-").is_none());
    }
}

#[test]
fn di_02_a_device_that_was_approved_shows_up_where_access_is_removed() {
    // red without a remembered consent in rules/oauth/device.rs, answer.
    let server = default_server();
    let (app, person) = (app("jwt"), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let asked = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
    let page = browser.get("/device").must_be(200).text();
    let entry = Form::find(&page, "/device").unwrap().fill("user_code", asked["user_code"].as_str().unwrap());
    let page = browser.submit(&entry).must_be(200).text();
    browser.submit(&Form::find(&page, "/device/confirm").unwrap().fill("decision", "allow")).must_be(303);
    let fields = [("grant_type", DEVICE), ("device_code", asked["device_code"].as_str().unwrap())];
    let tokens = Tokens::of(&app.post("/oauth2/token", &fields));
    let remove = browser.account_form("/account/applications/revoke");
    assert_eq!(remove.value("client_id"), app.id);
    browser.submit(&remove).must_be(303);
    assert!(!app.is_active(&tokens.access) && !app.is_active(&tokens.refresh));
}

#[test]
fn di_03_what_a_client_no_longer_registers_is_given_to_nobody() {
    // red without the questions of admit_grant in rules/oauth/token.rs, or without BumpEpoch in app/admin/clients.rs,
    // change_client.
    let app = App::trusted(default_server());
    let person = Person::add(app.server);
    let mut browser = Browser::new(app.server);
    let tokens = app.tokens(&mut browser, &person);
    let set = |flags: &[&str]| app.server.must(&[&["client", "set", &app.id], flags].concat(), "");
    set(&["--remove-scope", "profile"]);
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    set(&["--add-scope", "profile"]);
    let renewed = Tokens::of(&app.refresh(&tokens.refresh));
    set(&["--remove-grant", "refresh_token"]);
    app.refresh(&renewed.refresh).must_fail(400, "unauthorized_client");

    let elsewhere = format!("https://{}.test/elsewhere", app.id);
    let ask = app.ask().with("redirect_uri", &elsewhere);
    browser.get(&ask.target()).must_be(400);
    set(&["--add-redirect-uri", &elsewhere]);
    app.code(&mut browser, &person, &ask);
    set(&["--remove-redirect-uri", &elsewhere]);
    browser.get(&ask.target()).must_be(400);
}

#[test]
fn di_03_rt_02_a_scope_that_is_taken_from_a_client_takes_its_single_claims_along() {
    // red without the single claims in rules/oauth/token.rs, admit_grant, or without the client in userinfo.rs, read.
    let app = App::trusted(default_server());
    let person = Person::add(app.server);
    let mut browser = Browser::new(app.server);
    let set = |flag: &str| app.server.must(&["client", "set", &app.id, flag, "email"], "");
    let told = |tokens: &Tokens| {
        let by_userinfo = app.server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200).json();
        [by_userinfo, jwt(&tokens.id).claims].map(|claims| claims.get("email").is_some())
    };
    for (name, value, tells) in [
        ("scope", "openid email", [true, false]),
        ("claims", r#"{"userinfo":{"email":null}}"#, [true, false]),
        ("claims", r#"{"id_token":{"email":null}}"#, [false, true]),
    ] {
        let ask = app.ask().with("scope", "openid").with(name, value);
        let tokens = app.tokens_for(&mut browser, &person, &ask);
        assert_eq!(told(&tokens), tells, "{value}");
        let code = app.code(&mut browser, &person, &ask);
        set("--remove-scope");
        assert!(!told(&tokens)[0], "{value}: userinfo knows what is registered now");
        app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
        app.redeem(&code).must_fail(400, "invalid_grant");
        assert_eq!(told(&app.tokens_for(&mut browser, &person, &ask)), [false, false], "{value}");
        set("--add-scope");
        assert_eq!(told(&Tokens::of(&app.refresh(&tokens.refresh))), tells, "{value}");
    }
}
