//! A target belongs to a move before the source of the move is closed to writes.

use super::place::{self, run};
use store::conformance::everything::{fill, rows};
use store::dialect::Dialect;
use store::engine::Engine;
use store::moving::claim::{self, Mover};
use store::moving::marks::{self, Arrival, Marks};
use store::moving::{Move, before, fence};

async fn state(of: &dyn Engine) -> Option<(String, Arrival)> {
    Marks::read(of).await.unwrap().into.map(|into| (into.id, into.state))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_claimed_is_for_one_move_alone() {
    // Red without `arrive` in moving/claim.rs, claim: the second move would close its source, and then be refused.
    for to in place::all().await {
        let (from, to, kind) = (place::file().await, &*to.engine, to.kind);
        fill(&*from.engine).await.unwrap();
        claim::claim(&*from.engine, to, "move-1", "here").await.unwrap();
        assert!(Marks::read(to).await.unwrap().obstacle().is_some(), "no server starts there: {kind}");
        claim::claim(&*from.engine, to, "move-1", "here").await.unwrap();
        let why = claim::claim(&*from.engine, to, "move-2", "there").await.unwrap_err().why;
        assert!(why.contains("holds the copy of another move, from here"), "{kind}: {why}");
        let other = Mover { id: None, from: "there" };
        assert!(claim::examine(&*from.engine, to, other).await.is_err(), "{kind}");
        // A move from this source was cut short before it began: this one takes its place.
        let again = Mover { id: None, from: "here" };
        assert_eq!(claim::examine(&*from.engine, to, again).await.unwrap(), None, "{kind}");
        claim::claim(&*from.engine, to, "move-3", "here").await.unwrap();
        assert_eq!(state(to).await, Some(("move-3".into(), Arrival::Arriving)), "{kind}");
        assert!(!claim::withdraw(to, "move-1").await.unwrap() && claim::withdraw(to, "move-3").await.unwrap());
        assert_eq!(Marks::read(to).await.unwrap(), Marks::default(), "{kind}");

        claim::claim(&*from.engine, to, "move-1", "here").await.unwrap();
        run(&*from.engine, to).await.unwrap();
        assert_eq!(rows(&*from.engine).await.unwrap(), rows(to).await.unwrap(), "{kind}");
    }
}

#[tokio::test]
async fn a_move_that_has_begun_keeps_its_target() {
    // Red without BEGUN in moving/marks.rs: another move from a source of this name would take the target over.
    let (from, to) = (place::file().await, place::file().await);
    fill(&*from.engine).await.unwrap();
    let id = fence::raise(&*from.engine, "move-1", "there").await.unwrap();
    let nothing = Move {
        from: &*from.engine,
        to: &*to.engine,
        id: &id,
        from_name: "here",
        page: 3,
        // Cut off after the claim and before the first page.
        tell: &|_| panic!("cut off"),
    };
    let cut = std::panic::AssertUnwindSafe(nothing.run());
    assert!(futures_util::FutureExt::catch_unwind(cut).await.is_err());
    assert!(claim::unbegun(&*to.engine, "here").await.unwrap().is_none());
    assert!(!claim::withdraw(&*to.engine, "move-1").await.unwrap());
    assert!(claim::claim(&*from.engine, &*to.engine, "move-2", "here").await.is_err());
    run(&*from.engine, &*to.engine).await.unwrap();
    // Red without Arrival::Serving in `taken`, moving/claim.rs: it was told to empty what a server runs on.
    let into = Marks::read(&*to.engine).await.unwrap().into.unwrap();
    marks::serve(&*to.engine, &into).await.unwrap();
    let why = claim::claim(&*from.engine, &*to.engine, "move-2", "here").await.unwrap_err().why;
    assert!(why.contains("a server has run on the target") && !why.contains("empty"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_to_a_file_while_a_fence_waits_for_a_node() {
    // Red without `nobody_is_awaited` in moving/before.rs, or in moving/mod.rs, run.
    for from in place::all().await {
        let (source, kind) = (&*from.engine, from.kind);
        let may = |to| before::nobody_is_awaited(source, to);
        assert!(may(Dialect::Sqlite).await.is_ok(), "{kind}");
        let waits = "INSERT INTO fence_nodes (realm, number, node, state, at) VALUES ('main', 1, 'n2', 'waiting', 5)";
        source.alter(vec![waits.to_owned()]).await.unwrap();
        let why = may(Dialect::Sqlite).await.unwrap_err().why;
        assert!(why.contains("(n2)") && why.contains("portiere fence accept-loss"), "{kind}: {why}");
        assert!(may(Dialect::Postgres).await.is_ok(), "its nodes go on there: {kind}");
        let to = place::file().await;
        assert!(run(source, &*to.engine).await.unwrap_err().why.contains("(n2)"), "{kind}");
    }
}
