//! Batches and fetches as one statement each, where the server takes that: MariaDB does.

use mysql_async::prelude::Queryable;
use store::conformance::{five_reads, three_reads, three_rows};
use store::engine::{CommitError, Engine, SENT_AT_ONCE};

use super::place::{Place, found};

/// How many statements of this kind the server was sent so far.
async fn sent(place: &Place, name: &str) -> u64 {
    let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
    let (_, count): (String, u64) = place.conn().await.query_first(sql).await.unwrap().unwrap();
    count
}

#[tokio::test]
async fn a_batch_is_one_statement_and_its_commit_and_a_fetch_is_one() {
    let Some(mut place) = Place::alone().await else { return };
    let engine = place.ready().await;
    engine.commit(three_rows(0)).await.unwrap();
    engine.fetch(&five_reads(0)).await.unwrap();
    let before = (sent(&place, "Com_stmt_execute").await, sent(&place, "Com_commit").await);
    for number in 1..=10 {
        engine.commit(three_rows(number)).await.unwrap();
        assert_eq!(engine.fetch(&five_reads(number)).await.unwrap().len(), 5);
    }
    let after = (sent(&place, "Com_stmt_execute").await, sent(&place, "Com_commit").await);
    let each = if place.is_mariadb().await { 1 + 1 } else { 3 + 5 };
    assert_eq!((after.0 - before.0, after.1 - before.1), (10 * each, 10));
    place.remove().await;
}

#[tokio::test]
async fn a_batch_of_what_is_sent_at_once_is_one_statement_and_its_commit() {
    // Red where the engine's own limit is lower: what is done in steps of so many would be sent statement by statement.
    let Some(mut place) = Place::alone().await else { return };
    let engine = place.ready().await;
    let batch = |from: i64| (from..).flat_map(three_rows).take(SENT_AT_ONCE).collect();
    engine.commit(batch(0)).await.unwrap();
    let before = (sent(&place, "Com_stmt_execute").await, sent(&place, "Com_commit").await);
    engine.commit(batch(100)).await.unwrap();
    let after = (sent(&place, "Com_stmt_execute").await, sent(&place, "Com_commit").await);
    let each = if place.is_mariadb().await { 1 } else { SENT_AT_ONCE as u64 };
    assert_eq!((after.0 - before.0, after.1 - before.1), (each, 1));
    place.remove().await;
}

/// A row that is there: refused as one statement, found out one by one, and nothing of the rest stands.
#[tokio::test]
async fn what_goes_wrong_in_the_whole_is_found_statement_by_statement() {
    let Some(place) = Place::new().await else { return };
    let engine = place.ready().await;
    let mut batch = three_rows(1);
    engine.commit(batch.split_off(2)).await.unwrap();
    let answer = engine.commit(three_rows(1)).await;
    assert!(matches!(answer, Err(CommitError::Conflict { at: 2, .. })), "{answer:?}");
    assert_eq!(found(&engine, 1).await, 1);
    place.remove().await;
}

/// Another program may bring the schema to its version while this one runs.
#[tokio::test]
async fn a_table_that_has_changed_is_no_obstacle() {
    let Some(mut place) = Place::alone().await else { return };
    let engine = place.ready().await;
    engine.commit(three_rows(1)).await.unwrap();
    engine.fetch(&three_reads(1)).await.unwrap();
    place.conn().await.query_drop("ALTER TABLE note ADD COLUMN later BIGINT NOT NULL DEFAULT 0").await.unwrap();
    engine.commit(three_rows(2)).await.unwrap();
    assert_eq!(engine.fetch(&three_reads(2)).await.unwrap().concat().len(), 3);
    let before = sent(&place, "Com_stmt_execute").await;
    engine.commit(three_rows(3)).await.unwrap();
    let whole = if place.is_mariadb().await { 1 } else { 3 };
    assert_eq!(sent(&place, "Com_stmt_execute").await - before, whole, "it is one statement again");
    place.remove().await;
}
