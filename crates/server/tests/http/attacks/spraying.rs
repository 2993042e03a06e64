//! BF-07, RC-11: guesses that are spread, over names, over addresses, and over the same moment.

use super::guessing::heard;
use crate::scale::RACERS;
use crate::support::*;
use std::time::Instant;

/// Failures of an address that cost nothing.
const FREE: usize = 8;
/// Seconds until one of them is forgiven.
const LEAK: u64 = 30;

/// Where many wait for a few, and wait as long as it takes.
fn server() -> &'static Server {
    Server::leaked(&[("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "8"), ("PORTIERE_HASH_MAX_WAIT", "60s")])
}

/// How many guesses of an address, or of somebody, may have been heard since then: each node knows its own attempts.
fn most(free: usize, since: Instant) -> usize {
    nodes() * (free + 1) + usize::try_from(since.elapsed().as_secs() / LEAK).unwrap()
}

/// How many were heard; all others were told to come later.
#[track_caller]
fn heard_of(statuses: &[u16]) -> usize {
    assert!(statuses.iter().all(|status| [422, 429, 503].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 422).count()
}

#[test]
fn rc_11_guesses_at_many_names_at_once_are_heard_as_often_as_in_turn() {
    // red without `beside` in rules/login/throttle.rs, Seen::admits; or if app/sign_in.rs, count, asked for it after the
    // counters were read.
    let server = server();
    let mut browser = Browser::new(server);
    let page = browser.get("/login").text();
    let form = Form::find(&page, "/login").unwrap().fill("password", "wrong wrong wrong");
    let names: Vec<String> = (0..RACERS).map(|_| unique("nobody")).collect();
    let began = Instant::now();
    // From the first failure on: before it nobody knows a guesser from a house full of people.
    assert_eq!(browser.clone().submit(&form.clone().fill("login", &unique("nobody"))).status, 422);
    let statuses = at_once(RACERS, |at| browser.clone().submit(&form.clone().fill("login", &names[at])).status);
    let heard = heard_of(&statuses);
    assert!((1..=most(FREE, began)).contains(&heard), "{heard} of {RACERS} were heard: {statuses:?}");
    server.kill();
}

#[test]
fn rc_11_people_behind_one_address_who_sign_in_at_once_are_no_guessers() {
    // red if app/sign_in.rs, admit, refused whoever finds a crowd in place of waiting.
    let server = server();
    let people: Vec<Person> = (0..3 * FREE).map(|_| Person::add(server)).collect();
    // One of them has mistyped: from then on they wait for one another.
    let mut mistyped = Browser::new(server);
    let page = mistyped.get("/login");
    assert_eq!(mistyped.log_in_on(&page, &people[0].name, "not the password").status, 422);
    let statuses = at_once(people.len(), |at| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &people[at].name, &people[at].password).status
    });
    assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
    server.kill();
}

/// Guesses at user codes, all at once, of these browsers in turn.
#[track_caller]
fn guess_codes(browsers: &[Browser]) -> Vec<u16> {
    let forms: Vec<Form> = browsers
        .iter()
        .map(|browser| Form::find(&browser.clone().get("/device").must_be(200).text(), "/device").unwrap())
        .collect();
    at_once(RACERS, |at| {
        let (mut browser, form) = (browsers[at % browsers.len()].clone(), forms[at % forms.len()].clone());
        browser.submit(&form.fill("user_code", "BCDF-GHJK")).status
    })
}

#[test]
fn rc_11_user_codes_guessed_at_once_are_heard_as_often_as_in_turn() {
    // red without the stake in app/device.rs, look_up: per person, and per address of several people.
    let server = server();
    let one = [Browser::of(server, &Person::add(server))];
    let began = Instant::now();
    let heard = heard_of(&guess_codes(&one));
    assert!((1..=most(5, began)).contains(&heard), "{heard} of one person");
    let people: Vec<Browser> = (0..5).map(|_| Browser::of(server, &Person::add(server))).collect();
    let more = heard_of(&guess_codes(&people));
    assert!(heard + more <= most(FREE, began), "{heard} and {more} from one address");
    server.kill();
}

#[test]
fn rfc8628_5_1_a_guess_at_a_user_code_counts_whether_the_answer_is_awaited_or_not() {
    // red without to_the_end in app/device.rs, device_find, but on a machine that counts a guess before it hears of the end.
    let server = server();
    let mut browser = Browser::of(server, &Person::add(server));
    let page = browser.get("/device").must_be(200).text();
    let guess = Form::find(&page, "/device").unwrap().fill("user_code", "BCDF-GHJK");
    let call = guess.call().header("origin", &server.issuer).cookies(&browser.jar);
    // Where the machine is busy, most are given up before their session is read: these have guessed nothing.
    for _ in 0..40 * nodes() {
        call.abandon(server.port);
    }
    let heard = (0..).take_while(|_| browser.submit(&guess).status != 429).count();
    assert!(heard < 5 * nodes(), "{heard} were heard after those that nobody waited for");
    server.kill();
}

#[test]
fn bf_07_one_guess_from_each_address_of_a_network_is_slowed() {
    // red without the networks in rules/login/throttle.rs, Policy::shared_by.
    let settings = [("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "4"), ("PORTIERE_THROTTLE_NETWORK_FACTOR", "2")];
    let server = Server::leaked(&settings);
    let person = Person::add(server);
    let mut known = Browser::of(server, &person);
    let names: Vec<String> = (0..20).map(|_| unique("nobody")).collect();
    let logins: Vec<&str> = names.iter().map(String::as_str).collect();
    let from_each = |at: usize, call: Call| call.from(10 + u8::try_from(at).unwrap());
    let heard = heard(server, &logins, from_each);
    assert!((9..=10).contains(&heard), "{heard} of twenty");
    let page = Browser::new(server).get("/login").text();
    assert!(Form::find(&page, "/login").is_some(), "whoever asks for the form alone is not kept away");
    known.sign_in(&person);
    server.kill();
}

#[test]
fn bf_07_networks_are_not_counted_where_an_operator_says_so() {
    // red if the factor 0 were read as a network without free failures: rules/login/throttle.rs, Policy::shared_by.
    let settings = [("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "4"), ("PORTIERE_THROTTLE_NETWORK_FACTOR", "0")];
    let server = Server::leaked(&settings);
    let names: Vec<String> = (0..20).map(|_| unique("nobody")).collect();
    let logins: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(heard(server, &logins, |at, call| call.from(10 + u8::try_from(at).unwrap())), 20);
    server.kill();
}
