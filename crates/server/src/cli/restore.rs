//! Puts a backup in the place of the database, or makes a database safe that was put there by other means.

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply, say};
use super::reach::{must_be_there, names_its_database, own};
use crate::boot::{BootError, FIRST_REALM, Instance, make_folder};
use crate::config::{Config, StoreUrl};
use crate::database::Database;
use crate::journal;
use crate::private::{Unread, beside, read_key};
use app::App;
use app::admin::restore::Ended;
use app::ward::Status;
use clap::{Args, ValueHint};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::migrations::MIGRATIONS;
use store::moving::fence;
use store::moving::marks::{Leave, Mark, Marks};
use store::sqlite::{self, Options, Sqlite};
use store::tables::{ask, realms::Epoch, restore::Soundness};

/// The refusal where the database is a server: there is no file to put in place.
const ELSEWHERE: &str = "the database is a server (store.url): restore it with that server's own tools, and then run: \
                         portiere restore --in-place";

/// A backup to put in place.
#[derive(Clone, Debug, Args)]
pub struct Restore {
    /// The backup, if the database is an SQLite file
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "in_place")]
    pub file: Option<PathBuf>,
    /// Replace the existing database, which is kept beside it under another name
    #[arg(long, requires = "file")]
    pub force: bool,
    /// The backup is of a database that had been moved to another database, which is gone and on which no server runs
    #[arg(long, requires = "file")]
    pub target_is_gone: bool,
    /// The file was copied without `portiere backup`, and no server ran on it then
    #[arg(long, requires = "file")]
    pub raw_copy: bool,
    /// The database was put back by other means, a database server by its own tools: end what it would revive
    #[arg(long, conflicts_with_all = ["file", "force", "target_is_gone", "raw_copy"])]
    pub in_place: bool,
    /// Do not ask whether all users are to be signed out (--in-place)
    #[arg(long, requires = "in_place", conflicts_with = "file")]
    pub yes: bool,
}

impl Restore {
    /// Restores, as the user who runs this process.
    pub async fn run(&self, config: &Config) -> Reply {
        let done = async {
            match &self.file {
                Some(file) => self.put_in_place(file, config).await,
                None => self.make_safe_in_place(config).await,
            }
        };
        app::asked::by_operator(rustix::process::geteuid().as_raw(), done).await
    }

    /// Checks the copy, opens it with the master key and ends all that was issued in it, under another name. Only then
    /// does the copy take the database's name, while no server can start.
    async fn put_in_place(&self, file: &Path, config: &Config) -> Reply {
        let data = &config.server.data;
        names_its_database(config)?;
        let named = config.database().ok_or_else(|| Failure::Failed(ELSEWHERE.into()))?;
        own(data)?;
        is_a_copy(file)?;
        make_folder(data).map_err(|error| Failure::Failed(error.to_string()))?;
        // A link to the database stays one: the file that it leads to is replaced, on its own disk.
        let database = sqlite::absolute(&named).map_err(|error| Failure::Failed(error.to_string()))?;
        let _held = hold(&database, data)?;
        if database.exists() && !self.force {
            let there = database.display();
            return Err(Failure::Failed(format!("{there} exists already; --force puts it aside and goes on")));
        }
        let copy = Copy(beside(&database, ".restoring"));
        copy.make(file)?;
        let moved = self.check(&copy.0, file).await?;
        self.is_whole(file)?;
        let ended = made_safe(config, &copy.0).await?;
        copy.is_whole()?;
        let kept = put_aside(&database)?;
        // First: a log that came back after a power loss would be played into the file that takes the database's place.
        sync_folder(&database)?;
        fs::rename(&copy.0, &database).map_err(|error| about(&database, error))?;
        sync_folder(&database)?;
        let kept_line =
            kept.as_ref().map(|kept| format!("the database that was there is kept as {}\n", kept.display()));
        let place = format!("{} restored to {}", file.display(), database.display());
        let text = format!("{place}\n{}{}", kept_line.unwrap_or_default(), sentence(ended));
        if let Some(out) = &moved {
            say(&format!(
                "{} {}; the restored database takes writes again: run no server there",
                file.display(),
                out.of_copies()
            ));
        }
        let peer = moved.map(|out| out.peer);
        let json = json!({ "database": database, "kept": kept, "moved_to": peer, "ended": counts(ended) });
        Ok(Outcome::new(text, json).noting(without_audit_key(config)))
    }

