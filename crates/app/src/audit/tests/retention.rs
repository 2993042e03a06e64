//! What is too old or too much, and what has to stay all the same.

use super::*;
use crate::complaint::Complaints;
use crate::jobs::Swept;
use store::tables::audit::Whole;

#[tokio::test]
async fn what_is_old_goes_in_whole_blocks_and_the_rest_is_proved() {
    let world = World::new(terms()).await;
    world.sealed(30, 3).await;
    let head = world.app.audit_head().await.unwrap();
    assert_eq!(world.retire().await, Retired::Nothing);
    world.clock.advance(Span::hours(90 * 24 - 20));
    assert_eq!(world.retire().await, Retired::Nothing);
    let (told, findings) = world.verify(Some(&head)).await;
    // Of thirty hours, the first ten and a half are older than ninety days by now.
    assert_eq!((told.begin, told.blocks, told.lines, findings), (11, 19, 57, vec![]));
    assert!(told.met_head());
    world.clock.advance(Span::days(300));
    assert_eq!(world.retire().await, Retired::Nothing);
    let (told, findings) = world.verify(Some(&head)).await;
    assert_eq!((told.begin, told.lines, findings), (30, 0, vec![]));
    world.sealed(1, 2).await;
    let (told, findings) = world.verify(Some(&head)).await;
    assert_eq!((told.end.number, told.end.last, findings), (31, 92, vec![]));
}

#[tokio::test]
async fn what_is_too_much_goes_and_so_much_stays_at_least() {
    let world = World::new(Terms { max_lines: Some(25), ..terms() }).await;
    world.sealed(12, 4).await;
    assert_eq!(world.retire().await, Retired::Nothing);
    assert_eq!(world.app.audit_lag().await.unwrap().kept, 28);
    assert_eq!(world.verify(None).await.1, vec![]);
}

#[tokio::test]
async fn what_is_not_sealed_is_never_too_old() {
    let world = World::new(Terms { keys: Keys::default(), ..terms() }).await;
    world.write(5).await;
    world.clock.advance(Span::days(1000));
    world.retire().await;
    world.app.sweep(&|| false).await.unwrap();
    assert_eq!(world.app.drop_beyond_ceiling(Duration::MAX).await.unwrap(), Swept { gone: 0, all: true });
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 5);
    assert!(world.app.cannot_seal().await.unwrap().unwrap().contains("no audit key"));
    assert!(world.app.seal_once().await.is_err());
}

#[tokio::test]
async fn a_sweep_ends_when_its_time_is_up_and_the_next_one_goes_on() {
    // Red without `stretch` in jobs.rs, sweep_for: rejections, keys and the lease would wait for the end of a flood.
    let world = World::new(terms()).await;
    let many = "INSERT INTO revoked_tokens (realm, jti, expires) \
                WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 500) \
                SELECT 'main', 'token-' || at, 1 FROM many";
    let world = world.tamper(many).await;
    assert_eq!(world.app.sweep_for(Duration::ZERO, &|| false).await.unwrap(), Swept { gone: 200, all: false });
    assert_eq!(world.app.sweep_for(Duration::MAX, &|| false).await.unwrap(), Swept { gone: 300, all: true });
}

#[tokio::test]
async fn what_a_stream_waits_for_stays_unless_there_is_a_ceiling() {
    for ceiling in [None, Some(20)] {
        let world = World::new(Terms { max_lines: Some(5), ceiling, ..terms() }).await;
        let place = Place { block: 2, line: String::new() };
        begin(&world, place).await;
        world.sealed(12, 4).await;
        let Retired::Held(why) = world.retire().await else { panic!("{ceiling:?}") };
        assert!(why.contains("stream http"), "{why}");
        let lag = world.app.audit_lag().await.unwrap();
        let told = world.app.audit_lines(&Filter::default(), "", true, 100).await.unwrap().lines;
        let dropped = told.iter().filter(|line| line.kind == "audit.dropped").count();
        match ceiling {
            None => assert_eq!((lag.kept, lag.streams[0].lines, dropped), (44, 44, 0)),
            // With the entry that tells of it, which is not sealed yet.
            Some(_) => assert_eq!((lag.kept, lag.streams[0].lines, dropped), (16, 17, 1)),
        }
        assert!(world.app.forget_stream("http").await.unwrap());
        assert!(!world.app.forget_stream("http").await.unwrap());
        assert_eq!(world.retire().await, Retired::Nothing);
        assert_eq!(world.app.audit_lag().await.unwrap().kept, 8);
    }
}

/// Two blocks, three that a clock ten years ahead wrote, and eight after it was set right, each an hour apart.
async fn leapt() -> World {
    let world = World::new(terms()).await;
    let ahead = Span::days(3_650);
    world.sealed(2, 2).await;
    world.clock.advance(ahead);
    world.sealed(3, 2).await;
    world.clock.advance(Span(-ahead.0));
    world.sealed(8, 2).await;
    world
}

