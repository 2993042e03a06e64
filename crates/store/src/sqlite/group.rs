//! Many batches in one transaction: all reach the disk with one sync, and each succeeds or fails on its own.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::fault::Fault;
use super::ready::Ready;
use crate::engine::{Broken, CommitError, Must, Write};

/// The answer to a batch.
pub(super) type Outcome = Result<Vec<u64>, CommitError>;

/// Statements, and room for their row counts: the caller allocates and frees both, because memory that moves between
/// threads makes them contend in the allocator.
pub(super) struct Batch {
    writes: Vec<Write>,
    counts: Vec<u64>,
}

impl Batch {
    pub(super) fn new(writes: Vec<Write>) -> Self {
        let counts = Vec::with_capacity(writes.len());
        Batch { writes, counts }
    }
}

/// A committed group.
pub(super) struct Committed {
    /// One answer for each batch, in order.
    pub(super) outcomes: Vec<Outcome>,
    /// How long COMMIT took; `None` if there was nothing for it to write.
    pub(super) took: Option<Duration>,
}

/// Runs every batch in one transaction. No outcome may be sent before this returns: a conflict may be due to what
/// another batch of the group wrote.
///
/// An error means that nothing of the whole group took effect, except [`Fault::Fatal`]: then the outcome is unknown.
pub(super) fn run(ready: &mut Ready<'_>, batches: &mut [Batch]) -> Result<Committed, Fault> {
    let conn = ready.conn();
    let committed = outcomes(ready, batches).and_then(|(before, outcomes)| {
        if !outcomes.iter().any(Result::is_ok) {
            // COMMIT would write every touched page and wait for the disk, although everything was undone.
            execute(conn, "ROLLBACK")?;
            return Ok(Committed { outcomes, took: None });
        }
        // Undone batches beside committed ones count too: their pages are written along.
        let wrote = conn.total_changes() != before;
        let start = Instant::now();
        commit(conn)?;
        Ok(Committed { outcomes, took: wrote.then(|| start.elapsed()) })
    });
    undo(conn, &committed)?;
    committed
}

/// Rolls back what failed. Also after a failed COMMIT: log frames without a complete commit frame are overwritten by
/// the next group, and ignored when the log is read again. After [`Fault::Fatal`] nothing is done any more: a ROLLBACK
/// that fails, too, must not hide that the outcome is unknown.
pub(super) fn undo<T>(conn: &Connection, ran: &Result<T, Fault>) -> Result<(), Fault> {
    match ran {
        Ok(_) | Err(Fault::Fatal(_)) => Ok(()),
        Err(_) if conn.is_autocommit() => Ok(()),
        Err(_) => execute(conn, "ROLLBACK"),
    }
}

/// Begins a clean transaction, whatever was left open: an earlier ROLLBACK may have failed, and some errors end a
/// transaction by themselves. Returns the connection's count of changes, which no ROLLBACK reverts.
fn begin(conn: &Connection) -> Result<u64, Fault> {
    if !conn.is_autocommit() {
        execute(conn, "ROLLBACK")?;
    }
    execute(conn, "BEGIN IMMEDIATE")?;
    Ok(conn.total_changes())
}

/// Returns the outcomes, in a transaction that is still open, and the count of changes at its beginning.
///
/// The first run assumes that every batch succeeds, and has no savepoints: a savepoint makes SQLite copy every page
/// that is about to change, into a file once there are many. If a batch fails, the group starts again with savepoints.
fn outcomes(ready: &mut Ready<'_>, batches: &mut [Batch]) -> Result<(u64, Vec<Outcome>), Fault> {
    let before = begin(ready.conn())?;
    let mut outcomes = Vec::with_capacity(batches.len());
    for batch in batches.iter_mut() {
        let outcome = statements(ready, batch)?;
        if outcome.is_err() {
            let before = begin(ready.conn())?;
            let again = batches.iter_mut().map(|batch| savepoint(ready, batch)).collect::<Result<_, _>>()?;
            return Ok((before, again));
        }
        outcomes.push(outcome);
    }
    Ok((before, outcomes))
}

