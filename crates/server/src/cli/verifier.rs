//! Hash workers: machines that hash passwords for this server.

use super::hash::size;
use super::input::{Input, Wanted};
use super::outcome::{Failure, Outcome, Reply};
use super::removal::Removed;
use super::request::Place;
use super::text::{Table, harmless};
use crate::loops::run_out;
use crate::verifier::{Folder, Identity, Unenrolled, Work, enroll, serve};
use app::App;
use clap::{Args, Subcommand, ValueHint};
use hasher::remote::WorkerState;
use rules::Secret;
use rules::secret::base64url;
use rules::utc::{iso, when};
use rules::worker::Worker;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tokio::sync::watch;

/// The subcommands of `verifier`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// Create a token that enrolls one worker, valid once and for 10 minutes
    ///
    /// The token also names the server's key, so that the worker knows which server it speaks to. The server listens
    /// for workers at workers.listen.
    Token,
    /// Show the workers, how many passwords wait to be hashed here, and for how long
    ///
    /// Shows which workers are connected, how fast they are, what they did, and whether they are trusted. Asks the
    /// server that runs on this data folder. With several nodes, each node shows the workers that are connected to it.
    Status,
    /// List the enrolled workers
    List,
    /// Rename a worker
    #[command(after_long_help = "\
Examples:
  portiere verifier rename hash-1 rack2-hash-1")]
    Rename(Rename),
    /// Revoke a worker, and disconnect it if it is connected
    ///
    /// What it was computing is computed by others. Other nodes disconnect it within 5 s.
    #[command(after_long_help = "\
Examples:
  portiere verifier revoke hash-1")]
    Revoke(Removed<Named>),
    /// Trust a quarantined worker again
    ///
    /// A worker is quarantined after a wrong answer, and after a restore. First find out why an answer was wrong:
    /// honest machines give a wrong answer only if their memory or processor is broken.
    #[command(after_long_help = "\
Examples:
  portiere verifier trust hash-1")]
    Trust(Named),
    /// On the worker's machine: enroll it
    ///
    /// Creates a key in the worker's folder, shows it to the server with the token, and notes the server's key. The
    /// machine needs nothing else of the server, and keeps nothing secret of it.
    #[command(after_long_help = "\
Examples:
  portiere verifier enroll --server login.example.com:8444 --token pvt1.…
  portiere verifier enroll --server 10.0.0.1:8444 --server 10.0.0.2:8444 \\
    --name hash-1 --token-stdin < token")]
    Enroll(Enroll),
    /// On the worker's machine: hash for the server, until stopped
    ///
    /// Needs no configuration, no database and no open port: it connects to the server, and connects again when the
    /// connection ends.
    #[command(after_long_help = "\
Examples:
  portiere verifier serve
  portiere verifier serve --folder /var/lib/portiere-worker --threads 4 \\
    --memory 512MiB")]
    Serve(Serve),
}

/// The name of a worker.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Named {
    /// Its name, as portiere verifier list shows it
    pub name: String,
}

/// The present and the new name of a worker.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Rename {
    /// Its name, as portiere verifier list shows it
    pub name: String,
    /// The new name: 1 to 40 letters, digits, dots, dashes and underscores
    pub new: String,
}

/// The arguments of `verifier enroll`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Enroll {
    /// Address at which the server listens for workers; for several nodes, give each
    #[arg(long, value_name = "HOST:PORT", required = true)]
    pub server: Vec<String>,
    /// The token from portiere verifier token; it is valid once and expires after 10 minutes
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_stdin", required_unless_present = "token_stdin")]
    pub token: Option<String>,
    /// Read the token from standard input
    #[arg(long)]
    pub token_stdin: bool,
    /// The worker's name [default: the name of the machine]
    #[arg(long)]
    pub name: Option<String>,
    /// The worker's folder, created with mode 0700
    #[arg(long, value_name = "DIR", default_value = "verifier", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// The arguments of `verifier serve`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Serve {
    /// The worker's folder
    #[arg(long, value_name = "DIR", default_value = "verifier", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Hashing threads, at most one per core [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// The most memory for hashing [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
}

fn bytes(text: &str) -> Result<u64, String> {
    size(text).map(|size| size.0)
}

