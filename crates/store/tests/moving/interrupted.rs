//! A move that is cut off anywhere goes on where it was.

use super::place::{self, Replaced, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use store::conformance::everything::{fill, rows};
use store::engine::{Answer, Around, CommitError, Engine, Value, Write};
use store::migrations::MIGRATIONS;
use store::moving::marks::{Arrival, Marks};
use store::moving::{Named, Step, fence, fits};
use store::sqlite::{Options, Sqlite};

/// An engine whose commits end after so many.
struct Cut {
    engine: Arc<dyn Engine>,
    left: AtomicI64,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    /// The next one does not reach it.
    Before,
    /// The next one stands, and nobody hears of it.
    After,
    /// The next one stands with another value in it.
    Altered,
}

impl Around for Cut {
    fn inside(&self) -> &dyn Engine {
        &*self.engine
    }
    fn commit_around(&self, mut writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let left = self.left.fetch_sub(1, SeqCst);
            let lost = CommitError::Unknown("the connection was lost".to_owned());
            match self.end {
                End::Before if left <= 0 => Err(CommitError::Unavailable("no connection".to_owned())),
                End::After if left < 0 => Err(CommitError::Unavailable("no connection".to_owned())),
                End::After if left == 0 => self.engine.commit(writes).await.and(Err(lost)),
                End::Altered if left == 0 => {
                    let texts = writes.iter_mut().skip(1).flat_map(|write| &mut write.args);
                    let last =
                        texts.filter_map(|value| if let Value::Text(text) = value { Some(text) } else { None }).last();
                    last.unwrap().push('.');
                    self.engine.commit(writes).await
                }
                _ => self.engine.commit(writes).await,
            }
        })
    }
}

/// Cuts one move off again and again, a few commits further each time, until it comes to its end.
async fn cut_again_and_again(to: place::Place, end: End) {
    let from = place::file().await;
    fill(&*from.engine).await.unwrap();
    let mut cuts = 0;
    for step in (1..).map(|n| n % 4) {
        let cut = Cut { engine: Arc::clone(&to.engine), left: AtomicI64::new(step), end };
        match run(&*from.engine, &cut).await {
            Ok(_) => break,
            Err(_) => cuts += 1,
        }
        let into = Marks::read(&*to.engine).await.unwrap();
        assert!(into.obstacle().is_some() || into.into.is_none_or(|into| into.state == Arrival::Ready));
        assert!(cuts < 1000);
    }
    assert!(cuts > 20, "{cuts}");
    assert_eq!(rows(&*from.engine).await.unwrap(), rows(&*to.engine).await.unwrap(), "{} cuts, {}", cuts, to.kind);
    assert_eq!(Marks::read(&*to.engine).await.unwrap().into.unwrap().state, Arrival::Ready);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_goes_on_where_it_was_cut_off() {
    for end in [End::Before, End::After] {
        for to in place::all().await {
            cut_again_and_again(to, end).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_arrived_otherwise_is_found() {
    let from = place::file().await;
    fill(&*from.engine).await.unwrap();
    // The first commit marks the target, each other is a page.
    for page in [1, 7, 30] {
        let to = place::file().await;
        let cut = Cut { engine: Arc::clone(&to.engine), left: AtomicI64::new(page), end: End::Altered };
        let why = run(&*from.engine, &cut).await.unwrap_err();
        assert!(why.why.contains("differs between source and target from row"), "{why}");
        assert!(Marks::read(&*to.engine).await.unwrap().obstacle().is_some());
    }
}

/// Two at a time: one of them stops, and nothing is there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_move_the_same_do_not_meet() {
    let (from, to) = (place::file().await, place::file().await);
    fill(&*from.engine).await.unwrap();
    let (one, other) = tokio::join!(run(&*from.engine, &*to.engine), run(&*from.engine, &*to.engine));
    assert!(one.is_ok() || other.is_ok() || run(&*from.engine, &*to.engine).await.is_ok(), "{one:?} {other:?}");
    assert_eq!(rows(&*from.engine).await.unwrap(), rows(&*to.engine).await.unwrap());
}

#[tokio::test]
async fn a_target_that_fails_over_while_it_is_compared_is_not_ready() {
    // Red without the generation in moving/marks.rs, ready: what had been compared before may be gone there.
    let (from, to) = (place::file().await, place::file().await);
    fill(&*from.engine).await.unwrap();
    let to = Replaced::new(to.engine, false);
    let fails_over = |step| {
        if matches!(step, Step::Comparing) {
            to.replace();
        }
    };
    let why = place::run_with(&*from.engine, &to, &fails_over).await.unwrap_err();
    assert!(why.why.contains("took over during the comparison"), "{why}");
    assert_eq!(Marks::read(&to).await.unwrap().into.unwrap().state, Arrival::Arriving);
    assert!(run(&*from.engine, &to).await.unwrap().is_some(), "the next time everything is compared anew");
    assert_eq!(Marks::read(&to).await.unwrap().into.unwrap().state, Arrival::Ready);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_that_fails_is_named() {
    // red without Named.
    let (from, to) = (place::file().await, place::file().await);
    fill(&*from.engine).await.unwrap();
    // The mark is there, and a page is not.
    let cut = Cut { engine: Arc::clone(&to.engine), left: AtomicI64::new(1), end: End::Before };
    let why = run(&*from.engine, &Named::new(Arc::new(cut), "sqlite:/new.db")).await.unwrap_err().why;
    assert_eq!(why, "sqlite:/new.db: no connection");
}

#[tokio::test]
async fn a_move_goes_on_with_the_version_that_began_it() {
    // red without `fits`: the target was brought to this program's schema first, and no version could go on.
    let folder = tempfile::tempdir().unwrap();
    let earlier = Sqlite::open(Options::at(folder.path().join("old.db")), &MIGRATIONS[..MIGRATIONS.len() - 1]).unwrap();
    assert!(fits(&earlier, false).await.unwrap_err().why.contains("not a database of Portiere"));
    earlier.migrate().await.unwrap();
    assert!(fits(&earlier, false).await.unwrap_err().why.contains("run portiere migrate"));
    fence::raise(&earlier, "move-1", "there").await.unwrap();
    let why = fits(&earlier, true).await.unwrap_err().why;
    assert!(why.contains("begun by another version") && why.contains("--abort"), "{why}");
    fits(&*place::file().await.engine, true).await.unwrap();
}
