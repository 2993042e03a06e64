//! CO, PK: authorization codes and their proof keys.

use super::written_down::{sid, told};
use crate::scale::{SAMPLED_SECRETS, scaled};
use crate::support::*;
use std::collections::HashSet;

fn setting() -> (App, Person, Browser) {
    let server = default_server();
    (App::trusted(server), Person::add(server), Browser::new(server))
}

#[test]
fn co_01_only_the_right_client_in_time_gets_tokens() {
    // red without a line of `bindings`, or `expires.has_come`, in rules/oauth/code.rs, redeem.
    let server = short_server();
    let (right, wrong, person) = (App::trusted(server), App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for (redeemer, late) in [(&wrong, false), (&wrong, true), (&right, true)] {
        let code = right.code(&mut browser, &person, &right.ask());
        if late {
            std::thread::sleep(std::time::Duration::from_millis(5_050));
        }
        let mut call = redeemer.clone();
        call.redirect.clone_from(&right.redirect);
        call.redeem(&code).must_fail(400, "invalid_grant");
    }
    // In time is within five seconds, which a machine that stands still may miss.
    assert!((0..5).any(|_| right.redeem(&right.code(&mut browser, &person, &right.ask())).status == 200));
}

/// What is sent with a code, but for who sends it.
fn exchange<'a>(app: &'a App, code: &'a str) -> [(&'a str, &'a str); 4] {
    [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", &app.redirect), ("code_verifier", VERIFIER)]
}

#[test]
fn co_02_a_code_in_foreign_hands_is_burnt() {
    // red without Change::BurnCode for another client in rules/oauth/code.rs.
    let (one, person, mut browser) = setting();
    let mut two = App::trusted(one.server);
    two.redirect.clone_from(&one.redirect);
    let code = one.code(&mut browser, &person, &one.ask());
    two.redeem(&code).must_fail(400, "invalid_grant");
    one.redeem(&code).must_fail(400, "invalid_grant");
}

#[test]
fn co_02_somebody_without_proof_of_a_client_burns_nothing() {
    // red if the code were looked at before prove_client in app/token.rs, token.
    let (app, person, mut browser) = setting();
    let code = app.code(&mut browser, &person, &app.ask());
    let proof = [("client_id", app.id.as_str()), ("client_secret", "not the secret of this client, certainly")];
    let fields = [&exchange(&app, &code)[..], &proof].concat();
    app.server.post("/oauth2/token", &fields).must_fail(401, "invalid_client");
    Tokens::of(&app.redeem(&code));
}

#[test]
fn co_04_a_second_use_revokes_all_that_the_first_gave() {
    // red without Change::RevokeFamily for a redeemed code in rules/oauth/code.rs, or if a refusal lost its changes.
    let (app, person, mut browser) = setting();
    let code = app.code(&mut browser, &person, &app.ask());
    let first = Tokens::of(&app.redeem(&code));
    let second = Tokens::of(&app.refresh(&first.refresh));
    // Red where the bindings are looked at behind the use: whoever reads a code in an address would end what its owner got.
    let wrong = "a-verifier-that-is-another-one-but-as-long-as-any";
    let grant = [("grant_type", "authorization_code"), ("code", &*code), ("redirect_uri", &*app.redirect)];
    let guessed = app.post("/oauth2/token", &[&grant[..], &[("code_verifier", wrong)]].concat());
    let stranger = App { redirect: app.redirect.clone(), ..App::trusted(app.server) };
    for answer in [guessed, stranger.redeem(&code)] {
        answer.must_fail(400, "invalid_grant");
        assert!(app.is_active(&second.access) && app.is_active(&second.refresh));
    }
    app.redeem(&code).must_fail(400, "invalid_grant");
    for token in [&first.access, &second.access, &second.refresh] {
        assert!(!app.is_active(token));
    }
    app.server.send(&Call::get("/oauth2/userinfo").bearer(&first.access)).must_fail(401, "invalid_token");
    app.refresh(&second.refresh).must_fail(400, "invalid_grant");
    // red without the session in rules/oauth/code.rs, misuse.
    let lines = told(app.server, "code.misused", ["--client", &app.id]);
    assert!(!lines.is_empty() && lines.iter().all(|line| line["session"] == sid(&browser)), "{lines:?}");
}

#[test]
fn co_07_who_ends_a_sign_in_is_who_began_it() {
    // red without the flow cookie in app/flow.rs, open_flow.
    let (app, person, _) = setting();
    let server = app.server;
    let (mut attacker, mut victim) = (Browser::new(server), Browser::new(server));
    let page = attacker.get(&app.ask().target()).text();
    let login = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", &person.password);
    victim.get("/login");
    assert_eq!(victim.submit(&login).must_be(403).location(), None);
    let flow = login.value("flow").to_owned();
    for path in ["/login", "/continue"] {
        victim.get(&format!("{path}?flow={flow}")).must_be(403);
    }
    assert!(!victim.is_signed_in() && !attacker.is_signed_in());
    let landed = attacker.get(&app.ask().with("prompt", "none").target()).landed();
    assert_eq!(landed["error"], "login_required");
}

#[test]
fn co_07_a_consent_page_is_of_one_browser_and_one_session() {
    // red without the flow cookie in app/flow.rs, open_flow; or without flow.asks in http/pages/login.rs, consent.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let (mut attacker, mut victim) = (Browser::of(server, &person), Browser::of(server, &person));
    let page = attacker.get(&app.ask().target()).text();
    let consent = Form::find(&page, "/consent").unwrap().fill("decision", "allow");
    victim.submit(&consent).must_be(403);
    let own = victim.get(&app.ask().target()).text();
    let own = Form::find(&own, "/consent").unwrap();
    let mixed = consent.clone().fill("csrf", own.value("csrf"));
    victim.submit(&mixed).must_be(403);
    // The same browser, in which somebody else has signed in since.
    let other = Person::add(server);
    attacker.sign_in(&other);
    let own = attacker.get(&app.ask().target()).text();
    let own = Form::find(&own, "/consent").unwrap();
    attacker.submit(&consent.fill("csrf", own.value("csrf"))).must_be(403);
    attacker.submit(&own.fill("decision", "allow")).must_be(303);
}

#[test]
fn co_08_a_code_travels_in_the_body_of_a_post() {
    // red without the check of the query in server/http/extract.rs, posted.
    let (app, person, mut browser) = setting();
    let code = app.code(&mut browser, &person, &app.ask());
    let fields = exchange(&app, &code);
    for query in [format!("code={code}"), format!("x=y&code_verifier={VERIFIER}"), "client%5Fsecret=x".into()] {
        app.post(&format!("/oauth2/token?{query}"), &fields).must_fail(400, "invalid_request");
    }
    app.server.get(&format!("/oauth2/token?code={code}")).must_be(405);
    Tokens::of(&app.redeem(&code));
}

/// What nobody here reads is ignored, and what has no value was not sent (RFC 6749 §3.1, §3.2): libraries mark their requests in
/// the query.
#[test]
fn rfc6749_3_2_a_query_of_which_nobody_here_knows_is_ignored() {
    const MARKS: &str = "?client-request-id=0193&ngsw-bypass=&scope=";
    let (app, person, mut browser) = setting();
    let code = app.code(&mut browser, &person, &app.ask());
    let fields = exchange(&app, &code);
    let tokens = Tokens::of(&app.post(&format!("/oauth2/token{MARKS}"), &fields));
    for path in ["introspect", "revoke"] {
        app.post(&format!("/oauth2/{path}{MARKS}"), &[("token", &tokens.access)]).must_be(200);
    }
    app.server.post(&format!("/oauth2/authorize{MARKS}"), &app.ask().pairs()).must_be(303);
    app.server.post(&format!("/oauth2/logout{MARKS}"), &[("client_id", &app.id)]).must_be(303);
}

#[test]
fn pk_01_a_challenge_wants_its_verifier() {
    // red without `verifies` in rules/oauth/code.rs.
    let server = default_server();
    let public = App::public(server, "https://spa.test/cb", &[]);
    let (app, person, mut browser) = setting();
    for app in [&app, &public] {
        let code = app.code(&mut browser, &person, &app.ask());
        let fields = [("grant_type", "authorization_code"), ("code", &code), ("redirect_uri", &app.redirect)];
        app.post("/oauth2/token", &fields).must_fail(400, "invalid_grant");
    }
}

#[test]
fn pk_02_no_challenge_takes_no_verifier() {
    // red without the second half of `verifies` (None, Some) in rules/oauth/code.rs.
    let server = default_server();
    let person = Person::add(server);
    let app = App::add(server, Grants::Usual, &["--trusted", "--pkce", "optional"]);
    let mut browser = Browser::new(server);
    let ask = app.ask().without("code_challenge").without("code_challenge_method");
    app.redeem(&app.code(&mut browser, &person, &ask)).must_fail(400, "invalid_grant");
    let code = app.code(&mut browser, &person, &ask);
    let fields = [("grant_type", "authorization_code"), ("code", &code), ("redirect_uri", &app.redirect)];
    Tokens::of(&app.post("/oauth2/token", &fields));
}

#[test]
fn pk_04_methods_and_verifiers() {
    // red without `pkce` in rules/oauth/authorize.rs, CHECKS; or the length and alphabet in rules/oauth/code.rs.
    let (app, person, mut browser) = setting();
    browser.sign_in(&person);
    for method in ["plain", "s256", "S256 ", " S256", "S512", "S256 plain"] {
        let landed = browser.get(&app.ask().with("code_challenge_method", method).target()).landed();
        assert_eq!(landed["error"], "invalid_request", "{method}");
    }
    let long = "a".repeat(129);
    for verifier in [&VERIFIER[..42], long.as_str(), &VERIFIER.replace('-', "+"), CHALLENGE] {
        let challenge = encode(sha256(verifier));
        let challenge = if verifier == CHALLENGE { CHALLENGE.to_owned() } else { challenge };
        let code = app.code(&mut browser, &person, &app.ask().with("code_challenge", &challenge));
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &app.redirect),
            ("code_verifier", verifier),
        ];
        app.post("/oauth2/token", &fields).must_fail(400, "invalid_grant");
    }
}

