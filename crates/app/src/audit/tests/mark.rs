//! A history that was cut or written anew is not sealed any further, and is not taken for the log.

use super::*;
use crate::audit::alarm::About;
use crate::audit::deliver::Going;
use crate::audit::mark::Shelf;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A shelf that outlives its node.
#[derive(Clone, Debug, Default)]
struct Drawer(Arc<Mutex<Option<Vec<u8>>>>);

impl Shelf for Drawer {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().clone())
    }
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        *self.0.lock().unwrap() = Some(bytes.to_vec());
        Ok(())
    }
    fn clear(&self) -> io::Result<()> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
}

fn marked(drawer: &Drawer) -> Terms {
    Terms { shelf: Some(Arc::new(drawer.clone())), ..terms() }
}

/// Six blocks of two entries, with the mark on its shelf.
async fn six() -> (World, Drawer) {
    let drawer = Drawer::default();
    let world = World::new(marked(&drawer)).await;
    world.sealed(6, 2).await;
    world.app.keep_mark(true).await.unwrap();
    (world, drawer)
}

/// What an intruder does to the log who can write to the database and has no key.
const FORGERIES: [&str; 8] = [
    // All of it is edited, and would be sealed again.
    "UPDATE events SET user_id = 'eve', block = 0; DELETE FROM audit_blocks; DELETE FROM audit_checkpoints",
    // The newest two blocks, or one.
    "UPDATE events SET user_id = 'eve', block = 0 WHERE block > 4; DELETE FROM audit_blocks WHERE number > 4",
    "UPDATE events SET user_id = 'eve', block = 0 WHERE block = 6; DELETE FROM audit_blocks WHERE number = 6",
    // The same blocks are gone.
    "DELETE FROM events WHERE block > 4; DELETE FROM audit_blocks WHERE number > 4",
    "DELETE FROM events; DELETE FROM audit_blocks",
    // The record of the newest says something else.
    "UPDATE audit_blocks SET mac = zeroblob(32) WHERE number = 6",
    "UPDATE audit_blocks SET last_line = 900 WHERE number = 6",
    // It is another block, which was sealed once.
    "DELETE FROM audit_blocks WHERE number = 6; UPDATE audit_blocks SET number = 6 WHERE number = 5",
];

#[tokio::test]
async fn a_history_that_was_cut_or_written_anew_is_not_sealed() {
    for sql in FORGERIES {
        let (world, drawer) = six().await;
        let world = world.tamper(sql).await;
        world.write(3).await;
        let before = (world.app.audit_head().await.unwrap(), drawer.read().unwrap());
        let fault = world.app.seal_once().await.unwrap_err().to_string();
        assert!(fault.contains("portiere audit accept"), "{sql}: {fault}");
        let mut complaints = crate::complaint::Complaints::default();
        let step = world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
        assert!(matches!(step, Step::Elsewhere), "{sql}");
        assert_eq!(world.app.audit_alarms().len(), 1, "{sql}");
        assert_eq!((world.app.audit_head().await.unwrap(), drawer.read().unwrap()), before, "{sql}");
        let found = world.verify(None).await.1;
        let what = |finding: &Finding| ["chain.cut", "head.differs"].contains(&finding.what.as_str());
        assert!(found.iter().any(what), "without an exported head: {sql}: {found:#?}");

        let accepted = crate::asked::by_operator(1_000, world.app.accept_audit()).await.unwrap().unwrap();
        assert_eq!(accepted.block, before.0.block, "{sql}");
        assert!(world.app.audit_alarms().is_empty());
        let told = world.told(Kind::AuditAccepted).await;
        assert!(told.len() == 1 && told[0].detail.contains("this node has seen"), "{sql}: {told:?}");
        // Red without `asked::sign` in settle.rs, commit_telling.
        assert!(told[0].detail.contains("\"by\":\"operator\"") && told[0].detail.contains("\"uid\":1000"), "{told:?}");
        assert!(matches!(world.app.seal_once().await.unwrap(), Sealed::All(_)), "{sql}");
        assert_eq!(world.app.accept_audit().await.unwrap(), None, "{sql}: once is enough");
        let found = world.verify(None).await.1;
        assert!(!found.iter().any(what), "{sql}: {found:#?}");
        // The mark is kept: after a start nothing is wrong either.
        world.app.keep_mark(true).await.unwrap();
        let again = world.tamper("").await;
        again.write(1).await;
        assert_eq!(again.app.seal_once().await.unwrap(), Sealed::All(1), "{sql}");
    }
}

