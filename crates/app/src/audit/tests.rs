//! The audit log over a real database file: sealed, delivered, retired, verified.

use super::retire::Retired;
use super::sink::{Http, Sink};
use super::*;
use crate::clock::Clock;
use crate::keyring::Keyring;
use hasher::{Hasher, Settings as Hashing};
use rules::audit::{Finding, Head, Key, Told};
use rules::events::{Event, Kind};
use rules::realm::{Realm, Settings};
use rules::{Change, Fresh};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::sqlite::{Options, Sqlite};
use store::tables::audit::Place;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const BEGAN: Time = Time(1_700_000_000_000);

fn key(seed: u8) -> Key {
    Key::new([seed; 32].into())
}

fn terms() -> Terms {
    Terms { keys: Keys { current: Some(key(7)), old: vec![] }, ..Terms::default() }
}

/// A node on the database in `folder`.
async fn node(folder: &Path, clock: &Clock, terms: Terms) -> App {
    let engine = Sqlite::open(Options::at(folder.join("facts.db")), store::migrations::MIGRATIONS).unwrap();
    node_on(Arc::new(engine), clock, terms).await
}

async fn node_on(engine: Arc<dyn store::engine::Engine>, clock: &Clock, terms: Terms) -> App {
    let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
    engine.migrate().await.unwrap();
    let hashing = Hashing { threads: std::num::NonZeroUsize::new(1), memory: Some(32 << 20), ..Hashing::default() };
    let keyring = Keyring::new(&[1; 32]).unwrap();
    let app = App::new(realm, engine, Hasher::start(hashing).unwrap(), keyring, clock.clone()).unwrap();
    app.open_books(terms);
    app
}

struct World {
    folder: TempDir,
    clock: Clock,
    app: App,
}

