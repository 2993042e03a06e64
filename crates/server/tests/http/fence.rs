//! D2, over a real database server and two nodes: a database that is put back to an earlier state, as by a failover that lost
//! the end of what was committed, undoes nothing that was acknowledged.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// What a node remembers of the database.
fn memory(data: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(data.join("journal/node.json")).unwrap()).unwrap()
}

/// Two nodes over a database server, and where that is; `None` where the facts are in a file.
fn two_nodes() -> Option<(&'static Server, String)> {
    let server = Server::pair()?;
    Some((server, server.setting("PORTIERE_STORE_URL")?))
}

/// Until every node has said after now that it is there, and the database has acknowledged it.
fn wait_for_marks(server: &Server) {
    let marks = || server.folders().map(|data| memory(&data)["mark"].as_i64().unwrap());
    let before = marks();
    until("the nodes say that they are there", || marks().iter().zip(before).all(|(now, then)| *now > then + 1));
}

fn fence(server: &Server) -> Value {
    Call::get("/readyz").try_send_here(server.port).unwrap().json()["fence"].clone()
}

#[test]
fn d2_nothing_acknowledged_is_undone_by_a_database_that_forgot_it() {
    let Some((server, url)) = two_nodes() else { return };
    let (app, person, other) = (App::trusted(server), Person::add(server), Person::add(server));
    let mut stays = Browser::of(server, &person);
    let mut leaves = Browser::of(server, &other);
    let [revoked, rotated, gone] = [0; 3].map(|_| app.tokens(&mut stays, &person));
    let code = app.code(&mut stays, &person, &app.ask());
    let copy = Dump::of_rows(&url);

    app.revoke(&revoked.refresh).must_be(200);
    let next = Tokens::of(&app.refresh(&rotated.refresh));
    let redeemed = Tokens::of(&app.redeem(&code));
    let sign_out = leaves.account_form("/account/signout");
    leaves.submit(&sign_out).must_be(303);
    other.change(server, "disable");
    wait_for_marks(server);

    // One node does not see the failover: it is waited for.
    let missing = memory(&server.folders()[1])["node"].as_str().unwrap().to_owned();
    server.lose_second();
    copy.put_back();
    until("the fence is seen", || fence(server)["up"] == Value::Bool(true));
    let seen = fence(server);
    assert_eq!(seen["waiting_for"], serde_json::json!([missing]), "{seen}");

    // Until then nothing from before is believed, and nobody is told to throw a token away that is good.
    app.redeem(&code).must_fail(400, "invalid_grant");
    app.refresh(&next.refresh).must_fail(503, "temporarily_unavailable");
    app.refresh(&gone.refresh).must_fail(503, "temporarily_unavailable");
    assert!(!app.is_active(&next.access) && !app.is_active(&redeemed.access));
    assert!(!stays.is_signed_in());
    // What is ended now, ends; who comes in now, is in.
    app.revoke(&gone.refresh).must_be(200);
    let mut newcomer = Browser::new(server);
    let fresh = app.tokens(&mut newcomer, &person);
    app.refresh(&fresh.refresh).must_be(200);

    server.find_second();
    until("the fence is lifted", || fence(server)["up"] == Value::Bool(false));
    app.redeem(&code).must_fail(400, "invalid_grant");
    for token in [&revoked, &gone] {
        app.refresh(&token.refresh).must_fail(400, "invalid_grant");
        assert!(!app.is_active(&token.access));
    }
    app.refresh(&next.refresh).must_be(200);
    assert!(newcomer.is_signed_in() && !leaves.is_signed_in());
    let events = server.must(&["events", "list", "--limit", "200"], "");
    for event in ["fence.raised", "fence.replayed", "fence.lifted"] {
        assert!(events.contains(event), "{event}: {events}");
    }
    server.kill();
}

#[test]
fn d2_an_operator_gives_up_what_a_lost_node_knew() {
    let Some((server, url)) = two_nodes() else { return };
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let tokens = app.tokens(&mut browser, &person);
    let copy = Dump::of_rows(&url);
    wait_for_marks(server);
    let missing = memory(&server.folders()[1])["node"].as_str().unwrap().to_owned();
    server.lose_second();
    copy.put_back();
    until("the fence is seen", || fence(server)["up"] == Value::Bool(true));
    app.refresh(&tokens.refresh).must_fail(503, "temporarily_unavailable");

    let refused = server.command(&["node", "forget", &missing, "--yes"], "");
    assert!(refused.code == 1 && refused.err.contains("a fence waits for node"), "{}", refused.err);
    let nodes: Value = serde_json::from_str(&server.must(&["node", "list", "--json"], "")).unwrap();
    let waited = nodes.as_array().unwrap().iter().find(|node| node["node"] == missing.as_str()).unwrap();
    assert_eq!(waited["waiting_fence"], 1, "{nodes}");

    // Red without `nothing_is_lost` in cli/moving/check.rs: nobody replays anything to a file.
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("moved.db").display());
    let refused = server.command(&["move", "--to", &file, "--yes"], "");
    assert!(refused.code == 1 && refused.err.contains(&format!("waits for nodes ({missing})")), "{}", refused.err);
    assert!(server.must(&["move", "--status"], "").contains("is not being moved"));

    assert_eq!(server.command(&["fence", "accept-loss", &missing], "").code, 2, "it asks, and there is nobody");
    assert_eq!(server.command(&["fence", "accept-loss", "nobody", "--yes"], "").code, 1);
    let status: Value = serde_json::from_str(&server.must(&["fence", "status", "--json"], "")).unwrap();
    assert_eq!((&status["up"], &status["waiting_for"][0]), (&Value::Bool(true), &Value::String(missing.clone())));
    server.must(&["fence", "accept-loss", &missing, "--yes"], "");
    app.refresh(&tokens.refresh).must_be(200);
    assert!(browser.is_signed_in());
    let events = server.must(&["events", "list", "--limit", "200"], "");
    assert!(events.contains("fence.waived") && events.contains("fence.lifted"), "{events}");
    server.kill();
}

#[test]
fn d2_without_a_journal_nothing_is_acknowledged_that_ends_something() {
    // red without the append in app/ward, commit_and_note.
    let Some((server, _)) = two_nodes() else { return };
    server.lose_second();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::of(server, &person), &person);
    let [first, _] = server.folders();
    let (journal, aside) = (first.join("journal"), first.join("aside"));
    // Started anew, it has no file open that it could go on with.
    server.stop_first();
    server.start_first();
    std::fs::rename(&journal, &aside).unwrap();
    app.refresh(&tokens.refresh).must_fail(503, "temporarily_unavailable");
    Call::get("/readyz").try_send_here(server.port).unwrap().must_be(503);
    std::fs::rename(&aside, &journal).unwrap();
    until("the journal works again", || Call::get("/readyz").try_send_here(server.port).unwrap().status == 200);
    server.kill();
}