/// Red where an exported head replaces what this node saw last.
#[tokio::test]
async fn an_older_head_does_not_hide_that_the_newest_blocks_are_gone() {
    let (world, _drawer) = six().await;
    let head = world.app.audit_head().await.unwrap();
    world.sealed(2, 3).await;
    world.app.keep_mark(true).await.unwrap();
    assert_eq!(world.verify(Some(&head)).await.1, vec![]);
    let gone = "DELETE FROM events WHERE block > 7; DELETE FROM audit_blocks WHERE number > 7";
    let world = world.tamper(gone).await;
    let (told, found) = world.verify(Some(&head)).await;
    assert!(told.met_head());
    assert_eq!(whats(&found), [("chain.cut", 8)]);
}

#[tokio::test]
async fn a_chain_that_grew_elsewhere_is_gone_on_with_if_it_has_what_was_seen() {
    for (retired, forged) in [(0, false), (0, true), (5, false), (7, false)] {
        let (world, drawer) = six().await;
        if forged {
            // Sealed anew by a node that never saw more, and longer than the chain that was seen.
            let sql = "UPDATE events SET block = 0 WHERE block > 4; DELETE FROM audit_blocks WHERE number > 4";
            let other = World { terms: terms(), ..world }.tamper(sql).await;
            assert!(matches!(other.app.seal_once().await.unwrap(), Sealed::All(4)));
            other.sealed(4, 2).await;
            let world = World { terms: marked(&drawer), ..other }.tamper("").await;
            world.write(1).await;
            let fault = world.app.seal_once().await.unwrap_err().to_string();
            assert!(fault.contains("not the one that this node has seen"), "{fault}");
            continue;
        }
        let other = node_on(Arc::clone(&world.app.engine), &world.clock, terms()).await;
        for _ in 0..4 {
            world.write(2).await;
            assert_eq!(other.seal_once().await.unwrap(), Sealed::All(2));
            world.clock.advance(Span::hours(1));
        }
        world.clock.advance(Span::minutes((90 * 24 - 10 + retired) * 60 - 30));
        while other.retire_once().await.unwrap() == Retired::Block {}
        assert_eq!(world.verify(None).await.0.begin, retired);
        assert_eq!(world.app.look_at_end().await.unwrap(), Ok(()));
        world.write(1).await;
        assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1), "{retired}");
        assert_eq!(world.verify(None).await.1, vec![]);
    }
}

#[tokio::test]
async fn an_end_that_was_not_sealed_is_not_learnt() {
    let (world, drawer) = six().await;
    let row = "INSERT INTO audit_blocks SELECT realm, 7, 13, 14, oldest, newest, sealed_at, key_id, digest, leaves, mac, \
               zeroblob(32) FROM audit_blocks WHERE number = 6";
    let world = world.tamper(row).await;
    world.write(1).await;
    assert!(world.app.seal_once().await.unwrap_err().to_string().contains("block 7 is not what was sealed"));
    // Once the block is removed again, all is well.
    let world = world.tamper("DELETE FROM audit_blocks WHERE number = 7").await;
    assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(1));
    assert!(drawer.read().unwrap().is_some());
}

#[tokio::test]
async fn a_mark_that_cannot_be_told_is_none_and_says_so() {
    let (world, drawer) = six().await;
    let good = String::from_utf8(drawer.read().unwrap().unwrap()).unwrap();
    for bad in ["", "{}", &good.replace("\"block\":6", "\"block\":5")] {
        drawer.write(bad.as_bytes()).unwrap();
        let app = node_on(Arc::clone(&world.app.engine), &world.clock, marked(&drawer)).await;
        world.write(1).await;
        assert!(app.seal_once().await.unwrap_err().to_string().contains("audit.mark"), "{bad}");
        assert_eq!(whats(&verify(&app, None).await.1), [("mark.edited", 0)], "{bad}");
        // Red where `rekey` looks only at the key of the log: this node was not helped.
        let told = app.rekey().await.unwrap().unwrap_err();
        assert!(told.contains("nothing was done; ") && told.contains("audit.mark"), "{bad}: {told}");
        app.accept_audit().await.unwrap().unwrap();
        app.seal_once().await.unwrap();
        assert_eq!(verify(&app, None).await.1, vec![]);
    }
}

/// A shelf whose file belongs to another user.
#[derive(Debug)]
struct Locked;

