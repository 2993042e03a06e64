//! The checks before a database file is used, and the set-up of connections.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, limits::Limit};

use super::Synchronous;
use super::fault::words;

/// Why a database was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse(PathBuf),
    /// It is on a file system whose locks and syncs are not reliable.
    NetworkFilesystem {
        /// The folder.
        path: PathBuf,
        /// The common name of the file system.
        kind: &'static str,
    },
    /// The SQLite version that this program was built with is not known to be sound.
    Version(&'static str),
    /// The file or its folder could not be used.
    Io(PathBuf, io::Error),
    /// The system cannot start more threads.
    Threads(io::Error),
    /// SQLite refused the file.
    Database(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse(path) => write!(out, "{} is in use by another process", path.display()),
            OpenError::NetworkFilesystem { path, kind } => {
                write!(out, "{} is on {kind}: the database needs a local disk", path.display())
            }
            OpenError::Version(found) => {
                write!(out, "SQLite {found} is not safe to use: 3.51.3, or 3.53.0 or newer, is needed")
            }
            OpenError::Io(path, error) => write!(out, "{}: {error}", path.display()),
            OpenError::Threads(error) => {
                write!(out, "no thread can be started (ulimit -u, TasksMax, --pids-limit): {error}")
            }
            OpenError::Database(text) => write!(out, "the database cannot be opened: {text}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        OpenError::Database(words(&error))
    }
}

/// 3.51.3 fixes a race that could corrupt a WAL database; 3.52.0 was withdrawn.
pub(super) fn sound(version: i32) -> bool {
    version >= 3_051_003 && !(3_052_000..3_053_000).contains(&version)
}

/// The same file as an absolute path without links, so that no part of it can be taken for a URI. SQLite keeps the logs
/// beside the file itself, and so does this crate its lock: a file has one, whichever link leads to it. The folder must
/// exist; a link whose file is missing is refused, because a file made in its place would be another database.
pub fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    let failed = |error| OpenError::Io(path.to_owned(), error);
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(failed),
    }
    if path.is_symlink() {
        let why = "is a symbolic link to a file that is missing: put that file back, or take the link away";
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, why)));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(folder.canonicalize().map_err(failed)?.join(name))
}

/// The name of a file beside the database.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Locks the database for this process, until the file is dropped or the process ends in any way. The lock is on a file
/// of its own: SQLite loses its own locks when any other handle to the database file is closed (as POSIX locks do).
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let name = beside(path, ".lock");
    let failed = |error| OpenError::Io(name.clone(), error);
    let file = match new(&name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(&name),
        made => made.and_then(|file| hand_over(&file, &name).map(|()| file)),
    };
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Whether another process, or another part of this one, has the database open. Makes nothing.
pub fn is_held(path: &Path) -> bool {
    let lock = OpenOptions::new().write(true).open(beside(path, ".lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Network file systems, by the number that statfs(2) returns.
#[cfg(any(target_os = "linux", test))]
const REMOTE: [(u32, &str); 14] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x564C, "NCP"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00C3_6400, "CephFS"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
];

/// Refuses a file in a folder on another machine. FUSE may be local or remote, and is accepted with a warning.
#[cfg(target_os = "linux")]
pub fn local(path: &Path) -> Result<(), OpenError> {
    const FUSE: u32 = 0x6573_5546;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let found = rustix::fs::statfs(folder).map_err(|error| OpenError::Io(folder.to_owned(), error.into()))?;
    // The field is signed or unsigned, and has 32 or 64 bits, depending on the platform; the numbers have 32 bits.
    let number = found.f_type as u32;
    if number == FUSE {
        tracing::warn!(folder = %folder.display(), "the data folder is on FUSE: is it a local disk?");
    }
    remote(number).map_or(Ok(()), |kind| Err(OpenError::NetworkFilesystem { path: folder.to_owned(), kind }))
}

/// Only Linux identifies file systems by number.
#[cfg(not(target_os = "linux"))]
pub fn local(_path: &Path) -> Result<(), OpenError> {
    Ok(())
}

#[cfg(any(target_os = "linux", test))]
fn remote(number: u32) -> Option<&'static str> {
    REMOTE.iter().find(|(known, _)| *known == number).map(|(_, kind)| *kind)
}

/// Creates a file that only its owner can read, and makes its name survive a power loss. Fails if the file exists.
pub(super) fn create(path: &Path) -> io::Result<()> {
    new(path)?.sync_all()?;
    File::open(folder_of(path))?.sync_all()
}

fn new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Gives a file that root created in another user's folder to that user, whose server could not open it otherwise. Only
/// for files that this process has just created: an existing one may be a link to anything.
fn hand_over(made: &File, path: &Path) -> io::Result<()> {
    let folder = fs::metadata(folder_of(path))?;
    match made.metadata()?.uid() {
        0 => fchown(made, Some(folder.uid()), Some(folder.gid())),
        _ => Ok(()),
    }
}

/// Makes sure that the database file exists and that only its owner can read it. SQLite creates its other files with
/// the same permissions and the same owner.
pub(super) fn own(path: &Path) -> Result<(), OpenError> {
    match new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|error| of_another(path, error))
        }
        made => made.and_then(|file| {
            hand_over(&file, path)?;
            file.sync_all()?;
            File::open(folder_of(path))?.sync_all()
        }),
    }
    .map_err(|error| OpenError::Io(path.to_owned(), error))
}

