//! PX-01, BF-04: whose address counts, with a proxy in front. Every address of 127.0.0.0/8 is this machine's own, so
//! 127.0.0.1 is the proxy that is listed, and the others are strangers.

use super::guessing::heard;
use crate::support::*;

/// Failures of one address that are heard: those that cost nothing, and the one that then costs a wait.
const HEARD: usize = 9;
/// What `heard` gives when nothing slows it.
const UNSLOWED: usize = 20;

fn server(header: &str) -> &'static Server {
    Server::leaked(&[
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "8"),
        ("PORTIERE_PROXY_TRUSTED", "127.0.0.1,10.0.0.0/8"),
        ("PORTIERE_PROXY_HEADER", header),
    ])
}

/// Guesses at names that nobody has, a new one each time, so that only the address counts.
#[track_caller]
fn guesses(server: &'static Server, dressed: impl Fn(usize, Call) -> Call) -> usize {
    let names: Vec<String> = (0..UNSLOWED).map(|_| unique("nobody")).collect();
    heard(server, &names.iter().map(String::as_str).collect::<Vec<_>>(), dressed)
}

/// The same, each guess with that value of a header, in which `#` is another number each time.
#[track_caller]
fn guesses_with(server: &'static Server, name: &str, value: &str) -> usize {
    guesses(server, |at, call| call.header(name, &value.replace('#', &at.to_string())))
}

#[test]
fn bf_04_behind_a_listed_proxy_each_client_counts_for_itself() {
    // red if net/forwarded.rs, client_address, gave the peer's own address for a listed proxy.
    let server = server("x-forwarded-for");
    assert_eq!(guesses_with(server, "x-forwarded-for", "203.0.113.1"), HEARD);
    assert_eq!(guesses_with(server, "x-forwarded-for", "203.0.113.1"), 0);
    assert_eq!(guesses_with(server, "x-forwarded-for", "203.0.113.2"), HEARD, "another client of the same proxy");
    assert_eq!(guesses_with(server, "x-forwarded-for", "198.51.100.#"), UNSLOWED, "as many clients as guesses");
    server.kill();
}

#[test]
fn bf_04_what_a_client_writes_left_of_its_address_changes_nothing() {
    // red without `.rev()` in net/forwarded.rs, client_address.
    let server = server("x-forwarded-for");
    for (value, own) in [
        ("198.51.100.#, 203.0.113.1", "203.0.113.1"),
        ("10.0.0.#, 203.0.113.2", "203.0.113.2"),
        ("198.51.100.#, 203.0.113.3, 10.0.0.7", "203.0.113.3"),
        ("198.51.100.#, unknown, 203.0.113.4", "203.0.113.4"),
        ("203.0.113.5:40#", "203.0.113.5"),
        ("::ffff:203.0.113.6", "203.0.113.6"),
        // Bytes that are no ASCII: red where a line of them is not read at all.
        ("é#, 203.0.113.8", "203.0.113.8"),
    ] {
        assert_eq!(guesses_with(server, "x-forwarded-for", value), HEARD, "{value}");
        assert_eq!(guesses_with(server, "x-forwarded-for", own), 0, "{value} is {own}");
    }
    let lines = |at: usize, call: Call| {
        let forged = format!("198.51.100.{at}");
        call.header("x-forwarded-for", &forged)
            .header("x-real-ip", &forged)
            .header("forwarded", &format!("for={forged}"))
            .header("x_forwarded_for", &forged)
            .header("x-client-ip", &forged)
            .header("x-forwarded-for", "203.0.113.7")
    };
    assert_eq!(guesses(server, lines), HEARD, "several lines are one list");
    // Whom the proxy does not name is not the proxy, which may see more. Red without `unnamed` in admission, trusts.
    let told = |call: Call| server.send(&call).must_be(200).json();
    let ready = serde_json::json!({ "status": "ready" });
    assert_eq!(told(Call::get("/readyz").header("x-forwarded-for", "unknown")), ready);
    // Of several nodes, the one that was asked knows.
    let warns = |_| told(Call::get("/readyz"))["warnings"].to_string().contains("without the address of a client");
    assert!((0..4).any(warns));
    server.kill();
}

#[test]
fn bf_04_a_subscriber_has_one_counter_for_all_of_its_addresses() {
    // red without the /64 in net/address.rs, AddressKey::of.
    let server = server("x-forwarded-for");
    assert_eq!(guesses_with(server, "x-forwarded-for", "2001:db8:0:1::#"), HEARD);
    assert_eq!(guesses_with(server, "x-forwarded-for", "[2001:db8:0:1:ffff:ffff:ffff:#]:443"), 0);
    assert_eq!(guesses_with(server, "x-forwarded-for", "2001:db8:0:2::#"), HEARD, "the neighbor");
    server.kill();
}

#[test]
fn bf_04_the_proxys_own_address_is_never_counted() {
    // red if the address of a visit without a key were counted: server/http/visit.rs, browser.
    let server = server("x-forwarded-for");
    assert_eq!(guesses(server, |_, call| call), UNSLOWED, "nobody was named");
    for value in ["unknown", "", "203.0.113.1, _hidden", "127.0.0.1' OR 1=1", "10.0.0.9"] {
        assert_eq!(guesses_with(server, "x-forwarded-for", value), UNSLOWED, "{value:?}");
    }
    assert_eq!(guesses_with(server, "forwarded", "for=203.0.113.1"), UNSLOWED, "that header names nobody here");
    server.kill();
}