    /// Refuses the bare file of a database that has a log: a server that ran when it was copied had its newest changes
    /// there, and nothing in the file tells.
    fn is_whole(&self, file: &Path) -> Result<(), Failure> {
        if self.raw_copy || sqlite::stands_alone(file).map_err(|error| unread(file, &error))? {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{} was not made by portiere backup: if a server ran on it when it was copied, its newest changes are \
             missing. If none ran, say --raw-copy",
            file.display()
        )))
    }

    /// Refuses a copy that is damaged or was never a database of this program. A copy of a database that was being
    /// moved becomes writable, since that move cannot go on in it; returns where the database was moved to.
    async fn check(&self, copy: &Path, file: &Path) -> Result<Option<Mark<Leave>>, Failure> {
        let wrong = |why: String| Failure::Failed(format!("{} cannot be restored: {why}", file.display()));
        let sqlite = Sqlite::open(Options::at(copy), MIGRATIONS).map_err(|error| wrong(error.to_string()))?;
        let realm = FIRST_REALM.into();
        let triggers = fence::triggers(&sqlite).await.map_err(|error| wrong(error.why))?;
        let sound = ask(&sqlite, &realm, Soundness { triggers }).await.map_err(|error| wrong(error.0))?;
        if sound != ["ok"] {
            // SQLite breaks its messages into lines, and a command says one line.
            let found: Vec<&str> = sound.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok").collect();
            return Err(wrong(format!("it is damaged ({})", found.join("; "))));
        }
        if !matches!(ask(&sqlite, &realm, Epoch).await, Ok(Some(_))) {
            return Err(wrong("it is not a backup of Portiere".into()));
        }
        let moved = fence::lift_in_copy(&sqlite).await.map_err(|error| wrong(error.why))?;
        match moved.as_ref().filter(|out| out.state == Leave::Left && !self.target_is_gone) {
            None => Ok(moved),
            Some(out) => Err(wrong(format!(
                "it {}. Two servers would go on with the same accounts and keys: if that database is lost and no server runs on \
                 it, say --target-is-gone",
                out.of_copies()
            ))),
        }
    }

    /// Opens the database as a start would, and ends all that was issued in it.
    async fn make_safe_in_place(&self, config: &Config) -> Reply {
        let data = &config.server.data;
        names_its_database(config)?;
        // A user who may not look finds nothing.
        own(data)?;
        must_be_there(config).await?;
        self.confirm(&mut Input::of_process())?;
        let instance = match Box::pin(Instance::open_restored(config)).await {
            Err(BootError::InUse) => return Err(serves(data)),
            Err(BootError::Away(why)) => return Err(Failure::Later(or_given_up(config, why).await)),
            Err(BootError::Other(why)) => return Err(Failure::Failed(or_given_up(config, why).await)),
            opened => opened?,
        };
        let done = end_all(config, &instance.app).await;
        instance.close().await;
        let (ended, fences) = done?;
        let waiting: Vec<&str> = fences.waiting().collect();
        let text = format!("{}{}", sentence(ended), still_to_come(&waiting));
        let json = json!({ "ended": counts(ended), "waiting_for": waiting });
        Ok(Outcome::new(text, json).noting(without_audit_key(config)))
    }

    fn confirm(&self, input: &mut Input) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let question = "Everybody is signed out: every session, code, token and consent in the database is ended.\n\
                        Type yes to go on: ";
        match input.line(question)?.as_deref() {
            Some("yes") => Ok(()),
            Some(_) => Err(Failure::Failed("nothing was done".into())),
            None => Err(Failure::Use("no terminal to ask for confirmation: sign everybody out with --yes".into())),
        }
    }
}