impl World {
    async fn new(terms: Terms) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(BEGAN));
        let app = node(folder.path(), &clock, terms).await;
        World { folder, clock, app }
    }

    /// Commits so many lines, each a batch, now.
    async fn write(&self, many: usize) {
        for _ in 0..many {
            let event = Event::new(Kind::SignedIn, self.clock.now()).user(&"ada".into()).address("192.0.2.1");
            let fresh = crate::entropy::fresh().unwrap();
            self.app.commit(vec![Change::Record(event)], self.clock.now(), &fresh).await.unwrap();
        }
    }

    /// The same, sealed in blocks of that size.
    async fn sealed(&self, blocks: usize, each: usize) {
        for _ in 0..blocks {
            self.write(each).await;
            assert_eq!(self.app.seal_once().await.unwrap(), Sealed::All(each as u64));
            self.clock.advance(Span::hours(1));
        }
    }

    /// Retires until there is nothing more to; what came last.
    async fn retire(&self) -> Retired {
        loop {
            match self.app.retire_once().await.unwrap() {
                Retired::Block => {}
                other => return other,
            }
        }
    }

    async fn verify(&self, head: Option<&Head>) -> (Told, Vec<Finding>) {
        verify(&self.app, head).await
    }

    /// Does something to the file that this program does not do.
    async fn tamper(self, sql: &str) -> World {
        let World { folder, clock, app } = self;
        drop(app);
        let file = folder.path().join("facts.db");
        for _ in 0..200 {
            let done = rusqlite::Connection::open(&file).and_then(|open| open.execute_batch(sql));
            if done.is_ok() {
                let app = node(folder.path(), &clock, terms()).await;
                return World { folder, clock, app };
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the file stays held");
    }
}

async fn verify(app: &App, head: Option<&Head>) -> (Told, Vec<Finding>) {
    let (mut told, mut findings) = (None, Vec::new());
    loop {
        let step = app.verify_audit(told.as_ref(), head).await.unwrap();
        findings.extend(step.findings);
        if step.done {
            return (step.told, findings);
        }
        told = Some(step.told);
    }
}

fn whats(findings: &[Finding]) -> Vec<(&str, i64)> {
    findings.iter().map(|finding| (finding.what.as_str(), finding.block)).collect()
}

#[tokio::test]
async fn what_is_old_goes_in_whole_blocks_and_the_rest_is_proved() {
    let world = World::new(terms()).await;
    world.sealed(30, 3).await;
    let head = world.app.audit_head().await.unwrap();
    assert_eq!(world.retire().await, Retired::Nothing);
    world.clock.advance(Span::hours(90 * 24 - 20));
    assert_eq!(world.retire().await, Retired::Nothing);
    let (told, findings) = world.verify(Some(&head)).await;
    // Of thirty hours the first ten and a half are older than ninety days by now.
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
    world.app.sweep().await.unwrap();
    assert_eq!(world.app.drop_beyond_ceiling().await.unwrap(), 0);
    assert_eq!(world.app.audit_lag().await.unwrap().unsealed, 5);
    assert!(world.app.cannot_seal().await.unwrap().unwrap().contains("no audit key"));
    assert!(world.app.seal_once().await.is_err());
}

#[tokio::test]
async fn a_ceiling_is_kept_and_says_so() {
    let world = World::new(Terms { keys: Keys::default(), ceiling: Some(10), ..terms() }).await;
    world.write(500).await;
    assert_eq!(world.app.drop_beyond_ceiling().await.unwrap(), 490);
    let lines = world.app.audit_lines(&Filter::default(), "", true, 100).await.unwrap().lines;
    assert_eq!(lines.len(), 11);
    let told = lines.iter().find(|line| line.kind == "audit.dropped").unwrap();
    assert!(told.detail.contains("490") && told.detail.contains("not sealed"), "{}", told.detail);
}

#[tokio::test]
async fn what_a_stream_waits_for_stays_unless_there_is_a_ceiling() {
    for ceiling in [None, Some(20)] {
        let world = World::new(Terms { max_lines: Some(5), ceiling, ..terms() }).await;
        let place = Place { block: 2, line: String::new() };
        let stream =
            store::tables::audit::Stream { name: "http".into(), place, moved_at: BEGAN, trouble: String::new() };
        let begin = store::tables::audit::begin(&world.app.realm.id, &stream);
        world.app.engine.commit(vec![begin]).await.unwrap();
        world.sealed(12, 4).await;
        let Retired::Held(why) = world.retire().await else { panic!("{ceiling:?}") };
        assert!(why.contains("stream http"), "{why}");
        let lag = world.app.audit_lag().await.unwrap();
        let told = world.app.audit_lines(&Filter::default(), "", true, 100).await.unwrap().lines;
        let dropped = told.iter().filter(|line| line.kind == "audit.dropped").count();
        match ceiling {
            None => assert_eq!((lag.kept, lag.streams[0].lines, dropped), (44, 44, 0)),
            Some(_) => assert_eq!((lag.kept, lag.streams[0].lines, dropped), (20, 20, 6)),
        }
        assert!(world.app.forget_stream("http").await.unwrap());
        assert!(!world.app.forget_stream("http").await.unwrap());
        assert_eq!(world.retire().await, Retired::Nothing);
        assert_eq!(world.app.audit_lag().await.unwrap().kept, 8);
    }
}

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
async fn retirement_does_not_hide_what_was_missing() {
    let world = World::new(terms()).await;
    world.sealed(5, 2).await;
    let world = world.tamper("DELETE FROM audit_blocks WHERE number < 3; DELETE FROM events WHERE block < 3").await;
    world.clock.advance(Span::minutes((90 * 24 - 1) * 60 - 30));
    assert_eq!(world.retire().await, Retired::Nothing);
    let lines = world.app.audit_lines(&Filter::default(), "", true, 100).await.unwrap().lines;
    let told = lines.iter().find(|line| line.kind == "audit.dropped").unwrap();
    assert!(told.detail.contains("\"from_block\":1") && told.detail.contains("\"until_block\":2"), "{}", told.detail);
}

#[tokio::test]
async fn a_key_is_followed_by_another_only_by_who_has_both_or_says_so() {
    let world = World::new(terms()).await;
    world.sealed(2, 2).await;
    let engine = Arc::clone(&world.app.engine);
    let of = |current: u8, old: &[u8]| Terms {
        keys: Keys { current: Some(key(current)), old: old.iter().map(|seed| key(*seed)).collect() },
        ..terms()
    };
    let stranger = node_on(Arc::clone(&engine), &world.clock, of(8, &[])).await;
    world.write(1).await;
    let why = stranger.cannot_seal().await.unwrap().unwrap();
    assert!(why.contains(key(7).id()) && why.contains("copy audit.key"), "{why}");
    assert!(stranger.seal_once().await.is_err());
    let both = node_on(Arc::clone(&engine), &world.clock, of(8, &[7])).await;
    assert_eq!(both.cannot_seal().await.unwrap(), None);
    assert_eq!(both.seal_once().await.unwrap(), Sealed::All(1));
    assert_eq!(verify(&both, None).await.1, vec![]);
    assert_eq!(whats(&verify(&world.app, None).await.1), [("key.missing", 3)]);
    assert!(both.rekey().await.unwrap().is_err(), "there is no need");

    let lost = node_on(engine, &world.clock, of(9, &[])).await;
    assert_eq!(lost.rekey().await.unwrap(), Ok(key(9).id().to_owned()));
    world.write(3).await;
    assert_eq!(lost.seal_once().await.unwrap(), Sealed::All(3));
    assert_eq!(whats(&verify(&lost, None).await.1), [("key.missing", 1), ("key.missing", 3)]);
    let all = Keys { current: Some(key(9)), old: vec![key(7), key(8)] };
    let auditor = node_on(Arc::clone(&lost.engine), &world.clock, Terms { keys: all, ..terms() }).await;
    assert_eq!(verify(&auditor, None).await.1, vec![]);
}

/// What a receiver does with a request.
#[derive(Clone, Copy)]
enum Mood {
    Takes,
    Fails,
    Resets,
    Hangs,
    TakesAndResets,
}

/// A receiver with moods: where it is, and the ids that it got, in order.
#[allow(clippy::disallowed_methods, reason = "a receiver of a test")]
async fn moody(moods: &'static [Mood]) -> (Sink, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = Arc::clone(&got);
    tokio::spawn(async move {
        for turn in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mood = moods.get(turn).copied().unwrap_or(Mood::Takes);
            let body = read(&mut stream).await;
            let ids = body.lines().map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["id"].as_str().unwrap().to_owned()
            });
            if matches!(mood, Mood::Takes | Mood::TakesAndResets) {
                theirs.lock().unwrap().extend(ids);
            }
            match mood {
                Mood::Takes => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap(),
                Mood::Fails => stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await.unwrap(),
                Mood::Resets | Mood::TakesAndResets => stream.set_zero_linger().unwrap(),
                Mood::Hangs => tokio::time::sleep(Duration::from_secs(2)).await,
            }
        }
    });
    (Sink::Http(Box::new(Http::new(&url, None, None, None).unwrap())), got)
}

