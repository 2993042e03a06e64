//! Putting a backup in the place of the database.

use super::outcome::{Failure, Outcome, Reply};
use super::reach::own;
use crate::boot::{FIRST_REALM, Instance, make_folder};
use crate::config::{Config, StoreUrl};
use app::admin::restore::Ended;
use clap::{Args, ValueHint};
use serde_json::json;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::migrations::MIGRATIONS;
use store::sqlite::{Options, Sqlite};
use store::tables::{ask, realms::Epoch, restore::Soundness};

/// Why there is nothing to put in place.
const ELSEWHERE: &str = "the database is a server (store.url): restore it with that server's own tools";

/// A backup to put in place.
#[derive(Clone, Debug, Args)]
pub struct Restore {
    /// The backup
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace the database that is there, which is kept beside it under another name
    #[arg(long)]
    pub force: bool,
}

impl Restore {
    /// Does it. The copy is checked, opened with the master key and emptied of all that was issued under another name;
    /// only then does it take the database's, while no server can start.
    pub async fn run(&self, config: &Config) -> Reply {
        let data = &config.server.data;
        let database = config.database().ok_or_else(|| Failure::Failed(ELSEWHERE.into()))?;
        own(data)?;
        make_folder(data).map_err(|error| Failure::Failed(error.to_string()))?;
        let _held = hold(&database, data)?;
        if database.exists() && !self.force {
            let there = database.display();
            return Err(Failure::Failed(format!("{there} is there already; --force puts it aside and goes on")));
        }
        let copy = Copy(beside(&database, ".restoring"));
        copy.make(&self.file)?;
        self.check(&copy.0).await?;
        let ended = made_safe(config).await?;
        let kept = put_aside(&database)?;
        fs::rename(&copy.0, &database).map_err(|error| about(&database, error))?;
        File::open(data).and_then(|folder| folder.sync_all()).map_err(|error| about(data, error))?;
        Ok(self.told(&database, kept.as_deref(), ended))
    }

    /// Refuses what is damaged or was never a database of this program.
    async fn check(&self, copy: &Path) -> Result<(), Failure> {
        let wrong = |why: String| Failure::Failed(format!("{} cannot be restored: {why}", self.file.display()));
        let sqlite = Sqlite::open(Options::at(copy), MIGRATIONS).map_err(|error| wrong(error.to_string()))?;
        let realm = FIRST_REALM.into();
        let sound = ask(&sqlite, &realm, Soundness).await.map_err(|error| wrong(error.0))?;
        if sound != ["ok"] {
            return Err(wrong(format!("it is damaged ({})", sound.join("; "))));
        }
        match ask(&sqlite, &realm, Epoch).await {
            Ok(Some(_)) => Ok(()),
            _ => Err(wrong("it is not a backup of Portiere".into())),
        }
    }

    fn told(&self, database: &Path, kept: Option<&Path>, ended: Ended) -> Outcome {
        let (file, place) = (self.file.display(), database.display());
        let kept_line = kept.map(|kept| format!("the database that was there is kept as {}\n", kept.display()));
        let text = format!(
            "{file} restored to {place}\n{}everybody is signed out: {} sessions, {} families of tokens, {} codes, {} opaque \
             tokens and {} device requests of the backup were ended{}",
            kept_line.unwrap_or_default(),
            ended.sessions,
            ended.families,
            ended.codes,
            ended.opaque_tokens,
            ended.devices,
            untrusted(ended.workers)
        );
        let counts = json!({
            "sessions": ended.sessions,
            "families": ended.families,
            "codes": ended.codes,
            "opaque_tokens": ended.opaque_tokens,
            "devices": ended.devices,
            "workers": ended.workers,
        });
        Outcome::new(text, json!({ "database": database, "kept": kept, "ended": counts }))
    }
}

const UNTIL: &str = "asked nothing until somebody trusts it again, since the backup does not know what was revoked or \
                     quarantined after it was made: portiere verifier trust NAME";

/// What has to be done about so many hash workers.
fn untrusted(workers: u64) -> String {
    match workers {
        0 => String::new(),
        1 => format!("\n1 hash worker is {UNTIL}"),
        many => format!("\n{many} hash workers are {UNTIL}"),
    }
}

/// Opens the copy as a start would, which proves that the master key is the right one and brings the schema up to date;
/// then ends all that was issued, and lets the audit log go on from there.
async fn made_safe(config: &Config) -> Result<Ended, Failure> {
    let mut under_its_name = config.clone();
    if let StoreUrl::Sqlite(file) = &mut under_its_name.store.url {
        file.as_mut_os_string().push(".restoring");
    }
    let instance = Box::pin(Instance::open(&under_its_name, None)).await?;
    let ended = instance.app.revive_nothing().await;
    // The log of a backup is shorter than the one that this node saw: that is meant, and the log says so.
    let accepted = instance.app.accept_audit().await;
    instance.close().await;
    accepted?;
    Ok(ended?)
}

/// Takes the place of a server until the file is dropped, by the lock that one takes.
fn hold(database: &Path, data: &Path) -> Result<File, Failure> {
    let name = beside(database, ".lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&name);
    let file = file.map_err(|error| about(&name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let why = format!("a server runs on {}: stop it first", data.display());
            Err(Failure::Failed(why))
        }
        Err(TryLockError::Error(error)) => Err(about(&name, error)),
    }
}

/// The copy on its way. Whatever is left of it when it is dropped, is removed.
struct Copy(PathBuf);

impl Copy {
    fn make(&self, from: &Path) -> Result<(), Failure> {
        self.clear();
        let mut source = File::open(from).map_err(|error| about(from, error))?;
        if !source.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
            return Err(Failure::Failed(format!("{}: is not a backup", from.display())));
        }
        let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0);
        let mut target = target.map_err(|error| about(&self.0, error))?;
        io::copy(&mut source, &mut target).and_then(|_| target.sync_all()).map_err(|error| about(&self.0, error))
    }

    fn clear(&self) {
        for ending in ["", "-wal", "-shm", ".lock"] {
            drop(fs::remove_file(beside(&self.0, ending)));
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Gives the database that is there another name, and its log with it.
fn put_aside(database: &Path) -> Result<Option<PathBuf>, Failure> {
    if !database.exists() {
        return Ok(None);
    }
    let aside = (1..).map(|n| beside(database, &format!(".replaced-{n}"))).find(|aside| !aside.exists());
    let aside = aside.ok_or_else(|| Failure::Failed("there is no free name".into()))?;
    for ending in ["-wal", "-shm", ""] {
        match fs::rename(beside(database, ending), beside(&aside, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(about(database, error)),
            _ => {}
        }
    }
    Ok(Some(aside))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn about(path: &Path, error: io::Error) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}
