//! DI, UE and BF for the account API: the classes that exist for the pages, at the doors beside them.

use super::guessing::seen;
use crate::support::*;
use serde_json::{Value, json};

/// What opens an account through the API.
struct Held {
    screens: Screens,
    person: Person,
    bearer: Line,
    cookies: Line,
}

impl Held {
    #[track_caller]
    fn all() -> Held {
        let server = default_server();
        let (screens, person) = (Screens::of(server), Person::add(server));
        let (bearer, cookies) = (screens.sign_in(&person, false), screens.sign_in(&person, true));
        Held { screens, person, bearer, cookies }
    }

    /// What still works. Refreshing comes last: it makes new tokens.
    #[track_caller]
    fn alive(&mut self) -> Vec<&'static str> {
        let (screens, server) = (&self.screens, self.screens.app.server);
        let credentials = (self.person.name.as_str(), self.person.password.as_str());
        let comes_in = |cookies| screens.try_in(&mut Browser::new(server), credentials, cookies).status == 200;
        let found = [
            ("me", self.bearer.is_open()),
            ("me by cookie", self.cookies.is_open()),
            ("sign-in", comes_in(false)),
            ("sign-in by cookie", comes_in(true)),
            ("refresh", self.bearer.clone().renew().status == 200),
            ("refresh by cookie", self.cookies.clone().renew().status == 200),
        ];
        found.into_iter().filter(|(_, alive)| *alive).map(|(name, _)| name).collect()
    }

    /// That a password is changed by nobody who holds these.
    #[track_caller]
    fn must_not_change_the_password(&mut self) {
        let (current, new) = (self.person.password.clone(), "teal marble oboe 77");
        for line in [&mut self.bearer, &mut self.cookies] {
            assert_eq!(line.change_password(&current, new).status, 401);
        }
    }
}

const COMING_IN: [&str; 2] = ["sign-in", "sign-in by cookie"];

#[test]
fn di_01_with_nothing_taken_away_the_account_api_works() {
    assert_eq!(Held::all().alive().len(), 6);
}

#[test]
fn di_01_a_disabled_user_has_no_account_api() {
    // red without the check of the user in rules/oauth/family.rs (is_live), token.rs (gate) or login/session.rs (enter).
    let mut held = Held::all();
    held.person.change(default_server(), "disable");
    held.must_not_change_the_password();
    assert_eq!(held.alive(), [""; 0]);
    held.person.change(default_server(), "enable");
    assert_eq!(held.alive(), COMING_IN, "what was dead does not come back");
}

#[test]
fn di_01_a_removed_user_has_no_account_api() {
    // red without the rows that go with it in store/tables/users.rs, remove.
    let mut held = Held::all();
    held.person.change(default_server(), "remove");
    held.must_not_change_the_password();
    assert_eq!(held.alive(), [""; 0]);
}

#[test]
fn di_01_a_disabled_client_has_no_account_api() {
    // held more than once: by the end of what a disabled client holds, by is_admitted in rules/oauth/first_party.rs, opens,
    // and in app/api.rs, first_party, and by the issuance gate.
    let mut held = Held::all();
    held.screens.app.change("disable");
    held.must_not_change_the_password();
    assert_eq!(held.alive(), [""; 0]);
    held.screens.app.change("enable");
    // What a client held before it was disabled was taken from it (docs: client disable).
    let back = held.alive();
    assert!(COMING_IN.iter().all(|name| back.contains(name)), "{back:?}");
    assert!(!back.contains(&"refresh") && !back.contains(&"me"), "{back:?}");
}

#[test]
fn di_01_a_removed_client_has_no_account_api_and_its_name_revives_nothing() {
    // red without the rows that go with it in store/tables/clients.rs, remove; and first_party, app/api.rs.
    let mut held = Held::all();
    held.screens.app.change("remove");
    held.must_not_change_the_password();
    assert_eq!(held.alive(), [""; 0]);
    let (id, redirect) = (held.screens.app.id.clone(), held.screens.app.redirect.clone());
    let line = ["client", "add", "--id", &id, "--redirect-uri", &redirect, "--public"];
    default_server().must(&line, "");
    assert_eq!(held.alive(), [""; 0], "the new client of that name is none of the house");
}

