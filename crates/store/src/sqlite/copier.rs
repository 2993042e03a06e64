//! Copies the log into the database file in the background, while the writer commits.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::Synchronous;
use super::fault::Fault;
use super::open::{self, OpenError};

/// A thread with a connection of its own that copies on request.
pub(super) struct Copier {
    /// `None` once the thread is to end.
    asks: Option<Sender<()>>,
    copies: Receiver<Result<Copied, Fault>>,
    at_work: bool,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    /// Starts the thread. `file` is the database's, and stays open for as long as any connection to it.
    pub(super) fn start(path: &Path, file: Arc<File>, synchronous: Synchronous) -> Result<Self, OpenError> {
        let conn = open::copier(path, synchronous)?;
        let (asks, asked) = mpsc::channel::<()>();
        let (done, copies) = mpsc::channel();
        let thread = thread::Builder::new().name("sqlite-copier".to_owned());
        let thread = thread.spawn(move || {
            // Ends when the requesting side or the receiving side is gone.
            for () in asked {
                if done.send(copy_and_sync(&conn, &file)).is_err() {
                    return;
                }
            }
        });
        let thread = Some(thread.map_err(OpenError::Threads)?);
        Ok(Copier { asks: Some(asks), copies, at_work: false, thread })
    }

    /// Whether a copy is running, or has ended and its result was not read yet.
    pub(super) fn at_work(&self) -> bool {
        self.at_work
    }

    /// Starts to copy what is in the log now. Returns whether it did: after a panic the thread is gone.
    pub(super) fn begin(&mut self) -> bool {
        self.at_work = self.asks.as_ref().is_some_and(|asks| asks.send(()).is_ok());
        self.at_work
    }

    /// Returns the result of the copy, once it has ended.
    pub(super) fn ended(&mut self) -> Option<Result<Copied, Fault>> {
        if !self.at_work {
            return None;
        }
        let done = match self.copies.try_recv() {
            Ok(done) => done,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(Fault::Group("the thread that copies has ended".to_owned())),
        };
        self.at_work = false;
        Some(done)
    }

    /// Waits for a running copy, and releases the file.
    pub(super) fn end(&mut self) {
        drop(self.asks.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that copies the log panicked");
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.end();
    }
}

/// Copies, and has the disk confirm it. SQLite syncs only if a copy reaches the end of the log, which hardly ever
/// happens while others commit: the writer, which copies the rest, would then wait for all of it.
fn copy_and_sync(conn: &Connection, file: &File) -> Result<Copied, Fault> {
    let copied = copy(conn, "PASSIVE")?;
    file.sync_data().map_err(|error| Fault::Fatal(error.to_string()))?;
    Ok(copied)
}

/// How far a copy got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// Pages of the log that are in the database by now; pages that readers still block are left for the next time.
    /// `None` if another process was checkpointing.
    pub(super) pages: Option<u32>,
    /// Whether it did all that its mode demands.
    pub(super) whole: bool,
}

/// Copies on this connection. PASSIVE waits for nobody; RESTART and TRUNCATE restart the log.
pub(super) fn copy(conn: &Connection, mode: &str) -> Result<Copied, Fault> {
    let done = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(Copied { pages: u32::try_from(row.get::<_, i64>(2)?).ok(), whole: row.get::<_, i64>(0)? == 0 })
    })?;
    Ok(done)
}
