//! RC-11, BF: whoever hangs up in the middle of an attempt is counted as if they had stayed, and whoever hangs up before it
//! has begun, as if they had not come. Hashes are made slow here, so that there is a middle.

use super::guessing::heard;
use crate::monitoring::figures::{SERVED, samples};
use crate::support::*;
use serde_json::{Value, json};

/// Failures of an address that are heard.
const HEARD: usize = 9;

/// With as many failures of an address for nothing.
fn server(free: &str) -> &'static Server {
    Server::leaked(&settings(free))
}

fn settings(free: &str) -> [(&str, &str); 5] {
    [
        ("PORTIERE_SIGNUP_ENABLED", "true"),
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", free),
        pensive(),
        ("PORTIERE_THROTTLE_BASE_DELAY", "10m"),
        SERVED,
    ]
}

/// Every door that takes a password, as `person` in `browser` would use it with that password.
fn doors(screens: &Screens, browser: &mut Browser, person: &Person, password: &str) -> [(&'static str, Call); 2] {
    let page = browser.get("/login").must_be(200).text();
    let form = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", password);
    let api = screens.call("POST", "signin", &screens.credentials(&person.name, password, false));
    [("/login", form.call().cookies(&browser.jar)), ("/api/v1/signin", api)]
}

/// How many events of that name there are.
#[track_caller]
fn events(server: &Server, name: &str) -> usize {
    let told: Value =
        serde_json::from_str(&server.must(&["events", "list", "--limit", "10000", "--json"], "")).unwrap();
    told.as_array().unwrap().iter().filter(|event| event["event"] == name).count()
}

/// How many passwords a server with [`SERVED`] has begun to hash.
pub(super) fn begun(server: &Server) -> f64 {
    hashing(server, &["running", "done_total"])
}

/// How many passwords are at these stages.
fn hashing(server: &Server, stages: &[&str]) -> f64 {
    let told = samples(server);
    stages.iter().map(|stage| told[&format!("portiere_hashing_{stage}")]).sum()
}

/// Sends an attempt and hangs up in the middle of its hash; `false` where the answer was there first: it was refused unheard,
/// or this process stood still.
#[track_caller]
fn abandon(server: &Server, attempt: &Call) -> bool {
    let before = begun(server);
    attempt.abandon_once(server.port, || begun(server) > before)
}

/// Waits until no attempt is under way any more: each holds its place for as long.
#[track_caller]
fn let_end(server: &Server) {
    until("every attempt is judged", || samples(server)["portiere_admission_running{lane=\"passwords\"}"] == 0.0);
}

/// Makes so many attempts and abandons each; each comes to its event all the same. How many were abandoned in time.
#[track_caller]
fn must_come_to(server: &Server, name: &str, count: usize, attempt: impl Fn(usize) -> Call) -> usize {
    let before = events(server, name);
    let abandoned = (0..count).filter(|at| abandon(server, &attempt(*at))).count();
    let_end(server);
    assert_eq!(events(server, name), before + count, "{name}, {abandoned} abandoned");
    abandoned
}

/// Whether the address of these tests is slowed now.
#[track_caller]
fn is_slowed(server: &'static Server) -> bool {
    heard(server, &[&unique("nobody")], |_, call| call) == 0
}

#[test]
fn bf_04_wrong_passwords_count_for_the_address_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/sign_in.rs, sign_in, or in app/api.rs, enter.
    for door in 0..2 {
        let server = server("8");
        let screens = Screens::of(server);
        let people: Vec<Person> = (0..3).map(|_| Person::add(server)).collect();
        let abandoned = must_come_to(server, "signin.failed", HEARD, |at| {
            let calls = doors(&screens, &mut Browser::new(server), &people[at % 3], "wrong wrong wrong");
            calls.map(|(_, call)| call).into_iter().nth(door).unwrap()
        });
        assert!(abandoned > 0 && is_slowed(server), "door {door}: {abandoned}");
        server.kill();
    }
}

#[test]
fn bf_01_wrong_passwords_count_for_the_account_whether_the_answer_is_awaited_or_not() {
    // red without CountAttempt in rules/login/attempt.rs, begin: an attempt is counted before its hash.
    let server = server("1000");
    let screens = Screens::of(server);
    let (person, control) = (Person::add(server), Person::add(server));
    let free = heard(server, &[&control.name], |_, call| call);
    assert_eq!(free, 5, "those that cost nothing");
    let attempts = (0..3 * free).map(|at| {
        let calls = doors(&screens, &mut Browser::new(server), &person, "wrong wrong wrong");
        abandon(server, &calls[at % 2].1)
    });
    // Those that cost something are refused at once.
    let abandoned = attempts.filter(|abandoned| *abandoned).count();
    assert!((1..=free).contains(&abandoned), "{abandoned} of {free}");
    assert_eq!(heard(server, &[&person.name], |_, call| call), 0);
    let_end(server);
    assert_eq!(events(server, "signin.failed"), 2 * free);
    server.kill();
}

#[test]
fn bf_a_right_password_clears_the_count_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/sign_in.rs, sign_in, or in app/api.rs, enter: the count that was taken before the hash would stay.
    let server = server("1000");
    let screens = Screens::of(server);
    let (person, control) = (Person::add(server), Person::add(server));
    let free = heard(server, &[&control.name], |_, call| call);
    let mut abandoned = [0, 0];
    for at in 0..2 * free {
        abandoned[at % 2] += must_come_to(server, "session.started", 1, |_| {
            let calls = doors(&screens, &mut Browser::new(server), &person, &person.password);
            calls.map(|(_, call)| call).into_iter().nth(at % 2).unwrap()
        });
    }
    assert!(!abandoned.contains(&0), "{abandoned:?}");
    Browser::of(server, &person).get("/account").must_be(200);
    server.kill();
}

