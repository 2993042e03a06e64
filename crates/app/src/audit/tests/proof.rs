//! Whatever is done to the file is named.

use super::*;

#[tokio::test]
async fn whatever_is_done_to_the_file_is_named() {
    for (sql, wanted) in [
        (
            "UPDATE events SET user_id = 'eve' WHERE block = 3 AND id = (SELECT MIN(id) FROM events WHERE block = 3)",
            vec![("line.edited", 3)],
        ),
        (
            "DELETE FROM events WHERE block = 11 AND id = (SELECT MIN(id) FROM events WHERE block = 11)",
            vec![("line.missing", 11)],
        ),
        (
            "INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', 'x', 1, 'user.added', '{}', 4)",
            vec![("line.inserted", 4)],
        ),
        (
            "UPDATE events SET block = 5 WHERE id = (SELECT MIN(id) FROM events WHERE block = 6)",
            vec![("line.inserted", 5), ("line.missing", 6)],
        ),
        (
            "DELETE FROM audit_blocks WHERE number = 9",
            vec![("line.inserted", 9), ("line.inserted", 9), ("block.missing", 10)],
        ),
        ("DELETE FROM audit_blocks WHERE number = 12; DELETE FROM events WHERE block = 12", vec![("chain.cut", 12)]),
        (
            "DELETE FROM audit_blocks WHERE number = 12",
            vec![("line.inserted", 12), ("line.inserted", 12), ("chain.cut", 12)],
        ),
        ("UPDATE audit_blocks SET newest = newest + 1 WHERE number = 2", vec![("block.edited", 2)]),
        // Values of another type, which SQLite keeps in any column.
        (
            "UPDATE events SET detail = CAST(detail AS blob) WHERE block = 3 AND id = (SELECT MIN(id) FROM events WHERE block = 3)",
            vec![("line.edited", 3)],
        ),
        (
            "UPDATE events SET at = 'abc' WHERE block = 3 AND id = (SELECT MIN(id) FROM events WHERE block = 3)",
            vec![("line.edited", 3)],
        ),
        ("UPDATE audit_blocks SET sealed_at = 'x' WHERE number = 2", vec![("block.edited", 2)]),
        ("UPDATE audit_blocks SET sealed_at = 'x' WHERE number = 12", vec![("block.edited", 12)]),
        ("UPDATE audit_blocks SET leaves = 'x' WHERE number = 2", vec![("block.edited", 2); 2]),
        ("DELETE FROM audit_blocks; DELETE FROM events", vec![("chain.cut", 1)]),
        (
            "UPDATE events SET block = -1 WHERE block = 7",
            vec![("line.inserted", -1), ("line.inserted", -1), ("line.missing", 7), ("line.missing", 7)],
        ),
    ] {
        let world = World::new(terms()).await;
        world.sealed(12, 2).await;
        let head = world.app.audit_head().await.unwrap();
        let world = world.tamper(sql).await;
        let (_, findings) = world.verify(Some(&head)).await;
        assert_eq!(whats(&findings), wanted, "{sql}: {findings:#?}");
    }
}

#[tokio::test]
async fn values_of_another_type_stop_nothing_and_are_told() {
    // Red where a row of the log is read as other rows are: nothing was sealed any more, and nothing said so.
    let world = World::new(terms()).await;
    world.write(3).await;
    let sql = "UPDATE events SET detail = x'ff', address = 7 WHERE id = (SELECT MIN(id) FROM events); \
               UPDATE events SET id = CAST(id AS blob) WHERE id = (SELECT MAX(id) FROM events)";
    let world = world.tamper(sql).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(2), "what no statement can name stays as it is");
    assert_eq!(world.app.audit_alarms().len(), 1, "what is left is told");
    world.write(1).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1));
    // Red with `maybe_text` in store/tables/audit.rs, Backlog: whoever looked was told nothing at all.
    world.verify(None).await;
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 1);
    let world = world
        .tamper("UPDATE audit_checkpoints SET number = 'x'; UPDATE audit_blocks SET number = 'x' WHERE number = 2")
        .await;
    world.write(1).await;
    let mut complaints = [crate::jobs::Complaint::default(), crate::jobs::Complaint::default()];
    let step = world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await;
    let why = step.err().expect("the end of the chain cannot be read").to_string();
    assert!(why.contains("is not what this program writes: in") && why.contains("audit_blocks"), "{why}");
}

#[tokio::test]
async fn a_line_in_a_block_of_less_than_nothing_keeps_no_other_from_being_sealed() {
    // red with `block <= 0` in store/tables/audit.rs, Unsealed: nothing was sealed any more, and nothing said so.
    let world = World::new(terms()).await;
    world.write(3).await;
    let world = world.tamper("UPDATE events SET block = -1 WHERE id = (SELECT MIN(id) FROM events)").await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(2));
    world.write(1).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1));
    let (_, findings) = world.verify(None).await;
    assert_eq!(whats(&findings), [("line.inserted", -1)]);
}
