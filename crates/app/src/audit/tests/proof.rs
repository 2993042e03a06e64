//! Whatever is done to the file is reported by name.

use super::*;
use rules::fresh::first_id;

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
        // Values of another type, which SQLite accepts in any column.
        (
            "UPDATE events SET detail = CAST(detail AS blob) WHERE block = 3 AND id = (SELECT MIN(id) FROM events WHERE block = 3)",
            vec![("line.edited", 3)],
        ),
        (
            "UPDATE events SET at = 'abc' WHERE block = 3 AND id = (SELECT MIN(id) FROM events WHERE block = 3)",
            vec![("line.edited", 3)],
        ),
        ("UPDATE audit_blocks SET sealed_at = 'x' WHERE number = 2", vec![("block.edited", 2)]),
        ("UPDATE audit_blocks SET sealed_at = 1.5 WHERE number = 2", vec![("block.edited", 2)]),
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
async fn a_byte_that_is_no_text_is_named_wherever_it_stands_and_hides_nothing() {
    // Red with an error in store/sqlite/value.rs, and for the id without `sort_by` in audit/verify.rs, with_lines.
    let first = "id = (SELECT MIN(id) FROM events WHERE block = 3)";
    let edited = vec![("line.edited", 3)];
    let mut all: Vec<(String, Vec<(&str, i64)>)> = Vec::new();
    for column in ["kind", "user_id", "client_id", "session_id", "address", "request", "detail", "at"] {
        all.push((format!("UPDATE events SET {column} = CAST(x'61ff62' AS text) WHERE {first}"), edited.clone()));
    }
    for id in ["id || CAST(x'ff' AS text)", "CAST(x'30ff' AS text)"] {
        let found = vec![("line.missing", 3), ("line.inserted", 3)];
        all.push((format!("UPDATE events SET id = {id} WHERE {first}"), found));
    }
    let of_block = |column: &str| format!("UPDATE audit_blocks SET {column} = CAST(x'ff' AS text) WHERE number = 3");
    all.push((of_block("key_id"), vec![("key.missing", 3), ("key.missing", 3)]));
    all.push((of_block("sealed_at"), vec![("block.edited", 3)]));
    for (sql, mut wanted) in all {
        let world = World::new(terms()).await;
        world.sealed(5, 3).await;
        let world = world.tamper(&format!("{sql}; UPDATE events SET user_id = 'eve' WHERE block = 5")).await;
        let (_, findings) = world.verify(None).await;
        wanted.extend([("line.edited", 5); 3]);
        assert_eq!(whats(&findings), wanted, "{sql}: {findings:#?}");
        assert_eq!(ids(&world.app).await.len(), 15, "{sql}: lists go on");
        world.app.audit_lag().await.unwrap();
        // Nobody can go on from an id that is none: the block is named.
        match world.app.sealed_after(&Place::default(), 100).await {
            Ok(lines) => assert_eq!(lines.len(), 15, "{sql}"),
            Err(why) => assert!(sql.contains("SET id") && why.to_string().contains("block 3"), "{sql}: {why}"),
        }
        world.write(1).await;
        assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1), "{sql}: sealing goes on");
    }
}

#[tokio::test]
async fn a_byte_that_is_no_text_keeps_no_line_from_being_sealed_and_delivered() {
    // Red with an error in store/sqlite/value.rs: nothing was sealed or delivered any more, and nothing said so.
    let world = World::new(terms()).await;
    world.write(7).await;
    let nth = |at: usize| format!("id = (SELECT id FROM events ORDER BY id LIMIT 1 OFFSET {at})");
    let columns = ["kind", "user_id", "client_id", "address", "request", "detail"];
    let edit = |(at, column): (usize, &&str)| {
        format!("UPDATE events SET {column} = CAST(x'61ff62' AS text) WHERE {}; ", nth(at))
    };
    let mut sql: String = columns.iter().enumerate().map(edit).collect();
    sql.push_str(&format!("UPDATE events SET id = id || CAST(x'ff' AS text) WHERE {}", nth(6)));
    let world = world.tamper(&sql).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(6), "what no statement can name stays as it is");
    assert_eq!(world.app.audit_alarms().len(), 1, "what is left is told");
    assert_eq!(world.app.sealed_after(&Place::default(), 100).await.unwrap().len(), 6);
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 1);
    assert_eq!(world.verify(None).await.1, vec![], "it is as it was sealed");
}