#[test]
fn who_hangs_up_while_their_password_waits_leaves_the_queue_and_tried_nothing() {
    // red without on_behalf_of in app/pledge.rs, to_the_end: it would be hashed in its turn, and counted.
    let server = Server::leaked(&[&settings("1000")[..], &[("PORTIERE_HASH_THREADS", "1")]].concat());
    if nodes() > 1 {
        server.only(0);
    }
    let screens = Screens::of(server);
    let free = heard(server, &[&Person::add(server).name], |_, call| call);
    for door in 0..2 {
        let before = events(server, "signin.failed");
        let tried: Vec<_> = (0..10).map(|_| Person::add(server)).collect();
        let heard_of = tried.iter().take_while(|person| !leaves_the_queue(&screens, person, door)).count();
        let left = tried.get(heard_of).expect("one of ten");
        assert_eq!(events(server, "signin.failed"), before + heard_of, "door {door}");
        assert_eq!(heard(server, &[&left.name], |_, call| call), free, "door {door}: it cost nothing");
    }
    server.kill();
}

/// Guesses at a password while another is hashed, and hangs up; `false` where its turn came first, since this process stood
/// still.
#[track_caller]
fn leaves_the_queue(screens: &Screens, person: &Person, door: usize) -> bool {
    let server = screens.app.server;
    let call = doors(screens, &mut Browser::new(server), person, "wrong wrong wrong")[door].1.clone();
    let (done, withdrawn) = (begun(server), hashing(server, &["withdrawn_total"]));
    std::thread::scope(|scope| {
        scope.spawn(|| Person::stranger().added(server));
        until("a password is hashed", || begun(server) > done);
        call.abandon_once(server.port, || hashing(server, &["waiting"]) > 0.0);
    });
    let_end(server);
    hashing(server, &["withdrawn_total"]) > withdrawn
}

/// Whether one attempt was abandoned in time at last: `attempt` says how many were, and is made anew where it was none.
fn at_last(mut attempt: impl FnMut() -> usize) -> bool {
    (0..5).any(|_| attempt() > 0)
}

/// Asks for another password of somebody who is signed in, at either door.
fn change(signed_in: &(Browser, Line), door: usize, current: &str) -> Call {
    let (browser, line) = signed_in;
    let new = "teal marble oboe 77";
    match door {
        0 => {
            let form = browser.clone().account_form("/account/password").fill("current", current).fill("new", new);
            form.call().cookies(&browser.jar)
        }
        _ => line.call("PATCH", "password", &json!({ "current": current, "new": new })),
    }
}

#[test]
fn bf_04_guesses_at_the_current_password_count_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/account.rs, change_password, or in app/api.rs, change_account_password.
    for door in 0..2 {
        let server = server("8");
        let screens = Screens::of(server);
        let people: Vec<_> = (0..3)
            .map(|_| {
                let person = Person::add(server);
                (Browser::of(server, &person), screens.sign_in(&person, false))
            })
            .collect();
        let guess = |at: usize| change(&people[at % 3], door, "wrong wrong wrong");
        let abandoned = must_come_to(server, "signin.failed", HEARD, guess);
        assert!(abandoned > 0 && is_slowed(server), "door {door}: {abandoned}");
        server.kill();
    }
}

#[test]
fn bf_a_right_current_password_leaves_no_count_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/account.rs, change_password, or in app/api.rs, change_account_password.
    for door in 0..2 {
        let server = server("8");
        let screens = Screens::of(server);
        let abandoned = at_last(|| {
            let person = Person::add(server);
            let signed_in = (Browser::of(server, &person), screens.sign_in(&person, false));
            let abandoned = must_come_to(server, "user.password", 1, |_| change(&signed_in, door, &person.password));
            let mut changed = Browser::new(server);
            let page = changed.get("/login");
            changed.log_in_on(&page, &person.name, "teal marble oboe 77").must_be(303);
            abandoned
        });
        assert!(abandoned, "door {door}");
        server.kill();
    }
}

#[test]
fn ds_05_a_sign_up_goes_on_to_its_end_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/sign_up.rs, sign_up, or in app/api.rs, enroll: its hash would be had for nothing.
    let server = server("8");
    let screens = Screens::of(server);
    let sign_up = |door: usize| {
        let (name, password) = (unique("new"), "gorse violet anvil 41");
        let mut browser = Browser::new(server);
        let call = match door {
            0 => {
                let page = browser.get("/signup").must_be(200).text();
                let form = Form::find(&page, "/signup").unwrap().fill("username", &name).fill("email", "");
                form.fill("password", password).call().cookies(&browser.jar)
            }
            _ => {
                let body = json!({ "client_id": screens.app.id, "username": name, "password": password });
                screens.call("POST", "signup", &body)
            }
        };
        let abandoned = must_come_to(server, "user.added", 1, |_| call.clone());
        let page = browser.get("/login");
        browser.log_in_on(&page, &name, password).must_be(303);
        abandoned
    };
    for door in 0..2 {
        assert!(at_last(|| sign_up(door)), "door {door}");
    }
    server.kill();
}
