//! How to reach a database server, and what may be wrong with one: what the engines for PostgreSQL and for MySQL have in
//! common.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::CommitError;
pub use crate::sealing::{Renewed, Tls};

/// Whose the files for TLS to it are.
pub(crate) const DATABASE: &str = "the database";

/// How to reach a database server.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://…` or `mysql://…`, with the password in it where no file has it.
    pub url: String,
    /// A file with the password, in the place of the one in the URL. Read anew for the next connection once it is another.
    pub password: Option<PathBuf>,
    /// Connections that are kept.
    pub connections: NonZeroUsize,
    /// Who is believed to be the server, and as whom we appear.
    pub tls: Tls,
    /// The longest that connecting, a read, or a batch may take.
    pub timeout: Duration,
    /// How statements are sent.
    pub statements: Statements,
    /// Losses that an operator accepted by name: a server that would have them is refused otherwise.
    pub accepted: Vec<Loss>,
    /// What an operator says of its replication.
    pub replication: Replication,
}

impl Settings {
    /// The defaults, for this URL.
    pub fn at(url: impl Into<String>) -> Self {
        Settings {
            url: url.into(),
            password: None,
            connections: NonZeroUsize::MIN.saturating_add(7),
            tls: Tls::default(),
            timeout: Duration::from_secs(10),
            statements: Statements::Kept,
            accepted: Vec::new(),
            replication: Replication::Observed,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL has a password in it.
        let kept = (&self.connections, &self.tls, &self.timeout, &self.statements, &self.accepted);
        out.debug_tuple("Settings").field(&kept).field(&self.replication).finish()
    }
}

/// Why a batch is not written to a server that answers since it was let in to another.
pub(crate) const REPLACED: &str = "another database server answers by now";

/// How long a change of a table waits for those that use the table: whoever comes to use it then waits behind it.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);
/// How long these are let by before it is tried again.
const LETS_BY: Duration = Duration::from_secs(3);
/// How often it is tried: for three minutes in all.
const ATTEMPTS: u32 = 36;

/// A change of a table that is tried again while others use that table.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    tried: u32,
}

impl Patience {
    /// Lets the others by; whether it is worth another try.
    pub(crate) async fn lasts(&mut self) -> bool {
        let more = self.counts();
        if more {
            tokio::time::sleep(LETS_BY).await;
        }
        more
    }

    fn counts(&mut self) -> bool {
        self.tried += 1;
        if self.tried == 1 {
            tracing::warn!("a change of the schema waits for others that use its table: a dump, a long transaction?");
        }
        self.tried < ATTEMPTS
    }
}

/// Whether the server has room for what it is to keep. It says nothing of that by itself, while it goes on to answer: what tells is
/// the last batch that it refused for want of room, unless one was committed some time after that.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<(Instant, String)>>);

/// For so long a batch that stands says nothing against one that did not: a small one may find room where others do not.
const WITHOUT_ROOM: Duration = Duration::from_secs(10);

impl Room {
    /// What came of a batch; `lacks` tells whether a refusal was for want of room.
    pub(crate) fn note<T>(&self, outcome: &Result<T, CommitError>, lacks: impl Fn(&str) -> bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(CommitError::Unavailable(why)) if lacks(why) => *known = Some((Instant::now(), why.clone())),
            Ok(_) if known.as_ref().is_some_and(|(at, _)| at.elapsed() >= WITHOUT_ROOM) => *known = None,
            _ => {}
        }
    }

    /// Why there is none.
    pub(crate) fn is_there(&self) -> Result<(), String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map_or(Ok(()), |(_, why)| Err(why.clone()))
    }
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once for each connection.
    #[default]
    Kept,
    /// Anew each time: for a pooler that gives each transaction another connection (PgBouncer in transaction mode).
    Unnamed,
}

/// What a server is configured to lose without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Commits of the last moments when the process of the database dies (`synchronous_commit = off`,
    /// `innodb_flush_log_at_trx_commit = 0`).
    Commits,
    /// The whole database at power loss (`fsync = off`, `full_page_writes = off`, `innodb_doublewrite = 0`).
    Database,
}

/// What an operator says of the servers that may take over from the one that is written to. No server can say it: that a
/// standby confirms its commits now does not tell whether it goes on when that standby is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Nothing: what the server shows at a moment is all that is known.
    Observed,
    /// The server never acknowledges what no standby has confirmed, and only one that confirmed takes over.
    Strict,
    /// Another may take over that did not get the last of it, whatever the server shows.
    Bounded,
}

/// How the connections to a server are used at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Connections that are there.
    pub connected: usize,
    /// The most that there may be.
    pub places: usize,
    /// Reads and batches that wait for a connection, or are under way on one.
    pub waiting: usize,
    /// When so many wait it is too many.
    pub most_waiting: usize,
}

/// Why a server cannot be used, in a sentence that never has a password in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The URL that was given.
    Settings(String),
    /// This file that was given.
    File(PathBuf, String),
    /// It cannot be reached, or turned us away.
    Unreachable(String),
    /// It is not what we need: its version, that it only reads, or what it would lose.
    Unfit(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Settings(why) | OpenError::Unreachable(why) | OpenError::Unfit(why) => out.write_str(why),
            OpenError::File(file, why) => write!(out, "{}: {why}", file.display()),
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_room_says_so_until_something_was_kept_some_time_later() {
        let (room, lacks) = (Room::default(), |why: &str| why.contains("(53100)"));
        let refused = |why: &str| Err::<(), _>(CommitError::Unavailable(why.to_owned()));
        room.note(&refused("a lock was not let go of (55P03)"), lacks);
        assert_eq!(room.is_there(), Ok(()));
        let full = "no space left on device (53100)";
        room.note(&refused(full), lacks);
        room.note(&Ok(()), lacks);
        assert_eq!(room.is_there(), Err(full.to_owned()), "a small one may find room at once");
        let before = Instant::now().checked_sub(WITHOUT_ROOM).unwrap();
        room.0.lock().unwrap().as_mut().unwrap().0 = before;
        room.note(&Ok(()), lacks);
        assert_eq!(room.is_there(), Ok(()));
    }

    #[test]
    fn a_change_of_a_table_is_tried_for_three_minutes() {
        let mut patience = Patience::default();
        let pauses = std::iter::from_fn(|| patience.counts().then_some(LETS_BY)).sum::<Duration>();
        let took = pauses + BRIEF * ATTEMPTS;
        assert!((170..=180).contains(&took.as_secs()), "{took:?}");
    }
}
