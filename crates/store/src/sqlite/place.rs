//! Whether the files that are written to are still the ones that the next start will find.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open;

/// A file, whatever it is called.
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
    /// It cannot be known.
    Unknown,
}

fn find(path: &Path) -> Found {
    match fs::metadata(path) {
        Ok(file) => Found::File(Identity { device: file.dev(), number: file.ino() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

/// A file that is open, and the name that it was opened by.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    file: Option<Identity>,
}

impl Named {
    fn stands(&mut self) -> bool {
        match (find(&self.path), self.file) {
            (Found::File(now), Some(then)) => now == then,
            // It is made when it is first needed.
            (Found::File(now), None) => {
                self.file = Some(now);
                true
            }
            (Found::Nothing, then) => then.is_none(),
            (Found::Unknown, _) => true,
        }
    }
}

/// The database and its log. The system takes writes to a file that was removed or replaced without a word, and drops them with
/// the process (<https://sqlite.org/howtocorrupt.html>, 1.4).
#[derive(Debug)]
pub(super) struct Place([Named; 2]);

impl Place {
    /// Of a database that has just been opened.
    pub(super) fn of(path: &Path) -> Self {
        let mut files = ["", "-wal"].map(|ending| Named { path: open::beside(path, ending), file: None });
        for file in &mut files {
            file.stands();
        }
        Place(files)
    }

    /// Whether what is written is where the next start looks.
    pub(super) fn stands(&mut self) -> bool {
        self.0.iter_mut().all(Named::stands)
    }
}