impl Shelf for Locked {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn write(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn clear(&self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_mark_that_may_not_be_read_is_no_sign_of_a_forgery() {
    // Red with HOW in place of UNREADABLE in audit/mark.rs, recalled.
    let (world, _) = six().await;
    let terms = Terms { shelf: Some(Arc::new(Locked)), ..terms() };
    let app = node_on(Arc::clone(&world.app.engine), &world.clock, terms).await;
    let why = app.look_at_end().await.unwrap().unwrap_err();
    assert!(why.contains("the user that the server runs as") && !why.contains("were removed"), "{why}");
}

/// A shelf on a disk that may be full.
#[derive(Clone, Debug, Default)]
struct Disk {
    drawer: Drawer,
    full: Arc<AtomicBool>,
}

impl Shelf for Disk {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        self.drawer.read()
    }
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if self.full.load(SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { self.drawer.write(bytes) }
    }
    fn clear(&self) -> io::Result<()> {
        self.drawer.clear()
    }
}

#[tokio::test]
async fn a_mark_that_cannot_be_kept_is_told_and_keeps_nothing_from_being_sealed() {
    // Red with `?` after keep_mark in audit/mod.rs, books_step: nothing was sealed or delivered, and nothing said why.
    let disk = Disk::default();
    disk.full.store(true, SeqCst);
    let world = World::new(Terms { shelf: Some(Arc::new(disk.clone())), ..terms() }).await;
    world.sealed(1, 2).await;
    let mut complaints = crate::complaint::Complaints::default();
    // The second time it rests, and the alarm stands.
    for _ in 0..2 {
        world.write(3).await;
        world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
        assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 0);
        let alarms = world.app.audit_alarms();
        assert!(alarms.len() == 1 && alarms[0].contains("audit.mark in the data folder"), "{alarms:?}");
    }
    assert_eq!(disk.read().unwrap(), None);
    assert!(world.app.keep_mark(true).await.is_err());
    disk.full.store(false, SeqCst);
    world.app.keep_mark(true).await.unwrap();
    assert!(disk.read().unwrap().is_some() && world.app.audit_alarms().is_empty());
}

/// A shelf whose first write does not end until it is let go on.
#[derive(Clone, Debug, Default)]
struct Slow {
    drawer: Drawer,
    held: Arc<Mutex<Option<std::sync::mpsc::Receiver<()>>>>,
}

impl Shelf for Slow {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        self.drawer.read()
    }
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let held = self.held.lock().unwrap().take();
        if let Some(held) = held {
            held.recv().map_err(io::Error::other)?;
        }
        self.drawer.write(bytes)
    }
    fn clear(&self) -> io::Result<()> {
        self.drawer.clear()
    }
}

#[tokio::test]
async fn an_older_mark_never_comes_after_a_newer_one() {
    // Red without `keeping` in audit/mark.rs: the disk that was slow with the first would have the last word.
    let (let_go, held) = std::sync::mpsc::channel();
    let shelf = Slow::default();
    let world = World::new(Terms { shelf: Some(Arc::new(shelf.clone())), ..terms() }).await;
    world.sealed(1, 2).await;
    world.app.keep_mark(true).await.unwrap();
    *shelf.held.lock().unwrap() = Some(held);
    world.sealed(1, 2).await;
    let newer = async {
        world.sealed(1, 2).await;
        world.app.keep_mark(true).await.unwrap();
    };
    let let_go = async {
        // Time for the newer mark to come first, were it not kept off.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let_go.send(()).unwrap();
    };
    let (older, (), ()) = tokio::join!(world.app.keep_mark(true), newer, let_go);
    older.unwrap();
    let kept: rules::audit::Mark = serde_json::from_slice(&shelf.read().unwrap().unwrap()).unwrap();
    assert_eq!(kept.head.block, 3);
}