impl Command {
    /// Asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::Revoke(Removed { named, removal }) => {
                removal.complete(input, ("It can come back only with a new token and another folder.", &named.name))
            }
            _ => Ok(()),
        }
    }

    /// Carries out the command on a realm. Refuses commands that belong to the worker's machine.
    pub async fn execute(self, app: &App, place: Place<'_>) -> Reply {
        match self {
            Command::Token => token(app, place).await,
            Command::Status => status(app).await,
            Command::List => list(app).await,
            Command::Rename(Rename { name, new }) => {
                app.rename_worker(&name, &new).await??;
                Ok(Outcome::new(format!("worker {name} is called {new} now"), json!({ "name": new })))
            }
            Command::Revoke(Removed { named: Named { name }, removal }) => {
                removal.ended(revoke(app, &name).await, "worker", ("revoked", &name))
            }
            Command::Trust(Named { name }) => {
                let changed = app.trust_worker(&name).await??;
                let text = match changed {
                    true => format!("worker {name} is trusted again; it reconnects by itself within half a minute"),
                    false => format!("worker {name} is trusted already"),
                };
                Ok(Outcome::new(text, json!({ "trusted": name, "changed": changed })))
            }
            Command::Enroll(_) | Command::Serve(_) => Err(Failure::Use("this is done on the worker's machine".into())),
        }
    }
}

/// Says what has to be done before a worker can connect, if the node that made a token does not listen for workers.
const UNHEARD: &str = "no hash worker can connect here yet: set workers.listen and restart the server before the token \
                       expires, or give --server a node that listens for them";

async fn token(app: &App, place: Place<'_>) -> Reply {
    let (secret, expires) = app.worker_token().await??;
    let key = Identity::of(&app.keyring.workers).map_err(Failure::Failed)?.pin;
    let token = format!("pvt1.{}.{}", secret.reveal(), base64url(&key.0));
    let text = format!(
        "{token}\n\nOn the worker's machine, within 10 minutes:\n\n  portiere verifier enroll --server HOST:PORT --token {token}\n  \
         portiere verifier serve\n\nHOST:PORT is where that machine reaches what workers.listen names{}.",
        if place.hears_workers { " here" } else { "" }
    );
    let json = json!({ "token": token, "server_key": base64url(&key.0), "expires_at": iso(expires) });
    // The token is in the database: any node takes it, and this node from its next start on.
    let unheard = (!place.hears_workers).then(|| UNHEARD.to_owned());
    Ok(Outcome::new(text, json).noting(unheard.into_iter().collect()))
}

async fn revoke(app: &App, name: &str) -> Reply {
    app.revoke_worker(name).await??;
    let text = format!("worker {name} is revoked, and not let in any more; remove its folder on its machine");
    Ok(Outcome::new(text, json!({ "revoked": name, "removed": true })))
}

async fn list(app: &App) -> Reply {
    let workers = app.workers().await?;
    if workers.is_empty() {
        return Ok(Outcome::new(NOBODY, json!([])));
    }
    let mut table = Table::new(["NAME", "TRUST", "ENROLLED", "FROM", "KEY"], true);
    for worker in &workers {
        let key = base64url(&worker.key.0);
        table.row([worker.name.clone(), trust(worker), when(worker.enrolled), worker.address.clone(), key]);
    }
    Ok(Outcome::new(table.render(), workers.iter().map(shown).collect()))
}

const NOBODY: &str = "no worker is enrolled; see: portiere verifier token";

fn trust(worker: &Worker) -> String {
    match &worker.quarantine {
        None => "trusted".into(),
        Some((at, why)) => format!("quarantined {}: {why}", when(*at)),
    }
}

fn shown(worker: &Worker) -> Value {
    json!({
        "name": worker.name,
        "key": base64url(&worker.key.0),
        "enrolled_at": iso(worker.enrolled),
        "enrolled_from": worker.address,
        "trust": if worker.quarantine.is_none() { "trusted" } else { "quarantined" },
        "quarantined_at": worker.quarantine.as_ref().map(|(at, _)| iso(*at)),
        "why": worker.quarantine.as_ref().map(|(_, why)| why),
    })
}

