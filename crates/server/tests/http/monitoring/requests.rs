//! What requests leave behind: counts, and a line where they were slow.

use super::figures::{SERVED, samples};
use crate::support::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much a sample grew over `act`.
fn grown(server: &'static Server, act: impl FnOnce()) -> impl Fn(&str) -> f64 {
    let before = samples(server);
    act();
    let after = samples(server);
    move |name| {
        let of = |samples: &std::collections::BTreeMap<String, f64>| samples.get(name).copied().unwrap_or(0.0);
        of(&after) - of(&before)
    }
}

#[test]
fn a_sign_in_and_its_tokens_are_counted_once() {
    let server = Server::leaked(&[SERVED]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let grown = grown(server, || {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &person.name, "not the password 1").must_be(422);
        let tokens = app.tokens(&mut browser, &person);
        app.refresh(&tokens.refresh).must_be(200);
        (0..3).for_each(|_| assert!(app.is_active(&tokens.access)));
        app.redeem("not a code").must_fail(400, "invalid_grant");
    });
    let counts = [
        ("portiere_sign_ins_total{outcome=\"success\"}", 1.0),
        ("portiere_sign_ins_total{outcome=\"refused\"}", 1.0),
        ("portiere_tokens_issued_total{grant=\"authorization_code\"}", 1.0),
        ("portiere_tokens_issued_total{grant=\"refresh_token\"}", 1.0),
        ("portiere_oauth_errors_total{error=\"invalid_grant\"}", 1.0),
        ("portiere_audit_events_total{event=\"session.started\"}", 1.0),
        ("portiere_audit_events_total{event=\"signin.failed\"}", 1.0),
        ("portiere_hashing_done_total", 2.0),
        ("portiere_http_stage_duration_seconds_count{stage=\"hash\"}", 2.0),
        ("portiere_http_requests_total{route=\"/login\",method=\"POST\",status=\"422\"}", 1.0),
        ("portiere_http_requests_total{route=\"/oauth2/token\",method=\"POST\",status=\"200\"}", 2.0),
        ("portiere_http_requests_total{route=\"/oauth2/introspect\",method=\"POST\",status=\"200\"}", 3.0),
        ("portiere_http_request_duration_seconds_count{route=\"/oauth2/introspect\",put_off=\"no\"}", 3.0),
        ("portiere_http_request_duration_seconds_bucket{route=\"/oauth2/introspect\",put_off=\"no\",le=\"+Inf\"}", 3.0),
    ];
    for (name, count) in counts {
        assert_eq!(grown(name), count, "{name}");
    }
    for name in ["fetch", "commit", "sign"] {
        let name = format!("portiere_http_stage_duration_seconds_sum{{stage=\"{name}\"}}");
        assert!(grown(&name) > 0.0, "{name}");
    }
    assert!(grown("portiere_store_batches_total{outcome=\"committed\"}") >= 4.0);
    assert!(grown("portiere_cache_hits_total{cache=\"tokens\"}") >= 1.0);
    until("none is under way", || samples(server)["portiere_http_requests_in_flight"] == 0.0);
}

#[test]
fn what_the_server_refuses_is_counted_by_its_reason() {
    let server = Server::leaked(&[SERVED, ("PORTIERE_THROTTLE_FREE_FAILURES", "1")]);
    let person = Person::add(server);
    let grown = grown(server, || {
        server.send(&Call::get("/login").header("host", "elsewhere.test")).must_be(421);
        server.send(&Call::post("/login", &[("flow", "x")]).header("origin", "https://evil.test")).must_be(403);
        server.send(&Call::post("/oauth2/token", &[("x", &"x".repeat(70_000))])).must_be(413);
        let mut browser = Browser::new(server);
        let answers = (0..6).map(|_| {
            let page = browser.get("/login");
            browser.log_in_on(&page, &person.name, "not the password 1").status
        });
        assert!(answers.collect::<Vec<_>>().contains(&429));
    });
    for reason in ["wrong_host", "foreign_form", "body_too_large"] {
        assert_eq!(grown(&format!("portiere_refusals_total{{reason=\"{reason}\"}}")), 1.0, "{reason}");
    }
    assert!(grown("portiere_refusals_total{reason=\"throttled\"}") >= 1.0);
    assert!(grown("portiere_sign_ins_total{outcome=\"throttled\"}") >= 1.0);
}

