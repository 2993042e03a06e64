//! SQLite's journal modes and the number of connections, by cores. The lab has its own small runner for this: the
//! product has only one of these four combinations.

use super::bench::Bench;
use super::{Experiment, Halt, Published};
use crate::private::Cores;
use crate::report::{Expect, Group, Row, Sheet, figure};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub const EXPERIMENT: Experiment = Experiment {
    name: "journal",
    title: "Journal and connections, by cores",
    hypothesis: "A write-ahead log is faster than a rollback journal, since a commit is one sync in place of several. With the log, where \
        readers do not wait for the writer, separate connections for reading gain more. What they gain with a rollback journal, and \
        whether more with two cores than with one, is left open.",
    method: "Eight threads on a table of 20,000 rows in a file of their own, through SQLite itself with synchronous = FULL: of \
        ten operations nine are five point reads and one is a commit of three rows. One connection is shared behind a lock; \
        split, each thread reads on its own connection and they share one to write. The threads are held to one core, to two, and so on to all. What splitting gains with the log is measured once \
        more by itself, beside one connection with the log.",
    published: Some(Published {
        source: "W1 of a Go + SQLite provider at 200 users, its best figures; with hashing and HTTP, on other machines.",
        rows: &[("16 cores", "101 iterations/s"), ("2 cores", "31 iterations/s")],
    }),
    run,
};

const THREADS: usize = 8;
const ROWS: i64 = 20_000;
/// The longest that a connection waits for another.
const PATIENCE: Duration = Duration::from_secs(30);

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::More;
    let (folder, all) = (bench.folder()?, Cores::all().map_err(Halt::Skipped)?);
    let figures = [figure("operations a second", "/s"), figure("p99 of one", " ms")];
    for count in counts(all.count()) {
        let Ok(cores) = all.first(count) else {
            let cores = if all.count() == 1 { "one core" } else { &format!("{} cores", all.count()) };
            sheet.note(format!("This machine lets {cores} be used: the part with {count} is left out."));
            continue;
        };
        let part = format!("The part with {count}");
        cores.remark(&part).into_iter().for_each(|note| sheet.note(note));
        let open = |wal, split| {
            let file = folder.path().join(format!("{count}-{wal}-{split}.db"));
            File::make(file, wal, split)
                .map_err(|error| Halt::Failed(format!("the database of the experiment: {error}")))
        };
        let mut files = [open(false, false)?, open(false, true)?, open(true, false)?, open(true, true)?];
        let rows = vec![
            Row::new("rollback journal, one connection", &[]),
            Row::new("rollback journal, split", &[Expect::Open]),
            Row::new("write-ahead log, one connection", &[More]),
            Row::new("write-ahead log, split", &[More]),
        ];
        let title = if count == 1 { "1 core".to_owned() } else { format!("{count} cores") };
        let measured = |bench: &mut Bench<'_>, file: &mut File| {
            let measured = cores.hold(|| file.measure(bench.part())).map_err(Halt::Skipped)?;
            measured.map_err(|error| Halt::Failed(error.to_string()))
        };
        bench.turns(sheet, Group::new(title.clone(), &figures, rows), &mut files, measured)?;
        let rows = vec![Row::new("one connection", &[]), Row::new("split", &[More])];
        let with_log = Group::new(format!("{title}, write-ahead log"), &figures, rows);
        bench.turns(sheet, with_log, &mut files[2..], measured)?;
    }
    Ok(())
}

/// Returns one core, two, and on by powers of two to all: the report of a single-core machine has both, with a note.
fn counts(all: usize) -> Vec<usize> {
    let mut counts = vec![1, 2];
    counts.extend((2..).map(|power| 1 << power).take_while(|count| *count < all));
    counts.extend((all > 2).then_some(all));
    counts
}

/// A database, and how it is used.
struct File {
    path: PathBuf,
    writer: Mutex<Connection>,
    split: bool,
    next: i64,
}

impl File {
    fn make(path: PathBuf, wal: bool, split: bool) -> rusqlite::Result<File> {
        let mut writer = open(&path, OpenFlags::default())?;
        writer.pragma_update(None, "journal_mode", if wal { "WAL" } else { "DELETE" })?;
        writer.execute_batch("CREATE TABLE note (id bigint PRIMARY KEY, body text NOT NULL) WITHOUT ROWID")?;
        let transaction = writer.transaction()?;
        (0..ROWS).try_for_each(|id| write(&transaction, id))?;
        transaction.commit()?;
        Ok(File { path, writer: Mutex::new(writer), split, next: ROWS })
    }

    /// Returns operations per second, and the 99th percentile of their time in milliseconds.
    fn measure(&mut self, span: Duration) -> rusqlite::Result<Vec<f64>> {
        /// More commits than a thread makes in one measurement.
        const EACH: i64 = 1_000_000;
        let begun = Instant::now();
        let first = self.next;
        self.next += EACH * THREADS as i64;
        let file = &*self;
        let mut took: Vec<Duration> = thread::scope(|scope| {
            let work = |number: usize| move || file.work(number, first + number as i64 * EACH, begun + span);
            let running: Vec<_> = (0..THREADS).map(|number| scope.spawn(work(number))).collect();
            let each =
                running.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            each.collect::<rusqlite::Result<Vec<_>>>()
        })?
        .concat();
        took.sort_unstable();
        let p99 = took.get(took.len().saturating_sub(1) * 99 / 100).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
        Ok(vec![took.len() as f64 / begun.elapsed().as_secs_f64(), p99])
    }

    /// Runs one thread, and returns how long each operation took.
    fn work(&self, number: usize, mut id: i64, until: Instant) -> rusqlite::Result<Vec<Duration>> {
        let own = self.split.then(|| open(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)).transpose()?;
        let shared = || self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut took, mut turn) = (Vec::new(), number);
        while Instant::now() < until {
            let begun = Instant::now();
            if turn.is_multiple_of(10) {
                let mut writer = shared();
                let transaction = writer.transaction()?;
                (id..id + 3).try_for_each(|id| write(&transaction, id))?;
                transaction.commit()?;
                id += 3;
            } else {
                let read = |connection: &Connection| {
                    (0..5).try_for_each(|at| read(connection, (turn * 7919 + at * 31) as i64 % ROWS))
                };
                own.as_ref().map_or_else(|| read(&shared()), read)?;
            }
            took.push(begun.elapsed());
            turn += 1;
        }
        Ok(took)
    }
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn write(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached("INSERT INTO note (id, body) VALUES (?, ?)")?;
    put.execute(params![id, "x".repeat(100)]).map(drop)
}

fn read(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    let mut get = connection.prepare_cached("SELECT body FROM note WHERE id = ?")?;
    get.query_row([id], |row| row.get::<_, String>(0)).optional().map(drop)
}
