//! Programs of two releases on one database: while the newer one migrates it, after that, and when an older one starts.

use super::replays::{commit, family, ordered, rotation, session, user};
use super::{Done, Shared, same};
use crate::migrations::MIGRATIONS;
use crate::schema::{Migration, newest};
use crate::tables::sweep::{self, Bounds};
use crate::tables::{ask, changes, families, realms, sessions};
use rules::id::{FamilyId, RealmId, SessionId};
use rules::{Change, Fresh, Time};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// What a version may do beside older programs: add columns to tables in use, a table, an index.
const ADDS: &[&str] = &[
    "CREATE TABLE later (realm text NOT NULL, id text NOT NULL, PRIMARY KEY (realm, id)) WITHOUT ROWID",
    "ALTER TABLE realms ADD COLUMN later text",
    "ALTER TABLE users ADD COLUMN later text",
    "ALTER TABLE logins ADD COLUMN later bigint NOT NULL DEFAULT 7",
    "ALTER TABLE clients ADD COLUMN later blob",
    "ALTER TABLE codes ADD COLUMN later bigint",
    "ALTER TABLE sessions ADD COLUMN later text",
    "ALTER TABLE families ADD COLUMN later bigint NOT NULL DEFAULT 0",
    "ALTER TABLE counters ADD COLUMN later bigint",
    "ALTER TABLE signing_keys ADD COLUMN later text",
    "ALTER TABLE events ADD COLUMN later text",
    "ALTER TABLE nodes ADD COLUMN later text",
    "CREATE INDEX sessions_by_age ON sessions (realm, last_seen)",
];

/// The schema of this program's next release, as it might be.
pub fn next() -> &'static [Migration] {
    let ours = newest(MIGRATIONS);
    with(&[Migration { version: ours + 1, name: "later", oldest: ours, steps: ADDS }])
}

/// The schema of the release after that, which removes what this program uses.
pub fn after_next() -> &'static [Migration] {
    let ours = newest(MIGRATIONS);
    let steps = &["ALTER TABLE families DROP COLUMN later"];
    with(&[
        Migration { version: ours + 1, name: "later", oldest: ours, steps: ADDS },
        Migration { version: ours + 2, name: "later still", oldest: ours + 1, steps },
    ])
}

fn with(more: &[Migration]) -> &'static [Migration] {
    Box::leak([MIGRATIONS, more].concat().into_boxed_slice())
}

/// The older program works before, during and after the migration, and can start again; two releases apart, it is
/// refused. `open` returns an engine on the same database each time.
pub async fn neighbors<F: Future<Output = Shared>>(open: impl Fn(&'static [Migration]) -> F) -> Done {
    let migrate = async |engine: &Shared| engine.migrate().await.map_err(|why| why.0);
    let older = open(MIGRATIONS).await;
    migrate(&older).await?;
    commit(&older, realms::ensure(&RealmId("main".into()), "http://a", Time(1))).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut busy = tokio::task::JoinSet::new();
    for node in 0..3 {
        let (engine, stop) = (Arc::clone(&older), Arc::clone(&stop));
        busy.spawn(async move { work(&engine, node, &stop).await });
    }
    let newer = open(next()).await;
    let brought = migrate(&newer).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    stop.store(true, SeqCst);
    for rounds in busy.join_all().await {
        same(rounds? > 2, true, "the older program has done something")?;
    }
    brought?;
    let again = open(MIGRATIONS).await;
    migrate(&again).await.map_err(|why| format!("the older program did not start: {why}"))?;
    for (node, engine) in [(10, &again), (11, &newer), (12, &older)] {
        round(engine, node, 0).await?;
    }
    migrate(&open(after_next()).await).await?;
    migrate(&newer).await?;
    let ours = newest(MIGRATIONS);
    let told = format!("schema {}, for programs of schema {} and later; this program knows {ours}", ours + 2, ours + 1);
    match again.migrate().await {
        Err(why) if why.0.contains(&told) => Ok(()),
        other => Err(format!("two releases apart: {other:?}")),
    }
}

/// Does repeatedly what a node does; returns how often.
async fn work(engine: &Shared, node: u8, stop: &AtomicBool) -> Result<usize, String> {
    let mut rounds = 0;
    while !stop.load(SeqCst) {
        round(engine, node, rounds).await.map_err(|why| format!("round {rounds}: {why}"))?;
        rounds += 1;
    }
    Ok(rounds)
}

/// A user is added, signs in, gets tokens and refreshes them, and signs out.
async fn round(engine: &Shared, node: u8, number: usize) -> Done {
    let realm = RealmId("main".into());
    let (name, at) = (format!("{node}-{number}"), Time(5_000));
    let id = SessionId(ordered(&name, at));
    let family_id = FamilyId(ordered(&name, at));
    let batches = [
        vec![Change::AddUser(Box::new(user(&name)))],
        vec![
            Change::StartSession(Box::new(session(&name, &name, at))),
            Change::StartFamily(Box::new(family(&name, &name, at))),
        ],
        vec![Change::RotateFamily { family: family_id.clone(), rotation: rotation(&name, 1) }],
        vec![Change::EndSession { session: id.clone(), at }, Change::RevokeFamily { family: family_id.clone(), at }],
    ];
    for batch in batches {
        commit(engine, changes::batch(&realm, &batch, at, &Fresh::new([node; 32]))).await?;
    }
    let asked = (sessions::ForEnding(Some(&id)), families::ForEnding(&family_id), realms::Epoch);
    let (session, family, epoch) = ask(&**engine, &realm, asked).await.map_err(|why| why.0)?;
    same(session.is_some_and(|(session, _)| session.ended_at == Some(at)), true, "the session has ended")?;
    same(family.is_some_and(|found| found.family.revoked_at == Some(at)), true, "the family was revoked")?;
    same(epoch, Some(1), "the epoch")?;
    let bounds = Bounds { now: Time(2), devices: Time(1), sessions: Time(1), families: Time(1), strangers: Time(1) };
    commit(engine, sweep::step(&realm, &bounds, 10)).await
}
