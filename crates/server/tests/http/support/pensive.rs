//! Passwords that take long enough to be hashed that something else can happen meanwhile.

use hasher::{FairKey, Hasher, Policy, Settings};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

/// How much of a core such a hash takes.
const LONG: Duration = Duration::from_millis(100);
/// Hashes that are measured. The quickest counts.
const SAMPLES: u32 = 5;
/// What may be set.
const MOST: u32 = 64;

static PASSES: LazyLock<String> = LazyLock::new(|| {
    let passes = LONG.as_secs_f64() / pass().as_secs_f64();
    (passes.ceil() as u32).clamp(2, MOST).to_string()
});

/// Returns the setting for a server of such passwords: as many passes as take that long on this machine.
pub fn pensive() -> (&'static str, &'static str) {
    ("PORTIERE_HASH_ARGON2_PASSES", &PASSES)
}

/// Returns what a pass of Argon2 takes of a core.
fn pass() -> Duration {
    let (memory, passes) = (19_456, 2);
    let policy = Policy::new(memory, passes, 1).unwrap();
    let hasher =
        Hasher::start(Settings { policy, max_wait: Duration::from_secs(3600), ..Settings::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let key = FairKey::new("tests", IpAddr::from(Ipv4Addr::LOCALHOST));
    let taken = (0..SAMPLES).map(|_| {
        let before = hasher.cpu_time().ran;
        runtime.block_on(hasher.hash(&key, b"gorse violet anvil 41", [7; 16])).unwrap();
        hasher.cpu_time().ran - before
    });
    let quickest = taken.min().unwrap() / passes;
    runtime.block_on(hasher.stop());
    quickest.max(Duration::from_micros(1))
}
