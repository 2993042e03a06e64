//! What Portiere needs from a database, and nothing more: it answers reads and runs closed batches of writes.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use crate::dialect::Dialect;

/// The future that an engine method returns.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// The text of a statement, joined only from static pieces inside this crate: values never become text. Placeholders
/// are `?`, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sql(Cow<'static, str>);

impl Sql {
    /// A statement known at compile time.
    pub(crate) const fn fixed(text: &'static str) -> Self {
        Sql(Cow::Borrowed(text))
    }
    /// A statement that is joined from static pieces.
    pub(crate) fn joined(pieces: &[&'static str]) -> Self {
        Sql(Cow::Owned(pieces.concat()))
    }
    /// A statement with names from the database's own catalogue, which consist only of letters, digits and `_`.
    pub(crate) fn of_catalogue(text: String) -> Self {
        Sql(Cow::Owned(text))
    }
    /// The text, if it is known at compile time.
    #[inline]
    pub(crate) fn known(&self) -> Option<&'static str> {
        match self.0 {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }
    /// The text with `?` placeholders.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// What a column can hold. Booleans are stored as 0 and 1, times as milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A 64-bit integer.
    Int(i64),
    /// UTF-8 without NUL.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// One row, in the order of the selected columns.
pub type Row = Vec<Value>;

/// The largest number of statements in a batch that is sent at once: MariaDB is sent a longer batch statement by
/// statement, and MySQL every batch, all within the time that a batch has. What can be done in steps is done in steps
/// of at most so many.
pub const SENT_AT_ONCE: usize = 40;

/// One query.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// A SELECT.
    pub sql: Sql,
    /// One value for each placeholder.
    pub args: Vec<Value>,
}

/// One statement of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// An INSERT, UPDATE, DELETE, or (with [`Must::Find`]) a SELECT of one column whose rows are counted.
    pub sql: Sql,
    /// One value for each placeholder.
    pub args: Vec<Value>,
    /// What has to be true for the batch to commit.
    pub must: Must,
}

/// What has to be true of a statement for its batch to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// The statement touches exactly this many rows.
    Touch(u64),
    /// A locking read inside the batch that finds exactly this many rows.
    Find(u64),
    /// Any number of rows is fine.
    Any,
}

/// Why a guard did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A [`Must`] did not hold.
    Guard,
    /// A row with the same unique key already exists.
    Unique,
    /// The row that a foreign key refers to does not exist.
    Foreign,
}

/// Why a batch did not commit. With the first two variants, nothing of it took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// The guard of statement `at` (from 0) did not hold: the data has changed, so fetch again and decide again.
    Conflict {
        /// Which statement of the batch.
        at: usize,
        /// What did not hold.
        why: Broken,
    },
    /// The database cannot be written to at present.
    Unavailable(String),
    /// The connection was lost during COMMIT: the batch may or may not have been committed. Never retried blindly.
    Unknown(String),
}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Conflict { at, why } => write!(out, "statement {at} conflicted: {why:?}"),
            CommitError::Unavailable(why) => out.write_str(why),
            CommitError::Unknown(why) => write!(out, "the outcome of the commit is unknown: {why}"),
        }
    }
}

/// The database cannot answer at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// How safe an acknowledged commit is on this engine as configured (shown on the readiness page).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// No acknowledged commit is lost, even when a node is lost.
    ZeroLoss,
    /// No acknowledged commit is lost at a process kill or power loss, as long as the disk survives.
    DurableNode,
    /// A bounded loss, which has a name.
    Bounded,
}

/// The state of an engine.
#[derive(Clone, Debug)]
pub struct Health {
    /// How safe an acknowledged commit is.
    pub durability: Durability,
    /// Whether batches are accepted; if not, the reason.
    pub writable: Result<(), String>,
    /// The milliseconds that recent commits took to reach the disk, as a moving average.
    pub commit_ms: f64,
}

