//! Who computes what: threads here and workers; and what happens when a worker goes away, is late or is wrong.

use std::{sync::Arc, time::Duration};

use zeroize::Zeroizing;

use super::stage::*;
use crate::{
    Hasher, Key, KeyId, Keys, Refusal, Settings, Subject,
    argon2::{Cost, H0},
    job::{Input, Reach},
    remote::{
        Introduction, Lie, Link, Parted, WorkerState,
        frame::{Answer, Ask, Ready},
    },
};

fn keys() -> Keys {
    let id = |name: &[u8]| KeyId::new(name).unwrap();
    let keys = [Key::pepper(id(b"p1"), Zeroizing::new([1; 32])), Key::binding(id(b"b1"), Zeroizing::new([2; 32]))];
    Keys::new(keys).unwrap()
}

pub(super) fn bound() -> Settings {
    Settings { keys: keys(), ..narrow() }
}

fn who(name: &str) -> Introduction {
    Introduction { key: [name.len() as u8; 32], name: name.into(), address: "192.0.2.9:5000".into() }
}

/// This many thousandths as fast as the one thread here, which does a thousand hashes per second.
pub(super) fn fast(thousandths: u64, holds: u32) -> Ready {
    Ready { threads: 1, memory: 1 << 20, holds, rate: thousandths * 1000 }
}

pub(super) fn attach(hasher: &Hasher, name: &str, ready: Ready) -> Link {
    hasher.attach(who(name), ready, Zeroizing::new([3; 32])).unwrap()
}

/// Asks for a job that a worker may do.
pub(super) fn anywhere(hasher: &Hasher, number: u8) -> Hashing {
    let input = Input::Argon2(H0::from_bytes(&[number; 64]));
    match hasher.gate().admit_to(Reach::Anywhere, &key("main", 1), (usual(), input)) {
        Ok(ticket) => begin(ticket.answer()),
        Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
    }
}

/// The asks for a worker that it has not received yet.
pub(super) async fn sent(link: &Link) -> Vec<Ask> {
    tokio::time::timeout(Duration::from_secs(60), link.asks()).await.unwrap().unwrap()
}

/// Answers as the stage computes.
pub(super) fn right(ask: &Ask) -> Answer {
    Answer { id: ask.id, tag: Some(Zeroizing::new(vec![0; 32])) }
}

pub(super) fn wrong(ask: &Ask) -> Answer {
    Answer { id: ask.id, tag: Some(Zeroizing::new(vec![9; 32])) }
}

/// A machine whose one thread is busy, a millisecond later: newcomers wait, and ten of them use up the budget.
pub(super) fn busy() -> (Arc<Stage>, Hasher, Hashing) {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    (stage, hasher, first)
}

/// Asks for two hundred hashes; returns all of them, and how many were admitted.
pub(super) fn crowd(hasher: &Hasher) -> (Vec<Hashing>, usize) {
    let mut jobs: Vec<_> = (0..200).map(|number| anywhere(hasher, number)).collect();
    let refused = jobs.iter_mut().filter_map(now).count();
    (jobs, 200 - refused)
}

/// Red where the search for a worker's job ends after as many looks as for a thread here.
#[tokio::test]
async fn a_worker_is_found_work_behind_much_that_only_this_machine_may_compute() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let _first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let _here: Vec<Hashing> = (0..200)
        .map(|number| {
            let input = Input::Argon2(H0::from_bytes(&[number; 64]));
            begin(hasher.gate().admit_to(Reach::Here, &key("main", number), (usual(), input)).unwrap().answer())
        })
        .collect();
    let _anywhere = anywhere(&hasher, 201);
    let link = attach(&hasher, "one", fast(1000, 8));
    assert_eq!(sent(&link).await.len(), 1);
}

#[tokio::test]
async fn workers_raise_what_is_admitted() {
    for (workers, holds, admitted) in [(0, 0, 10), (1, 4, 20), (2, 4, 30), (1, 0, 10)] {
        let (_stage, hasher, _first) = busy();
        let links: Vec<_> = (0..workers).map(|_| attach(&hasher, "worker", fast(1000, holds))).collect();
        let (_jobs, found) = crowd(&hasher);
        assert!(found.abs_diff(admitted) <= 2, "{workers} workers: {found} instead of {admitted}");
        drop(links);
    }
}

