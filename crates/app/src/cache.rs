//! What is kept in memory: clients, keys and checked tokens, each valid only at the epoch at which it was read.
//!
//! Each is also valid only while the same database server answers: a server that takes its place may have lost some
//! commits, and reach the same epoch number again with other facts.

use crate::keyring::Keys;
use crate::tally::Cached;
use crate::{App, Fault, asked};
use quick_cache::sync::Cache as Bounded;
use rules::id::ClientId;
use rules::oauth::client::Client;
use rules::oauth::first_party::is_admitted;
use rules::oauth::redirect::{as_sent, origin};
use rules::oauth::token::AccessClaims;
use rules::secret::Handle;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use store::tables::realms::Epoch;
use store::tables::{Questions, clients, keys};

/// Clients kept at most; the limit on their key sets bounds the size of each.
const CLIENTS: usize = 2_000;
/// Checked tokens kept at most.
const TOKENS: usize = 20_000;

/// Where the pages of applications are, disabled ones included: what the endpoints say of that is for their pages.
#[derive(Debug, Default)]
struct Origins(HashMap<String, Tenants>);

/// Which applications live at an origin, besides disabled ones.
#[derive(Clone, Copy, Debug, Default)]
struct Tenants {
    /// An application that may be used.
    enabled: bool,
    /// A first-party application that may be used.
    first_party: bool,
}

impl Tenants {
    fn add(&mut self, client: &Client) {
        self.enabled |= client.is_enabled();
        self.first_party |= is_admitted(client);
    }
}

impl Origins {
    fn add(&mut self, client: &Client) {
        for origin in client.redirect_uris.iter().map(|uri| as_sent(origin(uri))) {
            self.0.entry(origin.to_owned()).or_default().add(client);
        }
    }

    /// Whether an application lives at `asked`.
    fn have(&self, asked: &str) -> bool {
        self.0.contains_key(asked)
    }

    /// Whether an application that may be used lives there.
    fn have_enabled(&self, asked: &str) -> bool {
        self.0.get(asked).is_some_and(|tenants| tenants.enabled)
    }

    /// Whether a first-party application that may be used lives there.
    fn have_first_party(&self, asked: &str) -> bool {
        self.0.get(asked).is_some_and(|tenants| tenants.first_party)
    }
}

/// Which database server, by [`store::engine::Engine::generation`], and at which epoch of its realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    generation: u64,
    epoch: i64,
}

pub(crate) struct Cache {
    clients: Bounded<ClientId, (At, Arc<Client>)>,
    tokens: Bounded<Handle, (At, Arc<AccessClaims>)>,
    keys: RwLock<Option<(At, Arc<Keys>)>>,
    origins: RwLock<Option<(At, Arc<Origins>)>>,
    /// Held while the origins are gathered: one task at a time reads all applications.
    gathering: tokio::sync::Mutex<()>,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Cache {
            clients: Bounded::new(CLIENTS),
            tokens: Bounded::new(TOKENS),
            keys: RwLock::new(None),
            origins: RwLock::new(None),
            gathering: tokio::sync::Mutex::new(()),
        }
    }
}

impl App {
    /// What is read now counts for this server and `epoch`: the server that answered when this request arrived.
    pub(crate) fn at(&self, epoch: i64) -> At {
        At { generation: asked::generation().unwrap_or_else(|| self.engine.generation()), epoch }
    }

    /// Whether what was kept at `at` counts for this request, which has read `epoch`: the same server answered when the
    /// request arrived, and still answers.
    pub fn counts(&self, at: At, epoch: i64) -> bool {
        at == self.at(epoch) && at.generation == self.engine.generation()
    }

    /// Reads the realm's epoch.
    pub async fn epoch(&self) -> Result<i64, Fault> {
        self.epoch_of(self.ask(Epoch).await?)
    }

    /// Returns the epoch as it was read, and what else the row of the realm gave.
    pub(crate) fn epoch_of<T>(&self, read: Option<T>) -> Result<T, Fault> {
        read.ok_or_else(|| Fault::Broken(format!("realm {} is not in the database", self.realm.id)))
    }

