//! Files that are whole or absent, whenever the process or the machine stops, and the threads that may wait for them.

use super::{Key, Unread, folder_of, read_key};
use rules::secret::hexadecimal;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Does what may wait for a disk on a thread of its own: the threads of the runtime hear signals and answer requests.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and nobody goes on with this.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Breaks a test down in which a thread of the runtime would wait for a disk: it may not block on anything.
fn may_wait() {
    #[cfg(test)]
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.block_on(async {});
    }
}

/// Returns the secret of 32 bytes in a file; if there is no file, makes one first, as [`leave`] does. Of several
/// processes that start at the same time, each gets the one that is kept.
pub fn key_or_new(file: &Path) -> Result<Key, Unread> {
    match read_key(file) {
        Err(Unread::Missing) => {}
        read => {
            tidy(file);
            return read;
        }
    }
    let key = Key::new(app::entropy::bytes().map_err(|fault| Unread::Failed(io::Error::other(fault.to_string())))?);
    match leave(file, &*key) {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read_key(file),
        Err(error) => Err(Unread::Failed(error)),
    }
}

/// Creates a file, durably: it is whole, or absent. Fails if the file exists, and leaves it as it is.
pub fn create(file: &Path, bytes: &[u8]) -> io::Result<()> {
    made(file, bytes, |_| Ok(()))
}

/// Creates a file as [`create`] does, for the owner of its folder: see [`hand_over`].
pub fn leave(file: &Path, bytes: &[u8]) -> io::Result<()> {
    made(file, bytes, |step| match step {
        Step::Written(open) => hand_over(open, file),
        _ => Ok(()),
    })
}

/// How far the making of a file is.
enum Step<'a> {
    /// There is an empty file, under another name.
    Begun,
    /// It has its content, which may not be on the disk.
    Written(&'a File),
    /// The content is on the disk.
    Synced,
    /// The file has its name.
    Named,
    /// It has no other name.
    Alone,
}

/// Makes the file under another name first: a kill in the middle of it must not leave a part of a key under the name
/// under which each later start would look for a whole one.
fn made(file: &Path, bytes: &[u8], mut at: impl FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
    may_wait();
    if fs::symlink_metadata(file).is_ok() {
        tidy(file);
        return Err(ErrorKind::AlreadyExists.into());
    }
    let chance = app::entropy::salt().map_err(|fault| io::Error::other(fault.to_string()))?;
    let new = beside(file, &format!("{BEGUN}{}", hexadecimal(&chance)));
    let named = written(&new, bytes, &mut at).and_then(|()| name(&new, file, |new, file| fs::hard_link(new, file)));
    let named = match named {
        Ok(true) => at(Step::Named),
        // A kill may leave a part of it here, as there is no other way.
        Ok(false) => written(file, bytes, &mut at),
        Err(error) => Err(error),
    };
    drop(fs::remove_file(&new));
    named?;
    at(Step::Alone)?;
    tidy(file);
    sync_folder(file).inspect_err(|_| drop(fs::remove_file(file)))
}

/// Writes a new file to the disk; removes it if that fails.
fn written(file: &Path, bytes: &[u8], at: &mut impl FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    let written = at(Step::Begun)
        .and_then(|()| open.write_all(bytes))
        .and_then(|()| at(Step::Written(&open)))
        .and_then(|()| open.sync_all())
        .and_then(|()| at(Step::Synced));
    written.inspect_err(|_| drop(fs::remove_file(file)))
}

/// Gives a file its name, which no file has. Returns `false` where the file system has no links.
fn name(new: &Path, file: &Path, link: impl FnOnce(&Path, &Path) -> io::Result<()>) -> io::Result<bool> {
    match link(new, file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // Another process was faster, and has tidied up.
        Err(_) if fs::symlink_metadata(file).is_ok() => Err(ErrorKind::AlreadyExists.into()),
        // Only writing it tells whether it is links that are missing, or anything else.
        Err(_) => Ok(false),
    }
}

/// How the names end under which files are made.
const BEGUN: &str = ".new-";

/// Removes what a kill left of the making of a file that is there now. Whoever is about to make it finds it there.
fn tidy(file: &Path) {
    let begun = beside(file, BEGUN);
    let Some(begun) = begun.file_name().map(|name| name.as_encoded_bytes()) else { return };
    for entry in fs::read_dir(folder_of(file)).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(begun) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// Creates or replaces a file, durably: a reader finds either version, whole. Two threads of this process take turns:
/// both write to the same name first. No other process writes into the folder that this one has locked.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    static TURN: Mutex<()> = Mutex::new(());
    may_wait();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let new = beside(file, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => written(&new, bytes, &mut |step| {
            if let Step::Written(open) = step { hand_over(open, file) } else { Ok(()) }
        })?,
    }
    fs::rename(&new, file).inspect_err(|_| drop(fs::remove_file(&new)))?;
    sync_folder(file)
}

/// Gives a file that root made in the data folder of another user to that user, whose server could not read it
/// otherwise. It is given away as it was opened: the owner of the folder could put another file under its name.
pub fn hand_over(open: &File, file: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let folder = fs::metadata(folder_of(file))?;
    std::os::unix::fs::fchown(open, Some(folder.uid()), Some(folder.gid()))
}

