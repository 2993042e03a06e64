//! Saying no in time: places for each kind of work, rates, and who is asked to come back.

use crate::support::*;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One of so many comes too soon where one a second is forgiven, however often the machine stands still.
const MANY: usize = 200;

/// Behind a proxy on this machine, so that a header says who asks.
fn limited(settings: &[(&str, &str)]) -> &'static Server {
    let behind = [("PORTIERE_PROXY_TRUSTED", "127.0.0.1")];
    Server::leaked(&[&behind, settings].concat())
}

fn from(address: &str, call: Call) -> Call {
    call.header("x-forwarded-for", address)
}

#[track_caller]
fn must_slow_down(answer: &Answer) {
    assert_eq!(answer.status, 429, "{}", answer.text());
    let number = |name: &str| -> u64 { answer.header(name).unwrap_or_else(|| panic!("{name}")).parse().unwrap() };
    assert!(number("retry-after") >= 1);
    assert_eq!((number("ratelimit-limit"), number("ratelimit-remaining")), (5, 0));
    assert!(number("ratelimit-reset") >= 1);
}

#[test]
fn who_fails_too_often_is_slowed_at_every_door_and_nobody_else_is() {
    // red without `owe` in server/http/door.rs (pages, protocol) or server/http/api/mod.rs (the account API).
    let server = limited(&[
        ("PORTIERE_LIMITS_FAILURES_BURST", "5"),
        ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1"),
        ("PORTIERE_LIMITS_EXEMPT_ADDRESSES", "192.0.2.0/24"),
    ]);
    let wrong = || Call::post("/oauth2/token", &[("grant_type", "authorization_code"), ("client_id", "nobody")]);
    let fail = |address: &str| server.send(&from(address, wrong()));
    // Each node counts for itself, and one failure is forgiven a second.
    let over = |address: &str, call: &dyn Fn() -> Call| {
        let mut answers = (0..20).map(|_| {
            (0..6 * nodes()).for_each(|_| drop(fail(address)));
            server.send(&from(address, call()))
        });
        answers.find(|answer| answer.status == 429).expect("slowed")
    };
    // The addresses of one subscriber are one.
    for (address, neighbor) in [("203.0.113.7", "203.0.113.7"), ("2001:db8::1", "2001:db8::ffff:2")] {
        let first = fail(address).must_fail(401, "invalid_client");
        assert_eq!(first.header("ratelimit-remaining"), Some("4"));
        for path in ["token", "introspect", "revoke", "device", "userinfo"] {
            let refused = over(address, &|| Call::new("POST", &format!("/oauth2/{path}")));
            must_slow_down(&refused);
            // RFC 8628 §3.5: `slow_down` is for devices that poll, and for good.
            assert_eq!(refused.json()["error"], "temporarily_unavailable", "{path}");
        }
        must_slow_down(&over(neighbor, &|| Call::get("/oauth2/jwks")));
        let page = over(address, &|| Call::get("/login"));
        must_slow_down(&page);
        assert!(page.text().contains("<html"), "{}", page.text());
        let problem = over(address, &|| Call::get("/api/v1/me"));
        must_slow_down(&problem);
        assert_eq!(problem.json()["code"], "too-many-attempts");
        let preflight = || Call::new("OPTIONS", "/oauth2/token").header("origin", "https://elsewhere.test");
        assert_eq!(over(address, &preflight).status, 429);
        // Who looks after us is not kept out by it.
        server.send(&from(address, Call::get("/healthz"))).must_be(200);
    }
    for address in ["203.0.113.8", "2001:db8:0:1::1"] {
        for _ in 0..20 {
            let well = server.send(&from(address, Call::get("/oauth2/jwks"))).must_be(200);
            assert!(well.header("ratelimit-limit").is_none(), "what succeeds does not count");
        }
    }
    for _ in 0..20 {
        server.send(&from("192.0.2.9", wrong())).must_fail(401, "invalid_client");
    }
    server.kill();
}

