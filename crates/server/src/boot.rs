//! Takes a server from its configuration to serving, and back down.

mod error;
mod folder;
mod lost;
mod starts;
mod stop;
mod systemd;
#[cfg(test)]
mod tests;

use crate::auditing;
use crate::config::{Config, Journal, LogFormat, PublicUrl};
use crate::control::{self, Control};
use crate::database::Database;
use crate::hashing::{self, Learnt};
use crate::http::{self, Site};
use crate::journal::{self, Folder};
use crate::logs;
use crate::metrics::{self, Desk};
use crate::net::{Bound, Listeners, Terms, raise_nofile, serve};
use crate::setup_link::{self, LinkFile};
use crate::trace::Exporter;
use crate::trial;
use crate::verifier::Workers;
use app::audit::Stream;
use app::clock::Clock;
use app::jobs::Upkeep;
use app::keyring::Keyring;
use app::ward::Ward;
use app::{App, Fault};
use hasher::Hasher;
use rules::Time;
use rules::id::RealmId;
use rules::login::throttle;
use rules::realm::{Realm, Settings};
use serde_json::json;
use starts::Starts;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use stop::wind_down;
use store::tables::realms::Issuer;
use tokio::sync::{mpsc, oneshot};

pub use error::BootError;
pub use folder::{judge as judge_folder, make as make_folder, was_used};
pub use lost::{Lacking, lacking};
pub use stop::Orders;

/// How often the start tries to open the data folder and its database, and the pause between two tries.
const OPENED_WITHIN: u32 = 50;
const OPENED_EVERY: Duration = Duration::from_millis(100);

/// The realm that set-up makes.
pub const FIRST_REALM: &str = "main";

/// A realm on its database, ready for use cases. Both the server and the command line work on one.
pub struct Instance {
    /// The use cases.
    pub app: App,
    /// The database.
    pub database: Database,
    /// The version that the database's schema had before it was opened; 0 if the database was made.
    pub schema_before: i64,
    /// The lock on the data folder, released last. A folder has one server, whichever databases there are.
    _node: File,
}

impl Instance {
    /// Opens the data folder; makes the folder, its master key and its database if they are missing. A command, which
    /// has no `address` of its own, takes the address that the server had, unless the configuration names one.
    pub async fn open(config: &Config, address: Option<&PublicUrl>) -> Result<Self, BootError> {
        Self::open_as_it_is(config, address, false).await
    }

    /// Opens a database that was restored, also if it lacks what this node acknowledged: whoever calls this ends all
    /// that was issued in it.
    pub async fn open_restored(config: &Config) -> Result<Self, BootError> {
        Self::open_as_it_is(config, None, true).await
    }

    async fn open_as_it_is(config: &Config, address: Option<&PublicUrl>, is_restored: bool) -> Result<Self, BootError> {
        make_folder(&config.server.data)?;
        let id = RealmId::from(FIRST_REALM);
        let ((node, schema_before), database, keyring) = hold(config, &id, is_restored).await?;
        let issuer = match address.or(config.server.public_url.as_ref()) {
            Some(url) => url.as_str().to_owned(),
            None => last_issuer(config, &database, &id).await?,
        };
        let realm = Realm { id, issuer, settings: settings(config) };
        let hasher = Hasher::start(hashing::settings(config)?).map_err(|error| BootError::Other(error.to_string()))?;
        let app = match ward(config, &database).await? {
            None => App::named(realm, (database.engine(), node_name()?), hasher, keyring, Clock::system()),
            Some(ward) => App::warded(realm, ward, hasher, keyring, Clock::system())?,
        };
        // Only a server serves under an address of its own.
        if address.is_some() {
            if let Some(why) = app.served_elsewhere().await? {
                return Err(BootError::Other(why));
            }
            app.note_issuer().await?;
        }
        Box::pin(app.meet()).await?;
        app.prepare().await.map_err(|fault| explain(fault, config))?;
        auditing::open(config, &app).await?;
        Ok(Instance { app, database, schema_before, _node: node })
    }

    /// Commits what waits and releases the data folder.
    pub async fn close(self) {
        self.app.hasher.stop().await;
        self.app.take_leave().await;
        self.let_go();
    }

    /// Closes the database and the folder once the hasher has stopped. Blocks its thread as long as the disk takes.
    fn let_go(self) {
        self.database.close();
    }
}