#[tokio::test]
async fn values_of_another_type_stop_nothing_and_are_told() {
    // Red where a row of the log is read like other rows: nothing was sealed any more, and nothing said so.
    let world = World::new(terms()).await;
    world.write(3).await;
    let sql = "UPDATE events SET detail = x'ff', address = 7 WHERE id = (SELECT MIN(id) FROM events); \
               UPDATE events SET id = CAST(id AS blob) WHERE id = (SELECT MAX(id) FROM events)";
    let world = world.tamper(sql).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(2), "what no statement can name stays as it is");
    assert_eq!(world.app.audit_alarms().len(), 1, "what is left is told");
    world.write(1).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1));
    // Red with `maybe_text` in store/tables/audit.rs, Backlog: a check reported nothing at all.
    world.verify(None).await;
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 1);
    let world = world
        .tamper("UPDATE audit_checkpoints SET number = 'x'; UPDATE audit_blocks SET number = 'x' WHERE number = 2")
        .await;
    world.write(1).await;
    let mut complaints = crate::complaint::Complaints::default();
    world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
    let alarms = world.app.audit_alarms();
    assert!(alarms.iter().any(|why| why.contains("the number x, which is none")), "{alarms:?}");
}

#[tokio::test]
async fn a_line_in_a_block_of_less_than_nothing_keeps_no_other_from_being_sealed() {
    // Red with `block <= 0` in store/tables/audit.rs, Unsealed: nothing was sealed any more, and nothing said so.
    let world = World::new(terms()).await;
    world.write(3).await;
    let world = world.tamper("UPDATE events SET block = -1 WHERE id = (SELECT MIN(id) FROM events)").await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(2));
    world.write(1).await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1));
    let (_, findings) = world.verify(None).await;
    assert_eq!(whats(&findings), [("line.inserted", -1)]);
}

#[tokio::test]
async fn no_line_escapes_whatever_it_has_in_place_of_a_block() {
    // Red with `Between` in place of `Strays` in audit/verify.rs: what is not a whole number was between no two blocks
    // that were checked, and the log was "as it was sealed" although lists had an entry that was never written.
    for (block, told) in [
        ("'zz'", -1),
        ("''", -1),
        ("x'00'", -1),
        ("5.5", -1),
        ("0.5", -1),
        ("-0.5", -1),
        ("12.5", -1),
        ("1e300", -1),
        ("-1e300", -1),
        ("9223372036854775808.0", -1),
        ("-1", -1),
        ("-7", -7),
        ("-9223372036854775807 - 1", i64::MIN),
        ("13", 13),
        ("9223372036854775807", i64::MAX),
    ] {
        let world = World::new(terms()).await;
        world.sealed(12, 1).await;
        let id = first_id(world.clock.now());
        let sql = format!(
            "INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', '{id}x', 1, 'user.added', '{{}}', {block})"
        );
        let world = world.tamper(&sql).await;
        let (_, findings) = world.verify(None).await;
        assert_eq!(whats(&findings), [("line.inserted", told)], "{block}: {findings:#?}");
        assert!(findings[0].line.as_ref().is_some_and(|line| *line == format!("{id}x")), "{findings:#?}");
        // Red without `Readable` in audit/read.rs, and without `block = (block | 0)` in Between.
        assert_eq!(ids(&world.app).await.len(), 13, "{block}: lists go on");
        let sealed = world.app.sealed_after(&Place::default(), 100).await.unwrap();
        assert!(sealed.iter().filter(|line| line.block < 13).count() == 12, "{block}: streams go on");
        world.write(1).await;
        assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1), "{block}: sealing goes on");
    }
}

#[tokio::test]
async fn what_is_sealed_meanwhile_hides_no_line_of_no_block() {
    // Red without `NOT EXISTS` in store/tables/audit/strays.rs: only the first hundred entries after the end were
    // checked.
    let world = World::new(terms()).await;
    world.sealed(2, 2).await;
    let sql =
        "INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', 'x', 1, 'user.added', '{}', 'zz')";
    let world = world.tamper(sql).await;
    world.write(120).await;
    world.app.seal_once().await.unwrap();
    let of = store::tables::audit::Astray::Beyond { after: 2 };
    let strays = world.app.ask(store::tables::audit::Strays { of, limit: 100 }).await.unwrap();
    assert_eq!(strays.into_iter().map(|line| line.id).collect::<Vec<_>>(), ["x"]);
}

