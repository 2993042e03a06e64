//! The journal of a node: a folder of files that only grow, and one that says what the node knows about its database.
//!
//! Each line is one record, with a checksum before it. One thread writes: all lines that wait go out together, with one
//! sync. A line that was torn when the machine went down is not read: it was never acknowledged.

mod expired;
mod line;
mod writer;

#[cfg(test)]
mod tests;

use crate::private;
use app::ward::{Journal, Memory};
use rules::ending::Record;
use rules::{Span, Time};
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;
use store::engine::Answer;
use writer::{LARGEST, Writer};

pub use expired::expire;

/// The folder's name in the data folder.
pub const FOLDER: &str = "journal";
/// The file with what the node remembers.
const MEMORY: &str = "node.json";

/// The most files with content that are kept, 4 GiB: a failover loses minutes at the most, and a full disk ends
/// everything.
const MOST: usize = 256;

/// Returns what the node of a data folder remembers; `None` if it never kept a journal.
pub fn memory(data: &Path) -> io::Result<Option<Memory>> {
    match fs::read(data.join(FOLDER).join(MEMORY)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the journal of a data folder remembers a server that the node acknowledged for. A memory that is
/// there and cannot be read counts as one that does.
pub fn remembers_a_server(data: &Path) -> bool {
    memory(data).map_or(true, |memory| memory.is_some_and(|memory| memory.identity.is_some()))
}

/// A journal in a folder of its own.
pub struct Folder {
    folder: PathBuf,
    writer: Writer,
    kept: Mutex<Kept>,
}

/// What is known about the folder.
#[derive(Default)]
struct Kept {
    memory: Memory,
    /// Whether older files were removed.
    cut: bool,
}

impl Folder {
    /// Opens the journal of a data folder; makes one, for a node of this name, if there is none yet.
    pub async fn open(data: &Path, name: &str) -> io::Result<Self> {
        let (data, name) = (data.to_owned(), name.to_owned());
        private::aside(move || Folder::opened(&data, &name)).await
    }

    fn opened(data: &Path, name: &str) -> io::Result<Self> {
        let folder = data.join(FOLDER);
        if !folder.exists() {
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let made = fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(&folder)?;
            private::hand_over(&made, &folder)?;
            fs::File::open(data)?.sync_all()?;
        }
        private::nothing_waits(&folder).map_err(io::Error::other)?;
        let memory = match memory(data)? {
            Some(memory) => memory,
            None => {
                let memory = Memory { node: name.to_owned(), ..Memory::default() };
                private::replace(&folder.join(MEMORY), &serde_json::to_vec(&memory)?)?;
                memory
            }
        };
        let parts = parts(&folder)?;
        let cut = parts.last().is_some_and(|oldest| *oldest > 1);
        let writer = Writer::start(folder.clone(), parts.first().map_or(1, |newest| newest + 1), LARGEST)?;
        Ok(Folder { folder, writer, kept: Mutex::new(Kept { memory, cut }) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Folder {
    fn append(&self, record: &Record) -> Answer<'_, (), String> {
        let line = line::write(record);
        Box::pin(async move { self.writer.append(line?).await })
    }

    fn works(&self) -> Result<(), String> {
        self.writer.works()
    }

    fn parts(&self) -> Result<Vec<u64>, String> {
        parts(&self.folder).map_err(|error| error.to_string())
    }

    fn read(&self, part: u64) -> Result<Vec<Record>, String> {
        match fs::read(part_file(&self.folder, part)) {
            Ok(bytes) => line::read(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn forget(&self, before: Time) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut said = 0;
        for (nth, part) in parts(&self.folder).map_err(failed)?.into_iter().enumerate() {
            let file = part_file(&self.folder, part);
            let says = match fs::metadata(&file) {
                Ok(about) => about.len() > 0,
                // The writer removed it again.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            said += usize::from(says);
            // The file that is being written stays, and so does the newest with content.
            let stays = nth == 0 || (says && said == 1);
            if !stays && ((says && said > MOST) || written(&file).map_err(failed)? < before) {
                self.kept().cut |= says;
                fs::remove_file(&file).map_err(failed)?;
            }
        }
        self.writer.rotate_before(before);
        Ok(())
    }

    fn is_cut(&self) -> bool {
        self.kept().cut
    }

    fn memory(&self) -> Memory {
        self.kept().memory.clone()
    }

    fn remember(&self, memory: &Memory) -> Result<(), String> {
        let text = serde_json::to_vec(memory).map_err(|error| error.to_string())?;
        private::replace(&self.folder.join(MEMORY), &text).map_err(|error| error.to_string())?;
        self.kept().memory = memory.clone();
        Ok(())
    }
}

/// Returns when a file was last written to.
fn written(file: &Path) -> io::Result<Time> {
    let since = fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Time(0) + Span::from(since))
}

fn part_file(folder: &Path, part: u64) -> PathBuf {
    folder.join(format!("{part:08}.log"))
}

/// Returns the numbers of the files, the newest first.
fn parts(folder: &Path) -> io::Result<Vec<u64>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        parts.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok()));
    }
    parts.sort_unstable_by(|a, b| b.cmp(a));
    Ok(parts)
}
