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
    /// The size of the file system of the data folder, or of that of SQLite's file if it is fuller.
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
        // The folder of the database: its log grows there, too.
        let of_database = database.as_deref().and_then(Path::parent).map(disk);
        let (size, free) = match of_database {
            Some(other) => fuller(disk(data)?, other?),
            None => disk(data)?,
        };
        let length = |path: &Path| path.metadata().map_or(0, |file| file.len());
        let files = database.map(|file| [length(&file), length(&beside(&file, "-wal"))]);
        Some(Room { size, free, files })
    }
}

/// Returns the size of a folder's file system and the free space there.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let found = statvfs(folder).ok()?;
    Some((found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize))
}

/// Returns the one of two disks, as size and free space, of which the smaller share is free.
fn fuller(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    let share = |free: u64, of: u64| u128::from(free) * u128::from(of);
    if share(other.1, one.0) < share(one.1, other.0) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_disks_the_fuller_one_counts() {
        // Red where the data folder's is told whichever the database is on.
        let (small, large) = ((100, 40), (1_000, 50));
        assert_eq!([fuller(small, large), fuller(large, small)], [large; 2], "a tenth and less is free of it");
        assert_eq!(fuller(small, small), small);
        assert_eq!(fuller((u64::MAX, u64::MAX), (u64::MAX, 1)), (u64::MAX, 1));
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("none/portiere.db");
        assert!(Room::of(folder.path(), Some(elsewhere)).is_none(), "the database's disk is looked at");
    }

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
