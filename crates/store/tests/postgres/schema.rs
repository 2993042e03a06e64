//! Bringing the schema up: by several nodes at once, after a failure, and never back.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use store::conformance::forerunner::forerunner;
use store::conformance::neighbors::neighbors;
use store::conformance::{MIGRATIONS, Shared, three_reads, three_rows};
use store::conformance::{sealing, sweeping};
use store::engine::Engine;
use store::postgres::Postgres;
use store::remote::Statements;
use store::schema::Migration;
use store::tables::{ask, realms};
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::server::{database, text};
use crate::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_nodes_bring_the_schema_up_at_once() {
    let Some(database) = database().await else { return };
    let modes = [Statements::Kept, Statements::Unnamed, Statements::Kept, Statements::Unnamed];
    let open = modes.map(|statements| {
        let settings = store::remote::Settings { statements, ..database.settings() };
        Postgres::open(settings, store::migrations::MIGRATIONS)
    });
    let engines: Vec<Postgres> = join_all(open).await.into_iter().map(Result::unwrap).collect();
    for migrated in join_all(engines.iter().map(Engine::migrate)).await {
        migrated.unwrap();
    }
    let steps: usize = store::migrations::MIGRATIONS.iter().map(|migration| migration.steps.len()).sum();
    let admin = database.admin().await;
    assert_eq!(text(&admin, "SELECT count(*) FROM schema_steps").await, steps.to_string());
    engines[3].migrate().await.unwrap();
}

#[tokio::test]
async fn the_programs_own_schema_holds_its_facts() {
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    let realm = rules::id::RealmId("main".to_owned());
    let ensure = |issuer: &str| realms::ensure(&realm, issuer, rules::time::Time(1));
    assert_eq!(engine.commit(ensure("http://a")).await, Ok(vec![1, 0]));
    assert_eq!(engine.commit(ensure("http://b")).await, Ok(vec![0, 1]));
    assert_eq!(ask(&engine, &realm, realms::Epoch).await, Ok(Some(1)));
}

#[tokio::test]
async fn text_is_kept_in_the_order_of_its_bytes_whatever_the_database_prefers() {
    let Some(database) = database().await else { return };
    let engine = database.ready(|_| ()).await;
    let admin = database.admin().await;
    let of = "SELECT collation_name FROM information_schema.columns WHERE table_name = 'note' AND column_name = 'name'";
    assert_eq!(text(&admin, of).await, "C");
    drop(engine);
}

