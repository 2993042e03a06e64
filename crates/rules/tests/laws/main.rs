//! Laws of the rules, as properties: facts in maps, any sequence of requests and clock steps, and what must hold
//! whatever happens.
//!
//! `tables` makes changes true with the store's guards; `ledger` keeps books of its own about what was promised and
//! what has ended; `acts` decide as the use cases do; `play` strings them together; `observe` compares.

mod acts;
mod clocks;
mod guesses;
mod keys;
mod ledger;
mod observe;
mod play;
mod races;
mod requests;
mod sequences;
mod tables;
mod texts;
mod world;

use proptest::test_runner::Config;

/// `everyday` cases, times `PORTIERE_TEST_SCALE`.
fn cases(everyday: u32) -> Config {
    #[allow(clippy::disallowed_methods, reason = "tests have no configuration of their own")]
    let factor = std::env::var("PORTIERE_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    Config {
        cases: everyday.saturating_mul(factor),
        failure_persistence: None,
        max_shrink_iters: 4_096,
        ..Config::default()
    }
}
