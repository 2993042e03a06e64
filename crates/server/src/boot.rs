//! From a configuration to a running server, and back down.

use crate::auditing;
use crate::config::{Config, Journal, PublicUrl, TryIt};
use crate::database::Database;
use crate::hashing;
use crate::http::{self, Site};
use crate::journal::Folder;
use crate::metrics::{self, Desk};
use crate::net::{ListenError, Listeners, Terms, TlsError, raise_nofile, serve};
use crate::private::{self, Unread};
use crate::setup_link::{self, LinkFile};
use crate::trace::Exporter;
use crate::verifier::Workers;
use app::clock::Clock;
use app::jobs::Upkeep;
use app::keyring::Keyring;
use app::ward::Ward;
use app::{App, Fault};
use hasher::Hasher;
use rules::id::RealmId;
use rules::login::throttle;
use rules::realm::{Realm, Settings};
use rules::{Span, Time};
use serde_json::json;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::tables::realms::Issuer;

/// The realm that set-up makes.
pub const FIRST_REALM: &str = "main";
/// What is in a data folder that was used before: the database, or what a node on another database keeps.
const OURS: [&str; 4] = ["portiere.db", "master.key", "node.lock", "portiere.sock"];

/// Why the server does not run.
#[derive(Debug)]
pub enum BootError {
    /// The database is in use: a server runs on this data folder.
    InUse,
    /// Anything else, in a sentence for the operator.
    Other(String),
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BootError::InUse => f.write_str("another server runs on this data folder"),
            BootError::Other(why) => f.write_str(why),
        }
    }
}

impl From<Fault> for BootError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Broken(why) | Fault::Unavailable(why) => BootError::Other(why),
            other => BootError::Other(other.to_string()),
        }
    }
}
impl From<ListenError> for BootError {
    fn from(error: ListenError) -> Self {
        BootError::Other(error.to_string())
    }
}
impl From<TlsError> for BootError {
    fn from(error: TlsError) -> Self {
        BootError::Other(error.to_string())
    }
}

/// A realm over its database, ready for use cases: what the server and the command line both work on.
pub struct Instance {
    /// The use cases.
    pub app: App,
    /// The database.
    pub database: Database,
    /// Let go of last: the data folder, where no file of the database in it says who has it.
    _node: Option<File>,
}

impl Instance {
    /// Opens the data folder: makes it, its master key and its database where they are missing. A command, which has no
    /// `address` of its own, takes the one that the server had, unless the configuration names one.
    pub async fn open(config: &Config, address: Option<&PublicUrl>) -> Result<Self, BootError> {
        make_folder(&config.server.data)?;
        let id = RealmId::from(FIRST_REALM);
        // Of a file it is known before it is made whether something was sealed already; a server has to be asked.
        let (node, database, master) = match config.database() {
            Some(file) => {
                if let Some(left) = left_of(&file, &config.server.data) {
                    return Err(BootError::Other(format!(
                        "the database {} is gone, and {} is still there: restore a backup (portiere restore), or put the \
                         database back; move that file away to begin anew",
                        file.display(),
                        left.display()
                    )));
                }
                let master = master_key(config, file.exists())?;
                (None, Database::open(config).await?, master)
            }
            None => {
                let node = take(&config.server.data)?;
                let database = Database::open(config).await?;
                let master = master_key(config, has_keys(&database, &id).await?)?;
                (Some(node), database, master)
            }
        };
        let issuer = match address.or(config.server.public_url.as_ref()) {
            Some(url) => url.as_str().to_owned(),
            None => last_issuer(config, &database, &id).await?,
        };
        let realm = Realm { id, issuer, settings: settings(config) };
        let keyring = Keyring::new(&master)?;
        let hasher = Hasher::start(hashing::settings(config)?).map_err(|error| BootError::Other(error.to_string()))?;
        let app = match ward(config, &database)? {
            None => App::new(realm, database.engine(), hasher, keyring, Clock::system())?,
            Some(ward) => App::warded(realm, ward, hasher, keyring, Clock::system())?,
        };
        Box::pin(app.meet()).await?;
        app.prepare().await.map_err(|fault| explain(fault, config))?;
        auditing::open(config, &app).await?;
        Ok(Instance { app, database, _node: node })
    }