/// Takes the data folder and the database for this process alone, with the keys that open what is sealed there. A
/// process with another master key was meant for another database, and has changed nothing in this one. Returns beside
/// the folder which schema the database had.
async fn hold(
    config: &Config,
    realm: &RealmId,
    is_restored: bool,
) -> Result<((File, i64), Database, Keyring), BootError> {
    let (data, file) = (&config.server.data, config.database());
    // A restore holds the file and opens the folder meanwhile: a process that waits for the file must not hold the
    // folder. Otherwise the folder comes first: a process that is refused has made nothing and called no server.
    let first = match file.as_ref().is_some_and(|file| file.exists()) {
        true => None,
        false => Some(folder::take(data).await?),
    };
    // For a file, it is known before the file is made whether anything was sealed; a server has to be asked.
    let of_file = match &file {
        Some(file) => {
            folder::nothing_left_of(file, data)?;
            // No key is made for a file that cannot be.
            store::sqlite::absolute(file).map_err(|error| BootError::Other(error.to_string()))?;
            Some(folder::master_key(config, file.exists()).await?)
        }
        None => None,
    };
    let database = Database::open(config).await?;
    let node = match first {
        Some(node) => node,
        None => folder::take_soon(data).await?,
    };
    // An empty server in the place of another database is not filled: it may be the target of a move, or of a restore.
    if of_file.is_none() {
        folder::no_other_before(config, database.found(realm).await?)?;
    }
    let sealed = database.sealed(realm).await?;
    let known = match of_file {
        None if !sealed.is_empty() => Some(folder::master_key(config, true).await?),
        known => known,
    };
    if let Some(master) = &known {
        Keyring::new(master)?.open(sealed).map_err(|fault| explain(fault, config))?;
    }
    if !is_restored {
        lost::refuse(config, &database, realm).await?;
    }
    let schema_before = database.begin().await?;
    let master = match known {
        Some(master) => master,
        None => folder::master_key(config, !database.sealed(realm).await?.is_empty()).await?,
    };
    Ok(((node, schema_before), database, Keyring::new(&master)?))
}

/// Returns the ward over what this node acknowledges, if the database is a server and the journal is on.
async fn ward(config: &Config, database: &Database) -> Result<Option<Ward>, BootError> {
    if config.database().is_some() || config.store.journal == Journal::Off {
        return Ok(None);
    }
    let data = &config.server.data;
    let failed =
        |error: std::io::Error| BootError::Other(format!("cannot open the journal in {}: {error}", data.display()));
    let journal = Folder::open(data, &node_name()?).await.map_err(failed)?;
    Ok(Some(Ward::new(database.engine(), Arc::new(journal))))
}

/// Returns a name for a new node: the machine's, and some letters, since a machine may have several nodes.
fn node_name() -> Result<String, BootError> {
    let machine = rustix::system::uname();
    let letter = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let machine: String = machine.nodename().to_string_lossy().chars().filter(letter).take(40).collect();
    let chance = app::entropy::fresh()?.ordered("node", Time(0));
    Ok(format!("{machine}-{}", &chance[chance.len() - 6..]))
}

/// Returns the URL under which the server was last reached; if none ever ran, the URL that it would have.
async fn last_issuer(config: &Config, database: &Database, realm: &RealmId) -> Result<String, BootError> {
    let asked = store::tables::ask(&*database.engine(), realm, Issuer).await;
    let known = asked.map_err(|error| BootError::Away(error.0))?;
    let port = config.server.listen.first().map_or(0, |address| address.port());
    Ok(known.unwrap_or_else(|| config.public_url(port).as_str().to_owned()))
}

/// Adds where a wrong master key came from, so that nobody looks for it anywhere else.
fn explain(fault: Fault, config: &Config) -> BootError {
    use crate::config::{Source, variable};
    let why = match fault {
        Fault::Foreign(why) => why,
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
    BootError::Other(format!(
        "{why}; put back the key that belongs to this data ({key}{from}). All nodes of a database need the same key: \
         if another node was first, copy its key there, or name a copy of it (keys.master); a key that this node made \
         for itself is of no use"
    ))
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
        hash_wait: config.hash.max_wait.into(),
        ..Settings::default()
    }
}

/// Runs the server until it is told to stop. With `json`, what it says at the start is one JSON object.
pub async fn run(config: Config, json: bool) -> Result<(), BootError> {
    // Signals are heard from now on, also while the server waits for a database: the first process of a container is
    // not ended by a signal that it does not handle.
    let mut orders = Orders::listen();
    let ready = tokio::select! {
        () = orders.next() => {
            tracing::info!("stopped before it was ready");
            return Ok(());
        }
        ready = Box::pin(Ready::of(&config, json)) => ready?,
    };
    Box::pin(ready.serve(&config, orders)).await
}

