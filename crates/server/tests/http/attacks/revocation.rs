//! DS: whoever holds one token of a public client, a dead one too, fills no audit log with it.

use super::written_down::{sid, told};
use crate::support::*;
use serde_json::Value;

const AGAIN: usize = 8;

/// What the audit log has of this kind about an application.
#[track_caller]
fn lines(app: &App, kind: &str) -> usize {
    let list = app.server.must(&["audit", "list", "--kind", kind, "--client", &app.id, "--json"], "");
    serde_json::from_str::<Vec<Value>>(&list).unwrap().len()
}

fn from(address: &str, call: Call) -> Call {
    call.header("x-forwarded-for", address)
}

#[test]
fn ds_05_what_is_revoked_again_and_again_is_written_down_once() {
    // red without `dead` in rules/oauth/revoke.rs.
    let server = default_server();
    let person = Person::add(server);
    for format in ["jwt", "opaque"] {
        let app = App::public(server, "https://spa.test/cb", &["--access-token", format]);
        let mut browser = Browser::new(server);
        let [first, second] = [app.tokens(&mut browser, &person), app.tokens(&mut browser, &person)];
        for (token, count) in [(&first.access, 1), (&second.refresh, 2), (&second.access, 2)] {
            (0..AGAIN).for_each(|_| drop(app.revoke(token).must_be(200)));
            assert_eq!(lines(&app, "tokens.revoked"), count, "{format}");
        }
        // red without `about` in rules/oauth/revoke.rs, or without it for an access token.
        let written = told(server, "tokens.revoked", ["--client", &app.id]);
        let whole = |line: &Value| line["session"] == sid(&browser) && line["user"].is_string();
        assert!(written.iter().all(whole), "{format}: {written:?}");
        for token in [&first.access, &second.access] {
            server.send(&Call::get("/oauth2/userinfo").bearer(token)).must_fail(401, "invalid_token");
        }
        app.refresh(&second.refresh).must_fail(400, "invalid_grant");
        Tokens::of(&app.refresh(&first.refresh));
    }
}

#[test]
fn ds_05_what_a_code_is_presented_for_again_and_again_is_written_down_once() {
    // red without know_end in app/token.rs.
    let server = default_server();
    let (app, person) = (App::public(server, "https://spa.test/cb", &[]), Person::add(server));
    let mut browser = Browser::new(server);
    let used = app.code(&mut browser, &person, &app.ask());
    let tokens = Tokens::of(&app.redeem(&used));
    (0..AGAIN).for_each(|_| drop(app.redeem(&used).must_fail(400, "invalid_grant")));
    assert_eq!(lines(&app, "code.misused"), 1);
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    let burnt = app.code(&mut browser, &person, &app.ask());
    let elsewhere = App { redirect: "https://spa.test/other".into(), ..app.clone() };
    elsewhere.redeem(&burnt).must_fail(400, "invalid_grant");
    (0..AGAIN).for_each(|_| drop(app.redeem(&burnt).must_fail(400, "invalid_grant")));
    assert_eq!(lines(&app, "code.misused"), 2);
}

#[test]
fn revocations_of_one_token_at_the_same_moment_all_hold() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    for which in ["access", "refresh"] {
        let tokens = app.tokens(&mut browser, &person);
        let token = if which == "access" { &tokens.access } else { &tokens.refresh };
        at_once(AGAIN, |_| drop(app.revoke(token).must_be(200)));
        assert!(!app.is_active(&tokens.access), "{which}");
        assert_eq!(app.is_active(&tokens.refresh), which == "access");
    }
}

#[test]
fn ds_05_rt_04_revocations_that_change_nothing_are_counted_by_address_and_look_alike() {
    // Red without `Counts` in server/http/oauth/revoke.rs, or where it tells what is dead from what is another's.
    let server = Server::leaked(&[
        ("PORTIERE_PROXY_TRUSTED", "127.0.0.1"),
        ("PORTIERE_LIMITS_FAILURES_BURST", "5"),
        ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1"),
    ]);
    let person = Person::add(server);
    let (public, known) = (App::public(server, "https://spa.test/cb", &[]), App::trusted(server));
    let mut browser = Browser::new(server);
    let [own, others] = [public.tokens(&mut browser, &person), known.tokens(&mut browser, &person)];
    let revoke = |app: &App, address: &str, token: &str| {
        server.send(&from(address, app.call("/oauth2/revoke", &[("token", token)])))
    };
    let told = |answer: &Answer| answer.header("ratelimit-limit").map(str::to_owned);
    assert_eq!(told(&revoke(&public, "203.0.113.40", &own.refresh).must_be(200)), None, "it ended something");
    for (at, token) in [&own.refresh, &own.access, &others.refresh, "nothing"].into_iter().enumerate() {
        let answer = revoke(&public, &format!("203.0.113.{}", 41 + at), token).must_be(200);
        assert_eq!((told(&answer).as_deref(), answer.header("ratelimit-remaining")), (Some("5"), Some("4")), "{token}");
    }
    let answers: Vec<u16> = (0..12 * nodes()).map(|_| revoke(&public, "203.0.113.50", &own.refresh).status).collect();
    assert!(answers[..5].iter().all(|status| *status == 200) && answers.contains(&429), "{answers:?}");
    assert_eq!(revoke(&public, "203.0.113.51", "nothing").status, 200, "somebody else");
    revoke(&known, "203.0.113.52", &others.refresh).must_be(200);
    for _ in 0..12 * nodes() {
        let answer = revoke(&known, "203.0.113.52", &others.refresh).must_be(200);
        assert_eq!(told(&answer), None, "one that proves who it is");
    }
    server.kill();
}
