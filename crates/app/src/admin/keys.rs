//! Managing signing keys.

use super::Refused;
use crate::keyring::ALGS;
use crate::{App, Fault};
use rules::Span;
use rules::id::Kid;
use rules::keys::{self, Key, Stage};
use store::tables::realms::Epoch;

impl App {
    /// Every key and where it stands.
    pub async fn signing_keys(&self) -> Result<Vec<(Key, Stage)>, Fault> {
        let rows = self.ask(store::tables::keys::All).await?;
        let now = self.clock.now();
        Ok(rows.iter().map(|key| (key.clone(), keys::stage(&rows, key, now))).collect())
    }

    /// Brings in a successor for each algorithm.
    pub async fn rotate_keys(&self) -> Result<Vec<Kid>, Fault> {
        let mut made = Vec::with_capacity(ALGS.len());
        for alg in ALGS {
            made.push(self.rotate(alg).await?);
        }
        Ok(made)
    }

    /// Brings in a successor for each algorithm whose newest key is older than `age`.
    pub async fn rotate_aged_keys(&self, age: Span) -> Result<Vec<Kid>, Fault> {
        let rows = self.ask(store::tables::keys::All).await?;
        let now = self.clock.now();
        let mut made = Vec::new();
        for alg in ALGS {
            let newest = rows.iter().filter(|key| key.alg == alg && key.is_published(now)).map(|key| key.created).max();
            if newest.is_none_or(|newest| now.since(newest) >= age) {
                made.push(self.rotate(alg).await?);
            }
        }
        Ok(made)
    }

    /// Throws a key out: nothing that it signed is believed any more.
    pub async fn revoke_key(&self, kid: &Kid) -> Result<Result<(), Refused>, Fault> {
        let reply = self
            .settle(|now, _| async move {
                let (epoch, rows) = self.ask((Epoch, store::tables::keys::All)).await?;
                Ok(keys::revoke(&rows, kid, self.longest_token(), now).at_epoch(self.epoch_of(epoch)?))
            })
            .await?;
        Ok(reply.map_err(Refused::new))
    }
}
