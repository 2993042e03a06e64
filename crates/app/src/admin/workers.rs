//! Managing machines that hash passwords.

use super::Refused;
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::realm::lasts;
use rules::secret::{Handle, Secret};
use rules::worker::{self, TOKEN_LIVES, Worker, spent};
use rules::{Decision, Time};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::tables::workers::{All, OfKey, Token};

/// What is missing where workers cannot be used.
const WITHOUT_KEYS: &str = "hash workers need a pepper and a binding key, so that a worker cannot use what it \
                            computes; make them with: portiere hash pepper NAME FILE, and: portiere hash binding NAME \
                            FILE";

/// How long a quarantined worker is told the same: as long as nodes take to notice what was done on another.
const REMEMBERED: Duration = Duration::from_secs(5);

/// Workers that connected and were found in quarantine, and when. Only enrolled workers: nobody can fill it.
#[derive(Default)]
pub(crate) struct Quarantined(Mutex<HashMap<Handle, (Worker, Instant)>>);

impl Quarantined {
    fn recalled(&self, key: Handle, now: Instant) -> Option<Worker> {
        let mut held = self.held();
        held.retain(|_, (_, at)| now.saturating_duration_since(*at) < REMEMBERED);
        held.get(&key).map(|(worker, _)| worker.clone())
    }

    fn found(&self, worker: &Worker, at: Instant) {
        if worker.quarantine.is_some() {
            self.held().insert(worker.key, (worker.clone(), at));
        }
    }