/// Which server answers, as far as the connections to it have shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    /// Grows whenever a different server answers, or the same cluster in a different state, before any answer of that
    /// server is returned.
    pub generation: u64,
    /// Tells this server from others; the same across restarts of either side.
    pub identity: String,
    /// How safe a commit is that this server has acknowledged.
    pub durability: Durability,
    /// The identity of the previous server, if this server has everything that the previous one acknowledged.
    pub came_from: Option<String>,
}

/// A database that stores Portiere's data. One conformance suite holds for all engines.
pub trait Engine: Send + Sync {
    /// Answers every read, in one round trip where the engine can. The reads share no snapshot: a fact that must still
    /// hold when a batch is written is guarded at [`Engine::commit`].
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable>;
    /// Runs every statement in order, or none of them, and returns how many rows each touched (or found). The answer
    /// comes only after COMMIT. Dropping the future does not stop a batch that was already handed over.
    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError>;
    /// Like [`Engine::commit`], but only on the server of this [generation](Answering::generation): if another server
    /// answers by now, it is not written to and the batch is unavailable.
    fn commit_within(&self, _generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.commit(writes)
    }
    /// Brings the schema to this version: locked, idempotent step by step, safe to interrupt.
    fn migrate(&self) -> Answer<'_, (), Unavailable>;
    /// Reports the state of the engine.
    fn health(&self) -> Answer<'_, Health, Unavailable>;
    /// Returns which server answers; `None` for an engine that keeps the data in a local file.
    fn answering(&self) -> Option<Answering> {
        None
    }
    /// Returns [`Answering::generation`]; cheap enough to call often.
    fn generation(&self) -> u64 {
        0
    }
    /// Makes an online copy of everything in a new file.
    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable>;
    /// The dialect that the engine speaks.
    fn dialect(&self) -> Dialect;
    /// Runs statements of the engine's own dialect that change the schema, in order, in one transaction where the
    /// engine can. Each statement can safely be run again after an interruption.
    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable>;
    /// What an operator should know even though batches are accepted.
    fn warning(&self) -> Option<String> {
        None
    }
    /// The file that holds the database, if it is a file.
    fn file(&self) -> Option<&Path> {
        None
    }
}

/// An engine that wraps another one and does what the inner engine does, except for the methods that it overrides.
pub trait Around: Send + Sync {
    /// The inner engine.
    fn inside(&self) -> &dyn Engine;
    /// [`Engine::fetch`].
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        self.inside().fetch(reads)
    }
    /// [`Engine::commit`].
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.inside().commit(writes)
    }
    /// [`Engine::commit_within`].
    fn commit_within_around(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        if self.generation_around() != generation {
            return Box::pin(std::future::ready(Err(CommitError::Unavailable(crate::remote::REPLACED.to_owned()))));
        }
        self.commit_around(writes)
    }
    /// [`Engine::migrate`].
    fn migrate_around(&self) -> Answer<'_, (), Unavailable> {
        self.inside().migrate()
    }
    /// [`Engine::alter`].
    fn alter_around(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        self.inside().alter(statements)
    }
    /// [`Engine::generation`].
    fn generation_around(&self) -> u64 {
        self.inside().generation()
    }
    /// [`Engine::health`].
    fn health_around(&self) -> Answer<'_, Health, Unavailable> {
        self.inside().health()
    }
}

impl<T: Around> Engine for T {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        self.fetch_around(reads)
    }
    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.commit_around(writes)
    }
    fn commit_within(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.commit_within_around(generation, writes)
    }
    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        self.migrate_around()
    }
    fn health(&self) -> Answer<'_, Health, Unavailable> {
        self.health_around()
    }
    fn warning(&self) -> Option<String> {
        self.inside().warning()
    }
    fn answering(&self) -> Option<Answering> {
        self.inside().answering()
    }
    fn generation(&self) -> u64 {
        self.generation_around()
    }
    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable> {
        self.inside().backup(file)
    }
    fn dialect(&self) -> Dialect {
        self.inside().dialect()
    }
    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        self.alter_around(statements)
    }
    fn file(&self) -> Option<&Path> {
        self.inside().file()
    }
}
