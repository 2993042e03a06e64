//! Records of the chain with values that no program writes, which SQLite keeps in any column.

use super::*;

/// Values of other types, for a column of a record.
const ALIEN: [&str; 7] = ["'zzz'", "''", "21.5", "x'00'", "CAST(x'ff' AS text)", "9223372036854775808.0", "-7"];

/// A log of which retention removed the first blocks: eight are left, and the last of their lines was edited.
async fn begun() -> World {
    let world = World::new(Terms { retention: Span::hours(9), ..terms() }).await;
    world.sealed(12, 1).await;
    world.retire().await;
    let (told, findings) = world.verify(None).await;
    assert_eq!((told.begin, told.blocks, findings), (4, 8, vec![]));
    world
}

/// Edits the record, and a line beside it; checks that both are named, that all else goes on, and returns the findings
/// about the record and the alarms.
async fn told_of(sql: &str) -> (World, Vec<Finding>, Vec<String>) {
    let world = begun().await;
    let world = world.tamper(&format!("{sql}; UPDATE events SET user_id = 'eve' WHERE block = 10")).await;
    let (_, mut findings) = world.verify(None).await;
    let edited = findings.iter().position(|one| (one.what.as_str(), one.block) == ("line.edited", 10));
    findings.remove(edited.unwrap_or_else(|| panic!("{sql} hides a line: {findings:#?}")));
    begin(&world, Place { block: 1, line: String::new() }).await;
    world.app.audit_lag().await.unwrap();
    world.app.audit_head().await.unwrap();
    let alarms = world.app.audit_wrong().await.unwrap();
    assert_eq!(world.app.sealed_after(&Place::default(), 100).await.unwrap().len(), 8, "{sql}: streams go on");
    world.write(1).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1), "{sql}: sealing goes on");
    (world, findings, alarms)
}

#[tokio::test]
async fn a_record_in_place_of_a_block_is_named_whatever_its_number_is_and_hides_nothing() {
    // Red without `number = (number | 0)` in store/tables/audit.rs, and each time without one of the three places of
    // `Misnumbered` in audit/verify.rs.
    let columns = "first_line, last_line, oldest, newest, sealed_at, key_id, digest, leaves, mac_before, mac";
    let others = ["0", "0.5", "2.5", "4.5", "7.5", "12.5", "-9223372036854775807 - 1", "-0.5"];
    for number in ALIEN.into_iter().chain(others) {
        let insert = format!(
            "INSERT INTO audit_blocks (realm, number, {columns}) SELECT realm, {number}, {columns} FROM audit_blocks \
             WHERE number = 12"
        );
        let (_, findings, alarms) = told_of(&insert).await;
        assert_eq!(findings.len(), 1, "{number}: {findings:#?}");
        assert_eq!(findings[0].what, "block.inserted", "{number}: {findings:#?}");
        // The one that is read as the end of the chain is told at once.
        let is_last = ["'", "x", "CAST", "9", "21", "12"].iter().any(|begins| number.starts_with(begins));
        assert_eq!(alarms.len(), usize::from(is_last), "{number}: {alarms:?}");
        let update = format!("UPDATE audit_blocks SET number = {number} WHERE number = 7");
        let (_, findings, _) = told_of(&update).await;
        let mut found = whats(&findings);
        found.retain(|(what, _)| *what != "block.inserted");
        assert_eq!(found, [("line.inserted", 7), ("block.missing", 8)], "{number}: {findings:#?}");
    }
}

#[tokio::test]
async fn a_block_is_edited_whatever_is_in_its_columns() {
    for column in ["first_line", "last_line", "oldest", "newest", "sealed_at", "digest", "leaves", "mac_before", "mac"]
    {
        for value in ALIEN {
            let (_, findings, _) =
                told_of(&format!("UPDATE audit_blocks SET {column} = {value} WHERE number = 7")).await;
            let told = findings.iter().any(|one| one.what == "block.edited" && one.block == 7);
            assert!(told && findings.iter().all(|one| one.block >= 7), "{column} {value}: {findings:#?}");
        }
    }
}

#[tokio::test]
async fn a_checkpoint_is_edited_whatever_is_in_its_columns_and_an_operator_can_leave_it_behind() {
    // Red with `int` or `text` in place of `any_int` or `any_text` in store/tables/audit.rs, Begins.
    for column in ["number", "last_line", "mac", "removed_at", "seal"] {
        for value in ALIEN {
            let sql = format!("UPDATE audit_checkpoints SET {column} = {value}");
            let (world, findings, alarms) = told_of(&sql).await;
            assert_eq!(findings[0].what, "checkpoint.edited", "{sql}: {findings:#?}");
            assert!(alarms.iter().any(|why| why.contains("what retention removed")), "{sql}: {alarms:?}");
            world.app.forget_stream("http").await.unwrap();
            world.clock.advance(Span::hours(1));
            assert!(matches!(world.retire().await, Retired::Wrong(_)), "{sql}: what is due stays");
            // Red without `number!` in store/tables/audit.rs, retire: that went on for ever.
            let discarded = tokio::time::timeout(Duration::from_secs(60), world.app.discard_audit(5)).await;
            assert_eq!(discarded.expect("it ends").unwrap(), Ok(1), "{sql}");
            let (_, findings) = world.verify(None).await;
            assert_eq!(whats(&findings), [("line.edited", 10)], "{sql}: {findings:#?}");
            assert_eq!(world.app.audit_wrong().await.unwrap(), Vec::<String>::new(), "{sql}");
        }
    }
}

#[tokio::test]
async fn a_chain_of_which_only_an_edited_checkpoint_is_left_is_not_gone_on_with() {
    // Red with `head.block > 0` in audit/mark.rs, goes_on: a record that names no block was the beginning of a log.
    for value in ALIEN.into_iter().chain(["0", "3"]) {
        let world = begun().await;
        let sql = format!("DELETE FROM audit_blocks; UPDATE audit_checkpoints SET number = {value}");
        let world = world.tamper(&sql).await;
        world.write(1).await;
        let refused = world.app.seal_once().await.err().map(|why| why.to_string()).unwrap_or_default();
        assert!(refused.contains("what retention removed is not what was sealed"), "{value}: {refused}");
    }
}

#[tokio::test]
async fn blocks_are_removed_although_a_record_of_no_block_lies_between_them() {
    // Red without `number = (number | 0)` in store/tables/audit.rs, retire: nothing was removed, and nothing said so.
    let world = World::new(Terms { ceiling: Some(6), retention: Span::hours(2), ..terms() }).await;
    world.sealed(12, 1).await;
    begin(&world, Place { block: 1, line: String::new() }).await;
    let copy = "INSERT INTO audit_blocks SELECT realm, 2.5, first_line, last_line, oldest, newest, sealed_at, key_id, \
                digest, leaves, mac_before, mac FROM audit_blocks WHERE number = 2";
    let world = world.tamper(copy).await;
    assert!(matches!(world.retire().await, Retired::Held(_)));
    assert_eq!(world.app.audit_lag().await.unwrap().kept, 6);
    assert_eq!(whats(&world.verify(None).await.1), [("block.inserted", -1)]);
}
