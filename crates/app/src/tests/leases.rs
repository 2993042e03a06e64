//! Work that is done once for all nodes is done by one of them.

use super::{NOW, database, node};
use crate::App;
use crate::clock::Clock;
use crate::entropy;
use crate::jobs::Upkeep;
use crate::leases::LEASE;
use rules::{Change, Span};
use std::sync::Arc;
use std::time::Duration;
use store::tables::ask;
use store::tables::families::OfToken;
use store::tables::realms::AtEpoch;
use tempfile::TempDir;

/// Two nodes, and the clock that they share.
async fn two() -> (TempDir, App, App, Clock) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let engine = database(folder.path()).await;
    let (one, other) = (node(Arc::clone(&engine), clock.clone()).await, node(engine, clock.clone()).await);
    (folder, one, other, clock)
}

async fn leads(app: &App, job: &str) -> bool {
    app.leads(job).await.unwrap().is_some()
}

#[tokio::test]
async fn of_two_nodes_that_ask_at_once_one_has_the_job() {
    // Red without the guards in store/tables/leases.rs, take.
    let (_folder, one, other, clock) = two().await;
    for round in 0..30 {
        // No node has it yet; afterwards its lease has expired.
        let job = format!("job {}", round / 2);
        let (mine, yours) = tokio::join!(leads(&one, &job), leads(&other, &job));
        assert!(mine != yours, "{job}: {mine} {yours}");
        clock.advance(LEASE);
    }
}

#[tokio::test]
async fn a_job_goes_to_the_next_node_when_the_one_that_has_it_ends_and_not_before() {
    // Red without `until` in leases.rs, leads; without give_back in jobs.rs, retire.
    let (_folder, one, other, clock) = two().await;
    assert!(leads(&one, "job").await && !leads(&other, "job").await);
    clock.advance(Span(LEASE.0 - 1));
    assert!(!leads(&other, "job").await);
    assert!(leads(&one, "job").await, "it is renewed by whoever has it");
    clock.advance(Span(1));
    assert!(!leads(&other, "job").await, "from then on");
    // It died.
    clock.advance(LEASE);
    assert!(leads(&other, "job").await && !leads(&one, "job").await);
    // It was stopped.
    other.retire().await;
    assert!(leads(&one, "job").await);
}

#[tokio::test]
async fn a_lease_that_a_wrong_clock_gave_is_waited_for_by_nobody() {
    // Red without BELIEVED in leases.rs, leads.
    for ahead in [Span::minutes(10), Span::hours(1), Span::days(3_650)] {
        let folder = tempfile::tempdir().unwrap();
        let (engine, [wrong, right]) = (database(folder.path()).await, [Clock::fixed(NOW + ahead), Clock::fixed(NOW)]);
        let (died, other) = (node(Arc::clone(&engine), wrong).await, node(engine, right.clone()).await);
        assert!(leads(&died, "job").await && leads(&other, "job").await, "{ahead:?}");
        // A lease that the other node took itself is a lease like any.
        let third = node(Arc::clone(&other.engine), right).await;
        assert!(!leads(&third, "job").await, "{ahead:?}");
    }
    // A clock that is no farther ahead than clocks may be keeps its lease.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let ahead = node(Arc::clone(&engine), Clock::fixed(NOW + LEASE)).await;
    assert!(leads(&ahead, "job").await && !leads(&node(engine, Clock::fixed(NOW)).await, "job").await);
}

#[tokio::test]
async fn who_is_alone_waits_for_no_node_that_was_killed() {
    // Red without `void` in leases.rs, take_over; in store/tables/restore.rs, trust_nobody.
    let (_folder, killed, other, _clock) = two().await;
    assert!(leads(&killed, "job").await && !leads(&other, "job").await);
    other.take_over().await.unwrap();
    assert!(leads(&other, "job").await && !leads(&killed, "job").await);
    killed.revive_nothing().await.unwrap();
    assert!(leads(&killed, "job").await, "a copy has the leases of the server that it was made of");
}

#[tokio::test]
async fn the_upkeep_is_done_by_the_node_that_has_it_alone() {
    // Red without the condition in jobs.rs, look_after_all.
    let (_folder, one, other, _clock) = two().await;
    let upkeep = Upkeep { keys: Span::days(90) };
    let expired = Change::RevokeToken { jti: "old".to_owned(), expires: NOW - Span(1) };
    one.commit(vec![expired], NOW, &entropy::fresh().unwrap()).await.unwrap();
    let old = || AtEpoch(OfToken { family: None, jti: "old", issued: NOW, to_end: false });
    let is_there = async || ask(&*one.engine, &one.realm.id, old()).await.unwrap().unwrap().1.1;
    assert!(leads(&one, "upkeep").await);
    drop(tokio::time::timeout(Duration::from_millis(300), other.keep_up(upkeep, &|| false)).await);
    assert!(is_there().await, "it is not the other's to take out");
    let gone = async {
        while is_there().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = one.keep_up(upkeep, &|| false) => {}
        done = tokio::time::timeout(Duration::from_secs(30), gone) => done.expect("whoever has it takes it out"),
    }
}