/// Everything that answers requests, before the first request.
struct Ready {
    instance: Instance,
    site: Site,
    listeners: Listeners,
    terms: Terms,
    desk: Option<Desk>,
    workers: Workers,
    control: Control,
    exporter: Option<Exporter>,
    streams: Vec<Stream>,
    /// The file with the set-up link, if the link was left in one.
    announced: Option<LinkFile>,
}

impl Ready {
    async fn of(config: &Config, json: bool) -> Result<Ready, BootError> {
        // Reports all problems at once, as `config check` does, and before anything is made.
        let problems = trial::problems(config);
        if !problems.is_empty() {
            return Err(BootError::Wrong(problems));
        }
        let files = raise_nofile().unwrap_or_else(|error| {
            tracing::warn!(%error, "the limit of open files could not be raised");
            u64::MAX
        });
        let bound = Bound::of(config)?;
        let addresses = bound.addresses();
        let url = config.public_url(addresses.first().map_or(0, |address| address.port()));
        let terms = Terms::of(config, files)?;
        let streams = auditing::streams(config)?;
        let desk = Desk::of(config)?;
        let instance = open_soon(config, &url).await?;
        hashing::tell_of_room(config);
        trial::bared(config).iter().for_each(|why| tracing::warn!("{why}"));
        take_over(config, &instance.app).await;
        let try_it = offers_try_it(config, &url, &instance.app).await?;
        let (tracer, exporter) = Exporter::of(config, &instance.app.node, &instance.app.clock)?;
        let site = Site::new(config, (url, try_it), &instance, &terms, tracer);
        let control = control::listen(&config.server.data, &instance)?.of(site.clone());
        let workers = Workers::bind(config, &instance.app, Arc::clone(&site.strangers))?;
        // Until now the port is closed: a start may wait long for its database, and a connection would wait with it.
        let listeners = bound.listen()?;
        // Only now, when nothing that the server needs can turn out to be in use.
        let announced = announce(config, &site.url, &instance, json).await?;
        tracing::info!(?addresses, "ready");
        systemd::tell(systemd::READY);
        Ok(Ready { instance, site, listeners, terms, desk, workers, control, exporter, streams, announced })
    }

