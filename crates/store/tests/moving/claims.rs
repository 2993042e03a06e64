//! What a target is for, before the source of the move is closed to writes.

use super::place::{self, run};
use store::dialect::Dialect;
use store::engine::Engine;
use store::moving::before;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_to_a_file_while_a_fence_waits_for_a_node() {
    // Red without `nobody_is_awaited` in moving/before.rs, or in moving/mod.rs, run.
    for from in place::all().await {
        let (source, kind) = (&*from.engine, from.kind);
        let may = |to| before::nobody_is_awaited(source, to);
        assert!(may(Dialect::Sqlite).await.is_ok(), "{kind}");
        let waits = "INSERT INTO fence_nodes (realm, number, node, state, at) VALUES ('main', 1, 'n2', 'waiting', 5)";
        source.alter(vec![waits.to_owned()]).await.unwrap();
        let why = may(Dialect::Sqlite).await.unwrap_err().0;
        assert!(why.contains("(n2)") && why.contains("portiere fence accept-loss"), "{kind}: {why}");
        assert!(may(Dialect::Postgres).await.is_ok(), "its nodes go on there: {kind}");
        let to = place::file().await;
        assert!(run(source, &*to.engine).await.unwrap_err().0.contains("(n2)"), "{kind}");
    }
}
