//! The engine for MySQL and MariaDB against the conformance suite, the real schema, and what it promises beyond that.
//!
//! Needs a server: `scripts/databases up mariadb FOLDER` prints the URL of one, for `PORTIERE_TEST_MYSQL`. Without it
//! every test passes and says so.
#![allow(clippy::unwrap_used, reason = "a test stops where something is wrong")]
#![allow(clippy::print_stdout, reason = "a test that was skipped says so")]
#![allow(clippy::disallowed_methods, reason = "where the server is stands in the environment")]

mod between;
mod blocks;
mod connections;
mod losses;
mod meanings;
mod place;
mod rivals;
mod schema;
mod silence;
mod standstill;
mod strangers;
#[path = "../until/mod.rs"]
mod until;

use std::sync::Arc;

use place::Place;
use store::conformance;
use store::engine::Engine;
use store::mysql::Mysql;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_conforms() {
    let Some(place) = Place::new().await else { return };
    let failures = conformance::run(place.open().await).await;
    assert!(failures.is_empty(), "{failures:#?}");
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_seals_every_line_once() {
    let Some(place) = Place::new().await else { return };
    let one = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    let other = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::sealing([Arc::new(one), Arc::new(other)]).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn mysql_takes_out_what_has_expired() {
    let Some(place) = Place::new().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::sweeping(Arc::new(engine)).await.unwrap();
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_gives_nothing_for_a_secret_that_was_replaced() {
    let Some(place) = Place::new().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::raising(Arc::new(engine)).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn mysql_takes_what_was_lost_again() {
    let Some(place) = Place::new().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    conformance::replays(Arc::new(engine)).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn mysql_conforms_on_one_connection() {
    let Some(place) = Place::new().await else { return };
    let one = place.with(|settings| settings.connections = 1.try_into().unwrap());
    let failures = conformance::run(Arc::new(Mysql::open(one, conformance::MIGRATIONS).await.unwrap())).await;
    assert!(failures.is_empty(), "{failures:#?}");
    place.remove().await;
}

#[tokio::test]
async fn a_copy_is_made_with_the_servers_own_tools() {
    let Some(place) = Place::new().await else { return };
    let why = place.open().await.backup(std::path::Path::new("copy")).await.unwrap_err().0;
    assert!(why.contains("mariadb-dump"), "{why}");
    place.remove().await;
}
