//! Expired rows go in idle moments, and their removal gives way to requests.

use super::lines::Lines;
use super::{NOW, database, hashing_node, node};
use crate::App;
use crate::audit::Terms;
use crate::clock::Clock;
use crate::complaint::Complaints;
use crate::jobs::Upkeep;
use crate::keyring::ALGS;
use hasher::{Key, KeyId, Keys, Settings as Hashing};
use rules::Span;
use rules::fresh::first_id;
use rules::jose::{Alg, Typ};
use rules::keys::Stage;
use rusqlite::Connection;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use store::engine::{Answer, Around, Engine, Read, Row, Unavailable};
use store::tables::sweep::{Bounds, step};
use zeroize::Zeroizing;

/// Codes of the realm, each of its age, of which every tenth was redeemed.
async fn issue_codes(engine: &dyn Engine, ages: impl Iterator<Item = Span>) {
    let code = |(number, age): (usize, Span)| {
        let (issued, redeemed) = (NOW - age, if number % 10 == 0 { "1" } else { "NULL" });
        let family = format!("{}-{number:05}", first_id(issued));
        let expires = (issued + Span::minutes(1)).0;
        format!(
            "INSERT INTO codes (realm, family, handle, client_id, user_id, session_id, redirect_uri, granted, expires, \
             redeemed_at) VALUES ('main', '{family}', '', 'shop', 'ada', 's', '', '{{}}', {expires}, {redeemed})"
        )
    };
    engine.alter(ages.enumerate().map(code).collect()).await.unwrap();
}

#[tokio::test]
async fn an_expired_code_that_nobody_redeemed_goes_and_every_other_stays() {
    // Red without sweep_unused_codes in jobs.rs, or where it does not go on after a stretch.
    let folder = tempfile::tempdir().unwrap();
    let (engine, clock) = (database(folder.path()).await, Clock::fixed(NOW));
    let app = node(engine.clone(), clock.clone()).await;
    issue_codes(&*engine, (0..2_000).map(|_| Span::hours(1))).await;
    issue_codes(&*engine, (0..30).map(Span::minutes)).await;
    let old = 18; // of 30 minutes, those that are older than 11: the minute of a code, and ten
    let redeemed_of_old = 1;
    assert_eq!(app.sweep(&|| false).await.unwrap(), 1_800 + old - redeemed_of_old);
    assert_eq!(app.sweep(&|| false).await.unwrap(), 0);
    clock.advance(Span::hours(1));
    assert_eq!(app.sweep(&|| true).await.unwrap(), 30 - 3 - (old - redeemed_of_old), "all that were young");
}

/// An engine that does not get to the end of all accounts.
struct Slow(Arc<dyn Engine>);

/// Whether these reads look at the hashes of all accounts.
fn looks_at_hashes(reads: &[Read]) -> bool {
    reads.iter().any(|read| read.sql.text().contains("SUBSTR(password"))
}

impl Around for Slow {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        match looks_at_hashes(reads) {
            true => Box::pin(async { Err(Unavailable("it took too long".to_owned())) }),
            false => self.0.fetch(reads),
        }
    }
}

#[tokio::test]
async fn where_password_hashes_cannot_be_looked_at_everything_else_goes_on() {
    // Red where keep_up_once in jobs.rs ends there.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(Arc::new(Slow(engine.clone())), Clock::fixed(NOW)).await;
    let expired = (NOW - Span::minutes(1)).0;
    let token = format!("INSERT INTO revoked_tokens (realm, jti, expires) VALUES ('main', 'token', {expired})");
    engine.alter(vec![token]).await.unwrap();
    assert!(app.look_at_hashes().await.is_err());
    app.keep_up_once(&Upkeep { keys: Span::days(90) }, &|| false, &mut Complaints::default()).await;
    assert_eq!(app.sweep(&|| false).await.unwrap(), 0, "nothing was left");
}

/// An engine that answers no read with this text in it.
struct Without(Arc<dyn Engine>, Mutex<&'static str>);

impl Around for Without {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        let text = *self.1.lock().unwrap();
        match !text.is_empty() && reads.iter().any(|read| read.sql.text().contains(text)) {
            true => Box::pin(async { Err(Unavailable("it is away".to_owned())) }),
            false => self.0.fetch(reads),
        }
    }
}

