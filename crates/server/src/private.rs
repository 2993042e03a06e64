//! Files that are accessible to their owner alone: secrets of 32 bytes, and what the server leaves in its data folder.

mod whole;

use rustix::fs::{Access, OFlags};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

pub use whole::{aside, beside, create, hand_over, key_or_new, leave, replace};

/// A secret as its file holds it; its memory is cleared after use.
pub type Key = Zeroizing<[u8; 32]>;

/// The permissions that a secret's file must not give: any to everybody, and more than reading to its group, through
/// which root lends a file to a service.
const TOO_OPEN: u32 = 0o037;

/// Why a secret cannot be read.
#[derive(Debug)]
pub enum Unread {
    /// There is no such file.
    Missing,
    /// It is a pipe, a device or a folder.
    NoFile,
    /// Others than its owner may do too much with it; the value is its mode.
    Open(u32),
    /// It is shorter or longer than 32 bytes.
    Length,
    /// It is empty, or longer than [`LONGEST`].
    Size,
    /// Anything else.
    Failed(io::Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Missing => f.write_str("is missing"),
            Unread::NoFile => f.write_str("is not a regular file: put one in its place, or name another"),
            Unread::Open(mode) => {
                let how = opened(*mode);
                write!(
                    f,
                    "is open to others (mode {mode:04o}): make it its owner's alone ({how}), and think of who saw it"
                )
            }
            Unread::Length => f.write_str("is not 32 bytes"),
            Unread::Size => write!(f, "is empty or longer than {LONGEST} bytes"),
            Unread::Failed(error) => error.fmt(f),
        }
    }
}

/// Returns how to close a file with this mode, also where nobody may change it: a file mounted for a pod has the mode
/// of its manifest, and a file that a pod made on a volume is opened for the `fsGroup` at the next mount.
fn opened(mode: u32) -> &'static str {
    match mode & 0o007 {
        0 => {
            "chmod 600; where a volume's fsGroup opens it at each mount, a data folder below the mount and \
             fsGroupChangePolicy: OnRootMismatch"
        }
        _ => {
            "chmod 600; where it is mounted from a secret, defaultMode: 0440 with the server's group, which is fsGroup in a pod"
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Unread::Missing,
            ErrorKind::UnexpectedEof => Unread::Length,
            _ => Unread::Failed(error),
        }
    }
}

/// Opens a file that is its owner's alone; the path may be a link. Does not wait at a pipe for a writer: a start, or a
/// check of its configuration, would hang.
fn open(file: &Path) -> Result<File, Unread> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    let there = open.metadata()?;
    if !there.is_file() {
        return Err(Unread::NoFile);
    }
    let mode = there.permissions().mode() & 0o777;
    if mode & TOO_OPEN == 0 { Ok(open) } else { Err(Unread::Open(mode)) }
}

/// The longest text of a secret, in bytes.
const LONGEST: usize = 1024;

/// Reads the text of a secret, without the line ending that editors add.
pub fn read_text(file: &Path) -> Result<Zeroizing<Vec<u8>>, Unread> {
    // Allocated at its final size at once: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST + 3));
    open(file)?.take(LONGEST as u64 + 3).read_to_end(&mut text)?;
    let bare = text.strip_suffix(b"\n").map_or(text.len(), |line| line.strip_suffix(b"\r").unwrap_or(line).len());
    text.truncate(bare);
    if (1..=LONGEST).contains(&text.len()) { Ok(text) } else { Err(Unread::Size) }
}

