//! Commands that are carried out on a realm: by the running server, over the control socket, or in this process.

use super::backup::Backup;
use super::input::Input;
use super::moving::AtSource;
use super::outcome::{self, Failure, Outcome, Reply};
use super::{audit, client, fence, group, keys, migrate, node, profile, ready, user, verifier};
use crate::setup_link::{self, LinkFile};
use app::App;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

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
    /// is not, and with 75 if no server runs on the data folder, or it does not answer. With --wait, the command waits
    /// until the server is ready, also for a server that is only starting.
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

impl Request {
    /// Completes what was typed with what comes from standard input and from files.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Request::User(command) => command.complete(input),
            Request::Client(command) => command.complete(input),
            Request::Group(command) => command.complete(input),
            Request::Keys(command) => command.complete(input),
            Request::Verifier(command) => command.complete(input),
            Request::Audit(command) => command.complete(input),
            Request::Fence(command) => command.complete(input),
            Request::Node(command) => command.complete(input),
            Request::Backup(backup) => backup.complete(),
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
            Request::AtSource(at) if at.is_look() => Duration::from_secs(10),
            Request::Backup(_) | Request::AtSource(_) | Request::User(user::Command::Hashes(_)) => {
                Duration::from_secs(24 * 60 * 60)
            }
            // Its first step has a file of any size checked.
            Request::Audit(command) if command.checks_all() => Duration::from_secs(24 * 60 * 60),
            Request::Profile(command) => command.patience(),
            // A server that works answers within two seconds, whatever its database does.
            Request::Ready(_) => Duration::from_secs(10),
            _ => Duration::from_secs(60),
        }
    }

    /// Returns whether the request changes nothing, so that nothing is in doubt where no answer comes.
    pub fn is_question(&self) -> bool {
        use audit::Command as Audit;
        use user::Command as User;
        match self {
            Request::User(command) => matches!(command, User::List(_) | User::Hashes(_) | User::Show(_)),
            Request::Client(command) => matches!(command, client::Command::List(_) | client::Command::Show(_)),
            Request::Group(command) => matches!(command, group::Command::List | group::Command::Show(_)),
            Request::Keys(command) => matches!(command, keys::Command::List),
            Request::Audit(command) => matches!(
                **command,
                Audit::List(_)
                    | Audit::Export(_)
                    | Audit::Tail(_)
                    | Audit::Strangers(_)
                    | Audit::Verify(_)
                    | Audit::Head
                    | Audit::Status
            ),
            Request::Fence(command) => matches!(command, fence::Command::Status),
            Request::Node(command) => matches!(command, node::Command::List),
            Request::Verifier(command) => matches!(command, verifier::Command::Status | verifier::Command::List),
            Request::Ready(_) | Request::Profile(_) => true,
            Request::AtSource(at) => at.is_look(),
            Request::SetupLink | Request::Migrate | Request::Backup(_) => false,
        }
    }

    /// Adds to a failure that leaves in doubt whether this was carried out what makes another of what would have been
    /// shown only this once.
    pub fn doubted(&self, failure: Failure) -> Failure {
        match (failure, self.makes_anew()) {
            (Failure::InDoubt(told), Some(command)) => {
                Failure::InDoubt(format!("{told}; what it may have made was not shown: make another: {command}"))
            }
            (failure, _) => failure,
        }
    }

    /// Returns the command that makes another of what this shows only once.
    fn makes_anew(&self) -> Option<String> {
        match self {
            Request::Client(command) => command.makes_secret_of().map(outcome::another_secret),
            Request::SetupLink => Some(outcome::ANOTHER_LINK.to_owned()),
            Request::Verifier(verifier::Command::Token) => Some(outcome::ANOTHER_TOKEN.to_owned()),
            _ => None,
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
            Request::Migrate => migrate::is_done(&answer.json).map(|()| answer),
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
        let asked = self.clone();
        self.carry_out(app, place).await.map_err(|failure| asked.doubted(failure))
    }

    async fn carry_out(self, app: &App, place: Place<'_>) -> Reply {
        match self {
            Request::User(command) => Box::pin(command.execute(app, place)).await,
            Request::Client(command) => command.execute(app).await,
            Request::Group(command) => command.execute(app).await,
            Request::Keys(command) => command.execute(app).await,
            Request::Audit(command) => Box::pin(command.execute(app)).await,
            Request::Fence(command) => command.execute(app).await,
            Request::Node(command) => command.execute(app).await,
            Request::Verifier(command) => command.execute(app, place).await,
            Request::SetupLink => setup_link(app, place).await,
            Request::Backup(backup) => backup.execute(app).await,
            Request::Migrate => migrate::execute(app).await,
            Request::AtSource(asked) => asked.execute(app).await,
            Request::Ready(_) => Err(Failure::Failed("only a running server can be ready".into())),
            // Only the server can do it: the profile is of its process.
            Request::Profile(_) => Err(Failure::Failed("only a running server can be profiled".into())),
        }
    }
}

async fn setup_link(app: &App, place: Place<'_>) -> Reply {
    let Some(secret) = app.offer_setup(true).await? else {
        return Err(Failure::Refused("there is an owner already, so no link can make one".into()));
    };
    let link = setup_link::address(app, secret.reveal());
    LinkFile::of(place.data).follow(&link).await.map_err(Failure::Failed)?;
    let here = if place.serves { "" } else { "; no server runs: start it first (portiere serve)" };
    let text = format!("{link}\nvalid once, for 30 minutes{here}");
    Ok(Outcome::new(text, json!({ "link": link, "expires_in": app::setup::LINK_LIVES.whole_seconds() })))
}