/// A file of another user cannot be made private: the error names its owner, which is more helpful.
fn of_another(path: &Path, error: io::Error) -> io::Error {
    match fs::metadata(path) {
        Ok(file) if error.kind() == io::ErrorKind::PermissionDenied => {
            let whose = format!(
                "it belongs to user {}: change its owner to the user that this runs as, or run this as that user",
                file.uid()
            );
            io::Error::new(io::ErrorKind::PermissionDenied, whose)
        }
        _ => error,
    }
}

/// The number of prepared statements that a connection keeps: more than this crate's hot paths have.
const STATEMENTS: usize = 128;

/// Opens the connection that writes.
pub(super) fn writer(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Must come before the first table, or it has no effect.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    synced(conn, synchronous)
}

/// Opens the connection that copies the log, after the writer was opened: it writes nothing else.
pub(super) fn copier(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    synced(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, synchronous)
}

/// Applies the settings of a connection that may change the file.
fn synced(conn: Connection, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    conn.pragma_update(None, "synchronous", synchronous.keyword())?;
    // The writer itself decides when to checkpoint.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "secure_delete", true)?;
    // For systems where fsync does not reach the disk itself (macOS); elsewhere these have no effect.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(conn)
}

/// Opens a connection that reads.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    undo_interrupted(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// Rolls back what a process that was killed had begun before the file had its write-ahead log: only a connection that
/// may write can, and until then nobody else can read the file. Leaves alone what a living process is writing.
fn undo_interrupted(path: &Path) -> rusqlite::Result<()> {
    if !fs::metadata(beside(path, "-journal")).is_ok_and(|journal| journal.len() > 0) {
        return Ok(());
    }
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Only one thread at a time uses a connection, so SQLite's own mutex is not needed.
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // A plan never depends on bound values: otherwise each new binding of a join is planned again, which costs ten
        // times as much as running it.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        // Makes a misspelt column in double quotes an error instead of a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        conn.set_db_config(setting, on)?;
    }
    conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // In KiB. Grows only as pages are read; pages that it does not hold are mostly in the kernel's page cache. No mmap,
    // because an I/O error in mapped memory is a signal that ends the process.
    conn.pragma_update(None, "cache_size", -8192)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sound_versions_of_sqlite_are_used() {
        for good in [3_051_003, 3_051_999, 3_053_000, 3_054_001] {
            assert!(sound(good), "{good}");
        }
        for bad in [3_050_004, 3_051_002, 3_052_000] {
            assert!(!sound(bad), "{bad}");
        }
        assert!(sound(rusqlite::version_number()));
    }

    #[test]
    fn a_file_has_one_lock_whichever_link_leads_to_it() {
        // Red where `absolute` resolves the folder alone: two processes would open one file.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("disk")).unwrap();
        std::os::unix::fs::symlink(at("disk/real.db"), at("link.db")).unwrap();
        let why = absolute(&at("link.db")).unwrap_err().to_string();
        assert!(why.contains("link.db: is a symbolic link to a file that is missing"), "{why}");
        fs::write(at("disk/real.db"), "").unwrap();
        assert_eq!(absolute(&at("link.db")).unwrap(), at("disk/real.db"));
        assert_eq!(absolute(&at("disk/new.db")).unwrap(), at("disk/new.db"), "one that is yet to be made");
        assert!(!is_held(&at("disk/real.db")) && !at("disk/real.db.lock").exists(), "whoever looks makes nothing");
        let _lock = lock(&absolute(&at("link.db")).unwrap()).unwrap();
        assert!(is_held(&at("disk/real.db")));
        assert!(matches!(lock(&absolute(&at("disk/real.db")).unwrap()), Err(OpenError::InUse(_))));
        assert!(!at("link.db.lock").exists());
    }

    #[test]
    fn what_was_interrupted_before_the_write_ahead_log_is_undone_by_who_only_reads() {
        // Red without undo_interrupted: "attempt to write a readonly database", forever.
        let folder = tempfile::tempdir().unwrap();
        let (path, killed) = (folder.path().join("live.db"), folder.path().join("killed.db"));
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(
            "CREATE TABLE facts (fact blob); PRAGMA cache_size = 1; BEGIN IMMEDIATE;
             WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO facts SELECT zeroblob(2000) FROM n",
        )
        .unwrap();
        for ending in ["", "-journal"] {
            fs::copy(beside(&path, ending), beside(&killed, ending)).unwrap();
        }
        assert!(fs::metadata(&killed).unwrap().len() > 100_000, "half of it is in the file");
        let facts = |path: &Path| {
            reader(path).unwrap().query_row("SELECT count(*) FROM facts", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(facts(&killed), 0);
        assert!(!beside(&killed, "-journal").exists());

        // What is being written is not interrupted.
        assert!(beside(&path, "-journal").exists());
        let busy = undo_interrupted(&path);
        assert!(beside(&path, "-journal").exists(), "{busy:?}");
        conn.execute_batch("COMMIT").unwrap();
        assert_eq!(facts(&path), 500);
    }

    #[test]
    fn what_root_makes_in_somebody_elses_folder_is_theirs() {
        // Red without either hand_over. Only root can give a folder to another user.
        let folder = tempfile::tempdir().unwrap();
        if fs::metadata(folder.path()).unwrap().uid() != 0 {
            return;
        }
        for owner in [12_345, 0] {
            std::os::unix::fs::chown(folder.path(), Some(owner), Some(owner)).unwrap();
            let path = folder.path().join(owner.to_string());
            let _lock = lock(&path).unwrap();
            own(&path).unwrap();
            let conn = writer(&path, Synchronous::Full).unwrap();
            conn.execute_batch("CREATE TABLE facts (id bigint)").unwrap();
            for ending in ["", "-wal", "-shm", ".lock"] {
                let made = fs::metadata(beside(&path, ending)).unwrap();
                assert_eq!((made.uid(), made.gid()), (owner, owner), "{ending}");
                assert_eq!(made.permissions().mode() & 0o777, 0o600, "{ending}");
            }
        }
    }

    #[test]
    fn file_systems_of_other_machines_are_known() {
        assert_eq!(remote(0x6969), Some("NFS"));
        assert_eq!(remote(0xFF53_4D42), Some("CIFS"));
        assert_eq!(remote(0xEF53), None, "ext4");
        assert_eq!(remote(0x0102_1994), None, "tmpfs");
        assert_eq!(remote(0x794C_7630), None, "overlayfs");
    }
}
