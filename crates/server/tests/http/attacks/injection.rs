//! IN: what is typed stays data.

use crate::support::*;
use serde_json::Value;

const HOSTILE: [&str; 12] = [
    "' OR 1=1--",
    "'; DROP TABLE users;--",
    "\" OR \"\"=\"",
    "*)(uid=*",
    "*",
    "%",
    "_",
    "\\",
    "a\\' OR 1=1--",
    "${jndi:x}",
    "$(id)",
    "../../etc/passwd",
];

#[test]
fn in_01_no_parameter_is_part_of_a_statement() {
    // red if store/tables joined a value into SQL text instead of binding it.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let csrf = browser.account_form("/account/signout").value("csrf").to_owned();
    for text in HOSTILE {
        browser.get(&app.ask().with("client_id", text).target()).must_stay_here();
        app.redeem(text).must_fail(400, "invalid_grant");
        app.refresh(text).must_fail(400, "invalid_grant");
        assert!(!app.is_active(text));
        server
            .post(
                "/oauth2/token",
                &[("grant_type", "client_credentials"), ("client_id", text), ("client_secret", text)],
            )
            .must_fail(401, "invalid_client");
        let end = [("csrf", csrf.as_str()), ("id", text)];
        assert_eq!(browser.send(Call::post("/account/sessions/revoke", &end)).status, 404, "{text}");
        let remove = [("csrf", csrf.as_str()), ("client_id", text)];
        assert!([303, 404].contains(&browser.send(Call::post("/account/applications/revoke", &remove)).status));
        for line in
            [["user", "show", text], ["client", "show", text], ["client", "remove", text], ["user", "remove", text]]
        {
            assert_eq!(server.command(&line, "").code, 1, "{line:?}");
        }
    }
    assert!(browser.is_signed_in());
    Tokens::of(&app.redeem(&app.code(&mut browser, &person, &app.ask())));
}

#[test]
fn id_01_a_session_of_somebody_else_cannot_be_ended() {
    // red without the owner in app/logout.rs, leave_other.
    let server = default_server();
    let (one, two) = (Person::add(server), Person::add(server));
    let (mut mine, mut theirs) = (Browser::of(server, &one), Browser::of(server, &two));
    let mut second = Browser::of(server, &two);
    let id = theirs.account_form("/account/sessions/revoke").value("id").to_owned();
    let form = mine.account_form("/account/signout");
    let fields = [("csrf", form.value("csrf")), ("id", id.as_str())];
    assert_eq!(mine.send(Call::post("/account/sessions/revoke", &fields)).status, 404);
    assert!(theirs.is_signed_in() && second.is_signed_in());
}

#[test]
fn in_02_names_are_names() {
    // red if LoginKey::of, rules/people/names.rs, let wildcards or NUL through.
    let server = default_server();
    let person = Person::add(server);
    let star = format!("{}*", &person.name[..4]);
    let nul = format!("{}\0", person.name);
    for login in HOSTILE.into_iter().chain([star.as_str(), nul.as_str(), ""]) {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        let answer = browser.log_in_on(&page, login, &person.password);
        assert!([400, 422, 429].contains(&answer.status), "{login:?}: {}", answer.status);
        assert!(browser.cookie("sid-").is_none());
    }
}

#[test]
fn in_04_a_log_line_is_one_line_whatever_was_typed() {
    // red without the JSON format's escaping in server/logs.rs, or if a door logged what was typed.
    let server = Server::leaked(&[("PORTIERE_LOG_LEVEL", "debug")]);
    let hostile = "x\r\n{\"level\":\"ERROR\",\"forged\":true}\u{1b}[31m";
    let mut browser = Browser::new(server);
    let page = browser.get("/login");
    browser.log_in_on(&page, hostile, hostile);
    let escaped: String = form_urlencoded::byte_serialize(hostile.as_bytes()).collect();
    browser.get(&format!("/oauth2/authorize?client_id={escaped}"));
    browser.get(&format!("/{escaped}"));
    browser.send(Call::get("/login").header("user-agent", "a\u{1b}[31mb"));
    let log = server.log();
    assert!(log.lines().count() > 3);
    for line in log.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(parsed.get("forged"), None);
        assert!(!line.contains('\u{1b}'));
    }
    server.kill();
}

#[test]
fn in_01_a_client_id_that_no_client_can_have_is_looked_up_nowhere() {
    // red without is_client_id in rules/oauth/client_auth.rs, proof: on PostgreSQL a NUL would be a fault of ours.
    let server = default_server();
    for sub in ["a\0b", "\0", "", "a b", "ä", &"x".repeat(129)] {
        let claims = serde_json::json!({ "sub": sub, "iss": sub }).to_string();
        let assertion = format!("{}.{}.AA", encode(r#"{"alg":"ES256"}"#), encode(claims));
        let fields = [
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", assertion.as_str()),
            ("grant_type", "client_credentials"),
            ("token", "x"),
        ];
        for door in ["/oauth2/token", "/oauth2/introspect", "/oauth2/revoke", "/oauth2/device"] {
            server.post(door, &fields).must_fail(401, "invalid_client");
        }
    }
}

#[test]
fn rfc6749_b_what_is_not_utf8_is_refused_and_never_another_text() {
    // red without the question in http/extract.rs, pairs: every wrong byte would be the same character.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for bytes in ["%FF", "a%C3%28", "%E2%82", "%ED%A0%80"] {
        let target = format!("{}&nonce2={bytes}", app.ask().target());
        assert_eq!(browser.get(&target).must_be(400).location(), None, "{bytes}");
    }
    let page = browser.get("/account").text();
    let change = Form::find(&page, "/account/password").unwrap();
    let body = format!(
        "csrf={}&current={}&new=gorse+violet+%FF+anvil+41",
        change.value("csrf"),
        person.password.replace(' ', "+")
    );
    let form = Call::new("POST", "/account/password").body("application/x-www-form-urlencoded", body);
    let sent = browser.send(form.header("origin", &server.issuer));
    sent.must_be(400);
    Browser::of(server, &person);
    let token = Call::new("POST", "/oauth2/token").body("application/x-www-form-urlencoded", "grant_type=%FF");
    server.send(&token.header("authorization", &app.basic())).must_fail(400, "invalid_request");
}