/// Runs one batch so that it can be undone alone.
fn savepoint(ready: &mut Ready<'_>, batch: &mut Batch) -> Result<Outcome, Fault> {
    let conn = ready.conn();
    execute(conn, "SAVEPOINT batch")?;
    let outcome = statements(ready, batch)?;
    if outcome.is_err() {
        // Some errors end the whole transaction; ROLLBACK TO would then have no savepoint.
        if conn.is_autocommit() {
            return Err(Fault::Group("the transaction was lost".to_owned()));
        }
        execute(conn, "ROLLBACK TO batch")?;
    }
    execute(conn, "RELEASE batch")?;
    Ok(outcome)
}

fn statements(ready: &mut Ready<'_>, batch: &mut Batch) -> Result<Outcome, Fault> {
    batch.counts.clear();
    for (at, write) in batch.writes.iter().enumerate() {
        let why = match ready.count(write).map_err(Fault::from) {
            Ok(rows) if holds(write.must, rows) => {
                batch.counts.push(rows);
                continue;
            }
            Ok(_) => Broken::Guard,
            Err(Fault::Key(why)) => why,
            Err(Fault::Fenced(text)) => return Ok(Err(CommitError::Unavailable(text))),
            Err(Fault::Batch(text)) => {
                tracing::error!(sql = write.sql.text(), error = text, "a statement cannot run");
                return Ok(Err(CommitError::Unavailable(text)));
            }
            Err(wider) => return Err(wider),
        };
        return Ok(Err(CommitError::Conflict { at, why }));
    }
    Ok(Ok(std::mem::take(&mut batch.counts)))
}

fn holds(must: Must, rows: u64) -> bool {
    match must {
        Must::Touch(wanted) | Must::Find(wanted) => rows == wanted,
        Must::Any => true,
    }
}

/// Runs one of the engine's own statements. None of them can violate a key; if one does (a deferred foreign key at
/// COMMIT), the group fails.
pub(super) fn execute(conn: &Connection, sql: &str) -> Result<(), Fault> {
    run_own(conn, sql, Fault::from)
}

/// Commits the open transaction.
pub(super) fn commit(conn: &Connection) -> Result<(), Fault> {
    run_own(conn, "COMMIT", Fault::at_commit)
}