    /// Reads the realm's epoch, then facts: if they changed since, so did the epoch, and what is cached or committed at
    /// this one is void. In a single fetch the facts could be the older ones: its reads are answered in any order, on
    /// several connections.
    pub(crate) async fn after_epoch<Q: Questions + Sync>(&self, questions: Q) -> Result<(i64, Q::Facts), Fault> {
        let epoch = self.epoch().await?;
        Ok((epoch, self.ask(questions).await?))
    }

    /// Returns a client as it stands at `epoch`, which was read before: at worst, a later version is kept under that
    /// epoch, and read again at the next.
    pub(crate) async fn client(&self, id: &ClientId, epoch: i64) -> Result<Option<Arc<Client>>, Fault> {
        asked::judged_at(epoch);
        if let Some((at, client)) = self.cache.clients.get(id)
            && self.counts(at, epoch)
        {
            self.tally.hits.one(Cached::Clients);
            return Ok(Some(client));
        }
        self.tally.misses.one(Cached::Clients);
        let found = self.ask(clients::ById(id)).await?.map(Arc::new);
        if let Some(client) = &found {
            // Once for each configuration: requests in the client's name, however many, do not fill the log.
            if let Some(values) = client.unknown_values() {
                let why = "it has settings that only a newer version knows: upgrade this node";
                tracing::warn!(client = id.as_str(), values, why, "an application is refused here");
            }
            self.cache.clients.insert(id.clone(), (self.at(epoch), Arc::clone(client)));
        }
        Ok(found)
    }

    /// Returns the name that a client had when it was last read, without asking the database.
    pub fn held_name(&self, id: &ClientId) -> Option<String> {
        self.cache.clients.get(id).map(|(_, client)| client.name.clone())
    }

    /// Returns the signing keys as they stand at `epoch`, which was read before.
    pub(crate) async fn keys(&self, epoch: i64) -> Result<Arc<Keys>, Fault> {
        asked::judged_at(epoch);
        let held = self.cache.keys.read().ok().and_then(|held| held.clone());
        if let Some((at, keys)) = held
            && self.counts(at, epoch)
        {
            self.tally.hits.one(Cached::Keys);
            return Ok(keys);
        }
        self.tally.misses.one(Cached::Keys);
        let keys = Arc::new(self.keyring.open(self.ask(keys::All).await?)?);
        if let Ok(mut held) = self.cache.keys.write() {
            *held = Some((self.at(epoch), Arc::clone(&keys)));
        }
        Ok(keys)
    }

    /// Has the keys read, if they are of another epoch, beside something that a request has to wait for anyway. If they
    /// cannot be read, the caller that signs is told.
    pub(crate) async fn have_keys(&self, epoch: i64) {
        if self.cache.keys.read().is_ok_and(|held| held.as_ref().is_none_or(|(at, _)| !self.counts(*at, epoch))) {
            drop(self.keys(epoch).await);
        }
    }

    /// Returns the signing keys as they were last read.
    pub(crate) fn held_keys(&self) -> Option<Arc<Keys>> {
        self.cache.keys.read().ok()?.as_ref().map(|(_, keys)| Arc::clone(keys))
    }

    /// Returns the claims of a token whose signature was valid, and at which epoch it was.
    pub(crate) fn checked(&self, token: &Handle) -> Option<(At, Arc<AccessClaims>)> {
        self.cache.tokens.get(token)
    }

    /// Remembers that a token's signature was valid at `epoch`.
    pub(crate) fn remember(&self, token: Handle, epoch: i64, claims: &Arc<AccessClaims>) {
        self.cache.tokens.insert(token, (self.at(epoch), Arc::clone(claims)));
    }

    /// Whether an application of this realm, disabled or not, has a redirect URI whose origin is `asked`.
    pub async fn is_registered_origin(&self, asked: &str) -> Result<bool, Fault> {
        Ok(self.origins().await?.have(asked))
    }

    /// Whether some first-party application of this realm that may be used answers at `asked`.
    pub async fn is_first_party_origin(&self, asked: &str) -> Result<bool, Fault> {
        Ok(self.origins().await?.have_first_party(asked))
    }

