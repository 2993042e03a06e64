//! What goes wrong under batches: rivals, lost connections, silence, warnings. Never half a batch, never a lie.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rules::Handle;
use rules::decision::{Change, Standing};
use rules::fresh::Fresh;
use rules::id::RealmId;
use rules::oauth::client::Client;
use rules::time::Time;
use store::conformance::{three_reads, three_rows};
use store::engine::{Broken, CommitError, Engine, Write};
use store::postgres::Postgres;
use store::remote::Statements;
use store::tables::changes::batch;
use store::tables::{ask, realms};
use tokio::task::JoinSet;

use crate::proxy::{Mood, Proxy};
use crate::server::{Database, database, text};
use crate::until::until;

/// How many of the three rows of this number are there.
async fn found(engine: &Postgres, number: i64) -> usize {
    engine.fetch(&three_reads(number)).await.unwrap().concat().len()
}

/// An engine with the program's own schema. A row is waited for seven seconds at a time.
async fn with_tables(database: &Database, statements: Statements) -> Arc<Postgres> {
    let settings = store::remote::Settings { statements, timeout: Duration::from_secs(300), ..database.settings() };
    let engine = Postgres::open(settings, store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    Arc::new(engine)
}

fn realm() -> RealmId {
    RealmId("main".to_owned())
}

fn changes(changes: &[Change]) -> Vec<Write> {
    batch(&realm(), changes, Time(1), &Fresh::new([1; 32]))
}

/// A rival that takes the same two rows in the other order, and is the more patient.
#[tokio::test]
async fn the_victim_of_a_deadlock_is_sent_again() {
    let Some(database) = database().await else { return };
    // It is looked for once, when somebody has waited for so long: by then the rival has come, and the lock is waited for still.
    database.set("deadlock_timeout = '6s'").await;
    let engine = with_tables(&database, Statements::Kept).await;
    let count = |address: &str| Change::CountStranger { address: address.to_owned(), at: Time(1) };
    engine.commit(changes(&[count("a"), count("b")])).await.unwrap();
    let rival = database.admin().await;
    let take = |address: &str| format!("UPDATE strangers SET count = count + 1 WHERE address = '{address}'");
    rival.batch_execute(&format!("SET deadlock_timeout = '1min'; BEGIN; {}", take("b"))).await.unwrap();
    let watcher = database.admin().await;
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND wait_event_type = 'Lock'",
        database.name
    );
    let rivalry = async {
        until("the batch waits", async || text(&watcher, &waiting).await != "0").await;
        rival.batch_execute(&format!("{}; COMMIT", take("a"))).await
    };
    let batch = engine.commit(changes(&[count("a"), count("b")]));
    let (answer, rival) = futures_util::future::join(batch, rivalry).await;
    rival.unwrap();
    assert!(answer.is_ok(), "{answer:?}");
    assert!(engine.stats().retried > 0, "{:?}", engine.stats());
    assert_eq!(text(&database.admin().await, "SELECT sum(count) FROM strangers").await, "6");
}

/// The same under a stricter isolation, which an administrator may have made the default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_serialized_is_sent_again() {
    let Some(database) = database().await else { return };
    database.set("default_transaction_isolation = 'serializable'").await;
    let engine = with_tables(&database, Statements::Unnamed).await;
    engine.commit(realms::ensure(&realm(), "http://a", Time(1))).await.unwrap();
    let mut running = JoinSet::new();
    for _ in 0..50 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(changes(&[Change::BumpEpoch])).await });
    }
    let stood = running.join_all().await.into_iter().filter(Result::is_ok).count() as i64;
    assert_eq!(ask(&*engine, &realm(), realms::Epoch).await, Ok(Some(1 + stood)));
    assert!(stood > 10 && engine.stats().retried > 0, "{stood} stood, {:?}", engine.stats());
    // Sessions that are ours alone have the isolation that the rest is made for.
    let kept = with_tables(&database, Statements::Kept).await;
    let mut running = JoinSet::new();
    for _ in 0..50 {
        let kept = Arc::clone(&kept);
        running.spawn(async move { kept.commit(changes(&[Change::BumpEpoch])).await });
    }
    assert!(running.join_all().await.iter().all(Result::is_ok));
    assert_eq!(kept.stats().retried, 0);
}