    /// Commits what waits and lets go of the data folder.
    pub async fn close(self) {
        self.app.hasher.stop().await;
        self.database.close();
    }
}

/// Watches over what this node acknowledges, where the database is a server.
fn ward(config: &Config, database: &Database) -> Result<Option<Ward>, BootError> {
    if config.database().is_some() || config.store.journal == Journal::Off {
        return Ok(None);
    }
    let data = &config.server.data;
    let failed = |error: std::io::Error| BootError::Other(format!("the journal in {}: {error}", data.display()));
    let journal = Folder::open(data, &node_name()?).map_err(failed)?;
    Ok(Some(Ward::new(database.engine(), Arc::new(journal))))
}

/// A name for a new node that people know it by: the machine's, and some letters, since a machine may have several.
fn node_name() -> Result<String, BootError> {
    let machine = rustix::system::uname();
    let letter = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let machine: String = machine.nodename().to_string_lossy().chars().filter(letter).take(40).collect();
    let chance = app::entropy::fresh()?.ordered("node", Time(0));
    Ok(format!("{machine}-{}", &chance[chance.len() - 6..]))
}

/// Whether there is anything that a master key sealed.
async fn has_keys(database: &Database, realm: &RealmId) -> Result<bool, BootError> {
    let asked = store::tables::ask(&*database.engine(), realm, store::tables::keys::All).await;
    Ok(!asked.map_err(|error| BootError::Other(error.0))?.is_empty())
}

/// Where the server was reached when it ran last; where none ever ran, where it would be.
async fn last_issuer(config: &Config, database: &Database, realm: &RealmId) -> Result<String, BootError> {
    let asked = store::tables::ask(&*database.engine(), realm, Issuer).await;
    let known = asked.map_err(|error| BootError::Other(error.0))?;
    let port = config.server.listen.first().map_or(0, |address| address.port());
    Ok(known.unwrap_or_else(|| config.public_url(port).as_str().to_owned()))
}

/// Where a wrong master key came from is said, too: nobody should look for it anywhere else.
fn explain(fault: Fault, config: &Config) -> BootError {
    use crate::config::{Source, variable};
    let why = match fault {
        Fault::Broken(why) if why.contains("master key") => why,
        other => return other.into(),
    };
    let (option, key) = match config.master_key() {
        Some(_) => ("keys.master_key", "keys.master_key".to_owned()),
        None => ("keys.master", config.master_key_file().display().to_string()),
    };
    let from = match config.show().into_iter().find(|shown| shown.name == option).map(|shown| shown.source) {
        Some(Source::Env) => format!(", from the environment variable {}", variable(option)),
        Some(Source::File) => format!(", from {option} in the configuration file"),
        Some(Source::Flag) => ", from the command line".to_owned(),
        Some(Source::Default) | None => String::new(),
    };
    BootError::Other(format!("{why}; put back the key that belongs to this data ({key}{from})"))
}

/// Whether a server or a command worked in the data folder before.
pub fn was_used(folder: &Path) -> bool {
    OURS.iter().any(|name| folder.join(name).exists())
}

/// What is left where a database was: its log, or what a restore that was cut short had put aside; of one that was closed, the mark
/// of its audit log in the data folder. An empty database in its place would look like a new server, and nobody would ask where
/// everything went.
fn left_of(database: &Path, data: &Path) -> Option<PathBuf> {
    if database.exists() {
        return None;
    }
    let name = database.file_name()?.to_str()?;
    let [log, aside] = ["-wal", ".replaced-"].map(|ending| format!("{name}{ending}"));
    let entries = std::fs::read_dir(database.parent()?).ok()?.flatten();
    let left = |name: &str| name == log || name.starts_with(&aside);
    let beside = entries.filter(|entry| entry.file_name().to_str().is_some_and(left)).map(|entry| entry.path()).min();
    beside.or_else(|| Some(data.join("audit.mark")).filter(|mark| mark.exists()))
}

