//! The journal of a node: a folder of files that only grow, and one that says what the node knows of its database.
//!
//! One record a line, with a checksum before it. One thread writes: whatever waits goes out together, with one sync for
//! all. A line that was torn by the end of the machine is not read: nobody was told of it.

mod line;
mod writer;

#[cfg(test)]
mod tests;

use crate::private;
use app::ward::{Journal, Memory};
use rules::Time;
use rules::ending::Record;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;
use store::engine::Answer;
use writer::{LARGEST, Writer};

/// The folder's name in the data folder.
pub const FOLDER: &str = "journal";
/// What the node remembers.
const MEMORY: &str = "node.json";

/// The most files that say something which are kept, 4 GiB: a failover loses minutes at the most, and a disk that is full
/// ends everything.
const MOST: usize = 256;

/// Whether the journal of a data folder remembers a server that the node acknowledged for. One that cannot be read is of some.
pub fn remembers_a_server(data: &Path) -> bool {
    let kept = fs::read(data.join(FOLDER).join(MEMORY));
    let memory = kept.map(|text| serde_json::from_slice::<Memory>(&text));
    memory.is_ok_and(|memory| memory.map_or(true, |memory| memory.identity.is_some()))
}

/// A journal in a folder of its own.
pub struct Folder {
    folder: PathBuf,
    writer: Writer,
    kept: Mutex<Kept>,
}

/// What is known of the folder.
#[derive(Default)]
struct Kept {
    memory: Memory,
    /// Whether older files were removed.
    cut: bool,
}

impl Folder {
    /// Opens the journal of a data folder, or makes it: for a node of this name, if it has none yet.
    pub fn open(data: &Path, name: &str) -> io::Result<Self> {
        let folder = data.join(FOLDER);
        if !folder.exists() {
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            private::hand_over(&folder)?;
            fs::File::open(data)?.sync_all()?;
        }
        private::nothing_waits(&folder).map_err(io::Error::other)?;
        let memory = match fs::read(folder.join(MEMORY)) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let memory = Memory { node: name.to_owned(), ..Memory::default() };
                private::replace(&folder.join(MEMORY), &serde_json::to_vec(&memory)?)?;
                memory
            }
            Err(error) => return Err(error),
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
                // The writer took it back.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            said += usize::from(says);
            // The one that is written to stays, and the last that says something.
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

/// When a file was last written to.
fn written(file: &Path) -> io::Result<Time> {
    let since = fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

fn part_file(folder: &Path, part: u64) -> PathBuf {
    folder.join(format!("{part:08}.log"))
}

/// The numbers of the files, the newest first.
fn parts(folder: &Path) -> io::Result<Vec<u64>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        parts.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok()));
    }
    parts.sort_unstable_by(|a, b| b.cmp(a));
    Ok(parts)
}