/// Writers that go on while the server ends their connections, one after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_loses_and_doubles_nothing() {
    let Some(database) = database().await else { return };
    let engine = Arc::new(database.ready(|_| ()).await);
    let (stop, mut writers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for writer in 0..16_i64 {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        writers.spawn(async move {
            let mut ledger = Vec::new();
            for number in writer * 1_000_000.. {
                ledger.push((number, engine.commit(three_rows(number)).await));
                // A batch that did not stand is not written again: its outcome is what is looked at.
                if stop.load(Relaxed) {
                    break;
                }
            }
            ledger
        });
    }
    for _ in 0..100 {
        database.end_sessions("ORDER BY random() LIMIT 1").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Relaxed);
    let ledger: Vec<_> = writers.join_all().await.concat();
    let mut sums = [0, 0, 0];
    for (number, answer) in &ledger {
        let rows = found(&engine, *number).await;
        match answer {
            Ok(_) => assert_eq!(rows, 3, "{number} was acknowledged"),
            Err(CommitError::Unknown(_)) => assert!([0, 3].contains(&rows), "{number} is whole or absent"),
            Err(CommitError::Unavailable(_)) => assert_eq!(rows, 0, "{number} was refused"),
            Err(CommitError::Conflict { .. }) => panic!("{number}: {answer:?}"),
        }
        sums[answer.as_ref().map_or_else(|error| 1 + usize::from(matches!(error, CommitError::Unknown(_))), |_| 0)] +=
            1;
    }
    assert!(sums[0] > 100, "acknowledged, refused, unknown: {sums:?}");
    assert!(engine.stats().connections > 20, "{:?}", engine.stats());
}

/// A standby that does not answer, a trigger at the end of a transaction: whatever has a word to say while we commit.
#[tokio::test]
async fn a_warning_before_the_commit_ends_counts_as_unknown() {
    let Some(database) = database().await else { return };
    let admin = database.admin().await;
    // Red without `client_min_messages` in postgres/link.rs.
    let silent =
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_min_messages = error', current_database()); END $$";
    admin.batch_execute(silent).await.unwrap();
    let engine = database.ready(|_| ()).await;
    let warn = |level: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE {level} 'a word'; RETURN NULL; END $$"
        )
    };
    admin.batch_execute(&warn("WARNING")).await.unwrap();
    let trigger = "CREATE CONSTRAINT TRIGGER says AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED \
                   FOR EACH ROW EXECUTE FUNCTION say()";
    admin.batch_execute(trigger).await.unwrap();
    let answer = engine.commit(three_rows(1)).await;
    assert_eq!(answer, Err(CommitError::Unknown("a word".to_owned())));
    assert_eq!(found(&engine, 1).await, 3);
    admin.batch_execute(&warn("NOTICE")).await.unwrap();
    assert_eq!(engine.commit(three_rows(2)).await, Ok(vec![1, 1, 1]));
    admin.batch_execute(&warn("EXCEPTION")).await.unwrap();
    let answer = engine.commit(three_rows(3)).await;
    assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
    assert_eq!(found(&engine, 3).await, 0);
}

#[tokio::test]
async fn a_batch_does_not_wait_for_a_row_for_ever_and_holds_up_no_read() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|settings| settings.timeout = Duration::from_secs(20)).await;
    engine.commit(three_rows(1)).await.unwrap();
    let other = database.admin().await;
    other.batch_execute("BEGIN; INSERT INTO note (realm, name) VALUES ('bench', '2-code')").await.unwrap();
    let waiting = async {
        let start = Instant::now();
        let answer = engine.commit(three_rows(2)).await;
        assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("55P03")), "{answer:?}");
        // It comes again until half of the time is over.
        assert!((Duration::from_secs(8)..Duration::from_secs(60)).contains(&start.elapsed()));
    };
    let reading = async {
        for _ in 0..100 {
            let start = Instant::now();
            assert_eq!(found(&engine, 1).await, 3);
            assert!(start.elapsed() < Duration::from_secs(8), "it waits behind the row");
        }
        // Those who come after take another connection.
        engine.commit(three_rows(3)).await.unwrap();
    };
    futures_util::future::join(waiting, reading).await;
    other.batch_execute("ROLLBACK").await.unwrap();
    engine.commit(three_rows(2)).await.unwrap();
}

