//! The audit log over a real database file: sealed, delivered, retired, verified.

mod ceiling;
mod delivery;
mod keys;
mod mark;
mod operator;
mod proof;
mod reading;
mod records;
mod refused;
mod retention;

use super::retire::Retired;
use super::sink::{Credentials, Http, Sink};
use super::*;
use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::reach::Tls;
use crate::tests::plans::planned;
use hasher::{Hasher, Settings as Hashing};
use rules::audit::{Finding, Head, Key, Line, Told};
use rules::events::{Event, Kind};
use rules::realm::{Realm, Settings};
use rules::{Change, Fresh};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::tables::audit::Place;
use tempfile::TempDir;

const BEGAN: Time = Time(1_700_000_000_000);

fn key(seed: u8) -> Key {
    Key::new([seed; 32].into())
}

fn terms() -> Terms {
    Terms { keys: Keys { current: Some(key(7)), old: vec![] }, ..Terms::default() }
}

/// A node on the database in `folder`.
async fn node(folder: &Path, clock: &Clock, terms: Terms) -> App {
    node_on(planned(&folder.join("facts.db")).await, clock, terms).await
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
    // Dropped before its folder: an engine that finds the file gone during a write ends the process.
    app: App,
    folder: TempDir,
    clock: Clock,
    terms: Terms,
}

impl World {
    async fn new(terms: Terms) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(BEGAN));
        let app = node(folder.path(), &clock, terms.clone()).await;
        World { folder, clock, terms, app }
    }

    /// Commits so many entries now, each in a batch of its own.
    async fn write(&self, many: usize) {
        for _ in 0..many {
            let event = Event::new(Kind::SignedIn, self.clock.now()).user(&"ada".into()).address("192.0.2.1");
            let fresh = crate::entropy::fresh().unwrap();
            self.app.commit(vec![Change::Record(event)], self.clock.now(), &fresh).await.unwrap();
        }
    }

    /// Commits entries that are sealed in blocks of that size.
    async fn sealed(&self, blocks: usize, each: usize) {
        for _ in 0..blocks {
            self.write(each).await;
            assert_eq!(self.app.seal_once().await.unwrap(), Sealed::All(each as u64));
            self.clock.advance(Span::hours(1));
        }
    }

    /// Writes so many entries, some at a time, and seals all.
    async fn crowd(&self, many: usize) {
        for written in (0..many).step_by(50) {
            let event = |_| Change::Record(Event::new(Kind::SignedIn, self.clock.now()).user(&"ada".into()));
            let (events, fresh) = ((written..many).take(50).map(event), crate::entropy::fresh().unwrap());
            self.app.commit(events.collect(), self.clock.now(), &fresh).await.unwrap();
        }
        while matches!(self.app.seal_once().await.unwrap(), Sealed::Some(_)) {}
    }

    /// Retires until there is nothing more to retire; returns the last outcome.
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

    /// Returns the entries of a kind, newest first.
    async fn told(&self, kind: Kind) -> Vec<Line> {
        let wanted = Filter { kinds: vec![kind.name().to_owned()], ..Filter::default() };
        self.app.audit_lines(&wanted, "", true, 100).await.unwrap().lines
    }

    /// Changes the file in a way in which this program does not.
    async fn tamper(self, sql: &str) -> World {
        let World { folder, clock, terms, app } = self;
        drop(app);
        let file = folder.path().join("facts.db");
        let done = async || rusqlite::Connection::open(&file).and_then(|open| open.execute_batch(sql)).is_ok();
        until("nobody holds the file", done).await;
        let app = node(folder.path(), &clock, terms.clone()).await;
        World { folder, clock, terms, app }
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

/// Waits until something holds, which it must in the end, however busy the machine is.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(100), waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Begins a stream that has come as far as `place`.
async fn begin(world: &World, place: Place) {
    begin_as(world, "http", place).await;
}

async fn begin_as(world: &World, name: &str, place: Place) {
    let stream = store::tables::audit::Stream { name: name.into(), place, moved_at: BEGAN, trouble: String::new() };
    world.app.engine.commit(vec![store::tables::audit::begin(&world.app.realm.id, &stream)]).await.unwrap();
}

/// A sink over HTTP whose receiver is shown no credentials.
fn over_http(url: &str) -> Sink {
    Sink::Http(Box::new(Http::new(url, &Tls::default(), Credentials::default()).unwrap()))
}

/// Returns the ids of all entries.
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
