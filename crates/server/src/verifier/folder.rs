//! What a worker keeps: its key, the addresses of its servers, and what it has learnt about its machine.

use super::identity::{self, Identity};
use crate::private::{self, Unread, aside};
use hasher::Calibration;
use rules::secret::Handle;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// A worker's folder.
#[derive(Clone)]
pub struct Folder(PathBuf);

/// Whom a worker works for. Fields that a later program adds are ignored, as in every file that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// The server's name for the worker.
    pub name: String,
    /// The addresses of the server's nodes: host and port each.
    pub servers: Vec<String>,
    /// SHA-256 of the server's public key, in base64url.
    pub server_key: String,
}

impl Post {
    /// Returns the key by which the server is known.
    pub fn pin(&self) -> Option<Handle> {
        identity::read(&self.server_key)
    }
}

impl Folder {
    /// Returns the folder at this path.
    pub fn at(path: &Path) -> Self {
        Folder(path.to_owned())
    }

    fn key_file(&self) -> PathBuf {
        self.0.join("worker.key")
    }
    fn post_file(&self) -> PathBuf {
        self.0.join("worker.json")
    }
    fn learnt_file(&self) -> PathBuf {
        self.0.join("hashing")
    }

    /// Makes the folder, with mode 0700, and a key in it, if they do not exist. In the folder of another user, whose
    /// service it is for, root makes a key that is that user's.
    pub fn prepare(&self) -> Result<Identity, String> {
        private::folder(&self.0, &["worker.key"])?;
        let file = self.key_file();
        Identity::of(&private::key_or_new(&file).map_err(|why| format!("{}: {why}", file.display()))?)
    }

    /// Reads the worker's key.
    pub fn identity(&self) -> Result<Identity, String> {
        let file = self.key_file();
        let key = private::read_key(&file).map_err(|why| match why {
            Unread::Missing => self.not_enrolled(),
            why => format!("{}: {why}", file.display()),
        })?;
        Identity::of(&key)
    }

    fn not_enrolled(&self) -> String {
        let folder = self.0.display();
        format!("{folder} is not the folder of an enrolled worker: see portiere verifier enroll --help")
    }

    /// Reads whom the worker works for.
    pub fn post(&self) -> Result<Post, String> {
        let file = self.post_file();
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(self.not_enrolled()),
            other => other.map_err(|error| format!("{}: {error}", file.display()))?,
        };
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns whether the worker works for a server.
    pub fn is_taken(&self) -> bool {
        self.post_file().exists()
    }

    /// Locks the folder for this process alone, until the file is dropped: two processes would be one worker to the
    /// server. It locks the key, which is never replaced, so that the folder may be read-only.
    pub fn take(&self) -> Result<File, String> {
        let (folder, file) = (self.0.display(), self.key_file());
        let key = File::open(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        match key.try_lock() {
            Ok(()) => Ok(key),
            Err(TryLockError::WouldBlock) => Err(format!(
                "{folder} is in use by another process: a second worker needs its own folder and enrolment"
            )),
            // Some network file systems lock nothing that is open only for reading.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%folder, %error, "cannot lock this folder: a second process could use it");
                Ok(key)
            }
        }
    }

    /// Records whom the worker works for.
    pub fn keep(&self, post: &Post) -> Result<(), String> {
        let file = self.post_file();
        let text = serde_json::to_string_pretty(post).map_err(|error| error.to_string())?;
        private::replace(&file, format!("{text}\n").as_bytes()).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns what was learnt about the machine before.
    pub fn learnt(&self) -> Option<Calibration> {
        Calibration::from_text(&fs::read_to_string(self.learnt_file()).ok()?).ok()
    }

    /// Keeps what was learnt, on another thread: the calling one talks to servers.
    pub async fn learn(&self, calibration: &Calibration) {
        let (file, text) = (self.learnt_file(), calibration.to_text());
        if let Err(error) = aside(move || private::replace(&file, text.as_bytes())).await {
            tracing::warn!(%error, "cannot save what was measured about hashing");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, chown};

    #[test]
    fn a_folder_has_one_worker_at_a_time() {
        // Red without `take` in worker.rs, serve: both would be let in as one worker.
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::at(&root.path().join("worker"));
        drop(folder.prepare().unwrap());
        let first = folder.take().unwrap();
        let why = folder.take().unwrap_err();
        assert!(why.contains("is in use by another process") && why.contains(&folder.0.display().to_string()), "{why}");
        drop(first);
        folder.take().unwrap();
    }

    #[test]
    fn what_root_enrolls_in_a_services_folder_is_that_services() {
        // Red with private::create in `prepare`. Only root can give a folder away.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        chown(root.path(), Some(12_345), Some(12_345)).unwrap();
        let folder = Folder::at(root.path());
        folder.prepare().unwrap();
        folder.keep(&Post { name: "hash-1".into(), servers: vec![], server_key: String::new() }).unwrap();
        for file in [folder.key_file(), folder.post_file()] {
            let made = fs::metadata(&file).unwrap();
            assert_eq!((made.uid(), made.gid(), made.mode() & 0o777), (12_345, 12_345, 0o600), "{}", file.display());
        }
    }
}
