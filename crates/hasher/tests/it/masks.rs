//! Each feature of the CPU masked in turn: whatever is left, the pool hashes the same.

use std::io::{self, Write};

use hasher::{FairKey, Hasher, Policy, Settings, Stored, cpu::Level};

use crate::{levels, masked};

#[tokio::test]
async fn a_pool_without_a_feature_hashes_the_same() {
    let key = FairKey::new("main", [192, 0, 2, 1].into());
    let mut texts = Vec::new();
    for level in masked() {
        let policy = Policy::weak(640, 3, 2).unwrap();
        let hasher = Hasher::start(Settings { policy, level: Some(level), ..Settings::default() }).unwrap();
        let text = hasher.hash(&key, b"password", [3; 16]).await.unwrap();
        let stored: Stored = text.parse().unwrap();
        assert!(hasher.verify(&key, &stored, b"password").await.unwrap().ok, "{level:?}");
        assert!(!hasher.verify(&key, &stored, b"passwore").await.unwrap().ok, "{level:?}");
        texts.push(text);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1);
}

#[test]
fn a_masked_feature_takes_its_kernel_away() {
    let [all, no_avx512, no_avx2, neither] = masked();
    assert_eq!(all, Level::best());
    assert!(no_avx512 < Level::Avx512 && no_avx2 != Level::Avx2);
    assert_eq!(neither, Level::Portable);
}

/// Says which kernels this CPU lacks and so cannot be tested here; a release is not tested on such a machine.
#[test]
fn every_kernel_is_tested() {
    let mut lacking: Vec<Level> = Level::ALL.to_vec();
    lacking.retain(|level| !levels().contains(level));
    if lacking.is_empty() || !cfg!(target_arch = "x86_64") {
        return;
    }
    // Not through the macros, whose output is shown for failing tests only.
    writeln!(io::stderr(), "NOT TESTED: this CPU has no {lacking:?}").unwrap();
    #[expect(clippy::disallowed_methods, reason = "how long to test is for the one who tests")]
    let full = std::env::var("TEST_SCALE").is_ok_and(|scale| scale == "full");
    assert!(!full, "kernels that this CPU lacks: {lacking:?}");
}
