//! Which jobs may wait, and which callers are told to come back.

use std::{sync::Arc, time::Duration};

use super::stage::*;
use crate::caller::{caller, on_behalf_of};
use crate::{Refusal, Settings, Stored, Verified};

#[tokio::test]
async fn past_the_budget_the_answer_is_busy_at_once() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let mut flood: Vec<_> = (0..30).map(|_| ask(&hasher, key("main", 1), usual(), "flood")).collect();
    let refused: Vec<_> = flood.iter_mut().filter_map(now).collect();
    assert_eq!(refused.len(), 20);
    for refusal in refused {
        let Err(Refusal::Busy { retry_after }) = refusal else { panic!("{refusal:?}") };
        assert_eq!(retry_after, Duration::from_millis(10));
    }
    let state = hasher.state();
    assert_eq!((state.waiting, state.running, state.refused_total), (10, 1, 20));
    assert_eq!(state.expected_wait, Duration::from_millis(10));
    assert_eq!((state.threads, state.mean_cost), (1, Duration::from_millis(1)));
    stage.permit(None);
    assert!(first.await.is_ok());
    for admitted in flood.into_iter().take(10) {
        assert!(admitted.await.is_ok());
    }
    assert_eq!(hasher.state().done_total, 11);
}

#[tokio::test]
async fn who_is_told_no_without_a_job_is_counted_too_once_and_by_what_he_was_held_to() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let _first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let counts = || (hasher.state().refused_total, hasher.state().turned_away_total);
    let mut jobs: Vec<_> = (0..5).map(|_| ask(&hasher, key("main", 1), usual(), "job")).collect();
    assert_eq!((hasher.crowded(&key("main", 1), 1.0), counts()), (None, (0, 0)));
    assert!(hasher.crowded(&key("main", 1), 0.25).is_some());
    assert_eq!(counts(), (0, 1), "a newcomer");
    jobs.extend((0..5).map(|_| ask(&hasher, key("main", 1), usual(), "job")));
    assert!(hasher.crowded(&key("main", 1), 1.0).is_some());
    assert_eq!(counts(), (1, 1), "somebody with a password");
    assert!(ask(&hasher, key("main", 1), usual(), "job").await.is_err());
    assert_eq!(counts(), (2, 1), "and one who was not asked for first");
}

#[tokio::test]
async fn who_is_on_the_way_counts_for_who_asks_and_not_for_who_has_come() {
    // Red without `more` in Books::excess_beside, without `coming` in has_room_beside, or with it in Gate::room.
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let crowded = |share| hasher.crowded(&key("main", 1), share);
    let mut coming: Vec<_> = (0..9).map(|_| hasher.coming()).collect();
    assert_eq!(crowded(1.0), None, "a tenth finds the time");
    assert!(crowded(0.5) >= Some(Duration::from_millis(4)), "a newcomer does not");
    coming.push(hasher.coming());
    assert!(crowded(1.0).is_some(), "nor does an eleventh, although nobody has come yet");
    let first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let mut jobs: Vec<_> = (0..10).map(|_| ask(&hasher, key("main", 1), usual(), "job")).collect();
    assert!(jobs.iter_mut().all(|job| now(job).is_none()), "who comes is not kept out by those who have not");
    drop(coming);
    assert!(crowded(1.0).is_some(), "they are there now");
    stage.permit(None);
    assert!(first.await.is_ok());
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert_eq!((crowded(1.0), crowded(0.0)), (None, None), "nobody is on the way any more");
}

#[tokio::test]
async fn the_budget_counts_lanes() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    three_lanes(&hasher, &[usual()]);
    let _first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let mut waits = Vec::new();
    let mut flood: Vec<_> = Vec::new();
    for _ in 0..30 {
        flood.push(ask(&hasher, key("main", 1), usual(), "flood"));
        waits.push(hasher.state().expected_wait.as_millis());
    }
    assert_eq!(waits[..6], [1, 2, 2, 3, 4, 4], "three take as long as two of them would in turn");
    assert_eq!(flood.iter_mut().filter_map(now).count(), 16, "14 in 10 ms instead of 10");
    assert_eq!(hasher.state().lanes, 3);
}

#[tokio::test]
async fn what_runs_counts_until_it_should_have_ended() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let _running = ask(&hasher, key("main", 1), argon2(5 * MILLISECOND), "five");
    until("it runs", || hasher.state().running == 1);
    let _waiting = ask(&hasher, key("main", 1), usual(), "one");
    assert_eq!(hasher.state().expected_wait, Duration::from_millis(6));
    stage.skip(&hasher, Duration::from_millis(2));
    assert_eq!(hasher.state().expected_wait, Duration::from_millis(4));
    stage.skip(&hasher, Duration::from_millis(20));
    assert_eq!(hasher.state().expected_wait, Duration::from_millis(1));
}