#[test]
fn sign_ins_that_are_told_to_come_back_are_counted_once_wherever_that_is_said() {
    // red without the count in `has_time_for` of app/guest.rs (most are refused at the door), or that of `crowded` in the
    // hasher's gate, or if one that passes the door and is refused behind it were counted at both.
    let (threads, each) = (32 * nodes(), 6);
    let server = Server::leaked(&[
        SERVED,
        ("PORTIERE_HASH_THREADS", "1"),
        ("PORTIERE_HASH_MAX_WAIT", "100ms"),
        ("PORTIERE_HASH_ARGON2_PASSES", "8"),
        ("PORTIERE_THROTTLE_FREE_FAILURES", "1000"),
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "1000000"),
    ]);
    let refused = AtomicUsize::new(0);
    let grown = grown(server, || {
        let page = |_| {
            let mut browser = Browser::new(server);
            let page = browser.get("/login");
            Mutex::new((browser, page))
        };
        let guests: Vec<_> = (0..threads).map(page).collect();
        at_once(threads, |at| {
            let (browser, page) = &mut *guests[at].lock().unwrap();
            for _ in 0..each {
                let answer = browser.log_in_on(page, &format!("nobody{at}"), "not the password 1");
                refused.fetch_add(usize::from(answer.status == 503), Ordering::SeqCst);
            }
        });
    });
    let refused = refused.load(Ordering::SeqCst) as f64;
    assert!(refused > 0.0);
    assert_eq!(grown("portiere_sign_ins_total{outcome=\"busy\"}"), refused);
    assert_eq!(grown("portiere_hashing_refused_total"), refused);
    let outcomes = ["success", "refused", "throttled", "busy", "failed"];
    let each_outcome = outcomes.map(|outcome| grown(&format!("portiere_sign_ins_total{{outcome=\"{outcome}\"}}")));
    assert_eq!(each_outcome.iter().sum::<f64>(), (threads * each) as f64);
}

#[test]
fn a_slow_request_says_where_its_time_went_and_nothing_of_who_it_was() {
    // Every hash takes longer than this.
    let slow = [("PORTIERE_LOG_SLOW", "1ms"), ("PORTIERE_HASH_ARGON2_PASSES", "4")];
    let server = Server::leaked(&slow);
    let person = Person::add(server);
    Browser::of(server, &person);
    let is_meant = |line: &&str| line.contains("\"slow\"") && line.contains("\"POST\"");
    until("a line", || server.log().lines().any(|line| is_meant(&line)));
    let line = server.log().lines().find(is_meant).map(serde_json::from_str::<serde_json::Value>).unwrap().unwrap();
    assert_eq!((&line["route"], &line["status"], &line["level"]), (&"/login".into(), &303.into(), &"WARN".into()));
    let ms = |name: &str| line[name].as_u64().unwrap_or_default();
    assert!(ms("hash_ms") > 0, "{line}");
    let stages: u64 = line.as_object().unwrap().keys().filter(|name| name.ends_with("_ms")).map(|name| ms(name)).sum();
    assert!(stages <= ms("ms"), "the stages are no longer than the whole: {line}");
    let log = server.log();
    for secret in [&person.name, &person.email, &person.password, "127.0.0.1"] {
        let told = log.lines().filter(|line| line.contains("\"slow\"")).any(|line| line.contains(secret));
        assert!(!told, "{secret}");
    }
    let quiet = Server::leaked(&[("PORTIERE_LOG_SLOW", "0s"), slow[1], SERVED]);
    Browser::of(quiet, &Person::add(quiet));
    assert_eq!(samples(quiet)["portiere_http_requests_slow_total"], 0.0);
    assert!(!quiet.log().contains("\"slow\""));
}