    /// Like [`App::is_registered_origin`], as far as it is known without asking the database.
    pub fn was_registered_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have(asked))
    }

    /// Whether an application that may be used answers at `asked`, as far as that is known.
    pub fn was_enabled_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have_enabled(asked))
    }

    /// Like [`App::is_first_party_origin`], as far as it is known without asking the database.
    pub fn was_first_party_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have_first_party(asked))
    }

    /// Gathers the origins at the start, so that nobody can keep their first requests out in the name of another page.
    pub(crate) async fn remember_origins(&self) -> Result<(), Fault> {
        match self.held_origins() {
            Some(_) => Ok(()),
            None => self.origins().await.map(drop),
        }
    }

    fn held_origins(&self) -> Option<(At, Arc<Origins>)> {
        self.cache.origins.read().ok()?.clone()
    }

    async fn origins(&self) -> Result<Arc<Origins>, Fault> {
        let epoch = match asked::epoch() {
            Some(epoch) => epoch,
            None => self.epoch().await?,
        };
        if let Some((at, origins)) = self.held_origins()
            && self.counts(at, epoch)
        {
            self.tally.hits.one(Cached::Origins);
            return Ok(origins);
        }
        self.tally.misses.one(Cached::Origins);
        // A task that waited finds what was gathered meanwhile, which is at least as new as what it had found missing.
        let before = self.held_origins().map(|(at, _)| at);
        let _turn = self.cache.gathering.lock().await;
        if let Some((at, origins)) = self.held_origins()
            && Some(at) != before
            && at >= self.at(epoch)
        {
            return Ok(origins);
        }
        let epoch = self.epoch().await?;
        let mut origins = Origins::default();
        let mut after = String::new();
        loop {
            let page = self.clients(&after).await?;
            let Some(last) = page.last() else { break };
            after = last.id.0.clone();
            page.iter().for_each(|client| origins.add(client));
        }
        let origins = Arc::new(origins);
        if let Ok(mut held) = self.cache.origins.write() {
            *held = Some((self.at(epoch), Arc::clone(&origins)));
        }
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Time;

    #[test]
    fn an_origin_is_known_as_browsers_write_it() {
        for (registered, sent) in [
            ("https://one.example:443/cb", "https://one.example"),
            ("http://localhost:80/cb", "http://localhost"),
            ("https://one.example:80/cb", "https://one.example:80"),
            ("http://[::1]:443/cb", "http://[::1]:443"),
            ("http://[::1]:80/cb", "http://[::1]"),
            ("https://one.example/cb:443", "https://one.example"),
        ] {
            assert_eq!(as_sent(origin(registered)), sent);
        }
    }

    fn origins_of(client: Client, uri: &str) -> Origins {
        let mut origins = Origins::default();
        origins.add(&Client { redirect_uris: vec![uri.to_owned()], ..client });
        origins
    }

    #[test]
    fn another_port_is_another_origin_of_native_applications_too() {
        // Red if the port of a loopback address varied as that of its redirect URI does (RFC 8252 §7.3): any page shown
        // from this machine could read what is answered to the application.
        let native = Client { native: true, first_party: true, ..Client::new("app", Vec::new()) };
        let origins = origins_of(native, "http://localhost:21010/cb");
        assert!(origins.have("http://localhost:21010") && origins.have_first_party("http://localhost:21010"));
        for other in ["http://localhost:21011", "http://localhost", "http://127.0.0.1:21010", "https://localhost:21010"]
        {
            assert!(
                !origins.have(other) && !origins.have_enabled(other) && !origins.have_first_party(other),
                "{other}"
            );
        }
    }

    #[test]
    fn a_disabled_application_reads_why_it_is_refused_and_is_none_of_the_house() {
        // Red where disabled applications are left out, and with `first_party` in place of `is_admitted`.
        let client = Client { first_party: true, disabled_at: Some(Time(1)), ..Client::new("app", Vec::new()) };
        let mut origins = origins_of(client.clone(), "https://app.example/cb");
        assert!(origins.have("https://app.example") && !origins.have_first_party("https://app.example"));
        assert!(!origins.have_enabled("https://app.example"), "what its page does wrong is no other's");
        let enabled = Client { disabled_at: None, redirect_uris: vec!["https://app.example/cb".to_owned()], ..client };
        origins.add(&enabled);
        assert!(origins.have_first_party("https://app.example"), "another one that lives there");
        assert!(origins.have_enabled("https://app.example"));
    }
}
