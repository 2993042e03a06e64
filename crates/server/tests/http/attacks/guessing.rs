//! UE, BF: what a guesser learns, and how fast.

use super::passwords::slow_server;
use crate::scale::{GUESSES, scaled};
use crate::support::*;

/// What an observer sees of an answer: status, names and lengths of headers, and the body with whatever is random in
/// every page taken out.
pub(super) fn seen(answer: &Answer, page: &str) -> (u16, Vec<(String, usize)>, String) {
    let mut headers: Vec<(String, usize)> =
        answer.headers.iter().map(|(name, value)| (name.clone(), value.len())).collect();
    headers.sort();
    let mut body = answer.text();
    for random in randoms(&body).into_iter().chain(randoms(page)) {
        body = body.replace(&random, "?");
    }
    (answer.status, headers, body)
}

/// Nonces, flows, CSRF tokens and request ids of a page.
fn randoms(page: &str) -> Vec<String> {
    let long = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.');
    let mut found: Vec<String> = page.split(long).filter(|word| word.len() >= 16).map(str::to_owned).collect();
    found.sort_by_key(|word| std::cmp::Reverse(word.len()));
    found
}

#[test]
fn ue_01_unknown_disabled_and_wrong_look_the_same() {
    // red if rules/login/attempt.rs, judge, or http/pages/login.rs, sign_in, told them apart.
    let server = default_server();
    let (known, disabled) = (Person::add(server), Person::add(server));
    disabled.change(server, "disable");
    let width = known.name.len();
    let nobody = format!("{:z<width$}", "nobody");
    let app = App::web(server);
    for target in ["/login".to_owned(), app.ask().target()] {
        let answers: Vec<_> = [&known.name, &disabled.name, &nobody]
            .into_iter()
            .map(|login| {
                let mut browser = Browser::new(server);
                let page = browser.get(&target);
                let answer = browser.log_in_on(&page, login, "not the password 1");
                let mut seen = seen(&answer, &page.text());
                seen.2 = seen.2.replace(login.as_str(), "LOGIN");
                seen.2 = seen.2.replace(&format!(">{}<", login[..1].to_uppercase()), ">INITIAL<");
                (login, seen)
            })
            .collect();
        assert_eq!(answers[0].1, answers[1].1, "disabled");
        assert_eq!(answers[0].1, answers[2].1, "unknown");
    }
}

#[test]
fn ue_01_the_right_password_of_a_disabled_account_says_nothing_either() {
    // red if rules/login/attempt.rs, judge, answered a disabled user by itself.
    let server = default_server();
    let person = Person::add(server);
    person.change(server, "disable");
    let try_with = |password: &str| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        let answer = browser.log_in_on(&page, &person.name, password);
        seen(&answer, &page.text())
    };
    assert_eq!(try_with(&person.password), try_with("not the password 1"));
}

#[test]
fn ue_01_a_sign_up_says_whether_a_name_is_taken_and_nothing_of_addresses() {
    // red if app/sign_up.rs, new_person, looked for the e-mail address of somebody else.
    let server = sign_up_server();
    let person = Person::add(server);
    let attempt = |name: &str, email: &str| {
        let mut browser = Browser::new(server);
        let page = browser.get("/signup").text();
        let form = Form::find(&page, "/signup").unwrap().fill("username", name).fill("email", email);
        browser.submit(&form.fill("password", "gorse violet anvil 41")).status
    };
    assert_eq!(attempt(&person.name, ""), 422);
    assert_eq!(attempt(&unique("fresh"), &person.email), 303);
    assert_eq!(attempt(&unique("fresh"), "free@example.test"), 303);
}

/// Tries wrong passwords until one is refused unheard; how many were heard, of twenty. Each is sent as it is `dressed`.
#[track_caller]
pub(super) fn heard(server: &'static Server, logins: &[&str], dressed: impl Fn(usize, Call) -> Call) -> usize {
    let mut browser = Browser::new(server);
    let page = browser.get("/login").text();
    let form = Form::find(&page, "/login").unwrap();
    for at in 0..20 {
        let filled = form.clone().fill("login", logins[at % logins.len()]).fill("password", "wrong wrong wrong");
        let answer = browser.send(dressed(at, filled.call()));
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some());
            return at;
        }
        assert_eq!(answer.status, 422);
    }
    20
}

#[test]
fn bf_01_every_way_to_write_a_name_counts_for_one_account() {
    // red if the counter's key in app/sign_in.rs, attempt, were made of what was typed.
    let server = slow_server();
    let person = Person::add(server);
    let (upper, spaced) = (person.name.to_uppercase(), format!("  {} ", person.name));
    let wide: String = person.name.chars().map(|c| if c == 'p' { '\u{ff50}' } else { c }).collect();
    let logins = [&person.name, &person.email, &upper, &spaced, &wide].map(String::as_str);
    assert!(heard(server, &logins, |_, call| call) <= 6);
}

#[test]
fn bf_01_a_name_that_nobody_has_is_slowed_alike() {
    // red without the counter for "nobody:" in app/sign_in.rs, attempt.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let (person, nobody) = (Person::add(server), unique("nobody"));
    assert_eq!(heard(server, &[&person.name], |_, call| call), heard(server, &[&nobody], |_, call| call));
    server.kill();
}