    /// Forgets all: something was changed about workers.
    fn forget(&self) {
        self.held().clear();
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Handle, (Worker, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Returns every worker, by name.
    pub async fn workers(&self) -> Result<Vec<Worker>, Fault> {
        self.ask(All).await
    }

    /// Returns the worker with this key. A quarantined worker that comes again and again costs one row every few
    /// seconds: it is remembered for so long, unless somebody changes something about workers on this node.
    pub async fn worker(&self, key: Handle) -> Result<Option<Worker>, Fault> {
        if let Some(quarantined) = self.quarantined.recalled(key, Instant::now()) {
            return Ok(Some(quarantined));
        }
        let (found, at) = (self.ask(OfKey(key)).await?, Instant::now());
        found.iter().for_each(|worker| self.quarantined.found(worker, at));
        Ok(found)
    }

    /// Refuses where the keys are missing that workers need.
    fn may_have_workers(&self) -> Result<(), Refused> {
        let keys = self.hasher.keys();
        if keys.pepper().is_some() && keys.binding().is_some() { Ok(()) } else { Err(Refused::new(WITHOUT_KEYS)) }
    }

    /// Makes a token with which one worker is enrolled; returns it, and when it expires.
    pub async fn worker_token(&self) -> Result<Result<(Secret, Time), Refused>, Fault> {
        if let Err(refused) = self.may_have_workers() {
            return Ok(Err(refused));
        }
        let secret = entropy::fresh()?.secret("worker token");
        let token = secret.handle();
        let offered = self
            .settle(|now, _| async move {
                let expires = now + TOKEN_LIVES;
                let offered = Change::Record(Event::new(Kind::WorkerOffered, now));
                Ok(Decision::accept(expires).and(Change::OfferWorkerToken { token, now, expires }).and(offered))
            })
            .await?;
        Ok(offered.map(|expires| (secret, expires)))
    }

    /// Enrolls a worker that knows a token. If its name is taken, a number is put behind it. Returns the name, and does
    /// so again for the same key and token until that would have expired: the first answer may be lost.
    pub async fn enroll_worker(
        &self,
        token: &str,
        (key, wanted): (Handle, &str),
        address: &str,
    ) -> Result<Result<String, Refused>, Fault> {
        let token = Handle::of(token);
        let wanted = match worker::name(wanted) {
            Ok(wanted) => wanted,
            Err(why) => return Ok(Err(Refused::new(format!("the name {why}")))),
        };
        let wanted = wanted.as_str();
        self.settle(|now, _| async move {
            let (known, unused, own) = self.ask((All, Token(token), Token(spent(token, key)))).await?;
            let is_good = |expires: Option<Time>| expires.is_some_and(|expires| lasts(expires, TOKEN_LIVES, now));
            // Checked first: nobody can show a key that is not theirs, and no token would help.
            if let Some(known) = known.iter().find(|known| known.key == key) {
                let name = &known.name;
                return Ok(match is_good(own) {
                    true => Decision::accept(name.clone()),
                    false => Decision::refuse(Refused::new(format!(
                        "a worker with this key is enrolled as {name}: portiere verifier revoke {name}, then enroll \
                         again, or enroll with another folder"
                    ))),
                });
            }
            if !is_good(unused) {
                return Ok(Decision::refuse(Refused::new(
                    "the token is unknown, used or expired; make another one with: portiere verifier token",
                )));
            }
            let name = free(&known, wanted);
            let event = Event::new(Kind::WorkerEnrolled, now).address(address).detail("worker", name.as_str());
            let (address, quarantine) = (address.to_owned(), None);
            let worker = Box::new(Worker { key, name: name.clone(), enrolled: now, address, quarantine });
            Ok(Decision::accept(name).and(Change::EnrollWorker { worker, token, now }).and(Change::Record(event)))
        })
        .await
    }

    /// Gives a worker another name, at once here; other nodes notice within seconds.
    pub async fn rename_worker(&self, old: &str, new: &str) -> Result<Result<(), Refused>, Fault> {
        let name = match worker::name(new) {
            Ok(name) => name,
            Err(why) => return Ok(Err(Refused::new(format!("the new name {why}")))),
        };
        let name = &name;
        let renamed = self.settle(|now, _| async move {
            let known = self.ask(All).await?;
            let Some(mut worker) = known.iter().find(|known| known.name == old).cloned() else {
                return Ok(Decision::refuse(unknown(old)));
            };
            if known.iter().any(|known| known.name == *name) {
                return Ok(Decision::refuse(Refused::taken(format!("there is a worker called {name} already"))));
            }
            let event = Event::new(Kind::WorkerRenamed, now).detail("worker", old).detail("name", name.as_str());
            let change = Change::RenameWorker { worker: worker.key, name: name.clone() };
            worker.name.clone_from(name);
            Ok(Decision::accept(worker).and(change).and(Change::Record(event)))
        });
        let renamed = renamed.await?;
        self.quarantined.forget();
        Ok(renamed.map(|worker| self.call_workers(&[worker])))
    }

    /// Gives those of these workers that are connected here their present names, wherever they are reported.
    pub fn call_workers(&self, known: &[Worker]) {
        for here in self.hasher.workers() {
            if let Some(worker) = known.iter().find(|known| known.key.0 == here.who.key) {
                here.who.name.change(&worker.name);
            }
        }
    }

    /// Revokes a worker, and disconnects it if it is connected here; other nodes notice within seconds.
    pub async fn revoke_worker(&self, name: &str) -> Result<Result<(), Refused>, Fault> {
        let revoked = self
            .settle(|now, _| async move {
                let known = self.ask(All).await?;
                let Some(worker) = known.into_iter().find(|known| known.name == name) else {
                    return Ok(Decision::refuse(unknown(name)));
                };
                let event = Event::new(Kind::WorkerRevoked, now).detail("worker", name);
                Ok(Decision::accept(worker.key).and(Change::RemoveWorker(worker.key)).and(Change::Record(event)))
            })
            .await?;
        self.quarantined.forget();
        Ok(revoked.map(|key| {
            self.hasher.dismiss(|who| who.key == key.0);
        }))
    }

    /// Quarantines a worker that was wrong: no node asks it any more. Returns its name, unless that was recorded
    /// before.
    pub async fn quarantine_worker(&self, key: Handle, why: &str) -> Result<Option<String>, Fault> {
        let settled = self
            .settle(|now, _| async move {
                let found = self.ask(OfKey(key)).await?.filter(|known| known.quarantine.is_none());
                let Some(worker) = found else { return Ok(Decision::<Option<String>, ()>::accept(None)) };
                let name = worker.name.clone();
                let event = Event::new(Kind::WorkerQuarantined, now).detail("worker", worker.name).detail("why", why);
                Ok(Decision::accept(Some(name))
                    .and(Change::QuarantineWorker { worker: key, at: now, why: why.to_owned() })
                    .and(Change::Record(event)))
            })
            .await?;
        // It may have come back before that was written.
        self.hasher.dismiss(|who| who.key == key.0);
        Ok(settled.ok().flatten())
    }

    /// Lets a worker that was wrong work again, and returns whether it was kept from it.
    pub async fn trust_worker(&self, name: &str) -> Result<Result<bool, Refused>, Fault> {
        let trusted = self.settle(|now, _| async move {
            let known = self.ask(All).await?;
            match known.into_iter().find(|known| known.name == name) {
                None => Ok(Decision::refuse(unknown(name))),
                Some(worker) if worker.quarantine.is_none() => Ok(Decision::accept(false)),
                Some(worker) => {
                    let event = Event::new(Kind::WorkerTrusted, now).detail("worker", name);
                    Ok(Decision::accept(true).and(Change::TrustWorker(worker.key)).and(Change::Record(event)))
                }
            }
        });
        let trusted = trusted.await?;
        self.quarantined.forget();
        Ok(trusted)
    }
}

fn unknown(name: &str) -> Refused {
    Refused::missing(format!("no worker is called {name}; see: portiere verifier list"))
}

/// Returns the name, or its first variant with a number that nobody has.
fn free(known: &[Worker], wanted: &str) -> String {
    let taken = |name: &str| known.iter().any(|known| known.name == name);
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let stem: String = wanted.chars().take(worker::LONGEST_NAME - 6).collect();
    let numbered = (2u32..).map(|number| format!("{stem}-{number}"));
    numbered.into_iter().find(|name| !taken(name)).unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_quarantined_is_remembered_for_a_moment_and_nobody_else() {
        // Red without `retain`: a worker that was trusted on another node could not come back.
        let (quarantined, now) = (Quarantined::default(), Instant::now());
        let (enrolled, address) = (Time(1), String::new());
        let well = Worker { key: Handle([1; 32]), name: "well".into(), enrolled, address, quarantine: None };
        let wrong = Worker { key: Handle([2; 32]), quarantine: Some((Time(2), "wrong".into())), ..well.clone() };
        for worker in [&well, &wrong] {
            quarantined.found(worker, now);
        }
        assert_eq!(quarantined.recalled(well.key, now), None, "it may have been revoked");
        assert_eq!(quarantined.recalled(wrong.key, now + REMEMBERED / 2), Some(wrong.clone()));
        assert_eq!(quarantined.recalled(wrong.key, now + REMEMBERED), None);
        assert!(quarantined.held().is_empty());
    }
}
