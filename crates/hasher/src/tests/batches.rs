//! Which jobs run side by side, and how one of them may affect the others.

use super::stage::*;
use crate::{Refusal, Settings, job::Kind};

const BCRYPT: Kind = Kind::Bcrypt { cost: 5 };

/// A pool whose one thread is occupied, with three lanes for the usual kind and for bcrypt, and a long waiting budget.
fn occupied() -> (std::sync::Arc<Stage>, crate::Hasher, Hashing) {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: std::time::Duration::from_secs(60), ..narrow() });
    three_lanes(&hasher, &[usual(), BCRYPT]);
    let first = stage.occupy(&hasher);
    (stage, hasher, first)
}

#[tokio::test]
async fn a_batch_is_of_one_kind_and_in_fair_order() {
    let (stage, hasher, _first) = occupied();
    let jobs: Vec<_> = (0u8..)
        .zip([("a", usual()), ("b", BCRYPT), ("c", usual()), ("d", usual()), ("e", usual()), ("f", BCRYPT)])
        .map(|(host, (name, kind))| ask(&hasher, key("main", host), kind, name))
        .collect();
    assert_eq!(hasher.state().waiting, 6);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    let batches = stage.batches();
    assert_eq!(batches[..3].concat(), ["first", "a", "c", "d", "b", "f"]);
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 2, 1]);
    assert_eq!(hasher.state().batches_total, 4);
}

#[tokio::test]
async fn nobody_waits_for_a_batch_to_fill() {
    let stage = Stage::open();
    let hasher = stage.hasher(narrow());
    three_lanes(&hasher, &[usual()]);
    assert!(ask(&hasher, key("main", 1), usual(), "alone").await.is_ok());
    assert_eq!(stage.batches(), [["alone"]]);
}

#[tokio::test]
async fn a_flood_takes_no_lanes_from_those_who_come_later() {
    let (stage, hasher, _first) = occupied();
    let flood: Vec<_> = (0..30).map(|_| ask(&hasher, key("noisy", 1), usual(), "noisy")).collect();
    let others: Vec<_> = (0..4).map(|n| ask(&hasher, key(&format!("quiet {n}"), 1), usual(), "quiet")).collect();
    let old: Vec<_> = (0..4).map(|n| ask(&hasher, key(&format!("old {n}"), 1), BCRYPT, "old")).collect();
    stage.permit(None);
    for job in others.into_iter().chain(old).chain(flood) {
        assert!(job.await.is_ok());
    }
    let batches = stage.batches();
    let begun = batches[1..5].concat();
    let counts = count(&begun);
    assert_eq!(counts["quiet"], 4, "{batches:?}");
    assert!(batches.iter().take(8).flatten().filter(|name| *name == "old").count() == 4, "{batches:?}");
}

#[tokio::test]
async fn a_panic_ends_its_own_job_and_no_other() {
    for fault in ["panic", "fail"] {
        let (stage, hasher, _first) = occupied();
        let culprit = ask(&hasher, key("main", 1), usual(), fault);
        let others = [2, 3].map(|host| ask(&hasher, key("main", host), usual(), "fine"));
        stage.permit(None);
        assert_eq!(culprit.await, Err(Refusal::Failed), "{fault}");
        for other in others {
            assert!(other.await.is_ok(), "{fault}");
        }
        assert_eq!(stage.batches()[1..], [vec![fault, "fine", "fine"], vec![fault], vec!["fine"], vec!["fine"]]);
        assert_eq!(hasher.state().running, 0);
        assert_eq!(ask(&hasher, key("main", 1), usual(), fault).await, Err(Refusal::Failed));
        let state = hasher.state();
        assert_eq!(
            (state.done_total, state.failed_total),
            (3, 2),
            "the first and the two others, and the culprit twice"
        );
        assert_eq!(state.memory, 0, "memory of a failed job is not kept");
        assert!(ask(&hasher, key("main", 1), usual(), "fine").await.is_ok());
    }
}

#[tokio::test]
async fn without_memory_for_a_batch_its_jobs_run_alone() {
    let (stage, hasher, _first) = occupied();
    stage.scene.lock().unwrap().given = Some(u64::from(MILLISECOND));
    let jobs = [1, 2, 3].map(|host| ask(&hasher, key("main", host), usual(), "fine"));
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert_eq!(stage.batches()[1..].iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 1, 1]);
    stage.scene.lock().unwrap().given = Some(0);
    assert_eq!(ask(&hasher, key("main", 1), usual(), "none").await, Err(Refusal::Failed));
}

