//! How to reach a database server, and what may be wrong with one: what the engines for PostgreSQL and for MySQL have in
//! common.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::engine::CommitError;

/// How to reach a database server.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://…` or `mysql://…`, with the password in it.
    pub url: String,
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

/// Files for TLS, each PEM. A connection to another machine always has TLS, unless the URL says that it has not.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Certificates of authorities that are believed; the system's where there is none.
    pub authorities: Option<PathBuf>,
    /// Our certificate chain and its key, for servers that want one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// The certificates of authorities that are believed. A system may have none, which no connection needs that stays there.
    pub(crate) fn believed(&self) -> Result<Vec<CertificateDer<'static>>, OpenError> {
        match &self.authorities {
            Some(file) => certificates(file),
            None => Ok(rustls_native_certs::load_native_certs().certs),
        }
    }

    /// What seals a connection with these.
    pub(crate) fn config(&self) -> Result<ClientConfig, OpenError> {
        let failed = |error: rustls::Error| OpenError::Settings(format!("TLS to the database: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(self.roots()?);
        match (self.presented()?, &self.identity) {
            (Some((chain, key)), Some((_, file))) => {
                config.with_client_auth_cert(chain, key).map_err(|error| unreadable(file, &error))
            }
            _ => Ok(config.with_no_client_auth()),
        }
    }

    fn roots(&self) -> Result<RootCertStore, OpenError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.believed()? {
            // A system may have some that nobody can use.
            if let (Err(error), Some(file)) = (roots.add(certificate), &self.authorities) {
                return Err(unreadable(file, &error));
            }
        }
        Ok(roots)
    }

    /// Our certificate chain and its key.
    fn presented(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, OpenError> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
        Ok(Some((chain, key)))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(unreadable(file, &"no certificate is in it"));
    }
    Ok(found)
}

/// A file that cannot be used, by its name.
pub(crate) fn unreadable(file: &Path, why: &dyn fmt::Display) -> OpenError {
    OpenError::Settings(format!("{}: {why}", file.display()))
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
    /// The URL or a file that was given.
    Settings(String),
    /// It cannot be reached, or turned us away.
    Unreachable(String),
    /// It is not what we need: its version, that it only reads, or what it would lose.
    Unfit(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Settings(why) | OpenError::Unreachable(why) | OpenError::Unfit(why) => out.write_str(why),
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