async fn status(app: &App) -> Reply {
    let (workers, here, state) = (app.workers().await?, app.hasher.workers(), app.hasher.state());
    let of = |worker: &Worker| here.iter().filter(|state| state.who.key == worker.key.0).collect::<Vec<_>>();
    let mut table = Table::new(
        [
            "NAME", "STATE", "ADDRESS", "RATE", "LATENCY", "HELD", "ASKED", "NO MATCH", "CANARIES", "LIES", "HEDGED",
            "DROPPED",
        ],
        true,
    );
    let mut rows = Vec::new();
    for worker in &workers {
        let links = of(worker);
        if links.is_empty() {
            let mut cells: [String; 12] = Default::default();
            (cells[0], cells[1]) = (worker.name.clone(), standing(worker, None).into());
            table.row(cells);
        }
        links.iter().for_each(|link| table.row(cells(worker, link)));
        let mut json = shown(worker);
        json["connections"] = links.iter().map(|link| connection(worker, link)).collect();
        rows.push(json);
    }
    let mean = |rate: f64| format!("{rate:.0}");
    let rates = here.iter().map(|link| link.reckoned);
    // A sum of nothing would be -0.
    let there = rates.fold(0.0, |sum, rate| sum + rate);
    let text = format!(
        "this server hashes {} passwords a second by itself, workers {} more; {} of {} were computed by workers\n\
         {} passwords wait; one that comes now would wait {:.0} ms\n{}",
        mean(app.hasher.rate()),
        mean(there),
        state.remote_total,
        state.done_total,
        state.waiting,
        state.expected_wait.as_secs_f64() * 1e3,
        if workers.is_empty() { NOBODY.to_owned() } else { format!("\n{}", table.render()) }
    );
    let json = json!({
        "local_rate": app.hasher.rate(),
        "workers_rate": there,
        "waiting": state.waiting,
        "expected_wait_ms": state.expected_wait.as_secs_f64() * 1e3,
        "done": state.done_total,
        "done_by_workers": state.remote_total,
        "workers": rows,
    });
    Ok(Outcome::new(text, json))
}

fn standing(worker: &Worker, link: Option<&WorkerState>) -> &'static str {
    match (link, &worker.quarantine) {
        (_, Some(_)) => "quarantined",
        (None, None) => "away",
        (Some(link), None) if link.parted.is_some() || link.ready.holds == 0 => "leaving",
        (Some(link), None) if link.doubtful => "late",
        (Some(link), None) if link.reckoned == 0.0 => "proving",
        (Some(_), None) => "working",
    }
}

fn cells(worker: &Worker, link: &WorkerState) -> [String; 12] {
    let counts = link.counts;
    let dropped = counts.late + counts.duplicate + counts.unknown;
    [
        worker.name.clone(),
        standing(worker, Some(link)).into(),
        link.who.address.clone(),
        format!("{:.0}/s", link.rate),
        format!("{:.1} ms", link.latency.as_secs_f64() * 1e3),
        format!("{} of {}", link.holding, link.ready.holds),
        counts.asked.to_string(),
        counts.refusals.to_string(),
        counts.canaries.to_string(),
        counts.lies.to_string(),
        counts.hedged.to_string(),
        dropped.to_string(),
    ]
}

fn connection(worker: &Worker, link: &WorkerState) -> Value {
    let counts = link.counts;
    json!({
        "state": standing(worker, Some(link)),
        "address": link.who.address,
        "connected_for_s": link.here.as_secs(),
        "threads": link.ready.threads,
        "rate": link.rate,
        "reckoned_rate": link.reckoned,
        "latency_ms": link.latency.as_secs_f64() * 1e3,
        "held": link.holding,
        "credits": link.ready.holds,
        "asked": counts.asked,
        "answered": counts.answered,
        "no_match": counts.refusals,
        "canaries_passed": counts.canaries,
        "lies": counts.lies,
        "failed": counts.failed,
        "hedged": counts.hedged,
        "late": counts.late,
        "duplicate": counts.duplicate,
        "unknown": counts.unknown,
    })
}

