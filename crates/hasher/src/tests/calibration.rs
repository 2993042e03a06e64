//! How the number of lanes is found, kept, and found again.

use super::stage::*;
use crate::{Calibration, Policy, Settings, cost::SETTLED, job::Kind};

#[tokio::test]
async fn a_calibration_is_made_once_and_kept() {
    let stage = Stage::open();
    let hasher = stage.hasher(narrow());
    let made = hasher.calibrate().await;
    let trials = stage.batches().len();
    assert!(trials > 10, "sizes of two kinds");
    assert!(stage.batches().iter().any(|batch| batch.len() > 2));
    let text = made.to_text();
    assert!(text.contains("argon2id m=2500 t=1 p=1: ") && text.contains("bcrypt: "), "{text}");
    assert_eq!(hasher.calibrate().await, made);
    assert_eq!(stage.batches().len(), trials, "nothing was left to measure");
    until("the memory of the trials is given back", || hasher.state().memory == 0);
    assert_eq!((hasher.state().done_total, hasher.state().batches_total), (0, 0));
    assert_eq!(hasher.kinds().len(), 2);

    let stage = Stage::open();
    let calibration = Some(Calibration::from_text(&text).unwrap());
    let hasher = stage.hasher(Settings { calibration, ..narrow() });
    assert_eq!(hasher.calibrate().await.to_text(), text);
    assert_eq!(stage.batches().len(), 0);
}

#[tokio::test]
async fn a_calibration_of_another_machine_or_policy_is_redone() {
    let stage = Stage::open();
    let made = stage.hasher(narrow()).calibrate().await.to_text();
    let machine = Calibration::from_text(&made).unwrap().machine().to_owned();
    for (from, to) in [(machine.as_str(), "another CPU"), ("m=2500", "m=2400")] {
        let stage = Stage::open();
        let calibration = Calibration::from_text(&made.replace(from, to)).ok();
        assert!(calibration.is_some());
        let hasher = stage.hasher(Settings { calibration, ..narrow() });
        let redone = hasher.calibrate().await;
        assert!(stage.batches().len() > 5, "{to}");
        assert_eq!(redone.machine(), machine);
        assert!(redone.to_text().contains("m=2500"));
    }
}

#[tokio::test]
async fn real_jobs_go_before_trials() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let measuring = hasher.clone();
    let mut calibrating = begin(async move { measuring.calibrate().await });
    until("a trial runs", || stage.batches().len() == 1);
    let real = ask(&hasher, key("main", 1), usual(), "real");
    assert!(now(&mut calibrating).is_none());
    assert_eq!(hasher.state().running, 0, "a trial is nobody's job");
    stage.permit(Some(2));
    assert!(real.await.is_ok());
    assert_eq!(stage.batches()[1], ["real"]);
    stage.permit(None);
    calibrating.await;
}

#[tokio::test]
async fn a_stop_ends_a_calibration() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let measuring = hasher.clone();
    let calibrating = begin(async move { measuring.calibrate().await });
    until("a trial runs", || stage.batches().len() == 1);
    let stopper = hasher.clone();
    let stopping = begin(async move { stopper.stop().await });
    calibrating.await;
    stage.permit(None);
    stopping.await;
    assert_eq!(stage.batches().len(), 1);
}

#[tokio::test]
async fn trials_stay_under_the_ceiling() {
    let stage = Stage::open();
    let hasher = stage.hasher(wide(2, 40));
    hasher.calibrate().await;
    assert!(stage.scene.lock().unwrap().peak <= 40);
    // More than two jobs of the other kind fit.
    assert!(stage.batches().iter().map(Vec::len).max() > Some(2), "bcrypt needs none");
}

#[tokio::test]
async fn a_calibration_ends_where_others_hold_the_memory() {
    let stage = Stage::open();
    let hasher = stage.hasher(Settings { policy: Policy::weak(1000, 1, 1).unwrap(), ..wide(2, 4096) });
    assert!(ask(&hasher, key("main", 1), argon2(4000), "large").await.is_ok());
    let text = hasher.calibrate().await.to_text();
    assert!(text.contains("bcrypt: ") && !text.contains("argon2id"), "{text}");
    assert!(stage.scene.lock().unwrap().peak <= 4096);
}

