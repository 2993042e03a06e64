//! How much of each class of test runs: what `make test` does every day, and what `make test-full` does before a release. A
//! factor between (`PORTIERE_TEST_SCALE`, from 1 to 100) does a part of the way.

use std::sync::LazyLock;

/// The factor of a release.
const RELEASE: usize = 100;

static FACTOR: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("PORTIERE_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1).clamp(1, RELEASE)
});

/// How many of something.
#[derive(Clone, Copy)]
pub struct Scale {
    everyday: usize,
    release: usize,
}

/// How many in this run.
pub fn scaled(Scale { everyday, release }: Scale) -> usize {
    everyday + (release - everyday) * (*FACTOR - 1) / (RELEASE - 1)
}

/// Requests that race for one thing. It is part of the requirement, and never scaled.
pub const RACERS: usize = 100;
/// Rounds of each race.
pub const RACE_ROUNDS: Scale = Scale { everyday: 3, release: 1_000 };
/// Kills under load in one run.
pub const KILLS: Scale = Scale { everyday: 20, release: 10_000 };
/// Values of each kind of credential whose alterations are tried.
pub const ALTERED_CREDENTIALS: Scale = Scale { everyday: 1, release: 100 };
/// Codes and tokens whose bits are counted.
pub const SAMPLED_SECRETS: Scale = Scale { everyday: 500, release: 1_000_000 };
/// Distinct keys of a state flood.
pub const FLOOD: Scale = Scale { everyday: 300, release: 1_000_000 };
/// Idle or half-open connections.
pub const IDLE_CONNECTIONS: Scale = Scale { everyday: 200, release: 5_000 };
/// Wrong passwords that somebody throws at one account.
pub const GUESSES: Scale = Scale { everyday: 40, release: 10_000 };
/// Runs of the whole lab, quick: ten minutes each.
pub const LAB_RUNS: Scale = Scale { everyday: 0, release: 1 };
/// Colliding form keys, as many as fit into a body and a query.
pub const FORM_KEYS: Scale = Scale { everyday: 1_000, release: 4_000 };