fn run_own(conn: &Connection, sql: &str, means: fn(rusqlite::Error) -> Fault) -> Result<(), Fault> {
    let run = || conn.prepare_cached(sql)?.raw_execute();
    match run().map_err(means) {
        Ok(_) => Ok(()),
        Err(fatal @ Fault::Fatal(_)) => Err(fatal),
        Err(fault) => Err(Fault::Group(fault.text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Sql, Value};

    const PUT: Sql = Sql::fixed("INSERT INTO t (id, body) VALUES (?, ?)");
    const FIND: Sql = Sql::fixed("SELECT 1 FROM t WHERE id = ?");
    const ORPHAN: Sql = Sql::fixed("INSERT INTO child (parent) VALUES (?)");

    fn database() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE t (id bigint PRIMARY KEY, body blob);
             CREATE TABLE child (parent bigint REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED);",
        )
        .unwrap();
        conn
    }

    fn put(id: i64, size: usize) -> Write {
        Write { sql: PUT, args: vec![Value::Int(id), Value::Blob(vec![1; size])], must: Must::Touch(1) }
    }

    fn rows(conn: &Connection) -> i64 {
        conn.query_row("SELECT COUNT(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_full_disk_undoes_the_whole_group() {
        let conn = database();
        conn.pragma_update(None, "max_page_count", 20).unwrap();
        let mut group = [vec![put(1, 10)], vec![put(2, 10), put(3, 1 << 20)], vec![put(4, 10)]].map(Batch::new);
        assert!(matches!(run(&mut Ready::new(&conn), &mut group), Err(Fault::Group(why)) if why.contains("no room")));
        assert!(conn.is_autocommit());
        assert_eq!(rows(&conn), 0);
        let committed = run(&mut Ready::new(&conn), &mut [Batch::new(vec![put(1, 10)])]).ok().unwrap();
        assert_eq!(committed.outcomes, [Ok(vec![1])]);
        assert_eq!(rows(&conn), 1);
    }

    /// Portiere's tables have no deferred keys; if one had, no batch would be reported as committed that is not.
    #[test]
    fn a_key_that_breaks_at_commit_undoes_the_whole_group() {
        let conn = database();
        let orphan = Write { sql: ORPHAN, args: vec![Value::Int(9)], must: Must::Touch(1) };
        assert!(matches!(
            run(&mut Ready::new(&conn), &mut [vec![put(1, 10)], vec![orphan]].map(Batch::new)),
            Err(Fault::Group(_))
        ));
        assert!(conn.is_autocommit());
        assert_eq!(rows(&conn), 0);
    }

    #[test]
    fn a_transaction_left_open_is_rolled_back_first() {
        let conn = database();
        conn.execute_batch("BEGIN IMMEDIATE; INSERT INTO t (id) VALUES (7)").unwrap();
        run(&mut Ready::new(&conn), &mut [Batch::new(vec![put(1, 10)])]).ok().unwrap();
        assert_eq!(rows(&conn), 1);
    }

    /// A database with a log, as in production.
    fn logged(folder: &std::path::Path) -> Connection {
        let conn = Connection::open(folder.join("db")).unwrap();
        conn.pragma_update(None, "journal_mode", "WAL").unwrap();
        conn.execute_batch("CREATE TABLE t (id bigint PRIMARY KEY, body blob); INSERT INTO t (id) VALUES (1)").unwrap();
        conn
    }

    /// The figure covers all groups that reached the disk; groups in which no batch succeeds do not reach it.
    #[test]
    fn a_commit_took_time_where_the_log_grew_and_nowhere_else() {
        let find = || Write { sql: FIND, args: vec![Value::Int(1)], must: Must::Find(1) };
        let breaks = |id| vec![put(id, 10), put(1, 10)];
        type Writes = Vec<Vec<Write>>;
        let groups: [(&str, Writes, &[bool], bool); 9] = [
            ("it stands", vec![vec![put(2, 10)]], &[true], true),
            ("it only looks", vec![vec![find()]], &[true], false),
            ("there is nothing in it", vec![vec![]], &[true], false),
            ("it breaks at once", vec![vec![put(1, 10)]], &[false], false),
            ("it breaks after it wrote", vec![breaks(2)], &[false], false),
            ("all break after they wrote", vec![breaks(2), breaks(3)], &[false, false], false),
            ("one stands, one breaks", vec![vec![put(2, 10)], breaks(3)], &[true, false], true),
            ("one breaks at once, one only looks", vec![vec![put(1, 10)], vec![find()]], &[false, true], false),
            ("one breaks after it wrote, one only looks", vec![breaks(2), vec![find()]], &[false, true], true),
        ];
        for (what, group, stand, reaches_the_disk) in groups {
            let folder = tempfile::tempdir().unwrap();
            let conn = logged(folder.path());
            let log = || std::fs::metadata(folder.path().join("db-wal")).unwrap().len();
            let before = log();
            let mut group: Vec<Batch> = group.into_iter().map(Batch::new).collect();
            let committed = run(&mut Ready::new(&conn), &mut group).ok().unwrap();
            assert_eq!(committed.outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), stand, "{what}");
            assert_eq!((log() > before, committed.took.is_some()), (reaches_the_disk, reaches_the_disk), "{what}");
            assert!(conn.is_autocommit(), "{what}");
        }
    }
}
