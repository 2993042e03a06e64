//! What all password hashes of a realm have in common: the secrets that they need, and the time that they take.

use crate::admin::Refused;
use crate::browser::Browser;
use crate::stopwatch::{Stage, lap, timed};
use crate::{App, Fault, entropy};
use hasher::import::Fast;
use hasher::{KeyCheck, KeysError, Role, Stored, Work};
use rules::Decision;
use rules::decision::Change;
use rules::login::password::Password;
use rules::people::User;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::tables::secrets::{Hashes, OtherHashes, Secrets, forget, note};
use store::tables::users::ById;

/// What is known of the time that the stored hashes take. Sign-ins wait for the dearest of them, so that their time does
/// not tell what is stored for a name.
#[derive(Default)]
pub(crate) struct Evening(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// What hashes of another kind than today's policy ask for; `None` until it was looked for the first time.
    others: Option<HashSet<Work>>,
    /// How many hashes came from elsewhere since the start: what a look finds is whole only if none came meanwhile.
    imports: u64,
}

impl Evening {
    /// A hash of another system is about to be stored, or was.
    fn expect(&self, work: Work) {
        let mut known = self.known();
        known.imports += 1;
        known.others.get_or_insert_default().insert(work);
    }

    fn imports(&self) -> u64 {
        self.known().imports
    }

    /// Takes what a look found that began after so many `imports`. Gives whether answers wait from now on.
    fn found(&self, others: HashSet<Work>, imports: u64) -> bool {
        let mut known = self.known();
        // The look may have passed the place of what came meanwhile.
        let whole = known.imports == imports;
        match &mut known.others {
            Some(before) if !whole => before.extend(others),
            before => *before = Some(others),
        }
        known.waits().is_some()
    }

    /// What answers wait for; `None` when every stored hash takes the time of a new one.
    fn waits(&self) -> Option<Vec<Work>> {
        self.known().waits()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn waits(&self) -> Option<Vec<Work>> {
        match &self.others {
            None => Some(Vec::new()),
            Some(others) if others.is_empty() => None,
            Some(others) => Some(others.iter().copied().collect()),
        }
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
                    return Err(Fault::Broken(format!("{}: {why}; put its file back", option(&check))));
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
        let needed = self.hashes_with(&check.parameter()).await?;
        if needed > 0 {
            let why = format!("{name} is not configured, and {needed} accounts have passwords hashed with it");
            return Err(Fault::Broken(format!("{}: {why}", option(check))));
        }
        self.engine.commit(vec![forget(&self.realm.id, name)]).await?;
        tracing::info!(name, "no password hash needs this secret any more");
        Ok(())
    }

    /// How many accounts have a password hash with this parameter.
    async fn hashes_with(&self, parameter: &str) -> Result<usize, Fault> {
        // To its end: one id may begin with another.
        let ways = [format!("{parameter}$"), format!("{parameter},")];
        let (mut count, mut after) = (0, String::new());
        loop {
            let page = self.ask(Hashes { after: &after, limit: AT_ONCE }).await?;
            count += page.iter().filter(|(_, hash)| ways.iter().any(|way| hash.contains(way))).count();
            match page.into_iter().last() {
                Some((last, _)) => after = last,
                None => return Ok(count),
            }
        }
    }

    /// Looks whether every stored hash takes the time of today's policy. While one does not (it was imported, or made
    /// under another policy, and its owner has not signed in since), sign-ins wait.
    pub(crate) async fn look_at_hashes(&self) -> Result<(), Fault> {
        let (beginnings, imports) = (self.hasher.policy().beginnings(), self.evening.imports());
        let (mut others, mut after) = (HashSet::new(), String::new());
        loop {
            let page = self.ask(OtherHashes { beginnings: &beginnings, after: &after, limit: AT_ONCE }).await?;
            // One that cannot be read or verified fails at once; it is logged when somebody tries it.
            let works = page.iter().filter_map(|(_, hash)| self.hasher.work(&hash.parse().ok()?).ok());
            others.extend(works);
            match page.into_iter().last() {
                Some((last, _)) => after = last,
                None => break,
            }
        }
        if !self.evening.found(others, imports) {
            tracing::debug!("every password hash takes the same time");
        }
        Ok(())
    }

    /// Stores a hash that comes from elsewhere, by way of `store`: from before it is there, sign-ins take its time into
    /// account.
    ///
    /// # Errors
    /// [`Refused`] when it could not be verified here.
    pub(crate) async fn expecting<T>(
        &self,
        hash: &str,
        store: impl Future<Output = Result<Result<T, Refused>, Fault>>,
    ) -> Result<Result<T, Refused>, Fault> {
        let work = match self.work_of(hash) {
            Ok(work) => work,
            Err(problem) => return Ok(Err(problem)),
        };
        self.evening.expect(work);
        let stored = store.await;
        // A look that began before it was stored, and ends after, is as incomplete as one that began before this.
        self.evening.expect(work);
        stored
    }

    /// Makes a slow hash of a fast digest that another system stored.
    pub(crate) async fn wrap(&self, digest: &Fast) -> Result<String, Fault> {
        Ok(hashed(self.hasher.wrap(&self.fair_key(&Browser::default()), digest, entropy::salt()?)).await?)
    }

    /// What verifying a hash asks for that comes from elsewhere.
    fn work_of(&self, hash: &str) -> Result<Work, Refused> {
        let stored: Stored = hash.parse().map_err(|error| Refused(format!("the password hash: {error}")))?;
        self.hasher.work(&stored).map_err(|refusal| Refused(format!("the password hash: {refusal}")))
    }

    /// Keeps an answer back that was asked for at `begun`, so that its time says nothing about what is stored.
    pub(crate) async fn even_out(&self, begun: Instant) {
        if let Some(works) = self.evening.waits() {
            timed(Stage::Evening, tokio::time::sleep(self.hasher.even_out(begun.elapsed(), &works))).await;
        }
    }

    /// Stores a password that was just proved as today's policy wants it, and gives its owner as they are then. That it
    /// fails never fails a sign-in.
    pub(crate) async fn rehashed(&self, user: User, password: &[u8], browser: &Browser) -> User {
        match self.rehash(&user, password, browser).await {
            Ok(stored) => User { password: stored.or(user.password), ..user },
            Err(fault) => {
                tracing::debug!(%fault, "a password was not hashed again");
                user
            }
        }
    }

    /// The stored password as it is now; `None` where it was not hashed at all.
    async fn rehash(&self, user: &User, password: &[u8], browser: &Browser) -> Result<Option<String>, Fault> {
        let (Ok(password), Some(seen)) = (Password::read(password), &user.password) else { return Ok(None) };
        let Some(stored) = read(seen) else { return Ok(None) };
        let salt = entropy::salt()?;
        let key = self.fair_key(browser);
        let hashed = &hashed(self.hasher.rehash(&key, &stored, password.as_bytes(), salt)).await?;
        let kept = self
            .settle(|now, _| async move {
                let account = self.ask(ById(&user.id)).await?;
                let at = account.as_ref().map_or(now, |account| account.next_change(now));
                let found = account.and_then(|account| account.password);
                if found.as_ref() != Some(seen) {
                    // A parallel sign-in was faster, or it is another password by now.
                    return Ok(Decision::refuse(found));
                }
                let (user, seen, password) = (user.id.clone(), found, hashed.clone());
                Ok(Decision::accept(password.clone()).and(Change::SetPassword { user, seen, password, at }))
            })
            .await?;
        Ok(kept.map_or_else(|other| other, Some))
    }
}

/// Has a password hashed, and notes what of that was waiting. One that is refused only waited.
pub(crate) async fn hashed<W: Future>(work: W) -> W::Output {
    let asked = Instant::now();
    let (done, begun) = hasher::turn::told(work).await;
    let ended = Instant::now();
    let begun = begun.unwrap_or(ended);
    lap(Stage::HashQueue, asked, begun);
    lap(Stage::Hash, begun, ended);
    done
}

/// Where a secret is configured.
fn option(check: &KeyCheck) -> &'static str {
    match check.role() {
        Role::Import => "hash.import_keys",
        Role::Pepper | Role::Binding => "hash.peppers",
    }
}

