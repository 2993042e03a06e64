//! Every engine has to do the same.

use std::sync::Arc;

use store::conformance;
use store::postgres::Postgres;
use store::remote::Statements;

use crate::server::database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    let Some(database) = database().await else { return };
    let failures = conformance::run(Arc::new(database.open().await)).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn postgres_takes_what_was_lost_again() {
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::replays(Arc::new(engine)).await.unwrap();
}

#[tokio::test]
async fn postgres_takes_out_what_has_expired() {
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::sweeping(Arc::new(engine)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_gives_nothing_for_a_secret_that_was_replaced() {
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::raising(Arc::new(engine)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_seals_every_line_once() {
    let Some(database) = database().await else { return };
    let one = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    let other = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::sealing([Arc::new(one), Arc::new(other)]).await.unwrap();
}

#[tokio::test]
async fn postgres_conforms_on_one_thread_with_one_connection() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|settings| settings.connections = std::num::NonZeroUsize::MIN).await;
    let failures = conformance::run(Arc::new(engine)).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms_with_unnamed_statements() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|settings| settings.statements = Statements::Unnamed).await;
    let failures = conformance::run(Arc::new(engine)).await;
    assert!(failures.is_empty(), "{failures:#?}");
}
