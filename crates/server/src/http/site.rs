//! What all doors share: the use cases, the public URL, and the limits of a request.

use super::cookies;
use super::health::Readiness;
use crate::admission::Admission;
use crate::boot::Instance;
use crate::config::{Config, PublicUrl};
use crate::database::Database;
use crate::metrics::Requests;
use crate::net::{Bodies, Caps, Proxies, Terms, TlsReload};
use crate::strain::Strain;
use crate::trace::Tracer;
use crate::verifier::Strangers;
use app::App;
use app::cache::At;
use rules::oauth::redirect::escape;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// A request that waits this long for the database waits for other requests, not only for the disk.
const FELT: Duration = Duration::from_millis(10);

/// The state that all doors share.
#[derive(Clone)]
pub struct Site(Arc<Inside>);

/// The inside of a [`Site`].
pub struct Inside {
    /// The realm's use cases.
    pub app: App,
    /// The database, for its health.
    pub database: Database,
    /// The issuer.
    pub url: PublicUrl,
    /// The end of cookie names.
    pub cookie_ending: String,
    /// Values of `Host` that are served.
    pub hosts: Vec<String>,
    /// The product name on every page.
    pub brand: String,
    /// Whether "Try it" is offered.
    pub try_it: bool,
    /// The proxies whose forwarded headers are believed.
    pub proxies: Proxies,
    /// Decides which requests may come in.
    pub admission: Admission,
    /// The open connections.
    pub caps: Arc<Caps>,
    /// Whether hash workers may dial in here (workers.listen).
    pub hears_workers: bool,
    /// Machines that connected there and are not hash workers.
    pub strangers: Arc<Strangers>,
    /// Our certificate, unless a proxy has it.
    pub tls: Option<Arc<TlsReload>>,
    /// How bodies are read.
    pub bodies: Bodies,
    /// Requests slower than this are logged; none are if it is zero.
    pub slow: Duration,
    /// Counts the requests.
    pub requests: Requests,
    /// How full the queues are.
    pub strain: Strain,
    /// Collects traces.
    pub tracer: Tracer,
    /// The key set as last sent, with its epoch and how long (milliseconds since 1970) it is sent unchanged.
    pub jwks: RwLock<Option<Jwks>>,
    /// The last answer of `/readyz`.
    pub readiness: Arc<tokio::sync::Mutex<Option<Readiness>>>,
    /// The discovery document.
    pub discovery: String,
    /// A local peer that is no listed proxy sent forwarded headers: probably a proxy that nobody listed.
    pub forgotten_proxy: std::sync::atomic::AtomicBool,
    /// A listed proxy passed on a request for somebody whom it did not name.
    pub silent_proxy: std::sync::atomic::AtomicBool,
    /// The server was told to stop, and answers only clients that do not know it yet.
    pub leaving: std::sync::atomic::AtomicBool,
}

/// A key set, ready to be sent.
#[derive(Clone)]
pub struct Jwks {
    /// What it counts for.
    pub at: At,
    /// Until when no key can start or end by the clock alone, in milliseconds since 1970.
    pub until: i64,
    /// The JSON.
    pub body: bytes::Bytes,
}

impl Site {
    /// Makes the site of one realm.
    pub fn new(
        config: &Config,
        (url, try_it): (PublicUrl, bool),
        instance: &Instance,
        terms: &Terms,
        tracer: Tracer,
    ) -> Self {
        let app = instance.app.clone();
        let discovery = rules::oauth::discovery::document(&app.realm).to_string();
        Site(Arc::new(Inside {
            cookie_ending: cookies::ending(&app.realm),
            app,
            database: instance.database.clone(),
            hosts: url.hosts(),
            brand: config.brand.name.clone(),
            try_it,
            proxies: Proxies::of(config),
            admission: Admission::of(config),
            caps: Arc::clone(&terms.caps),
            hears_workers: !config.workers.listen.is_empty(),
            strangers: Arc::default(),
            tls: terms.tls.clone(),
            bodies: Bodies::of(config),
            slow: config.log.slow,
            requests: Requests::new(),
            tracer,
            strain: Strain::new(config.hash.max_wait, config.ready.strained_after),
            jwks: RwLock::new(None),
            discovery,
            forgotten_proxy: false.into(),
            silent_proxy: false.into(),
            leaving: false.into(),
            readiness: Arc::default(),
            url,
        }))
    }

    /// Returns whether requests wait: for a place at the door, for a thread that hashes, or for the database.
    pub fn is_busy(&self) -> bool {
        self.admission.lanes().iter().any(|(_, lane)| lane.waiting > 0)
            || self.app.hasher.state().waiting > 0
            || self.strain.database_wait() >= FELT
    }

    /// Returns whether a request names a host that is served: the public one, or another name of a localhost URL.
    pub fn serves(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Returns the part of a request's path below the issuer's, and `None` for a path that is not below it.
    pub fn below<'path>(&self, path: &'path str) -> Option<&'path str> {
        path.strip_prefix(self.url.path()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns a path of ours with a query.
    pub fn link(&self, path: &str, pairs: &[(String, String)]) -> String {
        let query: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        format!("{}{path}{}{}", self.url.path(), if query.is_empty() { "" } else { "?" }, query.join("&"))
    }

    /// Returns whether `origin` is our own, under any name that is served.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        let scheme = if self.url.is_https() { "https://" } else { "http://" };
        origin.strip_prefix(scheme).is_some_and(|host| self.hosts.iter().any(|known| known == host))
    }
}

impl std::ops::Deref for Site {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}