/// A stored hash. One that cannot be read is nobody's password, and somebody has to look at the database.
pub(crate) fn read(stored: &str) -> Option<Stored> {
    stored.parse().inspect_err(|error| tracing::error!(%error, "a stored password hash cannot be read")).ok()
}

/// How often it is looked whether sign-ins have to wait.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// How many hashes are looked at in one step.
const AT_ONCE: i64 = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use hasher::{Hasher, Settings};

    fn works() -> [Work; 2] {
        let hasher = Hasher::start(Settings::default()).unwrap();
        [
            "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i",
            "pbkdf2_sha256$1000$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=",
        ]
        .map(|hash| hasher.work(&hash.parse().unwrap()).unwrap())
    }

    #[test]
    fn answers_wait_until_it_is_known_that_none_has_to() {
        let evening = Evening::default();
        assert_eq!(evening.waits(), Some(vec![]));
        assert!(!evening.found(HashSet::new(), evening.imports()));
        assert_eq!(evening.waits(), None);
    }

    #[test]
    fn a_look_that_an_import_overtook_takes_nothing_back() {
        // red without `imports`, or with one `expect` only in `expecting`.
        let [old, new] = works();
        let evening = Evening::default();
        for overtaken in [false, true] {
            let before = evening.imports();
            evening.expect(old);
            let between = evening.imports();
            let began = if overtaken { between } else { before };
            // The look passes the place of the row before it is there, and ends after.
            evening.expect(old);
            assert!(evening.found(HashSet::from([new]), began), "nothing else than what was expected is there");
            assert_eq!(evening.waits().map(|works| works.len()), Some(2));
            assert!(evening.found(HashSet::from([new]), evening.imports()));
            assert_eq!(evening.waits(), Some(vec![new]), "what a whole look did not find is gone");
        }
    }
}
