//! What a database must do for us, and nothing else: answer reads, run closed batches.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use crate::dialect::Dialect;

/// A future that an engine answers with.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A statement's text. Joined only from static pieces inside this crate; values never become text.
/// Placeholders are `?`, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sql(Cow<'static, str>);

impl Sql {
    /// A statement known at compile time.
    pub(crate) const fn fixed(text: &'static str) -> Self {
        Sql(Cow::Borrowed(text))
    }
    /// A statement joined from static pieces.
    pub(crate) fn joined(pieces: &[&'static str]) -> Self {
        Sql(Cow::Owned(pieces.concat()))
    }
    /// A statement with names out of the database's own catalogue, which have nothing but letters, digits and `_`.
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

/// What a column can hold. Booleans are 0 and 1, times are milliseconds since 1970.
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

/// One question.
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
    /// What has to be true for the batch to stand.
    pub must: Must,
}

/// What has to be true of a statement for its batch to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// It matches exactly so many rows.
    Touch(u64),
    /// A locking read inside the batch that finds exactly so many rows.
    Find(u64),
    /// Any number will do.
    Any,
}

/// Why a guard did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A [`Must`] did not hold.
    Guard,
    /// A unique key was already there.
    Unique,
    /// A foreign key was not there.
    Foreign,
}

/// Why a batch did not stand. In the first two cases nothing of it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// The statement numbered `at` (from 0) did not hold: facts have changed; fetch and decide again.
    Conflict {
        /// Which statement of the batch.
        at: usize,
        /// What did not hold.
        why: Broken,
    },
    /// The database cannot be written at present.
    Unavailable(String),
    /// The connection was lost inside COMMIT: it may have happened or not. Never retried blindly.
    Unknown(String),
}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Conflict { at, why } => write!(out, "statement {at} did not hold: {why:?}"),
            CommitError::Unavailable(why) => out.write_str(why),
            CommitError::Unknown(why) => write!(out, "whether it was committed is not known: {why}"),
        }
    }
}

/// The database cannot answer at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// How much an acknowledgement is worth on this engine as configured (shown on the readiness page).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing acknowledged is lost, even when a node is.
    ZeroLoss,
    /// Nothing acknowledged is lost over process kill or power loss while the disk survives.
    DurableNode,
    /// Bounded loss, by name.
    Bounded,
}

/// The state of an engine.
#[derive(Clone, Debug)]
pub struct Health {
    /// What an acknowledgement is worth.
    pub durability: Durability,
    /// Whether batches are accepted; otherwise why not.
    pub writable: Result<(), String>,
    /// Milliseconds that recent commits took to reach the disk, as a moving average.
    pub commit_ms: f64,
}

/// Which server answers, as far as the connections to it have told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    /// Grows whenever another server answers than before, or another state of the same cluster, before any answer of it
    /// is given.
    pub generation: u64,
    /// What tells it from others, over restarts of either side.
    pub identity: String,
    /// What an acknowledgement of it is worth.
    pub durability: Durability,
    /// The identity of the server before, where this one has everything that it had acknowledged.
    pub came_from: Option<String>,
}

/// A database that keeps facts. One conformance suite holds for all of them.
pub trait Engine: Send + Sync {
    /// Answers every read, in one round trip where the engine can. Promises no shared snapshot: a fact that must
    /// still hold is guarded at [`Engine::commit`].
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable>;
    /// Runs every statement in order, or none; answers how many rows each touched (or found). The answer comes only
    /// after COMMIT, and dropping the future does not stop a batch that was handed over.
    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError>;
    /// The same on the server of this [generation](Answering::generation) alone: one that answers since is not written to,
    /// and the batch is unavailable.
    fn commit_within(&self, _generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.commit(writes)
    }
    /// Brings the schema to this version: locked, idempotent step by step, safe to interrupt.
    fn migrate(&self) -> Answer<'_, (), Unavailable>;
    /// How it stands.
    fn health(&self) -> Answer<'_, Health, Unavailable>;
    /// Which server answers; `None` where the facts are in a file of ours.
    fn answering(&self) -> Option<Answering> {
        None
    }
    /// [`Answering::generation`], for asking often.
    fn generation(&self) -> u64 {
        0
    }
    /// An online copy of everything into a new file.
    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable>;
    /// What it speaks.
    fn dialect(&self) -> Dialect;
    /// Runs statements of its own dialect that change the schema, in order: one transaction where the engine can. Each is
    /// such that it may be run again after an interruption.
    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable>;
    /// What an operator should know, although batches are accepted.
    fn warning(&self) -> Option<String> {
        None
    }
    /// The file that it is in, where it is one.
    fn file(&self) -> Option<&Path> {
        None
    }
}

/// An engine that stands before another one, and does what that one does but for what it says itself.
pub trait Around: Send + Sync {
    /// The other one.
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
