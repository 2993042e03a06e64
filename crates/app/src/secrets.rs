//! The secrets outside the database that password hashes need, and their proofs in it.

use crate::{App, Fault};
use hasher::{KeyCheck, KeysError, Role};
use store::tables::secrets::{Secrets, forget, note};

impl App {
    /// Checks that the secrets are there with which password hashes were made, and notes new ones.
    ///
    /// # Errors
    /// [`Fault::Broken`] if a secret is not what it was, or is missing while an account needs it.
    pub(crate) async fn confirm_secrets(&self) -> Result<(), Fault> {
        let noted = self.ask(Secrets).await?;
        self.agree_with(&noted).await?;
        // Also in the place of a proof that another version made.
        let fresh = self.hasher.keys().checks().map(|check| (check.name(), check.to_string()));
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
        let keys = self.hasher.keys();
        for (name, proof) in noted {
            let check: KeyCheck =
                proof.parse().map_err(|_| Fault::Broken(format!("the proof of secret {name} cannot be read")))?;
            match keys.confirm(&check) {
                Ok(()) => {}
                Err(KeysError::Missing(..)) => self.do_without(name, &check).await?,
                Err(_) => {
                    let why = format!("{name} is not the secret that passwords were hashed with");
                    return Err(Fault::Broken(format!("{}: {why}; put its file back", option(&check))));
                }
            }
        }
        Ok(())
    }

    /// Handles a secret that is not configured any more: that is right once no hash needs it.
    async fn do_without(&self, name: &str, check: &KeyCheck) -> Result<(), Fault> {
        let needed = self.hashes_with(&check.parameter()).await?;
        if needed > 0 {
            let accounts = if needed == 1 { "account has a password" } else { "accounts have passwords" };
            let why = format!("{name} is not configured, and {needed} {accounts} hashed with it");
            let what_helps = "name its file there again, or give the server's configuration (--config)";
            return Err(Fault::Broken(format!("{}: {why}: {what_helps}", option(check))));
        }
        self.engine.commit(vec![forget(&self.realm.id, name)]).await?;
        tracing::info!(name, "no password hash needs this secret any more");
        Ok(())
    }

    /// Counts the accounts that have a password hash with this parameter.
    async fn hashes_with(&self, parameter: &str) -> Result<usize, Fault> {
        // Matched to its end: one id may begin with another.
        let ways = [format!("{parameter}$"), format!("{parameter},")];
        let mut count = 0;
        self.each_hash(0, |hash| count += usize::from(ways.iter().any(|way| hash.contains(way)))).await?;
        Ok(count)
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
