//! What is kept in memory: clients, keys and checked tokens, each valid only at the epoch at which it was read.

use crate::keyring::Keys;
use crate::{App, Fault};
use quick_cache::sync::Cache as Bounded;
use rules::id::ClientId;
use rules::oauth::client::Client;
use rules::oauth::token::AccessClaims;
use rules::secret::Handle;
use std::sync::{Arc, RwLock};
use store::tables::realms::Epoch;
use store::tables::{Question, clients, keys};

/// Clients kept at the most; their key sets bound what each can weigh.
const CLIENTS: usize = 2_000;
/// Checked tokens kept at the most.
const TOKENS: usize = 20_000;

pub(crate) struct Cache {
    clients: Bounded<ClientId, (i64, Arc<Client>)>,
    tokens: Bounded<Handle, (i64, Arc<AccessClaims>)>,
    keys: RwLock<Option<(i64, Arc<Keys>)>>,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Cache { clients: Bounded::new(CLIENTS), tokens: Bounded::new(TOKENS), keys: RwLock::new(None) }
    }
}

/// Facts that were read together with the realm's epoch.
pub(crate) struct At<T> {
    /// The configuration epoch.
    pub epoch: i64,
    /// What was asked for.
    pub facts: T,
}

impl App {
    /// Asks the store for facts and, in the same round trip, for the epoch at which cached configuration is valid.
    pub(crate) async fn ask_at<A, B>(&self, a: A, b: B) -> Result<At<(A::Fact, B::Fact)>, Fault>
    where
        A: Question + Sync,
        B: Question + Sync,
    {
        let (epoch, a, b) = self.ask((Epoch, a, b)).await?;
        Ok(At { epoch: self.epoch_of(epoch)?, facts: (a, b) })
    }

    /// The realm's epoch now.
    pub(crate) async fn epoch(&self) -> Result<i64, Fault> {
        self.epoch_of(self.ask(Epoch).await?)
    }

    pub(crate) fn epoch_of(&self, epoch: Option<i64>) -> Result<i64, Fault> {
        epoch.ok_or_else(|| Fault::Broken(format!("realm {} is not in the database", self.realm.id)))
    }

    /// A client as it stands at `epoch`.
    pub(crate) async fn client(&self, id: &ClientId, epoch: i64) -> Result<Option<Arc<Client>>, Fault> {
        if let Some((at, client)) = self.cache.clients.get(id)
            && at == epoch
        {
            return Ok(Some(client));
        }
        let (now, found) = self.ask((Epoch, clients::ById(id))).await?;
        let found = found.map(Arc::new);
        if let Some(client) = &found {
            self.cache.clients.insert(id.clone(), (self.epoch_of(now)?, Arc::clone(client)));
        }
        Ok(found)
    }

    /// The signing keys as they stand at `epoch`.
    pub(crate) async fn keys(&self, epoch: i64) -> Result<Arc<Keys>, Fault> {
        let held = self.cache.keys.read().ok().and_then(|held| held.clone());
        if let Some((at, keys)) = held
            && at == epoch
        {
            return Ok(keys);
        }
        let (now, rows) = self.ask((Epoch, keys::All)).await?;
        let keys = Arc::new(self.keyring.open(rows)?);
        if let Ok(mut held) = self.cache.keys.write() {
            *held = Some((self.epoch_of(now)?, Arc::clone(&keys)));
        }
        Ok(keys)
    }

    /// The claims of a token whose signature was checked at `epoch`.
    pub(crate) fn checked(&self, token: &Handle, epoch: i64) -> Option<Arc<AccessClaims>> {
        self.cache.tokens.get(token).filter(|(at, _)| *at == epoch).map(|(_, claims)| claims)
    }

    /// Remembers that a token's signature was right at `epoch`.
    pub(crate) fn remember(&self, token: Handle, epoch: i64, claims: &Arc<AccessClaims>) {
        self.cache.tokens.insert(token, (epoch, Arc::clone(claims)));
    }
}
