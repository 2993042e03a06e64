//! Checks whether the files being written are still the ones that the next start will find.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open;

/// Identifies a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    File(Identity),
    Nothing,
    /// It cannot be determined.
    Unknown,
}

fn find(path: &Path) -> Found {
    match fs::metadata(path) {
        Ok(file) => Found::File(Identity { device: file.dev(), number: file.ino() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

/// An open file, and the name by which it was opened.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    file: Option<Identity>,
}

impl Named {
    fn stands(&mut self) -> bool {
        match (find(&self.path), self.file) {
            (Found::File(now), Some(then)) => now == then,
            // The file is created when it is first needed.
            (Found::File(now), None) => {
                self.file = Some(now);
                true
            }
            (Found::Nothing, then) => then.is_none(),
            (Found::Unknown, _) => true,
        }
    }
}

/// The database and its log. The system silently accepts writes to a file that was removed or replaced, and drops them
/// when the process ends (<https://sqlite.org/howtocorrupt.html>, 1.4).
#[derive(Debug)]
pub(super) struct Place([Named; 2]);

impl Place {
    /// The files of a database that has just been opened.
    pub(super) fn of(path: &Path) -> Self {
        let mut files = ["", "-wal"].map(|ending| Named { path: open::beside(path, ending), file: None });
        for file in &mut files {
            file.stands();
        }
        Place(files)
    }

    /// Whether writes go to where the next start looks.
    pub(super) fn stands(&mut self) -> bool {
        self.0.iter_mut().all(Named::stands)
    }
}
