//! What a target would not keep is found before anything is done, and nothing else is.

use super::place::{self, Place, run};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::conformance::everything::{EACH, fill, insert, rows, tables};
use store::dialect::Dialect;
use store::engine::{Engine, Value, Write};
use store::moving::before;
use store::moving::claim::Mover;
use store::moving::fit::{Fit, Look, TOLD};
use store::moving::marks::Marks;
use store::moving::{Step, fence};

const ALL: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql];

/// A move that has not begun.
const NEW: Mover<'static> = Mover { id: None, from: "here" };

/// What a look comes to, in small pages.
async fn look(from: &dyn Engine, to: Dialect) -> Fit {
    Look { from, to, packet: None, page: 3, tell: &|_| {} }.run().await.unwrap()
}

/// A file with these statements carried out, as no program of ours would.
async fn odd(statements: &[&str]) -> Place {
    let place = place::file().await;
    place.engine.alter(statements.iter().map(|one| (*one).to_owned()).collect()).await.unwrap();
    place
}

fn told(fit: &Fit) -> Vec<String> {
    fit.misfits.iter().map(|one| format!("{} ({}): {} {}", one.table, one.key, one.column, one.why)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_this_program_writes_fits_everywhere_and_is_only_read() {
    for from in place::all().await {
        fill(&*from.engine).await.unwrap();
        let before = rows(&*from.engine).await.unwrap();
        for to in ALL {
            let (total, seen) = (AtomicU64::new(0), AtomicU64::new(0));
            let tell = |step| match step {
                Step::Checking(rows) => total.store(rows, Relaxed),
                Step::Checked(rows) => drop(seen.fetch_add(rows, Relaxed)),
                other => panic!("{other:?}"),
            };
            let fit = Look { from: &*from.engine, to, packet: None, page: 3, tell: &tell }.run().await.unwrap();
            assert_eq!(told(&fit), Vec::<String>::new(), "{} to {to:?}", from.kind);
            let all = (before.len() * EACH) as u64;
            assert_eq!((fit.tables, fit.rows), (before.len(), all), "{} to {to:?}", from.kind);
            assert_eq!((total.into_inner(), seen.into_inner()), (all, all));
        }
        assert_eq!(rows(&*from.engine).await.unwrap(), before);
        assert_eq!(Marks::read(&*from.engine).await.unwrap(), Marks::default());
    }
}

/// Values that SQLite keeps and no copy comes past, each in a key and elsewhere: what the look says, and what the copy does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_copy_comes_past_is_named_wherever_the_copy_goes() {
    let odds = [
        ("INSERT INTO logins VALUES ('main', 'a' || char(0), 'u')", r#"logins (realm "main", name "a\0"): name has"#),
        ("INSERT INTO logins VALUES ('main', 'ada', CAST(x'ff' AS text))", r#"name "ada"): user_id is not UTF-8 text"#),
        ("INSERT INTO logins VALUES ('main', CAST(x'ff41' AS text), 'u')", "name (2 bytes)): name is not UTF-8 text"),
        ("INSERT INTO logins VALUES ('main', x'41', 'u')", "name (1 bytes)): name is not UTF-8 text"),
        ("INSERT INTO strangers VALUES ('main', 1.5, '::1', 0)", "minute is not a whole number"),
        ("INSERT INTO strangers VALUES ('main', 0, '::1', 9223372036854775808)", "count is not a whole number"),
        ("INSERT INTO setup_offers VALUES ('main', 'verysecret', 0)", "link (10 bytes)): link is text or a number"),
        ("INSERT INTO counters VALUES ('main', x'07', 'many', 0, 0)", "count is not a whole number"),
    ];
    for (statement, why) in odds {
        let from = odd(&[statement]).await;
        for to in ALL {
            let fit = look(&*from.engine, to).await;
            let told = told(&fit);
            assert!(told.len() == 1 && fit.more == 0 && told[0].contains(why), "{statement} to {to:?}: {told:?}");
            assert!(!told[0].contains("verysecret"), "{told:?}");
        }
        let to = place::file().await;
        assert!(run(&*from.engine, &*to.engine).await.is_err(), "{statement}");
    }
}

/// Letters that nothing can be made shorter of.
fn noise(many: usize) -> String {
    let mut state = 7_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + (state >> 33) as u8 % 90)
    };
    (0..many).map(letter).collect()
}

/// What fits one engine and not another: the engine that is there is asked, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_fits_where_the_engine_takes_it() {
    let names = ["n".repeat(255), "é".repeat(255), "n".repeat(256), format!("{}  ", "n".repeat(254)), noise(5000)];
    // For SQLite, PostgreSQL, MySQL.
    let fits = [[true; 3], [true; 3], [true, true, false], [true, true, false], [true, false, false]];
    let from = place::file().await;
    let logins = tables(&*from.engine).await.unwrap().into_iter().find(|table| table.name == "logins").unwrap();
    let row = |name: &str| {
        let write = insert(&logins, 1, false);
        let text = |text: &str| Value::Text(text.to_owned());
        Write { args: vec![text("main"), text(name), text("u")], ..write }
    };
    let servers = [Some(place::file().await), place::postgres().await, place::mysql().await];
    for (name, fits) in names.iter().zip(fits) {
        let from = place::file().await;
        from.engine.commit(vec![row(name)]).await.unwrap();
        for ((to, fits), server) in ALL.into_iter().zip(fits).zip(&servers) {
            let told = told(&look(&*from.engine, to).await);
            assert_eq!(told.is_empty(), fits, "{to:?}: {} letters: {told:?}", name.chars().count());
            if let Some(server) = server {
                let taken = server.engine.commit(vec![row(name)]).await;
                assert_eq!(taken.is_ok(), fits, "{to:?}: {} letters: {taken:?}", name.chars().count());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_do_not_fit_hide_none_behind_them_and_are_counted() {
    // red where a page ends at a key that no statement takes: the walk would begin there again, or end.
    let many = "WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 49) \
                INSERT INTO logins SELECT 'main', CASE n % 5 WHEN 0 THEN n WHEN 1 THEN CAST(CAST(n AS blob) AS blob) \
                ELSE n || char(0) END, 'u' FROM n";
    let last = "INSERT INTO logins VALUES ('zzz', 'fits', CAST(x'ff' AS text)), ('zzz', 'well', 'u')";
    let from = odd(&[many, last]).await;
    let fit = look(&*from.engine, Dialect::Sqlite).await;
    assert_eq!((fit.misfits.len() as u64 + fit.more, fit.rows), (40 + 1, 52), "{fit:?}");
    assert_eq!(fit.misfits.len(), TOLD);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_with_a_table_of_somebody_else_is_told() {
    let from = odd(&["CREATE TABLE invoices (id bigint PRIMARY KEY)"]).await;
    let look = Look { from: &*from.engine, to: Dialect::Postgres, packet: None, page: 3, tell: &|_| {} };
    assert!(look.run().await.unwrap_err().why.contains("a table invoices, which is not Portiere's"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_looked_at_before_anything_is_made_in_it() {
    let from = place::file().await;
    fill(&*from.engine).await.unwrap();
    for to in place::all_bare().await {
        assert_eq!(before::of_target(&*from.engine, &*to.engine, NEW).await, Ok(None), "{}", to.kind);
        assert_eq!(before::packet(&*to.engine).await.unwrap().is_some(), to.kind == "MariaDB");
        assert_eq!(store::moving::catalogue::version(&*to.engine).await.unwrap(), 0, "{}: nothing was made", to.kind);
        assert!(before::of_source(&*to.engine).await.is_ok() && before::size(&*to.engine).await.is_ok());
        to.engine.migrate().await.unwrap();
        assert_eq!(before::of_target(&*from.engine, &*to.engine, NEW).await, Ok(None), "{}", to.kind);
        let table = tables(&*to.engine).await.unwrap().pop().unwrap();
        to.engine.commit(vec![insert(&table, 1, false)]).await.unwrap();
        let why = before::of_target(&*from.engine, &*to.engine, NEW).await.unwrap_err();
        assert!(why.why.contains("not empty") && why.why.contains(&table.name), "{}: {why}", to.kind);
    }
    assert!(before::size(&*from.engine).await.unwrap() > 100_000);
    assert!(before::of_source(&*from.engine).await.is_ok());
    fence::raise(&*from.engine, "move-1", "there").await.unwrap();
    assert!(before::of_source(&*from.engine).await.is_ok(), "begun is begun");
}

/// Red without `suffice` in `before`: the source is closed to writes when that is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_do_what_a_move_does_is_told_before() {
    let from = place::file().await;
    for (limited, fill, fence) in place::limited().await {
        let why = before::of_target(&*from.engine, &*limited.engine, NEW).await.unwrap_err();
        assert!(why.why.contains("the target: its user lacks") && why.why.contains(fill), "{}: {why}", limited.kind);
        let why = before::of_source(&*limited.engine).await.unwrap_err();
        assert!(why.why.contains("the source: its user lacks") && why.why.contains(fence), "{}: {why}", limited.kind);
    }
}
