//! What a server is set to lose, and what it is not fit for. These change settings of the whole server.

use mysql_async::prelude::Queryable;
use store::conformance::{MIGRATIONS, three_rows};
use store::engine::{CommitError, Durability, Engine};
use store::mysql::Mysql;
use store::remote::{Loss, OpenError, Replication};

use super::between::{Between, STATUS};
use super::place::{Place, found, patient};
use super::until::until;

const OFTEN: &str = "SET GLOBAL innodb_flush_log_at_trx_commit = 1";
const SELDOM: &str = "SET GLOBAL innodb_flush_log_at_trx_commit = 2";

#[tokio::test]
async fn a_durable_server_is_a_durable_node() {
    let Some(place) = Place::new().await else { return };
    let engine = place.ready().await;
    engine.commit(three_rows(1)).await.unwrap();
    let health = engine.health().await.unwrap();
    assert_eq!((health.durability, health.writable), (Durability::DurableNode, Ok(())));
    assert!(health.commit_ms > 0.0);
    let server = engine.server();
    assert_eq!((server.host.as_str(), server.moves, server.galera), (place.host(), 0, None));
    place.remove().await;
}

/// Who follows a server MariaDB tells everybody, and MySQL administrators alone: there only an operator can say that another one may
/// take over.
#[tokio::test]
async fn a_server_that_has_replicas_which_the_url_does_not_name_may_lose_what_they_did_not_get() {
    // red without `alone` in mysql/mod.rs, open; or without is_followed in mysql/fitness.rs, durability.
    let Some(place) = Place::new().await else { return };
    let engine = place.ready_with(place.with(|settings| settings.replication = Replication::Bounded)).await;
    assert_eq!(engine.health().await.unwrap().durability, Durability::Bounded);
    let between = Between::new(&place).await;
    let engine = place.ready_with(place.at(&between.host)).await;
    for (followers, worth) in [(0, Durability::DurableNode), (1, Durability::Bounded), (0, Durability::DurableNode)] {
        between.ask_instead(STATUS, &format!("SELECT 'Slaves_connected', '{followers}'"));
        let health = engine.health().await.unwrap();
        assert_eq!((health.durability, health.writable), (worth, Ok(())), "{followers}");
    }
    place.remove().await;
}

#[tokio::test]
async fn a_server_that_flushes_seldom_is_refused_unless_that_was_accepted_by_name() {
    let Some(mut place) = Place::alone().await else { return };
    let running = place.ready().await;
    place.run(SELDOM).await;
    let refused = Mysql::open(place.settings(), MIGRATIONS).await;
    let other = place.with(|settings| settings.accepted = vec![Loss::Database]);
    let still = Mysql::open(other, MIGRATIONS).await;
    let accepted = place.with(|settings| settings.accepted = vec![Loss::Commits]);
    let accepted = Mysql::open(accepted, MIGRATIONS).await;
    let noticed = running.health().await.unwrap().writable;
    place.run(OFTEN).await;
    for refused in [refused, still] {
        let Err(OpenError::Unfit(why)) = refused else { panic!("it was taken") };
        assert!(why.contains("innodb_flush_log_at_trx_commit = 2"), "{why}");
    }
    assert!(noticed.is_err_and(|why| why.contains("innodb_flush_log_at_trx_commit = 2")));
    let health = accepted.unwrap().health().await.unwrap();
    assert_eq!(health.durability, Durability::DurableNode, "the setting is sound again");
    until("a sound server", async || running.health().await.unwrap().writable.is_ok()).await;
    running.commit(three_rows(1)).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn an_accepted_loss_is_shown() {
    let Some(mut place) = Place::alone().await else { return };
    place.run(SELDOM).await;
    let accepted = place.with(|settings| settings.accepted = vec![Loss::Commits]);
    let engine = Mysql::open(accepted, MIGRATIONS).await.unwrap();
    let health = engine.health().await.unwrap();
    place.run(OFTEN).await;
    assert_eq!((health.durability, health.writable), (Durability::Bounded, Ok(())));
    place.remove().await;
}

/// What was acknowledged last is gone when such a server has died, and it is the same one all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgets_has_a_start_in_its_name_and_connections_of_before_are_closed() {
    // red without `since` in mysql/connect.rs, examine; the connection without Idle::keep in mysql/pool.rs.
    let Some(mut place) = Place::alone().await else { return };
    let engine = place.ready_with(place.with(|settings| settings.accepted = vec![Loss::Commits])).await;
    let sound = engine.answering().unwrap();
    let mut other = place.conn().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("INSERT INTO note (realm, name) VALUES ('bench', '1-code')").await.unwrap();
    let waits = {
        let engine = std::sync::Arc::clone(&engine);
        tokio::spawn(async move { engine.commit(three_rows(1)).await })
    };
    let sql =
        format!("SELECT id FROM information_schema.processlist WHERE db = '{}' AND command <> 'Sleep'", place.database);
    // The same one for a while: others say something now and then, and are done.
    let (mut busy, mut seen): (Vec<u64>, u32) = (Vec::new(), 0);
    until("a batch waits", async || {
        let now = place.query(&sql).await;
        seen = if now.len() == 1 && now == busy { seen + 1 } else { 0 };
        busy = now;
        seen >= 20
    })
    .await;
    place.run(SELDOM).await;
    let noticed = engine.health().await.unwrap().writable;
    let now = engine.answering().unwrap();
    // Later by more than what such times are told in.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let still = (engine.health().await.unwrap().writable, engine.answering().unwrap());
    other.query_drop("ROLLBACK").await.unwrap();
    let stood = waits.await.unwrap();
    until("the connection of before is closed", async || !place.connected().await.contains(&busy[0])).await;
    place.run(OFTEN).await;
    assert_eq!((noticed, stood), (Ok(()), Ok(vec![1, 1, 1])));
    assert!(!sound.identity.contains(" since ") && now.identity.contains(" since "), "{sound:?} {now:?}");
    assert!(now.generation > sound.generation, "{sound:?} {now:?}");
    assert_eq!(still, (Ok(()), now), "it lives on");
    place.remove().await;
}

