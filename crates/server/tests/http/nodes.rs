//! Several nodes on one database: who they are, who is gone, and an upgrade of one after the other.

use crate::support::*;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use store::conformance::neighbors::{after_next, next};
use store::engine::Engine;
use store::mysql::Mysql;
use store::postgres::Postgres;
use store::remote::Settings;
use store::schema::Migration;

/// What a newer program does to the database when it starts: the real engine, with a schema that goes further.
fn upgrade(server: &Server, migrations: &'static [Migration]) {
    let url = server.setting("PORTIERE_STORE_URL").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = Settings { connections: std::num::NonZeroUsize::MIN, ..Settings::at(url.clone()) };
        if url.starts_with("postgres") {
            Postgres::open(settings, migrations).await.unwrap().migrate().await.unwrap();
        } else {
            Mysql::open(settings, migrations).await.unwrap().migrate().await.unwrap();
        }
    });
}

/// Everything that a person and an application do in a visit. Fails where any of it is refused.
fn visit(server: &'static Server, app: &App) {
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let tokens = Tokens::of(&app.refresh(&app.tokens(&mut browser, &person).refresh));
    assert!(app.is_active(&tokens.access));
    app.revoke(&tokens.refresh).must_be(200);
    assert!(!app.is_active(&tokens.access));
    let sign_out = browser.account_form("/account/signout");
    browser.submit(&sign_out).must_be(303);
}

/// The nodes, as operators see them.
fn nodes(server: &Server) -> Vec<Value> {
    match serde_json::from_str(&server.must(&["node", "list", "--json"], "")).unwrap() {
        Value::Array(nodes) => nodes,
        other => panic!("{other}"),
    }
}

fn lives(node: &Value) -> bool {
    node["lives"] == Value::Bool(true)
}

#[test]
fn nodes_serve_while_the_program_of_the_next_release_brings_the_schema_further_and_after_that() {
    // red without `ahead` in store/schema.rs, plan: the node does not start again.
    let Some(server) = Server::pair() else { return };
    let app = App::trusted(server);
    let (stop, visits) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        visit(server, &app);
                        visits.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        // A visitor who is refused something ends, and the test with it.
        let done = |more: usize| {
            let enough = visits.load(SeqCst) + more;
            comes(|| visits.load(SeqCst) >= enough || visitors.iter().any(|visitor| visitor.is_finished()))
        };
        let before = done(2);
        upgrade(server, next());
        let after = done(4);
        stop.store(true, SeqCst);
        assert!(before && after, "no visits");
    });
    // One that starts beside the newer program, or is taken back to the release of before.
    server.stop_first();
    server.start_first();
    visit(server, &app);
    assert_eq!(nodes(server).iter().filter(|node| lives(node)).count(), 2);

    // Two releases apart: it says so, and leaves the database alone.
    upgrade(server, after_next());
    for port in server.ports() {
        let unready = || Call::get("/readyz").try_send_here(port).filter(|answer| answer.status == 503);
        let notices = || unready().is_some_and(|answer| answer.text().contains("for programs of schema"));
        until("a node that runs notices", notices);
    }
    server.stop_first();
    let refused = server.command(&["user", "list"], "");
    assert!(refused.code == 1 && refused.err.contains("for programs of schema"), "{}", refused.err);
    server.kill();
}

#[test]
fn a_node_is_listed_and_may_be_forgotten_when_it_is_gone() {
    let Some(server) = Server::pair() else { return };
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::of(server, &person), &person);
    let listed = nodes(server);
    assert_eq!(listed.len(), 2, "{listed:?}");
    for node in &listed {
        assert!(lives(node) && node["version"] == env!("CARGO_PKG_VERSION"), "{node}");
        assert_eq!((&node["class"], &node["journal"]), (&"durable".into(), &"kept".into()), "{node}");
        assert_eq!(node["waiting_fence"], Value::Null);
    }
    let other = listed.iter().find(|node| node["this"] == Value::Bool(false)).unwrap()["node"].as_str().unwrap();
    let text = server.must(&["node", "list"], "");
    assert!(text.contains(other) && text.contains("this one") && text.contains("lives"), "{text}");

    let forget = |node: &str, more: &[&str]| server.command(&[&["node", "forget", node], more].concat(), "");
    let refused = forget(other, &["--yes"]);
    assert!(refused.code == 1 && refused.err.contains("is running"), "{}", refused.err);
    server.lose_second();
    until("it is missed", || nodes(server).iter().filter(|node| lives(node)).count() != 2);
    assert!(server.must(&["node", "list"], "").contains("away"));
    assert_eq!(forget(other, &[]).code, 2, "it asks, and there is nobody");
    assert_eq!(forget("nobody", &["--yes"]).code, 1);
    assert_eq!(forget(other, &["--yes"]).code, 0);
    assert_eq!(nodes(server).len(), 1);
    assert_eq!(forget(other, &["--yes"]).code, 1, "there is none");
    assert!(server.must(&["events", "list", "--limit", "200"], "").contains("node.forgotten"));

    // It returns after all: a node like any other, and its database has lost nothing.
    server.find_second();
    assert_eq!(nodes(server).iter().filter(|node| lives(node)).count(), 2);
    let status: Value = serde_json::from_str(&server.must(&["fence", "status", "--json"], "")).unwrap();
    assert_eq!(status["fence"], Value::Null, "{status}");
    app.refresh(&tokens.refresh).must_be(200);
    server.kill();
}

#[test]
fn a_node_without_a_journal_is_listed_while_it_runs() {
    if on_file() {
        let server = Server::leaked(&[]);
        assert_eq!(nodes(server), Vec::<Value>::new());
        let text = server.must(&["node", "list"], "");
        assert!(text.contains("the database is a file"), "{text}");
        return server.kill();
    }
    let server = Server::leaked(&[("PORTIERE_STORE_JOURNAL", "off")]);
    let many = server.count();
    let all = |what: &str| until(what, || nodes(server).len() == many);
    all("they say that they are there");
    assert!(nodes(server).iter().all(|node| lives(node) && node["journal"] == "off"));
    // They take their leave, and come back under other names.
    server.stop();
    server.restart();
    all("only those that run");
    server.kill();
}

#[test]
fn a_node_with_another_public_url_does_not_start_beside_one_that_runs() {
    // red without served_elsewhere in boot.rs, open: both were ready, and each answered 421 to what was meant for the other.
    let Some(server) = Server::pair() else { return };
    server.stop_first();
    server.set("PORTIERE_PUBLIC_URL", "http://localhost:1");
    let started = std::panic::catch_unwind(|| server.start_first());
    let log = &server.logs()[0];
    assert!(started.is_err() && log.contains(&format!("serves this database as {}", server.issuer)), "{log}");
    server.kill();
}