#[test]
fn di_01_what_ends_sessions_ends_the_account_api() {
    // red without EndSessionsOf in login/session.rs, end_all_but, or without the session in family.rs, is_live.
    let mut held = Held::all();
    let mut browser = Browser::of(default_server(), &held.person);
    let others = browser.account_form("/account/sessions/revoke-others");
    browser.submit(&others).must_be(303);
    held.must_not_change_the_password();
    assert_eq!(held.alive(), COMING_IN);
    for cookies in [false, true] {
        let mut line = held.screens.sign_in(&held.person, cookies);
        let mut copied = line.clone();
        line.send("POST", "signout", &json!({})).must_be(204);
        assert!(!copied.is_open(), "cookies: {cookies}");
        assert_eq!(copied.renew().status, 401, "cookies: {cookies}");
        assert!(line.browser.cookie("access-").is_none() && line.browser.cookie("refresh-").is_none());
        assert!(browser.is_signed_in(), "and nobody else's");
    }
}

#[test]
fn ue_01_unknown_disabled_and_wrong_look_the_same_to_the_account_api() {
    // red if rules/login/attempt.rs, judge, or http/api/sign_in.rs, not_in, told them apart.
    // What cannot be a name shares one counter, which other tests may not touch.
    let server = Server::leaked(&[]);
    let screens = Screens::of(server);
    let wrong = "not the password 1";
    for cookies in [false, true] {
        let (known, disabled, removed) = (Person::add(server), Person::add(server), Person::add(server));
        disabled.change(server, "disable");
        removed.change(server, "remove");
        let nobody = unique("nobody");
        let attempts = [
            (known.name.as_str(), wrong),
            (&known.email, wrong),
            (&disabled.name, wrong),
            (&disabled.name, &disabled.password),
            (&removed.name, &removed.password),
            (&nobody, wrong),
            (&format!("{nobody}@example.test"), wrong),
            ("", wrong),
            (&"x".repeat(400), wrong),
            (&known.name, ""),
            (&known.name, &"x".repeat(4_000)),
        ];
        let look = |credentials| {
            let answer = screens.try_in(&mut Browser::new(server), credentials, cookies);
            assert_eq!(answer.status, 422, "{credentials:?}");
            assert!(answer.all("set-cookie").is_empty());
            (answer.json(), seen(&answer, ""))
        };
        let first = look(attempts[0]);
        assert_eq!(first.0["code"], "wrong-credentials");
        for credentials in &attempts[1..] {
            assert_eq!(look(*credentials), first, "{:.40?}", credentials);
        }
        // What is longer than any password is looked at for nobody.
        let long = "x".repeat(20_000);
        let unread = [known.name.as_str(), &disabled.name, &nobody].map(|login| {
            let answer = screens.try_in(&mut Browser::new(server), (login, &long), cookies);
            (answer.status, answer.json(), seen(&answer, ""))
        });
        assert_eq!((unread[0].0, &unread[0].1["code"]), (400, &"malformed-request".into()));
        assert!(unread.iter().all(|one| *one == unread[0]), "{unread:?}");
    }
    server.kill();
}

#[test]
fn ue_01_a_guesser_waits_at_the_account_api_whoever_the_name_is_of() {
    // red without the counter for "nobody:" in app/sign_in.rs, attempt, or if the API did not go through it.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let screens = Screens::of(server);
    let (known, disabled) = (Person::add(server), Person::add(server));
    disabled.change(server, "disable");
    let guess = |login: &str| {
        let answer = screens.try_in(&mut Browser::new(server), (login, "wrong wrong wrong"), false);
        (answer.status, seen(&answer, ""))
    };
    let series = |login: &str| -> Vec<_> { (0..8).map(|_| guess(login)).collect() };
    let first = series(&known.name);
    assert_eq!(first.iter().filter(|(status, _)| *status == 422).count(), 5);
    assert_eq!(first.last().unwrap().0, 429);
    assert_eq!(series(&disabled.name), first, "disabled");
    assert_eq!(series(&unique("nobody")), first, "unknown");
    let mut browser = Browser::new(server);
    let page = browser.get("/login");
    assert_eq!(browser.log_in_on(&page, &known.email, &known.password).status, 429, "one counter for both doors");
    server.kill();
}

