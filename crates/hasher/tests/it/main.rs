//! The crate from outside: kernels, formats and pool against published vectors, other implementations and the system.
//! `PORTIERE_TEST_SCALE` multiplies how many random cases are tried; at 100 they are those of a release.
#![allow(clippy::unwrap_used, reason = "a test may panic outside of its own function, too")]

mod argon2_differential;
mod argon2_vectors;
mod bcrypt;
mod bcrypt_text;
mod kernels;
mod masks;
mod oracle;
mod phc;
mod portable;
#[cfg(target_os = "linux")]
mod resident;
mod scrypt;
#[cfg(target_os = "linux")]
mod traces;

use std::sync::LazyLock;

use hasher::cpu::{Features, Level};

/// `everyday` cases, times `PORTIERE_TEST_SCALE`.
fn cases(everyday: u32) -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long to test is for the one who tests")]
    static FACTOR: LazyLock<u32> =
        LazyLock::new(|| std::env::var("PORTIERE_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1));
    everyday.saturating_mul(*FACTOR)
}

/// The kernels that are left when each feature of this CPU, and then both, are masked, in this order.
fn masked() -> [Level; 4] {
    let all = Features::detect();
    [all, all.without_avx512f(), all.without_avx2(), all.without_avx512f().without_avx2()].map(Level::with)
}

/// Those without the repetitions.
fn levels() -> Vec<Level> {
    let mut levels = masked().to_vec();
    levels.sort();
    levels.dedup();
    levels
}

/// SplitMix64: the same inputs in every run, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both possible.
    fn between(&mut self, low: u32, high: u32) -> u32 {
        low + (self.word() % u64::from(high - low + 1)) as u32
    }

    fn bytes(&mut self, low: u32, high: u32) -> Vec<u8> {
        (0..self.between(low, high)).map(|_| self.word() as u8).collect()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.between(0, all.len() as u32 - 1) as usize]
    }
}
