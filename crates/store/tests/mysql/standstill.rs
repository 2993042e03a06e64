//! A server that answers everything, and writes nothing.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use store::conformance::{three_reads, three_rows};
use store::engine::Engine;

use super::place::Place;
use super::until::until;

#[tokio::test]
async fn nothing_can_be_written_while_a_backup_tool_holds_the_lock_of_all_tables() {
    // red without `standstill` in mysql/mod.rs, health. It is everybody's lock: no other test runs beside it.
    let Some(place) = Place::alone().await else { return };
    let engine = place.ready_with(place.with(|settings| settings.timeout = Duration::from_secs(16))).await;
    engine.commit(three_rows(1)).await.unwrap();
    let mut other = place.conn().await;
    other.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
    assert!(engine.commit(three_rows(2)).await.is_err());
    let writable = engine.health().await.unwrap().writable;
    assert!(writable.as_ref().is_err_and(|why| why.contains("since a batch timed out")), "{writable:?}");
    assert_eq!(engine.fetch(&three_reads(1)).await.unwrap().concat().len(), 3, "reads go on");
    other.query_drop("UNLOCK TABLES").await.unwrap();
    until("the next commit", async || engine.commit(three_rows(3)).await.is_ok()).await;
    assert_eq!(engine.health().await.unwrap().writable, Ok(()));
    place.remove().await;
}
