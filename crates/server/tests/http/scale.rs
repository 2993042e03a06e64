//! How much of each class of test runs. `make test` runs about a hundredth of the release figures; `make test-full`
//! multiplies them through `PORTIERE_TEST_SCALE`.

use std::sync::LazyLock;

static FACTOR: LazyLock<usize> =
    LazyLock::new(|| std::env::var("PORTIERE_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1));

/// `everyday` times the factor of this run.
pub fn scaled(everyday: usize) -> usize {
    everyday * *FACTOR
}

/// Requests that race for one thing. It is part of the requirement, and never scaled.
pub const RACERS: usize = 100;
/// Rounds of each race (release: 1,000).
pub const RACE_ROUNDS: usize = 3;
/// Kills under load in one run (release: 10,000).
pub const KILLS: usize = 20;
/// Values of each kind of credential whose alterations are tried (release: 100).
pub const ALTERED_CREDENTIALS: usize = 1;
/// Codes and tokens whose bits are counted (release: 1,000,000).
pub const SAMPLED_SECRETS: usize = 500;
/// Distinct keys of a state flood (release: 1,000,000).
pub const FLOOD: usize = 300;
/// Idle or half-open connections (release: 5,000).
pub const IDLE_CONNECTIONS: usize = 200;
/// Wrong passwords that somebody throws at one account (release: 10,000).
pub const GUESSES: usize = 40;
/// Colliding form keys (release: 100,000).
pub const FORM_KEYS: usize = 1_000;
