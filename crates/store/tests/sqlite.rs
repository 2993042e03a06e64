//! The SQLite engine against the conformance suite, and what it promises beyond that: one process, one private file, a
//! log that does not grow for ever, copies that hold everything.
#![allow(clippy::unwrap_used, reason = "a test stops where something is wrong")]

mod until;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rules::Time;
use rules::id::RealmId;
use rusqlite::Connection;
use store::conformance::{self, MIGRATIONS, five_reads, neighbors, three_reads, three_rows};
use store::engine::{CommitError, Durability, Engine};
use store::schema::Migration;
use store::sqlite::{Check, OpenError, Options, Sqlite, Synchronous};
use store::tables::restore::Soundness;
use store::tables::{ask, realms};
use tempfile::TempDir;
use until::until;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn options(folder: &TempDir) -> Options {
    Options::at(folder.path().join("facts.db"))
}

fn open(folder: &TempDir) -> Sqlite {
    Sqlite::open(options(folder), MIGRATIONS).unwrap()
}

async fn ready(folder: &TempDir) -> Sqlite {
    let engine = open(folder);
    engine.migrate().await.unwrap();
    engine
}

/// How many rows of `three_rows(number)` are there.
async fn found(engine: &Sqlite, number: i64) -> usize {
    engine.fetch(&three_reads(number)).await.unwrap().concat().len()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    path.as_ref().metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_conforms() {
    let folder = folder();
    let failures = conformance::run(Arc::new(open(&folder))).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_seals_every_line_once() {
    let folder = folder();
    let engine: Arc<dyn Engine> = Arc::new(Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap());
    conformance::sealing([Arc::clone(&engine), engine]).await.unwrap();
}

#[tokio::test]
async fn sqlite_takes_out_what_has_expired() {
    let folder = folder();
    let engine = Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap();
    conformance::sweeping(Arc::new(engine)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_gives_nothing_for_a_secret_that_was_replaced() {
    let folder = folder();
    let engine = Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap();
    conformance::raising(Arc::new(engine)).await.unwrap();
}

#[tokio::test]
async fn sqlite_takes_what_was_lost_again() {
    let folder = folder();
    let engine = Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap();
    conformance::replays(Arc::new(engine)).await.unwrap();
}

#[tokio::test]
async fn sqlite_conforms_on_one_thread_with_groups_of_one() {
    let folder = folder();
    let options = Options { group_limit: 1, readers: 1, ..options(&folder) };
    let failures = conformance::run(Arc::new(Sqlite::open(options, MIGRATIONS).unwrap())).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn a_second_open_is_refused_until_the_first_lets_go() {
    let folder = folder();
    let first = ready(&folder).await;
    assert!(matches!(Sqlite::open(options(&folder), MIGRATIONS), Err(OpenError::InUse(_))));
    first.commit(three_rows(1)).await.unwrap();
    first.close();
    first.close();
    let refused = first.commit(three_rows(2)).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    assert!(first.fetch(&three_reads(1)).await.is_err());
    assert!(first.health().await.unwrap().writable.is_err());
    let second = open(&folder);
    assert_eq!((found(&second, 1).await, found(&second, 2).await), (3, 0));
    assert_eq!(second.check(), Check::Spared);
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let folder = folder();
    let Err(error) = Sqlite::open(Options::at(folder.path().join("missing/facts.db")), MIGRATIONS) else { panic!() };
    assert!(matches!(error, OpenError::Io(..)));
    assert!(error.to_string().contains("missing/facts.db"), "{error}");
}

#[tokio::test]
async fn every_file_is_private() {
    let folder = folder();
    std::fs::write(folder.path().join("facts.db"), "").unwrap();
    std::fs::set_permissions(folder.path().join("facts.db"), PermissionsExt::from_mode(0o644)).unwrap();
    let engine = ready(&folder).await;
    engine.commit(three_rows(1)).await.unwrap();
    for ending in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(folder.path().join(format!("facts.db{ending}"))), 0o600, "{ending}");
    }
}

#[tokio::test]
async fn the_file_gives_free_pages_back_and_logs_ahead() {
    let folder = folder();
    ready(&folder).await.close();
    let conn = Connection::open(folder.path().join("facts.db")).unwrap();
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    assert_eq!(pragma("journal_mode").unwrap(), "wal");
    let vacuum: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
    assert_eq!(vacuum, 2, "incremental");
}

#[tokio::test]
async fn an_acknowledgement_is_worth_what_was_asked_for() {
    let folder = folder();
    let full = ready(&folder).await;
    assert_eq!(full.health().await.unwrap().durability, Durability::DurableNode);
    full.close();
    let normal = Options { synchronous: Synchronous::Normal, ..options(&folder) };
    let normal = Sqlite::open(normal, MIGRATIONS).unwrap();
    assert_eq!(normal.health().await.unwrap().durability, Durability::Bounded);
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let folder = folder();
    ready(&folder).await.close();
    let older = Sqlite::open(options(&folder), &MIGRATIONS[..1]).unwrap();
    let why = older.migrate().await.unwrap_err().0;
    assert!(
        why.contains("newer program (schema 2, for programs of schema 2 and later; this program knows 1)"),
        "{why}"
    );
}

/// One process has a file at a time: the older program starts on what the newer one left.
#[tokio::test]
async fn a_program_starts_on_the_file_of_the_next_release_and_not_on_that_of_the_one_after() {
    let folder = folder();
    let open = |migrations| Sqlite::open(options(&folder), migrations).unwrap();
    for migrations in [store::migrations::MIGRATIONS, neighbors::next(), store::migrations::MIGRATIONS] {
        let engine = open(migrations);
        engine.migrate().await.unwrap();
        let ensured = realms::ensure(&RealmId("main".to_owned()), "http://a", Time(1));
        engine.commit(ensured).await.unwrap();
        engine.close();
    }
    let after_next = open(neighbors::after_next());
    after_next.migrate().await.unwrap();
    after_next.close();
    let next = open(neighbors::next());
    next.migrate().await.unwrap();
    next.close();
    let why = open(store::migrations::MIGRATIONS).migrate().await.unwrap_err().0;
    assert!(why.contains("newer program"), "{why}");
}

#[tokio::test]
async fn what_the_program_of_before_wrote_is_read_and_goes_on() {
    // red without `life` in any one statement of tables/{clients,families,codes,devices}.rs; where `save` of the program of
    // before is not told from ours (clients.rs, put_back, without COALESCE).
    let folder = folder();
    let held: Mutex<Option<Arc<Sqlite>>> = Mutex::new(None);
    let (folder, shared) = (&folder, &held);
    let open = |migrations| async move {
        let engine = Arc::new(Sqlite::open(options(folder), migrations).unwrap());
        *shared.lock().unwrap() = Some(Arc::clone(&engine));
        engine as Arc<dyn Engine>
    };
    // One process has a file at a time.
    let close = || held.lock().unwrap().take().unwrap().close();
    conformance::forerunner::forerunner(open, close).await.unwrap();
}

#[tokio::test]
async fn a_schema_step_that_fails_is_taken_up_again() {
    const BROKEN: &[Migration] = &[
        MIGRATIONS[0],
        Migration {
            version: 2,
            name: "labels on things",
            oldest: 2,
            steps: &[MIGRATIONS[1].steps[0], "CREATE NONSENSE"],
        },
    ];
    let folder = folder();
    let broken = Sqlite::open(options(&folder), BROKEN).unwrap();
    let why = broken.migrate().await.unwrap_err().0;
    assert!(why.contains("schema version 2, step 1"), "{why}");
    broken.commit(three_rows(1)).await.unwrap();
    broken.close();
    let mended = ready(&folder).await;
    assert_eq!(found(&mended, 1).await, 3);
}

#[tokio::test]
async fn a_backup_holds_everything_while_writing_goes_on() {
    let folder = folder();
    let engine = Arc::new(ready(&folder).await);
    for number in 0..200 {
        engine.commit(three_rows(number)).await.unwrap();
    }
    let (copies, other) = (tempfile::tempdir().unwrap(), Arc::clone(&engine));
    let file = copies.path().join("copy.db");
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move {
        for number in 200..300 {
            other.commit(three_rows(number)).await.unwrap();
        }
    });
    // What an earlier try left, which was cut short: it never had the name.
    std::fs::write(copies.path().join("copy.db.part"), "half of it").unwrap();
    engine.backup(&file).await.unwrap();
    writing.join_all().await;
    assert_eq!(mode(&file), 0o600);
    let refused = engine.backup(&file).await.unwrap_err().0;
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 1, "one file, complete in itself");
    let copy = Sqlite::open(Options::at(&file), MIGRATIONS).unwrap();
    copy.migrate().await.unwrap();
    for number in 0..200 {
        assert_eq!(found(&copy, number).await, 3, "{number}");
    }
    for number in 200..300 {
        assert!([0, 3].contains(&found(&copy, number).await), "{number} is whole or absent");
    }
}

#[tokio::test]
async fn a_backup_has_its_name_once_it_is_whole() {
    // red where sqlite/backup.rs, run, copies into `to`; and mostly without TURN, where two ask for one name.
    let folder = folder();
    let engine = ready(&folder).await;
    for number in 0..200 {
        engine.commit(three_rows(number)).await.unwrap();
    }
    let copies = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let file = copies.path().join(format!("copy-{round}.db"));
        let sought = file.clone();
        let first_seen = std::thread::spawn(move || {
            loop {
                match std::fs::read(&sought) {
                    Ok(bytes) => return bytes,
                    Err(_) => std::thread::yield_now(),
                }
            }
        });
        let (one, other) = tokio::join!(engine.backup(&file), engine.backup(&file));
        assert_eq!([one.is_ok(), other.is_ok()].iter().filter(|done| **done).count(), 1, "{one:?}, {other:?}");
        assert!(first_seen.join().unwrap() == std::fs::read(&file).unwrap(), "it was seen before it was whole");
        assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), round + 1, "and nothing else is left");
    }
}

