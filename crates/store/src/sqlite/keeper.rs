//! Keeps the database file in order between groups: copies the log into it, and returns free pages to the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::copier::{self, Copier};
use super::fault::Fault;
use super::readers::Pool;
use super::state::State;

/// The size of a log frame: a page of 4096 bytes and its header.
const FRAME: u32 = 4096 + 24;

/// The log is copied in the background whenever it has grown by this many pages.
const COPY_EVERY: u32 = 16 * 1024 * 1024 / FRAME;

/// The writer itself copies what was written during a background copy, if it is no more than this: the log can restart
/// only after all of it was copied.
const SHORT: u32 = 2 * 1024 * 1024 / FRAME;

/// At this length the log has had readers all along and could never restart, so new readers are held up for a moment.
const HOLD_AT: u32 = 64 * 1024 * 1024 / FRAME;

/// At this length the writer itself copies the log, however much is left: a writer faster than the disk has to wait.
const AT_MOST: u32 = 128 * 1024 * 1024 / FRAME;

/// The least time between two copies that are started because groups fail.
const MAKE_ROOM_EVERY: Duration = Duration::from_secs(2);

/// The longest time that new reads wait for the reads before them.
const HOLD_FOR: Duration = Duration::from_millis(100);

/// Free pages are kept for later use: this many, plus one for every `SPARE_SHARE` pages of the file.
const SPARE_PAGES: i64 = 256;
const SPARE_SHARE: i64 = 8;

/// The number of free pages that one step returns.
const STEP: i64 = 64;

/// What is left to do while no batch waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Another step can follow at once.
    More,
    /// A long read is in the way: try again later.
    Later,
    /// Nothing is left.
    Done,
}

pub(super) struct Keeper {
    copier: Copier,
    points: Arc<Pool>,
    state: Arc<State>,
    /// The length of the log when the last copy began.
    begun_at: u32,
    /// How much of the log had been copied by then.
    copied: u32,
    /// When a copy was last started because a group had failed.
    made_room: Option<Instant>,
}

impl Keeper {
    pub(super) fn new(copier: Copier, points: Arc<Pool>, state: Arc<State>) -> Self {
        Keeper { copier, points, state, begun_at: 0, copied: 0, made_room: None }
    }

    /// Whether the log is empty and no free page is known.
    pub(super) fn tidy(&self) -> bool {
        self.pages() == 0
    }

    /// The length of the log.
    fn pages(&self) -> u32 {
        self.state.wal_pages.load(Relaxed)
    }

    /// How much of the log is still to be copied.
    fn left(&self) -> u32 {
        self.pages().saturating_sub(self.copied)
    }

    /// Notices that the log restarted.
    fn notice(&mut self) {
        if self.pages() < self.begun_at {
            (self.begun_at, self.copied) = (0, 0);
        }
    }

    /// Runs after each group; usually does nothing.
    pub(super) fn after_group(&mut self, conn: &Connection) -> Result<(), Fault> {
        self.notice();
        let pages = self.pages();
        match self.heard()? {
            None if !self.copier.at_work() && pages - self.begun_at >= COPY_EVERY => self.begin(conn),
            None => Ok(()),
            Some(_) if pages >= HOLD_AT && (self.left() <= SHORT || pages >= AT_MOST) => {
                self.copy(conn, "PASSIVE")?;
                self.alone(conn, "RESTART").map(drop)
            }
            Some(_) if self.left() <= SHORT => self.copy(conn, "PASSIVE").map(drop),
            Some(Held::Nobody) => self.begin(conn),
            Some(Held::Readers) => Ok(()),
        }
    }