#[test]
fn preflights_of_strangers_are_failures_and_devices_that_wait_are_none() {
    // red without `owe` in server/http/cors.rs, answer; and without AsExpected in server/http/error.rs.
    let server = limited(&[("PORTIERE_LIMITS_FAILURES_BURST", "5"), ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1")]);
    let app = App::add(server, Grants::All, &["--trusted"]);
    let preflight = |origin: &str| {
        let call = Call::new("OPTIONS", "/oauth2/token").header("origin", origin);
        server.send(&from("203.0.113.20", call.header("access-control-request-method", "POST"))).status
    };
    let own = app.redirect.split('/').take(3).collect::<Vec<_>>().join("/");
    assert!((0..20).all(|_| preflight(&own) == 204));
    assert_eq!(preflight("https://elsewhere.test"), 403);
    assert!((0..MANY).any(|_| preflight("https://elsewhere.test") == 429));
    let asked =
        server.send(&from("203.0.113.21", app.call("/oauth2/device", &[("scope", "openid")]))).must_be(200).json();
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let wait = [("grant_type", grant), ("device_code", asked["device_code"].as_str().unwrap())];
    for _ in 0..3 * nodes() {
        let told = server.send(&from("203.0.113.21", app.call("/oauth2/token", &wait)));
        assert!(told.status == 400, "{}", told.text());
        if told.json()["error"] == "authorization_pending" {
            assert!(told.header("ratelimit-limit").is_none(), "it counts");
        }
    }
    server.kill();
}

#[test]
fn no_page_of_another_site_keeps_applications_from_the_browsers_of_its_visitors() {
    // Red without Sender::Application in server/http/visit.rs: pictures that are not there would be held against them.
    let server = limited(&[("PORTIERE_LIMITS_FAILURES_BURST", "5"), ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1")]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let own = app.redirect.strip_suffix("/cb").unwrap();
    let access = app.tokens(&mut Browser::new(server), &person).access;
    let of_page = |call: Call, mode: &str, dest: &str| {
        let call = call.header("sec-fetch-site", "cross-site").header("sec-fetch-mode", mode);
        server.send(&from("203.0.113.40", call.header("sec-fetch-dest", dest)))
    };
    let of_script = |call: Call, origin: &str| of_page(call.header("origin", origin), "cors", "empty");
    let userinfo = || Call::get("/oauth2/userinfo").bearer(&access);
    // Each node remembers for itself which origins there are.
    (0..2 * nodes()).for_each(|_| drop(of_script(userinfo(), own).must_be(200)));
    for at in 0..6 * nodes() {
        (0..6).for_each(|cat| drop(of_page(Call::get(&format!("/cat{cat}.png")), "no-cors", "image")));
        (0..6).for_each(|_| drop(of_script(Call::get("/.well-known/none"), "https://evil.test")));
        let asked = match at % 3 {
            0 => userinfo(),
            1 => Call::get("/.well-known/openid-configuration"),
            _ => Call::new("OPTIONS", "/oauth2/userinfo").header("access-control-request-method", "GET"),
        };
        let answer = of_script(asked, own);
        assert!([200, 204].contains(&answer.status), "{at}: {}", answer.text());
    }
    // The pages themselves are bound by what they do.
    let told = (0..MANY).map(|_| of_script(Call::get("/.well-known/none"), "https://evil.test"));
    assert!(told.into_iter().any(|answer| answer.status == 429));
    server.kill();
}

#[test]
fn ds_05_devices_of_a_client_that_proves_nothing_are_counted_by_address() {
    // Red without `Counts` in server/http/oauth/device.rs, or in server/http/door.rs, settled.
    let server = limited(&[("PORTIERE_LIMITS_FAILURES_BURST", "5"), ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1")]);
    let public = App::public(server, "https://tv.test/cb", &["--grant", "device_code"]);
    let ask = |app: &App, address: &str| {
        server.send(&from(address, app.call("/oauth2/device", &[("scope", "openid")]))).status
    };
    let answers: Vec<u16> = (0..5).map(|_| ask(&public, "203.0.113.30")).collect();
    assert_eq!(answers, [200; 5]);
    assert!((0..MANY).any(|_| ask(&public, "203.0.113.30") == 429));
    assert_eq!(ask(&public, "203.0.113.31"), 200, "somebody else");
    let known = App::add(server, Grants::All, &["--trusted"]);
    assert!((0..12 * nodes()).all(|_| ask(&known, "203.0.113.32") == 200), "one that proves who it is");
    server.kill();
}

#[test]
fn a_client_has_a_rate_which_strangers_cannot_use_up() {
    // red if app/token.rs counted before the client had authenticated, or not at all.
    let server = Server::leaked(&[("PORTIERE_LIMITS_REQUESTS_PER_CLIENT", "2")]);
    let app = App::web(server);
    for _ in 0..20 {
        let stranger = [("token", "x"), ("client_id", app.id.as_str()), ("client_secret", "wrong")];
        assert_eq!(server.post("/oauth2/introspect", &stranger).status, 401);
    }
    let batch = || at_once(12, |_| app.post("/oauth2/introspect", &[("token", "x")]).status);
    let answers: Vec<u16> = batch();
    assert!(answers.iter().filter(|status| **status == 200).count() >= 4, "{answers:?}");
    assert!(answers.iter().all(|status| [200, 429].contains(status)), "{answers:?}");
    // Two more may come each second, and the first twelve may have taken some.
    let is_refused = |answers: &Vec<u16>| answers.contains(&429);
    assert!(is_refused(&answers) || (0..20).map(|_| batch()).any(|answers| is_refused(&answers)), "{answers:?}");
    // Red without `stands` in app/token.rs, prove_client: whoever would keep below the rate has to know it.
    until("one is let in, and told how many more may be", || {
        let answer = app.post("/oauth2/introspect", &[("token", "x")]);
        answer.status == 200
            && ["ratelimit-limit", "ratelimit-remaining"].iter().all(|name| answer.header(name).is_some())
    });
    // Red without `reject` in app/token.rs, prove_client.
    let refused = server.must(&["audit", "strangers", "--json"], "");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&refused).unwrap();
    assert!(rows.iter().any(|row| row["what"] == "throttled" && row["client"] == app.id.as_str()), "{refused}");
    server.kill();
}

#[test]
fn who_sends_slowly_holds_no_place() {
    // red if server/http/door.rs, let_in, entered before it read.
    let server = Server::leaked(&[("PORTIERE_LIMITS_TOKENS", "1"), ("PORTIERE_LIMITS_PAGES", "1")]);
    let slow: Vec<TcpStream> = ["/oauth2/introspect", "/oauth2/token", "/consent"]
        .iter()
        .flat_map(|path| [path; 3])
        .map(|path| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
            let kind = "content-type: application/x-www-form-urlencoded";
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost:{}\r\n{kind}\r\ncontent-length: 9\r\n\r\na=",
                server.port
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..5 {
        server.get("/oauth2/jwks").must_be(200);
        server.get("/login").must_be(200);
    }
    for mut stream in slow {
        stream.write_all(b"b&c=def").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    }
    server.kill();
}

/// Says that it is over when it goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_full_house_keeps_what_was_typed_and_lets_those_inside_go_on() {
    // red without `has_time_for` in app/authorize.rs (newcomers), or the early answer in http/door.rs, place_for_password;
    // and where a session cookie that anybody can make up were believed to be one (app/guest.rs, has_time_for_newcomer).
    let server = Server::leaked(&[
        ("PORTIERE_HASH_THREADS", "1"),
        ("PORTIERE_HASH_ARGON2_MEMORY_KIB", "65536"),
        ("PORTIERE_HASH_ARGON2_PASSES", "6"),
        ("PORTIERE_HASH_MAX_WAIT", "500ms"),
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "1000000"),
    ]);
    let (app, inside) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    browser.sign_in(&inside);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..16 * nodes() {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let mut browser = Browser::new(server);
                    let page = browser.get("/login");
                    if page.status == 200 {
                        // Another one each time: one account would be slowed by itself.
                        let name = unique("nobody-at-all");
                        let answer = browser.log_in_on(&page, &name, "wrong");
                        if answer.status == 503 {
                            assert!(answer.header("retry-after").is_some());
                            assert!(answer.text().contains(&name), "{}", answer.text());
                            assert!(!answer.text().contains("\"wrong\""));
                        }
                    }
                }
            });
        }
        let done = scope.spawn(|| {
            // Whatever fails here, the others come to their end.
            let _over = Over(&over);
            let end = Instant::now() + Duration::from_secs(120);
            let (mut refused, mut pretenders) = (0, [0, 0]);
            while (refused < 3 || pretenders.contains(&0)) && Instant::now() < end {
                let made_up = format!("{}={}.{}", server.cookie_name("sid"), "0".repeat(26), "a".repeat(43));
                for (pretender, path) in pretenders.iter_mut().zip([app.ask().target(), "/login".to_owned()]) {
                    let told = server.send(&Call::get(&path).header("cookie", &made_up));
                    *pretender += usize::from(told.status == 503);
                }
                let newcomer = Browser::new(server).get(&app.ask().target());
                if newcomer.status == 503 {
                    refused += 1;
                    assert!(newcomer.header("retry-after").is_some());
                    // Who is inside goes on, and who may be shown nothing is told so.
                    let mut silent = Browser::new(server);
                    let told = silent.get(&app.ask().with("prompt", "none").target());
                    assert!(told.location().unwrap().contains("error=login_required"));
                    assert_eq!(browser.get("/account").status, 200);
                    assert!(browser.get(&app.ask().target()).location().unwrap().contains("code="));
                    server.get("/oauth2/jwks").must_be(200);
                }
            }
            (refused, pretenders)
        });
        let (refused, pretenders) = done.join().unwrap();
        assert!(refused >= 3, "newcomers were refused");
        assert!(!pretenders.contains(&0), "so were those with a cookie that they had made up: {pretenders:?}");
    });
    server.kill();
}