#[tokio::test]
async fn what_only_this_machine_may_do_is_admitted_as_if_there_were_no_worker() {
    let (_stage, hasher, _first) = busy();
    let link = attach(&hasher, "worker", fast(8000, 16));
    let mut jobs: Vec<_> = (0..30).map(|_| ask(&hasher, key("main", 1), usual(), "here")).collect();
    assert_eq!(jobs.iter_mut().filter_map(now).count(), 20);
    drop(link);
}

#[tokio::test]
async fn who_is_expected_to_be_first_gets_the_job() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let slow = attach(&hasher, "slow", fast(100, 16));
    let quick = attach(&hasher, "quick", fast(500, 16));
    let mut jobs: Vec<_> = vec![anywhere(&hasher, 1)];
    until("the thread here has the first", || hasher.state().running == 1);
    jobs.extend((2..8).map(|number| anywhere(&hasher, number)));
    let to_quick = sent(&quick).await;
    assert!((1..=3).contains(&to_quick.len()), "{}", to_quick.len());
    assert!(hasher.workers().iter().all(|worker| worker.who.name == "quick" || worker.holding == 0));
    drop((slow, quick));
}

#[tokio::test]
async fn a_worker_holds_no_more_than_it_said() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 3));
    let _jobs: Vec<_> = (0..12).map(|number| anywhere(&hasher, number)).collect();
    let held = sent(&link).await;
    assert_eq!(held.len(), 3);
    link.answers(vec![right(&held[0])]);
    assert_eq!(sent(&link).await.len(), 1);
    link.holds(0);
    link.answers(held[1..].iter().map(right).collect());
    assert_eq!(hasher.workers()[0].holding, 1, "one who wants no more gets no more");
}

#[tokio::test]
async fn what_a_worker_held_goes_to_another_one_once_and_then_is_done_here() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let first = stage.occupy(&hasher);
    let (one, other, third) = (
        attach(&hasher, "one", fast(8000, 8)),
        attach(&hasher, "other", fast(4000, 8)),
        attach(&hasher, "third", fast(3000, 8)),
    );
    let job = anywhere(&hasher, 1);
    assert_eq!(sent(&one).await.len(), 1);
    drop(one);
    assert_eq!(sent(&other).await.len(), 1);
    drop(other);
    assert_eq!(hasher.workers()[0].holding, 0, "a second worker failed: no third one is tried");
    assert_eq!(hasher.state().waiting, 1);
    stage.permit(None);
    assert!(job.await.is_ok() && first.await.is_ok());
    drop(third);
}

#[tokio::test]
async fn what_a_worker_did_not_do_for_somebody_who_went_away_is_left() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let job = anywhere(&hasher, 1);
    assert_eq!(sent(&link).await.len(), 1);
    drop(job);
    drop(link);
    let state = hasher.state();
    assert_eq!((state.waiting, state.withdrawn_total), (0, 1));
}

#[tokio::test]
async fn what_is_late_for_somebody_who_went_away_is_not_done_here() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let mut jobs: Vec<_> = (0..2).map(|number| anywhere(&hasher, number)).collect();
    sent(&link).await;
    let before = hasher.state().waiting;
    drop(jobs.pop());
    stage.skip(&hasher, Duration::from_secs(1));
    hasher.look_after_workers();
    let state = hasher.state();
    assert_eq!((state.waiting, state.withdrawn_total), (before + 1, 1));
    assert_eq!(hasher.workers()[0].counts.hedged, 1);
}

#[tokio::test]
async fn a_worker_that_cannot_is_not_asked_for_a_while() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let _job = anywhere(&hasher, 1);
    let asks = sent(&link).await;
    link.answers(vec![Answer { id: asks[0].id, tag: None }]);
    let _second = anywhere(&hasher, 2);
    assert_eq!((hasher.workers()[0].holding, hasher.state().waiting), (0, 2));
    stage.skip(&hasher, Duration::from_secs(2));
    let _third = anywhere(&hasher, 3);
    assert!(hasher.workers()[0].holding > 0);
}

