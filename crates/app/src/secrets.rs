//! The secrets outside the database that password hashes need, and their proofs in it.

use crate::{App, Fault};
use hasher::{KeyCheck, KeysError, Role, Stored};
use rules::Change;
use std::sync::OnceLock;
use store::engine::Write;
use store::tables::secrets::{Secrets, forget, held, note};

/// The proofs of the secrets of this start, made once: that of an import key takes as long as a password's hash.
#[derive(Default)]
pub(crate) struct Proofs(OnceLock<Vec<KeyCheck>>);

impl App {
    pub(crate) fn proofs(&self) -> &[KeyCheck] {
        self.proofs.0.get_or_init(|| self.hasher.keys().checks().collect())
    }

    /// Checks that the secrets are there with which password hashes were made, and notes new ones.
    ///
    /// # Errors
    /// [`Fault::Broken`] if a secret is not what it was, or is missing while an account needs it.
    pub(crate) async fn confirm_secrets(&self) -> Result<(), Fault> {
        let noted = self.ask(Secrets).await?;
        self.agree_with(&noted).await?;
        // Also in the place of a proof that another version made.
        let fresh = self.proofs().iter().map(|check| (check.name(), check.to_string()));
        let fresh = fresh.filter(|of_today| !noted.contains(of_today));
        let write = |(name, proof): (String, String)| {
            let before = noted.iter().any(|(known, _)| *known == name).then(|| forget(&self.realm.id, &name));
            before.into_iter().chain([note(&self.realm.id, &name, &proof)])
        };
        let writes: Vec<_> = fresh.flat_map(write).collect();
        if writes.is_empty() {
            return Ok(());
        }
        self.engine.commit(writes).await?;
        // Of two nodes that note a secret at the same moment, one was first.
        self.agree_with(&self.ask(Secrets).await?).await
    }

    /// Checks that the secrets here are those that were noted.
    async fn agree_with(&self, noted: &[(String, String)]) -> Result<(), Fault> {
        for (name, proof) in noted {
            if let Some(check) = self.missing(name, proof)? {
                self.do_without(name, &check).await?;
            }
        }
        Ok(())
    }

    /// Compares what is noted of a secret with the one of that name here; returns it if there is none.
    fn missing(&self, name: &str, proof: &str) -> Result<Option<KeyCheck>, Fault> {
        let check: KeyCheck =
            proof.parse().map_err(|_| Fault::Broken(format!("the proof of secret {name} cannot be read")))?;
        if self.proofs().contains(&check) {
            return Ok(None);
        }
        match self.hasher.keys().confirm(&check) {
            Ok(()) => Ok(None),
            Err(KeysError::Missing(..)) => Ok(Some(check)),
            Err(_) => {
                let why = format!("{name} is not the secret that passwords were hashed with");
                Err(Fault::Broken(format!("{}: {why}; put its file back", option(&check))))
            }
        }
    }

    /// Handles a secret that is not configured any more: that is right once no hash needs it. Another node may have it
    /// and store the first such hash meanwhile. A batch that does so holds what is noted ([`App::held_secrets`]): one
    /// that held it before it was removed is found by the second count, and a later one finds it gone.
    async fn do_without(&self, name: &str, check: &KeyCheck) -> Result<(), Fault> {
        self.is_unneeded(name, check).await?;
        self.engine.commit(vec![forget(&self.realm.id, name)]).await?;
        if let Err(needed) = self.is_unneeded(name, check).await {
            self.engine.commit(vec![note(&self.realm.id, name, &check.to_string())]).await?;
            return Err(needed);
        }
        tracing::info!(name, "no password hash needs this secret any more");
        Ok(())
    }

    /// Checks that no hash needs a secret.
    async fn is_unneeded(&self, name: &str, check: &KeyCheck) -> Result<(), Fault> {
        let needed = self.hashes_with(&check.parameter()).await?;
        if needed == 0 {
            return Ok(());
        }
        let accounts = if needed == 1 { "account has a password" } else { "accounts have passwords" };
        let why = format!("{name} is not configured, and {needed} {accounts} hashed with it");
        let what_helps = "name its file there again, or give the server's configuration (--config)";
        Err(Fault::Broken(format!("{}: {why}: {what_helps}", option(check))))
    }

    /// Counts the accounts that have a password hash with this parameter.
    async fn hashes_with(&self, parameter: &str) -> Result<usize, Fault> {
        // Matched to its end: one id may begin with another.
        let ways = [format!("{parameter}$"), format!("{parameter},")];
        let mut count = 0;
        self.each_hash(0, |hash| count += usize::from(ways.iter().any(|way| hash.contains(way)))).await?;
        Ok(count)
    }

    /// Notes the secrets of this start that are not noted any more: a start without one found no hash that needs it,
    /// and removed it.
    ///
    /// # Errors
    /// [`Fault::Broken`] if since then another secret was noted under that name.
    pub(crate) async fn note_again(&self, noted: &[(String, String)]) -> Result<(), Fault> {
        let mut gone = Vec::new();
        for check in self.proofs() {
            let name = check.name();
            match noted.iter().find(|(known, _)| *known == name) {
                None => gone.push(note(&self.realm.id, &name, &check.to_string())),
                Some((_, proof)) => {
                    self.missing(&name, proof)?;
                }
            }
        }
        if !gone.is_empty() {
            self.engine.commit(gone).await?;
        }
        Ok(())
    }

    /// Returns what a batch has to hold so that every secret stays noted which a hash needs that it stores.
    pub(crate) fn held_secrets(&self, changes: &[Change]) -> Vec<Write> {
        let hashes = changes.iter().filter_map(|change| match change {
            Change::AddUser(user) => user.password.as_deref(),
            Change::SetPassword { password, .. } => Some(&**password),
            _ => None,
        });
        let stored = hashes.filter_map(|hash| hash.parse::<Stored>().ok());
        let needed: Vec<_> = stored.flat_map(|stored| stored.keys().collect::<Vec<_>>()).collect();
        if needed.is_empty() {
            return Vec::new();
        }
        let named = self.proofs().iter().filter(|check| needed.contains(&(check.role(), check.id())));
        named.map(|check| held(&self.realm.id, &check.name())).collect()
    }
}

/// Returns the option in which a secret is configured.
fn option(check: &KeyCheck) -> &'static str {
    match check.role() {
        Role::Import => "hash.import_keys",
        Role::Pepper => "hash.peppers",
        Role::Binding => "hash.binding_keys",
    }
}
