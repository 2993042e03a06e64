//! Connections that read: a few, each used by one caller at a time, in the order of the requests.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::Semaphore;

use super::fault::words;
use super::state::hold;
use super::{open, value};
use crate::engine::{Read, Row, Unavailable};

/// The number of SQLite VM instructions between two checks of the budget.
const LOOK_EVERY: i32 = 1000;

/// The number of checks that a fetch may use on the caller's thread: some 20,000 instructions, well under a
/// millisecond. A point read takes less than a hundred.
const LOOKS: i32 = 20;

/// Why there are no rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It would take too long on the caller's thread.
    Long,
    /// It cannot be answered.
    Failed(Unavailable),
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Stopped::Long,
            _ => Stopped::Failed(Unavailable(words(&error))),
        }
    }
}

/// How long a fetch of this pool may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Only briefly, since it runs on a network thread.
    Brief,
    /// As long as it takes.
    Any,
}

struct Reader {
    conn: Connection,
    looks: Arc<AtomicI32>,
}

impl Reader {
    fn open(path: &Path, pace: Pace) -> rusqlite::Result<Self> {
        let mut conn = open::reader(path)?;
        let looks = Arc::new(AtomicI32::new(0));
        if pace == Pace::Brief {
            let left = Arc::clone(&looks);
            conn.progress_handler(LOOK_EVERY, Some(move || left.fetch_sub(1, Relaxed) <= 1))?;
        }
        Ok(Reader { conn, looks })
    }

    /// Answers several reads in one transaction: opening and closing the log once saves more than a BEGIN costs.
    fn answer(&self, reads: &[Read]) -> Result<Vec<Vec<Row>>, Stopped> {
        self.looks.store(LOOKS, Relaxed);
        if let [read] = reads {
            return Ok(vec![self.rows(read)?]);
        }
        self.conn.prepare_cached("BEGIN")?.raw_execute()?;
        let answers = reads.iter().map(|read| self.rows(read)).collect();
        self.end()?;
        answers
    }

    /// Ends the transaction, whatever the reads returned: the next fetch finds none. COMMIT has no budget, which would
    /// sooner or later run out here (SQLite keeps counting a kept statement's instructions from one run to the next).
    fn end(&self) -> rusqlite::Result<()> {
        self.looks.store(i32::MAX, Relaxed);
        if !self.conn.is_autocommit() {
            self.conn.prepare_cached("COMMIT")?.raw_execute()?;
        }
        Ok(())
    }

    fn rows(&self, read: &Read) -> Result<Vec<Row>, Stopped> {
        let mut statement = self.conn.prepare_cached(read.sql.text())?;
        value::bind(&mut statement, &read.args)?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            found.push(value::take(row, columns)?);
        }
        Ok(found)
    }
}

/// A pool of readers. The semaphore keeps the order of requests; a caller with a permit finds a reader in the list.
pub(super) struct Pool {
    permits: Semaphore,
    /// The last reader returned is the first one lent, because its cache is warm.
    free: Mutex<Vec<Reader>>,
    size: u32,
}

impl Pool {
    pub(super) fn open(path: &Path, size: u32, pace: Pace) -> rusqlite::Result<Arc<Self>> {
        let free = (0..size).map(|_| Reader::open(path, pace)).collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(Arc::new(Pool { permits: Semaphore::new(size as usize), free: Mutex::new(free), size }))
    }

    /// How many readers are in use, and how many there are.
    pub(super) fn usage(&self) -> (usize, usize) {
        let size = self.size as usize;
        (size.saturating_sub(self.permits.available_permits()), size)
    }

    /// Waits for a reader.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Lease, Unavailable> {
        let closed = || Unavailable("the database is closed".to_owned());
        self.permits.acquire().await.map_err(|_| closed())?.forget();
        let reader = hold(&self.free).pop();
        // Created before the reader is checked, so that the permit is returned in any case.
        let lease = Lease { reader, pool: Arc::clone(self) };
        if lease.reader.is_some() { Ok(lease) } else { Err(closed()) }
    }

    /// Makes new fetches wait while the returned guard is held, once earlier fetches are done; `None` if that takes
    /// longer than `patience`. Blocks the thread, so it must never run on a thread that serves the network.
    pub(super) fn hold(&self, patience: Duration) -> Option<Held<'_>> {
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
        let every = async { tokio::time::timeout(patience, self.permits.acquire_many(self.size)).await };
        clock.block_on(every).ok()?.ok().map(|permit| Held { _permit: permit })
    }

    /// Lends out no more readers, and closes all: those on loan when they are returned.
    pub(super) fn close(&self) {
        self.permits.close();
        hold(&self.free).clear();
    }
}

/// While this guard lives, no fetch of the pool runs.
pub(super) struct Held<'a> {
    _permit: tokio::sync::SemaphorePermit<'a>,
}

/// A reader on loan.
pub(super) struct Lease {
    reader: Option<Reader>,
    pool: Arc<Pool>,
}

impl Lease {
    /// Runs every read, on the calling thread.
    pub(super) fn answer(&self, reads: &[Read]) -> Result<Vec<Vec<Row>>, Stopped> {
        let closed = || Stopped::Failed(Unavailable("the database is closed".to_owned()));
        self.reader.as_ref().ok_or_else(closed)?.answer(reads)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            let mut free = hold(&self.pool.free);
            // Checked under the lock under which `close` empties the list.
            if !self.pool.permits.is_closed() {
                free.push(reader);
            }
        }
        self.pool.permits.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sql;

    fn read(sql: &'static str) -> Read {
        Read { sql: Sql::fixed(sql), args: Vec::new() }
    }

    #[test]
    fn a_fetch_that_takes_too_long_leaves_its_reader_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n)").unwrap();
        let reader = Reader::open(&path, Pace::Brief).unwrap();
        let quick = || read("SELECT 1");
        let long =
            || read("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c WHERE n < 0");
        // More rounds than a kept statement needs to reach a thousand instructions.
        for round in 0..2000 {
            assert_eq!(reader.answer(&[quick(), long()]).err(), Some(Stopped::Long), "{round}");
            assert_eq!(reader.answer(&[quick(), quick()]).map(|found| found.len()), Ok(2), "{round}");
        }
    }
}
