//! A file that lacks what its node acknowledged on the server from which the file was moved.

use super::super::restore::Restore;
use super::*;
use serde_json::json;
use std::os::unix::fs::DirBuilderExt;

/// Red without `lost::refuse` in boot.rs, hold: what was revoked on the server was valid, and no fence told.
#[tokio::test]
async fn a_file_that_lacks_what_its_node_acknowledged_is_served_from_only_after_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let opened = instance(folder.path()).await;
    let row = "INSERT INTO nodes (realm, node, seen, mark) VALUES ('main', 'n1', 1, 4)";
    opened.app.engine.alter(vec![row.to_owned()]).await.unwrap();
    let seen = opened.app.clock.now();
    opened.close().await;
    let journal = folder.path().join("journal");
    std::fs::DirBuilder::new().mode(0o700).create(&journal).unwrap();
    let remembers = |mark: i64| {
        let memory = json!({ "node": "n1", "identity": "7", "mark": mark, "seen": seen });
        std::fs::write(journal.join("node.json"), memory.to_string()).unwrap();
    };
    remembers(4);
    instance(folder.path()).await.close().await;
    remembers(6);
    let refused = Instance::open(&config, None).await.err().unwrap().to_string();
    assert!(refused.contains("its mark 6, the file 4") && refused.contains("portiere restore --in-place"), "{refused}");
    // Red without `accept_mark` in cli/restore.rs, end_all: no start would ever be possible again.
    let restore =
        Restore { file: None, force: false, target_is_gone: false, raw_copy: false, in_place: true, yes: true };
    restore.run(&config).await.unwrap();
    instance(folder.path()).await.close().await;
}