async fn read(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut some = [0; 4096];
        let many = stream.read(&mut some).await.unwrap();
        text.push_str(std::str::from_utf8(&some[..many]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap() {
            return body.to_owned();
        }
    }
}

/// The ids of all lines.
async fn ids(app: &App) -> BTreeSet<String> {
    let (mut all, mut from) = (BTreeSet::new(), String::new());
    loop {
        let page = app.audit_lines(&Filter::default(), &from, false, 10_000).await.unwrap();
        all.extend(page.lines.into_iter().map(|line| line.id));
        match page.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

#[tokio::test]
async fn a_stream_gets_everything_at_least_once_however_its_receiver_behaves() {
    let world = World::new(terms()).await;
    world.sealed(3, 150).await;
    let (sink, got) =
        moody(&[Mood::Fails, Mood::Resets, Mood::Takes, Mood::TakesAndResets, Mood::Hangs, Mood::Takes]).await;
    let (app, clock) = (world.app.clone(), world.clock.clone());
    let enough = async {
        while got.lock().unwrap().iter().collect::<BTreeSet<_>>().len() < 500 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // What was delivered is marked a moment later.
        while app.audit_lag().await.unwrap().streams[0].lines > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let writes = async {
        for _ in 0..10 {
            world.write(5).await;
            clock.advance(Span::seconds(1));
            world.app.seal_once().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        enough.await;
    };
    tokio::select! {
        () = world.app.deliver(Stream { name: "http".into(), sink }) => {}
        () = writes => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("{}", got.lock().unwrap().len()),
    }
    let sent = got.lock().unwrap().clone();
    let all = ids(&world.app).await;
    assert_eq!(sent.iter().cloned().collect::<BTreeSet<_>>(), all, "none is lost");
    assert!(sent.len() <= all.len() + 200, "only what was interrupted comes twice: {} of {}", sent.len(), all.len());
}

#[tokio::test]
async fn whoever_follows_sees_each_line_once_however_late_it_was_committed() {
    let world = World::new(terms()).await;
    let app = &world.app;
    let writes = async {
        for number in 0..300_i64 {
            // Every third line has an id from long before.
            let at = if number % 3 == 0 { Time(BEGAN.0 - number * 1000) } else { Time(BEGAN.0 + number) };
            let event = Event::new(Kind::SignedIn, at).detail("number", number);
            app.commit(vec![Change::Record(event)], at, &Fresh::new([(number % 250) as u8; 32])).await.unwrap();
        }
    };
    let seals = async {
        loop {
            app.seal_once().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (mut place, mut seen) = (Place::default(), Vec::new());
    let follows = async {
        while seen.len() < 300 {
            let lines = app.sealed_after(&place, 17).await.unwrap();
            if let Some(last) = lines.last() {
                place = Place { block: last.block, line: last.id.clone() };
            }
            seen.extend(lines.into_iter().map(|line| line.id));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = async { tokio::join!(writes, follows); } => {}
        () = seals => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("not all were seen"),
    }
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 300, "each once");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), ids(app).await);
    assert_eq!(world.verify(None).await.1, vec![]);
}

#[tokio::test]
async fn a_list_is_filtered_and_goes_on_where_a_page_ended() {
    let world = World::new(terms()).await;
    for number in 0..4_500_i64 {
        let kind = if number % 1000 == 7 { Kind::SignInFailed } else { Kind::SignedIn };
        let at = world.clock.now();
        let event = Event::new(kind, at).user(&format!("u{}", number % 5).as_str().into());
        world.app.commit(vec![Change::Record(event)], at, &crate::entropy::fresh().unwrap()).await.unwrap();
        world.clock.advance(Span(10));
    }
    let refused = Filter { outcome: Some("refused".into()), ..Filter::default() };
    let (mut found, mut from, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = world.app.audit_lines(&refused, &from, true, 2).await.unwrap();
        found.extend(page.lines);
        pages += 1;
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!((found.len(), pages >= 3), (5, true));
    assert!(found.is_sorted_by(|one, other| one.id > other.id));
    let some = Filter {
        user: Some("u3".into()),
        since: Some(Time(BEGAN.0 + 100)),
        until: Some(Time(BEGAN.0 + 200)),
        ..Filter::default()
    };
    let page = world.app.audit_lines(&some, "", false, 100).await.unwrap();
    assert_eq!(page.lines.iter().map(|line| line.at.0 - BEGAN.0).collect::<Vec<_>>(), [130, 180]);
}

#[tokio::test]
async fn a_line_says_in_which_request_it_was_written() {
    let world = World::new(terms()).await;
    let write = || async {
        let event = Event::new(Kind::SignedIn, world.clock.now());
        let done = crate::jobs::to_the_end(|_pledge| {
            let (app, now) = (world.app.clone(), world.clock.now());
            async move {
                let fresh = crate::entropy::fresh()?;
                Ok(app.commit(vec![Change::Record(event)], now, &fresh).await?)
            }
        });
        done.await.unwrap();
    };
    crate::asked::within("r1".into(), write()).await;
    write().await;
    let wanted = Filter { request: Some("r1".into()), ..Filter::default() };
    assert_eq!(world.app.audit_lines(&wanted, "", true, 9).await.unwrap().lines.len(), 1);
    assert_eq!(ids(&world.app).await.len(), 2);
}