impl Enroll {
    /// Enrolls the worker.
    pub async fn run(self) -> Reply {
        let token = match self.token {
            Some(token) => Secret::new(token),
            None => {
                let wanted = Wanted { what: "token", flag: "--token-stdin", given: self.token_stdin };
                Input::of_process().known_secret(wanted)?
            }
        };
        let name = self.name.unwrap_or_else(machine);
        // Before a server is asked: a frame holds no other name, and a broken connection would look like a wrong port.
        rules::worker::name(&name).map_err(|why| Failure::Use(format!("--name {}: {why}", harmless(&name))))?;
        for server in &self.server {
            let port = server.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none() {
                return Err(Failure::Use(format!("--server {}: not HOST:PORT", harmless(server))));
            }
        }
        let folder = Folder::at(&self.folder);
        let name = enroll(&folder, &token, (&self.server, &name)).await.map_err(|why| match why {
            Unenrolled::Away(why) => Failure::Later(why),
            Unenrolled::Failed(why) => Failure::Failed(why),
        })?;
        let (shown, mut serve) = (self.folder.display().to_string(), "portiere verifier serve".to_owned());
        if shown != "verifier" {
            serve = format!("{serve} --folder {shown}");
        }
        let text = format!("enrolled as {name}; its key is in {shown}. Now: {serve}");
        Ok(Outcome::new(text, json!({ "name": name, "folder": shown, "servers": self.server })))
    }
}

/// Returns the machine's name, as far as a worker may have it.
fn machine() -> String {
    let system = rustix::system::uname();
    let letter = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let name: String = system.nodename().to_string_lossy().chars().filter(letter).take(40).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

impl Serve {
    /// Runs until SIGTERM or SIGINT. Then finishes what it holds, unless it is told again to stop.
    pub fn run(self) -> Result<(), Failure> {
        let work = Work { threads: self.threads, memory: self.memory };
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ended = run_out(threads, async {
            let (stop, stopping) = watch::channel(false);
            let folder = Folder::at(&self.folder);
            let mut orders = crate::boot::Orders::listen();
            let mut working = Box::pin(serve(folder, work, stopping));
            tokio::select! {
                ended = &mut working => return ended,
                () = orders.next() => tracing::info!("stopping"),
            }
            stop.send_replace(true);
            tokio::select! {
                ended = &mut working => ended,
                () = orders.next() => Ok(()),
            }
        });
        ended.map_err(Failure::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{cli, instance};
    use hasher::remote::frame::TOKEN;

    #[tokio::test]
    async fn the_status_says_how_many_passwords_wait_and_for_how_long() {
        // Red without `waiting` in `status`: nothing but /readyz told an operator that workers would help.
        let folder = tempfile::tempdir().unwrap();
        let instance = instance(folder.path()).await;
        let told = status(&instance.app).await.unwrap();
        assert!(told.text.contains("\n0 passwords wait; one that comes now would wait "), "{}", told.text);
        assert!(told.json["waiting"] == 0 && told.json["expected_wait_ms"].is_number(), "{}", told.json);
        instance.close().await;
    }

    #[test]
    fn a_size_may_be_written_as_for_hash_tune() {
        // Red with the configuration's parser alone.
        assert_eq!(bytes("512M"), Ok(512 << 20));
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        assert!(cli("verifier serve --memory 512M").is_ok() && cli("verifier serve --memory much").is_err());
    }

    #[tokio::test]
    async fn a_server_that_is_not_reached_may_be_there_later() {
        // Red without `is_away` in verifier/worker.rs: a script would not try again.
        let root = tempfile::tempdir().unwrap();
        for server in ["127.0.0.1:1", "nosuch.invalid:1"] {
            let token = Some(format!("pvt1.{}.{}", base64url(&[7; TOKEN]), base64url(&[7; 32])));
            let (name, folder) = (Some("one".to_owned()), root.path().join("worker"));
            let enroll = Enroll { server: vec![server.to_owned()], token, token_stdin: false, name, folder };
            let refused = enroll.run().await.unwrap_err();
            assert_eq!(refused.exit_code(), 75, "{refused:?}");
            assert!(refused.told().starts_with(&format!("{server}: ")), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_name_that_no_worker_can_have_is_refused_before_anybody_is_asked() {
        // Red without the name in `run`: the server reads no such frame, and its port would be called the wrong one.
        let root = tempfile::tempdir().unwrap();
        for name in ["a\tb", "", "two words"] {
            let folder = root.path().join("worker");
            let (server, token) = (vec!["127.0.0.1:1".to_owned()], Some("pvt1.a.b".to_owned()));
            let enroll =
                Enroll { server, token, token_stdin: false, name: Some(name.to_owned()), folder: folder.clone() };
            let refused = enroll.run().await;
            assert!(matches!(&refused, Err(Failure::Use(why)) if why.starts_with("--name ")), "{refused:?}");
            assert!(!folder.exists());
        }
    }
}
