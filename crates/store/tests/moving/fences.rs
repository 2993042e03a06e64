//! From the fence on nothing is written, by anybody.

use super::place::{self, Replaced, run};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use store::conformance::everything::{self, fill, rows, writes};
use store::dialect::Dialect;
use store::dialect::moving::REFUSAL;
use store::engine::{Answer, CommitError, Engine, Health, Read, Row, Unavailable, Write};
use store::moving::marks::{self, Arrival, Leave, Marks};
use store::moving::{Step, fence};
use tokio::runtime::Handle;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_to_every_table_is_refused_until_the_fence_is_lifted() {
    for place in place::all().await {
        let (engine, kind) = (&*place.engine, place.kind);
        fill(engine).await.unwrap();
        let before = rows(engine).await.unwrap();
        fence::raise(engine, "move-1", "there").await.unwrap();
        // Begun again it is the same move.
        assert_eq!(fence::raise(engine, "move-2", "there").await.unwrap(), "move-1");
        assert!(fence::raise(engine, "move-2", "elsewhere").await.is_err(), "{kind}");
        let tried = writes(engine).await.unwrap();
        assert!(tried.len() > 3 * 20, "{kind}");
        for (what, came) in tried {
            assert_eq!(came, Err(CommitError::Unavailable(REFUSAL.to_owned())), "{kind}: {what}");
        }
        assert_eq!(rows(engine).await.unwrap(), before, "{kind}");
        assert!(Marks::read(engine).await.unwrap().obstacle().unwrap().contains("being moved to there"), "{kind}");
        assert!(engine.health().await.unwrap().writable.is_ok(), "{kind}");
        fence::lift(engine, "move-1").await.unwrap();
        fence::lift(engine, "move-1").await.unwrap();
        assert_eq!(Marks::read(engine).await.unwrap(), Marks::default(), "{kind}");
        for (what, came) in writes(engine).await.unwrap() {
            // What would undo it is reached: the write itself went through.
            assert!(matches!(came, Err(CommitError::Conflict { at: 1, .. })), "{kind}: {what}: {came:?}");
        }
    }
}

/// A database that lets so many statements change its schema at a time, and no more.
struct Refuses {
    engine: Arc<dyn Engine>,
    after: usize,
}

