//! What every engine has to do, as checks that run against any of them. An engine is complete when all of them pass.
//!
//! Open the engine on an empty database with [`MIGRATIONS`], then call [`run`].

mod addresses;
mod batches;
mod copy;
pub mod everything;
pub mod forerunner;
pub mod neighbors;
mod races;
mod raising;
mod replays;
pub mod sealing;
pub mod sweeping;
mod values;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::engine::{CommitError, Engine, Must, Read, Row, Sql, Value, Write};
use crate::schema::Migration;

pub use raising::raising;
pub use replays::replays;
pub use sealing::sealing;
pub use sweeping::sweeping;

/// The engine under test.
pub type Shared = Arc<dyn Engine>;

/// The result of a check: an error says what was wrong.
type Done = Result<(), String>;

/// One requirement for every engine.
#[derive(Clone, Copy)]
pub struct Check {
    /// The requirement, as a sentence.
    pub name: &'static str,
    run: fn(Shared) -> Pin<Box<dyn Future<Output = Done> + Send>>,
}

/// Makes a [`Check`] of each function, named after it.
macro_rules! named {
    ($($name:ident),+ $(,)?) => {
        &[$($crate::conformance::Check { name: stringify!($name), run: |engine| Box::pin($name(engine)) }),+]
    };
}
use named;

/// The tables that the checks use.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "notes",
        oldest: 1,
        steps: &["CREATE TABLE note (realm text NOT NULL, name text NOT NULL, body text, number bigint, bytes blob, \
             PRIMARY KEY (realm, name)) WITHOUT ROWID"],
    },
    Migration {
        version: 2,
        name: "labels on things",
        oldest: 2,
        steps: &[
            "CREATE TABLE label (id text NOT NULL PRIMARY KEY, title text NOT NULL) WITHOUT ROWID",
            "CREATE UNIQUE INDEX label_title ON label (title)",
            "CREATE TABLE thing (id text NOT NULL PRIMARY KEY, label text NOT NULL REFERENCES label (id)) WITHOUT ROWID",
            "CREATE INDEX thing_label ON thing (label)",
        ],
    },
];

/// Every check.
pub fn checks() -> impl Iterator<Item = Check> {
    [batches::CHECKS, races::CHECKS, values::CHECKS].into_iter().flatten().copied()
}

/// Migrates the schema, runs every check, and returns the failures: the check's name and what was wrong.
pub async fn run(engine: Shared) -> Vec<(&'static str, String)> {
    if let Err(why) = engine.migrate().await {
        return vec![("migrate", why.0)];
    }
    let mut failures = Vec::new();
    for check in checks() {
        if let Err(why) = (check.run)(Arc::clone(&engine)).await {
            failures.push((check.name, why));
        }
    }
    failures
}

/// Three rows of a typical size: what one sign-in writes. Different values of `number` do not collide.
pub fn three_rows(number: i64) -> Vec<Write> {
    ["code", "session", "event"].map(|name| put("bench", &format!("{number}-{name}"), &"x".repeat(64), number)).into()
}

/// Five point reads of rows that [`three_rows`] wrote for this number and the four before it.
pub fn five_reads(number: i64) -> Vec<Read> {
    (number - 4..=number).map(|one| read(GET, &["bench", &format!("{one}-session")])).collect()
}

/// Reads of what [`three_rows`] wrote for this number: one row each if the batch was committed, otherwise none.
pub fn three_reads(number: i64) -> Vec<Read> {
    ["code", "session", "event"].map(|name| read(GET, &["bench", &format!("{number}-{name}")])).into()
}

const PUT: Sql = Sql::fixed("INSERT INTO note (realm, name, body, number) VALUES (?, ?, ?, ?)");
const GET: Sql = Sql::fixed("SELECT body, number, bytes FROM note WHERE realm = ? AND name = ?");
const NAMES: Sql = Sql::fixed("SELECT name FROM note WHERE realm = ? ORDER BY name");
const ADD: Sql = Sql::fixed("UPDATE note SET number = number + 1 WHERE realm = ? AND name = ?");

fn texts(args: &[&str]) -> Vec<Value> {
    args.iter().map(|&text| Value::Text(text.to_owned())).collect()
}

fn read(sql: Sql, args: &[&str]) -> Read {
    Read { sql, args: texts(args) }
}

fn write(sql: Sql, args: &[&str], must: Must) -> Write {
    Write { sql, args: texts(args), must }
}

/// Inserts a note, whose key must not exist.
fn put(realm: &str, name: &str, body: &str, number: i64) -> Write {
    let mut args = texts(&[realm, name, body]);
    args.push(Value::Int(number));
    Write { sql: PUT, args, must: Must::Touch(1) }
}

/// The rows of one read.
async fn rows(engine: &Shared, read: Read) -> Result<Vec<Row>, String> {
    let answers = engine.fetch(&[read]).await.map_err(|why| why.0)?;
    answers.into_iter().next().ok_or_else(|| "one read has one answer".to_owned())
}

/// The names of a realm's notes, in the engine's order.
async fn names(engine: &Shared, realm: &str) -> Result<Vec<Row>, String> {
    rows(engine, read(NAMES, &[realm])).await
}

/// The number of one note.
async fn number(engine: &Shared, realm: &str, name: &str) -> Result<Value, String> {
    let found = rows(engine, read(GET, &[realm, name])).await?;
    found.into_iter().next().and_then(|row| row.into_iter().nth(1)).ok_or_else(|| format!("{name} is not there"))
}

/// Commits a batch, which must succeed.
async fn stands(engine: &Shared, writes: Vec<Write>) -> Result<Vec<u64>, String> {
    engine.commit(writes).await.map_err(|error| format!("a batch did not stand: {error:?}"))
}

/// Starts all batches before any is answered.
async fn together(engine: &Shared, batches: Vec<Vec<Write>>) -> Result<Vec<Result<Vec<u64>, CommitError>>, String> {
    let mut running = tokio::task::JoinSet::new();
    for (at, batch) in batches.into_iter().enumerate() {
        let engine = Arc::clone(engine);
        running.spawn(async move { (at, engine.commit(batch).await) });
    }
    let mut answers = running.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// Checks that the found value is the wanted one.
fn same<T: PartialEq + Debug>(found: T, wanted: T, what: &str) -> Done {
    if found == wanted { Ok(()) } else { Err(format!("{what}: found {found:?}, wanted {wanted:?}")) }
}