#[tokio::test]
async fn a_trouble_that_lasts_is_told_once_whatever_goes_well_beside_it() {
    // Red where the jobs share one complaint, which one job ends for another: every round would say it again.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Without(database(folder.path()).await, Mutex::default()));
    let clock = Clock::fixed(NOW);
    let app = node(engine.clone(), clock.clone()).await;
    app.open_books(Terms { ceiling: Some(1_000_000), ..Terms::default() });
    let (lines, _kept) = Lines::kept();
    let mut complaints = Complaints::default();
    let upkeep = Upkeep { keys: Span::days(90) };
    const KEYS: [&str; 2] =
        ["signing keys could not be rotated", "private halves of old signing keys could not be destroyed"];
    let jobs = [
        ("SUBSTR(password", &["password hashes could not be checked"][..]),
        ("FROM codes", &["expired rows could not be removed"]),
        ("FROM nodes", &["nodes that are gone could not be removed"]),
        ("COUNT(*), MIN(id) FROM events", &["audit lines beyond the ceiling could not be removed"]),
        ("FROM signing_keys", &KEYS),
    ];
    // Each alone, then each again, since it was over meanwhile; then all at once.
    for (away, what) in jobs.iter().chain(&jobs) {
        // Hashes are looked at once an hour.
        clock.advance(Span::hours(2));
        *engine.1.lock().unwrap() = away;
        for _ in 0..3 {
            app.keep_up_once(&upkeep, &|| false, &mut complaints).await;
        }
        let told = lines.taken();
        let is_all = told.len() == what.len() && told.iter().zip(*what).all(|(told, what)| told.contains(what));
        assert!(is_all, "{away}: {told:?}");
    }
    clock.advance(Span::hours(2));
    *engine.1.lock().unwrap() = "SELECT";
    for _ in 0..3 {
        app.keep_up_once(&upkeep, &|| false, &mut complaints).await;
    }
    assert_eq!(lines.taken().len(), jobs.len() - 1, "those of the keys were told of before");
}

/// An engine in which, during a look at all accounts, a user signs in whose unverifiable hash was passed already.
struct Passed(Arc<dyn Engine>, OnceLock<Arc<App>>);

impl Around for Passed {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        if let (true, Some(app)) = (looks_at_hashes(reads), self.1.get()) {
            app.hashes.met();
        }
        self.0.fetch(reads)
    }
}

#[tokio::test]
async fn whose_hash_came_behind_the_look_is_not_forgotten_at_its_end() {
    // Red if kinds_of_hashes in passwords.rs, at its end, forgot the sign-ins that came meanwhile.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Passed(database(folder.path()).await, OnceLock::new()));
    let app = Arc::new(node(engine.clone(), Clock::fixed(NOW)).await);
    app.hashes.met();
    assert!(app.met_unverifiable());
    app.kinds_of_hashes().await.unwrap();
    assert!(!app.met_unverifiable(), "the look would have found it");
    assert!(engine.1.set(Arc::clone(&app)).is_ok());
    app.kinds_of_hashes().await.unwrap();
    assert!(app.met_unverifiable());
}

#[tokio::test]
async fn what_is_remembered_is_not_forgotten_for_a_clock_that_leaps() {
    // Red without `steady` in jobs.rs, sweep_for: a revoked token and a used assertion would be good again.
    let folder = tempfile::tempdir().unwrap();
    let (engine, clock) = (database(folder.path()).await, Clock::fixed(NOW));
    let app = node(engine.clone(), clock.clone()).await;
    let lasts = (NOW + Span::hours(1)).0;
    let token = format!("INSERT INTO revoked_tokens (realm, jti, expires) VALUES ('main', 'token', {lasts})");
    engine.alter(vec![token]).await.unwrap();
    clock.set(Span::days(1));
    assert_eq!(app.sweep(&|| false).await.unwrap(), 0);
    clock.set(Span::days(-1));
    clock.advance(Span::hours(1));
    assert_eq!(app.sweep(&|| false).await.unwrap(), 1, "its time has come");
}

#[tokio::test]
async fn a_clock_that_leaps_or_begins_behind_brings_in_no_keys() {
    // Red in admin/keys.rs, rotate_aged_keys, without `steady`, where that judges what is believable, and without
    // has_settled.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let (clock, behind) = (Clock::fixed(NOW), Clock::fixed(NOW - Span::days(300)));
    let (right, wrong) = (node(engine.clone(), clock.clone()).await, node(engine.clone(), behind.clone()).await);
    let age = Span::days(90);
    clock.set(Span::days(100));
    assert_eq!(right.rotate_aged_keys(age).await.unwrap(), [], "it leaps");
    clock.set(Span::days(-100));
    assert_eq!(wrong.rotate_aged_keys(age).await.unwrap(), [], "all keys are of a time to come");
    behind.set(Span::days(300));
    assert_eq!(wrong.rotate_aged_keys(age).await.unwrap(), [], "it was set right");
    behind.set(Span::days(-300));
    behind.advance(Span::hours(1));
    assert_eq!(wrong.rotate_aged_keys(age).await.unwrap().len(), 3, "it stays there: keys of a clock that was ahead");
    clock.advance(Span::days(100));
    assert_eq!(right.rotate_aged_keys(age).await.unwrap().len(), 3, "they are old");
}