/// Makes the data folder, which is its owner's alone.
pub fn make_folder(folder: &Path) -> Result<(), BootError> {
    private::folder(folder, &OURS).map_err(|why| BootError::Other(format!("the data folder {why}")))
}

/// The data folder for this process alone, until the file is dropped.
fn take(folder: &Path) -> Result<File, BootError> {
    let name = folder.join("node.lock");
    let failed = |error: std::io::Error| BootError::Other(format!("{}: {error}", name.display()));
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&name).map_err(failed)?;
    private::hand_over(&name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BootError::InUse),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The master key: from the environment, or from its file, which the first start makes. Once the database has `begun`, a
/// missing key is never replaced: everything that it sealed would be lost.
fn master_key(config: &Config, begun: bool) -> Result<private::Key, BootError> {
    if let Some(key) = config.master_key() {
        return Ok(key);
    }
    let file = config.master_key_file();
    let failed = |what: String| BootError::Other(format!("the master key {}: {what}", file.display()));
    match private::read_key(&file) {
        Ok(key) => Ok(key),
        Err(Unread::Missing) if !begun => {
            let key = private::Key::new(app::entropy::bytes()?);
            // Another one that starts at the same time may have been faster, and its key is not overwritten.
            private::create(&file, &*key).map_err(|error| failed(error.to_string()))?;
            Ok(key)
        }
        Err(why @ Unread::Missing) => {
            Err(failed(format!("{why}, and the database needs the one that it was made with; put it back")))
        }
        Err(why @ Unread::Length) => Err(failed(format!("{why}; put back the file that belongs to this data"))),
        Err(why) => Err(failed(why.to_string())),
    }
}

fn settings(config: &Config) -> Settings {
    let throttle = &config.throttle;
    Settings {
        access_ttl: config.token.access_ttl,
        id_ttl: config.token.id_ttl,
        code_ttl: config.code.ttl,
        refresh_idle: config.refresh.idle,
        refresh_absolute: config.refresh.absolute,
        refresh_grace: config.refresh.grace,
        device_ttl: config.device.ttl,
        session_idle: config.session.idle,
        session_absolute: config.session.absolute,
        touch_every: config.session.touch_every,
        pkce_optional: config.pkce.optional_for_confidential,
        signup: config.signup.enabled,
        password_min: config.password.min_length,
        brand: config.brand.name.clone(),
        throttle: throttle::Policy {
            free: throttle.free_failures.into(),
            address_free: throttle.address_free_failures.into(),
            network_factor: throttle.network_factor.into(),
            base: throttle.base_delay,
            max: throttle.max_delay,
            ..throttle::Policy::default()
        },
        hash_upgrade: config.hash.upgrade,
        client_rate: config.limits.requests_per_client,
        hash_wait: Span(i64::try_from(config.hash.max_wait.as_millis()).unwrap_or(i64::MAX)),
        ..Settings::default()
    }
}