#[tokio::test]
async fn a_flood_gives_room_to_a_newcomer_who_is_next() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let mut flood: Vec<_> = (0..10).map(|n| ask(&hasher, key("noisy", n), usual(), "noisy")).collect();
    assert!(flood.iter_mut().all(|job| now(job).is_none()));
    let quiet = ask(&hasher, key("quiet", 1), usual(), "quiet");
    let neighbor = ask(&hasher, key("noisy", 77), usual(), "neighbor");
    let state = hasher.state();
    assert_eq!((state.waiting, state.refused_total), (10, 2), "one of the flood, and the neighbor in the same tenant");
    stage.permit(None);
    assert!(matches!(neighbor.await, Err(Refusal::Busy { .. })));
    assert!(quiet.await.is_ok() && first.await.is_ok());
    let mut served = 0;
    for job in flood {
        served += usize::from(job.await.is_ok());
    }
    assert_eq!(served, 9);
    let place = stage.begun().iter().position(|password| password == "quiet");
    assert!(place.unwrap() <= 2, "{:?}", stage.begun());
}

/// Red where the excess, in today's costs, is asked of a queue that is booked at the costs of when it came: the excess
/// is more than is booked, nobody has to give, and one address keeps all others out until its flood is gone.
#[tokio::test]
async fn a_flood_gives_room_although_all_of_it_became_dearer() {
    for (pace, stay) in [(800.0, 49), (1600.0, 24)] {
        // Tokio answers a task that got many answers without a pause no more: each round begins after one.
        tokio::task::yield_now().await;
        let stage = Stage::closed();
        let hasher = stage.hasher(Settings { max_wait: Duration::from_millis(100), ..narrow() });
        let first = stage.occupy(&hasher);
        stage.skip(&hasher, Duration::from_millis(1));
        let mut flood: Vec<_> = (0..100).map(|_| ask(&hasher, key("main", 1), usual(), "flood")).collect();
        assert!(flood.iter_mut().all(|job| now(job).is_none()));
        // Twice, and four times, the cost that was expected when the flood was admitted.
        hasher.gate().know(std::iter::once((usual().into(), &[Some(pace); 5][..])));
        assert!(hasher.state().expected_wait >= Duration::from_millis(200));
        assert!(hasher.crowded(&key("main", 1), 1.0).is_some() && hasher.crowded(&key("main", 2), 1.0).is_none());
        let mut other = ask(&hasher, key("main", 2), usual(), "other");
        assert!(now(&mut other).is_none());
        let gone: Vec<_> = (0..).zip(&mut flood).filter_map(|(at, job)| now(job).map(|_| at)).collect();
        assert_eq!(gone, Vec::from_iter(stay..100), "the last to come");
        let again = ask(&hasher, key("main", 1), usual(), "again").await;
        assert!(matches!(again, Err(Refusal::Busy { .. })), "the flood itself gets no room");
        assert_eq!(hasher.state().waiting, stay + 1);
        stage.permit(None);
        assert!(first.await.is_ok() && other.await.is_ok());
        for job in flood.into_iter().take(stay) {
            assert!(job.await.is_ok());
        }
        let place = stage.begun().iter().position(|password| password == "other");
        assert!(place.unwrap() <= 2, "{:?}", stage.begun());
    }
}

/// Red where the next spelling is admitted only after the last was tried: a guess would wait several times, and be
/// refused in the middle. And where all spellings have to fit into the budget: an idle pool would never take them in.
#[tokio::test]
async fn all_spellings_of_a_password_wait_together() {
    const SPELLED: &str = "$P$7saltsaltvXFU6LLmynAULjkbJWh6Y0";
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::ZERO, ..narrow() });
    let stored: Stored = SPELLED.parse().unwrap();
    let first = stage.occupy(&hasher);
    let refused = hasher.verify(&key("main", 1), &stored, b"isn't").await;
    assert!(matches!(refused, Err(Refusal::Busy { .. })), "{refused:?}");
    stage.permit(None);
    assert!(first.await.is_ok());
    assert!(!hasher.verify(&key("main", 1), &stored, b"isn't").await.unwrap().ok);
    assert_eq!(stage.begun(), ["first", "isn't", r"isn\'t"]);

    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(1), ..narrow() });
    let (first, guessing) = (stage.occupy(&hasher), hasher.clone());
    let guess = begin(async move { guessing.verify(&key("main", 1), &SPELLED.parse().unwrap(), b"isn't").await });
    until("both spellings wait", || hasher.state().waiting == 2);
    stage.permit(None);
    assert!(first.await.is_ok() && !guess.await.unwrap().ok);
    assert_eq!(stage.begun(), ["first", "isn't", r"isn\'t"]);
}