#[tokio::test]
async fn a_full_queue_turns_batches_away() {
    let folder = folder();
    let options = Options { queue_limit: 2, group_limit: 1, ..options(&folder) };
    let engine = Arc::new(Sqlite::open(options, MIGRATIONS).unwrap());
    engine.migrate().await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..200 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(three_rows(number)).await });
    }
    let answers = running.join_all().await;
    let stood = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    let away = answers.iter().filter(|answer| matches!(answer, Err(CommitError::Unavailable(_)))).count() as u64;
    assert!(stood >= 2 && away >= 1 && stood + away == 200, "{stood} stood, {away} were turned away");
    assert_eq!((engine.stats().batches, engine.stats().turned_away), (stood, away));
    engine.commit(three_rows(200)).await.unwrap();
}

#[tokio::test]
async fn batches_that_wait_together_share_a_commit() {
    let folder = folder();
    let engine = Arc::new(ready(&folder).await);
    let before = engine.stats().commits;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..300 {
        let engine = Arc::clone(&engine);
        running.spawn(async move { engine.commit(three_rows(number)).await.unwrap() });
    }
    running.join_all().await;
    let stats = engine.stats();
    assert!(stats.commits - before < 150, "{stats:?}");
    assert!(stats.largest_group > 1 && stats.commit_ms > 0.0, "{stats:?}");
}