#[tokio::test]
async fn a_mark_is_followed_over_keys_as_the_chain_is() {
    let (world, drawer) = six().await;
    let of = |current: u8, old: &[u8]| Terms {
        keys: Keys { current: Some(key(current)), old: old.iter().map(|seed| key(*seed)).collect() },
        ..marked(&drawer)
    };
    world.write(1).await;
    let engine = Arc::clone(&world.app.engine);
    let both = node_on(Arc::clone(&engine), &world.clock, of(8, &[7])).await;
    assert_eq!(both.seal_once().await.unwrap(), Sealed::All(1));
    both.keep_mark(true).await.unwrap();
    let new = node_on(Arc::clone(&engine), &world.clock, of(8, &[])).await;
    assert_eq!(new.look_at_end().await.unwrap(), Ok(()));
    let lost = node_on(engine, &world.clock, of(9, &[])).await;
    let why = lost.look_at_end().await.unwrap().unwrap_err();
    // Red with HOW in place of KEYLESS in audit/mark.rs, recalled: nobody removed anything.
    assert!(
        why.contains(key(8).id()) && why.contains("portiere audit rekey") && !why.contains("were removed"),
        "{why}"
    );
    assert_eq!(lost.audit_alarms().len(), 1);
    let none = Terms { keys: Keys::default(), ..marked(&drawer) };
    let none = node_on(Arc::clone(&lost.engine), &world.clock, none).await;
    assert!(
        none.look_at_end().await.unwrap().is_err() && none.audit_alarms().is_empty(),
        "it has no key, and says that"
    );
    assert_eq!(lost.rekey().await.unwrap(), Ok(Rekeyed { key: key(9).id().to_owned(), changed: true }));
    assert_eq!(lost.look_at_end().await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_key_that_is_lost_is_no_way_around_the_mark() {
    let (world, drawer) = six().await;
    let sql = "DELETE FROM audit_blocks WHERE number > 4; UPDATE events SET block = 0 WHERE block > 4; \
               UPDATE audit_blocks SET key_id = 'lost' WHERE number = 4";
    let world = world.tamper(sql).await;
    let why = world.app.rekey().await.unwrap().unwrap_err();
    assert!(why.contains("this node has seen block 6"), "{why}");
    assert!(world.told(Kind::AuditRekeyed).await.is_empty(), "what was not done is not told");
    assert!(drawer.read().unwrap().is_some());
}

#[tokio::test]
async fn a_note_under_a_key_that_nobody_has_does_not_stand_for_what_is_gone() {
    // Red without `None` in audit/mark.rs, vouches: all would be gone, and only another key would be reported.
    for (number, behind) in [(6, false), (6, true), (900, false), (900, true)] {
        let (world, _) = six().await;
        let mut sql = format!(
            "INSERT OR REPLACE INTO audit_checkpoints SELECT realm, {number}, last_line, mac, sealed_at, 'invented', mac \
             FROM audit_blocks WHERE number = 6; DELETE FROM events; "
        );
        if behind {
            sql += &format!("UPDATE audit_blocks SET number = {number} + 1, key_id = 'invented' WHERE number = 6; ");
        }
        sql += &format!("DELETE FROM audit_blocks WHERE number <= {number}");
        let world = world.tamper(&sql).await;
        let mut complaints = crate::complaint::Complaints::default();
        world.app.books_step(&mut Tenure::of(SEAL), &mut None, &mut complaints).await.unwrap();
        let alarms = world.app.audit_alarms();
        assert!(alarms.len() == 1 && alarms[0].contains("under key invented"), "{sql}: {alarms:?}");
        let why = world.app.rekey().await.unwrap().unwrap_err();
        assert!(why.contains("portiere audit accept"), "{sql}: {why}");
        assert!(world.told(Kind::AuditRekeyed).await.is_empty(), "what was not done is not told");

        assert!(world.app.accept_audit().await.unwrap().is_some(), "{sql}");
        let rekeyed = Rekeyed { key: key(7).id().to_owned(), changed: true };
        assert_eq!(world.app.rekey().await.unwrap(), Ok(rekeyed), "{sql}");
        assert_eq!(world.app.look_at_end().await.unwrap(), Ok(()), "{sql}");
        assert!(world.app.audit_alarms().is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn discarding_is_no_way_around_the_mark() {
    let (world, _) = six().await;
    let world = world.tamper("UPDATE audit_blocks SET mac = x'00', newest = 0 WHERE number = 6").await;
    let why = world.app.discard_audit(6).await.unwrap().unwrap_err();
    assert!(why.contains("its block 6 is not the one that this node has seen"), "{why}");
    assert!(world.app.accept_audit().await.unwrap().is_some());
    assert!(world.app.discard_audit(6).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_stream_says_that_the_log_ends_before_it_and_goes_on_once_that_is_accepted() {
    for terms in [marked(&Drawer::default()), terms()] {
        says_and_goes_on(World::new(terms).await).await;
    }
}

async fn says_and_goes_on(world: World) {
    world.sealed(6, 2).await;
    world.app.keep_mark(true).await.unwrap();
    let place = Place { block: 6, line: "z".into() };
    begin(&world, place).await;
    let cut = "UPDATE events SET block = 0 WHERE block > 3; DELETE FROM audit_blocks WHERE number > 3";
    let world = world.tamper(cut).await;
    let (sink, got) = delivery::moody(&[]).await;
    let stream = Stream { name: "http".into(), sink };
    let accepts = async {
        let says = async || {
            let streams = world.app.audit_lag().await.unwrap().streams;
            streams[0].trouble.contains("the log ends with block 3")
        };
        until("it says so", says).await;
        assert_eq!(world.app.accept_audit().await.unwrap().unwrap().streams, ["http"]);
        world.app.seal_once().await.unwrap();
        until("it goes on", async || got.lock().unwrap().len() >= 7).await;
        // Delivered entries are marked a moment later, and the database file has to be there then.
        until("it is marked", async || world.app.audit_lag().await.unwrap().streams[0].lines == 0).await;
    };
    tokio::select! {
        () = world.app.deliver(stream) => {}
        () = accepts => {}
    }
}

#[tokio::test]
async fn a_stream_that_had_more_waits_for_an_operator_however_long_the_log_is_by_then() {
    // Red without `is_cut` in audit/deliver.rs: once the numbers had passed its place, it went on by itself, without
    // the blocks that had got a number a second time. Red without `goes_on_at` in audit/mark.rs: so it did if accepted.
    for accepts in [true, false] {
        let world = World::new(terms()).await;
        world.sealed(6, 2).await;
        begin(&world, Place { block: 6, line: "z".into() }).await;
        let cut = "UPDATE events SET block = 0 WHERE block > 3; DELETE FROM audit_blocks WHERE number > 3";
        let world = world.tamper(cut).await;
        let (sink, seen) = refused::picky(|_| 200).await;
        let (stream, mut going) = (Stream { name: "http".into(), sink }, Going::of("http"));
        let mut goes_on = async || world.app.deliver_once(&stream, &mut going).await.unwrap().is_ok();
        assert!(!goes_on().await);
        // A node that has seen no end seals on.
        assert_eq!(world.app.seal_once().await.unwrap(), Sealed::All(6));
        world.sealed(5, 2).await;
        assert!(!goes_on().await && !goes_on().await);
        let stands = world.app.audit_lag().await.unwrap().streams.remove(0);
        assert!(stands.trouble.contains("the log ends with block 3") && stands.lines == 6 + 5 * 2, "{stands:?}");
        match accepts {
            true => assert_eq!(world.app.accept_audit().await.unwrap().unwrap().streams, ["http"]),
            false => assert_eq!(world.app.set_stream("http", Some(3)).await.unwrap(), Ok(3)),
        }
        assert!(goes_on().await && goes_on().await);
        let since = world.app.sealed_after(&Place { block: 4, line: String::new() }, 100).await.unwrap();
        assert_eq!(refused::taken(&seen), since.into_iter().map(|line| line.id).collect::<Vec<_>>());
        assert_eq!(world.app.accept_audit().await.unwrap(), None, "nothing is left to accept");
    }
}

#[tokio::test]
async fn what_a_stream_has_to_deliver_again_is_kept_for_it() {
    // Red with `stream.place` in audit/retire.rs, waiting_for.
    let world = World::new(Terms { max_lines: Some(2), ..terms() }).await;
    world.sealed(5, 2).await;
    let trouble = crate::audit::trouble::cut(6, 3);
    let place = Place { block: 6, line: "z".into() };
    let stream = store::tables::audit::Stream { name: "http".into(), place, moved_at: BEGAN, trouble };
    world.app.engine.commit(vec![store::tables::audit::begin(&world.app.realm.id, &stream)]).await.unwrap();
    assert!(matches!(world.retire().await, Retired::Held(why) if why.contains("block 4")));
}

#[tokio::test]
async fn a_mark_is_not_written_for_every_block() {
    let (world, drawer) = six().await;
    let first = drawer.read().unwrap();
    world.sealed(1, 1).await;
    world.app.keep_mark(false).await.unwrap();
    assert_eq!(drawer.read().unwrap(), first);
    world.app.retire().await;
    assert_ne!(drawer.read().unwrap(), first, "the end of a node keeps it");
    world.app.books.alarms().raise(About::End, "x");
    assert_eq!(world.app.look_at_end().await.unwrap(), Ok(()));
    assert!(world.app.audit_alarms().is_empty(), "an alarm is over when all is well");
}
