//! The data folder: its ownership, its lock, and the master key in it.

use super::BootError;
use crate::config::{Config, SecretFile};
use crate::database::{Found, address};
use crate::journal;
use crate::private::{self, Unread, aside};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The files that show that a data folder was used before: the database, or the files of a node on another database.
const OURS: [&str; 4] = ["portiere.db", "master.key", "node.lock", "portiere.sock"];

/// The end of the audit log as the node last saw it.
const MARK: &str = "audit.mark";

/// How often a process retries to lock the folder, which another process may hold for a moment.
const TRIES: u32 = 20;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(25);

/// Returns whether a server or a command has worked in the data folder before.
pub fn was_used(folder: &Path) -> bool {
    OURS.iter().any(|name| folder.join(name).exists())
}

/// Makes the data folder, accessible to its owner alone.
pub fn make(folder: &Path) -> Result<(), BootError> {
    private::folder(folder, &OURS).map_err(|why| BootError::Other(format!("the data folder {why}")))
}

/// Says why the data folder could not be used, and changes nothing.
pub fn judge(folder: &Path) -> Result<(), String> {
    private::standing(folder, &OURS).map(drop)
}

/// Locks the data folder for this process alone, until the file is dropped. A database's own lock protects only that
/// database: a process with another database would take the socket and the marks in this folder.
pub(super) async fn take(folder: &Path) -> Result<File, BootError> {
    let folder = folder.to_owned();
    aside(move || take_at_once(&folder)).await
}