#[tokio::test]
async fn an_idle_thread_admits_what_ever_the_budget() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::ZERO, ..narrow() });
    let first = ask(&hasher, key("main", 1), usual(), "first");
    assert!(matches!(ask(&hasher, key("main", 1), usual(), "second").await, Err(Refusal::Busy { .. })));
    stage.permit(None);
    assert!(first.await.is_ok());
    assert!(ask(&hasher, key("main", 1), usual(), "third").await.is_ok());
}

#[tokio::test]
async fn who_goes_away_from_work_that_goes_on_leaves_the_queue_before_anything_was_hashed_and_not_after() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = stage.occupy(&hasher);
    let (asked, (here, somebody)) = (hasher.clone(), caller());
    let mut waits = begin(on_behalf_of(somebody, async move { ask(&asked, key("main", 1), usual(), "waits").await }));
    drop(here);
    assert_eq!(now(&mut waits), Some(Err(Refusal::Withdrawn)));
    assert_eq!((hasher.state().waiting, hasher.state().withdrawn_total), (0, 1));

    let (asked, (here, somebody)) = (hasher.clone(), caller());
    let mut goes_on = begin(on_behalf_of(somebody, async move {
        let first = ask(&asked, key("main", 1), usual(), "begun").await;
        (first.is_ok(), ask(&asked, key("main", 1), usual(), "after").await.is_ok())
    }));
    stage.permit(Some(1));
    until("it is hashed", || stage.begun().contains(&"begun".to_owned()));
    drop(here);
    assert_eq!(now(&mut goes_on), None);
    stage.permit(None);
    until("both were hashed", || now(&mut goes_on) == Some((true, true)));
    assert!(first.await.is_ok());
    assert_eq!(hasher.state().withdrawn_total, 1);
}

#[tokio::test]
async fn who_goes_away_leaves_the_queue() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let first = stage.occupy(&hasher);
    let gone: Vec<_> = (0..5).map(|_| ask(&hasher, key("main", 1), usual(), "gone")).collect();
    let stays = ask(&hasher, key("main", 1), usual(), "stays");
    drop(gone);
    let state = hasher.state();
    assert_eq!((state.waiting, state.withdrawn_total), (1, 5));
    stage.permit(None);
    assert!(first.await.is_ok() && stays.await.is_ok());
    assert_eq!(stage.begun(), ["first", "stays"]);
}

#[tokio::test]
async fn stop_finishes_what_runs_and_refuses_what_waits() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let runs = stage.occupy(&hasher);
    let waits = ask(&hasher, key("main", 1), usual(), "waits");
    let stopper = hasher.clone();
    let mut stopping = begin(async move { stopper.stop().await });
    assert!(now(&mut stopping).is_none());
    assert_eq!(waits.await, Err(Refusal::Stopped));
    assert_eq!(ask(&hasher, key("main", 1), usual(), "comes").await, Err(Refusal::Stopped));
    stage.permit(None);
    assert!(runs.await.is_ok());
    stopping.await;
    hasher.stop().await;
    assert_eq!(stage.begun(), ["first"]);
}

#[tokio::test]
async fn the_last_clone_ends_the_threads() {
    let stage = Stage::open();
    let hasher = stage.hasher(narrow());
    let other = hasher.clone();
    drop(hasher);
    assert!(ask(&other, key("main", 1), usual(), "still").await.is_ok());
    drop(other);
    // Each thread holds the stage through its kernel.
    until("the threads are gone", || Arc::strong_count(&stage) == 1);
}

#[tokio::test]
async fn what_can_never_be_hashed_is_said_so() {
    let stage = Stage::open();
    let hasher = stage.hasher(Settings { memory: Some(4 << 20), ..narrow() });
    let verify = async |params: &str, password: &[u8]| {
        let text = format!("$argon2id$v=19${params}$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA");
        hasher.verify(&key("main", 1), &text.parse().unwrap(), password).await
    };
    assert!(matches!(verify("m=4097,t=1,p=1", b"x").await, Err(Refusal::Unsupported(_))));
    assert!(matches!(verify("m=64,t=1,p=1,keyid=azI", b"x").await, Err(Refusal::Unsupported(_))));
    // This says nothing about the hash.
    assert_eq!(verify("m=64,t=1,p=1", &[b'x'; 4097]).await, Err(Refusal::TooLong));
    assert_eq!(stage.begun().len(), 0);
    assert!(verify("m=64,t=1,p=1", &[b'x'; 4096]).await.is_ok());
    assert!(verify("m=4096,t=1,p=1", b"").await.is_ok());
}