#[tokio::test]
async fn the_log_is_copied_as_it_grows_and_emptied_at_rest() {
    let folder = folder();
    let engine = ready(&folder).await;
    let log = folder.path().join("facts.db-wal");
    let mut longest = 0;
    for number in 0..120 {
        engine.commit((0..400).flat_map(|row| three_rows(number * 1000 + row)).collect()).await.unwrap();
        longest = longest.max(log.metadata().unwrap().len());
    }
    assert!(engine.stats().checkpoints > 0, "{:?}", engine.stats());
    assert!(longest < 24 * 1024 * 1024, "{longest} bytes of log");
    until("an empty log", async || engine.stats().wal_pages == 0).await;
    assert_eq!(log.metadata().unwrap().len(), 0);
    assert_eq!(found(&engine, 119_399).await, 3);
    engine.commit(three_rows(1_000_000)).await.unwrap();
}

#[tokio::test]
async fn a_log_that_readers_keep_long_begins_anew() {
    let folder = folder();
    let engine = Arc::new(ready(&folder).await);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    // Overlapping transactions, so that at every moment somebody reads from the log.
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    runtime.block_on(engine.fetch(&five_reads(100))).unwrap();
                }
            })
        })
        .collect();
    for number in 0..120 {
        engine.commit((0..800).flat_map(|row| three_rows(number * 1000 + row)).collect()).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    let log = folder.path().join("facts.db-wal").metadata().unwrap().len();
    assert!(log < 80 * 1024 * 1024, "{log} bytes of log");
}

#[tokio::test]
async fn free_pages_are_given_back_at_rest() {
    let folder = folder();
    let engine = ready(&folder).await;
    engine.commit((0..8000).flat_map(three_rows).collect()).await.unwrap();
    engine.close();
    let file = folder.path().join("facts.db");
    let before = file.metadata().unwrap().len();
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("DELETE FROM note WHERE number > 100").unwrap();
    drop(conn);
    let engine = open(&folder);
    engine.commit(three_rows(100_000)).await.unwrap();
    until("a smaller file", async || file.metadata().unwrap().len() < before / 2).await;
    assert_eq!(found(&engine, 100).await, 3);
}

