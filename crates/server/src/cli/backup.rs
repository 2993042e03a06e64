//! `backup`: a copy of the database in a new file.

use super::migrate::newest;
use super::outcome::{Failure, Outcome, Reply};
use app::App;
use clap::{Args, ValueHint};
use rules::id::RealmId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use store::engine::Engine;
use store::moving::catalogue;
use store::moving::marks::Marks;

/// The arguments of `backup`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Backup {
    /// The new file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// The keys without which a backup is of no use: their names for programs and for people, and where they are.
const NOT_IN_BACKUPS: [(&str, &str, &str); 5] = [
    ("master_key", "the master key", "keys.master, else master.key in the data folder"),
    ("audit_key", "the audit key", "audit.key_file, else audit.key in the data folder"),
    ("peppers", "peppers", "hash.peppers, where there are any"),
    ("binding_keys", "binding keys", "hash.binding_keys, where there are any"),
    ("import_keys", "keys of imported hashes", "hash.import_keys, where there are any"),
];

impl Backup {
    /// Makes the name of the file one that the server reads in the same way: it has another working directory.
    pub fn complete(&mut self) -> Result<(), Failure> {
        load::output::named(&self.file)?;
        let failed = |error| Failure::Failed(format!("{}: {error}", self.file.display()));
        self.file = std::path::absolute(&self.file).map_err(failed)?;
        // Checked here, too: a file that is found here afterwards is then the copy.
        self.is_new()
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let bytes = self.copy(&*app.engine).await?;
        let told = app.tell_of_copy(&self.file, bytes).await;
        Ok(self.made(&*app.engine, bytes, told).await)
    }

    /// Copies a database on which no server runs as it is: no key is needed, and the schema stays. Only a schema of
    /// this program takes the audit entry.
    pub async fn execute_alone(&self, engine: &dyn Engine, realm: &RealmId) -> Reply {
        let bytes = self.copy(engine).await?;
        let told = match catalogue::version(engine).await {
            Ok(version) if version == newest() => app::audit::tell_of_copy(engine, realm, (&self.file, bytes)).await,
            Ok(version) => Err(format!("the database has schema {version}, not {}, and was copied as it is", newest())),
            Err(trouble) => Err(trouble.why),
        };
        Ok(self.made(engine, bytes, told).await)
    }

    /// Makes the copy. Returns its size in bytes.
    async fn copy(&self, engine: &dyn Engine) -> Result<u64, Failure> {
        self.is_new()?;
        engine.backup(&self.file).await.map_err(|error| Failure::Failed(error.0))?;
        Ok(fs::metadata(&self.file).map(|file| file.len()).unwrap_or(0))
    }

    /// Tells of a copy of so many bytes, and why the audit log may not have been `told`.
    async fn made(&self, engine: &dyn Engine, bytes: u64, told: Result<(), String>) -> Outcome {
        let missing: Vec<Value> = NOT_IN_BACKUPS.iter().map(|(name, ..)| json!(name)).collect();
        let list: String = NOT_IN_BACKUPS.iter().map(|(_, what, place)| format!("\n  {what}: {place}")).collect();
        let text = format!(
            "backup written to {} ({bytes} bytes)\nkeys are not in it: keep a copy of these files in another place, or it cannot \
             be used{list}",
            self.file.display()
        );
        let json = json!({ "file": self.file.display().to_string(), "bytes": bytes, "contains_master_key": false, "does_not_contain": missing });
        // The copy is made, whatever is known about moves.
        let out = Marks::read(engine).await.ok().and_then(|marks| marks.out);
        let moved = out.map(|out| format!("{} {}", self.file.display(), out.of_copies()));
        let untold = told.err().map(|why| format!("the audit log may have no entry of this backup: {why}"));
        Outcome::new(text, json).noting(moved.into_iter().chain(untold).collect())
    }

    fn is_new(&self) -> Result<(), Failure> {
        match self.file.exists() {
            true => {
                Err(Failure::Exists(format!("{} exists already; a backup overwrites nothing", self.file.display())))
            }
            false => Ok(()),
        }
    }

    /// Checks that this process finds the file that the server says it wrote: a service may have a /tmp of its own, and
    /// a container has a file system of its own.
    pub fn is_here(&self, told: &Value) -> Result<(), Failure> {
        let there = fs::metadata(&self.file).map(|file| file.len());
        if there.as_ref().is_ok_and(|bytes| told["bytes"] == json!(bytes)) {
            return Ok(());
        }
        let found = there.map_or_else(|error| error.to_string(), |bytes| format!("{bytes} bytes are there"));
        Err(Failure::Failed(format!(
            "the server wrote {} bytes to {file}, but not where this command looks ({found}): it sees another {folder} (systemd: \
             PrivateTmp, ProtectHome; or a container), and the copy is there; name a folder that both see",
            told["bytes"],
            file = self.file.display(),
            folder = self.file.parent().unwrap_or(Path::new("/")).display(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Request;
    use super::*;

    #[test]
    fn a_backup_that_is_not_here_is_not_called_written() {
        // red without `believed` for Backup.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.db");
        let backup = Request::Backup(Backup { file: file.clone() });
        let answer = || Outcome::new("backup written", json!({ "bytes": 6 }));
        let why = |reply: Reply| match reply {
            Err(Failure::Failed(why)) => why,
            other => panic!("{other:?}"),
        };
        let missing = why(backup.believed(answer()));
        assert!(missing.contains("PrivateTmp") && missing.contains("copy.db"), "{missing}");
        fs::write(&file, "another").unwrap();
        assert!(why(backup.believed(answer())).contains("7 bytes are there"));
        fs::write(&file, "a copy").unwrap();
        assert_eq!(backup.believed(answer()), Ok(answer()));
    }
}