#[tokio::test]
async fn a_hash_of_another_kind_is_found_wherever_it_is_among_many_accounts() {
    // Red where only one window is looked at, or where each window ends at the last of the other hashes in it.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let ours = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    let accounts = format!(
        "INSERT INTO users (realm, id, username, email_verified, profile, password, role, created, updated) \
         WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 5000) \
         SELECT 'main', 'account-' || (at + 10000), 'name-' || at, 0, '{{}}', \
         CASE WHEN at % 10 = 0 THEN NULL ELSE '{ours}' END, 'member', 0, 0 FROM many"
    );
    let other = "UPDATE users SET password = '$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq'";
    engine.alter(vec![accounts]).await.unwrap();
    let app = node(engine.clone(), Clock::fixed(NOW)).await;
    let kinds = async || app.kinds_of_hashes().await.unwrap();
    let before = kinds().await;
    for at in [10_001, 12_000, 12_001, 15_000] {
        let restored = format!("UPDATE users SET password = '{ours}' WHERE id = 'account-{at}'");
        engine.alter(vec![format!("{other} WHERE id = 'account-{at}'")]).await.unwrap();
        assert_eq!(kinds().await.len(), before.len() + 1, "{at}");
        engine.alter(vec![restored]).await.unwrap();
        assert_eq!(kinds().await, before);
    }
}

/// The keys of these names, of which a letter tells the role.
fn keys(names: &[&str]) -> Keys {
    let key = |name: &&str| {
        let (id, mut bytes) = (KeyId::new(name.as_bytes()).unwrap(), Zeroizing::new([0_u8; 32]));
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        if name.starts_with('b') { Key::binding(id, bytes) } else { Key::pepper(id, bytes) }
    };
    Keys::new(names.iter().map(key)).unwrap()
}