#[tokio::test]
async fn a_server_that_only_reads_is_refused_and_taken_back() {
    let Some(mut place) = Place::alone().await else { return };
    let settings = place.account("writer", "NONE").await;
    let engine = place.ready_with(settings.clone()).await;
    engine.commit(three_rows(1)).await.unwrap();
    place.run("SET GLOBAL read_only = 1").await;
    let opened = Mysql::open(settings, MIGRATIONS).await;
    let answer = engine.commit(three_rows(2)).await;
    let health = engine.health().await.unwrap();
    place.run("SET GLOBAL read_only = 0").await;
    let Err(OpenError::Unfit(why)) = opened else { panic!("it was taken") };
    assert!(why.contains("read-only"), "{why}");
    let Err(CommitError::Unavailable(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("read-only"), "{why}");
    assert!(health.writable.is_err_and(|why| why.contains("read-only")));
    until("a server that may be written", async || engine.commit(three_rows(3)).await.is_ok()).await;
    assert_eq!((found(&engine, 1).await, found(&engine, 2).await, found(&engine, 3).await), (3, 0, 3));
    place.remove().await;
}

/// What a member of MySQL's Group Replication goes into that left its group, unless it was told otherwise.
#[tokio::test]
async fn a_server_that_is_offline_is_refused_and_taken_back() {
    // red without 3032 in mysql/fault.rs.
    let Some(mut place) = Place::alone().await else { return };
    if place.is_mariadb().await {
        println!("skipped: MariaDB has no offline mode");
        return place.remove().await;
    }
    let settings = place.account("writer", "NONE").await;
    let engine = place.ready_with(settings.clone()).await;
    engine.commit(three_rows(1)).await.unwrap();
    place.run("SET GLOBAL offline_mode = 1").await;
    let opened = Mysql::open(settings, MIGRATIONS).await;
    let answer = engine.commit(three_rows(2)).await;
    let health = engine.health().await.unwrap();
    place.run("SET GLOBAL offline_mode = 0").await;
    let Err(OpenError::Unfit(why)) = opened else { panic!("it was taken") };
    assert!(why.contains("error 3032"), "{why}");
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("offline")), "{answer:?}");
    assert!(health.writable.is_err_and(|why| why.contains("offline")));
    until("a server that may be written", async || engine.commit(three_rows(3)).await.is_ok()).await;
    assert_eq!((found(&engine, 1).await, found(&engine, 2).await, found(&engine, 3).await), (3, 0, 3));
    place.remove().await;
}

#[tokio::test]
async fn a_wrong_password_and_a_missing_database_are_named() {
    let Some(mut place) = Place::new().await else { return };
    let right = place.account("named", "NONE").await;
    // What MySQL says of an account that it does not have depends on the name.
    let unknown = if place.is_mariadb().await { &["error 10"][..] } else { &["error 10", "does not exist"] };
    for (url, wanted) in [
        (right.url.replace(":word@", ":secret-word@"), &["1045"][..]),
        (right.url.replace(&place.database, "portiere_nowhere"), unknown),
        (
            right.url.replace(
                &format!("{}/{}", place.host(), place.database),
                &format!("{}/portiere_nowhere", place.host()),
            ),
            &["error 10"],
        ),
        (right.url.replace(place.host(), "127.0.0.1:1"), &["127.0.0.1:1"]),
    ] {
        let opened = Mysql::open(patient(url), MIGRATIONS).await;
        let (Err(OpenError::Unreachable(why)) | Err(OpenError::Refused(why))) = &opened else { panic!("{wanted:?}") };
        let is_away = matches!(opened, Err(OpenError::Unreachable(_)));
        assert_eq!(is_away, why.contains("127.0.0.1:1: "), "a command is tried again only then: {why}");
        assert!(wanted.iter().any(|part| why.contains(part)) && !why.contains("secret-word"), "{why}");
    }
    place.remove().await;
}