    /// Runs one small step while no batch waits. The log is copied first: it takes disk space, which returning pages
    /// needs.
    pub(super) fn rest(&mut self, conn: &Connection) -> Result<Rest, Fault> {
        self.notice();
        if self.heard()? == Some(Held::Readers) && self.left() > SHORT {
            return Ok(Rest::Later);
        }
        if !self.copier.at_work() && self.left() > SHORT {
            self.begin(conn)?;
        }
        if self.copier.at_work() {
            return Ok(Rest::More);
        }
        match give_back(conn) {
            Ok(false) => {}
            Ok(true) => return Ok(Rest::More),
            Err(fatal @ Fault::Fatal(_)) => return Err(fatal),
            // There may be no space for it, which makes copying the log all the more important.
            Err(fault) => tracing::warn!(error = fault.text(), "free pages could not be given back"),
        }
        self.copy(conn, "PASSIVE")?;
        if !self.alone(conn, "TRUNCATE")? {
            return Ok(Rest::Later);
        }
        self.state.wal_pages.store(0, Relaxed);
        (self.begun_at, self.copied) = (0, 0);
        Ok(Rest::Done)
    }

    /// Runs after a failed group, now and then: the disk may be full, and a copied log restarts without more space.
    pub(super) fn make_room(&mut self, conn: &Connection) -> Result<(), Fault> {
        let lately = self.made_room.is_some_and(|at| at.elapsed() < MAKE_ROOM_EVERY);
        if lately || self.copier.at_work() || self.left() == 0 {
            return Ok(());
        }
        self.made_room = Some(Instant::now());
        self.begin(conn)
    }

    /// Runs before the file is closed.
    pub(super) fn finish(&mut self, conn: &Connection) -> Result<bool, Fault> {
        self.copier.end();
        // Data that the disk failed to confirm is not synced again.
        if let Err(fatal @ Fault::Fatal(_)) = self.heard() {
            return Err(fatal);
        }
        self.copy(conn, "TRUNCATE")
    }

    /// Starts a background copy of the log.
    fn begin(&mut self, conn: &Connection) -> Result<(), Fault> {
        self.begun_at = self.pages();
        if self.copier.begin() {
            self.state.checkpoints.fetch_add(1, Relaxed);
            return Ok(());
        }
        self.copy(conn, "PASSIVE").map(drop)
    }

    /// Returns what held up the background copy, once it has ended.
    fn heard(&mut self) -> Result<Option<Held>, Fault> {
        let Some(copied) = self.copier.ended().transpose()? else { return Ok(None) };
        self.copied = copied.pages.unwrap_or(self.copied);
        Ok(Some(if self.copied + SHORT < self.begun_at { Held::Readers } else { Held::Nobody }))
    }

    /// Copies the log and restarts it while no short read runs; returns whether it did. The copy before this one has
    /// left little to do, so reads wait for about one sync.
    fn alone(&mut self, conn: &Connection, mode: &str) -> Result<bool, Fault> {
        let points = Arc::clone(&self.points);
        let Some(_held) = points.hold(HOLD_FOR) else { return Ok(false) };
        conn.busy_timeout(Duration::ZERO)?;
        let done = self.copy(conn, mode);
        conn.busy_timeout(Duration::from_secs(5))?;
        done
    }

    /// Copies on the writer thread. Returns whether it did all that its mode demands.
    fn copy(&mut self, conn: &Connection, mode: &str) -> Result<bool, Fault> {
        let began = Instant::now();
        let copied = copier::copy(conn, mode)?;
        self.state.checkpoints.fetch_add(1, Relaxed);
        self.state.checkpoint_times.took(began.elapsed());
        self.copied = copied.pages.unwrap_or(self.copied);
        Ok(copied.whole)
    }
}

/// Returns some free pages to the disk, if there are more than are kept. Returns whether it did.
fn give_back(conn: &Connection) -> Result<bool, Fault> {
    let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (free, all) = (number("freelist_count")?, number("page_count")?);
    if free <= SPARE_PAGES + all / SPARE_SHARE {
        return Ok(false);
    }
    let mut step = conn.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
    // Each row is one page: SQLite stops when no next row is requested.
    let (mut rows, mut any) = (step.raw_query(), false);
    while rows.next()?.is_some() {
        any = true;
    }
    Ok(any)
}