/// Reads a secret of 32 bytes, and at most one byte more, which shows that the file is too long.
pub fn read_key(file: &Path) -> Result<Key, Unread> {
    let mut open = open(file)?;
    let mut key = Key::default();
    open.read_exact(&mut *key)?;
    match open.read_exact(&mut [0]) {
        Ok(()) => Err(Unread::Length),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(key),
        Err(error) => Err(error.into()),
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What an empty folder of a new file system contains.
const NOTHING: [&str; 1] = ["lost+found"];

/// Makes a folder that is its owner's alone (0700). An existing folder is made so only if nobody else can be using it:
/// if it is empty, or contains one of `ours`. A mistyped name must not lock others out of their files. Everything in
/// the folder can be opened without waiting for anybody.
///
/// # Errors
/// A sentence that names the folder.
pub fn folder(folder: &Path, ours: &[&str]) -> Result<(), String> {
    let made = match standing(folder, ours)? {
        Standing::Missing => fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        Standing::Open => fs::set_permissions(folder, fs::Permissions::from_mode(0o700)),
        Standing::Private => Ok(()),
    };
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

/// What is in the place of a folder that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Missing,
    /// The folder, which others can look into.
    Open,
    /// The folder, which is its owner's alone.
    Private,
}

/// Refuses what [`folder`] refuses, and changes nothing.
///
/// # Errors
/// The same sentence.
pub fn standing(folder: &Path, ours: &[&str]) -> Result<Standing, String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let mode = match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Standing::Missing),
        Err(error) => return Err(failed(error)),
        Ok(there) if !there.is_dir() => return Err(format!("{} is not a folder", folder.display())),
        Ok(there) => there.permissions().mode() & 0o7777,
    };
    let is_private = mode & 0o077 == 0;
    let is_ours = || ours.iter().any(|name| folder.join(name).exists());
    if !is_private && !is_empty(folder).map_err(failed)? && !is_ours() {
        return Err(format!(
            "{} is open to others (mode {mode:04o}) and holds other files: name a folder for this alone, such as {}, \
             or make this one its owner's (chmod 700)",
            folder.display(),
            folder.join("portiere").display()
        ));
    }
    nothing_waits(folder)?;
    Ok(if is_private { Standing::Private } else { Standing::Open })
}

/// Checks that a file could be made, and makes nothing.
pub fn could_be_made(file: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder_of(file), Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Refuses a folder that holds a pipe or a device: opening a pipe waits for its other end, and a start would hang.
///
/// # Errors
/// A sentence that names what is in the folder.
pub fn nothing_waits(folder: &Path) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten() {
        let kind = fs::metadata(entry.path()).map(|there| there.file_type());
        if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_block_device()) {
            return Err(format!(
                "{} holds {}, which is a pipe or a device: remove it",
                folder.display(),
                entry.path().display()
            ));
        }
    }
    Ok(())
}

