//! Threads look after workers by themselves: a caller who leaves that to them waits for no silent worker.

use std::time::Duration;

use super::{stage::*, workers::*};
use crate::{Hasher, Policy, Settings, Subject, remote::frame::Ready};

const ADA: Subject<'_> = Subject { realm: "main", user: "ada" };

/// Red without `is_to_look_after_workers`: the thread would go to sleep, or on to the next job here.
#[tokio::test]
async fn a_thread_that_is_done_looks_for_what_is_late() {
    let stage = Stage::closed();
    let hasher = stage.hasher(Settings { max_wait: Duration::from_secs(60), ..bound() });
    let first = stage.occupy(&hasher);
    let link = attach(&hasher, "silent", fast(8000, 8));
    let job = anywhere(&hasher, 1);
    let asks = sent(&link).await;
    assert_eq!(hasher.state().with_workers, asks.len());
    stage.skip(&hasher, Duration::from_secs(1));
    stage.permit(None);
    let done = tokio::time::timeout(Duration::from_secs(60), job).await;
    assert!(done.expect("nobody looked").is_ok() && first.await.is_ok());
    assert_eq!(hasher.workers()[0].counts.hedged, 1);
    drop(link);
    assert_eq!(hasher.state().with_workers, 0);
}

/// Red without `lacks_a_watch`: all threads sleep, and nothing wakes them.
#[tokio::test]
async fn a_thread_that_sleeps_wakes_up_to_look_for_what_is_late() {
    let policy = Policy::weak(1024, 1, 1).unwrap();
    // Otherwise the thread would wake up after ten seconds to give its memory back.
    let (max_wait, idle) = (Duration::from_secs(60), Duration::from_secs(600));
    let hasher = Hasher::start(Settings { policy, max_wait, idle, ..bound() }).unwrap();
    let stored = hasher.hash_of(&key("main", 1), ADA, b"right", SALT).await.unwrap().parse().unwrap();
    let link = attach(&hasher, "silent", Ready { rate: u64::MAX, ..fast(1, 64) });
    for _ in 0..200 {
        let who = key("main", 1);
        let guess = hasher.verify_of(&who, ADA, &stored, b"right");
        tokio::pin!(guess);
        tokio::select! {
            biased;
            done = &mut guess => assert!(done.unwrap().ok, "computed here"),
            asks = link.asks() => {
                assert!(!asks.unwrap().is_empty() && hasher.state().with_workers > 0);
                let done = tokio::time::timeout(Duration::from_secs(60), guess).await;
                assert!(done.expect("nobody looked").unwrap().ok);
                return;
            }
        }
    }
    panic!("the worker was never asked");
}
