//! What is kept in memory: clients, keys and checked tokens, each valid only at the epoch at which it was read.

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
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use store::tables::realms::Epoch;
use store::tables::{Questions, clients, keys};

/// Clients kept at the most; their key sets bound what each can weigh.
const CLIENTS: usize = 2_000;
/// Checked tokens kept at the most.
const TOKENS: usize = 20_000;
/// Who has read an epoch is done with it by then.
const UNDER_WAY: Duration = Duration::from_secs(120);
/// Of which epoch what is that may be used by whoever read it, and counts for nobody else.
const NONE: i64 = i64::MIN;

/// Where the pages of applications are. Of those that are disabled, too: what the endpoints say of that is for their pages.
#[derive(Debug, Default)]
struct Origins(HashMap<String, Tenants>);

/// Who lives at an origin, besides applications that are disabled.
#[derive(Clone, Copy, Debug, Default)]
struct Tenants {
    /// An application that may be used.
    enabled: bool,
    /// A first-party one that may be used.
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

    /// Whether an application is at `asked`.
    fn have(&self, asked: &str) -> bool {
        self.0.contains_key(asked)
    }

    /// Whether one that may be used is.
    fn have_enabled(&self, asked: &str) -> bool {
        self.0.get(asked).is_some_and(|tenants| tenants.enabled)
    }

    /// Whether a first-party one that may be used is.
    fn have_first_party(&self, asked: &str) -> bool {
        self.0.get(asked).is_some_and(|tenants| tenants.first_party)
    }
}

pub(crate) struct Cache {
    clients: Bounded<ClientId, (i64, Arc<Client>)>,
    tokens: Bounded<Handle, (i64, Arc<AccessClaims>)>,
    keys: RwLock<Option<(i64, Arc<Keys>)>>,
    origins: RwLock<Option<(i64, Arc<Origins>)>>,
    /// Held by whoever gathers them: all applications are looked at, by one at a time.
    gathering: tokio::sync::Mutex<()>,
    /// Of which server's history it is, and from when on something may be kept of that.
    history: RwLock<(u64, Option<Instant>)>,
}

impl Cache {
    /// Of the server of that generation.
    pub(crate) fn new(generation: u64) -> Self {
        Cache {
            clients: Bounded::new(CLIENTS),
            tokens: Bounded::new(TOKENS),
            keys: RwLock::new(None),
            origins: RwLock::new(None),
            gathering: tokio::sync::Mutex::new(()),
            history: RwLock::new((generation, None)),
        }
    }

    /// Whether what is kept is of the server of this generation, and more may be. Another one may have less than the one before had, and
    /// come to a number of the epoch once more, with other facts: what is kept goes when it answers first, and nothing is kept for as
    /// long as somebody may be under way who has read an epoch of before.
    fn is_of(&self, generation: u64) -> bool {
        let (of, from) = *self.history.read().unwrap_or_else(PoisonError::into_inner);
        if of == generation {
            return from.is_none_or(|from| Instant::now() >= from);
        }
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        if history.0 < generation {
            *history = (generation, Some(Instant::now() + UNDER_WAY));
            self.clients.clear();
            self.tokens.clear();
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = None;
            *self.origins.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        false
    }
}

impl App {
    /// What is kept, where an epoch tells what of that is good: after a failover that lost something, the jump of the fence, and without
    /// a journal nothing.
    fn kept(&self) -> Option<&Cache> {
        let is_good = self.ward.is_some() || self.cache.is_of(self.engine.generation());
        is_good.then_some(&self.cache)
    }

    /// Under which epoch what is read now is kept: one that nobody asks for, where nothing is.
    fn kept_under(&self, epoch: i64) -> i64 {
        if self.kept().is_some() { epoch } else { NONE }
    }

    /// The realm's epoch now.
    pub async fn epoch(&self) -> Result<i64, Fault> {
        self.epoch_of(self.ask(Epoch).await?)
    }

    /// The epoch as it was read, and what else the row of the realm gave.
    pub(crate) fn epoch_of<T>(&self, read: Option<T>) -> Result<T, Fault> {
        read.ok_or_else(|| Fault::Broken(format!("realm {} is not in the database", self.realm.id)))
    }

    /// The realm's epoch, and facts that were read after it: where they changed since, so did the epoch, and what is cached
    /// or committed at this one is void. In one fetch the facts may be the older ones: its reads are answered in any order,
    /// on several connections.
    pub(crate) async fn after_epoch<Q: Questions + Sync>(&self, questions: Q) -> Result<(i64, Q::Facts), Fault> {
        let epoch = self.epoch().await?;
        Ok((epoch, self.ask(questions).await?))
    }

    /// A client as it stands at `epoch`, which was read before: a later one is kept under it at worst, and asked for again
    /// at the next.
    pub(crate) async fn client(&self, id: &ClientId, epoch: i64) -> Result<Option<Arc<Client>>, Fault> {
        asked::judged_at(epoch);
        if let Some(cache) = self.kept()
            && let Some((at, client)) = cache.clients.get(id)
            && at == epoch
        {
            self.tally.hits.one(Cached::Clients);
            return Ok(Some(client));
        }
        self.tally.misses.one(Cached::Clients);
        let found = self.ask(clients::ById(id)).await?.map(Arc::new);
        if let Some(client) = &found {
            // Once for each configuration: whoever asks in its name, however often, does not fill the log.
            if let Some(values) = client.unknown_values() {
                let why = "it is registered with what only a later version of this program knows: upgrade this node";
                tracing::warn!(client = id.as_str(), values, why, "an application is refused here");
            }
            self.cache.clients.insert(id.clone(), (self.kept_under(epoch), Arc::clone(client)));
        }
        Ok(found)
    }

