//! What an error of SQLite means for a batch, its group and the process.

use rusqlite::{ErrorCode, ffi};

use crate::engine::Broken;

/// How far an error reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A unique key existed already, or a foreign key did not exist: a conflict like any other.
    Key(Broken),
    /// The database is being moved, or was.
    Fenced(String),
    /// The statement itself cannot run: only its batch is refused.
    Batch(String),
    /// Nothing can be written at present: the whole group is rolled back.
    Group(String),
    /// The disk failed to confirm a write. The kernel may have dropped those pages and will report success at the next
    /// sync (Linux marks them clean), so only a new process that reads the disk again knows the truth. The same holds
    /// where a COMMIT failed that may be in the log.
    Fatal(String),
}

/// The message of SQLite, or a clearer one if that does not say where to look.
pub(super) fn words(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "no room is left on the disk of the database".to_owned(),
        _ => error.to_string(),
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let text = words(&error);
        let Some(code) = error.sqlite_error() else { return Fault::Batch(text) };
        match (code.code, code.extended_code) {
            (_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => Fault::Fatal(text),
            (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID) => {
                Fault::Key(Broken::Unique)
            }
            (_, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => Fault::Key(Broken::Foreign),
            // There are no triggers except the fence of a database that is being moved.
            (_, ffi::SQLITE_CONSTRAINT_TRIGGER) => Fault::Fenced(text),
            (
                ErrorCode::ConstraintViolation
                | ErrorCode::Unknown
                | ErrorCode::TypeMismatch
                | ErrorCode::TooBig
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::ApiMisuse,
                _,
            ) => Fault::Batch(text),
            _ => Fault::Group(text),
        }
    }
}

impl Fault {
    /// What it means that COMMIT failed. It adds the pages to the log's index after it has written and synced the log:
    /// where that fails, for lack of memory or of room for the index, the batches are there for the next process that
    /// reads the log, unless something is written over them before.
    pub(super) fn at_commit(error: rusqlite::Error) -> Self {
        match error.sqlite_error().map(|code| code.extended_code) {
            Some(
                ffi::SQLITE_NOMEM
                | ffi::SQLITE_IOERR_NOMEM
                | ffi::SQLITE_IOERR_SHMSIZE
                | ffi::SQLITE_IOERR_SHMMAP
                | ffi::SQLITE_CORRUPT,
            ) => Fault::Fatal(words(&error)),
            _ => error.into(),
        }
    }

    /// What happened, in words.
    pub(super) fn text(self) -> String {
        match self {
            Fault::Key(Broken::Unique) => "a key already exists".to_owned(),
            Fault::Key(_) => "a key is missing".to_owned(),
            Fault::Fenced(text) | Fault::Batch(text) | Fault::Group(text) | Fault::Fatal(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(extended: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None)
    }

    fn of(extended: i32) -> Fault {
        Fault::from(error(extended))
    }

    #[test]
    fn a_full_disk_is_called_one() {
        // Red without `words` in either place.
        let opened = super::super::OpenError::from(error(ffi::SQLITE_FULL)).to_string();
        for told in [of(ffi::SQLITE_FULL).text(), opened] {
            assert!(told.contains("no room is left on the disk"), "{told}");
        }
    }

    #[test]
    fn each_error_reaches_as_far_as_it_must() {
        assert_eq!(of(ffi::SQLITE_CONSTRAINT_UNIQUE), Fault::Key(Broken::Unique));
        assert_eq!(of(ffi::SQLITE_CONSTRAINT_PRIMARYKEY), Fault::Key(Broken::Unique));
        assert_eq!(of(ffi::SQLITE_CONSTRAINT_FOREIGNKEY), Fault::Key(Broken::Foreign));
        assert!(matches!(of(ffi::SQLITE_CONSTRAINT_TRIGGER), Fault::Fenced(_)));
        for alone in [ffi::SQLITE_CONSTRAINT_NOTNULL, ffi::SQLITE_CONSTRAINT_CHECK, ffi::SQLITE_ERROR] {
            assert!(matches!(of(alone), Fault::Batch(_)), "{alone}");
        }
        for all in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_BUSY, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT]
        {
            assert!(matches!(of(all), Fault::Group(_)), "{all}");
        }
        for end in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC] {
            assert!(matches!(of(end), Fault::Fatal(_)), "{end}");
        }
    }

    #[test]
    fn what_fails_after_the_log_was_synced_is_not_taken_for_undone() {
        // Red where COMMIT fails as any other statement does: "nothing took effect" would be said of batches that a
        // process which starts after a crash finds in the log.
        let index = [ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_SHMMAP, ffi::SQLITE_IOERR_NOMEM, ffi::SQLITE_NOMEM];
        for after in index.into_iter().chain([ffi::SQLITE_CORRUPT]) {
            assert!(matches!(of(after), Fault::Group(_)), "{after}");
            assert!(matches!(Fault::at_commit(error(after)), Fault::Fatal(_)), "{after}");
        }
        for before in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_BUSY] {
            assert!(matches!(Fault::at_commit(error(before)), Fault::Group(_)), "{before}");
        }
        assert!(matches!(Fault::at_commit(error(ffi::SQLITE_IOERR_FSYNC)), Fault::Fatal(_)));
        assert_eq!(Fault::at_commit(error(ffi::SQLITE_CONSTRAINT_FOREIGNKEY)), Fault::Key(Broken::Foreign));
    }
}