impl Engine for Refuses {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        self.engine.fetch(reads)
    }
    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.engine.commit(writes)
    }
    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        self.engine.migrate()
    }
    fn health(&self) -> Answer<'_, Health, Unavailable> {
        self.engine.health()
    }
    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable> {
        self.engine.backup(file)
    }
    fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }
    fn alter(&self, mut statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        statements.truncate(self.after);
        Box::pin(async move {
            self.engine.alter(statements).await?;
            Err(Unavailable("no more triggers".to_owned()))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_fails_leaves_no_mark_or_says_that_there_is_one() {
    // red without `given_up` in moving/fence.rs.
    for place in place::all().await {
        let (engine, kind) = (&*place.engine, place.kind);
        let refuses = |after| Refuses { engine: Arc::clone(&place.engine), after };
        let why = fence::raise(&refuses(0), "move-1", "there").await.unwrap_err().why;
        assert_eq!(why, "no more triggers", "{kind}");
        assert_eq!(Marks::read(engine).await.unwrap(), Marks::default(), "{kind}");
        // Some tables are fenced already.
        let why = fence::raise(&refuses(2), "move-1", "there").await.unwrap_err().why;
        assert!(why.starts_with("no more triggers; ") && why.contains("portiere move --abort"), "{kind}: {why}");
        assert_eq!(Marks::read(engine).await.unwrap().out.unwrap().id, "move-1", "{kind}");
        let why = fence::raise(&refuses(0), "move-2", "there").await.unwrap_err().why;
        assert!(why.contains("portiere move --abort"), "{kind}: {why}");
        // Run again, it goes on.
        assert_eq!(fence::raise(engine, "move-2", "there").await.unwrap(), "move-1", "{kind}");
        fence::lift(engine, "move-1").await.unwrap();
    }
}

#[tokio::test]
async fn only_the_server_that_has_the_fences_is_marked_as_fenced() {
    // Red without the generation in moving/fence.rs, fence_all: the next server would be copied while it is written to.
    let place = place::file().await;
    let replaced = Replaced::new(Arc::clone(&place.engine), true);
    let why = fence::raise(&replaced, "move-1", "there").await.unwrap_err().why;
    assert!(why.contains("another database server") && why.contains("run it again"), "{why}");
    assert_eq!(Marks::read(&*place.engine).await.unwrap().out.unwrap().state, Leave::Fencing);
    // Run again, it goes on.
    assert_eq!(fence::raise(&*place.engine, "move-2", "there").await.unwrap(), "move-1");
    assert_eq!(Marks::read(&*place.engine).await.unwrap().out.unwrap().state, Leave::Fenced);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_without_all_of_its_triggers_is_no_fence() {
    // Red without `unfenced` in moving/mod.rs, still_fenced, or in moving/fence.rs, raise.
    for from in place::all().await {
        let (source, kind) = (&*from.engine, from.kind);
        fill(source).await.unwrap();
        let to = place::file().await;
        let removal = match source.dialect() {
            Dialect::Postgres => "DROP TRIGGER moving ON users",
            Dialect::Sqlite | Dialect::Mysql => "DROP TRIGGER moving_users_update",
        };
        let opened = |step| {
            if matches!(step, Step::Comparing) {
                let removed = source.alter(vec![removal.to_owned()]);
                tokio::task::block_in_place(|| Handle::current().block_on(removed)).unwrap();
            }
        };
        let why = place::run_with(source, &*to.engine, &opened).await.unwrap_err().why;
        assert!(why.contains("no longer fenced"), "{kind}: {why}");
        assert!(Marks::read(&*to.engine).await.unwrap().obstacle().is_some(), "{kind}");
        let why = fence::raise(source, "move-1", "there").await.unwrap_err().why;
        assert!(why.contains("the table users is not fenced") && why.contains("--abort"), "{kind}: {why}");
        fence::lift(source, "move-1").await.unwrap();
        assert_eq!(Marks::read(source).await.unwrap(), Marks::default(), "{kind}");
    }
}

/// Many write while the fence is raised: what was acknowledged is there, and nothing comes after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_the_fence_is_there_and_nothing_comes_after() {
    for place in place::all().await {
        let table =
            everything::tables(&*place.engine).await.unwrap().into_iter().find(|table| table.name == "strangers");
        let table = Arc::new(table.unwrap());
        let (next, stood, stop) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (engine, table) = (Arc::clone(&place.engine), Arc::clone(&table));
            let (next, stood, stop) = (Arc::clone(&next), Arc::clone(&stood), Arc::clone(&stop));
            writers.spawn(async move {
                while !stop.load(SeqCst) {
                    let number = usize::try_from(next.fetch_add(1, SeqCst)).unwrap();
                    if engine.commit(vec![everything::insert(&table, number, false)]).await.is_ok() {
                        stood.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        while stood.load(SeqCst) < 50 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fence::raise(&*place.engine, "move-1", "there").await.unwrap();
        let count = async || rows(&*place.engine).await.unwrap()["strangers"].len() as u64;
        let fenced = count().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.store(true, SeqCst);
        while writers.join_next().await.is_some() {}
        assert_eq!((count().await, stood.load(SeqCst)), (fenced, fenced), "{}", place.kind);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_not_ready_where_the_source_was_let_go_of_meanwhile() {
    // red without `still_fenced`.
    for to in place::all().await {
        let from = place::file().await;
        fill(&*from.engine).await.unwrap();
        let source = &*from.engine;
        let given_up = |step| {
            if matches!(step, Step::Comparing) {
                let lifted = tokio::task::block_in_place(|| Handle::current().block_on(fence::lift(source, "move-1")));
                lifted.unwrap();
            }
        };
        let why = place::run_with(source, &*to.engine, &given_up).await.unwrap_err().to_string();
        assert!(why.contains("no longer fenced"), "{}: {why}", to.kind);
        assert!(Marks::read(&*to.engine).await.unwrap().obstacle().is_some(), "{}", to.kind);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_serves_from_a_target_first_and_who_gives_it_up_first() {
    for to in place::all().await {
        let from = place::file().await;
        fill(&*from.engine).await.unwrap();
        run(&*from.engine, &*to.engine).await.unwrap();
        let ready = Marks::read(&*to.engine).await.unwrap();
        assert_eq!(ready.obstacle(), None);
        let into = ready.into.unwrap();
        // Red without `jobs` in moving/marks.rs, serve: the jobs would wait for nodes of the source.
        assert_eq!(rows(&*to.engine).await.unwrap()["leases"].len(), everything::EACH);
        marks::serve(&*to.engine, &into).await.unwrap();
        assert!(rows(&*to.engine).await.unwrap()["leases"].is_empty(), "{}", to.kind);
        assert!(marks::abandon(&*to.engine, &into).await.is_err());
        let serving = Marks::read(&*to.engine).await.unwrap();
        assert_eq!((serving.obstacle(), serving.into.unwrap().state), (None, Arrival::Serving));
    }
    let (from, to) = (place::file().await, place::file().await);
    run(&*from.engine, &*to.engine).await.unwrap();
    let into = Marks::read(&*to.engine).await.unwrap().into.unwrap();
    marks::abandon(&*to.engine, &into).await.unwrap();
    assert!(marks::serve(&*to.engine, &into).await.is_err());
    assert!(Marks::read(&*to.engine).await.unwrap().obstacle().unwrap().contains("given up"));
    assert!(run(&*from.engine, &*to.engine).await.unwrap_err().why.contains("given up"));
}
