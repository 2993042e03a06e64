//! Use cases: the order in which the server fetches, hashes, decides, commits, signs and sends.
//!
//! An [`App`] holds the use cases of one realm. It has no state that another node could not have as well: caches are
//! valid only at the realm's configuration epoch, which is read at every use of a cache.

pub mod account;
pub mod admin;
pub mod api;
pub mod asked;
pub mod audit;
pub mod authorize;
pub mod browser;
pub mod cache;
pub mod clock;
pub mod complaint;
pub mod device;
mod endings;
pub mod entropy;
pub mod fault;
pub mod flow;
pub mod guest;
pub mod introspect;
pub mod jobs;
pub mod keyring;
mod leases;
pub mod logout;
mod passwords;
pub mod pledge;
pub mod posted;
pub mod rates;
pub mod reach;
pub mod revoke;
mod secrets;
mod settle;
pub mod setup;
pub mod sign_in;
pub mod sign_up;
mod stakes;
pub mod stopwatch;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod token;
pub mod turnstile;
pub mod userinfo;
mod uses;
pub mod ward;

use cache::Cache;
use clock::Clock;
use hasher::Hasher;
use keyring::Keyring;
use passwords::Evening;
use rates::{Rate, Rates};
use rules::id::ClientId;
use rules::realm::Realm;
use stakes::Stakes;
use std::sync::Arc;
use store::engine::Engine;
use tally::Tally;
use turnstile::Turnstile;
use ward::Ward;

pub use fault::Fault;

/// The use cases of one realm.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts that an [`App`] works with.
pub struct Parts {
    /// The issuer and its settings.
    pub realm: Realm,
    /// Stores the facts.
    pub engine: Arc<dyn Engine>,
    /// Hashes passwords.
    pub hasher: Hasher,
    /// Keeps the keys.
    pub keyring: Keyring,
    /// Tells the time.
    pub clock: Clock,
    /// The name of this node among those that share the database: another one at each start.
    pub node: String,
    /// Counts what this node does.
    pub tally: Tally,
    /// Present over a database server that may lose commits that it acknowledged.
    ward: Option<Arc<Ward>>,
    /// What this node saw of other nodes' clocks.
    clocks: ward::Clocks,
    /// Whether other nodes keep journals.
    journals: ward::Journals,
    /// The other public URL under which this database was served a short time ago.
    elsewhere: ward::Elsewhere,
    /// How the audit log is kept.
    pub(crate) books: audit::Books,
    rejections: audit::Rejections,
    strangers: audit::Strangers,
    uses: uses::Uses,
    cache: Cache,
    turnstile: Turnstile,
    stakes: Stakes,
    /// Applications are changed one at a time: each change raises the epoch, so that of many at once one would be
    /// committed and all others decided again.
    registering: tokio::sync::Mutex<()>,
    /// How often each client asks, where that is limited.
    clients: Option<Rates<ClientId>>,
    evening: Evening,
    /// Hash workers that connected a moment ago and are not asked anything yet.
    quarantined: admin::workers::Quarantined,
    /// What this node found when it last looked at stored hashes.
    hashes: passwords::Looked,
    /// How far this node looked for codes that nobody redeemed.
    unused: jobs::Unused,
    /// What the database keeps of the secrets that this node has.
    proofs: secrets::Proofs,
}

impl App {
    /// Creates a realm's use cases over an engine whose schema is up to date.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when there is no randomness for the name of the node.
    pub fn new(
        realm: Realm,
        engine: Arc<dyn Engine>,
        hasher: Hasher,
        keyring: Keyring,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let node = entropy::fresh()?.name("node");
        Ok(App::named(realm, (engine, node), hasher, keyring, clock))
    }

    /// Like [`App::new`], with the name by which people know this node among others.
    pub fn named(
        realm: Realm,
        (engine, node): (Arc<dyn Engine>, String),
        hasher: Hasher,
        keyring: Keyring,
        clock: Clock,
    ) -> Self {
        App::made(realm, (engine, None, node), hasher, keyring, clock)
    }

    /// Like [`App::new`], over a server that may lose acknowledged commits. Nothing can be asked before [`App::meet`].
    ///
    /// # Errors
    /// As [`App::new`].
    pub fn warded(realm: Realm, ward: Ward, hasher: Hasher, keyring: Keyring, clock: Clock) -> Result<Self, Fault> {
        let (gate, node) = (ward.gate(), entropy::fresh()?.name("node"));
        Ok(App::made(realm, (gate, Some(Arc::new(ward)), node), hasher, keyring, clock))
    }

    fn made(
        realm: Realm,
        (engine, ward, node): (Arc<dyn Engine>, Option<Arc<Ward>>, String),
        hasher: Hasher,
        keyring: Keyring,
        clock: Clock,
    ) -> Self {
        let per_second = realm.settings.client_rate;
        let rate = Rate { per_second, burst: per_second.saturating_mul(2) };
        App(Arc::new(Parts {
            node,
            realm,
            engine,
            hasher,
            keyring,
            clock,
            ward,
            books: audit::Books::default(),
            rejections: audit::Rejections::default(),
            strangers: audit::Strangers::default(),
            hashes: passwords::Looked::default(),
            uses: uses::Uses::default(),
            cache: Cache::new(),
            turnstile: Turnstile::new(),
            stakes: Stakes::default(),
            registering: tokio::sync::Mutex::default(),
            tally: Tally::default(),
            clients: Rates::new(rate),
            evening: Evening::default(),
            clocks: ward::Clocks::default(),
            journals: ward::Journals::default(),
            elsewhere: ward::Elsewhere::default(),
            quarantined: admin::workers::Quarantined::default(),
            unused: jobs::Unused::default(),
            proofs: secrets::Proofs::default(),
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