#[tokio::test]
async fn a_block_of_null_is_named_where_somebody_lets_the_column_have_it() {
    // Red without `First` in audit/verify.rs, start.
    let world = World::new(terms()).await;
    world.sealed(2, 2).await;
    let sql = "PRAGMA writable_schema = ON; \
               UPDATE sqlite_schema SET sql = replace(sql, 'block bigint NOT NULL DEFAULT 0', 'block bigint') WHERE name = 'events'; \
               PRAGMA writable_schema = RESET; \
               INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', 'x', 1, 'user.added', '{}', NULL)";
    let world = world.tamper(sql).await;
    let (_, findings) = world.verify(None).await;
    assert_eq!(whats(&findings), [("line.inserted", -1)], "{findings:#?}");
}

#[tokio::test]
async fn what_is_hidden_from_an_index_is_told_and_named_once_the_index_is_made_anew() {
    // Red without `unsound` in audit/verify.rs: the log was "as it was sealed", and lists had the forged entry.
    let (line, id) = ("INSERT INTO events (realm, id, at, kind, detail, block)", first_id(BEGAN));
    let first = "id = (SELECT MIN(id) FROM events NOT INDEXED)";
    let full = "CREATE INDEX mine ON events (realm, block, id, at, kind, user_id, client_id, session_id, address, request, \
                detail); ";
    for (before, change, index, told, named) in [
        ("", format!("{line} VALUES ('main', '{id}x', 1, 'user.added', '{{}}', 2)"), "events_of_block", 2, 1),
        ("", format!("{line} VALUES ('main', '{id}x', 1, 'user.added', '{{}}', 0)"), "events_of_block", 2, 0),
        ("", format!("UPDATE events SET block = 8888 WHERE {first}"), "events_of_block", 1, 2),
        ("", format!("DELETE FROM events WHERE {first}"), "events_of_block", 1, 1),
        (full, format!("UPDATE events SET user_id = 'eve' WHERE {first}"), "mine", 1, 1),
    ] {
        let world = World::new(terms()).await;
        world.sealed(3, 2).await;
        let sql = format!(
            "{before}CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = '{index}'; \
             PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '{index}'; \
             PRAGMA writable_schema = RESET; {change}; PRAGMA writable_schema = ON; \
             INSERT INTO sqlite_schema SELECT * FROM kept; PRAGMA writable_schema = RESET"
        );
        let world = world.tamper(&sql).await;
        let (_, findings) = world.verify(None).await;
        let damaged = findings.iter().filter(|finding| finding.what == "table.damaged" && finding.why.contains(index));
        assert!(damaged.count() >= told, "{change}: {findings:#?}");
        let world = world.tamper("REINDEX").await;
        let (_, findings) = world.verify(None).await;
        assert_eq!(findings.len(), named, "{change}: {findings:#?}");
        assert!(findings.iter().all(|finding| finding.what.starts_with("line.")), "{change}: {findings:#?}");
    }
}

#[tokio::test]
async fn a_line_of_a_block_is_compared_whatever_its_id_and_its_time_are() {
    // Red with `Within` in audit/verify.rs, with_lines, and without CASE in store/tables/audit.rs.
    let world = World::new(terms()).await;
    world.sealed(3, 2).await;
    let first = "id = (SELECT MIN(id) FROM events WHERE block = 2)";
    let sql = format!(
        "UPDATE events SET at = 1.5 WHERE {first}; \
         INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', '', 1, 'user.added', '{{}}', 1)"
    );
    let world = world.tamper(&sql).await;
    let (_, findings) = world.verify(None).await;
    assert_eq!(whats(&findings), [("line.inserted", 1), ("line.edited", 2)], "{findings:#?}");
    world.write(2).await;
    let world = world.tamper("UPDATE events SET at = 1.5 WHERE id = (SELECT MAX(id) FROM events)").await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(2));
    assert_eq!(world.app.sealed_after(&Place::default(), 100).await.unwrap().len(), 8);
    begin(&world, Place { block: 1, line: String::new() }).await;
    assert_eq!(world.app.audit_lag().await.unwrap().streams[0].lines, 8);
}
