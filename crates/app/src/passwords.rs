//! What all password hashes of a realm have in common: the secrets that they need, and the time that they take.

use crate::admin::Refused;
use crate::browser::Browser;
use crate::{App, Fault, entropy};
use hasher::import::Fast;
use hasher::{KeyCheck, KeysError, Stored};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::tables::secrets::{AnyOtherHash, HashesWith, Secrets, forget, note};

/// Whether sign-ins wait, so that their time does not tell what is stored for a name.
pub(crate) struct Evening(AtomicBool);

impl Evening {
    /// They do until it is known that no stored hash takes another time than the one of a name that nobody has.
    pub(crate) fn new() -> Self {
        Evening(AtomicBool::new(true))
    }
}

impl App {
    /// Sees to it that the secrets are there with which password hashes were made, and notes those that are new.
    ///
    /// # Errors
    /// [`Fault::Broken`] when one is another than it was, or is missing and an account needs it.
    pub(crate) async fn confirm_secrets(&self) -> Result<(), Fault> {
        let keys = self.hasher.keys();
        let noted = self.ask(Secrets).await?;
        for (name, proof) in &noted {
            let check: KeyCheck =
                proof.parse().map_err(|_| Fault::Broken(format!("the proof of secret {name} cannot be read")))?;
            match keys.confirm(&check) {
                Ok(()) => {}
                Err(KeysError::Missing(..)) => self.do_without(name, &check).await?,
                Err(_) => {
                    let why = format!("{name} is another secret than the one that passwords were hashed with");
                    return Err(Fault::Broken(format!("hash.peppers: {why}; put its file back")));
                }
            }
        }
        let fresh = keys.checks().map(|check| (check.name(), check.to_string()));
        let fresh = fresh.filter(|(name, _)| noted.iter().all(|(known, _)| known != name));
        let writes: Vec<_> = fresh.map(|(name, proof)| note(&self.realm.id, &name, &proof)).collect();
        if !writes.is_empty() {
            self.engine.commit(writes).await?;
        }
        Ok(())
    }

    /// A secret is not configured any more: that is right once no hash needs it.
    async fn do_without(&self, name: &str, check: &KeyCheck) -> Result<(), Fault> {
        let needed = self.ask(HashesWith(&format!("id={}", check.id()))).await?.unwrap_or(0);
        if needed > 0 {
            let why = format!("{name} is not configured, and {needed} accounts have passwords hashed with it");
            return Err(Fault::Broken(format!("hash.peppers: {why}")));
        }
        self.engine.commit(vec![forget(&self.realm.id, name)]).await?;
        tracing::info!(name, "no password hash needs this secret any more");
        Ok(())
    }

    /// Looks whether every stored hash takes the time of today's policy. While one does not (it was imported, or made
    /// under another policy, and its owner has not signed in since), sign-ins wait.
    pub(crate) async fn look_at_hashes(&self) -> Result<(), Fault> {
        let other = self.ask(AnyOtherHash(&self.hasher.policy().beginnings())).await?.is_some();
        if self.evening.0.swap(other, Relaxed) && !other {
            tracing::debug!("every password hash takes the same time");
        }
        Ok(())
    }

    /// A hash of another policy is about to be stored.
    pub(crate) fn expect_other_hashes(&self) {
        self.evening.0.store(true, Relaxed);
    }

    /// Makes a slow hash of a fast digest that another system stored.
    pub(crate) async fn wrap(&self, digest: &Fast) -> Result<String, Fault> {
        let seed = entropy::bytes()?;
        let mut salt = [0; 16];
        salt.copy_from_slice(&seed[..16]);
        Ok(self.hasher.wrap(&self.fair_key(&Browser::default()), digest, salt).await?)
    }

    /// Whether a hash that comes from elsewhere could be verified here.
    pub(crate) fn confirm_readable(&self, hash: &str) -> Result<(), Refused> {
        let stored: Stored = hash.parse().map_err(|error| Refused(format!("the password hash: {error}")))?;
        match self.hasher.expected(&stored) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(Refused(format!("the password hash: {refusal}"))),
        }
    }

    /// Keeps an answer back that was asked for at `begun`, so that its time says nothing about what is stored.
    pub(crate) async fn even_out(&self, begun: Instant) {
        if self.evening.0.load(Relaxed) {
            tokio::time::sleep(self.hasher.even_out(begun.elapsed())).await;
        }
    }
}

/// How often it is looked whether sign-ins have to wait.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(3600);
