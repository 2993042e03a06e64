//! What a move that is given up says of its target, and a target that a move had claimed before it was cut short.

use super::state;
use crate::support::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use store::engine::Engine as _;
use store::migrations::MIGRATIONS;
use store::moving::marks::Marks;
use store::moving::{claim, fence};
use store::sqlite::{Options, Sqlite};

/// A file with our tables, as a process of its own would have it open.
async fn opened(file: &Path) -> Sqlite {
    let sqlite = Sqlite::open(Options::at(file), MIGRATIONS).unwrap();
    sqlite.migrate().await.unwrap();
    sqlite
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A server with somebody who can be moved.
fn inhabited() -> &'static Server {
    let server = Server::leaked(&[]);
    Person::add(server);
    server
}

/// A folder, a file in it to move to, and its name.
fn place() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("new.db");
    let to = format!("sqlite:{}", file.display());
    (folder, file, to)
}

/// Red with the name of the target alone in `abort`, cli/moving/giving_up.rs: the operator was told to empty it.
#[test]
fn a_target_without_anything_of_the_move_is_left_as_it_is() {
    if !on_file() {
        return;
    }
    let (server, (_folder, file, to)) = (inhabited(), place());
    assert_eq!(server.stop(), Some(0));
    runtime().block_on(async {
        let source = opened(&server.data().join("portiere.db")).await;
        fence::raise(&source, "move-1", &to).await.unwrap();
        source.close();
        opened(&file).await.close();
    });
    let told = server.must(&["move", "--abort", "--to", &to, "--yes"], "");
    assert!(
        told.contains("takes writes again") && told.contains(&format!("nothing of this move is in {to}")),
        "{told}"
    );
    assert!(!told.contains("empty it"), "{told}");
    server.restart();
    assert_eq!(state(server), Value::Null);
    server.must(&["move", "--to", &to, "--yes"], "");
    server.kill();
}

/// Red without `withdraw` in cli/moving/giving_up.rs, or where a claim that is left is not taken over.
#[test]
fn a_claim_of_a_move_that_did_not_begin_is_taken_over_or_given_up() {
    if !on_file() {
        return;
    }
    let (server, (_folder, file, to)) = (inhabited(), place());
    let status: Value = serde_json::from_str(&server.must(&["move", "--status", "--json"], "")).unwrap();
    let name = status["from"]["database"].as_str().unwrap().to_owned();
    let claimed = |by: &str| {
        runtime().block_on(async {
            let target = opened(&file).await;
            claim::claim(&target, &target, "move-1", by).await.unwrap();
            target.close();
        });
    };
    claimed(&name);
    let silent = server.command(&["move", "--abort", "--to", &to], "");
    assert!(silent.code == 2 && silent.err.contains("did not begin"), "{}", silent.err);
    let told = server.must(&["move", "--abort", "--to", &to, "--yes"], "");
    assert!(told.contains(&format!("{to} is free again")), "{told}");
    let nothing = server.command(&["move", "--abort", "--to", &to, "--yes"], "");
    assert!(nothing.code == 1 && nothing.err.contains("is not being moved"), "{}", nothing.err);
    claimed("sqlite:/another.db");
    let refused = server.command(&["move", "--to", &to, "--yes"], "");
    assert!(refused.code == 1 && refused.err.contains("another move, from sqlite:/another.db"), "{}", refused.err);
    assert_eq!(state(server), Value::Null);
    std::fs::remove_file(&file).unwrap();
    claimed(&name);
    server.must(&["move", "--to", &to, "--yes"], "");
    let into = runtime().block_on(async { Marks::read(&opened(&file).await).await.unwrap().into.unwrap() });
    assert_ne!(into.id, "move-1");
    server.kill();
}