    async fn serve(self, config: &Config, mut orders: Orders) -> Result<(), BootError> {
        let Ready { instance, site, listeners, terms, desk, workers, control, mut exporter, streams, announced } = self;
        let upkeep = Upkeep { keys: config.keys.rotate_after };
        let (watched, starts) = (site.clone(), Starts::of(&config.server.data));
        let mut learnt = Learnt::of(&instance.app.hasher, config);
        let (end, told) = oneshot::channel::<()>();
        let mut commands = Box::pin(control.run(async move { drop(told.await) }));
        let (tell, told) = mpsc::unbounded_channel();
        let ended = |what: &str| Err(BootError::Other(what.to_owned()));
        let jobs = "the background jobs ended";
        let stopped = tokio::select! {
            stopped = serve(listeners, terms, http::router(site), told) => stopped,
            () = orders.pass_on(&watched.leaving, tell) => return ended(jobs),
            () = workers.run() => return ended("the listener for hash workers ended"),
            () = metrics::serve(desk, watched.clone()) => return ended("the metrics listener ended"),
            () = watched.strain.watch(&instance.app.hasher, &instance.database, &watched.admission) => return ended(jobs),
            () = export(&mut exporter) => return ended(jobs),
            () = &mut commands => return ended("the control socket failed"),
            () = hashing::learn(&mut learnt) => return ended(jobs),
            () = instance.app.watch() => return ended(jobs),
            () = journal::expire(&config.server.data, &instance.app) => return ended(jobs),
            () = instance.app.keep_books() => return ended(jobs),
            () = auditing::deliver(&instance.app, streams) => return ended(jobs),
            () = look_after(announced.as_ref(), &instance.app) => return ended(jobs),
            () = keep_up(&watched, upkeep) => return ended(jobs),
            () = starts.tell(&instance.app) => return ended(jobs),
        };
        if stopped.cut > 0 {
            tracing::warn!(connections = stopped.cut, "connections were cut");
        }
        let app = instance.app.clone();
        let last = async move {
            // Commands that were carried out are answered; their files are on the same disk as the database.
            drop(end);
            commands.await;
            if let Some(file) = announced {
                file.remove().await;
            }
            learnt.leave().await;
            if let Some(exporter) = &mut exporter {
                exporter.finish().await;
            }
            starts.leave(&app).await;
            app.retire().await;
            app.hasher.stop().await;
        };
        if !wind_down(last, || instance.let_go(), orders.next()).await {
            tracing::warn!("another stop signal: the shutdown work is left unfinished");
            return Err(BootError::Other("stopped before the shutdown work was finished".to_owned()));
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Opens the instance, retrying while a command holds it for a moment. Does not wait for a running server.
async fn open_soon(config: &Config, url: &PublicUrl) -> Result<Instance, BootError> {
    for _ in 0..OPENED_WITHIN {
        match Instance::open(config, Some(url)).await {
            Err(BootError::InUse) if !control::is_heard(&config.server.data) => tokio::time::sleep(OPENED_EVERY).await,
            opened => return opened,
        }
    }
    Instance::open(config, Some(url)).await
}

/// Takes over the jobs of other servers: a file has one server, and should not wait for the lease of a killed one.
async fn take_over(config: &Config, app: &App) {
    if config.database().is_none() {
        return;
    }
    if let Err(fault) = app.take_over().await {
        tracing::warn!(%fault, "the jobs of a server that was killed wait until its leases expire");
    }
}

/// Decides whether "Try it" is offered. Makes its client if so, and removes the client otherwise.
async fn offers_try_it(config: &Config, url: &PublicUrl, app: &App) -> Result<bool, BootError> {
    let offered = http::try_it::is_offered(config, url);
    if offered {
        http::try_it::ensure_client(app, url).await?;
    } else {
        http::try_it::remove_client(app).await?;
    }
    Ok(offered)
}

/// Keeps the set-up link usable, if it was left in a file.
async fn look_after(file: Option<&LinkFile>, app: &App) {
    if let Some(file) = file {
        file.look_after(app).await;
    }
    std::future::pending().await
}

/// Does the upkeep, which yields to requests.
async fn keep_up(site: &Site, upkeep: Upkeep) {
    site.app.keep_up(upkeep, &|| site.is_busy()).await;
}

/// Sends traces, if there is a collector.
async fn export(exporter: &mut Option<Exporter>) {
    match exporter {
        Some(exporter) => exporter.run().await,
        None => std::future::pending().await,
    }
}

/// Tells where the server is and, while it has no owner, how to make the first account: as one object with `json`, as
/// lines of the log if the log is JSON. Returns the file that holds the link, if the link was left in one.
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
    // A database in a file has no other node whose link somebody may hold.
    let alone = config.database().is_some();
    match app.offer_setup(alone).await?.map(|link| setup_link::address(app, link.reveal())) {
        None => file.remove().await,
        Some(link) if std::io::stdout().is_terminal() && !json => {
            file.remove().await;
            lines.extend(by_hand(url, &link));
        }
        Some(link) => {
            file.write(&link).await.map_err(BootError::Other)?;
            let at = file.path().display();
            lines.push(format!("  no owner yet: the link that makes the account is in {at}"));
            left = Some(file);
        }
    }
    if json {
        let link = left.as_ref().map(LinkFile::path);
        let told = json!({ "issuer": url.as_str(), "data": folder, "durability": worth.first(), "setup_link": link });
        lines = vec![told.to_string()];
    }
    if config.log.format == LogFormat::Json && !json {
        logs::tell(&lines);
        return Ok(left);
    }
    let mut out = std::io::stdout().lock();
    lines.iter().for_each(|line| drop(writeln!(out, "{line}")));
    Ok(left)
}

/// Returns what a user at a terminal has to do first.
fn by_hand(url: &PublicUrl, link: &str) -> Vec<String> {
    let mut lines = vec!["  no owner yet: make the account within 30 minutes at".to_owned(), format!("  {link}")];
    let over_ssh = crate::config::environment().iter().any(|(name, _)| name == "SSH_CONNECTION");
    if over_ssh && url.is_localhost() {
        let port = url.port();
        lines.push(format!("  from your own machine first: ssh -L {port}:localhost:{port} THIS-HOST"));
    }
    lines
}

/// Says at once, to whoever set the database up, what an acknowledged write is worth, in the words of `/readyz`.
async fn worth(instance: &Instance) -> Vec<&'static str> {
    let database = &instance.database;
    let (worth, contradiction) = match instance.app.engine.health().await {
        Ok(health) => (database.promise(health.durability), database.contradiction(health.durability)),
        Err(_) => ("the durability of acknowledged writes is not known: the database does not answer", None),
    };
    tracing::info!(worth, "durability of acknowledged writes");
    [worth].into_iter().chain(contradiction).collect()
}
