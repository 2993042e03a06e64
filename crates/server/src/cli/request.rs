//! Commands that are carried out on a realm: by the running server, over the control socket, or in this process.

use super::input::Input;
use super::moving::AtSource;
use super::outcome::{Failure, Outcome, Reply};
use super::{audit, client, fence, group, keys, node, profile, ready, user, verifier};
use crate::database::unmigrated;
use crate::setup_link::{self, LinkFile};
use app::App;
use clap::{Args, Subcommand, ValueHint};
use rules::id::RealmId;
use rules::people::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::moving::marks::Marks;
use store::moving::{Trouble, catalogue};

/// A command that works on a realm.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Request {
    /// Manage users
    #[command(subcommand)]
    User(user::Command),
    /// Manage applications
    #[command(subcommand)]
    Client(client::Command),
    /// Manage groups
    #[command(subcommand)]
    Group(group::Command),
    /// Manage signing keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Read and follow the audit log, and prove that it is what was written
    #[command(subcommand, visible_alias = "events")]
    Audit(Box<audit::Command>),
    /// Manage failovers of the database
    #[command(subcommand)]
    Fence(fence::Command),
    /// Manage the nodes that share a database
    #[command(subcommand)]
    Node(node::Command),
    /// Have other machines hash passwords for this server
    ///
    /// A worker computes the slow part of a password's hash. It learns neither the password nor whose it is, nor
    /// whether it was right. A wrong answer lets nobody in.
    #[command(subcommand)]
    Verifier(verifier::Command),
    /// Say whether the running server is ready, and if not, why
    ///
    /// Prints what /readyz says, with its problems and warnings, and exits with 0 if the server is ready, with 1 if it
    /// is not, and with 75 if no server runs on the data folder. With --wait, the command waits until the server is
    /// ready, also for a server that is only starting.
    #[command(after_long_help = "\
Examples:
  portiere ready
  portiere ready --wait 60s && portiere setup-link
  portiere ready --json | jq '.problems'")]
    Ready(ready::Command),
    /// Create a one-time link that creates the first account
    ///
    /// The link works once, within 30 minutes, and only while there is no owner. Earlier links are void. If a server
    /// without a terminal left its link in the file setup-link, the new link is there too.
    SetupLink,
    /// Migrate the database to this program's schema
    ///
    /// The server does this by itself when it starts. Safe to interrupt and to repeat.
    Migrate,
    /// Copy the database into a new file, whether or not the server runs
    ///
    /// For SQLite only: copy a database server with its own tools. The copy never contains the master key: keep the key
    /// in another place, since the copy cannot be used without it. Only the file's owner can read it. An existing file
    /// is not overwritten.
    #[command(after_long_help = "\
Examples:
  portiere backup /var/backups/portiere-$(date +%F).db")]
    Backup(Backup),
    /// Draw where the running server spends CPU time, and where its requests wait
    ///
    /// Samples the server for some seconds, without a restart and without root, and writes a flame graph: a picture for
    /// a browser, with a section on what requests waited for and how long the queues were. Sign-ins are a few percent
    /// slower meanwhile. Only one profile runs at a time.
    #[command(after_long_help = "\
Examples:
  portiere profile
  portiere profile --seconds 30 --output /tmp/monday.svg
  portiere profile --json | jq '.routes[] | {route, phases}'")]
    Profile(profile::Command),
    /// What a move asks of the server that holds its source.
    #[command(skip)]
    AtSource(AtSource),
}

/// Where a request is carried out.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The data folder.
    pub data: &'a Path,
    /// Whether the server carries it out, which goes on running.
    pub serves: bool,
    /// Whether hash workers may dial in there (workers.listen).
    pub hears_workers: bool,
}

/// The arguments of `backup`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Backup {
    /// The new file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

