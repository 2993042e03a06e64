//! How much memory the threads hold, and for how long.

use std::{num::NonZeroUsize, time::Duration};

use super::stage::*;
use crate::{Hasher, Settings};

#[tokio::test]
async fn jobs_of_any_size_stay_under_the_ceiling_and_all_end() {
    const CEILING: u64 = 4096;
    let sizes = [8, 1024, 4096, 64, 2048, 3000, 1024, 16, 4000, 1024, 8, 8, 64];
    for lanes in [1, 3] {
        let stage = Stage::open();
        let hasher = stage.hasher(wide(4, CEILING));
        if lanes == 3 {
            three_lanes(&hasher, &sizes.map(argon2));
        }
        for round in 0..20 {
            let jobs: Vec<_> =
                (0..2).flat_map(|_| sizes).map(|m| ask(&hasher, key("main", round), argon2(m), "any")).collect();
            for job in jobs {
                let done = tokio::time::timeout(Duration::from_secs(60), job).await;
                assert!(done.expect("stuck").is_ok());
            }
        }
        let scene = stage.scene.lock().unwrap();
        assert!(scene.peak <= CEILING, "{}", scene.peak);
        assert!(scene.peak > 3000);
    }
}

#[tokio::test]
async fn lanes_are_fewer_where_memory_is() {
    // Each of the two threads has memory for two lanes, though three would be best.
    let stage = Stage::closed();
    let hasher = stage.hasher(wide(2, 5000));
    hasher.gate().know([(argon2(1000).into(), &[4.0, 3.0, 2.0, 5.0, 5.0].map(Some)[..])].into_iter());
    let jobs: Vec<_> = (0..20).map(|_| ask(&hasher, key("main", 1), argon2(1000), "any")).collect();
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert_eq!(stage.batches().iter().map(Vec::len).max(), Some(2));
    assert!(stage.scene.lock().unwrap().peak <= 5000);
}

#[tokio::test]
async fn a_thread_does_not_keep_from_another_what_it_needs_no_more() {
    let stage = Stage::open();
    let hasher = stage.hasher(wide(2, 4096));
    assert!(ask(&hasher, key("main", 1), argon2(4000), "large").await.is_ok());
    stage.scene.lock().unwrap().permits = Some(0);
    let jobs: Vec<_> = (0..500).map(|_| ask(&hasher, key("main", 1), argon2(1024), "small")).collect();
    // The thread that holds almost everything may run some jobs before the other one looks for memory.
    until("both threads run", || {
        let both = hasher.state().running == 2;
        if !both {
            stage.permit(Some(1));
        }
        both
    });
    assert_eq!(hasher.state().memory, 2 << 20);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
}

/// Occupies all threads of a pool at once, and then lets them go.
async fn warm(stage: &Stage, hasher: &Hasher, memory: u32) {
    stage.permit(Some(0));
    let threads = hasher.state().threads;
    let jobs: Vec<_> = (0..threads).map(|_| ask(hasher, key("main", 1), argon2(memory), "warm")).collect();
    until("all threads run", || hasher.state().running == threads);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    asleep(hasher);
}

/// Waits until no thread has anything to do: each has looked at the clock since it moved.
fn asleep(hasher: &Hasher) {
    until("all threads sleep", || hasher.gate().asleep() == hasher.state().threads);
}

/// Memory that the threads hold after all work is done, in KiB.
fn held(hasher: &Hasher) -> u64 {
    asleep(hasher);
    hasher.state().memory >> 10
}

#[tokio::test]
async fn each_thread_gives_its_memory_back_when_it_was_idle_itself() {
    let stage = Stage::open();
    let hasher = stage.hasher(wide(2, 4096));
    let seconds = Duration::from_secs;
    warm(&stage, &hasher, 1024).await;
    assert_eq!(held(&hasher), 2048);
    stage.skip(&hasher, seconds(6));
    asleep(&hasher);
    // Jobs that come one at a time go to one thread, which stays warm by them.
    for _ in 0..5 {
        assert!(ask(&hasher, key("main", 1), argon2(1024), "light").await.is_ok());
        asleep(&hasher);
    }
    stage.skip(&hasher, seconds(5));
    assert_eq!(held(&hasher), 1024, "the other had work 11 seconds ago");
    stage.skip(&hasher, seconds(4));
    assert_eq!(held(&hasher), 1024, "this one had work 9 seconds ago");
    stage.skip(&hasher, seconds(1));
    assert_eq!(held(&hasher), 0);
}