/// Runs the server until it is told to stop. What it says at the start is an object if `json`.
pub async fn run(config: Config, json: bool) -> Result<(), BootError> {
    let files = raise_nofile().unwrap_or_else(|error| {
        tracing::warn!(%error, "the limit of open files could not be raised");
        u64::MAX
    });
    let listeners = Listeners::of(&config)?;
    let addresses = listeners.addresses();
    let url = config.public_url(addresses.first().map_or(0, |address| address.port()));
    let terms = Terms::of(&config, files)?;
    let streams = auditing::streams(&config)?;
    let desk = Desk::of(&config)?;
    let instance = Instance::open(&config, Some(&url)).await?;
    take_over(&config, &instance.app).await;
    instance.app.note_issuer().await?;
    let try_it = offers_try_it(&config, &url, &instance.app).await?;
    let (tracer, mut exporter) = Exporter::of(&config, &instance.app.node, &instance.app.clock)?;
    let site = Site::new(&config, (url, try_it), &instance, &terms, tracer);
    let control = crate::control::listen(&config.server.data, &instance)?.of(site.clone());
    let workers = Workers::bind(&config, &instance.app)?;
    // Once nothing that it needs can be in use any more.
    let announced = announce(&config, &site.url, &instance, json).await?;
    let upkeep = Upkeep { keys: config.keys.rotate_after };
    tracing::info!(?addresses, "ready");
    let watched = site.clone();
    let stop = async {
        told_to_stop().await;
        watched.leaving.store(true, Ordering::Relaxed);
        tracing::info!("stopping");
    };
    let stopped = tokio::select! {
        stopped = serve(listeners, terms, http::router(site), stop) => stopped,
        () = workers.run() => return Err(BootError::Other("the listener for hash workers ended".into())),
        () = metrics::serve(desk, watched.clone()) => return Err(BootError::Other("the metrics are not served any more".into())),
        () = watched.strain.watch(&instance.app.hasher, &instance.database, &watched.admission) => return Err(BootError::Other("the background jobs ended".into())),
        () = export(&mut exporter) => return Err(BootError::Other("the background jobs ended".into())),
        () = control.run() => return Err(BootError::Other("the control socket failed".into())),
        () = hashing::learn(&instance.app.hasher, &config) => return Err(BootError::Other("the background jobs ended".into())),
        () = instance.app.watch() => return Err(BootError::Other("the background jobs ended".into())),
        () = instance.app.keep_books() => return Err(BootError::Other("the background jobs ended".into())),
        () = auditing::deliver(&instance.app, streams) => return Err(BootError::Other("the background jobs ended".into())),
        () = look_after(announced.as_ref(), &instance.app) => return Err(BootError::Other("the background jobs ended".into())),
        () = keep_up(&watched, upkeep) => return Err(BootError::Other("the background jobs ended".into())),
    };
    if stopped.cut > 0 {
        tracing::warn!(connections = stopped.cut, "connections were cut");
    }
    if let Some(file) = announced {
        file.remove();
    }
    if let Some(exporter) = &mut exporter {
        exporter.finish().await;
    }
    instance.app.retire().await;
    instance.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// A file has one server: what another one did for all is this one's, and nobody waits for the lease of one that was killed.
async fn take_over(config: &Config, app: &App) {
    if config.database().is_none() {
        return;
    }
    if let Err(fault) = app.take_over().await {
        tracing::warn!(%fault, "the jobs of a server that was killed wait for the end of its leases");
    }
}

/// Whether "Try it" is offered; its client is there if so, and only then.
async fn offers_try_it(config: &Config, url: &PublicUrl, app: &App) -> Result<bool, BootError> {
    let offered = match config.server.try_it {
        TryIt::On => true,
        TryIt::Off => false,
        TryIt::Auto => url.is_localhost(),
    };
    if offered {
        http::try_it::ensure_client(app, url).await?;
    } else {
        http::try_it::remove_client(app).await?;
    }
    Ok(offered)
}

/// Keeps the set-up link usable, where it was left in a file.
async fn look_after(file: Option<&LinkFile>, app: &App) {
    if let Some(file) = file {
        file.look_after(app).await;
    }
    std::future::pending().await
}

/// Does the upkeep, which gives way to requests.
async fn keep_up(site: &Site, upkeep: Upkeep) {
    site.app.keep_up(upkeep, &|| site.is_busy()).await;
}

/// Sends traces, where there is a collector.
async fn export(exporter: &mut Option<Exporter>) {
    match exporter {
        Some(exporter) => exporter.run().await,
        None => std::future::pending().await,
    }
}

/// SIGTERM, SIGINT, or the end of the terminal in which it was started.
pub async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = terminal_gone() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// Ready when the terminal in which the process was started is gone. SIGHUP by itself asks for less: files are read again.
async fn terminal_gone() {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = signal(SignalKind::hangup()).ok().filter(|_| std::io::stdin().is_terminal());
    let Some(mut hangup) = heard else { return std::future::pending().await };
    while hangup.recv().await.is_some() && std::io::stdin().is_terminal() {}
}

/// Tells where the server is and, while nobody owns it, how to make the first account; as one object for programs. Gives the
/// file that holds the link, where it was left in one.
async fn announce(
    config: &Config,
    url: &PublicUrl,
    instance: &Instance,
    json: bool,
) -> Result<Option<LinkFile>, BootError> {
    let (app, worth) = (&instance.app, worth(instance).await);
    let folder = config.server.data.canonicalize().unwrap_or_else(|_| config.server.data.clone());
    let mut lines = vec![format!("Portiere runs at {}", url.as_str()), format!("  data in {}", folder.display())];
    lines.extend(worth.iter().map(|line| format!("  {line}")));
    let (file, mut left) = (LinkFile::of(&folder), None);
    match app.offer_setup(false).await?.map(|link| setup_link::address(app, link.reveal())) {
        None => file.remove(),
        Some(link) if std::io::stdout().is_terminal() && !json => {
            file.remove();
            lines.extend(by_hand(url, &link));
        }
        Some(link) => {
            file.write(&link).map_err(BootError::Other)?;
            let at = file.path().display();
            lines.push(format!("  no account yet: the link that makes the first one is in {at}"));
            left = Some(file);
        }
    }
    if json {
        let link = left.as_ref().map(LinkFile::path);
        let told = json!({ "issuer": url.as_str(), "data": folder, "durability": worth.first(), "setup_link": link });
        lines = vec![told.to_string()];
    }
    let mut out = std::io::stdout().lock();
    lines.iter().for_each(|line| drop(writeln!(out, "{line}")));
    Ok(left)
}

/// What somebody at a terminal does first.
fn by_hand(url: &PublicUrl, link: &str) -> Vec<String> {
    let mut lines = vec!["  no account yet: make the first one within 30 minutes at".to_owned(), format!("  {link}")];
    let over_ssh = crate::config::environment().iter().any(|(name, _)| name == "SSH_CONNECTION");
    if over_ssh && url.is_localhost() {
        let port = url.port();
        lines.push(format!("  from your own machine first: ssh -L {port}:localhost:{port} THIS-HOST"));
    }
    lines
}

/// What an acknowledged write is worth, in the words of `/readyz`: whoever set the database up is told at once.
async fn worth(instance: &Instance) -> Vec<&'static str> {
    let database = &instance.database;
    let (worth, contradiction) = match instance.app.engine.health().await {
        Ok(health) => (database.promise(health.durability), database.contradiction(health.durability)),
        Err(_) => ("what an acknowledged write is worth is not known: the database does not answer", None),
    };
    tracing::info!(worth, "what an acknowledged write is worth");
    [worth].into_iter().chain(contradiction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    /// Two that start on one empty folder at the same time: whatever either of them goes on with is what is kept.
    #[test]
    fn a_folder_has_one_master_key_however_many_start_there() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let flags = vec![("data", folder.path().display().to_string())];
            let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
            let start = std::sync::Barrier::new(4);
            let keys: Vec<_> = std::thread::scope(|scope| {
                let starters = [(); 4].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        master_key(&config, false).ok()
                    })
                });
                starters.into_iter().filter_map(|starter| starter.join().unwrap()).collect()
            });
            let kept = private::read_key(&config.master_key_file()).unwrap();
            assert!(!keys.is_empty() && keys.iter().all(|key| *key == kept));
        }
    }
}
