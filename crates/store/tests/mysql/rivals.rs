//! Batches that want the same rows at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use rules::decision::{Change, Standing};
use rules::id::RealmId;
use rules::{Fresh, Time};
use store::conformance::three_rows;
use store::engine::{Broken, CommitError, Engine, Must, Value, Write};
use store::mysql::Mysql;
use tokio::task::JoinSet;

use super::place::{Place, found};
use super::until::until;

/// The statements of `three_rows` and `three_reads` are all that is public: these are made of them.
fn put(name: &str) -> Write {
    let mut put = three_rows(0).remove(0);
    put.args[1] = Value::Text(name.to_owned());
    put
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_lock_each_other_out_are_begun_again() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready().await;
    let before = place.deadlocks().await;
    // Whether two of them lock each other out is chance, and nearly certain in one of these rounds.
    for round in 0..20 {
        let mut running = JoinSet::new();
        for number in 0..200 {
            let engine = Arc::clone(&engine);
            // Two keys, half of the batches in the one order and half in the other: whoever is second on either waits.
            let pair = format!("{round}-{}", number / 2);
            let mut batch = vec![put(&format!("a{pair}")), put(&format!("b{pair}"))];
            if number % 2 == 1 {
                batch.reverse();
            }
            running.spawn(async move { engine.commit(batch).await });
        }
        let answers = running.join_all().await;
        let stood = answers.iter().filter(|answer| answer.is_ok()).count();
        let lost = |answer: &&Result<_, _>| matches!(answer, Err(CommitError::Conflict { why: Broken::Unique, .. }));
        assert_eq!((stood, answers.iter().filter(lost).count()), (100, 100), "{answers:?}");
        if place.deadlocks().await > before {
            break;
        }
    }
    assert!(place.deadlocks().await > before, "there was a deadlock to begin again");
    place.remove().await;
}

/// All of them count, and none gives up: a failed insert must not leave a lock that the others wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_count_in_one_row() {
    let Some(place) = Place::new().await else { return };
    let engine = Arc::new(Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let realm = RealmId("main".to_owned());
    let stranger = || Change::CountStranger { address: "192.0.2.1".to_owned(), at: Time(0) };
    let mut running = JoinSet::new();
    for _ in 0..400 {
        let batch = store::tables::changes::batch(&realm, &[stranger()], Time(0), &Fresh::new([7; 32]));
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(batch).await });
    }
    for answer in running.join_all().await {
        assert!(answer.is_ok(), "{answer:?}");
    }
    let counted: Option<i64> = place.conn().await.query_first("SELECT count FROM strangers").await.unwrap();
    assert_eq!(counted, Some(400));
    place.remove().await;
}

/// Shared locks of rivals that go on to change what they found would be deadlocks, each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_what_it_changes_waits_in_line() {
    let Some(mut place) = Place::alone().await else { return };
    let engine = Arc::new(Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let realm = RealmId("main".to_owned());
    let add = "INSERT INTO users (realm, id, username, email_verified, profile, role, created, updated) \
               VALUES ('main', 'one', 'one', 0, '', 'member', 0, 0)";
    place.conn().await.query_drop(add).await.unwrap();
    let before = place.deadlocks().await;
    let mut running = JoinSet::new();
    for at in 0..200 {
        let stands = Change::Stands(Standing { user: Some("one".into()), ..Default::default() });
        let set = Change::SetDisabled { user: "one".into(), disabled_at: None, at: Time(at) };
        let batch = store::tables::changes::batch(&realm, &[stands, set], Time(at), &Fresh::new([7; 32]));
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(batch).await });
    }
    for answer in running.join_all().await {
        assert_eq!(answer, Ok(vec![1, 1]));
    }
    assert_eq!(place.deadlocks().await, before);
    place.remove().await;
}

/// Each finds what the other would change, and something beside it, in one go: both standing would be a skew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_batches_that_rule_each_other_out_one_stands() {
    let Some(place) = Place::new().await else { return };
    let engine = Arc::new(Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let mut conn = place.conn().await;
    let add_user = "INSERT INTO users (realm, id, username, email_verified, profile, role, created, updated) \
                VALUES ('main', ?, ?, 0, '', 'member', 0, 0)";
    let add_client = "INSERT INTO clients (realm, id, data, created) VALUES ('main', ?, '', 0)";
    let realm = RealmId("main".to_owned());
    for round in 0..60 {
        let name = format!("{round}");
        conn.exec_drop(add_user, (&name, &name)).await.unwrap();
        conn.exec_drop(add_client, (&name,)).await.unwrap();
        let (user, client) = (Some(name.as_str().into()), Some(name.as_str().into()));
        let standing = Standing { user, client, ..Default::default() };
        let both = || Change::Stands(standing.clone());
        let batches = [
            vec![both(), Change::SetDisabled { user: name.as_str().into(), disabled_at: Some(Time(1)), at: Time(1) }],
            vec![both(), Change::RemoveClient(name.as_str().into())],
        ];
        let mut running = JoinSet::new();
        for changes in batches {
            let engine = Arc::clone(&engine);
            let batch = store::tables::changes::batch(&realm, &changes, Time(1), &Fresh::new([7; 32]));
            running.spawn(async move { engine.commit(batch).await });
        }
        let answers = running.join_all().await;
        let stood = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(stood, 1, "round {round}: {answers:?}");
    }
    place.remove().await;
}