#[tokio::test]
async fn a_clock_that_was_ahead_for_an_hour_keeps_nothing_for_years() {
    // Red with `None` alone in audit/retire.rs, sealed_behind.
    let world = leapt().await;
    world.clock.advance(Span::days(90));
    assert_eq!(world.retire().await, Retired::Nothing);
    let (told, findings) = world.verify(None).await;
    assert_eq!((told.begin, findings), (13, vec![]));
}

#[tokio::test]
async fn a_block_that_says_when_others_were_written_has_to_be_what_was_sealed() {
    let world = leapt().await;
    world.clock.advance(Span::hours(90 * 24 - 10));
    assert_eq!(world.retire().await, Retired::Nothing);
    assert_eq!(
        world.verify(None).await.0.begin,
        2,
        "those of the clock that was ahead are not older than what follows"
    );
    // Of the blocks that are asked for after the third, the sixth is the first that a right clock sealed.
    let world = world.tamper("UPDATE audit_blocks SET sealed_at = 0 WHERE number = 6").await;
    let Retired::Wrong(why) = world.retire().await else { panic!("it goes") };
    assert!(why.contains("block 3 is due for removal") && why.contains("block 6 is not what was sealed"), "{why}");
    assert_eq!(world.verify(None).await.0.begin, 2);
}

/// A chain of twelve blocks, of which the first two were removed by age, and the third is due.
async fn aged(terms: Terms) -> World {
    let world = World::new(terms).await;
    world.sealed(12, 2).await;
    world.clock.advance(Span::minutes((90 * 24 - 11) * 60 + 1));
    assert_eq!(world.retire().await, Retired::Nothing);
    assert_eq!(world.verify(None).await.0.begin, 2);
    world.clock.advance(Span::hours(1));
    world
}

#[tokio::test]
async fn what_is_not_what_was_sealed_stays_until_an_operator_discards_it() {
    let line = "(SELECT MIN(id) FROM events WHERE block = 3)";
    let columns = ["first_line", "last_line", "oldest", "sealed_at", "newest", "digest", "leaves", "mac_before", "mac"];
    let edits = columns.map(|column| match column {
        "digest" | "leaves" | "mac_before" | "mac" => {
            format!("UPDATE audit_blocks SET {column} = zeroblob(length({column})) WHERE number = 3")
        }
        column => format!("UPDATE audit_blocks SET {column} = {column} - 1 WHERE number = 3"),
    });
    let others = [
        format!("UPDATE events SET user_id = 'eve' WHERE id = {line}"),
        format!("DELETE FROM events WHERE id = {line}"),
        format!("UPDATE events SET block = 4 WHERE id = {line}"),
        "INSERT INTO events (realm, id, at, kind, detail, block) VALUES ('main', 'x', 1, 'user.added', '{}', 3)".into(),
        "UPDATE audit_blocks SET key_id = 'another' WHERE number = 3".into(),
        // Blocks that are not due are made due, and blocks are missing.
        "UPDATE audit_blocks SET newest = 0 WHERE number BETWEEN 4 AND 9; \
         DELETE FROM audit_blocks WHERE number = 3; DELETE FROM events WHERE block = 3"
            .into(),
        "UPDATE audit_blocks SET newest = 0 WHERE number >= 3".into(),
        "UPDATE audit_checkpoints SET removed_at = 0".into(),
        "UPDATE audit_checkpoints SET number = 1".into(),
        "DELETE FROM audit_checkpoints".into(),
        // A block from before the beginning of the chain.
        "INSERT INTO audit_blocks SELECT realm, 1, 1, 2, 0, 0, 0, key_id, digest, leaves, mac_before, mac FROM \
         audit_blocks WHERE number = 3"
            .into(),
    ];
    for sql in edits.into_iter().chain(others) {
        let world = aged(terms()).await.tamper(&sql).await;
        let found = whats(&world.verify(None).await.1).len();
        let oldest = world.app.ask(Whole { number: 0, limit: 1 }).await.unwrap()[0].number;
        let Retired::Wrong(why) = world.retire().await else { panic!("{sql}") };
        assert!(why.contains(&format!("portiere audit discard {oldest}")), "{why}");
        assert_eq!(world.app.ask(Whole { number: 0, limit: 1 }).await.unwrap()[0].number, oldest, "{sql}");
        assert_eq!(whats(&world.verify(None).await.1).len(), found, "{sql}: nothing is hidden");
        assert!(world.told(Kind::AuditDropped).await.is_empty());

        // If the end is not what was sealed, that has to be accepted first.
        if let Err(why) = world.app.discard_audit(oldest - 1).await.unwrap() {
            assert!(why.contains("portiere audit accept"), "{sql}: {why}");
            assert!(world.app.accept_audit().await.unwrap().is_some());
        }
        assert!(world.app.discard_audit(oldest - 1).await.unwrap() == Ok(0), "{sql}");
        assert_eq!(world.app.discard_audit(oldest).await.unwrap(), Ok(1), "{sql}");
        assert!(world.told(Kind::AuditDropped).await.iter().any(|line| line.detail.contains("not what was sealed")));
    }
}