fn take_at_once(folder: &Path) -> Result<File, BootError> {
    let name = folder.join("node.lock");
    let failed = |error: std::io::Error| BootError::Other(format!("{}: {error}", name.display()));
    match private::leave(&name, b"") {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let file = OpenOptions::new().append(true).open(&name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BootError::InUse),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Locks the folder for a process that already holds a database. Other processes may hold the folder for a moment: one
/// that is about to be refused its database, and one that ends and has released its database first.
pub(super) async fn take_soon(folder: &Path) -> Result<File, BootError> {
    for _ in 0..TRIES {
        match take(folder).await {
            Err(BootError::InUse) => tokio::time::sleep(PAUSE).await,
            taken => return taken,
        }
    }
    take(folder).await
}

/// Refuses to begin anew where a database was: an empty one in its place would look like a new server, and nobody would
/// ask where the data went.
pub(super) fn nothing_left_of(database: &Path, data: &Path) -> Result<(), BootError> {
    let Some(left) = left_of(database, data) else { return Ok(()) };
    Err(BootError::Other(format!(
        "the database {} is missing, but {} is still there: restore a backup (portiere restore), or put the database \
         back; if it is a server, name it (store.url); to start over, move that file away",
        database.display(),
        left.display()
    )))
}

/// Returns what is left where a database was: its log, or a file that an interrupted restore had put aside; of a closed
/// database, the mark of its audit log in the data folder, or the journal of a node whose database is a server.
fn left_of(database: &Path, data: &Path) -> Option<PathBuf> {
    if database.exists() {
        return None;
    }
    let name = database.file_name()?.to_str()?;
    let [log, aside] = ["-wal", ".replaced-"].map(|ending| format!("{name}{ending}"));
    let entries = std::fs::read_dir(database.parent()?).ok()?.flatten();
    let left = |name: &str| name == log || name.starts_with(&aside);
    let beside = entries.filter(|entry| entry.file_name().to_str().is_some_and(left)).map(|entry| entry.path()).min();
    beside.or_else(|| [MARK, journal::FOLDER].map(|name| data.join(name)).into_iter().find(|left| left.exists()))
}

/// Refuses a server without data of Portiere to a node that has worked on another database: the server would be filled,
/// and could no longer be moved or restored to. What an interrupted first start left (`found`) is the node's own.
pub(super) fn no_other_before(config: &Config, found: Found) -> Result<(), BootError> {
    let (data, place) = (&config.server.data, address(config));
    let (mark, journal) = (data.join(MARK), data.join(journal::FOLDER));
    let remembers = || found == Found::Nothing && journal::remembers_a_server(data);
    let left = match found {
        Found::Realm => return Ok(()),
        _ if mark.exists() => mark,
        _ if remembers() => journal,
        _ => return Ok(()),
    };
    Err(BootError::Other(format!(
        "this node has worked on another database ({} is still there), but {place} has no data of Portiere: check \
         store.url, or restore the database there first; to start over, move that away",
        left.display()
    )))
}

/// Returns the master key, from the configuration or from its file, which the first start makes. Once the database has
/// `begun`, a missing key is never replaced: everything that it sealed would be lost.
pub(super) async fn master_key(config: &Config, begun: bool) -> Result<private::Key, BootError> {
    if let Some(key) = config.master_key() {
        return Ok(key);
    }
    let file = config.master_key_file();
    aside(move || key_in(&file, begun)).await
}

fn key_in(file: &SecretFile, begun: bool) -> Result<private::Key, BootError> {
    let key = if begun { private::read_key(file) } else { private::key_or_new(file) };
    key.map_err(|why| {
        let how = match why {
            Unread::Missing => ", and the database needs the one that it was made with; put it back",
            Unread::Length if begun => "; put back the file that belongs to this data",
            Unread::Length => "; no data was sealed with it yet: remove it, and the next start makes a key",
            _ => "",
        };
        BootError::Other(file.wrong("keys.master", &format_args!("{why}{how}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn a_folder_of_a_node_on_a_server_is_no_place_to_begin_anew_on_a_file() {
        // red without journal::FOLDER in left_of.
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("portiere.db");
        assert!(nothing_left_of(&database, folder.path()).is_ok());
        std::fs::create_dir(folder.path().join("journal")).unwrap();
        let Err(BootError::Other(why)) = nothing_left_of(&database, folder.path()) else { panic!("it began") };
        assert!(why.contains("journal is still there") && why.contains("store.url"), "{why}");
    }

    #[test]
    fn a_node_that_worked_on_a_database_does_not_fill_an_empty_server() {
        // red without no_other_before in hold (boot.rs): tables were made, and nothing could be moved there any more.
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let url = "postgres://u:secret@db.test/new".to_owned();
        let flags = vec![("data", data.display().to_string()), ("store.url", url)];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let refused = |found| no_other_before(&config, found).err().map(|why| why.to_string());
        let all = || [Found::Nothing, Found::Tables, Found::Realm].map(refused);
        assert_eq!(all(), [None, None, None], "the first start");
        let journal = data.join(journal::FOLDER);
        std::fs::create_dir(&journal).unwrap();
        std::fs::write(journal.join("node.json"), r#"{"node":"a"}"#).unwrap();
        assert_eq!(all(), [None, None, None], "it has acknowledged nothing yet");
        std::fs::write(journal.join("node.json"), r#"{"node":"a","identity":"7"}"#).unwrap();
        let [nothing, tables, realm] = all();
        let why = nothing.unwrap();
        assert!(why.contains("journal is still there") && why.contains("db.test/new"), "{why}");
        assert!(
            !why.contains("secret") && tables.is_none() && realm.is_none(),
            "a first start that was cut short goes on"
        );
        // Red where an error is taken for a memory that is not there.
        std::fs::remove_file(journal.join("node.json")).unwrap();
        std::fs::create_dir(journal.join("node.json")).unwrap();
        assert!(all()[0].is_some(), "what cannot be read may remember a server");
        std::fs::write(data.join(MARK), "").unwrap();
        let [nothing, tables, realm] = all();
        assert!([nothing, tables].into_iter().flatten().filter(|why| why.contains("audit.mark")).count() == 2);
        assert_eq!(realm, None, "what was moved or restored is served from");
    }

    /// Several processes start on one empty folder at once: each of them goes on with the key that is kept.
    #[test]
    fn a_folder_has_one_master_key_however_many_start_there() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let flags = vec![("data", folder.path().display().to_string())];
            let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
            let start = std::sync::Barrier::new(4);
            let keys: Vec<_> = std::thread::scope(|scope| {
                let starters = [(); 4].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        key_in(&config.master_key_file(), false).unwrap()
                    })
                });
                starters.into_iter().map(|starter| starter.join().unwrap()).collect()
            });
            let kept = private::read_key(&config.master_key_file()).unwrap();
            assert!(keys.iter().all(|key| *key == kept));
        }
    }

    #[test]
    fn whoever_finds_a_part_of_a_key_is_told_what_to_do_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string())];
        let file = Config::load(Sources { flags, ..Sources::default() }).unwrap().master_key_file();
        std::fs::write(&*file, "").unwrap();
        std::fs::set_permissions(&*file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        for (begun, how) in [(true, "put back the file"), (false, "remove it, and the next start makes a key")] {
            let why = key_in(&file, begun).unwrap_err().to_string();
            assert!(why.contains("is not 32 bytes; ") && why.contains(how), "{why}");
        }
    }
}
