//! Keeps the database file in order between groups: copies the log into it, and gives free pages back.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::fault::Fault;
use super::readers::Pool;
use super::state::State;

/// A frame of the log: a page of 4096 bytes and its header.
const FRAME: u32 = 4096 + 24;

/// The log is copied whenever it has grown by so much.
const COPY_EVERY: u32 = 16 * 1024 * 1024 / FRAME;

/// A log as long as this has had readers all along, so that it could never begin anew: new ones wait for a moment.
const HOLD_AT: u32 = 64 * 1024 * 1024 / FRAME;

/// How long new reads wait at most for the ones before them.
const HOLD_FOR: Duration = Duration::from_millis(100);

/// Free pages are kept for what comes next: so many, and one for every so many in use.
const SPARE_PAGES: i64 = 256;
const SPARE_SHARE: i64 = 8;

/// How many free pages one step gives back.
const STEP: i64 = 64;

/// What is left to do while nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// A next step can follow at once.
    More,
    /// A long read is in the way: later.
    Later,
    /// Nothing.
    Done,
}

pub(super) struct Keeper {
    points: Arc<Pool>,
    state: Arc<State>,
    /// The log's length when it was last copied.
    copied_at: u32,
}

impl Keeper {
    pub(super) fn new(points: Arc<Pool>, state: Arc<State>) -> Self {
        Keeper { points, state, copied_at: 0 }
    }

    /// Whether the log is empty and no free page is known of.
    pub(super) fn tidy(&self) -> bool {
        self.state.wal_pages.load(Relaxed) == 0
    }

    /// After each group: usually nothing.
    pub(super) fn after_group(&mut self, conn: &Connection) -> Result<(), Fault> {
        let pages = self.state.wal_pages.load(Relaxed);
        if pages < self.copied_at {
            // The log began anew.
            self.copied_at = 0;
        }
        if pages - self.copied_at < COPY_EVERY {
            return Ok(());
        }
        self.copied_at = pages;
        self.copy(conn, "PASSIVE")?;
        if pages >= HOLD_AT {
            self.alone(conn, "RESTART")?;
        }
        Ok(())
    }

    /// While nothing waits: one small step.
    pub(super) fn rest(&mut self, conn: &Connection) -> Result<Rest, Fault> {
        let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let (free, all) = (number("freelist_count")?, number("page_count")?);
        if free > SPARE_PAGES + all / SPARE_SHARE {
            let mut step = conn.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
            // Each row is one page: it stops when nobody asks for the next.
            let mut rows = step.raw_query();
            while rows.next()?.is_some() {}
            return Ok(Rest::More);
        }
        self.copy(conn, "PASSIVE")?;
        if !self.alone(conn, "TRUNCATE")? {
            return Ok(Rest::Later);
        }
        self.state.wal_pages.store(0, Relaxed);
        self.copied_at = 0;
        Ok(Rest::Done)
    }

    /// Before the file is closed.
    pub(super) fn finish(&self, conn: &Connection) -> Result<bool, Fault> {
        self.copy(conn, "TRUNCATE")
    }

    /// Copies and begins the log anew while no point read runs; tells whether it did. The copy before it has left
    /// little to do, so reads wait for about one sync.
    fn alone(&self, conn: &Connection, mode: &str) -> Result<bool, Fault> {
        let Some(_held) = self.points.hold(HOLD_FOR) else { return Ok(false) };
        conn.busy_timeout(Duration::ZERO)?;
        let done = self.copy(conn, mode);
        conn.busy_timeout(Duration::from_secs(5))?;
        done
    }

    /// Tells whether it got as far as it should.
    fn copy(&self, conn: &Connection, mode: &str) -> Result<bool, Fault> {
        let began = Instant::now();
        let busy: i64 = conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(0))?;
        self.state.checkpoints.fetch_add(1, Relaxed);
        self.state.checkpoint_times.took(began.elapsed());
        Ok(busy == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{Synchronous, open, readers::Pace};
    use super::*;

    /// A log of some pages, with readers beside it, of which the keeper believes that it is this long.
    fn keeper(folder: &tempfile::TempDir, pages: u32) -> (Connection, Keeper, Arc<Pool>) {
        let path = folder.path().join("facts.db");
        open::own(&path).unwrap();
        let conn = open::writer(&path, Synchronous::Full).unwrap();
        conn.execute_batch("CREATE TABLE t (a blob)").unwrap();
        for _ in 0..20 {
            log_after_a_commit(&conn);
        }
        let pool = Pool::open(&path, 2, Pace::Brief).unwrap();
        let state = Arc::new(State::new());
        state.wal_pages.store(pages, Relaxed);
        (conn, Keeper::new(Arc::clone(&pool), state), pool)
    }

    /// How long the log was after one more commit.
    fn log_after_a_commit(conn: &Connection) -> i64 {
        conn.execute_batch("INSERT INTO t (a) VALUES (randomblob(9000))").unwrap();
        conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).unwrap()
    }

    #[test]
    fn a_short_log_is_left_alone_and_a_longer_one_is_copied_once() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, mut keeper, _pool) = keeper(&folder, COPY_EVERY - 1);
        keeper.after_group(&conn).unwrap();
        assert_eq!(keeper.state.checkpoints.load(Relaxed), 0);
        keeper.state.wal_pages.store(COPY_EVERY, Relaxed);
        keeper.after_group(&conn).unwrap();
        keeper.state.wal_pages.store(COPY_EVERY + 1, Relaxed);
        keeper.after_group(&conn).unwrap();
        assert_eq!(keeper.state.checkpoints.load(Relaxed), 1);
    }

    #[test]
    fn a_log_that_is_too_long_begins_anew_once_no_read_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, mut keeper, pool) = keeper(&folder, HOLD_AT);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let lease = runtime.block_on(pool.take()).ok().unwrap();
        assert_eq!(keeper.alone(&conn, "RESTART"), Ok(false), "a read runs");
        drop(lease);
        keeper.after_group(&conn).unwrap();
        assert_eq!(keeper.state.checkpoints.load(Relaxed), 2, "copied, then begun anew");
        assert!(runtime.block_on(pool.take()).is_ok(), "reads go on");
        assert!(log_after_a_commit(&conn) < 8);
    }

    #[test]
    fn a_long_read_in_the_way_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, mut keeper, _pool) = keeper(&folder, 1);
        let scan = open::reader(&folder.path().join("facts.db")).unwrap();
        scan.execute_batch("BEGIN; SELECT COUNT(*) FROM t").unwrap();
        log_after_a_commit(&conn);
        let start = Instant::now();
        assert_eq!(keeper.rest(&conn), Ok(Rest::Later));
        assert!(start.elapsed() < Duration::from_secs(4));
        scan.execute_batch("COMMIT").unwrap();
        assert_eq!(keeper.rest(&conn), Ok(Rest::Done));
        assert!(keeper.tidy());
    }
}