#[test]
fn px_01_a_peer_that_is_not_listed_is_counted_itself_and_shows() {
    // red without the look at the list in net/forwarded.rs, client_address, or without the store in http/front.rs.
    for (header, name, value) in
        [("x-forwarded-for", "x-forwarded-for", "203.0.113.#"), ("forwarded", "forwarded", "for=203.0.113.#")]
    {
        let server = server(header);
        let warnings = || server.get("/readyz").must_be(200).json()["warnings"].as_array().unwrap().len();
        assert_eq!(guesses_with(server, name, &value.replace('#', "1")), HEARD);
        assert_eq!(warnings(), 0, "a listed proxy may forward");
        assert_eq!(guesses(server, |_, call| call.from(2)), HEARD);
        let forged = |at: usize, call: Call| call.header(name, &value.replace('#', &at.to_string()));
        assert_eq!(warnings(), 0);
        assert_eq!(guesses(server, |at, call| forged(at, call).from(2)), 0, "{name} does not make somebody else of it");
        assert_eq!(guesses(server, |at, call| forged(at, call).from(3)), HEARD);
        assert_eq!(warnings(), 1, "a forgotten proxy is told about");
        // Red without `untrusted_forwarding` in admission, trusts.
        let told = |call: Call| server.send(&call.from(2)).must_be(200).json();
        assert_eq!(
            told(forged(1, Call::get("/readyz"))),
            serde_json::json!({ "status": "ready" }),
            "not to its strangers"
        );
        assert!(told(Call::get("/readyz")).get("warnings").is_some());
        assert_eq!(guesses_with(server, name, &value.replace('#', "2")), HEARD, "nor did its lies count for others");
        server.kill();
    }
}

#[test]
fn px_01_the_standard_header_is_read_where_it_is_the_one_and_then_alone() {
    // red without the match on proxies.header in net/forwarded.rs, client_address.
    let server = server("forwarded");
    for (value, own) in [
        ("for=203.0.113.1;proto=https;by=10.0.0.1", "for=203.0.113.1"),
        ("for=198.51.100.#, For=203.0.113.2;host=evil.test", "for=203.0.113.2"),
        ("for=198.51.100.#;proto=http, for=203.0.113.3, for=10.0.0.3", "for=203.0.113.3"),
        ("for=\"203.0.113.4:40#\"", "for=203.0.113.4"),
        ("for=\"[2001:db8:0:1::#]:443\"", "for=\"[2001:db8:0:1::ffff]\""),
        // What the proxy quoted is the client's: red without `!quoted` in net/forwarded.rs, unquoted.
        ("for=203.0.113.6;host=\"a;for=198.51.100.#;b\"", "for=203.0.113.6"),
        ("for=203.0.113.7;host=\"a,for=198.51.100.#;b\"", "for=203.0.113.7"),
        ("for=é#, for=203.0.113.8", "for=203.0.113.8"),
    ] {
        assert_eq!(guesses_with(server, "forwarded", value), HEARD, "{value}");
        assert_eq!(guesses_with(server, "forwarded", own), 0, "{value} is {own}");
    }
    let other = |at: usize, call: Call| {
        call.header("x-forwarded-for", &format!("198.51.100.{at}")).header("forwarded", "for=203.0.113.5")
    };
    assert_eq!(guesses(server, other), HEARD, "the other header is what the client wrote");
    server.kill();
}

#[test]
fn px_01_the_address_of_a_client_is_what_its_owner_and_the_operator_see() {
    // red if http/visit.rs, address, gave the peer's address.
    let server = server("x-forwarded-for");
    let person = Person::add(server);
    let mut browser = Browser::new(server);
    let page = browser.get("/login").text();
    let form = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", &person.password);
    browser.send(form.call().header("x-forwarded-for", "198.51.100.9, 203.0.113.8")).must_be(303);
    let home = browser.get("/account").text();
    assert!(home.contains("203.0.113.8") && !home.contains("198.51.100.9"), "{home}");
    let events: serde_json::Value =
        serde_json::from_str(&server.must(&["events", "list", "--json"], "")).expect("a list of events");
    let began = events.as_array().unwrap().iter().find(|event| event["event"] == "session.started").unwrap();
    assert_eq!(began["address"], "203.0.113.8");
    server.kill();
}

#[test]
fn px_01_a_scheme_or_host_from_a_stranger_changes_no_link_and_no_cookie() {
    // red if HSTS, cookies or links followed the scheme or host of a request: http/front.rs, finish; http/cookies.rs.
    let server = server("x-forwarded-for");
    let plain = server.get("/login").must_be(200);
    for host in [1, 2] {
        let call = Call::get("/login").from(host).header("x-forwarded-proto", "https");
        let call = call.header("x-forwarded-for", "203.0.113.1");
        let answer = server.send(&call.header("x-forwarded-host", "evil.test")).must_be(200);
        let cookies = |answer: &Answer| -> Vec<String> {
            let lines = answer.all("set-cookie").into_iter();
            lines.map(|line| line.split_once(';').unwrap().1.to_owned()).collect()
        };
        assert_eq!(cookies(&answer), cookies(&plain));
        assert!(!answer.text().contains("evil.test"));
        assert_eq!(answer.header("strict-transport-security"), None);
    }
    server.kill();
}