/// Returns the path beside this one whose name is the same with this ending.
pub fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Syncs the folder of a file: the file's name survives a power loss once its folder has reached the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mode, put};
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn whenever_a_kill_comes_the_file_is_absent_or_whole_and_the_next_start_has_it() {
        // Red where the file is made under its own name: an empty key would be in the way of every later start.
        let mut steps = 0;
        for last in 0..=5 {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("master.key");
            let mut step = 0;
            // Nothing is done after a panic here, as after a kill.
            let killed = catch_unwind(AssertUnwindSafe(|| {
                made(&file, &[7; 32], |_| {
                    assert!(step != last, "killed");
                    step += 1;
                    Ok(())
                })
            }));
            steps = step;
            assert_eq!(killed.is_err(), last < 5, "step {last}");
            let found = fs::read(&file).ok();
            assert!(found.is_none() || found == Some(vec![7; 32]), "step {last}: {found:?}");
            let key = key_or_new(&file).unwrap();
            assert!(found.is_none_or(|found| found == *key), "step {last}: what is there stays");
            assert_eq!(
                (*read_key(&file).unwrap(), names(folder.path())),
                (*key, vec!["master.key".into()]),
                "step {last}"
            );
        }
        assert_eq!(steps, 5, "each step was the last one once");
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_behind() {
        for failing in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let mut step = 0;
            let failed = made(&folder.path().join("key"), &[7; 32], |_| {
                step += 1;
                if step > failing { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
            });
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull, "{failing}");
            let left = names(folder.path());
            assert!(left.is_empty() || (failing == 3 && left == ["key"]), "{failing}: {left:?}");
        }
    }

    #[test]
    fn a_file_is_not_named_over_another_and_is_made_where_there_are_no_links() {
        let folder = tempfile::tempdir().unwrap();
        let (new, file) = (folder.path().join("new"), folder.path().join("key"));
        let without = |kind: ErrorKind| move |_: &Path, _: &Path| Err(kind.into());
        assert!(matches!(name(&new, &file, without(ErrorKind::Unsupported)), Ok(false)));
        // Another process was faster: it has removed what was begun here.
        put(&file, b"theirs", 0o600);
        for kind in [ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::Unsupported] {
            assert_eq!(name(&new, &file, without(kind)).unwrap_err().kind(), ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
    }

    #[test]
    fn of_many_who_need_a_key_at_once_each_has_the_one_that_is_kept() {
        // Red where a loser is refused, or where it takes what another tidied away for a disk without links.
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let (file, start) = (folder.path().join("key"), std::sync::Barrier::new(4));
            let keys: Vec<_> = std::thread::scope(|scope| {
                let starters = [(); 4].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        key_or_new(&file).unwrap()
                    })
                });
                starters.into_iter().map(|starter| starter.join().unwrap()).collect()
            });
            let kept = read_key(&file).unwrap();
            assert!(keys.iter().all(|key| *key == kept));
        }
    }

    #[tokio::test]
    async fn no_thread_of_the_runtime_waits_for_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for write in [leave, create, replace] {
            let waits = catch_unwind(AssertUnwindSafe(|| drop(write(&file, b"x"))));
            assert!(waits.is_err() && !file.exists(), "a test would not notice");
            let aside_of_it = file.clone();
            aside(move || write(&aside_of_it, b"x")).await.unwrap();
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn of_two_who_replace_a_file_at_once_each_finds_and_leaves_a_whole_one() {
        // red without the turns in `replace`: one thread moves the other's half file, and the other finds none.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        std::thread::scope(|threads| {
            for byte in [b'a', b'b'] {
                let file = &file;
                threads.spawn(move || {
                    for _ in 0..50 {
                        replace(file, &[byte; 100_000]).unwrap();
                        let found = fs::read(file).unwrap();
                        assert!(found.len() == 100_000 && found.iter().all(|byte| *byte == found[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_is_made_is_its_owners_alone_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        create(&file, &[1; 32]).unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o600, vec![1; 32]));
        assert_eq!(create(&file, &[2; 32]).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), [1; 32]);
    }

    #[test]
    fn what_root_makes_in_somebody_elses_folder_is_theirs() {
        // red without hand_over in leave. Only root can give a folder away.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        for owner in [12_345, 0] {
            std::os::unix::fs::chown(folder.path(), Some(owner), Some(owner)).unwrap();
            let left = folder.path().join(owner.to_string());
            replace(&file, b"x").unwrap();
            leave(&left, b"x").unwrap();
            for name in [&file, &left] {
                let made = fs::metadata(name).unwrap();
                assert_eq!((made.uid(), made.gid(), mode(name)), (owner, owner, 0o600), "{}", name.display());
            }
        }
    }

    #[test]
    fn what_is_replaced_is_private_too_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("link");
        for before in [None, Some(&file), Some(&beside(&file, ".new"))] {
            before.inspect(|before| put(before, b"a longer text of before", 0o644));
            replace(&file, b"new").unwrap();
            assert_eq!((mode(&file), fs::read(&file).unwrap()), (0o600, b"new".to_vec()));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
