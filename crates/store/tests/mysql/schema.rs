//! Schemas: brought up by many at once, continued after an interruption, refused where they are not ours.

use std::sync::Arc;

use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use rules::id::RealmId;
use rules::time::Time;
use store::conformance::everything;
use store::conformance::forerunner::forerunner;
use store::conformance::neighbors::neighbors;
use store::conformance::{MIGRATIONS, Shared, three_rows};
use store::conformance::{sealing, sweeping};
use store::engine::{CommitError, Engine, Value};
use store::moving::marks::Marks;
use store::mysql::Mysql;
use store::schema::Migration;
use store::tables::restore::{self, Issued};
use store::tables::sweep::{self, Bounds};
use store::tables::{realms, secrets};

use super::between::Between;
use super::place::{Place, found};

const MARKERS: &str = "SELECT version, step FROM schema_steps ORDER BY version, step";

fn all_steps(migrations: &[Migration]) -> Vec<(i64, i64)> {
    migrations.iter().flat_map(|one| (0..one.steps.len() as i64).map(|step| (one.version, step))).collect()
}

#[tokio::test]
async fn the_programs_schema_is_made_once() {
    let Some(mut place) = Place::new().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    engine.migrate().await.unwrap();
    let mut conn = place.conn().await;
    let done: Vec<(i64, i64)> = conn.query(MARKERS).await.unwrap();
    assert_eq!(done, all_steps(store::migrations::MIGRATIONS));
    let collation = if place.is_mariadb().await { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" };
    let sql = "SELECT DISTINCT engine, table_collation FROM information_schema.tables WHERE table_schema = DATABASE()";
    let kinds: Vec<(String, String)> = conn.query(sql).await.unwrap();
    assert_eq!(kinds, [("InnoDB".to_owned(), collation.to_owned())]);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_programs_at_once_make_the_schema_once() {
    let Some(place) = Place::new().await else { return };
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let settings = place.settings();
        running
            .spawn(async move { Mysql::open(settings, store::migrations::MIGRATIONS).await.unwrap().migrate().await });
    }
    for answer in running.join_all().await {
        assert_eq!(answer, Ok(()));
    }
    let done: Vec<(i64, i64)> = place.conn().await.query(MARKERS).await.unwrap();
    assert_eq!(done, all_steps(store::migrations::MIGRATIONS));
    place.remove().await;
}

/// Some clusters give no lock by name: Galera of MariaDB 10.6.13 and 10.11.3 (1235), Percona XtraDB Cluster in strict mode (1105).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_lock_is_given_many_programs_make_the_schema_once() {
    // red without NO_LOCKS in mysql/migrate.rs.
    let Some(place) = Place::new().await else { return };
    let between = Between::new(&place).await;
    let settings = place.at(&between.host);
    let open = async || Mysql::open(settings.clone(), store::migrations::MIGRATIONS).await.unwrap();
    let engines = [open().await, open().await, open().await];
    for (code, fits) in [(1142, false), (1235, true), (1105, true)] {
        let refuse = format!("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'no lock'");
        between.ask_instead("SELECT GET_LOCK", &refuse);
        for answer in join_all(engines.iter().map(|engine| engine.migrate())).await {
            assert_eq!(answer.is_ok(), fits, "{code}: {answer:?}");
        }
    }
    let done: Vec<(i64, i64)> = place.conn().await.query(MARKERS).await.unwrap();
    assert_eq!(done, all_steps(store::migrations::MIGRATIONS));
    place.remove().await;
}

/// Whoever waits for nobody may come to a table that another program has made, and has changed since.
#[tokio::test]
async fn a_table_that_another_program_has_changed_meanwhile_is_done() {
    // red without is_marked in mysql/migrate.rs.
    let Some(place) = Place::new().await else { return };
    place.ready().await;
    place.conn().await.query_drop("ALTER TABLE label ADD COLUMN color text").await.unwrap();
    let between = Between::new(&place).await;
    // It looked before the other one had begun.
    between.ask_instead(
        "SELECT version, step FROM schema_steps",
        "SELECT version, step FROM schema_steps WHERE version = 0",
    );
    let engine = place.ready_with(place.at(&between.host)).await;
    engine.commit(three_rows(1)).await.unwrap();
    let done: Vec<(i64, i64)> = place.conn().await.query(MARKERS).await.unwrap();
    assert_eq!(done, all_steps(MIGRATIONS));
    place.remove().await;
}