#[tokio::test]
async fn who_goes_away_from_a_batch_leaves_the_others_their_answers() {
    let (stage, hasher, first) = occupied();
    let mut jobs: Vec<_> = (1..=4).map(|n| ask(&hasher, key("main", n), usual(), &n.to_string())).collect();
    drop(jobs.remove(0));
    stage.permit(Some(1));
    assert!(first.await.is_ok());
    until("the batch runs", || hasher.state().running == 3);
    drop(jobs.remove(0));
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert_eq!(stage.batches(), [vec!["first"], vec!["2", "3", "4"]]);
    until("all is done", || hasher.state().done_total == 4);
    assert_eq!(hasher.state().withdrawn_total, 1, "the other one had left the queue already");
}

/// A waker that panics.
struct Panics;

impl std::task::Wake for Panics {
    fn wake(self: std::sync::Arc<Self>) {
        panic!("a waker of the test");
    }
}

#[tokio::test]
async fn who_panics_when_told_takes_no_answer_from_the_others() {
    // Red without catch_unwind around deliver: the thread dies with the answers that it had not delivered yet.
    let (stage, hasher, first) = occupied();
    let mut jobs: Vec<_> = (1..=3).map(|n| ask(&hasher, key("main", n), usual(), &n.to_string())).collect();
    let waker = std::task::Waker::from(std::sync::Arc::new(Panics));
    assert!(std::future::Future::poll(jobs[0].as_mut(), &mut std::task::Context::from_waker(&waker)).is_pending());
    stage.permit(None);
    assert!(first.await.is_ok());
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert_eq!((stage.batches()[1].len(), hasher.state().faults_total), (3, 0));
}

#[tokio::test]
async fn a_thread_that_dies_outside_of_a_job_comes_back() {
    for spot in [Spot::Kernel, Spot::Books] {
        let (stage, hasher, first) = occupied();
        let waits = ask(&hasher, key("main", 1), usual(), "waits");
        stage.kill(spot);
        stage.permit(Some(1));
        assert_eq!(first.await, Err(Refusal::Failed), "{spot:?}: nobody waits for ever");
        until("the next one runs", || stage.begun().len() == 2);
        let state = hasher.state();
        assert_eq!((state.faults_total, state.running, state.waiting), (1, 1, 0), "{spot:?}");
        assert_eq!(state.memory, u64::from(MILLISECOND) * 1024, "{spot:?}: what it held went with it");
        stage.permit(None);
        assert!(waits.await.is_ok());
        hasher.stop().await;
    }
}

#[tokio::test]
async fn a_thread_that_dies_over_a_trial_makes_it_again() {
    for spot in [Spot::Kernel, Spot::Books] {
        let stage = Stage::closed();
        let hasher = stage.hasher(wide(2, 4096));
        let measuring = hasher.clone();
        let calibrating = begin(async move { measuring.calibrate().await });
        until("both measure", || stage.batches().len() == 2);
        stage.kill(spot);
        stage.permit(None);
        assert!(calibrating.await.to_text().contains("bcrypt: "), "{spot:?}");
        assert_eq!(hasher.state().faults_total, 1);
        assert!(ask(&hasher, key("main", 1), usual(), "fine").await.is_ok());
    }
}

/// One job holds most of the memory, and another one that needs as much is next.
fn held_up(lights: impl Fn(u8) -> Kind) -> (std::sync::Arc<Stage>, crate::Hasher, Vec<Hashing>) {
    let stage = Stage::closed();
    let hasher = stage.hasher(wide(8, 25_000));
    let mut jobs = vec![ask(&hasher, key("heavy", 1), argon2(20_000), "heavy")];
    until("it runs", || hasher.state().running == 1);
    jobs.push(ask(&hasher, key("heavy", 2), argon2(20_000), "next"));
    jobs.extend((0..40).map(|n| ask(&hasher, key("light", n), lights(n), "light")));
    (stage, hasher, jobs)
}

#[tokio::test]
async fn who_lacks_memory_leaves_no_thread_idle() {
    for lights in [|_| argon2(64), |_| BCRYPT, |n| if n % 2 == 0 { argon2(64) } else { BCRYPT }] {
        let (stage, hasher, jobs) = held_up(lights);
        until("all threads run", || hasher.state().running == 8);
        until("light ones", || stage.begun().iter().filter(|name| *name == "light").count() == 7);
        stage.permit(None);
        for job in jobs {
            assert!(job.await.is_ok());
        }
        assert!(stage.scene.lock().unwrap().peak <= 25_000);
    }
}
