//! What a worker claims, of itself and of what it can: nobody is let in, or kept waiting, for that alone.

use std::time::Duration;

use super::stage::*;
use super::workers::*;
use crate::remote::{
    Link,
    frame::{Answer, Ask, Ready},
};

fn link_says_it_cannot(link: &Link, ask: &Ask) {
    link.answers(vec![Answer { id: ask.id, tag: None }]);
}

#[tokio::test]
async fn what_a_worker_held_does_not_go_to_one_that_is_slower_than_this_machine() {
    // red where `place_again` asks whoever is there: at a rate of one an hour, nobody would call it late before the day was over.
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let first = stage.occupy(&hasher);
    let (one, slow) = (attach(&hasher, "one", fast(8000, 8)), attach(&hasher, "slow", Ready { rate: 1, ..fast(1, 8) }));
    let jobs = [anywhere(&hasher, 1), anywhere(&hasher, 2)];
    let asks = sent(&one).await;
    assert_eq!(asks.len(), 2);
    link_says_it_cannot(&one, &asks[0]);
    drop(one);
    assert!(hasher.workers().iter().all(|worker| worker.holding == 0));
    assert_eq!(hasher.state().waiting, 2);
    stage.permit(None);
    for job in jobs {
        assert!(job.await.is_ok());
    }
    assert!(first.await.is_ok());
    drop(slow);
}

#[tokio::test]
async fn a_worker_whose_answers_take_too_long_lets_nobody_in() {
    // red where `flow` leaves out what an answer takes besides: such a worker is never asked, and so never measured.
    let (_stage, hasher, _first) = busy();
    let link = attach(&hasher, "worker", Ready { threads: u16::MAX, ..fast(8000, 16) });
    assert!(crowd(&hasher).1.abs_diff(10) <= 2);
    drop(link);
}

#[tokio::test]
async fn those_who_would_wait_too_long_are_told_so_too_when_a_worker_stays_and_does_less() {
    type Lessen = fn(&Link, &[Ask]);
    let declines: Lessen = |link, asks| asks.iter().for_each(|ask| link_says_it_cannot(link, ask));
    let wants_none: Lessen = |link, _| link.holds(0);
    for lessen in [declines, wants_none] {
        let (_stage, hasher, _first) = busy();
        let link = attach(&hasher, "worker", fast(4000, 16));
        let (_jobs, admitted) = crowd(&hasher);
        assert!(admitted > 40, "{admitted}");
        lessen(&link, &sent(&link).await);
        let wait = hasher.state().expected_wait;
        assert!(wait <= Duration::from_millis(10), "{wait:?}");
    }
}

#[tokio::test]
async fn whoever_could_not_is_on_trial_in_its_next_connection_and_in_others() {
    // red without `is_on_trial` in `abandon`, or without the look at those who are here in `add`.
    for goes in [true, false] {
        let (_stage, hasher, _first) = busy();
        let link = attach(&hasher, "worker", fast(4000, 16));
        let _job = anywhere(&hasher, 1);
        let asks = sent(&link).await;
        asks.iter().for_each(|ask| link_says_it_cannot(&link, ask));
        let kept = (!goes).then_some(link);
        let back = attach(&hasher, "worker", fast(4000, 16));
        let (_jobs, admitted) = crowd(&hasher);
        assert!(admitted <= 16, "{goes}: {admitted} were let in for one that could not");
        drop((back, kept));
    }
}

#[tokio::test]
async fn whoever_leaves_again_and_again_is_not_forgotten_for_it() {
    // red without a share of the places for each key: what was said first is forgotten before it is found to be wrong.
    let stage = Stage::closed();
    let hasher = stage.hasher(bound());
    let _first = stage.occupy(&hasher);
    for number in 0..200 {
        let link = attach(&hasher, "liar", fast(8000, 16));
        let job = anywhere(&hasher, number);
        drop((link, job));
    }
    hasher.gate().refused(1, true);
    assert_eq!(hasher.liars().len(), 1);
    let again = attach(&hasher, "liar", fast(8000, 16));
    let _job = anywhere(&hasher, 1);
    assert_eq!(hasher.workers()[0].holding, 0, "it has left too often");
    stage.skip(&hasher, Duration::from_secs(130));
    let _job = anywhere(&hasher, 1);
    assert!(hasher.workers()[0].holding > 0);
    drop(again);
}

#[tokio::test]
async fn whoever_left_what_it_was_asked_has_to_prove_itself() {
    // red without `to_prove` in Desk::add.
    let (_stage, hasher, _first) = busy();
    let honest = attach(&hasher, "worker", fast(4000, 16));
    drop(honest);
    let hung_up = attach(&hasher, "worker", fast(4000, 16));
    let (jobs, admitted) = crowd(&hasher);
    assert!(admitted >= 45, "one that left nothing is taken at its word");
    assert!(!sent(&hung_up).await.is_empty());
    drop((hung_up, jobs));

    let back = attach(&hasher, "worker", fast(4000, 16));
    let stranger = attach(&hasher, "another", fast(1000, 0));
    let (jobs, admitted) = crowd(&hasher);
    assert!((4..=16).contains(&admitted), "as many as without it, and what it holds");
    let mut asks = sent(&back).await;
    assert!((1..=4).contains(&asks.len()), "{}", asks.len());
    let mut more = Vec::new();
    for number in 0..64 {
        back.answers(asks.iter().map(right).collect());
        more.push(anywhere(&hasher, number));
        asks =
            tokio::time::timeout(Duration::from_millis(50), back.asks()).await.map_or(Vec::new(), |asks| asks.unwrap());
    }
    drop((jobs, more));
    assert!(crowd(&hasher).1 > 16, "it is one of all again");
    drop((back, stranger));
}