#[tokio::test]
async fn a_lock_that_is_not_let_go_of_ends_in_unavailable() {
    let Some(place) = Place::new().await else { return };
    // A lock is waited for a tenth of that at a time, until the time is over.
    let engine = place.ready_with(place.with(|settings| settings.timeout = Duration::from_secs(16))).await;
    let mut other = place.conn().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("INSERT INTO note (realm, name) VALUES ('bench', '1-session')").await.unwrap();
    let start = Instant::now();
    let answer = engine.commit(three_rows(1)).await;
    let took = start.elapsed();
    // Red without `waits_at_most` in mysql/batch.rs: the wait that the deadline ends is told, and every connection taken for dead.
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("1205")), "{answer:?}");
    // A server looks once a second who has waited for too long.
    assert!((7..60).contains(&took.as_secs()), "{took:?}");
    assert_eq!(found(&engine, 1).await, 0);
    other.query_drop("ROLLBACK").await.unwrap();
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(found(&engine, 1).await, 3);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_rows_that_are_held_keeps_nobody_from_others() {
    // Red without `held` in mysql/batch.rs: six batches wait at the server, and nobody else has a place until they are given up.
    let Some(place) = Place::new().await else { return };
    let settings = place.with(|settings| settings.timeout = Duration::from_secs(20));
    let engine = Arc::new(Mysql::open(settings, store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let count = |address: &str| {
        let change = Change::CountStranger { address: address.to_owned(), at: Time(0) };
        let batch =
            store::tables::changes::batch(&RealmId("main".to_owned()), &[change], Time(0), &Fresh::new([7; 32]));
        let engine = Arc::clone(&engine);
        async move { engine.commit(batch).await }
    };
    let held = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    for address in held {
        count(address).await.unwrap();
    }
    let mut other = place.conn().await;
    other.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await.unwrap();
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("SELECT count FROM strangers FOR UPDATE").await.unwrap();
    let (mut waiting, mut free) = (JoinSet::new(), JoinSet::new());
    for address in held.iter().cycle().take(12) {
        waiting.spawn(count(address));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for number in 0..40 {
        free.spawn(count(&format!("198.51.100.{number}")));
    }
    let free = free.join_all().await;
    assert!(free.iter().all(Result::is_ok), "{free:?}");
    assert!(waiting.try_join_next().is_none(), "they wait still");
    other.query_drop("ROLLBACK").await.unwrap();
    let waiting = waiting.join_all().await;
    assert!(waiting.iter().all(Result::is_ok), "{waiting:?}");
    let counted: Option<i64> =
        place.conn().await.query_first("SELECT CAST(SUM(count) AS SIGNED) FROM strangers").await.unwrap();
    assert_eq!(counted, Some(3 + 12 + 40));
    place.remove().await;
}

#[tokio::test]
async fn a_lock_that_is_let_go_of_in_time_is_waited_for() {
    let Some(place) = Place::new().await else { return };
    let engine = place.ready().await;
    let mut other = place.conn().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("INSERT INTO note (realm, name) VALUES ('bench', '1-session')").await.unwrap();
    let waiting = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { engine.commit(three_rows(1)).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    other.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(vec![1, 1, 1]));
    place.remove().await;
}

#[tokio::test]
async fn a_connection_that_is_killed_inside_a_batch_leaves_nothing() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready().await;
    let mut other = place.conn().await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("INSERT INTO note (realm, name) VALUES ('bench', '1-session')").await.unwrap();
    let waiting = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { engine.commit(three_rows(1)).await }
    });
    let sql = format!(
        "SELECT id FROM information_schema.processlist WHERE db = '{}' AND command = 'Execute'",
        place.database
    );
    until("a batch that waits", async || !place.query::<u64>(&sql).await.is_empty()).await;
    let id = place.query::<u64>(&sql).await[0];
    place.run(&format!("KILL {id}")).await;
    other.query_drop("ROLLBACK").await.unwrap();
    let answer = waiting.await.unwrap();
    assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
    assert_eq!(found(&engine, 1).await, 0);
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(found(&engine, 1).await, 3);
    place.remove().await;
}

/// However a batch ends, its connection has no transaction afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_is_left_open() {
    let Some(mut place) = Place::new().await else { return };
    let engine = place.ready().await;
    engine.commit(three_rows(0)).await.unwrap();
    let guarded = || {
        let mut rows = three_rows(7);
        rows[1].must = Must::Touch(2);
        rows
    };
    let mut broken = three_rows(8);
    broken[2].args[0] = Value::Null;
    let mut running = JoinSet::new();
    for (at, batch) in [three_rows(0), guarded(), broken, three_rows(9)].into_iter().cycle().take(200).enumerate() {
        let engine = Arc::clone(&engine);
        running.spawn(async move {
            let call = engine.commit(batch);
            // Some are let go of before they are answered.
            match at % 5 {
                0 => drop(tokio::time::timeout(Duration::from_micros(50 * at as u64), call).await),
                _ => drop(call.await),
            }
        });
    }
    running.join_all().await;
    engine.fetch(&store::conformance::five_reads(9)).await.unwrap();
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx t \
         JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = '{}'",
        place.database
    );
    let none = async || {
        // The table shows what it showed before to whoever looks again within 100 ms.
        tokio::time::sleep(Duration::from_millis(150)).await;
        place.query::<u64>(&sql).await == [0]
    };
    until("no transaction", none).await;
    place.remove().await;
}
