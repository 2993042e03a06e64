//! The memory that the system sees.

use std::{
    num::NonZeroUsize,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use hasher::{FairKey, Hasher, Policy, Settings, Stored};

const CEILING: u64 = 96 << 20;
/// What threads, stacks and bookkeeping may take besides.
const BESIDE: u64 = 64 << 20;

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The most that was resident since the call.
fn watch() -> Arc<AtomicU64> {
    let most = Arc::new(AtomicU64::new(0));
    let seen = Arc::downgrade(&most);
    thread::spawn(move || {
        while let Some(most) = seen.upgrade() {
            most.fetch_max(resident(), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
        }
    });
    most
}

#[test]
fn stays_under_the_ceiling_whatever_is_hashed() {
    alone("resident::in_a_process_of_its_own");
}

#[test]
fn stays_under_the_ceiling_however_many_threads_hash() {
    alone("resident::on_many_threads");
}

/// Runs a test in a process of its own, as other tests need memory, too.
pub(crate) fn alone(test: &str) {
    let alone = ["--exact", test, "--ignored", "--nocapture"];
    let ran = Command::new(std::env::current_exe().unwrap()).args(alone).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

/// Argon2 of several sizes, one of them as large as the ceiling, and scrypt, whose memory is not the pool's own.
#[tokio::test]
#[ignore = "stays_under_the_ceiling_whatever_is_hashed runs it, in a process of its own"]
async fn in_a_process_of_its_own() {
    let policy = Policy::weak(9_216, 1, 1).unwrap();
    let (max_wait, idle) = (Duration::from_secs(600), Duration::from_millis(300));
    let settings = Settings { memory: Some(CEILING), policy, max_wait, idle, ..Settings::default() };
    let hasher = Hasher::start(settings).unwrap();
    let tail = "$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
    let texts = ["m=9216,t=1,p=1", "m=98304,t=1,p=4", "m=30000,t=1,p=2", "m=64,t=1,p=1"]
        .map(|params| format!("$argon2id$v=19${params}{tail}"));
    let mut kinds: Vec<Stored> = texts.iter().map(|text| text.parse().unwrap()).collect();
    kinds.push(format!("$scrypt$ln=15,r=8,p=1{tail}AAAAAAAAAAAAAAAAAAAAA").parse().unwrap());
    let before = resident();
    let most = watch();
    hasher.calibrate().await;
    let mut jobs = tokio::task::JoinSet::new();
    for n in 0..60u8 {
        let (hasher, stored) = (hasher.clone(), kinds[usize::from(n) % kinds.len()].clone());
        let key = FairKey::new("main", [192, 0, 2, n % 7].into());
        jobs.spawn(async move { hasher.verify(&key, &stored, b"password").await });
    }
    while let Some(done) = jobs.join_next().await {
        assert!(!done.unwrap().unwrap().ok);
    }
    let most = most.load(Ordering::Relaxed);
    assert!(most <= before + CEILING + BESIDE, "{} MiB beside {} MiB before", most >> 20, before >> 20);
    assert!(most >= before + CEILING / 2, "the jobs were in memory: {} MiB", most >> 20);
    for _ in 0..500 {
        if hasher.state().memory == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(resident() <= before + BESIDE / 4, "all is given back: {} MiB", resident() >> 20);
}

/// A little more than a huge page on each of many threads: what a whole one more would take is beyond the ceiling.
#[tokio::test]
#[ignore = "stays_under_the_ceiling_however_many_threads_hash runs it, in a process of its own"]
async fn on_many_threads() {
    const THREADS: usize = 100;
    const KIB: u32 = 2_112;
    let (policy, memory) = (Policy::weak(KIB, 60, 1).unwrap(), Some(THREADS as u64 * u64::from(KIB) * 1024));
    let (threads, max_wait) = (NonZeroUsize::new(THREADS), Duration::from_secs(600));
    let hasher = Hasher::start(Settings { threads, memory, policy, max_wait, ..Settings::default() }).unwrap();
    let before = resident();
    let most = watch();
    let mut jobs = tokio::task::JoinSet::new();
    for n in 0..2 * THREADS as u8 {
        let hasher = hasher.clone();
        let key = FairKey::new("main", [192, 0, 2, n].into());
        jobs.spawn(async move { hasher.hash(&key, b"password", [n; 16]).await });
    }
    while let Some(done) = jobs.join_next().await {
        assert!(done.unwrap().is_ok());
    }
    let (most, held) = (most.load(Ordering::Relaxed), hasher.state().memory);
    assert!(
        held >= memory.unwrap() / 2 && held <= memory.unwrap(),
        "half of the threads were at work, or more: {held}"
    );
    assert!(most <= before + held + BESIDE / 2, "{} MiB beside {} MiB before", most >> 20, before >> 20);
}
