//! Readiness while more comes than can be done.

use super::figures::{SERVED, samples};
use crate::support::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Signs in with wrong passwords on so many threads at once, until told to stop.
fn flood(server: &'static Server, threads: usize, stop: &AtomicBool) {
    // Newcomers are told to come back before the queue is full: these have the form already.
    let guests = (0..threads).map(|_| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        (browser, page)
    });
    let guests: Vec<_> = guests.map(Mutex::new).collect();
    at_once(threads, |at| {
        let (browser, page) = &mut *guests[at].lock().unwrap();
        while !stop.load(Relaxed) {
            browser.log_in_on(page, &format!("nobody{at}"), "not the password 1");
        }
    });
}

/// What says that it is this that is strained. A database server may be as well, on a machine that does much else.
const HASHING: &str = "the hashing queue has been nearly full";

/// Asks the first node until it says so.
fn says(server: &Server, so: impl Fn(&Answer) -> bool) -> bool {
    comes(|| so(&Call::get("/readyz").try_send_here(server.port).expect("an answer")))
}

#[test]
fn a_flood_of_passwords_makes_a_node_unready_for_as_long_as_it_lasts() {
    // red without `strain` in http/health.rs, told, or without strain.watch in boot.rs.
    let server = Server::leaked(&[
        SERVED,
        ("PORTIERE_HASH_THREADS", "1"),
        ("PORTIERE_HASH_MAX_WAIT", "300ms"),
        ("PORTIERE_HASH_ARGON2_PASSES", "8"),
        ("PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES", "1000000"),
        ("PORTIERE_READY_STRAINED_AFTER", "500ms"),
    ]);
    let stop = AtomicBool::new(false);
    let (said, strained) = std::thread::scope(|scope| {
        scope.spawn(|| flood(server, 48 * nodes(), &stop));
        let said = says(server, |answer| answer.status == 503 && answer.text().contains(HASHING));
        let strained = samples(server)["portiere_strained{queue=\"hashing\"}"];
        stop.store(true, Relaxed);
        (said, strained)
    });
    assert!(said, "not ready");
    assert!(strained >= 1.0 || nodes() > 1);
    assert!(says(server, |answer| answer.status == 200), "ready again");
}

#[test]
fn a_node_that_is_alone_can_be_told_to_stay_ready() {
    let server = Server::leaked(&[
        SERVED,
        ("PORTIERE_HASH_THREADS", "1"),
        ("PORTIERE_HASH_MAX_WAIT", "300ms"),
        ("PORTIERE_HASH_ARGON2_PASSES", "8"),
        ("PORTIERE_READY_STRAINED_AFTER", "0s"),
    ]);
    let stop = AtomicBool::new(false);
    let (full, said) = std::thread::scope(|scope| {
        scope.spawn(|| flood(server, 48 * nodes(), &stop));
        let full = comes(|| samples(server)["portiere_hashing_refused_total"] > 0.0);
        // Strain is looked for four times a second.
        let looks = (0..24).map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Call::get("/readyz").try_send_here(server.port).expect("an answer")
        });
        let said: Vec<Answer> = looks.collect();
        stop.store(true, Relaxed);
        (full, said)
    });
    assert!(full, "too little came");
    let for_hashing = said.into_iter().find(|answer| answer.text().contains(HASHING));
    assert!(for_hashing.is_none(), "{:?}", for_hashing.map(|answer| answer.text()));
}
