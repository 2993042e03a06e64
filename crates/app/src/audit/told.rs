//! What is written down although it changes nothing: that the log was read, that the database was copied, that a node came and went.
//!
//! There is no commit that such a line could go with. It is written once what it tells of is done, and nobody is refused an answer
//! because it cannot be: a database that takes no writes is read and copied all the same, and whoever asked is told so.

use crate::{App, Fault};
use rules::events::{Event, Kind};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// For so long somebody waits for such a line beside their answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl App {
    /// Writes down that lines were read by this command, where that is wanted.
    ///
    /// # Errors
    /// Why the line may not be there.
    pub async fn tell_of_reading(&self, command: &str) -> Result<(), String> {
        if !self.books.terms().reads {
            return Ok(());
        }
        self.leave_line(Event::new(Kind::AuditRead, self.clock.now()).detail("command", command), PATIENCE).await
    }

    /// Writes down that the database was copied into a file of so many bytes.
    ///
    /// # Errors
    /// Why the line may not be there.
    pub async fn tell_of_copy(&self, file: &Path, bytes: u64) -> Result<(), String> {
        let event = Event::new(Kind::DatabaseCopied, self.clock.now());
        let event = event.detail("file", file.display().to_string()).detail("bytes", bytes);
        self.leave_line(event, PATIENCE).await
    }

    /// Writes down that this node serves; the line is about so many starts, of which this is the last. Nobody waits for it, so that it has
    /// all the time that the database takes: a line that was given up too early is there all the same, and would be written again.
    ///
    /// # Errors
    /// Why the line may not be there.
    pub async fn tell_of_start(&self, starts: u64) -> Result<(), String> {
        let event = Event::new(Kind::NodeStarted, self.clock.now()).detail("node", self.own_name());
        let event = event.detail("version", env!("CARGO_PKG_VERSION"));
        let event = if starts > 1 { event.detail("starts", starts) } else { event };
        self.note(event).await.map_err(|fault| fault.to_string())
    }

    /// Writes down that this node ends, as it was told to. Before it seals for the last time: what waited for the next start could
    /// be taken out unseen.
    ///
    /// # Errors
    /// Why the line may not be there.
    pub async fn tell_of_stop(&self) -> Result<(), String> {
        self.leave_line(Event::new(Kind::NodeStopped, self.clock.now()).detail("node", self.own_name()), super::LAST)
            .await
    }

    /// Writes a line, as far as the database takes it within `patience`.
    async fn leave_line(&self, event: Event, patience: Duration) -> Result<(), String> {
        match timeout(patience, self.note(event)).await {
            Ok(noted) => noted.map_err(|fault: Fault| fault.to_string()),
            Err(_) => Err(format!("the database has not taken the line within {} s", patience.as_secs())),
        }
    }
}