#[tokio::test]
async fn a_decoy_costs_the_same_and_is_never_right() {
    let stage = Stage::open();
    let hasher = stage.hasher(narrow());
    let verified = hasher.decoy(&key("main", 1), SALT, b"guess").await;
    assert_eq!(verified, Ok(Verified { ok: false, rehash: false }));
    assert_eq!(stage.scene.lock().unwrap().begun[0].0, usual());
    assert_eq!(hasher.state().done_total, 1);
    assert_eq!(hasher.state().memory, u64::from(MILLISECOND) * 1024);
}

#[tokio::test]
async fn who_comes_back_when_told_finds_a_thread() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    // A minute, which is more than the budget.
    let _long = ask(&hasher, key("main", 1), argon2(MILLISECOND * 400), "long");
    until("it runs", || hasher.state().running == 1);
    let busy = ask(&hasher, key("main", 2), usual(), "busy").await;
    assert_eq!(busy, Err(Refusal::Busy { retry_after: Duration::from_millis(400) }));
    stage.skip(&hasher, Duration::from_millis(100));
    assert_eq!(hasher.state().expected_wait, Duration::from_millis(300));
}

/// Red where the answer is when a newcomer would begin: nothing waits and what runs is late: at once.
#[tokio::test]
async fn nobody_is_told_to_come_back_at_once() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::ZERO, ..narrow() });
    let first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_secs(1));
    assert_eq!(hasher.state().expected_wait, Duration::ZERO);
    let retry_after = Duration::from_millis(1);
    let busy = ask(&hasher, key("main", 1), usual(), "job").await;
    assert_eq!(busy, Err(Refusal::Busy { retry_after }));
    assert_eq!(hasher.crowded(&key("main", 1), 1.0), Some(retry_after));
    three_lanes(&hasher, &[usual()]);
    let three = hasher.crowded(&key("main", 1), 1.0);
    assert!(three > Some(Duration::from_micros(1990)), "they take as long as two in turn: {three:?}");
    stage.permit(None);
    assert!(first.await.is_ok());
    assert!(ask(&hasher, key("main", 1), usual(), "job").await.is_ok(), "who finds a thread free need not wait");
}

#[tokio::test]
async fn one_long_job_closes_no_door_to_the_other_threads() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { threads: std::num::NonZeroUsize::new(2), ..narrow() });
    let _long = ask(&hasher, key("main", 1), argon2(MILLISECOND * 40), "long");
    until("it runs", || hasher.state().running == 1);
    let mut waits = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..20 {
        jobs.push(ask(&hasher, key("main", 2), usual(), "short"));
        waits.push(hasher.state().expected_wait.as_millis());
    }
    assert_eq!(waits[..11], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10], "by the other thread alone");
    assert_eq!(jobs.iter_mut().filter_map(now).count(), 10);
}

#[tokio::test]
async fn jobs_that_exclude_each_other_by_memory_wait_for_each_other() {
    // In each case this many of them can run at the same time.
    for (memory, together) in [(25_000, 1), (15_000, 1), (12_000, 2), (7_500, 3), (3_000, 8)] {
        let stage = Stage::closed();
        let hasher = stage.hasher(Settings { max_wait: Duration::from_millis(100), ..wide(8, 25_000) });
        let take = Duration::from_secs_f64(f64::from(memory) / f64::from(MILLISECOND) / 1e3);
        let mut jobs: Vec<_> = (0..800).map(|n| ask(&hasher, key("main", n as u8), argon2(memory), "any")).collect();
        let refused: Vec<_> = jobs.iter_mut().filter_map(now).collect();
        let admitted = 800 - refused.len();
        let last = take * (admitted.div_ceil(together) as u32 - 1);
        let most = Duration::from_millis(100) + 2 * take;
        assert!(last <= most, "{memory} KiB: the last of {admitted} waits {last:?}");
        assert!(
            last + 3 * take >= Duration::from_millis(100),
            "{memory} KiB: the last of {admitted} waits {last:?} only"
        );
        for busy in refused {
            let Err(Refusal::Busy { retry_after }) = busy else { panic!("{busy:?}") };
            assert!((Duration::from_millis(90)..most).contains(&retry_after), "{memory} KiB: {retry_after:?}");
        }
    }
}