impl Request {
    /// Completes what was typed with what comes from standard input and from files.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Request::User(command) => command.complete(input),
            Request::Client(command) => command.complete(input),
            Request::Audit(command) => command.complete(input),
            Request::Fence(command) => command.complete(input),
            Request::Node(command) => command.complete(input),
            // The server has another working directory.
            Request::Backup(backup) => {
                let failed = |error| Failure::Failed(format!("{}: {error}", backup.file.display()));
                backup.file = std::path::absolute(&backup.file).map_err(failed)?;
                // Checked here, too: a file that is found here afterwards is then the copy.
                backup.is_new()
            }
            _ => Ok(()),
        }
    }

    /// Returns the request that has to succeed before the user is asked for the input that completes this one.
    pub fn supposes(&self) -> Option<Request> {
        match self {
            Request::User(user::Command::SetPassword(set)) => {
                Some(Request::User(user::Command::Show(user::Named { name: set.name.clone() })))
            }
            // As it was typed, without the input that would be read: then it only looks.
            Request::User(user::Command::Add(add)) if add.if_absent => Some(self.clone()),
            Request::Client(client::Command::Add(add)) if add.if_absent && add.secret_stdin => Some(self.clone()),
            _ => None,
        }
    }

    /// Returns whether the request makes sense before there is a database, which it then makes.
    pub fn begins(&self) -> bool {
        matches!(
            self,
            Request::User(user::Command::Add(_))
                | Request::Client(client::Command::Add(_))
                | Request::Group(group::Command::Add(_))
                | Request::SetupLink
                | Request::Migrate
        )
    }

    /// Returns how long an answer may take. A copy takes as long as the disk needs, and so does a look at all accounts.
    pub fn patience(&self) -> Duration {
        match self {
            Request::Backup(_) | Request::AtSource(_) | Request::User(user::Command::Hashes(_)) => {
                Duration::from_secs(24 * 60 * 60)
            }
            Request::Profile(command) => command.patience(),
            // A server that works answers within two seconds, whatever its database does.
            Request::Ready(_) => Duration::from_secs(10),
            _ => Duration::from_secs(60),
        }
    }

    /// Returns whether the answer is printed as it is, JSON or not.
    pub fn prints(&mut self, as_json: bool) -> bool {
        match self {
            Request::Audit(command) => command.prints(as_json),
            _ => false,
        }
    }

    /// Returns whether the request makes no sense without a running server.
    pub fn needs_server(&self) -> bool {
        match self {
            Request::Audit(command) => command.needs_server(),
            Request::Verifier(command) => matches!(command, verifier::Command::Status),
            Request::Profile(_) | Request::Ready(_) => true,
            _ => false,
        }
    }

    /// Checks the answer of a running server, which may be of an older version, and may see other files than this
    /// process does.
    pub fn believed(&self, answer: Outcome) -> Reply {
        match self {
            Request::Backup(backup) => backup.is_here(&answer.json).map(|()| answer),
            Request::Migrate => is_brought_to(newest(), &answer.json).map(|()| answer),
            _ => Ok(answer),
        }
    }

    /// Returns whether the end of the command says if something is wrong, even if nobody reads its output.
    pub fn ends_with_a_verdict(&self) -> bool {
        matches!(self, Request::Audit(command) if matches!(**command, audit::Command::Verify(_)))
    }

    /// Returns how long to wait before the next page, after an empty one.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Request::Audit(command) => command.pause(),
            _ => None,
        }
    }

    /// Returns how far a long answer is, for a terminal.
    pub fn progress(&self) -> Option<String> {
        match self {
            Request::Audit(command) => command.progress(),
            _ => None,
        }
    }

    /// Makes this the request for the next page of a list, which begins at `next`.
    pub fn go_on(&mut self, next: String) {
        match self {
            Request::User(user::Command::List(list)) => list.go_on(next),
            Request::User(user::Command::Hashes(list)) => (list.after, list.goes_on) = (Some(next), true),
            Request::Client(client::Command::List(list)) => list.go_on(next),
            Request::Group(group::Command::Show(show)) => show.go_on(next),
            Request::Audit(command) => command.go_on(next),
            _ => {}
        }
    }

    /// Carries out the request.
    pub async fn execute(self, app: &App, place: Place<'_>) -> Reply {
        match self {
            Request::User(command) => Box::pin(user_command(command, app, place)).await,
            Request::Client(command) => command.execute(app).await,
            Request::Group(command) => command.execute(app).await,
            Request::Keys(command) => command.execute(app).await,
            Request::Audit(command) => Box::pin(command.execute(app)).await,
            Request::Fence(command) => command.execute(app).await,
            Request::Node(command) => command.execute(app).await,
            Request::Verifier(command) => command.execute(app, place).await,
            Request::SetupLink => setup_link(app, place).await,
            Request::Backup(backup) => backup.execute(app).await,
            Request::Migrate => migrate(app).await,
            Request::AtSource(asked) => asked.execute(app).await,
            Request::Ready(_) => Err(Failure::Failed("only a running server can be ready".into())),
            // Only the server can do it: the profile is of its process.
            Request::Profile(_) => Err(Failure::Failed("only a running server can be profiled".into())),
        }
    }
}