#[tokio::test]
async fn a_test_that_is_not_computed_counts_like_a_job() {
    // Red without refuse_work for canaries in remote/worker.rs: about one ask in 64 is one, which a worker could refuse
    // at no cost, and so would never be tested.
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(600), ..bound() });
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let mut refused = 0;
    for _ in 0..4000 {
        let _job = anywhere(&hasher, 1);
        let asks = tokio::select! {
            biased;
            asks = link.asks() => asks.unwrap(),
            () = std::future::ready(()) => Vec::new(),
        };
        refused += asks.len() as u64;
        link.answers(asks.iter().map(|ask| Answer { id: ask.id, tag: None }).collect());
        stage.skip(&hasher, Duration::from_secs(2));
    }
    assert!(refused > 1000, "{refused}");
    assert_eq!(hasher.workers()[0].counts.failed, refused);
}

#[tokio::test]
async fn what_is_late_is_done_here_and_the_late_answer_is_dropped() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let jobs: Vec<_> = (0..2).map(|number| anywhere(&hasher, number)).collect();
    let asks = sent(&link).await;
    let before = hasher.state().waiting;
    hasher.look_after_workers();
    assert_eq!(hasher.state().waiting, before, "nothing is late yet");
    stage.skip(&hasher, Duration::from_secs(1));
    hasher.look_after_workers();
    let state = &hasher.workers()[0];
    assert!(state.doubtful && state.counts.hedged > 0);
    // The first answer comes while its job still waits here, the second after its job was done here.
    link.answers(vec![right(&asks[0])]);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert!(first.await.is_ok());
    link.answers(asks[1..].iter().map(right).collect());
    link.answers(vec![right(&asks[0]), Answer { id: 77, tag: None }]);
    let state = &hasher.workers()[0];
    assert_eq!((state.counts.late, state.counts.duplicate, state.counts.unknown), (1, 1, 1));
    assert!(!state.doubtful);
}

#[tokio::test]
async fn a_worker_that_is_silent_for_too_long_is_sent_away() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let _job = anywhere(&hasher, 1);
    sent(&link).await;
    stage.skip(&hasher, Duration::from_secs(60));
    hasher.look_after_workers();
    assert_eq!(link.asks().await.err(), Some(Parted::Silent));
}

#[tokio::test]
async fn when_all_workers_go_those_who_would_wait_too_long_are_told_to_come_back() {
    let (stage, hasher, first) = busy();
    let links: Vec<_> = (0..4).map(|_| attach(&hasher, "worker", fast(1000, 4))).collect();
    let (jobs, admitted) = crowd(&hasher);
    assert!(admitted > 40, "{admitted}");
    drop(links);
    assert!(hasher.state().expected_wait <= Duration::from_millis(10), "{:?}", hasher.state().expected_wait);
    stage.permit(None);
    let mut done = 0;
    for job in jobs.into_iter().take(admitted) {
        match job.await {
            Ok(_) => done += 1,
            Err(refusal) => assert!(matches!(refusal, Refusal::Busy { .. }), "{refusal:?}"),
        }
    }
    assert!(done >= 8, "what this machine does within the budget is done: {done}");
    assert!(first.await.is_ok());
}

#[tokio::test]
async fn a_wrong_canary_ends_it() {
    let stage = Stage::open();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let link = attach(&hasher, "liar", fast(100_000, 64));
    for round in 0..2000u32 {
        // More at once than the thread here gets done first.
        let jobs: Vec<_> = (0..20).map(|number| anywhere(&hasher, number)).collect();
        let asked = tokio::select! {
            biased;
            asked = link.asks() => asked,
            () = async { for job in jobs { let _ = job.await; } } => continue,
        };
        match asked {
            Ok(asks) => link.answers(asks.iter().map(wrong).collect()),
            Err(parted) => {
                assert_eq!(parted, Parted::Lied(Lie::Canary));
                // If the thread here is late, two wrong answers came before it looked.
                assert!(hasher.workers()[0].counts.lies >= 1);
                assert!(round > 0);
                return;
            }
        }
    }
    panic!("never found out: {:?}", hasher.workers());
}