/// What an operator should know of a sealed audit log that came without its key: for another log, opening the database
/// would have made one.
fn without_audit_key(config: &Config) -> Vec<String> {
    let file = config.audit_key_file();
    let is_missing = config.audit_key().is_none() && matches!(read_key(&file), Err(Unread::Missing));
    let why = "is missing: put it back, or the server seals nothing more; if it is lost: portiere audit rekey";
    is_missing.then(|| file.wrong("audit.key_file", &why)).into_iter().collect()
}

/// Says what was ended, for people.
fn sentence(ended: Ended) -> String {
    format!(
        "everybody is signed out. What of the backup was ended in this run: sessions {}, families of tokens {}, codes \
         {}, opaque tokens {}, device requests {}, consents {}{}",
        ended.sessions,
        ended.families,
        ended.codes,
        ended.opaque_tokens,
        ended.devices,
        ended.consents,
        untrusted(ended.workers)
    )
}

/// Says what was ended, for programs.
fn counts(ended: Ended) -> Value {
    json!({
        "sessions": ended.sessions,
        "families": ended.families,
        "codes": ended.codes,
        "opaque_tokens": ended.opaque_tokens,
        "devices": ended.devices,
        "consents": ended.consents,
        "workers": ended.workers,
    })
}

const UNTIL: &str = "not used until it is trusted again, since the backup does not know what was revoked or \
                     quarantined after it was made: portiere verifier trust NAME";

/// Says what has to be done about so many hash workers.
fn untrusted(workers: u64) -> String {
    match workers {
        0 => String::new(),
        1 => format!("\n1 hash worker is {UNTIL}"),
        many => format!("\n{many} hash workers are {UNTIL}"),
    }
}

/// Names the nodes that acknowledged more than the backup holds, and have not said it again.
fn still_to_come(waiting: &[&str]) -> String {
    match waiting {
        [] => String::new(),
        nodes => format!(
            "\nthese nodes may have to replay changes made since the backup, of passwords and accounts too: start \
             them, and see portiere fence status: {}",
            nodes.join(", ")
        ),
    }
}

/// Ends all that was issued in a database that no other process works on, and lets the audit log go on from there.
async fn end_all(config: &Config, app: &App) -> Result<(Ended, Status), Failure> {
    if let Some(node) = app.others_running().await?.first() {
        return Err(Failure::Failed(format!("node {node} runs on this database: stop every node first")));
    }
    let ended = app.revive_nothing().await?;
    app.fence_restored().await?;
    // Only now, when nothing that the file lacks can come to life again. A server has the fence instead.
    if config.database().is_some() {
        let memory = journal::memory(&config.server.data)?;
        if let Some(memory) = memory {
            app.accept_mark(&memory).await?;
        }
    }
    app.accept_audit().await?;
    Ok((ended, app.fences().await?))
}

/// Says why a database cannot be opened, and, if it was put back as it was during or after a move, how to make it
/// writable. That is never done unasked: its target may go on, and two servers would have the same accounts and keys.
async fn or_given_up(config: &Config, why: String) -> String {
    let Ok(database) = Database::connect(config).await else { return why };
    let marks = Marks::read(&*database.engine()).await;
    database.close();
    match marks.ok().and_then(|marks| marks.out) {
        Some(out) if out.sentence() == why => format!(
            "{why}; if that one is lost and no server runs on it, give the move up first (portiere move --abort \
             --target-is-gone), and run this again"
        ),
        _ => why,
    }
}

fn serves(data: &Path) -> Failure {
    Failure::Failed(format!("a server runs on {}: stop it first", data.display()))
}

/// Opens the copy as a start would, which proves that the master key is right and brings the schema up to date. Then
/// ends all that was issued, and lets the audit log go on from there.
async fn made_safe(config: &Config, copy: &Path) -> Result<Ended, Failure> {
    let mut under_its_name = config.clone();
    under_its_name.store.url = StoreUrl::Sqlite(copy.to_owned());
    let instance = Box::pin(Instance::open_restored(&under_its_name)).await?;
    // The backup's log is shorter than the log that this node saw: that is intended, and the log says so.
    let done = end_all(config, &instance.app).await;
    instance.close().await;
    done.map(|(ended, _)| ended)
}