fn sha256(text: &str) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(text.as_bytes()).to_vec()
}

#[test]
fn pk_05_no_two_secrets_are_alike_and_no_bit_leans() {
    // red with a constant or short source in app/entropy.rs.
    let (app, person, mut browser) = setting();
    browser.sign_in(&person);
    let count = scaled(SAMPLED_SECRETS);
    let codes: HashSet<String> =
        (0..count).map(|_| browser.get(&app.ask().target()).landed().remove("code").unwrap()).collect();
    assert_eq!(codes.len(), count);
    let jtis: HashSet<String> = (0..count)
        .map(|_| {
            let answer = app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", "api")]);
            jwt(&Tokens::of(&answer).access).claims["jti"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(jtis.len(), count);
    // The secret half of a code, six bits a character: each bit is set about half the time.
    let tails: Vec<Vec<u8>> =
        codes.iter().map(|code| code.bytes().rev().skip(1).take(40).map(sextet).collect()).collect();
    let expected = count as f64 / 2.0;
    for place in 0..40 {
        for bit in 0..6 {
            let set = tails.iter().filter(|tail| tail[place] >> bit & 1 == 1).count() as f64;
            // Six standard deviations: once in about a billion honest runs.
            assert!((set - expected).abs() < 6.0 * (count as f64).sqrt() / 2.0, "place {place}, bit {bit}: {set}");
        }
    }
}

fn sextet(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    }
}