#[tokio::test]
async fn a_schema_step_that_fails_leaves_nothing_and_is_taken_up_again() {
    const BROKEN: &[Migration] = &[
        MIGRATIONS[0],
        Migration {
            version: 2,
            name: "labels on things",
            oldest: 2,
            steps: &[MIGRATIONS[1].steps[0], "CREATE NONSENSE"],
        },
    ];
    let Some(database) = database().await else { return };
    let broken = Postgres::open(database.settings(), BROKEN).await.unwrap();
    let why = broken.migrate().await.unwrap_err().0;
    assert!(why.contains("schema version 2, step 1"), "{why}");
    broken.commit(three_rows(1)).await.unwrap();
    let mended = database.ready(|_| ()).await;
    assert_eq!(mended.fetch(&three_reads(1)).await.unwrap().concat().len(), 3);
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let Some(database) = database().await else { return };
    drop(database.ready(|_| ()).await);
    let older = Postgres::open(database.settings(), &MIGRATIONS[..1]).await.unwrap();
    let why = older.migrate().await.unwrap_err().0;
    assert!(
        why.contains("newer program (schema 2, for programs of schema 2 and later; this program knows 1)"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_two_releases_work_beside_each_other() {
    // red without `ahead` in schema.rs, plan; with a column in `neighbors::ADDS` that has to be given.
    let Some(database) = database().await else { return };
    let database = &database;
    let open =
        |migrations| async move { Arc::new(Postgres::open(database.settings(), migrations).await.unwrap()) as Shared };
    neighbors(open).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_program_of_before_wrote_is_read_and_goes_on() {
    let Some(database) = database().await else { return };
    let database = &database;
    let open =
        |migrations| async move { Arc::new(Postgres::open(database.settings(), migrations).await.unwrap()) as Shared };
    forerunner(open, || ()).await.unwrap();
}

/// What an operator is told on this thread.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn times(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(what)).count()
    }
}

impl Subscriber for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| line.push_str(&format!("{field}={value:?} ")));
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A node that waits for another to bring the schema up waits for as long as that takes, and says so. Red without
/// `tell_of_another` in postgres/migrate.rs: it says nothing.
#[tokio::test]
async fn who_waits_for_the_lock_of_the_schema_is_patient_and_says_so_once() {
    let Some(database) = database().await else { return };
    database.set("lock_timeout = '100ms'").await;
    let engine = Postgres::open(database.settings(), MIGRATIONS).await.unwrap();
    let other = database.admin().await;
    other
        .batch_execute("BEGIN; SET lock_timeout = 0; SELECT pg_advisory_xact_lock(8102098814193724005)")
        .await
        .unwrap();
    let released = async {
        tokio::time::sleep(std::time::Duration::from_millis(800)).await;
        other.batch_execute("ROLLBACK").await.unwrap();
    };
    let said = Said::default();
    let listening = tracing::subscriber::set_default(said.clone());
    let (migrated, ()) = futures_util::future::join(engine.migrate(), released).await;
    drop(listening);
    migrated.unwrap();
    assert_eq!(said.times("another program is migrating this database"), 1);
}

/// Red where the lock in another database of the same server is taken for ours.
#[tokio::test]
async fn who_finds_the_lock_of_the_schema_free_says_nothing_of_it() {
    let (Some(database), Some(neighbor)) = (database().await, database().await) else { return };
    let other = neighbor.admin().await;
    other.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(8102098814193724005)").await.unwrap();
    let engine = Postgres::open(database.settings(), MIGRATIONS).await.unwrap();
    let said = Said::default();
    let listening = tracing::subscriber::set_default(said.clone());
    engine.migrate().await.unwrap();
    drop(listening);
    assert_eq!(said.times("another program"), 0);
}

/// Deleting up to a bound, and sealing, look at about as many rows as they change, however many there are beyond, also where
/// nobody ever analysed the table. Red without the bounds in `tables::events::about`: sealing looked at all that waited.
#[tokio::test]
async fn upkeep_costs_what_it_changes() {
    const FILL: &str = "INSERT INTO events (realm, id, at, kind, detail) \
         SELECT 'sealed', lpad(i::text, 26, '0'), 0, 'x', '{}' FROM generate_series(1, 20000) AS i";
    const LOOKED_AT: &str = "SELECT sum(idx_tup_read) + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables \
         WHERE relname = 'events') FROM pg_stat_user_indexes WHERE relname = 'events'";
    let Some(database) = database().await else { return };
    let engine: Shared = Arc::new(Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let admin = database.admin().await;
    admin.batch_execute(FILL).await.unwrap();
    let looked_at = async || text(&admin, LOOKED_AT).await.parse::<u64>().unwrap();
    let before = looked_at().await;
    sealing::upkeep(&engine).await.unwrap();
    // A session tells what it read at its end.
    drop(engine);
    until("what was read is told", async || looked_at().await >= before + 356).await;
    let rows = looked_at().await - before;
    assert_eq!(text(&admin, "SELECT count(*) FROM events WHERE block = 0").await, "19644");
    assert!(rows < 4000, "{rows} rows were looked at");
}

/// Whatever deletes rows in steps looks at about as many as it deletes, however many there are and however often it was
/// planned. Red without the bound in `tables::sweep::first`: each step looked at all rows of a table.
#[tokio::test]
async fn a_step_costs_what_it_deletes() {
    const FILL: &str = "SELECT format('INSERT INTO %I (%s) SELECT %s FROM generate_series(1, 20000) AS i', table_name, \
         string_agg(column_name, ', '), string_agg(CASE WHEN column_name = 'realm' THEN '''stepped''' \
         WHEN data_type = 'text' THEN 'lpad(i::text, 26, ''0'')' \
         WHEN data_type = 'bytea' THEN 'decode(lpad(i::text, 64, ''0''), ''hex'')' ELSE 'i' END, ', ')) \
         FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ";
    /// A plan that is kept is made after five that are not.
    const TIMES: u64 = 8;
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    let admin = database.admin().await;
    let steps = sweeping::in_steps(&"stepped".into());
    let mut due = std::collections::BTreeMap::new();
    for (table, _) in &steps {
        *due.entry(table).or_insert(0) += TIMES * sweeping::STEP.unsigned_abs();
    }
    for table in due.keys() {
        let fill = text(&admin, &format!("{FILL}'{table}' GROUP BY table_name")).await;
        // As the server does by itself some time after a table has grown.
        admin.batch_execute(&format!("{fill}; ANALYZE {table}")).await.unwrap();
    }
    for (_, write) in &steps {
        for _ in 0..TIMES {
            let gone = engine.commit(vec![write.clone()]).await.unwrap();
            assert_eq!(gone, [sweeping::STEP.unsigned_abs()], "{}", write.sql.text());
        }
    }
    // A session tells what it read at its end.
    drop(engine);
    for (table, due) in due {
        let looked_at = async || {
            let indexes = format!("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '{table}'");
            let sql = format!("SELECT seq_tup_read + ({indexes}) FROM pg_stat_user_tables WHERE relname = '{table}'");
            text(&admin, &sql).await.parse::<u64>().unwrap()
        };
        until("what was read is told", async || looked_at().await >= due).await;
        let rows = looked_at().await;
        // Some of it again and again: rows that were deleted, while any transaction of the server is older than that.
        assert!(rows < due * 50, "{rows} rows of {table} were looked at, to delete {due}");
    }
}

/// What is found by its key is found by all of it, some seconds after a table has grown. Red without `postgres::figures`: the
/// planner takes another index, and reads all sessions of the realm.
#[tokio::test]
async fn tables_that_have_grown_are_counted() {
    const FILL: &str = "INSERT INTO sessions (realm, id, handle, user_id, auth_time, amr, created, last_seen, expires, agent, address) \
         SELECT 'main', 's' || i, '', 'u' || i, 1, '', 1, 1, 1, '', '' FROM generate_series(1, 200) AS i";
    const PLAN: &str = "SET enable_seqscan = off; EXPLAIN SELECT 1 FROM sessions WHERE realm = 'main' AND id = 's7'";
    let Some(database) = database().await else { return };
    let engine = Postgres::open(database.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    let admin = database.admin().await;
    admin.batch_execute("ALTER TABLE sessions SET (autovacuum_enabled = false)").await.unwrap();
    // One transaction, so that nobody can count them in between.
    let unknown = text(&admin, &format!("{FILL}; {PLAN}")).await;
    assert!(!unknown.contains("sessions_pkey"), "the planner knows without being told: {unknown}");
    // The plan itself is awaited: the server tells of a count (`analyze_count`) before that commits.
    until("sessions are found by all of their key", async || text(&admin, PLAN).await.contains("sessions_pkey")).await;
}
