//! What has expired goes in idle moments, and gives way to requests.

use super::{NOW, database, node};
use crate::clock::Clock;
use rules::Span;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[tokio::test]
async fn a_sweep_takes_smaller_steps_while_requests_wait_and_comes_to_its_end_either_way() {
    // red without `busy` in jobs.rs, sweep.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(engine.clone(), Clock::fixed(NOW)).await;
    for (busy, steps) in [(false, 1), (true, 3)] {
        let expired = (NOW - Span::minutes(1)).0;
        let fifty = format!(
            "INSERT INTO revoked_tokens (realm, jti, expires) \
             WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 50) \
             SELECT 'main', 'token-' || at, {expired} FROM many"
        );
        engine.alter(vec![fifty]).await.unwrap();
        let asked = AtomicUsize::new(0);
        let waits = || {
            asked.fetch_add(1, Relaxed);
            busy
        };
        assert_eq!(app.sweep(&waits).await.unwrap(), 50);
        assert_eq!(asked.load(Relaxed), steps, "busy: {busy}");
    }
}