#[tokio::test]
async fn a_no_is_computed_again_here_and_a_wrong_no_ends_it() {
    const ADA: Subject<'_> = Subject { realm: "main", user: "ada" };
    let policy = crate::Policy::weak(1024, 1, 1).unwrap();
    let hasher = Hasher::start(Settings { policy, max_wait: Duration::from_secs(60), ..bound() }).unwrap();
    let stored = hasher.hash_of(&key("main", 1), ADA, b"right", SALT).await.unwrap().parse().unwrap();
    let hasher = Arc::new(hasher);
    for (throttled, ends) in [(true, false), (false, true)] {
        let link = attach(&hasher, "liar", Ready { rate: u64::MAX, ..fast(1, 64) });
        let mut found = false;
        for _ in 0..200 {
            let who = if throttled { key("main", 1).throttled() } else { key("main", 1) };
            let ask = async { hasher.verify_of(&who, ADA, &stored, b"right").await.unwrap().ok };
            let mut asked = Box::pin(link.asks());
            tokio::pin!(ask);
            let answer = tokio::select! {
                ok = &mut ask => Ok(ok),
                asks = &mut asked => Err(asks),
            };
            match answer {
                Ok(ok) => assert!(ok, "computed here"),
                Err(Ok(asks)) => {
                    // Only a job that is not a canary shows what becomes of a no.
                    link.answers(asks.iter().map(wrong).collect());
                    let ok = ask.await;
                    assert_eq!(ok, !throttled);
                    found = true;
                    break;
                }
                Err(Err(parted)) => panic!("{parted:?}"),
            }
        }
        assert!(found, "the worker was never asked");
        let state = &hasher.workers()[0];
        assert_eq!(state.counts.refusals, 1);
        if ends {
            assert!(matches!(state.parted, Some(Parted::Lied(_))), "{state:?}");
        }
    }
}

#[tokio::test]
async fn a_no_that_cannot_be_computed_again_in_time_is_an_attempt_that_was_made() {
    // Red without `suspect`: while there is much to do, a worker could keep out any user.
    for (says, lies) in [(right as fn(&Ask) -> Answer, 0), (wrong, 1)] {
        let worker = unconfirmed_no(says).await;
        assert_eq!((worker.counts.refusals, worker.counts.lies), (1, lies), "{worker:?}");
        assert_eq!(worker.parted == Some(Parted::Lied(Lie::Refusal)), lies == 1);
    }
}

/// Returns the state of a worker that answered a password so while too much waited here, once all of that is done.
async fn unconfirmed_no(says: fn(&Ask) -> Answer) -> WorkerState {
    const ADA: Subject<'_> = Subject { realm: "main", user: "ada" };
    let policy = crate::Policy::weak(1024, 1, 1).unwrap();
    let real = Hasher::start(Settings { policy, ..bound() }).unwrap();
    let stored = real.hash_of(&key("main", 1), ADA, b"right", SALT).await.unwrap().parse().unwrap();
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { policy, ..bound() });
    let _first = stage.occupy(&hasher);
    stage.skip(&hasher, Duration::from_millis(1));
    let mut jobs: Vec<_> = (0..200).map(|_| ask(&hasher, key("main", 1), usual(), "here")).collect();
    let refused = jobs.iter_mut().filter_map(now).count();
    assert!((1..200).contains(&refused), "the queue here is full");
    let link = attach(&hasher, "worker", fast(8000, 16));
    let asked = hasher.clone();
    let guess = begin(async move { asked.verify_of(&key("main", 1), ADA, &stored, b"wrong").await });
    let asks = sent(&link).await;
    link.answers(asks.iter().map(says).collect());
    let told = tokio::time::timeout(Duration::from_secs(60), guess).await.unwrap();
    assert!(matches!(told, Err(Refusal::Unconfirmed { .. })), "{told:?}");
    stage.permit(None);
    until("all is done", || hasher.state().waiting == 0 && hasher.state().running == 0);
    // The thread delivers its results after it has closed its books.
    hasher.stop().await;
    hasher.workers().remove(0)
}