/// An operator changes what requests rely on without a pause: an application at which people sign in, and the
/// configuration of a realm whose applications send signed assertions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_everybody_holds_is_changed_under_load() {
    // red with a lock on the row in place of one of its name (postgres/holds.rs): there was always somebody who held it.
    let stands = |number: u64, _| {
        let standing = Standing { client: Some("shop".into()), ..Standing::default() };
        let count = Change::CountStranger { address: format!("192.0.2.{number}"), at: Time(1) };
        vec![Change::Stands(standing), count]
    };
    let asserts = |number: u64, round: u64| {
        let jti = Handle::of(&format!("{number} {round}"));
        vec![Change::UseAssertion { client: "shop".into(), jti, issued: Time(1), expires: Time(2) }]
    };
    changing_under_load("clients", stands).await;
    changing_under_load("realms", asserts).await;
}

async fn changing_under_load(held: &str, holds: fn(u64, u64) -> Vec<Change>) {
    let Some(database) = database().await else { return };
    let settings = store::remote::Settings { timeout: Duration::from_secs(20), ..database.settings() };
    let engine = Arc::new(Postgres::open(settings, store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let (shop, over) = (Client::new("shop", vec![]), Arc::new(AtomicBool::new(false)));
    engine.commit(realms::ensure(&realm(), "http://a", Time(1))).await.unwrap();
    engine.commit(changes(&[Change::AddClient(Box::new(shop.clone()))])).await.unwrap();
    // As where a standby confirms each commit.
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END $$; \
                CREATE TRIGGER slow BEFORE UPDATE ON strangers FOR EACH ROW EXECUTE FUNCTION slow(); \
                CREATE TRIGGER slow BEFORE INSERT ON assertions FOR EACH ROW EXECUTE FUNCTION slow()";
    database.admin().await.batch_execute(slow).await.unwrap();
    let mut holders = JoinSet::new();
    for number in 0..24 {
        let (engine, over) = (Arc::clone(&engine), Arc::clone(&over));
        holders.spawn(async move {
            for round in 0.. {
                if over.load(Relaxed) {
                    break;
                }
                engine.commit(changes(&holds(number, round))).await.unwrap();
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    for number in 0..5 {
        let next = Client { name: format!("shop {number}"), ..shop.clone() };
        let saved = engine.commit(changes(&[Change::SaveClient(Box::new(next)), Change::BumpEpoch])).await;
        assert_eq!(saved, Ok(vec![1, 1]));
    }
    over.store(true, Relaxed);
    holders.join_all().await;
    // Who held it left nothing at the row.
    engine.commit(changes(&holds(99, 0))).await.unwrap();
    let marks = format!("SELECT string_agg(xmax::text, ',') FROM {held}");
    assert_eq!(text(&database.admin().await, &marks).await, "0");
}

/// The other way round: nobody relies on what is being changed, and whoever waits finds it as it is by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_makes_sure_of_an_application_waits_for_who_changes_it_and_for_no_other() {
    // red without the locks of postgres/holds.rs: the first found the shop enabled.
    making_sure(Statements::Kept, "read committed").await;
}

/// Behind a pooler, where a role is set to something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_makes_sure_of_an_application_finds_it_as_it_is_whatever_the_isolation() {
    // red where `lock` in postgres/cargo.rs does not ask for the mode: it found what was there before it waited.
    for isolation in ["repeatable read", "serializable"] {
        making_sure(Statements::Unnamed, isolation).await;
    }
}

async fn making_sure(statements: Statements, isolation: &str) {
    let Some(database) = database().await else { return };
    database.set(&format!("default_transaction_isolation = '{isolation}'")).await;
    let engine = with_tables(&database, statements).await;
    engine.commit(realms::ensure(&realm(), "http://a", Time(1))).await.unwrap();
    let (shop, mill) = (Client::new("shop", vec![]), Client::new("mill", vec![]));
    let both = [&shop, &mill].map(|client| Change::AddClient(Box::new(client.clone())));
    engine.commit(changes(&both)).await.unwrap();
    let stands = |client: &str| {
        let standing = Standing { client: Some(client.into()), ..Standing::default() };
        // Nothing else that both write: a conflict about that would have it look anew.
        let count = Change::CountStranger { address: client.to_owned(), at: Time(1) };
        engine.commit(changes(&[Change::Stands(standing), count]))
    };
    // Somebody holds what the change comes to after the application.
    let other = database.admin().await;
    other.batch_execute("BEGIN; SELECT 1 FROM realms FOR UPDATE").await.unwrap();
    let off = Client { disabled_at: Some(Time(1)), ..shop };
    let (there, saves) = (Arc::clone(&engine), changes(&[Change::SaveClient(Box::new(off)), Change::BumpEpoch]));
    let mut change = JoinSet::new();
    change.spawn(async move { there.commit(saves).await });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock' AND wait_event <> 'advisory'";
    until("the change waits", async || text(&other, waits).await == "1").await;
    let mut late = Box::pin(stands("shop"));
    let early = futures_util::future::select(&mut late, Box::pin(stands("mill"))).await;
    assert!(matches!(early, futures_util::future::Either::Right((Ok(_), _))), "the mill waited, or the shop did not");
    other.batch_execute("ROLLBACK").await.unwrap();
    assert!(change.join_all().await[0].is_ok());
    let found = late.await;
    assert!(matches!(found, Err(CommitError::Conflict { at: 0, why: Broken::Guard })), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_batches_take_long_is_refused_and_not_sent_behind_the_others() {
    // red without `is_slow` in postgres/lane.rs: each of 60 waits for those before it, one second for each.
    let Some(database) = database().await else { return };
    let settings = store::remote::Settings { timeout: Duration::from_secs(4), ..database.settings() };
    let engine = Arc::new(Postgres::open(settings, store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$; \
                CREATE TRIGGER slow BEFORE UPDATE ON strangers FOR EACH ROW EXECUTE FUNCTION slow()";
    database.admin().await.batch_execute(slow).await.unwrap();
    let wave = |numbers: std::ops::Range<usize>| {
        let mut all = JoinSet::new();
        for number in numbers {
            let engine = Arc::clone(&engine);
            let count = Change::CountStranger { address: format!("{number}"), at: Time(1) };
            all.spawn(async move { engine.commit(changes(&[count])).await });
        }
        all
    };
    let first = wave(0..12);
    tokio::time::sleep(Duration::from_millis(600)).await;
    let second = wave(12..72).join_all().await;
    let refused = |outcome: &&Result<Vec<u64>, CommitError>| matches!(outcome, Err(CommitError::Unavailable(why)) if why.contains("too slow for all waiting requests"));
    assert!(second.iter().filter(refused).count() >= 30, "{second:?}");
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_rows_that_are_held_keeps_nobody_from_others() {
    // Red without `held` in postgres/mod.rs: whoever comes waits behind them, until they are given up.
    let Some(database) = database().await else { return };
    for statements in [Statements::Kept, Statements::Unnamed] {
        let settings = store::remote::Settings { statements, timeout: Duration::from_secs(20), ..database.settings() };
        let engine = Arc::new(Postgres::open(settings, store::migrations::MIGRATIONS).await.unwrap());
        engine.migrate().await.unwrap();
        let count = |address: &str| {
            let batch = changes(&[Change::CountStranger { address: address.to_owned(), at: Time(1) }]);
            let engine = Arc::clone(&engine);
            async move { engine.commit(batch).await }
        };
        let held = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
        for address in held {
            count(address).await.unwrap();
        }
        let other = database.admin().await;
        other.batch_execute("BEGIN; SELECT count FROM strangers FOR UPDATE").await.unwrap();
        let (mut waiting, mut free) = (JoinSet::new(), JoinSet::new());
        for address in held.iter().cycle().take(12) {
            waiting.spawn(count(address));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        for number in 0..40 {
            free.spawn(count(&format!("{statements:?}-{number}")));
        }
        let free = free.join_all().await;
        assert!(free.iter().all(Result::is_ok), "{free:?}");
        assert!(waiting.try_join_next().is_none(), "they wait still");
        other.batch_execute("ROLLBACK").await.unwrap();
        let waiting = waiting.join_all().await;
        assert!(waiting.iter().all(Result::is_ok), "{waiting:?}");
    }
    let counted = text(&database.admin().await, "SELECT sum(count) FROM strangers").await;
    assert_eq!(counted, (2 * (3 + 12 + 40)).to_string());
}

#[tokio::test]
async fn silence_ends_after_the_time_that_was_set() {
    let Some(database) = database().await else { return };
    let proxy = Proxy::before(database.port).await;
    let engine = database
        .ready(|settings| {
            settings.url = database.url_at(proxy.port);
            settings.timeout = Duration::from_secs(6);
        })
        .await;
    engine.commit(three_rows(1)).await.unwrap();
    // The server hears everything, and is not heard.
    proxy.is(Mood::Deaf);
    let start = Instant::now();
    let reads = three_reads(1);
    let (committed, fetched) = futures_util::future::join(engine.commit(three_rows(2)), engine.fetch(&reads)).await;
    assert!(matches!(committed, Err(CommitError::Unknown(_))), "{committed:?}");
    assert!(fetched.is_err(), "{fetched:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    // Soon it is known to be gone, on every connection: nobody waits for it any more.
    let quickly = async || {
        let start = Instant::now();
        engine.fetch(&reads).await.is_err() && start.elapsed() < Duration::from_millis(400)
    };
    until("nobody waits", quickly).await;
    let start = Instant::now();
    for number in 10..50 {
        let answer = engine.commit(three_rows(number)).await;
        assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
    }
    // All together, where each would wait for half a second at least.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert!(engine.health().await.unwrap().writable.is_err());
    proxy.is(Mood::Open);
    until("a connection", async || engine.fetch(&reads).await.is_ok()).await;
    assert!([0, 3].contains(&found(&engine, 2).await));
    for number in 10..50 {
        assert_eq!(found(&engine, number).await, 0);
    }
}

/// Every connection is ended at once; the next request has one all the same.
#[tokio::test]
async fn a_lost_connection_is_made_anew_for_who_asks() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    for number in 0..10 {
        engine.commit(three_rows(number)).await.unwrap();
        database.end_sessions("").await;
        if number % 2 == 0 {
            assert_eq!(found(&engine, number).await, 3);
        }
    }
    assert!(engine.stats().connections > 20, "{:?}", engine.stats());
}

/// A flight that fails early leaves out what others count on having been prepared by it.
#[tokio::test]
async fn neighbors_of_a_failed_flight_are_spared() {
    let Some(database) = database().await else { return };
    let engine = Arc::new(database.ready(|settings| settings.connections = NonZeroUsize::MIN).await);
    let mut broken = three_rows(1);
    broken.insert(0, broken[0].clone());
    let mut running = JoinSet::new();
    for number in 1..50 {
        let (engine, broken) = (Arc::clone(&engine), broken.clone());
        running.spawn(async move {
            assert!(engine.commit(broken).await.is_err());
            let (rows, reads) = (engine.commit(three_rows(number)).await, three_reads(number));
            assert_eq!((rows, engine.fetch(&reads).await.unwrap().concat().len()), (Ok(vec![1, 1, 1]), 3));
        });
    }
    running.join_all().await;
}

#[tokio::test]
async fn what_was_handed_over_is_done_when_the_engine_is_dropped() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    let mut calls: Vec<_> = (0..50).map(|number| engine.commit(three_rows(number))).collect();
    // Once is enough to hand it over.
    std::future::poll_fn(|context| {
        calls.iter_mut().for_each(|call| assert!(call.as_mut().poll(context).is_pending()));
        std::task::Poll::Ready(())
    })
    .await;
    drop(calls);
    drop(engine);
    let admin = database.admin().await;
    until("all of it", async || text(&admin, "SELECT count(*) FROM note").await == "150").await;
    let sessions = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND application_name = 'portiere'",
        database.name
    );
    until("nobody left", async || text(&admin, &sessions).await == "0").await;
}
