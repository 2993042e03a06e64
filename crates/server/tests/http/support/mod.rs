//! Shared by all tests: servers, browsers, applications, tokens.

mod app;
mod browser;
mod dump;
mod facts;
mod issued;
mod jwt;
mod learnt;
mod near;
mod node;
mod pensive;
mod program;
mod screens;
mod server;
mod wire;

pub use app::{App, Authorization, CHALLENGE, Grants, SECRET, Tokens, VERIFIER};
pub use browser::{Browser, Form, Person};
pub use dump::Dump;
pub use facts::{nodes, on_file};
pub use issued::{DEVICE, Issued};
pub use jwt::{EcKey, encode, jwt, now};
pub use near::{near, near_in_header};
pub use pensive::pensive;
pub use program::{BINARY, program};
pub use screens::{Line, Screens};
pub use server::{Output, Server, default_server, free_port, run, short_server, sign_up_server, strict_server};
pub use wire::{Answer, Call};

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest wait for anything. The machine may be slow, and busy.
const LIMIT: Duration = Duration::from_secs(120);
/// The time between two checks of a condition, at least and at most.
const STEPS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// Waits until a condition holds, which it has to in the end.
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes(holds), "never: {what}");
}

/// Likewise, for a test that has to do something before it may fail: returns whether the condition held.
pub fn comes(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        let look = Instant::now();
        if holds() {
            return true;
        }
        if begun.elapsed() > LIMIT {
            return false;
        }
        // A test that waits takes at most a quarter of a core.
        std::thread::sleep((look.elapsed() * 3).clamp(STEPS[0], STEPS[1]));
    }
}

/// Returns a name that no other test of this run has.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Does `act` on `count` threads that start together; returns the results in any order.
pub fn at_once<T: Send>(count: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    std::thread::scope(|scope| {
        let racers: Vec<_> = (0..count)
            .map(|at| {
                let (start, act) = (&start, &act);
                scope.spawn(move || {
                    start.wait();
                    act(at)
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    })
}