    /// What a client was called when it was last read; nothing is asked of the database.
    pub fn held_name(&self, id: &ClientId) -> Option<String> {
        self.cache.clients.get(id).map(|(_, client)| client.name.clone())
    }

    /// The signing keys as they stand at `epoch`, which was read before.
    pub(crate) async fn keys(&self, epoch: i64) -> Result<Arc<Keys>, Fault> {
        asked::judged_at(epoch);
        let held = self.kept().and_then(|cache| cache.keys.read().ok()?.clone());
        if let Some((at, keys)) = held
            && at == epoch
        {
            self.tally.hits.one(Cached::Keys);
            return Ok(keys);
        }
        self.tally.misses.one(Cached::Keys);
        let keys = Arc::new(self.keyring.open(self.ask(keys::All).await?)?);
        let under = self.kept_under(epoch);
        if let Ok(mut held) = self.cache.keys.write() {
            *held = Some((under, Arc::clone(&keys)));
        }
        Ok(keys)
    }

    /// Has them read, where they are of another epoch, beside what a request has to wait for in any case. Where they cannot be
    /// read, who signs is told.
    pub(crate) async fn have_keys(&self, epoch: i64) {
        let held = self.kept().and_then(|cache| cache.keys.read().ok()?.as_ref().map(|(at, _)| *at));
        if held != Some(epoch) {
            drop(self.keys(epoch).await);
        }
    }

    /// The signing keys as they were last read.
    pub(crate) fn held_keys(&self) -> Option<Arc<Keys>> {
        self.cache.keys.read().ok()?.as_ref().map(|(_, keys)| Arc::clone(keys))
    }

    /// The claims of a token whose signature was right, and at which epoch.
    pub(crate) fn checked(&self, token: &Handle) -> Option<(i64, Arc<AccessClaims>)> {
        self.kept()?.tokens.get(token)
    }

    /// Remembers that a token's signature was right at `epoch`.
    pub(crate) fn remember(&self, token: Handle, epoch: i64, claims: &Arc<AccessClaims>) {
        self.cache.tokens.insert(token, (self.kept_under(epoch), Arc::clone(claims)));
    }

    /// Whether some application of this realm, disabled or not, answers at `asked`: the origin of one of its redirect URIs.
    pub async fn is_registered_origin(&self, asked: &str) -> Result<bool, Fault> {
        Ok(self.origins().await?.have(asked))
    }

    /// Whether some first-party application of this realm that may be used answers at `asked`.
    pub async fn is_first_party_origin(&self, asked: &str) -> Result<bool, Fault> {
        Ok(self.origins().await?.have_first_party(asked))
    }

    /// The same, as far as it is known without asking the database.
    pub fn was_registered_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have(asked))
    }

    /// Whether one that may be used does, as far as that is known.
    pub fn was_enabled_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have_enabled(asked))
    }

    /// The same, as far as it is known without asking the database.
    pub fn was_first_party_origin(&self, asked: &str) -> bool {
        self.held_origins().is_some_and(|(_, origins)| origins.have_first_party(asked))
    }

    /// Has them known from the start, so that nobody can keep their first requests out in the name of another page.
    pub(crate) async fn remember_origins(&self) -> Result<(), Fault> {
        match self.held_origins() {
            Some(_) => Ok(()),
            None => self.origins().await.map(drop),
        }
    }

    fn held_origins(&self) -> Option<(i64, Arc<Origins>)> {
        self.cache.origins.read().ok()?.clone()
    }

    async fn origins(&self) -> Result<Arc<Origins>, Fault> {
        let epoch = match asked::epoch() {
            Some(epoch) => epoch,
            None => self.epoch().await?,
        };
        if self.kept().is_some()
            && let Some((at, origins)) = self.held_origins()
            && at == epoch
        {
            self.tally.hits.one(Cached::Origins);
            return Ok(origins);
        }
        self.tally.misses.one(Cached::Origins);
        // Who waited finds what was gathered meanwhile, which is at least as new as what they had found to be missing.
        let before = self.held_origins().map(|(at, _)| at);
        let _turn = self.cache.gathering.lock().await;
        if let Some((at, origins)) = self.held_origins()
            && Some(at) != before
            && at >= epoch
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
        let under = self.kept_under(epoch);
        if let Ok(mut held) = self.cache.origins.write() {
            *held = Some((under, Arc::clone(&origins)));
        }
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Time;

    #[test]
    fn what_is_kept_goes_with_the_server_that_it_was_read_from() {
        // Red where it stays, or where something is kept at once: the number of its epoch may come once more.
        let cache = Cache::new(3);
        let app = ClientId::from("app");
        let client = || (7, Arc::new(Client::new("app", Vec::new())));
        cache.clients.insert(app.clone(), client());
        assert!(cache.is_of(3) && cache.clients.get(&app).is_some());
        assert!(!cache.is_of(4) && cache.clients.get(&app).is_none());
        assert!(!cache.is_of(4) && !cache.is_of(3), "somebody may be under way");
        cache.history.write().unwrap().1 = Some(Instant::now());
        assert!(cache.is_of(4) && !cache.is_of(3));
        cache.clients.insert(app.clone(), client());
        assert!(cache.is_of(4) && cache.clients.get(&app).is_some(), "whoever is late takes nothing away");
    }

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
        // Red if the port of a loopback address varied as that of its redirect URI does (RFC 8252 §7.3): whatever page is shown from
        // this machine would read what is answered to the application.
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
        // Red where those that are disabled are left out, and with `first_party` in place of `is_admitted`.
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