/// What kept a copy from reaching the end of the log, as it was when the copy began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nobody,
    /// They need the pages that the database still has, and that the copy would overwrite.
    Readers,
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{Synchronous, open, readers::Pace};
    use super::*;

    /// A log of some pages with readers, where the keeper is told that the log has `pages` pages.
    fn keeper(folder: &tempfile::TempDir, pages: u32) -> (Connection, Keeper, Arc<Pool>) {
        let path = folder.path().join("facts.db");
        open::own(&path).unwrap();
        let conn = open::writer(&path, Synchronous::Full).unwrap();
        conn.execute_batch("CREATE TABLE t (a blob)").unwrap();
        for _ in 0..20 {
            log_after_a_commit(&conn);
        }
        let pool = Pool::open(&path, 2, Pace::Brief).unwrap();
        let file = Arc::new(std::fs::File::open(&path).unwrap());
        let copier = Copier::start(&path, file, Synchronous::Full).unwrap();
        let state = Arc::new(State::new());
        state.wal_pages.store(pages, Relaxed);
        (conn, Keeper::new(copier, Arc::clone(&pool), state), pool)
    }

    /// Returns the length of the log after one more commit.
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

    /// Runs the keeper as after consecutive groups, until no background copy is running.
    fn settle(keeper: &mut Keeper, conn: &Connection) {
        loop {
            // Asked before: if a copy ends in between, the next group notices it.
            let was_at_work = keeper.copier.at_work();
            keeper.after_group(conn).unwrap();
            if !was_at_work && !keeper.copier.at_work() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_written_while_the_log_is_copied_is_copied_too_and_the_log_begins_anew() {
        // Red without the copy of a short rest in after_group.
        let folder = tempfile::tempdir().unwrap();
        let (mut conn, mut keeper, _pool) = keeper(&folder, 0);
        let state = Arc::clone(&keeper.state);
        conn.wal_hook(Some(move |_: &mut _, pages| {
            state.wal_pages.store(pages as u32, Relaxed);
            Ok(())
        }))
        .unwrap();
        let write = |bytes: u32| {
            conn.execute_batch(&format!("INSERT INTO t (a) VALUES (randomblob({bytes}))")).unwrap();
        };
        loop {
            write(COPY_EVERY * FRAME);
            keeper.after_group(&conn).unwrap();
            assert!(keeper.copier.at_work());
            write(1);
            settle(&mut keeper, &conn);
            // A batch that begins at the moment at which the copy looks for readers is taken for one.
            if keeper.left() <= SHORT {
                break;
            }
        }
        assert_eq!(keeper.left(), 0);
        assert_eq!(keeper.state.checkpoint_times.spread().count, 1, "the writer copied the end alone");
        write(1);
        assert!(keeper.pages() < 8, "{}", keeper.pages());
    }

    #[test]
    fn a_log_that_is_too_long_begins_anew_once_no_read_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (conn, mut keeper, pool) = keeper(&folder, AT_MOST);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let lease = runtime.block_on(pool.take()).ok().unwrap();
        assert_eq!(keeper.alone(&conn, "RESTART"), Ok(false), "a read runs");
        drop(lease);
        settle(&mut keeper, &conn);
        assert_eq!(keeper.state.checkpoints.load(Relaxed), 3, "copied beside, then what was left, then begun anew");
        assert!(runtime.block_on(pool.take()).is_ok(), "reads go on");
        assert!(log_after_a_commit(&conn) < 8);
    }

    #[test]
    fn free_pages_that_cannot_be_given_back_leave_the_log_copied() {
        // Red where give_back comes before the copy in rest, or ends it: nothing could be written until a restart.
        let folder = tempfile::tempdir().unwrap();
        let (conn, mut keeper, _pool) = keeper(&folder, 1);
        conn.execute_batch(
            "INSERT INTO t (a) VALUES (zeroblob(8000000)); INSERT INTO t (a) VALUES (randomblob(100000))",
        )
        .unwrap();
        conn.execute_batch("DELETE FROM t WHERE length(a) = 8000000").unwrap();
        conn.pragma_update(None, "query_only", true).unwrap();
        assert!(give_back(&conn).is_err(), "as where there is no room");
        let rested = loop {
            match keeper.rest(&conn).unwrap() {
                Rest::More => std::thread::sleep(Duration::from_millis(1)),
                rested => break rested,
            }
        };
        assert_eq!(rested, Rest::Done);
        assert_eq!(std::fs::metadata(folder.path().join("facts.db-wal")).unwrap().len(), 0);
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