#[tokio::test]
async fn the_newest_block_does_not_say_that_there_is_too_much_unless_it_was_sealed() {
    // Also if a stream waits for what is beyond the ceiling. Red without `beyond` in audit/retire.rs,
    // take_out_undelivered.
    for ceiling in [None, Some(30)] {
        let world = World::new(Terms { max_lines: Some(25), ceiling, ..terms() }).await;
        if ceiling.is_some() {
            begin(&world, Place { block: 1, line: String::new() }).await;
        }
        world.sealed(6, 4).await;
        let world = world.tamper("UPDATE audit_blocks SET last_line = 1000 WHERE number = 6").await;
        let Retired::Wrong(why) = world.retire().await else { panic!("it goes") };
        assert!(why.contains("block 6 is not what was sealed"), "{why}");
        assert_eq!(world.verify(None).await.0.begin, 0);
    }
}

#[tokio::test]
async fn a_ceiling_is_kept_behind_a_block_of_a_clock_that_was_ahead() {
    // Red where such a block is judged by its own clock beyond the ceiling.
    let world = World::new(Terms { retention: Span::days(1), ceiling: Some(20), ..terms() }).await;
    begin(&world, Place { block: 1, line: String::new() }).await;
    world.clock.advance(Span::days(3_650));
    world.sealed(1, 4).await;
    world.clock.advance(Span(-Span::days(3_650).0));
    world.sealed(30, 4).await;
    world.clock.advance(Span::days(1));
    let Retired::Held(why) = world.retire().await else { panic!("it is at its ceiling") };
    assert!(why.contains("stream http"), "{why}");
    assert!(world.app.audit_lag().await.unwrap().kept <= 20);
}

#[tokio::test]
async fn discarding_does_not_hide_what_was_missing() {
    let world = World::new(terms()).await;
    world.sealed(5, 2).await;
    let world = world.tamper("DELETE FROM audit_blocks WHERE number < 3; DELETE FROM events WHERE block < 3").await;
    world.clock.advance(Span::minutes((90 * 24 - 1) * 60 - 30));
    assert!(matches!(world.retire().await, Retired::Wrong(_)));
    assert_eq!(world.app.discard_audit(3).await.unwrap(), Ok(1));
    let told = world.told(Kind::AuditDropped).await;
    let gap = |line: &&Line| line.detail.contains("\"from_block\":1") && line.detail.contains("\"until_block\":2");
    assert!(told.iter().any(|line| gap(&line)), "{told:?}");
}

#[tokio::test]
async fn what_is_wrong_is_an_alarm_until_it_is_over() {
    let world = aged(terms()).await.tamper("UPDATE events SET user_id = 'eve' WHERE block = 3").await;
    let mut complaint = Complaints::default();
    assert!(!world.app.retire_step(&mut complaint).await.unwrap());
    let alarms = world.app.audit_alarms();
    assert!(alarms.len() == 1 && alarms[0].contains("was edited"), "{alarms:?}");
    assert_eq!(world.app.discard_audit(3).await.unwrap(), Ok(1));
    world.app.retire_step(&mut complaint).await.unwrap();
    assert!(world.app.audit_alarms().is_empty());
}

#[tokio::test]
async fn lines_are_sealed_while_many_blocks_are_due() {
    // Red where books_step in audit/mod.rs returns after a block that was retired.
    let world = World::new(terms()).await;
    world.sealed(4, 2).await;
    world.clock.advance(Span::days(100));
    world.write(3).await;
    let mut complaints = Complaints::default();
    let step = world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
    assert!(matches!(step, Step::More), "more blocks are due");
    let lag = world.app.audit_lag().await.unwrap();
    assert_eq!((lag.unsealed, lag.kept), (0, 3 * 2 + 3), "one block went, and what waited was sealed");
    assert_eq!(world.verify(None).await.1, vec![]);
}

#[tokio::test]
async fn a_block_is_waited_for_until_its_last_line_is_delivered() {
    for delivered in 0..=4 {
        let world = World::new(Terms { max_lines: Some(5), ..terms() }).await;
        world.sealed(4, 4).await;
        let lines = world.app.sealed_after(&Place::default(), 4).await.unwrap();
        let line = lines.iter().take(delivered).next_back().map_or(String::new(), |line| line.id.clone());
        begin(&world, Place { block: 1, line }).await;
        let last = world.retire().await;
        let Retired::Held(why) = last else { panic!("{delivered}: {last:?}") };
        // Nothing of the next block is delivered.
        let waits = if delivered == 4 { 2 } else { 1 };
        assert!(why.contains(&format!("has not delivered block {waits} yet")), "{delivered}: {why}");
    }
}
