//! Everything arrives as it was.

use super::place::{self, Place, run};
use std::collections::BTreeSet;
use store::conformance::everything::{self, EACH, fill, rows};
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::marks::{Arrival, Leave, Marks, moved_from};
use store::moving::{Sum, fence, vacant};

/// The tables that the migrations make and leave, but for each database's own two.
fn made() -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for step in MIGRATIONS.iter().flat_map(|migration| migration.steps) {
        let mut words =
            step.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
        match (words.next(), words.next(), words.next()) {
            (Some("CREATE"), Some("TABLE"), Some(table)) => drop(tables.insert(table.to_owned())),
            (Some("DROP"), Some("TABLE"), Some(table)) => drop(tables.remove(table)),
            _ => {}
        }
    }
    tables.remove("moves");
    tables
}

async fn moved(from: &Place, to: &Place) -> Vec<Sum> {
    let sums = run(&*from.engine, &*to.engine).await.unwrap().unwrap();
    fence::left(&*from.engine, "move-1").await.unwrap();
    let what = format!("{} to {}", from.kind, to.kind);
    assert_eq!(rows(&*from.engine).await.unwrap(), rows(&*to.engine).await.unwrap(), "{what}");
    assert_eq!(sums.iter().map(|sum| sum.table.clone()).collect::<BTreeSet<_>>(), made(), "{what}");
    assert!(sums.iter().all(|sum| sum.rows == EACH as u64), "{what}: {sums:?}");
    let marks = (Marks::read(&*from.engine).await.unwrap(), Marks::read(&*to.engine).await.unwrap());
    assert_eq!(marks.0.out.unwrap().state, Leave::Left, "{what}");
    assert_eq!(marks.1.into.unwrap().state, Arrival::Ready, "{what}");
    // red without the way by moved_from in moving/mod.rs, run: a file hands on which server it came from.
    let server = match from.engine.answering() {
        Some(answering) => Some(answering.identity),
        None => moved_from(&*from.engine).await.unwrap(),
    };
    assert_eq!(moved_from(&*to.engine).await.unwrap(), server, "{what}");
    sums
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_arrives_whole_from_file_to_file() {
    let (from, to) = (place::file().await, place::file().await);
    fill(&*from.engine).await.unwrap();
    moved(&from, &to).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_engines_the_sums_are_the_same() {
    let from = place::file().await;
    fill(&*from.engine).await.unwrap();
    let (postgres, mysql) = (place::postgres().await, place::mysql().await);
    let mut sums = Vec::new();
    // The last legs make a round of it where there are servers.
    let mut way = vec![from];
    way.extend(postgres);
    way.extend(mysql);
    way.extend([place::file().await, place::file().await]);
    for leg in way.windows(2) {
        sums.push(moved(&leg[0], &leg[1]).await);
    }
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_with_anything_in_it_is_refused() {
    for to in place::all().await {
        let from = place::file().await;
        let tables = everything::tables(&*to.engine).await.unwrap();
        let last = tables.last().unwrap();
        to.engine.commit(vec![everything::insert(last, 1, false)]).await.unwrap();
        let why = run(&*from.engine, &*to.engine).await.unwrap_err();
        assert!(why.why.contains("not empty") && why.why.contains(&last.name), "{why}");
        assert_eq!(Marks::read(&*to.engine).await.unwrap(), Marks::default());
    }
}

/// Red where `vacant` lets any database through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_somebody_else_is_told_before_anything_is_made_in_it() {
    for to in place::all_bare().await {
        assert_eq!(vacant(&*to.engine).await, Ok(()), "{}", to.kind);
        to.engine.alter(vec!["CREATE TABLE invoices (id bigint, paid smallint)".to_owned()]).await.unwrap();
        let why = vacant(&*to.engine).await.unwrap_err();
        assert!(why.why.contains("not empty") && why.why.contains("invoices"), "{}: {why}", to.kind);
        // Red where all of them are named, or one: whoever reads it knows whose database it is.
        let more = ["a", "b", "c"].map(|name| format!("CREATE TABLE {name} (id bigint)"));
        to.engine.alter(more.to_vec()).await.unwrap();
        let why = vacant(&*to.engine).await.unwrap_err();
        assert!(why.why.ends_with(" that are not Portiere's: a, b, c and 1 more"), "{}: {why}", to.kind);
    }
    for to in place::all().await {
        assert_eq!(vacant(&*to.engine).await, Ok(()), "{}: ours, also where it is not whole", to.kind);
        to.engine.alter(vec!["CREATE TABLE invoices (id bigint, paid smallint)".to_owned()]).await.unwrap();
        let why = run(&*place::file().await.engine, &*to.engine).await.unwrap_err();
        assert!(why.why.starts_with("the target: invoices.paid"), "{}: {why}", to.kind);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_of_another_move_is_refused() {
    let (one, other, to) = (place::file().await, place::file().await, place::file().await);
    let id = fence::raise(&*other.engine, "another", "there").await.unwrap();
    assert_eq!(id, "another");
    run(&*one.engine, &*to.engine).await.unwrap();
    let why = run(&*other.engine, &*to.engine).await.unwrap_err();
    assert!(why.why.contains("the copy of another move"), "{why}");
    // Its own source finds it ready.
    assert_eq!(run(&*one.engine, &*to.engine).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_of_two_schemas_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = store::sqlite::Options::at(folder.path().join("older.db"));
    let older = store::sqlite::Sqlite::open(options, &MIGRATIONS[..4]).unwrap();
    older.migrate().await.unwrap();
    let to = place::file().await;
    let why = store::moving::Move { from: &older, to: &*to.engine, id: "x", from_name: "here", page: 3, tell: &|_| {} };
    let why = why.run().await.unwrap_err();
    assert!(why.why.contains("schema 4") && why.why.contains("another version"), "{why}");
}
