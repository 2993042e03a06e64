//! Detects a file that belongs to another program, before anything about it is changed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::open::{absolute, beside};
use crate::dialect::Dialect;
use crate::moving::{self, Trouble};

/// Refuses a database that has tables, none of which are Portiere's: opening it for writing would make it private and
/// change its journal mode, which its owner may not expect. Works beside a process that has the file open, takes no
/// lock, and leaves nothing beside the file. What cannot be judged this way is left to the code that opens the file.
pub fn vacant(path: &Path) -> Result<(), Trouble> {
    let Ok(path) = absolute(path) else { return Ok(()) };
    // With a log beside it, the file alone tells nothing, and it already has the journal mode that we would set.
    let is_long = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    if !is_long(&path) || is_long(&beside(&path, "-wal")) {
        return Ok(());
    }
    match tables(&path) {
        Ok(names) => moving::judge(&names, Dialect::Sqlite),
        Err(why) => {
            tracing::debug!(%why, "could not check yet whether the database file is Portiere's");
            Ok(())
        }
    }
}

/// Lists the tables in the file itself: SQLite takes no lock on a file declared immutable, and creates no file for it.
fn tables(path: &Path) -> rusqlite::Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(format!("file:{}?immutable=1", escaped(path)), flags)?;
    conn.prepare(Dialect::Sqlite.tables())?.query_map([], |row| row.get(0))?.collect()
}

/// Escapes a path for a URI.
fn escaped(path: &Path) -> String {
    let one = |byte: &u8| match byte {
        b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::MARKERS;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_of_somebody_else_stays_as_it_is() {
        // Red where the file is first opened for writing: SQLite would change its journal mode.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("their 100%? #1.db");
        let file = |name: &str| folder.path().join(name);
        assert_eq!(vacant(&path), Ok(()), "there is none");
        fs::write(&path, "").unwrap();
        assert_eq!(vacant(&path), Ok(()), "as it is made first");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE orders (id bigint); CREATE TABLE invoices (id bigint)").unwrap();
        drop(conn);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::read(&path).unwrap();
        let why = vacant(&path).unwrap_err().why;
        assert!(why.ends_with("tables that are not Portiere's: invoices, orders"), "{why}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        // One of ours, whatever else is in it; and a file that is no database is reported when it is opened.
        Connection::open(&path).unwrap().execute_batch(MARKERS).unwrap();
        assert_eq!(vacant(&path), Ok(()));
        fs::write(file("text"), "no database").unwrap();
        assert_eq!(vacant(&file("text")), Ok(()));
    }
}
