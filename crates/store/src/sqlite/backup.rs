//! An online copy of the database.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::open;
use crate::engine::Unavailable;

/// The number of pages that are copied before others may use the disk.
const PAGES: i32 = 1024;

/// How long others may use the disk.
const PAUSE: Duration = Duration::from_millis(1);

/// Held while a copy is made: two copies with one name at the same time would write to one `.part`, and one would
/// rename what the other has not finished. A database belongs to one process, so no other process copies it.
static TURN: Mutex<()> = Mutex::new(());

/// Copies the database as it is at this moment into a new file that only its owner can read. Readers and writers go on.
/// Fails if the file exists. It gets its name once it is complete: an interrupted copy is called `.part`, and is in
/// nobody's way.
pub(super) fn run(from: &Path, to: &Path) -> Result<(), Unavailable> {
    let failed = |text: String| Unavailable(format!("backup to {}: {text}", to.display()));
    // With this path, SQLite cannot take a file name for a URI.
    let to = &open::absolute(to).map_err(|error| Unavailable(format!("backup to {error}")))?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if fs::symlink_metadata(to).is_ok() {
        return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists).to_string()));
    }
    let part = &open::beside(to, ".part");
    drop(fs::remove_file(part));
    open::create(part).map_err(|error| failed(error.to_string()))?;
    let copied = copy(from, part).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "no room is left on that disk".to_owned(),
        _ => error.to_string(),
    });
    let named = copied.and_then(|()| name(part, to).map_err(|error| error.to_string()));
    named.map_err(|text| {
        // The first failure is the one to report.
        drop(fs::remove_file(part));
        failed(text)
    })
}

/// Gives a complete copy its name, which no file has yet; durably.
fn name(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    match fs::hard_link(part, to) {
        Ok(()) => fs::remove_file(part)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Not every file system supports links.
        Err(_) => fs::rename(part, to)?,
    }
    File::open(to.parent().unwrap_or(Path::new("/")))?.sync_all()
}

fn copy(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let source = open::reader(from)?;
    // One snapshot for the whole copy: otherwise it would start again after each commit.
    source.execute_batch("BEGIN; SELECT COUNT(*) FROM sqlite_schema")?;
    let mut target = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // An incomplete copy is thrown away, so it needs no journal.
    target.pragma_update(None, "journal_mode", "OFF")?;
    let backup = Backup::new(&source, &mut target)?;
    loop {
        match backup.step(PAGES)? {
            StepResult::Done => break,
            _ => std::thread::sleep(PAUSE),
        }
    }
    drop(backup);
    // Nothing of it is in a log: that tells it from the bare file of a database in use, see [`stands_alone`].
    target.pragma_update(None, "journal_mode", "DELETE")
}

/// Whether a database file says that all of it is in it. A backup does; a database in use has a log, in which its newest
/// changes may be.
pub fn stands_alone(file: &Path) -> io::Result<bool> {
    // Read and write version (the database file format of SQLite, §1.3.3): 1 without a log, 2 with one.
    let mut head = [0; 20];
    File::open(file)?.read_exact(&mut head)?;
    Ok(head[18..] == [1, 1])
}