/// A change of a table commits by itself: the program may end between it and its marker, after any step.
#[tokio::test]
async fn a_schema_interrupted_after_any_step_is_continued() {
    let Some(place) = Place::new().await else { return };
    let engine = place.ready().await;
    let mut conn = place.conn().await;
    for (version, step) in all_steps(MIGRATIONS) {
        // Everything was done, and of what came after this step nothing was written down.
        conn.exec_drop(
            "DELETE FROM schema_steps WHERE version > ? OR (version = ? AND step >= ?)",
            (version, version, step),
        )
        .await
        .unwrap();
        engine.migrate().await.unwrap();
        let done: Vec<(i64, i64)> = conn.query(MARKERS).await.unwrap();
        assert_eq!(done, all_steps(MIGRATIONS), "from version {version}, step {step}");
    }
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(found(&engine, 1).await, 3);
    place.remove().await;
}

#[tokio::test]
async fn a_table_of_somebody_elses_is_not_taken_for_ours() {
    let Some(place) = Place::new().await else { return };
    place.conn().await.query_drop("CREATE TABLE label (id text, color text)").await.unwrap();
    let engine = place.open().await;
    for _ in 0..2 {
        let why = engine.migrate().await.unwrap_err().0;
        assert!(why.contains("schema version 2, step 0: error 1050"), "{why}");
    }
    let done: Vec<(i64, i64)> = place.conn().await.query(MARKERS).await.unwrap();
    assert_eq!(done, [(1, 0)]);
    place.remove().await;
}

