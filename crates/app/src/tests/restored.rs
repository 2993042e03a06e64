//! What a copy of the database that replaced it says of hash workers.

use super::{NOW, database, node};
use crate::clock::Clock;
use crate::entropy;
use rules::worker::Worker;
use rules::{Change, Handle, Span};
use std::sync::Arc;
use store::engine::{Answer, Around, CommitError, Engine, Value, Write};

#[tokio::test]
async fn a_restored_copy_trusts_no_worker() {
    // Red without the quarantine in store/tables/restore.rs.
    let folder = tempfile::tempdir().unwrap();
    let (app, token) = (node(database(folder.path()).await, Clock::fixed(NOW)).await, Handle::of("token"));
    for name in ["good", "wrong"] {
        let worker = Worker {
            key: Handle::of(name),
            name: name.to_owned(),
            enrolled: NOW,
            address: "192.0.2.1".into(),
            quarantine: None,
        };
        let changes = vec![
            Change::OfferWorkerToken { token, now: NOW, expires: NOW + Span::minutes(1) },
            Change::EnrollWorker { worker: Box::new(worker), token, now: NOW },
        ];
        app.commit(changes, NOW, &entropy::fresh().unwrap()).await.unwrap();
    }
    app.quarantine_worker(Handle::of("wrong"), "a wrong answer").await.unwrap();
    assert_eq!(app.revive_nothing().await.unwrap().workers, 1);
    let why = |worker: Worker| (worker.name, worker.quarantine.map(|(_, why)| why));
    let told: Vec<_> = app.workers().await.unwrap().into_iter().map(why).collect();
    assert_eq!(told, [("good".into(), Some("restored".into())), ("wrong".into(), Some("a wrong answer".into()))]);
    app.trust_worker("good").await.unwrap().unwrap();
    assert!(app.workers().await.unwrap()[0].quarantine.is_none());
}

/// An engine that has no time for more than some hundred rows, and cannot tell what became of them.
struct Hurried(Arc<dyn Engine>);

impl Around for Hurried {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let many = |write: &Write| matches!(write.args.last(), Some(Value::Int(limit)) if *limit > 500);
        match writes.iter().any(|write| write.sql.text().starts_with("DELETE") && many(write)) {
            true => Box::pin(async { Err(CommitError::Unknown("no answer in 10 s".to_owned())) }),
            false => self.0.commit(writes),
        }
    }
}

#[tokio::test]
async fn what_was_issued_ends_in_smaller_steps_where_the_database_has_no_time() {
    // Red without the smaller limit in admin/restore.rs, drop_all.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(Arc::new(Hurried(engine.clone())), Clock::fixed(NOW)).await;
    let sessions = "INSERT INTO sessions (realm, id, handle, user_id, auth_time, amr, created, last_seen, expires, \
                    agent, address) WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 1200) \
                    SELECT 'main', 'session ' || at, '', 'ada', 1, '', 1, 1, 1, '', '' FROM many";
    engine.alter(vec![sessions.to_owned()]).await.unwrap();
    assert_eq!(app.revive_nothing().await.unwrap().sessions, 1200);
    assert_eq!(app.revive_nothing().await.unwrap().sessions, 0, "nothing is left");
}