#[test]
fn rfc8252_8_5_the_secret_of_a_native_client_opens_no_account() {
    // Red without proves_itself in app/api.rs, first_party: whoever has a copy of the program has its secret.
    let server = default_server();
    let (person, app) = (Person::add(server), App::shipped(server, "http://127.0.0.1/cb"));
    server.must(&["client", "set", &app.id, "--first-party"], "");
    let body = json!({ "login": person.name, "password": person.password }).to_string();
    let status = |app: &App| {
        let call = Call::new("POST", "/api/v1/signin").header("authorization", &app.basic());
        server.send(&call.body("application/json", body.clone())).status
    };
    assert_eq!(status(&app), 401);
    server.must(&["client", "set", &app.id, "--native=no", "--add-redirect-uri", "https://shop.test/cb"], "");
    assert_eq!(status(&app), 200, "not native, it is a service with a secret");
}

#[test]
fn ue_01_which_applications_there_are_is_not_told() {
    // red if app/api.rs, first_party, told unknown, disabled and foreign clients apart.
    let server = default_server();
    let (screens, gone) = (Screens::of(server), Screens::of(server));
    let (foreign, person) = (App::web(server), Person::add(server));
    gone.app.change("disable");
    let ask = |client: &str, origin: Option<&str>, operation: &str| {
        let body = json!({
            "client_id": client, "login": person.name, "password": person.password, "refresh_token": "x"
        });
        let call = Call::new("POST", &format!("/api/v1/{operation}")).body("application/json", body.to_string());
        let call = origin.map_or(call.clone(), |origin| call.header("origin", origin));
        let answer = server.send(&call);
        (answer.json(), seen(&answer, ""))
    };
    for operation in ["signin", "refresh"] {
        let unknown = ask("nobody", None, operation);
        assert_eq!((unknown.1.0, unknown.0["code"].as_str()), (401, Some("client-refused")));
        for client in [&screens.app.id, &gone.app.id, &foreign.id] {
            assert_eq!(ask(client, None, operation), unknown, "{operation} by its name alone");
        }
        let foreign_origin = foreign.redirect.strip_suffix("/cb").unwrap();
        let unknown = ask("nobody", Some(foreign_origin), operation);
        assert_eq!(ask(&gone.app.id, Some(foreign_origin), operation), unknown);
        assert_eq!(ask(&foreign.id, Some(foreign_origin), operation), unknown);
    }
}

#[test]
fn di_02_account_tokens_are_for_the_account_api_and_others_are_not() {
    // red without both the audience and the scope in rules/oauth/first_party.rs, opens; or without `ours` there, renew.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    // The same application, by the protocol this time.
    let app = &screens.app;
    let mut line = screens.sign_in(&person, false);
    let tokens = app.tokens(&mut Browser::of(server, &person), &person);
    for token in [&tokens.access, &tokens.refresh, &tokens.id, &line.refresh] {
        let answer = server.send(&screens.call("GET", "me", &Value::Null).bearer(token));
        assert_eq!(answer.status, 401, "{}", answer.text());
    }
    assert_eq!(server.send(&Call::get("/oauth2/userinfo").bearer(&line.access)).status, 401);
    assert_eq!(screens.app.refresh(&line.refresh).status, 400);
    let foreign = Line { refresh: tokens.refresh.clone(), ..line.clone() }.renew();
    assert_eq!(foreign.status, 401, "{}", foreign.text());
    let renewed = Tokens::of(&app.refresh(&tokens.refresh));
    assert_eq!(server.send(&Call::get("/oauth2/userinfo").bearer(&renewed.access)).status, 200, "as good as before");
    assert!(line.is_open());
    line.renew().must_be(200);
}

#[test]
fn rfc6750_3_1_whoever_brings_no_token_is_not_told_what_is_wrong_with_it() {
    // red without without_credentials in http/api/caller.rs.
    let server = default_server();
    let challenge = |call: Call| server.send(&call).must_be(401).header("www-authenticate").unwrap().to_owned();
    assert_eq!(challenge(Call::get("/api/v1/me")), "Bearer realm=\"account API\"");
    let unreadable = server.send(&Call::get("/api/v1/me").header("authorization", "Bearer a b")).must_be(400);
    assert_eq!(unreadable.header("www-authenticate"), Some("Bearer error=\"invalid_request\""));
    assert!(challenge(Call::get("/api/v1/me").bearer("x")).contains("invalid_token"));
}