/// Returns whether a folder contains nothing but what each new file system has.
pub fn is_empty(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if !NOTHING.iter().any(|name| entry.as_ref().is_ok_and(|entry| entry.file_name() == *name)) {
            return entry.map(|_| false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_private_only_where_nobody_else_can_mean_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        folder(&at("new/and/deep"), &["key"]).unwrap();
        assert_eq!(mode(&at("new/and/deep")), 0o700);
        let open = |name: &str, content: Option<&str>| {
            fs::create_dir(at(name)).unwrap();
            content.iter().for_each(|file| fs::write(at(name).join(file), "").unwrap());
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
            folder(&at(name), &["key"]).map(|()| mode(&at(name)))
        };
        assert_eq!(
            [open("empty", None), open("disk", Some("lost+found")), open("ours", Some("key"))],
            [Ok(0o700), Ok(0o700), Ok(0o700)]
        );
        let why = open("others", Some("letters")).unwrap_err();
        assert!(why.contains("mode 0755") && why.contains("others/portiere"), "{why}");
        assert_eq!(mode(&at("others")), 0o755, "nothing was changed");
        // A folder that is private already stays as it is, whatever is in it.
        fs::set_permissions(at("others"), fs::Permissions::from_mode(0o500)).unwrap();
        folder(&at("others"), &["key"]).unwrap();
        assert_eq!(mode(&at("others")), 0o500);
        for (name, target) in [("file", None), ("link", Some("file"))] {
            match target {
                None => put(&at(name), b"", 0o644),
                Some(target) => std::os::unix::fs::symlink(at(target), at(name)).unwrap(),
            }
            let why = folder(&at(name), &["key"]).unwrap_err();
            assert!(why.ends_with("is not a folder") && mode(&at("file")) == 0o644, "{why}");
        }
    }

    pub fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    pub fn put(file: &Path, bytes: &[u8], mode: u32) {
        fs::write(file, bytes).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_secret_is_read_from_a_file_that_nobody_else_can_open() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        for allowed in [0o600, 0o400, 0o640, 0o440, 0o700] {
            put(&file, &[7; 32], allowed);
            assert_eq!(*read_key(&file).unwrap(), [7; 32], "{allowed:o}");
        }
        for bit in [0o001, 0o002, 0o004, 0o010, 0o020] {
            put(&file, &[7; 32], 0o600 | bit);
            assert!(matches!(read_key(&file), Err(Unread::Open(mode)) if mode == 0o600 | bit), "{bit:o}");
        }
    }

    #[test]
    fn whoever_cannot_change_a_mode_is_told_where_it_comes_from() {
        // red where chmod is all: a mounted secret is read-only, and kubelet opens what it mounts each time.
        for (mode, how) in [(0o644, "defaultMode: 0440"), (0o604, "defaultMode: 0440"), (0o660, "OnRootMismatch")] {
            let told = Unread::Open(mode).to_string();
            let begin = format!("is open to others (mode {mode:04o}): make it its owner's alone (chmod 600; ");
            assert!(told.starts_with(&begin) && told.contains(how), "{told}");
        }
    }

    #[test]
    fn a_secret_has_32_bytes_and_no_other_file_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        for length in [0, 1, 31, 33, 64, 4096] {
            put(&file, &vec![7; length], 0o600);
            assert!(matches!(read_key(&file), Err(Unread::Length)), "{length}");
        }
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read_key(&file), Err(Unread::Length)));
        assert!(matches!(read_key(&folder.path().join("none")), Err(Unread::Missing)));
    }

    #[test]
    fn nobody_waits_for_a_secret_at_a_pipe_and_a_link_to_a_file_is_followed() {
        // red without NONBLOCK in open: the test would not end; or without is_file there.
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for none in [&*pipe, &*link, folder.path(), Path::new("/dev/zero")] {
            assert!(matches!(read_key(none), Err(Unread::NoFile)), "{}", none.display());
            assert!(matches!(read_text(none), Err(Unread::NoFile)), "{}", none.display());
        }
        // As Kubernetes mounts a secret.
        put(&folder.path().join("key"), &[7; 32], 0o600);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("key", &link).unwrap();
        assert_eq!(*read_key(&link).unwrap(), [7; 32]);
    }

    #[test]
    fn a_text_is_read_without_the_end_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        let long = [b'x'; LONGEST + 1];
        for (kept, text) in [
            (&b"secret"[..], Some(&b"secret"[..])),
            (b"secret\n", Some(b"secret")),
            (b"secret\r\n", Some(b"secret")),
            (b"secret\n\n", Some(b"secret\n")),
            (b" secret ", Some(b" secret ")),
            (b"", None),
            (b"\n", None),
            (&long[1..], Some(&long[1..])),
            (&[&long[1..], b"\r\n"].concat(), Some(&long[1..])),
            (&[&long[1..], b"\r\n\n"].concat(), None),
            (&long, None),
        ] {
            put(&file, kept, 0o600);
            assert_eq!(read_text(&file).ok().as_ref().map(|text| text.as_slice()), text, "{} bytes", kept.len());
        }
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read_text(&file), Err(Unread::Size)));
        put(&file, b"secret", 0o604);
        assert!(matches!(read_text(&file), Err(Unread::Open(0o604))));
        assert!(matches!(read_text(&folder.path().join("none")), Err(Unread::Missing)));
    }

    /// Red without `nothing_waits`: opening the pipe would wait for ever.
    #[test]
    fn a_folder_that_holds_a_pipe_is_refused_by_its_name() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("data");
        folder(&at, &[]).unwrap();
        put(&at.join("key"), b"x", 0o600);
        std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap();
        folder(&at, &[]).unwrap();
        mknodat(CWD, at.join("setup-link"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for mode in [0o700, 0o755] {
            fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            assert!(folder(&at, &["key"]).unwrap_err().contains("data/setup-link, which is a pipe"), "{mode:o}");
        }
    }
}
