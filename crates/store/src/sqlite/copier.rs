//! Copies the log into the database file beside the writer, which commits meanwhile.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::Synchronous;
use super::fault::Fault;
use super::open::{self, OpenError};

/// A thread with a connection of its own, that copies when it is asked to.
pub(super) struct Copier {
    /// `None` once it is to end.
    asks: Option<Sender<()>>,
    copies: Receiver<Result<Copied, Fault>>,
    at_work: bool,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    /// `file` is the database's, open for as long as any connection to it.
    pub(super) fn start(path: &Path, file: Arc<File>, synchronous: Synchronous) -> Result<Self, OpenError> {
        let conn = open::copier(path, synchronous)?;
        let (asks, asked) = mpsc::channel::<()>();
        let (done, copies) = mpsc::channel();
        let thread = thread::Builder::new().name("sqlite-copier".to_owned());
        let thread = thread.spawn(move || {
            // Ends with whoever asks, or hears.
            for () in asked {
                if done.send(copy_and_sync(&conn, &file)).is_err() {
                    return;
                }
            }
        });
        let thread = Some(thread.map_err(OpenError::Threads)?);
        Ok(Copier { asks: Some(asks), copies, at_work: false, thread })
    }

    /// Whether a copy is under way, or has ended and was not heard of.
    pub(super) fn at_work(&self) -> bool {
        self.at_work
    }

    /// Begins to copy what is in the log now. Tells whether it does: nobody is there any more once the thread has panicked.
    pub(super) fn begin(&mut self) -> bool {
        self.at_work = self.asks.as_ref().is_some_and(|asks| asks.send(()).is_ok());
        self.at_work
    }

    /// What came of the copy, once it has ended.
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

    /// Waits for what is under way, and lets go of the file.
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

/// Copies, and has the disk confirm it. SQLite asks for that only where a copy ends with the log's end, which it hardly ever does
/// while others commit: the writer, which copies the rest, would wait for all of it.
fn copy_and_sync(conn: &Connection, file: &File) -> Result<Copied, Fault> {
    let copied = copy(conn, "PASSIVE")?;
    file.sync_data().map_err(|error| Fault::Fatal(error.to_string()))?;
    Ok(copied)
}

/// How far a copy got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// Pages of the log that are in the database by now; what readers still need is for the next time. `None` where another process
    /// was at it.
    pub(super) pages: Option<u32>,
    /// Whether it did all that its mode says.
    pub(super) whole: bool,
}

/// Copies on this connection. PASSIVE waits for nobody, RESTART and TRUNCATE begin the log anew.
pub(super) fn copy(conn: &Connection, mode: &str) -> Result<Copied, Fault> {
    let done = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(Copied { pages: u32::try_from(row.get::<_, i64>(2)?).ok(), whole: row.get::<_, i64>(0)? == 0 })
    })?;
    Ok(done)
}
