//! Managing signing keys.

use super::{Ground, Refused};
use crate::keyring::ALGS;
use crate::{App, Fault, entropy};
use rules::id::Kid;
use rules::jose::Alg;
use rules::keys::{self, Key, Stage};
use rules::realm::is_believable;
use rules::{Fresh, Span, Time};
use store::engine::SENT_AT_ONCE;
use store::tables::keys::{All, destroy};

/// How long after a key's end its private half is kept: longer than clocks of nodes may differ.
const KEPT: Span = Span::days(1);

impl App {
    /// Returns every key and its stage.
    pub async fn signing_keys(&self) -> Result<Vec<(Key, Stage)>, Fault> {
        let rows = self.ask(All).await?;
        let now = self.clock.now();
        Ok(rows.iter().map(|key| (key.clone(), keys::stage(&rows, key, now))).collect())
    }

    /// Brings in a successor for each algorithm; unless it must be a `further` one, only where none waits already.
    pub async fn rotate_keys(&self, further: bool) -> Result<Vec<Kid>, Fault> {
        let waits = |rows: &[Key], alg, now| {
            rows.iter().any(|key| key.alg == alg && keys::stage(rows, key, now) == Stage::Next)
        };
        self.bring_in(|rows, alg, now| further || !waits(rows, alg, now)).await
    }

    /// Brings in a successor for each algorithm whose newest key is older than `age`.
    pub(crate) async fn rotate_aged_keys(&self, age: Span) -> Result<Vec<Kid>, Fault> {
        let steady = self.clock.steady();
        self.bring_in(|rows, alg, now| {
            let ours: Vec<Time> =
                rows.iter().filter(|key| key.alg == alg && key.is_published(now)).map(|key| key.created).collect();
            // A key dated by a clock that was ahead is no measure: it would be the newest for as long as that clock was
            // off. Where all keys are such, the clock that is wrong may be this node's, which is behind.
            match ours.iter().filter(|made| is_believable(**made, now)).max() {
                Some(newest) => now.min(steady).since(*newest) >= age,
                None => ours.is_empty() || self.clock.has_settled(),
            }
        })
        .await
    }

    /// Destroys the private halves of keys that are past: nobody can steal them any more, from a backup that is made
    /// from now on either.
    pub(crate) async fn destroy_past_keys(&self) -> Result<(), Fault> {
        let before = self.clock.steady() - KEPT;
        let rows = self.ask(All).await?;
        let past = rows.iter().filter(|key| key.is_past(before));
        let batch: Vec<_> = past.take(SENT_AT_ONCE).map(|key| destroy(&self.realm.id, key, before)).collect();
        if !batch.is_empty() {
            self.engine.commit(batch).await?;
        }
        Ok(())
    }

    /// Brings in a new key of each algorithm that `wants` one, all in one batch; asks `wants` again where others
    /// changed the keys meanwhile. See [`keys::rotate`].
    pub(crate) async fn bring_in(&self, wants: impl Fn(&[Key], Alg, Time) -> bool + Sync) -> Result<Vec<Kid>, Fault> {
        let (rows, now, fresh) = (self.ask(All).await?, self.clock.now(), entropy::fresh()?);
        let wanted: Vec<Alg> = ALGS.into_iter().filter(|alg| wants(&rows, *alg, now)).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let made = self.make_keys(wanted, now, fresh).await?;
        let (made, wants) = (&made, &wants);
        self.settle(|now, _| async move {
            let (epoch, rows) = self.after_epoch(All).await?;
            let wanted = made.iter().filter(|key| wants(&rows, key.alg, now)).cloned().collect();
            Ok(keys::rotate(&rows, wanted, self.longest_token(), now).at_epoch(epoch))
        })
        .await?
        .map_err(|why| Fault::Broken(why.into()))
    }

    /// Makes new keys on a thread where nobody waits for it: an RSA key takes some tenths of a second.
    async fn make_keys(&self, algs: Vec<Alg>, now: Time, fresh: Fresh) -> Result<Vec<Key>, Fault> {
        let app = self.clone();
        let making = move || algs.into_iter().map(|alg| app.keyring.make(alg, now, &fresh)).collect();
        tokio::task::spawn_blocking(making).await.map_err(|error| Fault::Broken(error.to_string()))?
    }

    /// Revokes a key at once: nothing that it signed is accepted any more. Returns the successor that came in for it,
    /// where one was needed; see [`keys::throw_out`].
    pub async fn throw_out(&self, kid: &Kid) -> Result<Result<Option<Kid>, Refused>, Fault> {
        let (rows, now, fresh) = (self.ask(All).await?, self.clock.now(), entropy::fresh()?);
        let ground = if rows.iter().any(|key| key.kid == *kid) { Ground::Rule } else { Ground::Missing };
        let refused = |why| Refused { why: format!("key {kid}: {why}"), ground };
        let Some(alg) = rows.iter().find(|key| key.kid == *kid && key.revoked_at.is_none()).map(|key| key.alg) else {
            // The rule can say which of the two it is without a new key.
            return Ok(keys::revoke(&rows, kid, self.longest_token(), now).reply.map(|()| None).map_err(refused));
        };
        let made = self.make_keys(vec![alg], now, fresh).await?;
        let Some(heir) = made.first() else { return Err(Fault::Broken("no key was made".into())) };
        let reply = self
            .settle(|now, _| async move {
                let (epoch, rows) = self.after_epoch(All).await?;
                let (heir, longest) = (heir.clone(), self.longest_token());
                Ok(keys::throw_out(&rows, kid, heir, longest, now).at_epoch(epoch))
            })
            .await?;
        Ok(reply.map_err(refused))
    }
}
