//! Audit entries about what changes nothing: the log was read, the database was copied, a node came and went.
//!
//! No commit exists that such an entry could go with. It is written once what it tells of is done, and no answer
//! depends on it: a database that takes no writes is read and copied all the same, and the caller is told so.

use crate::clock::Clock;
use crate::{App, Fault, asked, entropy};
use rules::events::{Event, Kind};
use rules::id::RealmId;
use rules::{Change, Time};
use std::path::Path;
use std::time::Duration;
use store::engine::Engine;
use store::tables::changes;
use tokio::time::timeout;

/// How long a caller waits for such an entry beside its answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl App {
    /// Writes an entry that this command read entries, where that is wanted.
    ///
    /// # Errors
    /// Why the entry may not be there.
    pub async fn tell_of_reading(&self, command: &str) -> Result<(), String> {
        if !self.books.terms().reads {
            return Ok(());
        }
        self.leave_line(Event::new(Kind::AuditRead, self.clock.now()).detail("command", command), PATIENCE).await
    }

    /// Writes an entry that the database was copied into a file of so many bytes.
    ///
    /// # Errors
    /// Why the entry may not be there.
    pub async fn tell_of_copy(&self, file: &Path, bytes: u64) -> Result<(), String> {
        self.leave_line(copied(file, bytes, self.clock.now()), PATIENCE).await
    }

    /// Writes an entry that this node serves, about `starts` starts, of which this is the last. Nobody waits for it, so
    /// it has all the time that the database takes: an entry given up too early is there all the same, and would be
    /// written again.
    ///
    /// # Errors
    /// Why the entry may not be there.
    pub async fn tell_of_start(&self, starts: u64) -> Result<(), String> {
        let event = Event::new(Kind::NodeStarted, self.clock.now()).detail("node", self.own_name());
        let event = event.detail("version", env!("CARGO_PKG_VERSION"));
        let event = if starts > 1 { event.detail("starts", starts) } else { event };
        self.note(event).await.map_err(|fault| fault.to_string())
    }

    /// Writes an entry that this node stops, as it was told to. Called before it seals for the last time: what waited
    /// for the next start could be removed unseen.
    ///
    /// # Errors
    /// Why the entry may not be there.
    pub async fn tell_of_stop(&self) -> Result<(), String> {
        self.leave_line(Event::new(Kind::NodeStopped, self.clock.now()).detail("node", self.own_name()), super::LAST)
            .await
    }

    /// Writes an entry, if the database takes it within `patience`.
    async fn leave_line(&self, event: Event, patience: Duration) -> Result<(), String> {
        in_time(patience, self.note(event)).await
    }
}

/// Writes the entry of a copy into a database on which no node runs, without the keys that a node needs. The next start
/// seals it.
///
/// # Errors
/// Why the entry may not be there.
pub async fn tell_of_copy(engine: &dyn Engine, realm: &RealmId, (file, bytes): (&Path, u64)) -> Result<(), String> {
    let now = Clock::system().now();
    let mut event = copied(file, bytes, now);
    asked::sign(&mut event);
    let fresh = entropy::fresh().map_err(|fault| fault.to_string())?;
    let writes = changes::batch(realm, &[Change::Record(event)], now, &fresh);
    in_time(PATIENCE, async { engine.commit(writes).await.map(drop).map_err(Fault::from) }).await
}

fn copied(file: &Path, bytes: u64, now: Time) -> Event {
    let event = Event::new(Kind::DatabaseCopied, now);
    event.detail("file", file.display().to_string()).detail("bytes", bytes)
}

async fn in_time(patience: Duration, noted: impl Future<Output = Result<(), Fault>>) -> Result<(), String> {
    match timeout(patience, noted).await {
        Ok(noted) => noted.map_err(|fault| fault.to_string()),
        Err(_) => Err(format!("the database has not taken the line within {} s", patience.as_secs())),
    }
}
