//! How to reach a database server, and what can be wrong with it: what the engines for PostgreSQL and MySQL share.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::CommitError;
pub use crate::sealing::{Renewed, Tls};

/// Names the server that the TLS files are for, in log messages.
pub(crate) const DATABASE: &str = "the database";

/// How to reach a database server.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://…` or `mysql://…`, including the password unless it is in a file.
    pub url: String,
    /// A file with the password, instead of the one in the URL. Read again for the next connection once it changes.
    pub password: Option<PathBuf>,
    /// The number of connections that are kept.
    pub connections: NonZeroUsize,
    /// Which authorities are trusted for the server, and our client certificate.
    pub tls: Tls,
    /// The longest time that connecting, a read or a batch may take.
    pub timeout: Duration,
    /// How statements are sent.
    pub statements: Statements,
    /// Losses that an operator accepted by name: a server that has a loss that is not accepted is refused.
    pub accepted: Vec<Loss>,
    /// What the operator says about the server's replication.
    pub replication: Replication,
}

impl Settings {
    /// The default settings for this URL.
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
        // The URL may contain a password, so it is left out.
        let kept = (&self.connections, &self.tls, &self.timeout, &self.statements, &self.accepted);
        out.debug_tuple("Settings").field(&kept).field(&self.replication).finish()
    }
}

/// Why a batch is not written: another server answers by now than the one that was let in.
pub(crate) const REPLACED: &str = "another database server answers by now";

/// How long a change of a table waits for current users of the table: new users of it queue behind the waiting change.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);
/// How long the other users are let through before the change is tried again.
const LETS_BY: Duration = Duration::from_secs(3);
/// How often the change is tried: for three minutes in all.
const ATTEMPTS: u32 = 36;

/// A change of a table that is retried while others use that table.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    tried: u32,
}

impl Patience {
    /// Lets the others through, and returns whether the change is worth another try.
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
            tracing::warn!("a schema change is waiting for other users of its table: a dump, a long transaction?");
        }
        self.tried < ATTEMPTS
    }
}

/// Whether the server has disk space for what it is to store. A full server does not report it and goes on answering,
/// so the sign is the last batch that it refused for lack of space, unless a batch was committed some time after that.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<(Instant, String)>>);

/// For this long after a refusal, a committed batch proves nothing: a small one may find space where others do not.
const WITHOUT_ROOM: Duration = Duration::from_secs(10);

impl Room {
    /// Notes the outcome of a batch; `lacks` tells whether a refusal was for lack of space.
    pub(crate) fn note<T>(&self, outcome: &Result<T, CommitError>, lacks: impl Fn(&str) -> bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(CommitError::Unavailable(why)) if lacks(why) => *known = Some((Instant::now(), why.clone())),
            Ok(_) if known.as_ref().is_some_and(|(at, _)| at.elapsed() >= WITHOUT_ROOM) => *known = None,
            _ => {}
        }
    }

    /// Returns why there is no space, if so.
    pub(crate) fn is_there(&self) -> Result<(), String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map_or(Ok(()), |(_, why)| Err(why.clone()))
    }
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once per connection.
    #[default]
    Kept,
    /// Sent anew each time: for a pooler that changes connections between transactions (PgBouncer in transaction mode).
    Unnamed,
}

/// What a server is configured to lose silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The last commits when the database process dies (`synchronous_commit = off`, `innodb_flush_log_at_trx_commit =
    /// 0`).
    Commits,
    /// The whole database at power loss (`fsync = off`, `full_page_writes = off`, `innodb_doublewrite = 0`).
    Database,
}

/// What the operator says about the servers that may take over from the primary. No server can tell it: that a standby
/// confirms its commits now does not tell whether the primary goes on without that standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Nothing: only what the server shows at the moment is known.
    Observed,
    /// Every acknowledged commit is confirmed by a standby, and only a standby that confirmed takes over.
    Strict,
    /// A standby may take over that did not receive the last commits, whatever the server shows.
    Bounded,
}

/// How the connections to a server are used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Connections that are open.
    pub connected: usize,
    /// The maximum number of connections.
    pub places: usize,
    /// Reads and batches that wait for a connection or are in progress on one.
    pub waiting: usize,
    /// The number of waiting reads and batches at which there are too many.
    pub most_waiting: usize,
}

/// Why a server cannot be used, in a sentence that never contains a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The URL is wrong.
    Settings(String),
    /// This file cannot be used.
    File(PathBuf, String),
    /// The two files are not of one pair.
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The server cannot be reached, or has no room: it may let us in later.
    Unreachable(String),
    /// The server was reached, and lets nobody in who comes as the settings say: the password, the name of the
    /// database, the rights, a certificate.
    Refused(String),
    /// The server does not meet the requirements: its version, that it is read-only, or what it would lose.
    Unfit(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Settings(why)
            | OpenError::Unreachable(why)
            | OpenError::Refused(why)
            | OpenError::Unfit(why) => out.write_str(why),
            OpenError::File(file, why) => write!(out, "{}: {why}", file.display()),
            OpenError::Mismatch { certificate, key } => {
                let (certificate, key) = (certificate.display(), key.display());
                write!(out, "the key in {key} does not belong to the certificate in {certificate}")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// What helps against a pooler in front of the server that gives each transaction another connection.
pub(crate) const POOLER: &str = "a connection pooler in transaction mode needs store.statements = \"unnamed\"";

/// Whether a sentence of a database that gave no answer says what only an operator can change.
pub fn is_lasting(why: &str) -> bool {
    // The last ones are missing rights, as PostgreSQL, and MySQL and MariaDB, call them.
    let lasting = [POOLER, "max_allowed_packet", "(42501)", "error 1142: ", "error 1143: ", "error 1227: "];
    lasting.iter().any(|part| why.contains(part))
}

/// Whether a connection ended because one side does not accept the certificate, or the TLS, of the other.
pub(crate) fn is_of_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

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