#[tokio::test]
async fn all_threads_measure_the_same() {
    let stage = Stage::open();
    let hasher = stage.hasher(wide(4, 4096));
    hasher.calibrate().await;
    let sizes: Vec<_> = stage.batches().iter().map(Vec::len).collect();
    assert!(sizes.chunks(4).all(|step| step.iter().all(|size| *size == step[0])), "{sizes:?}");
}

#[tokio::test]
async fn lanes_are_learned_from_work_where_nothing_was_calibrated() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: std::time::Duration::from_secs(60), ..narrow() });
    let _first = stage.occupy(&hasher);
    let jobs: Vec<_> = (0..40).map(|_| ask(&hasher, key("main", 1), usual(), "any")).collect();
    assert_eq!(hasher.state().lanes, 1);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    let sizes: Vec<_> = stage.batches()[1..].iter().map(Vec::len).collect();
    assert_eq!(sizes[..5], [1, 1, 1, 1, 2], "one that maps the memory, {SETTLED} with one lane, then two: {sizes:?}");
}

/// Begins to calibrate a pool whose one thread always has work; returns how many jobs it takes until the calibration
/// ends, and the pool. Each job takes `pause` of the clock.
async fn jobs_until_calibrated(pause: std::time::Duration) -> (usize, crate::Hasher) {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: std::time::Duration::from_secs(600), ..narrow() });
    let first = stage.occupy(&hasher);
    let ask = || ask(&hasher, key("main", 1), usual(), "work");
    let mut waiting: std::collections::VecDeque<_> = (0..20).map(|_| ask()).collect();
    let measuring = hasher.clone();
    let mut calibrating = begin(async move { measuring.calibrate().await });
    stage.permit(Some(1));
    assert!(first.await.is_ok());
    let mut done = 0;
    while now(&mut calibrating).is_none() {
        waiting.extend((0..4).map(|_| ask()));
        stage.skip(&hasher, pause);
        stage.permit(Some(1));
        assert!(waiting.pop_front().unwrap().await.is_ok());
        until("the batch is over", || stage.scene.lock().unwrap().permits == Some(0));
        done += 1;
        assert!(done < 1000, "without an end");
    }
    assert!(stage.begun().iter().all(|name| !name.is_empty()), "nothing was measured");
    stage.permit(None);
    (done, hasher)
}

#[tokio::test]
async fn a_calibration_that_finds_no_idle_moment_ends_with_what_work_has_taught() {
    let (done, hasher) = jobs_until_calibrated(std::time::Duration::from_secs(1)).await;
    assert!((20..40).contains(&done), "after half a minute: {done}");
    let text = hasher.calibration().to_text();
    assert!(text.contains("argon2id m=2500") && !text.contains("bcrypt"), "{text}");
    // The rest is measured when there is a moment.
    assert!(hasher.calibrate().await.to_text().contains("bcrypt: "));
}

#[tokio::test]
async fn what_work_has_taught_is_not_measured() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: std::time::Duration::from_secs(60), ..narrow() });
    let _first = stage.occupy(&hasher);
    let _jobs: Vec<_> = (0..60).map(|_| ask(&hasher, key("main", 1), usual(), "work")).collect();
    let measuring = hasher.clone();
    let calibrating = begin(async move { measuring.calibrate().await });
    stage.permit(None);
    assert!(calibrating.await.to_text().contains("bcrypt: "));
    let scene = stage.scene.lock().unwrap();
    let measured = scene.begun.iter().filter(|(_, names)| names[0].is_empty()).map(|(kind, _)| *kind);
    assert!(
        measured.clone().count() > 5 && measured.into_iter().all(|kind| kind == crate::job::Kind::Bcrypt { cost: 5 })
    );
}

/// The lanes that are shown are those that run: no more than there is memory for, nor than the algorithm has.
#[tokio::test]
async fn the_lanes_that_are_told_are_those_that_run() {
    let rising = [800.0, 700.0, 600.0, 500.0, 400.0, 300.0, 200.0, 100.0].map(Some);
    for (memory, lanes) in [(8, 1), (16, 2), (1000, 4)] {
        let hasher = Stage::open().hasher(wide(1, memory));
        let kinds = [Kind::Bcrypt { cost: 5 }, argon2(8)];
        hasher.gate().know(kinds.iter().map(|kind| ((*kind).into(), &rising[..])));
        let told: Vec<_> = hasher.kinds().into_iter().map(|kind| kind.lanes).collect();
        assert_eq!(told, [lanes, 8], "{memory} KiB: Argon2, then bcrypt");
    }
}
