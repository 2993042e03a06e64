//! Result files, tested for being writable before anybody waits for a measurement.

use crate::Refusal;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The most symbolic links that are followed, one to the other; the kernel follows as many.
const LINKS: usize = 40;

/// Makes sure that no two of these paths are the same file: the second result would overwrite the first.
///
/// # Errors
/// [`Refusal::Use`].
pub fn apart<'f>(files: impl IntoIterator<Item = &'f PathBuf>) -> Result<(), Refusal> {
    let mut known: Vec<PathBuf> = Vec::new();
    for file in files {
        // Something that is not a regular file takes both: a terminal, or /dev/null.
        if file.metadata().is_ok_and(|there| !there.is_file()) {
            continue;
        }
        let place = place(file);
        if known.contains(&place) {
            let line = format!("{} would hold two results: name a file for each", file.display());
            return Err(Refusal::Use(line));
        }
        known.push(place);
    }
    Ok(())
}

/// Returns where a file is, or will be once it is created.
fn place(file: &Path) -> PathBuf {
    let made = || {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(file.file_name()?))
    };
    file.canonicalize().ok().or_else(made).unwrap_or_else(|| file.to_owned())
}

/// Refuses `-`, which stands for standard output elsewhere: nobody means a file of that name.
///
/// # Errors
/// [`Refusal::Use`].
pub fn named(file: &Path) -> Result<(), Refusal> {
    let why = "- is not standard output here: name a file (./- is a file of that name)";
    if file == Path::new("-") { Err(Refusal::Use(why.to_owned())) } else { Ok(()) }
}

/// Makes sure that a file can be written. A file that does not exist yet is created and removed again, so that nothing
/// is left of it if there is no result, however the run ends.
///
/// # Errors
/// [`Refusal`].
pub fn try_out(file: &Path) -> Result<(), Refusal> {
    named(file)?;
    let outcome = match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(_) => std::fs::remove_file(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            is_link(file, owners()).and_then(|_| OpenOptions::new().append(true).open(file).map(drop))
        }
        Err(error) => Err(error),
    };
    outcome.map_err(|error| cannot(file, &error))
}

/// Writes a result. An existing file is replaced only once the result is completely on disk, and is kept if that fails.
///
/// # Errors
/// [`Refusal::Failure`].
pub fn write(file: &Path, text: &str) -> Result<(), Refusal> {
    replace(file, text).map_err(|error| cannot(file, &error))
}

/// Whose symbolic links are followed: those of root, and the caller's own.
fn owners() -> [u32; 2] {
    [0, rustix::process::geteuid().as_raw()]
}

/// Whether a file is a symbolic link. Fails if the link, or one that it leads to, belongs to none of these owners: the
/// owner of a folder can put a link there, and root would write to wherever that points.
fn is_link(file: &Path, owners: [u32; 2]) -> std::io::Result<bool> {
    let mut at = file.to_owned();
    for followed in 0..LINKS {
        let owner = match at.symlink_metadata() {
            Ok(there) if there.is_symlink() => there.uid(),
            // Nothing may be there: links in /proc lead to pipes, which have no name.
            _ => return Ok(followed > 0),
        };
        if !owners.contains(&owner) {
            let why = format!("{} is a symbolic link of another user ({owner}): name another file", at.display());
            return Err(Error::new(ErrorKind::PermissionDenied, why));
        }
        at = at.parent().unwrap_or(Path::new("")).join(at.read_link()?);
    }
    Ok(true)
}

fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let linked = is_link(file, owners())?;
    let there = match file.metadata() {
        // A pipe, a terminal or a device is written to, never replaced.
        Ok(there) if !there.is_file() => return put(file, text, linked),
        Ok(there) => Some(there.permissions()),
        Err(_) => None,
    };
    // A symbolic link keeps pointing to its file.
    let file = if linked && there.is_some() { file.canonicalize()? } else { file.to_owned() };
    // Beside the file, so that it is on the same file system.
    let partial = file.with_file_name(format!(".portiere-{}.partial", std::process::id()));
    match OpenOptions::new().write(true).create_new(true).open(&partial) {
        Ok(opened) => by_way_of(&partial, &file, || fill(opened, text, there)),
        // A file may be writable where its folder is not; and a partial file left by another program with this PID is
        // not ours.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::AlreadyExists) => {
            put(&file, text, false)
        }
        Err(error) => Err(error),
    }
}