/// Takes the place of a server until the file is dropped, with the lock that a server takes.
fn hold(database: &Path, data: &Path) -> Result<File, Failure> {
    let name = beside(database, ".lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&name);
    let file = file.map_err(|error| about(&name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(serves(data)),
        Err(TryLockError::Error(error)) => Err(about(&name, error)),
    }
}

/// Checks that a file can be a copy, before anything is made.
fn is_a_copy(from: &Path) -> Result<(), Failure> {
    // Looked at before it is opened: opening a named pipe would wait for a writer.
    let there = fs::metadata(from).map_err(|error| unread(from, &error))?;
    if !there.is_file() || there.len() == 0 {
        return Err(Failure::Failed(format!("{}: is not a backup", from.display())));
    }
    // SQLite keeps both logs beside the file itself, not beside a link to it.
    let file = fs::canonicalize(from).map_err(|error| about(from, error))?;
    for (ending, what) in [("-wal", "its newest changes are"), ("-journal", "what undoes a change cut short is")] {
        let log = beside(&file, ending);
        if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            let (from, log) = (from.display(), log.display());
            return Err(Failure::Failed(format!(
                "{from}: is not a backup but a database in use: {what} in {log}, which would be left behind; copy it \
                 with portiere backup"
            )));
        }
    }
    Ok(())
}

/// The copy on its way. Dropping it removes whatever is left of it.
struct Copy(PathBuf);

impl Copy {
    /// Copies a file that [`is_a_copy`] found usable.
    fn make(&self, from: &Path) -> Result<(), Failure> {
        self.clear();
        let mut source = File::open(from).map_err(|error| unread(from, &error))?;
        let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0);
        let mut target = target.map_err(|error| about(&self.0, error))?;
        io::copy(&mut source, &mut target).and_then(|_| target.sync_all()).map_err(|error| about(&self.0, error))
    }

    /// Checks that all that was written to the copy is in the file that takes the database's place. What is in its log
    /// alone would be left behind, and what was ended there would be alive again.
    fn is_whole(&self) -> Result<(), Failure> {
        let log = beside(&self.0, "-wal");
        match fs::metadata(&log) {
            Ok(left) if left.len() > 0 => Err(Failure::Failed(format!(
                "nothing was restored: {} could not be copied into the database, because the disk is full or failing, \
                 or another program reads the database",
                log.display()
            ))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(about(&log, error)),
            _ => Ok(()),
        }
    }

    fn clear(&self) {
        for ending in ENDINGS.into_iter().chain([".lock"]) {
            drop(fs::remove_file(beside(&self.0, ending)));
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What the names of a database and its logs end with, in the order in which they are put aside. The database goes
/// first: if this is cut short, a log without a database is left, with which no server starts. A database without its
/// log would start, and lack the last acknowledged writes. A journal is left by a process that was killed before the
/// file had its write-ahead log: SQLite would play it back into whatever takes the file's name.
const ENDINGS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Renames the existing database, and its log with it; also a log whose database is gone, which SQLite would play into
/// any file of that name. Returns the new name of the database.
fn put_aside(database: &Path) -> Result<Option<PathBuf>, Failure> {
    let there = |path: &Path| ENDINGS.iter().any(|ending| beside(path, ending).exists());
    let had = database.exists();
    if !there(database) {
        return Ok(None);
    }
    let aside = (1..).map(|n| beside(database, &format!(".replaced-{n}"))).find(|aside| !there(aside));
    let aside = aside.ok_or_else(|| Failure::Failed("no free name is left to put the old database aside".into()))?;
    for ending in ENDINGS {
        match fs::rename(beside(database, ending), beside(&aside, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(about(database, error)),
            _ => {}
        }
    }
    Ok(had.then_some(aside))
}

fn sync_folder(of: &Path) -> Result<(), Failure> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| about(folder, error))
}

/// Reports that the named backup cannot be read: only another name helps, or the right to read it.
fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::Use(format!("{}: {error}", path.display()))
}

fn about(path: &Path, error: io::Error) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{config, instance};

    /// What was ended may be in the log alone, if the log could not be copied into the file.
    #[test]
    fn a_copy_whose_log_is_left_does_not_take_the_databases_place() {
        // red where is_whole looks at the file alone.
        let folder = tempfile::tempdir().unwrap();
        let copy = Copy(folder.path().join("portiere.db.restoring"));
        let log = folder.path().join("portiere.db.restoring-wal");
        fs::write(&copy.0, "a database").unwrap();
        assert_eq!(copy.is_whole(), Ok(()));
        fs::write(&log, "").unwrap();
        assert_eq!(copy.is_whole(), Ok(()), "SQLite empties a log before it removes it");
        fs::write(&log, "what was ended").unwrap();
        let Err(Failure::Failed(why)) = copy.is_whole() else { panic!("refused") };
        assert!(why.contains("portiere.db.restoring-wal") && why.contains("nothing was restored"), "{why}");
        drop(copy);
        assert!(!log.exists(), "nothing is left");
    }

    #[tokio::test]
    async fn a_link_to_the_database_stays_one() {
        // red without sqlite::absolute in put_in_place: the link would become a file, on another disk.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        instance(&at("data")).await.close().await;
        fs::create_dir(at("disk")).unwrap();
        fs::rename(at("data/portiere.db"), at("disk/real.db")).unwrap();
        std::os::unix::fs::symlink(at("disk/real.db"), at("data/portiere.db")).unwrap();
        let linked = instance(&at("data")).await;
        linked.app.engine.backup(&at("copy.db")).await.unwrap();
        linked.close().await;
        let restore = Restore {
            file: Some(at("copy.db")),
            force: true,
            target_is_gone: false,
            raw_copy: false,
            in_place: false,
            yes: false,
        };
        let told = restore.run(&config(&at("data"))).await.unwrap();
        assert_eq!(told.json["kept"], json!(at("disk/real.db.replaced-1")));
        assert!(at("data/portiere.db").is_symlink() && at("disk/real.db").is_file());
        instance(&at("data")).await.close().await;
    }

    /// SQLite would play the journal back into the database that takes its place.
    #[test]
    fn a_rollback_journal_goes_where_its_database_goes() {
        // red without "-journal" in ENDINGS, and in is_a_copy.
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("portiere.db"), "a database").unwrap();
        fs::write(at("portiere.db-journal"), "what undoes it").unwrap();
        let Err(Failure::Failed(why)) = is_a_copy(&at("portiere.db")) else { panic!("refused") };
        assert!(why.contains("portiere.db-journal") && why.contains("portiere backup"), "{why}");
        assert_eq!(put_aside(&at("portiere.db")), Ok(Some(at("portiere.db.replaced-1"))));
        assert!(!at("portiere.db-journal").exists() && at("portiere.db.replaced-1-journal").exists());
        assert_eq!(is_a_copy(&at("portiere.db.replaced-1")).map_err(|_| ()), Err(()), "it stays with its database");
        // One whose database is gone is put aside as well, and what a copy leaves is removed.
        fs::write(at("portiere.db-journal"), "what undoes it").unwrap();
        assert_eq!(put_aside(&at("portiere.db")), Ok(None));
        assert!(at("portiere.db.replaced-2-journal").exists());
        fs::write(at("portiere.db.restoring-journal"), "").unwrap();
        drop(Copy(at("portiere.db.restoring")));
        assert!(!at("portiere.db.restoring-journal").exists());
        fs::write(at("copy.db"), "a database").unwrap();
        fs::write(at("copy.db-journal"), "").unwrap();
        assert_eq!(is_a_copy(&at("copy.db")), Ok(()), "an empty one undoes nothing");
    }
}
