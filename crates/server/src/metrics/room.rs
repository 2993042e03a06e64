//! How much disk space there is, and what uses it.

use crate::private::beside;
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// Disk space in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The size of the file system of the data folder.
    pub size: u64,
    /// Its free space for users other than root.
    pub free: u64,
    /// SQLite's file and its write-ahead log.
    pub files: Option<[u64; 2]>,
}

/// Measures the space on a thread that may block, one at a time: a file system that hangs takes no more threads.
#[derive(Default)]
pub struct Surveyor(Mutex<Option<JoinHandle<Option<Room>>>>);

impl Surveyor {
    /// Returns the space now; nothing if the system does not answer `within` this time.
    pub async fn look(&self, data: &Path, database: Option<&Path>, within: Duration) -> Option<Room> {
        let begun = self.lock().take();
        let mut looking = begun.unwrap_or_else(|| {
            let (data, database) = (data.to_owned(), database.map(Path::to_owned));
            spawn_blocking(move || Room::of(&data, database))
        });
        match timeout(within, &mut looking).await {
            Ok(found) => found.ok().flatten(),
            Err(_) => {
                *self.lock() = Some(looking);
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<JoinHandle<Option<Room>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    fn of(data: &Path, database: Option<PathBuf>) -> Option<Self> {
        let found = statvfs(data).ok()?;
        let length = |path: &Path| path.metadata().map_or(0, |file| file.len());
        let files = database.map(|file| [length(&file), length(&beside(&file, "-wal"))]);
        Some(Room { size: found.f_blocks * found.f_frsize, free: found.f_bavail * found.f_frsize, files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_as_long_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portiere.db");
        std::fs::write(&file, [0; 300]).unwrap();
        std::fs::write(folder.path().join("portiere.db-wal"), [0; 40]).unwrap();
        let (surveyor, long) = (Surveyor::default(), Duration::from_secs(100));
        let room = surveyor.look(folder.path(), Some(&file), long).await.unwrap();
        assert_eq!(room.files, Some([300, 40]));
        assert!(room.size > room.free && room.free > 0, "{room:?}");
        assert!(surveyor.look(&folder.path().join("none"), None, long).await.is_none());
        // Red without keeping the task in `look`: each look at a file system that hangs would take another thread.
        let stuck = spawn_blocking(|| None);
        while !stuck.is_finished() {
            tokio::task::yield_now().await;
        }
        *surveyor.lock() = Some(stuck);
        assert!(surveyor.look(folder.path(), None, long).await.is_none(), "the one that was begun is waited for");
        assert!(surveyor.look(folder.path(), None, long).await.is_some());
    }
}
