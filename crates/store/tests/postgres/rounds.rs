//! How often the engine waits for its server.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use store::conformance::{five_reads, three_rows};
use store::engine::{CommitError, Engine};
use store::remote::Statements;

use crate::proxy::Proxy;
use crate::server::database;

/// Round trips of something that may be done again. Connections are looked at now and then: the least of several.
async fn rounds(proxy: &Proxy, act: impl AsyncFn()) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..7 {
        let before = proxy.rounds();
        act().await;
        least = least.min(proxy.rounds() - before);
    }
    least
}

#[tokio::test]
async fn a_set_of_reads_is_one_round_trip_and_so_is_a_batch_whether_it_stands_or_not() {
    // red with a COMMIT or a ROLLBACK of its own, or where a read waits for the answer to the one before.
    let Some(database) = database().await else { return };
    let proxy = Proxy::before(database.port).await;
    let next = AtomicI64::new(1);
    for statements in [Statements::Kept, Statements::Unnamed] {
        let engine = database
            .ready(|settings| {
                settings.url = database.url_at(proxy.port);
                settings.statements = statements;
            })
            .await;
        let reads = rounds(&proxy, async || assert_eq!(engine.fetch(&five_reads(5)).await.unwrap().len(), 5)).await;
        let stands = rounds(&proxy, async || {
            engine.commit(three_rows(next.fetch_add(1, Relaxed))).await.unwrap();
        })
        .await;
        let fails = rounds(&proxy, async || {
            let twice = engine.commit(three_rows(1)).await;
            assert!(matches!(twice, Err(CommitError::Conflict { .. })), "{twice:?}");
        })
        .await;
        assert_eq!([reads, stands, fails], [1; 3], "{statements:?}");
    }
}
