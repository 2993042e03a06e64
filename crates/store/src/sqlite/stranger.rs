//! Whether a file is somebody else's, found out before anything about it is changed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::open::{absolute, beside};
use crate::dialect::Dialect;
use crate::moving::{self, Trouble};

/// Refuses a database that has tables, and none of them ours: opening it to write would make it private, and keep its log in a
/// way that whoever it belongs to may not expect. Asked beside whoever holds the file, without a lock, and nothing is left beside
/// it; what cannot be told so is left to whoever opens it.
pub fn vacant(path: &Path) -> Result<(), Trouble> {
    let Ok(path) = absolute(path) else { return Ok(()) };
    // With a log beside it the file alone tells nothing, and is kept as we would keep it.
    let is_long = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    if !is_long(&path) || is_long(&beside(&path, "-wal")) {
        return Ok(());
    }
    match tables(&path) {
        Ok(names) => moving::judge(&names, Dialect::Sqlite),
        Err(why) => {
            tracing::debug!(%why, "whose the database file is cannot be told yet");
            Ok(())
        }
    }
}

/// The tables that are in the file itself: SQLite takes no lock on what is called immutable, and makes no file for it.
fn tables(path: &Path) -> rusqlite::Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(format!("file:{}?immutable=1", escaped(path)), flags)?;
    conn.prepare(Dialect::Sqlite.tables())?.query_map([], |row| row.get(0))?.collect()
}

/// A path as it stands in a URI.
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
        // Red where it is opened to be written to first: SQLite would keep its log in another way from then on.
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
        let why = vacant(&path).unwrap_err().0;
        assert!(why.ends_with("tables that are not Portiere's: invoices, orders"), "{why}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        // Ours, whatever else is in it; and what is no database is told by whoever opens it.
        Connection::open(&path).unwrap().execute_batch(MARKERS).unwrap();
        assert_eq!(vacant(&path), Ok(()));
        fs::write(file("text"), "no database").unwrap();
        assert_eq!(vacant(&file("text")), Ok(()));
    }
}