/// The keys without which a backup is of no use: their names for programs and for people, and where they are.
const NOT_IN_BACKUPS: [(&str, &str, &str); 5] = [
    ("master_key", "the master key", "keys.master, else master.key in the data folder"),
    ("audit_key", "the audit key", "audit.key_file, else audit.key in the data folder"),
    ("peppers", "peppers", "hash.peppers, where there are any"),
    ("binding_keys", "binding keys", "hash.binding_keys, where there are any"),
    ("import_keys", "keys of imported hashes", "hash.import_keys, where there are any"),
];

/// Carries out a command about users. Removes the link that makes the first account once there is an owner.
async fn user_command(command: user::Command, app: &App, place: Place<'_>) -> Reply {
    let owner = matches!(&command, user::Command::Add(add) if add.role == Role::Owner);
    let reply = Box::pin(command.execute(app)).await;
    // A user who was there already may not be the owner.
    if owner && reply.as_ref().is_ok_and(|told| told.json["role"] == Role::Owner.name()) {
        LinkFile::of(place.data).remove();
    }
    reply
}

async fn setup_link(app: &App, place: Place<'_>) -> Reply {
    let Some(secret) = app.offer_setup(true).await? else {
        return Err(Failure::Failed("there is an owner already, so no link can make one".into()));
    };
    let link = setup_link::address(app, secret.reveal());
    LinkFile::of(place.data).follow(&link).map_err(Failure::Failed)?;
    let here = if place.serves { "" } else { "; no server runs: start it first (portiere serve)" };
    let text = format!("{link}\nvalid once, for 30 minutes{here}");
    Ok(Outcome::new(text, json!({ "link": link, "expires_in": app::setup::LINK_LIVES.whole_seconds() })))
}

impl Backup {
    async fn execute(self, app: &App) -> Reply {
        let bytes = self.copy(&*app.engine).await?;
        let told = app.tell_of_copy(&self.file, bytes).await;
        Ok(self.made(&*app.engine, bytes, told).await)
    }

    /// Copies a database on which no server runs as it is: no key is needed, and the schema stays. Only a schema of this
    /// program takes the audit entry.
    pub async fn execute_alone(&self, engine: &dyn Engine, realm: &RealmId) -> Reply {
        let bytes = self.copy(engine).await?;
        let told = match catalogue::version(engine).await {
            Ok(version) if version == newest() => app::audit::tell_of_copy(engine, realm, (&self.file, bytes)).await,
            Ok(version) => Err(format!("the database has schema {version}, not {}, and was copied as it is", newest())),
            Err(Trouble(why)) => Err(why),
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
                Err(Failure::Failed(format!("{} exists already; a backup overwrites nothing", self.file.display())))
            }
            false => Ok(()),
        }
    }

    /// Checks that this process finds the file that the server says it wrote: a service may have a /tmp of its own, and
    /// a container has a file system of its own.
    fn is_here(&self, told: &Value) -> Result<(), Failure> {
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

async fn migrate(app: &App) -> Reply {
    app.engine.migrate().await.map_err(|error| unmigrated(error.0))?;
    let version = catalogue::version(&*app.engine).await?;
    let ahead = match newest() {
        ours if version > ours => format!("; this program knows {ours}: a newer one has migrated it"),
        _ => String::new(),
    };
    Ok(Outcome::new(format!("the database has schema version {version}{ahead}"), json!({ "schema": version })))
}

/// Returns the schema version of this program.
fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |newest| newest.version)
}

/// Checks that a server brought the database as far as this program would: a server knows no schema after its own.
fn is_brought_to(newest: i64, told: &Value) -> Result<(), Failure> {
    match told["schema"].as_i64() {
        Some(schema) if schema >= newest => Ok(()),
        _ => Err(Failure::Failed(format!(
            "the running server is an older version, and left the database at its schema {}, not {newest}: stop it and \
             run this again, or start it with this program, which migrates, too",
            told["schema"]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_an_older_version_does_not_bring_the_database_to_this_schema() {
        // red without `believed` for Migrate.
        let answer = |schema: i64| Outcome::new("the database has a schema", json!({ "schema": schema }));
        for schema in [newest(), newest() + 1] {
            assert_eq!(Request::Migrate.believed(answer(schema)), Ok(answer(schema)));
        }
        let Err(Failure::Failed(why)) = Request::Migrate.believed(answer(newest() - 1)) else { panic!("refused") };
        assert!(why.contains("older version") && why.contains(&format!("not {}", newest())), "{why}");
    }

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
