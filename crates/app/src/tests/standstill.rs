//! The disk stands still, and everybody who signs in waits for the same commit.

use super::{NOW, database, hashing_node};
use crate::browser::Browser;
use crate::clock::Clock;
use crate::fault::Fault;
use crate::flow::{Flow, Place, To};
use crate::guest::Guest;
use crate::sign_in::Typed;
use hasher::Settings as Hashing;
use rusqlite::Connection;
use std::time::Duration;

#[tokio::test]
async fn who_asks_for_a_hash_while_commits_stand_still_is_told_at_once() {
    // Red without `coming` in sign_in.rs, admit.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let hashing = Hashing { max_wait: Duration::ZERO, ..Hashing::default() };
    let app = hashing_node(database(folder.path()).await, clock.clone(), hashing).await;
    let ask = |guest| app.has_time_for(&Browser::default(), guest);
    assert!(ask(Guest::Typed).is_ok() && ask(Guest::Comes).is_ok(), "the only thread is idle");

    let disk = Connection::open(folder.path().join("facts.db")).unwrap();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let flow = Flow::new(To::Place(Place::Account), NOW);
    let (first, browser) = (Typed::new("ada", b"gorse violet anvil 41"), Browser::default());
    let second = async {
        for _ in 0..30_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if ask(Guest::Typed).is_err() {
                break;
            }
        }
        assert!(matches!(ask(Guest::Comes), Err(Fault::Busy(wait)) if wait.0 > 0));
        disk.execute_batch("COMMIT").unwrap();
    };
    let (first, ()) = tokio::join!(app.sign_in(flow, first, &browser), second);
    assert!(first.unwrap().is_err(), "who had a place keeps it; nobody is called ada");
    assert!(ask(Guest::Typed).is_ok(), "nobody is on the way any more");
}