/// Writes to what is there, whatever it is. If that was no symbolic link, one that has been put in its place since is
/// not followed.
fn put(file: &Path, text: &str, linked: bool) -> std::io::Result<()> {
    let flags = if linked { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut open = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(file)?;
    open.write_all(text.as_bytes())
}

/// Fills `partial`, and renames it to `file` if that succeeds.
fn by_way_of(partial: &Path, file: &Path, fill: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
    let written = fill().and_then(|()| std::fs::rename(partial, file));
    if written.is_err() {
        // The caller reports what went wrong; failing to remove this file, too, would add nothing.
        let _ = std::fs::remove_file(partial);
    }
    written
}

fn fill(mut file: File, text: &str, permissions: Option<Permissions>) -> std::io::Result<()> {
    file.write_all(text.as_bytes())?;
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    file.sync_all()
}

fn cannot(file: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failure(format!("{} cannot be written: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_result_replaces_what_was_there_and_leaves_nothing_beside_it() {
        let folder = std::env::temp_dir().join(format!("load-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("a.json"), folder.join("link"));
        write(&file, "first").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second", "through the link");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn nothing_is_written_through_a_link_of_somebody_else() {
        // Red without `is_link` in `try_out` or in `replace`, or where only the first link is looked at.
        let folder = std::env::temp_dir().join(format!("load-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::write(at("file"), "before").unwrap();
        symlink("file", at("link")).unwrap();
        symlink(at("link"), at("far")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let others = [own + 1, own + 2];
        for name in ["link", "far", "dangling"] {
            assert!(is_link(&at(name), [own; 2]).unwrap(), "{name}");
            let refused = is_link(&at(name), others).unwrap_err();
            assert!(refused.to_string().contains("is a symbolic link of another user"), "{name}: {refused}");
        }
        for name in ["file", "none"] {
            assert!(!is_link(&at(name), others).unwrap(), "{name}");
        }
        // Only root can give a link away.
        if own == 0 {
            std::os::unix::fs::lchown(at("link"), Some(12_345), None).unwrap();
            for name in ["link", "far"] {
                for refused in [try_out(&at(name)), write(&at(name), "after")] {
                    assert!(refused.unwrap_err().to_string().contains("link of another user (12345)"), "{name}");
                }
            }
        }
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "before");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_what_was_none_is_not_followed() {
        // Red without NOFOLLOW in `put`: the owner of the folder may put it there a moment before.
        let folder = std::env::temp_dir().join(format!("load-swapped-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        std::fs::write(&file, "before").unwrap();
        symlink(&file, &link).unwrap();
        assert!(put(&link, "after", false).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
        put(&link, "after", true).unwrap();
        put(&file, "and after", false).unwrap();
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "and after");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_file_is_not_two_however_it_is_written() {
        // Red where paths are compared as written.
        let folder = std::env::temp_dir().join(format!("load-apart-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("within")).unwrap();
        let at = |path: &str| folder.join(path);
        std::fs::write(at("there"), "").unwrap();
        symlink(at("there"), at("link")).unwrap();
        let of = |one: &str, other: &str| apart(&[at(one), at(other)]);
        let pairs = [("a", "a"), ("a", "./a"), ("a", "within/../a"), ("there", "link"), ("there", "within/../there")];
        for (one, other) in pairs {
            let refusal = of(one, other).unwrap_err();
            assert!(refusal.exit_code() == 2 && refusal.to_string().contains("would hold two results"), "{refusal}");
        }
        for (one, other) in [("a", "b"), ("there", "a"), ("a", "within/a"), ("no/a", "no/b")] {
            assert_eq!(of(one, other), Ok(()), "{one} {other}");
        }
        assert!(apart(&[PathBuf::from("load-x"), PathBuf::from("./load-x")]).is_err());
        assert_eq!(apart(&[PathBuf::from("/dev/null"), PathBuf::from("/dev/null")]), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Red where it is written in place: the result of an hour would be lost.
    #[test]
    fn what_was_there_stays_where_the_new_cannot_be_written() {
        let folder = std::env::temp_dir().join(format!("load-unwritten-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, partial) = (folder.join("a.json"), folder.join("partial"));
        std::fs::write(&file, "before").unwrap();
        std::fs::write(&partial, "aft").unwrap();
        let full = by_way_of(&partial, &file, || Err(ErrorKind::StorageFull.into()));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), partial.exists()), ("before", false));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        assert!(write(Path::new("/dev/full"), "text").is_err());
    }
}