#[tokio::test]
async fn a_hash_of_todays_cost_is_unverifiable_without_its_key_and_of_todays_kind_with_it() {
    // Red without the ids in hasher/policy.rs, beginnings: a hash whose key is missing was never asked for, and the
    // look that passed it ended the warning of those who had signed in.
    let (cost, rest) = ("m=19456,t=2,p=1", "c29tZXNhbHRzb21lc2FsdA$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4");
    // cDE is p1, cDA is p0, YjE is b1, YjA is b0.
    let peppered = |pepper: &str| format!("$argon2id$v=19${cost},keyid={pepper}${rest}");
    let bound = |pepper: &str, binding: &str| format!("$pv1${cost},keyid={pepper},bindid={binding}${rest}");
    for (names, hash, verifiable) in [
        (&[] as &[&str], peppered("cDE"), false),
        (&["p1"], peppered("cDE"), true),
        (&["p1"], peppered("cDA"), false),
        (&["p1", "p0"], peppered("cDA"), true),
        (&["p1"], bound("cDE", "YjE"), false),
        (&["p1", "b1"], bound("cDE", "YjE"), true),
        (&["p1", "b1"], bound("cDE", "YjA"), false),
        (&["p1", "b1"], bound("cDA", "YjE"), false),
        (&["p1", "p0", "b1", "b0"], bound("cDA", "YjA"), true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let engine = database(folder.path()).await;
        let hashing = Hashing { keys: keys(names), ..Hashing::default() };
        let app = hashing_node(engine.clone(), Clock::fixed(NOW), hashing).await;
        let of_today = app.kinds_of_hashes().await.unwrap();
        let account = format!(
            "INSERT INTO users (realm, id, username, email_verified, profile, password, role, created, updated) \
             VALUES ('main', 'ada', 'ada', 0, '{{}}', '{hash}', 'member', 0, 0)"
        );
        engine.alter(vec![account]).await.unwrap();
        app.hashes.met();
        // Nothing is evened out for either.
        assert_eq!(app.kinds_of_hashes().await.unwrap(), of_today, "{names:?} {hash}");
        assert_eq!(app.unverifiable_hashes(), usize::from(!verifiable), "{names:?} {hash}");
    }
}

#[tokio::test]
async fn a_sweep_takes_smaller_steps_while_requests_wait_and_comes_to_its_end_either_way() {
    // Red without `busy` in jobs.rs, sweep_for.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(engine.clone(), Clock::fixed(NOW)).await;
    for (busy, steps) in [(false, 1), (true, 3)] {
        let expired = (NOW - Span::minutes(1)).0;
        let fifty = format!(
            "INSERT INTO revoked_tokens (realm, jti, expires) \
             WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 50) \
             SELECT 'main', 'token-' || at, {expired} FROM many"
        );
        engine.alter(vec![fifty]).await.unwrap();
        let asked = AtomicUsize::new(0);
        let waits = || {
            asked.fetch_add(1, Relaxed);
            busy
        };
        assert_eq!(app.sweep(&waits).await.unwrap(), 50);
        assert_eq!(asked.load(Relaxed), steps, "busy: {busy}");
    }
}

/// A thousand rows of a table, each with keys of its own, as old as they can be.
fn a_thousand(file: &Path, table: &str) -> String {
    let connection = Connection::open(file).unwrap();
    let mut columns = connection.prepare("SELECT name, type FROM pragma_table_info(?)").unwrap();
    let of = columns.query_map([table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let value = |(name, kind): (String, String)| match (name.as_str(), kind.to_ascii_lowercase().as_str()) {
        ("realm", _) => (name, "'main'"),
        (_, "bigint") => (name, "at"),
        (_, "blob") => (name, "CAST(at AS BLOB)"),
        _ => (name, "printf('%026d', at)"),
    };
    let (names, values): (Vec<_>, Vec<_>) = of.map(Result::unwrap).map(value).unzip();
    format!(
        "INSERT INTO {table} ({}) WITH RECURSIVE many (at) AS \
         (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 1000) SELECT {} FROM many",
        names.join(", "),
        values.join(", ")
    )
}

#[tokio::test]
async fn a_sweep_leaves_nothing_that_has_expired_in_any_table() {
    // Red with one minute of strangers or rejections in each step of store/tables/sweep.rs.
    let folder = tempfile::tempdir().unwrap();
    let engine = database(folder.path()).await;
    let app = node(engine.clone(), Clock::fixed(NOW)).await;
    let bounds = Bounds { now: NOW, devices: NOW, sessions: NOW, families: NOW, strangers: NOW };
    let file = folder.path().join("facts.db");
    for write in step(&"main".into(), &bounds, 1) {
        let table = write.sql.text().split(' ').nth(2).unwrap().to_owned();
        engine.alter(vec![a_thousand(&file, &table)]).await.unwrap();
        assert_eq!(app.sweep(&|| false).await.unwrap(), 1000, "{table}");
    }
}

#[tokio::test]
async fn a_key_that_is_past_cannot_sign_and_what_it_signed_still_names_its_user() {
    // Red without `destroy_past_keys` in jobs.rs, or without `past` in keyring.rs.
    let folder = tempfile::tempdir().unwrap();
    let (engine, clock) = (database(folder.path()).await, Clock::fixed(NOW));
    let app = node(engine.clone(), clock.clone()).await;
    let mut tokens = Vec::new();
    let claims = json!({
        "iss": "http://localhost", "sub": "ada", "aud": "shop",
        "exp": NOW.seconds() + 60, "iat": NOW.seconds(),
    });
    for alg in ALGS {
        let keys = app.keys(app.epoch().await.unwrap()).await.unwrap();
        tokens.push(keys.signer(alg, NOW).unwrap().sign(Typ::Jwt, &claims).unwrap());
    }
    app.rotate_keys(true).await.unwrap();
    let upkeep = Upkeep { keys: Span::days(90) };
    app.keep_up_once(&upkeep, &|| false, &mut Complaints::default()).await;
    let destroyed = async || {
        let keys = app.signing_keys().await.unwrap().into_iter();
        keys.filter(|(key, _)| key.sealed.is_empty()).map(|(_, stage)| stage).collect::<Vec<_>>()
    };
    assert_eq!(destroyed().await, []);
    clock.advance(Span::days(10));
    app.keep_up_once(&upkeep, &|| false, &mut Complaints::default()).await;
    assert_eq!(destroyed().await, [Stage::Retired; 3]);
    for again in [app, node(engine.clone(), clock.clone()).await] {
        let epoch = again.epoch().await.unwrap();
        for token in &tokens {
            assert!(again.hint(token, epoch).await.unwrap().is_some(), "{token}");
        }
        let keys = again.keys(epoch).await.unwrap();
        assert_eq!(keys.public(clock.now()).keys.len(), 3, "the others");
    }
    // A program that does not know such keys passes them over.
    let connection = Connection::open(folder.path().join("facts.db")).unwrap();
    let mut algs = connection.prepare("SELECT alg FROM signing_keys WHERE length(sealed) = 0").unwrap();
    let algs: Vec<String> = algs.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(algs.len() == 3 && algs.iter().all(|alg| Alg::parse(alg).is_none()), "{algs:?}");
}