#[tokio::test]
async fn what_was_counted_goes_on_when_a_worker_dials_again() {
    // Red without `past` in remote/desk.rs: a counter would begin anew, and its readers would take that for work.
    let (_stage, hasher, _first) = busy();
    let link = attach(&hasher, "worker", fast(8000, 16));
    let _jobs: Vec<_> = (0..6).map(|number| anywhere(&hasher, number)).collect();
    let asked = hasher.workers()[0].counts.asked;
    drop(link);
    let _link = attach(&hasher, "worker", fast(8000, 16));
    let worker = &hasher.workers()[0];
    assert!(asked > 0 && worker.before.asked == asked, "{worker:?}");
}

#[tokio::test]
async fn who_hangs_up_after_a_lie_is_found_out_all_the_same() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    let links = ["refusal", "canary", "honest"].map(|name| attach(&hasher, name, fast(8000, 2)));
    let _jobs: Vec<_> = (0..6).map(|number| anywhere(&hasher, number)).collect();
    assert!(hasher.workers().iter().all(|worker| worker.holding > 0), "{:?}", hasher.workers());
    let [first, second, third] = [1, 2, 3];
    drop(links);
    // red where each worker that leaves takes one of the remembered places, even if it was asked nothing.
    (0..200).for_each(|_| drop(attach(&hasher, "another", fast(1, 0))));
    hasher.gate().refused(first, true);
    hasher.gate().refused(third, false);
    hasher.gate().refused(second, true);
    let liars: Vec<_> = hasher.liars().into_iter().map(|(who, _)| who.name).collect();
    assert_eq!(liars, ["refusal", "canary"]);
    // red where `lied` notes another lie after the first was reported: each would cost a log line and a database query.
    hasher.gate().refused(second, true);
    assert!(hasher.liars().is_empty(), "each is told once");
}

#[tokio::test]
async fn there_are_no_workers_without_a_binding_key() {
    let stage = Stage::open();
    let hasher = stage.hasher(narrow());
    let refused = hasher.attach(who("worker"), fast(1, 1), Zeroizing::new([3; 32])).map(drop);
    assert!(matches!(refused, Err(Refusal::Unsupported(_))));
}

#[tokio::test]
async fn who_is_dismissed_is_asked_nothing_more() {
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    let link = attach(&hasher, "worker", fast(8000, 8));
    let _job = anywhere(&hasher, 1);
    // Red, for ever, where the books are open while the caller chooses.
    assert_eq!(hasher.dismiss(|who| who.name == "another" && hasher.workers().len() == 1), 0);
    assert_eq!(hasher.dismiss(|who| who.name == "worker"), 1);
    assert_eq!(link.asks().await.err(), Some(Parted::Dismissed));
    assert_eq!(hasher.state().waiting, 1, "what it held waits here");
}

/// Red where `fill` checks no limit: no frame read here exceeds the limits, but an [`Ask`] may have any cost.
#[tokio::test]
async fn an_ask_for_more_than_a_stored_hash_may_take_is_refused_at_once() {
    let stage = Stage::closed();
    let hasher = stage.hasher(narrow());
    let fill = |(memory, passes, lanes), tag_bytes| {
        let ask =
            Ask { id: 1, cost: Cost::new(memory, passes, lanes).unwrap(), tag_bytes, h0: H0::from_bytes(&[1; 64]) };
        let hasher = hasher.clone();
        begin(async move { hasher.fill(&key("main", 1), ask).await })
    };
    for (cost, tag_bytes) in [
        ((64, u32::MAX, 1), 32),
        ((64, 65, 1), 32),
        ((8 * 65, 1, 65), 32),
        (((1 << 20) + 1, 1, 1), 32),
        ((64, 1, 1), 11),
        ((64, 1, 1), 65),
    ] {
        let filled = now(&mut fill(cost, tag_bytes));
        assert!(matches!(filled, Some(Err(Refusal::Limit(_)))), "{cost:?} {tag_bytes}: {filled:?}");
    }
    assert_eq!(hasher.state().waiting + hasher.state().running, 0);
    let mut filled = fill((64, 64, 8), 64);
    assert_eq!(now(&mut filled), None);
    stage.permit(None);
    assert!(filled.await.is_ok());
}