#[test]
fn bf_01_what_cannot_be_a_name_keeps_nobody_else_waiting() {
    // red if app/sign_in.rs, attempt, gave one counter to everything that cannot be a name.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let (long, longer) = ("x".repeat(400), "x".repeat(401));
    for typed in ["", "two words\u{7}", &long, &longer] {
        assert_eq!(heard(server, &[typed], |_, call| call), 5, "{typed:?}: each counts for itself");
    }
    server.kill();
}

#[test]
fn bf_04_forwarded_headers_of_strangers_change_nothing() {
    // red if net/forwarded.rs, client_address, believed a peer that is not in proxy.trusted.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "8")]);
    let names: Vec<String> = (0..20).map(|_| unique("nobody")).collect();
    let logins: Vec<&str> = names.iter().map(String::as_str).collect();
    let forged = |at: usize, call: Call| {
        let address = format!("203.0.113.{at}");
        call.header("x-forwarded-for", &address)
            .header("x-real-ip", &address)
            .header("forwarded", &format!("for={address}"))
            .header("x-forwarded-for", "198.51.100.1")
    };
    assert!(heard(server, &logins, forged) <= 9, "the peer's own address is what counts");
    server.kill();
}

#[test]
fn bf_05_a_known_browser_is_not_locked_out_by_a_stranger() {
    // red without the device in account_key, app/sign_in.rs, attempt.
    let server = slow_server();
    let person = Person::add(server);
    let mut known = Browser::of(server, &person);
    let form = known.account_form("/account/signout");
    known.submit(&form).must_be(303);
    let mut attacker = Browser::new(server);
    let page = attacker.get("/login").text();
    let guess = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", "wrong wrong wrong");
    let statuses: Vec<u16> = (0..scaled(GUESSES)).map(|_| attacker.submit(&guess).status).collect();
    assert_eq!(statuses.last(), Some(&429));
    known.sign_in(&person);
    assert!(known.is_signed_in());
}

#[test]
fn bf_02_a_slowed_account_is_slow_at_every_door_also_for_the_right_password() {
    // red if a page that refuses an attempt unheard answered 422, as for what was typed: http/pages/account.rs; or if a door
    // had no `admit` before its hash in app/sign_in.rs.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let (screens, person) = (Screens::of(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let lines = [screens.sign_in(&person, false), screens.sign_in(&person, true)];
    let wrong = "wrong wrong wrong";
    let form = browser.account_form("/account/password").fill("current", wrong).fill("new", "teal marble oboe 77");
    let page = browser.sign_in_page().text();
    let sign_in = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", wrong);
    let change = serde_json::json!({ "current": wrong, "new": "teal marble oboe 77" });
    for call in [
        sign_in.call().cookies(&browser.jar),
        screens.call("POST", "signin", &screens.credentials(&person.name, wrong, false)),
        lines[0].call("PATCH", "password", &change),
        lines[1].call("PATCH", "password", &change).cookies(&lines[1].browser.jar),
        form.call().cookies(&browser.jar),
    ] {
        let last = (0..12).map(|_| server.send(&call)).find(|answer| answer.header("retry-after").is_some());
        assert_eq!(last.map(|answer| answer.status), Some(429), "{call:?}");
    }
    let mut stranger = Browser::new(server);
    let page = stranger.get("/login");
    stranger.log_in_on(&page, &person.name, &person.password).must_be(429);
    server
        .send(&screens.call("POST", "signin", &screens.credentials(&person.name, &person.password, false)))
        .must_be(429);
    let form = form.fill("current", &person.password);
    browser.submit(&form).must_be(429);
    server.kill();
}

#[test]
fn bf_success_clears_the_count() {
    // red without ForgetAttempts in rules/login/attempt.rs, judge.
    let server = default_server();
    let person = Person::add(server);
    for _ in 0..4 {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        (0..3).for_each(|_| drop(browser.log_in_on(&page, &person.name, "wrong wrong wrong").must_be(422)));
        browser.log_in_on(&page, &person.name, &person.password).must_be(303);
    }
}

#[test]
fn bf_04_a_network_that_is_listed_is_counted_for_no_wrong_password_and_its_accounts_are() {
    // red without the question in http/visit.rs, browser.
    let settings = [
        ("PORTIERE_LIMITS_EXEMPT_ADDRESSES", "127.0.0.9/32"),
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "4"),
        ("PORTIERE_THROTTLE_NETWORK_FACTOR", "1"),
    ];
    let server = Server::leaked(&settings);
    let guess = |host: u8, login: &str| {
        let mut browser = Browser::new(server);
        let page = browser.send(Call::get("/login").from(host)).text();
        let form = Form::find(&page, "/login").unwrap().fill("login", login).fill("password", "wrong wrong wrong");
        browser.send(form.call().from(host)).status
    };
    let of = |host: u8| (0..8).map(|_| guess(host, &unique("nobody"))).collect::<Vec<_>>();
    assert!(of(9).iter().all(|status| *status == 422));
    // Nor for the network around it.
    assert_eq!(of(8)[..6], [422, 422, 422, 422, 422, 429]);
    let person = Person::add(server);
    assert!((0..8).map(|_| guess(9, &person.name)).any(|status| status == 429));
}
