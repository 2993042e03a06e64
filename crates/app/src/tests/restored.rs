//! What a copy of the database that replaced it says of hash workers.

use super::{NOW, database, node};
use crate::clock::Clock;
use crate::entropy;
use rules::worker::Worker;
use rules::{Change, Handle, Span};

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