#[tokio::test]
async fn a_long_fetch_leaves_the_callers_thread() {
    let folder = folder();
    let engine = Arc::new(open(&folder));
    assert!(conformance::run(Arc::clone(&engine) as conformance::Shared).await.is_empty());
    let stats = engine.stats();
    assert_eq!(stats.long_fetches, 1, "only the fetch that is long by intent");
}

#[tokio::test]
async fn a_check_of_a_table_leaves_the_callers_thread_however_small_the_table_is() {
    // Red without `soundness` in sqlite/mod.rs, fetch.
    let folder = folder();
    let engine = Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap();
    engine.migrate().await.unwrap();
    let tables = store::tables::audit::Unsound::tables(engine.dialect());
    let many = tables.len() as u64;
    for table in tables {
        ask(&engine, &"main".into(), table).await.unwrap();
    }
    assert_eq!((many, engine.stats().long_fetches), (3, 3));
}

#[tokio::test]
async fn a_damaged_file_is_found_after_an_unclean_stop_and_not_written_to() {
    let folder = folder();
    let engine = ready(&folder).await;
    engine.commit((0..2000).flat_map(three_rows).collect()).await.unwrap();
    engine.close();
    let file = folder.path().join("facts.db");
    // What an unclean stop leaves behind.
    std::fs::write(folder.path().join("facts.db-wal"), "").unwrap();
    let engine = open(&folder);
    until("a check", async || engine.check() != Check::Running).await;
    assert_eq!(engine.check(), Check::Passed);
    assert_eq!(engine.health().await.unwrap().writable, Ok(()));
    engine.close();

    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 64].fill(0xAA);
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(folder.path().join("facts.db-wal"), "").unwrap();
    let engine = open(&folder);
    until("a check", async || engine.check() != Check::Running).await;
    assert!(matches!(engine.check(), Check::Damaged(_)), "{:?}", engine.check());
    let writable = engine.health().await.unwrap().writable;
    assert!(writable.is_err_and(|why| why.contains("damaged")));
    assert!(matches!(engine.commit(three_rows(9000)).await, Err(CommitError::Unavailable(_))));
}

#[tokio::test]
async fn a_file_that_holds_more_than_tables_is_not_sound() {
    // Red without `type NOT IN` and without `CREATE VIRTUAL` in tables/restore.rs.
    for (kind, more) in [
        ("trigger", "CREATE TRIGGER more AFTER INSERT ON sessions BEGIN UPDATE users SET role = 'owner'; END"),
        ("view", "CREATE VIEW more AS SELECT 1"),
        ("table", "CREATE VIRTUAL TABLE more USING dbstat"),
        // Of a kind that is not in our SQLite, as another program's writes it.
        (
            "table",
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('table', 'more', 'more', 0, \
             'CREATE VIRTUAL TABLE more USING fts5(text)')",
        ),
    ] {
        let folder = folder();
        let engine = Sqlite::open(options(&folder), store::migrations::MIGRATIONS).unwrap();
        engine.migrate().await.unwrap();
        let realm = "main".into();
        let soundness = Soundness::default;
        assert_eq!(ask(&engine, &realm, soundness()).await.unwrap(), ["ok"]);
        rusqlite::Connection::open(folder.path().join("facts.db")).unwrap().execute_batch(more).unwrap();
        let found = ask(&engine, &realm, soundness()).await.unwrap();
        assert_eq!(found, [format!("it has a {kind} of its own"), "ok".to_owned()]);
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_that_goes_to_files_nobody_will_find() {
    // Red without `place.stands` in sqlite/writer.rs: the system takes all of these writes.
    for (ending, replaced) in [("", false), ("", true), ("-wal", false), ("-wal", true)] {
        let folder = folder();
        let ended = Arc::new(Mutex::new(None));
        let heard = Arc::clone(&ended);
        let on_fatal = Arc::new(move |why: &str| *heard.lock().unwrap() = Some(why.to_owned()));
        let engine = Sqlite::open(Options { on_fatal, ..options(&folder) }, MIGRATIONS).unwrap();
        engine.migrate().await.unwrap();
        engine.commit(three_rows(1)).await.unwrap();
        let file = folder.path().join(format!("facts.db{ending}"));
        match replaced {
            true => {
                std::fs::copy(&file, folder.path().join("other")).unwrap();
                std::fs::rename(folder.path().join("other"), &file).unwrap();
            }
            false => std::fs::remove_file(&file).unwrap(),
        }
        let lost = engine.commit(three_rows(2)).await;
        assert!(matches!(lost, Err(CommitError::Unknown(_))), "{ending} {replaced}: {lost:?}");
        engine.close();
        let why = ended.lock().unwrap().clone().unwrap();
        assert!(why.contains("removed or replaced"), "{why}");
    }
}