#[tokio::test]
async fn waking_for_nothing_does_not_prolong_idleness() {
    let stage = Stage::open();
    let hasher = stage.hasher(wide(2, 4096));
    warm(&stage, &hasher, 1024).await;
    for _ in 0..10 {
        assert_eq!(held(&hasher), 2048);
        // Wakes all threads.
        stage.skip(&hasher, Duration::from_secs(1));
    }
    assert_eq!(held(&hasher), 0, "ten seconds were enough for both");
}

#[tokio::test]
async fn a_thread_that_is_never_idle_keeps_no_memory_of_jobs_long_gone() {
    let stage = Stage::open();
    let hasher = stage.hasher(Settings { threads: NonZeroUsize::new(1), ..wide(1, 60_000) });
    for (memory, name) in [(60_000, "large"), (30_000, "middle")] {
        assert!(ask(&hasher, key("main", 1), argon2(memory), name).await.is_ok());
    }
    let mut seen = Vec::new();
    for second in 1..=12 {
        stage.skip(&hasher, Duration::from_secs(1));
        if second == 3 {
            assert!(ask(&hasher, key("main", 1), argon2(30_000), "middle").await.is_ok());
        }
        // Two at once: the second finds the thread at work, not asleep.
        let pair = [1, 2].map(|host| ask(&hasher, key("main", host), argon2(5_000), "small"));
        for job in pair {
            assert!(job.await.is_ok());
        }
        seen.push(held(&hasher));
    }
    assert_eq!(seen[..9], [60_000; 9]);
    assert_eq!(seen[9..], [30_000; 3]);
    stage.skip(&hasher, Duration::from_secs(1));
    let left = held(&hasher);
    assert!([5_000, 10_000].contains(&left), "what the small ones need, alone or together: {left}");
}

#[tokio::test]
async fn busy_threads_give_memory_back_to_the_system() {
    // Longer than this machine may stall in between.
    let (idle, memory) = (Duration::from_secs(5), Some(128 << 20));
    let policy = crate::Policy::weak(64, 1, 1).unwrap();
    let hasher = Hasher::start(Settings { idle, memory, policy, threads: NonZeroUsize::new(1), ..narrow() }).unwrap();
    let large = "$argon2id$v=19$m=65536,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA".parse().unwrap();
    let begun = std::time::Instant::now();
    assert!(hasher.verify(&key("main", 1), &large, b"x").await.is_ok());
    assert_eq!(hasher.state().memory, 64 << 20);
    while hasher.state().memory > 2 << 20 {
        assert!(hasher.hash(&key("main", 1), b"password", SALT).await.is_ok());
        assert!(begun.elapsed() < Duration::from_secs(60), "never given back: {}", hasher.state().memory);
    }
    assert!(begun.elapsed() > idle / 2);
}

#[tokio::test]
async fn who_sleeps_on_memory_that_another_lacks_is_called_every_time() {
    for _ in 0..100 {
        let stage = Stage::open();
        let hasher = stage.hasher(wide(3, 4096));
        warm(&stage, &hasher, 1000).await;
        assert_eq!(held(&hasher), 3000);
        stage.permit(Some(0));
        let large = ask(&hasher, key("main", 1), argon2(2500), "large");
        until("the large one runs", || hasher.state().running == 1);
        let small = ask(&hasher, key("main", 2), argon2(1000), "small");
        until("the small one runs", || hasher.state().running == 2);
        stage.permit(None);
        assert!(large.await.is_ok() && small.await.is_ok());
    }
}

#[tokio::test]
async fn an_idle_pool_gives_its_memory_back_to_the_system() {
    // Longer than this machine may stall in between.
    let idle = Duration::from_secs(5);
    let hasher = Hasher::start(Settings { idle, threads: NonZeroUsize::new(2), ..Settings::default() }).unwrap();
    assert!(hasher.hash(&key("main", 1), b"password", SALT).await.is_ok());
    assert_eq!(hasher.state().memory, 19_456 * 1024);
    until("the memory is given back", || hasher.state().memory == 0);
    assert!(hasher.hash(&key("main", 1), b"password", SALT).await.is_ok());
}