#[tokio::test]
async fn an_account_that_may_make_no_tables_starts_where_none_is_to_be_made() {
    // red without `is_there` in mysql/migrate.rs: CREATE TABLE IF NOT EXISTS is refused where the table is there.
    let Some(mut place) = Place::new().await else { return };
    place.ready().await;
    let settings = place.account("writer", "NONE").await;
    place.run(&format!("REVOKE CREATE ON {0}.* FROM {0}_writer@localhost", place.database)).await;
    let engine = place.ready_with(settings).await;
    engine.commit(three_rows(1)).await.unwrap();
    assert_eq!(found(&engine, 1).await, 3);
    place.remove().await;
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let Some(place) = Place::new().await else { return };
    place.ready().await;
    let older = Mysql::open(place.settings(), &MIGRATIONS[..1]).await.unwrap();
    let why = older.migrate().await.unwrap_err().0;
    assert!(
        why.contains("newer program (schema 2, for programs of schema 2 and later; this program knows 1)"),
        "{why}"
    );
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_two_releases_work_beside_each_other() {
    let Some(place) = Place::new().await else { return };
    let shared = &place;
    let open =
        |migrations| async move { Arc::new(Mysql::open(shared.settings(), migrations).await.unwrap()) as Shared };
    neighbors(open).await.unwrap();
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_program_of_before_wrote_is_read_and_goes_on() {
    let Some(place) = Place::new().await else { return };
    let shared = &place;
    let open =
        |migrations| async move { Arc::new(Mysql::open(shared.settings(), migrations).await.unwrap()) as Shared };
    forerunner(open, || ()).await.unwrap();
    place.remove().await;
}

/// A change of rows and its marker are one transaction.
#[tokio::test]
async fn a_step_that_changes_rows_is_done_once() {
    const FILLED: &[Migration] = &[
        MIGRATIONS[0],
        MIGRATIONS[1],
        Migration {
            version: 3,
            name: "a first note",
            oldest: 3,
            steps: &[
                "ALTER TABLE note ADD COLUMN color text",
                "INSERT INTO note (realm, name, number) SELECT id, title, 0 FROM label",
                "UPDATE note SET number = number + 1",
            ],
        },
    ];
    let Some(place) = Place::new().await else { return };
    place.ready().await;
    let mut conn = place.conn().await;
    conn.query_drop("INSERT INTO label (id, title) VALUES ('bench', '1-code')").await.unwrap();
    let engine = Mysql::open(place.settings(), FILLED).await.unwrap();
    engine.migrate().await.unwrap();
    engine.migrate().await.unwrap();
    conn.query_drop("DELETE FROM schema_steps WHERE version = 3 AND step = 0").await.unwrap();
    engine.migrate().await.unwrap();
    let notes: Vec<(String, i64, Option<String>)> = conn.query("SELECT name, number, color FROM note").await.unwrap();
    assert_eq!(notes, [("1-code".to_owned(), 1, None)]);
    place.remove().await;
}

#[tokio::test]
async fn a_text_that_is_too_long_for_its_key_is_refused_whole() {
    let Some(place) = Place::new().await else { return };
    let engine = place.ready().await;
    let put = |name: String| {
        let mut rows = three_rows(1);
        rows.truncate(1);
        rows[0].args[1] = Value::Text(name);
        rows
    };
    engine.commit(put("\u{10ffff}".repeat(255))).await.unwrap();
    for name in ["\u{10ffff}".repeat(256), "a".repeat(256), " ".repeat(256)] {
        let answer = engine.commit(put(name)).await;
        let Err(CommitError::Unavailable(why)) = answer else { panic!("{answer:?}") };
        // Spaces at the end are cut off with a warning, in strict mode too.
        assert!(why.contains("error 1406") || why.contains("warning 1265"), "{why}");
    }
    let kept: Vec<(i64, String)> = place.conn().await.query("SELECT CHAR_LENGTH(name), name FROM note").await.unwrap();
    assert_eq!(kept, [(255, "\u{10ffff}".repeat(255))]);
    place.remove().await;
}

/// Every statement that the tables have keeps to names and forms that this server takes.
#[tokio::test]
async fn the_programs_statements_run() {
    let Some(place) = Place::new().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    let realm = RealmId("main".to_owned());
    for _ in 0..2 {
        engine.commit(realms::ensure(&realm, "https://example.org", Time(1))).await.unwrap();
        let noted = secrets::note(&realm, "pepper", "proof");
        engine.commit(vec![noted, secrets::held(&realm, "pepper")]).await.unwrap();
    }
    let bounds = Bounds { now: Time(2), devices: Time(1), sessions: Time(1), families: Time(1), strangers: Time(1) };
    engine.commit(sweep::step(&realm, &bounds, 100)).await.unwrap();
    engine.commit(restore::trust_nobody(&realm, Time(1))).await.unwrap();
    engine.commit(Issued::ALL.map(|issued| issued.drop_first(&realm, 100)).into()).await.unwrap();
    place.remove().await;
}

/// A server is often shared, and each start asks what tables there are: to open those of everybody would take as long as there
/// are many, and the places of those that are in use.
#[tokio::test]
async fn no_table_of_another_database_is_opened() {
    // red without `table_schema = DATABASE()` for each table of dialect/moving.rs
    const OTHERS: u64 = 60;
    const OPENED: &str = "SHOW GLOBAL STATUS LIKE 'Opened_table_definitions'";
    let Some(mut place) = Place::alone().await else { return };
    let other = format!("{}_other", place.database);
    place.run(&format!("CREATE DATABASE {other}")).await;
    for number in 0..OTHERS {
        place.run(&format!("CREATE TABLE {other}.of_others_{number} (id BIGINT NOT NULL PRIMARY KEY)")).await;
    }
    let engine = place.ready().await;
    place.run("FLUSH TABLES").await;
    let before = place.query::<(String, u64)>(OPENED).await[0].1;
    assert_eq!(Marks::read(&*engine).await.unwrap(), Marks::default());
    assert!(everything::tables(&*engine).await.unwrap().iter().any(|table| table.name == "note"));
    let opened = place.query::<(String, u64)>(OPENED).await[0].1 - before;
    assert!(opened < OTHERS, "{opened} tables were opened");
    place.run(&format!("DROP DATABASE {other}")).await;
    place.remove().await;
}

/// Deleting up to a bound, and sealing, look at about as many rows as they change, however many there are beyond.
#[tokio::test]
async fn upkeep_costs_what_it_changes() {
    const FILL: &str = "INSERT INTO events (realm, id, at, kind, detail) WITH RECURSIVE n AS \
         (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
         SELECT 'sealed', LPAD(i, 26, '0'), 0, 'x', '{}' FROM n";
    const LOOKED_AT: &str = "SHOW GLOBAL STATUS LIKE 'Handler\\_read\\_%'";
    let Some(mut place) = Place::alone().await else { return };
    let engine: Shared = Arc::new(Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap());
    engine.migrate().await.unwrap();
    let limit = if place.is_mariadb().await { "max_recursive_iterations" } else { "cte_max_recursion_depth" };
    let mut conn = place.conn().await;
    conn.query_drop(format!("SET {limit} = 100000")).await.unwrap();
    conn.query_drop(FILL).await.unwrap();
    let looked_at = |counts: Vec<(String, u64)>| counts.iter().map(|(_, count)| count).sum::<u64>();
    let before = looked_at(place.query(LOOKED_AT).await);
    sealing::upkeep(&engine).await.unwrap();
    let after = looked_at(place.query(LOOKED_AT).await);
    let left: Option<i64> = conn.query_first("SELECT COUNT(*) FROM events WHERE block = 0").await.unwrap();
    assert_eq!(left, Some(19_644));
    assert!((100..4000).contains(&(after - before)), "{} rows were looked at", after - before);
    place.remove().await;
}

/// Whatever deletes rows in steps looks at about as many as it deletes, however many there are.
#[tokio::test]
async fn a_step_costs_what_it_deletes() {
    const COLUMNS: &str = "SELECT column_name, data_type FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = ";
    const LOOKED_AT: &str = "SHOW GLOBAL STATUS LIKE 'Handler\\_read\\_%'";
    /// No index leads to an assertion without its client: all that have expired are looked at.
    const BY_SEVERAL: [&str; 1] = ["assertions"];
    let Some(mut place) = Place::alone().await else { return };
    let engine = Mysql::open(place.settings(), store::migrations::MIGRATIONS).await.unwrap();
    engine.migrate().await.unwrap();
    let limit = if place.is_mariadb().await { "max_recursive_iterations" } else { "cte_max_recursion_depth" };
    let mut conn = place.conn().await;
    conn.query_drop(format!("SET {limit} = 100000")).await.unwrap();
    let steps = sweeping::in_steps(&"stepped".into());
    let tables: std::collections::BTreeSet<_> = steps.iter().map(|(table, _)| table).collect();
    for table in tables {
        let columns: Vec<(String, String)> = conn.query(format!("{COLUMNS}'{table}'")).await.unwrap();
        let value = |(name, kind): &(String, String)| match (name.as_str(), kind.as_str()) {
            ("realm", _) => "'stepped'",
            (_, "bigint") => "i",
            _ => "LPAD(i, 26, '0')",
        };
        let names = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let values = columns.iter().map(value).collect::<Vec<_>>().join(", ");
        let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000)";
        conn.query_drop(format!("INSERT INTO {table} ({names}) {numbers} SELECT {values} FROM n")).await.unwrap();
        // As the server does by itself some seconds after a table has grown.
        conn.query_drop(format!("ANALYZE TABLE {table}")).await.unwrap();
    }
    let looked_at = |counts: Vec<(String, u64)>| counts.iter().map(|(_, count)| count).sum::<u64>();
    let mut all_of = Vec::new();
    for (table, write) in steps {
        let before = looked_at(place.query(LOOKED_AT).await);
        let gone = engine.commit(vec![write]).await.unwrap();
        let rows = looked_at(place.query(LOOKED_AT).await) - before;
        assert_eq!(gone, [sweeping::STEP.unsigned_abs()], "{table}");
        if rows > 4_000 {
            all_of.push(table);
        }
    }
    assert!(all_of.iter().all(|table| BY_SEVERAL.contains(&table.as_str())), "{all_of:?} were looked at");
    place.remove().await;
}
