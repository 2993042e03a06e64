//! Passwords of a realm and their hashes: new ones are judged and hashed, those of an earlier policy replaced. What all
//! hashes share is the time that they take.

use crate::admin::Refused;
use crate::browser::Browser;
use crate::cache::At;
use crate::complaint::Sparing;
use crate::stopwatch::{Stage, lap, timed};
use crate::{App, Fault, entropy};
use hasher::import::Fast;
use hasher::{FairKey, Role, Stored, Subject, Work};
use rules::id::UserId;
use rules::login::password::{Acceptable, Password, Policy, Weak, judge};
use rules::login::throttle::subscriber;
use rules::people::User;
use rules::people::names::LoginKey;
use rules::realm::{PRODUCT, is_believable};
use rules::secret::mac;
use rules::{Decision, Span};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::engine::{CommitError, Write};
use store::tables::hash_kinds::{self, Announced, Kinds, Known};
use store::tables::secrets::{Hashes, OtherHashes, Secrets, WindowEnd};
use store::tables::users::ById;

/// What is known, at one configuration epoch of one database server, of the time that the stored hashes take. Sign-ins
/// wait for the most expensive of them, so that their time does not tell what is stored for a name.
#[derive(Default)]
pub(crate) struct Evening(Mutex<Option<(At, Waits)>>);

/// What answers wait for; `None` when every stored hash takes the time of a new one.
type Waits = Option<Arc<Vec<Work>>>;

impl Evening {
    /// Returns what is known, and what it counts for.
    pub(crate) fn held(&self) -> Option<(At, Waits)> {
        self.known().clone()
    }

    fn learn(&self, at: At, waits: &Waits) {
        *self.known() = Some((at, waits.clone()));
    }

    fn known(&self) -> MutexGuard<'_, Option<(At, Waits)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many hashes cannot be verified, and when that was found; `None` before the first check.
#[derive(Default)]
pub(crate) struct Looked {
    found: Mutex<Option<(rules::Time, usize)>>,
    /// How many sign-ins met such a hash.
    met: AtomicU64,
    /// How many of these had come when the last check began: it may have passed the rows of later ones.
    seen: AtomicU64,
}

impl Looked {
    /// Whether this was found a short while ago.
    fn is_of(&self, now: rules::Time) -> bool {
        self.lock().is_some_and(|(at, _)| is_believable(at, now) && now.since(at) < LOOK_EVERY)
    }

    /// Notes that a sign-in met a hash that cannot be verified: one that was stored since the last check, such as
    /// another node's with a key that is missing here.
    pub(crate) fn met(&self) {
        self.met.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<(rules::Time, usize)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what answers wait for when this is known and new hashes ask for `today`. Kinds of a newer version, unknown
/// to this program, cost more than it can tell: answers leave at full steps.
fn waits(known: &Known, today: &str) -> Waits {
    let work = |kind: &str| kind.strip_suffix(BOUND).unwrap_or(kind).parse().ok();
    let others: Vec<&Announced> = known.kinds.iter().filter(|announced| announced.kind != today).collect();
    match known.looked.is_some() && others.is_empty() {
        true => None,
        false => Some(Arc::new(others.iter().filter_map(|other| work(&other.kind)).collect())),
    }
}

/// Ends the kind of a hash that is bound to its account: all other hashes are computed only here, which may take
/// another time than where workers compute.
const BOUND: &str = " bound";

fn kind(work: Work, bound: bool) -> String {
    format!("{work}{}", if bound { BOUND } else { "" })
}

impl App {
    /// Looks at every stored hash, and after each step rests for `rests` times as long as that took.
    pub(crate) async fn each_hash(&self, rests: u32, mut look: impl FnMut(&str)) -> Result<(), Fault> {
        let mut after = String::new();
        loop {
            let began = Instant::now();
            let page = self.ask(Hashes { after: &after, limit: AT_ONCE }).await?;
            page.iter().for_each(|(_, hash)| look(hash));
            match page.into_iter().last() {
                Some((last, _)) => after = last,
                None => return Ok(()),
            }
            tokio::time::sleep(began.elapsed() * rests).await;
        }
    }

    /// Checks which kinds of hashes are stored, unless a node did so a short while ago: kinds that nobody announced
    /// become known (they were stored before there was a list), and kinds that are gone are forgotten.
    pub(crate) async fn look_at_hashes(&self) -> Result<(), Fault> {
        let (known, begun) = (self.ask(Kinds).await?, self.clock.now());
        let looked = known.looked.is_some_and(|at| is_believable(at, begun) && begun.since(at) < LOOK_EVERY);
        // No other node has done so with the settings of this start.
        if looked && self.hashes.is_of(begun) {
            return Ok(());
        }
        let found = self.kinds_of_hashes().await?;
        for kind in found.iter().filter(|kind| known.kinds.iter().all(|one| one.kind != **kind)) {
            self.announce(kind).await?;
        }
        let old = |at| begun.since(at) >= FORGET_AFTER || !is_believable(at, begun);
        let stale = |one: &&Announced| !found.contains(&one.kind) && old(one.at);
        for gone in known.kinds.iter().filter(stale) {
            self.unless_overtaken(hash_kinds::forget(&self.realm.id, gone)).await?;
        }
        self.unless_overtaken(hash_kinds::looked(&self.realm.id, known.looked, begun)).await?;
        self.note_again(&self.ask(Secrets).await?).await
    }

    /// The same on a node that does not check for all nodes: whether its own settings can verify them.
    pub(crate) async fn look_at_hashes_here(&self) -> Result<(), Fault> {
        if self.hashes.is_of(self.clock.now()) {
            return Ok(());
        }
        self.kinds_of_hashes().await?;
        self.note_again(&self.ask(Secrets).await?).await
    }

    /// Returns the kinds of all stored hashes that take another time than today's. There may be millions: requests go
    /// first.
    pub(crate) async fn kinds_of_hashes(&self) -> Result<HashSet<String>, Fault> {
        let beginnings = self.hasher.policy().beginnings(self.hasher.keys());
        let met = self.hashes.met.load(Ordering::Relaxed);
        // Most hashes of today's kind are not asked for: it is announced where they are made. Those that name another
        // key than a new one are: this node need not have it.
        let (mut found, mut foreign) = (HashSet::from([self.today()]), 0);
        let mut after = String::new();
        loop {
            let began = Instant::now();
            let others = OtherHashes { beginnings: &beginnings, after: &after, window: WINDOW };
            let (others, end) = self.ask((others, WindowEnd { after: &after, window: WINDOW })).await?;
            let kinds = others.iter().map(|hash| self.kind_of(&hash.parse().ok()?).ok());
            foreign += kinds.clone().filter(Option::is_none).count();
            found.extend(kinds.flatten());
            match end {
                Some(last) => after = last,
                None => break,
            }
            tokio::time::sleep(began.elapsed() * 4).await;
        }
        *self.hashes.lock() = Some((self.clock.now(), foreign));
        self.hashes.seen.store(met, Ordering::Relaxed);
        if foreign > 0 {
            tracing::warn!(
                accounts = foreign,
                "stored password hashes cannot be verified with these settings: their owners are told that the password is wrong"
            );
        }
        Ok(found)
    }

    /// Returns how many accounts have a hash that this node's settings cannot verify, as its last check found.
    pub fn unverifiable_hashes(&self) -> usize {
        self.hashes.lock().map_or(0, |(_, accounts)| accounts)
    }

    /// Whether a sign-in has met such a hash since.
    pub fn met_unverifiable(&self) -> bool {
        self.hashes.met.load(Ordering::Relaxed) > self.hashes.seen.load(Ordering::Relaxed)
    }

    /// Returns the kind of a new hash.
    fn today(&self) -> String {
        kind(Work::of_policy(&self.hasher.policy()), self.hasher.keys().binding().is_some())
    }

    /// Returns the kind of a stored hash.
    fn kind_of(&self, stored: &Stored) -> Result<String, hasher::Refusal> {
        let bound = stored.keys().any(|(role, _)| role == Role::Binding);
        self.hasher.work(stored).map(|work| kind(work, bound))
    }

    /// Announces that a hash of this kind is about to be stored, so that even before it is there, sign-ins at every
    /// node take its time into account; and sees to it that the secrets are noted which it may need.
    async fn announce(&self, kind: &str) -> Result<(), Fault> {
        for _ in 0..TRIES {
            let ((known, noted), now) = (self.ask((Kinds, Secrets)).await?, self.clock.now());
            self.note_again(&noted).await?;
            let seen = known.kinds.iter().find(|announced| announced.kind == kind).map(|announced| announced.at);
            if seen.is_some_and(|at| now.since(at) < RENEW_AFTER)
                || self.unless_overtaken(hash_kinds::announce(&self.realm.id, kind, seen, now)).await?
            {
                return Ok(());
            }
        }
        Err(Fault::Contended("a kind of password hashes could not be announced".into()))
    }

    /// Does so for a hash that was made here.
    pub(crate) async fn announce_hash(&self, hash: &str) -> Result<(), Fault> {
        match read(hash).and_then(|stored| self.kind_of(&stored).ok()) {
            Some(kind) => self.announce(&kind).await,
            None => Ok(()),
        }
    }

    /// Commits, unless somebody else changed the same meanwhile; returns whether it stands.
    async fn unless_overtaken(&self, writes: Vec<Write>) -> Result<bool, Fault> {
        match self.engine.commit(writes).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Judges a new password for a user with these names: it must be made neither of them nor of ours.
    pub(crate) fn acceptable(&self, password: &[u8], names: &[impl AsRef<str>]) -> Result<Acceptable, Weak> {
        let settings = &self.realm.settings;
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).chain([PRODUCT, settings.brand.as_str()]).collect();
        let policy = Policy { min_length: settings.password_min, names: &names };
        judge(Password::read(password)?, &policy)
    }

    /// Hashes a user's new password with a fresh salt.
    pub(crate) async fn hash_new(
        &self,
        user: &UserId,
        password: &Acceptable,
        browser: &Browser,
    ) -> Result<String, Fault> {
        let (key, salt) = (self.fair_key(browser), entropy::salt()?);
        let hash = hashed(self.hasher.hash_of(&key, self.subject(user), password.as_bytes(), salt)).await?;
        self.announce_hash(&hash).await?;
        Ok(hash)
    }

    /// Stores a hash that comes from elsewhere, by way of `store`.
    ///
    /// # Errors
    /// [`Refused`] if it could not be verified here.
    pub(crate) async fn expecting<T>(
        &self,
        hash: &str,
        store: impl Future<Output = Result<Result<T, Refused>, Fault>>,
    ) -> Result<Result<T, Refused>, Fault> {
        match self.kind_of_text(hash) {
            Ok(kind) => self.announce(&kind).await?,
            Err(problem) => return Ok(Err(problem)),
        }
        store.await
    }

    /// Makes a slow hash of a fast digest that another system stored.
    pub(crate) async fn wrap(&self, digest: &Fast) -> Result<String, Fault> {
        Ok(hashed(self.hasher.wrap(&self.fair_key(&Browser::default()), digest, entropy::salt()?)).await?)
    }

    /// Returns the kind of a hash that comes from elsewhere.
    fn kind_of_text(&self, hash: &str) -> Result<String, Refused> {
        let stored: Stored = hash.parse().map_err(|error| Refused::new(format!("the password hash: {error}")))?;
        self.kind_of(&stored).map_err(|refusal| Refused::new(format!("the password hash: {refusal}")))
    }

    /// Holds back an answer that was asked for at `asked`, and whose turn came at `turn`, so that its times say nothing
    /// about what is stored: the hash takes the same, and the whole ends on a full step. What is stored is known at
    /// `epoch`, which was read before, or is asked for.
    pub(crate) async fn even_out(&self, (asked, turn): (Instant, Instant), epoch: i64) -> Result<(), Fault> {
        let waits = match self.evening.held() {
            Some((at, waits)) if self.counts(at, epoch) => waits,
            _ => {
                let waits = waits(&self.ask(Kinds).await?, &self.today());
                self.evening.learn(self.at(epoch), &waits);
                waits
            }
        };
        if let Some(works) = waits {
            let now = Instant::now();
            // An attempt that did not wait is not held up for a step because of that.
            let asked = if turn.duration_since(asked) < NO_WAIT { turn } else { asked };
            let hash = self.hasher.even_out(now.duration_since(turn), &works);
            let rest = self.hasher.even_out(now.duration_since(asked) + hash, &works);
            timed(Stage::Evening, tokio::time::sleep(hash + rest)).await;
        }
        Ok(())
    }

    /// Stores a password that was just proved as today's policy wants it, and returns its owner with the new hash,
    /// or else with the one that was proved. A failure here never fails a sign-in.
    pub(crate) async fn rehashed(&self, user: User, password: &[u8], browser: &Browser) -> User {
        match self.rehash(&user, password, browser).await {
            Ok(stored) => User { password: stored.or(user.password), ..user },
            Err(fault) => {
                tracing::debug!(%fault, "a password could not be rehashed");
                user
            }
        }
    }

    /// Returns the key that a hash is charged to: the realm first, then the address.
    pub(crate) fn fair_key(&self, browser: &Browser) -> FairKey {
        let address: IpAddr = browser.origin.address.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        charged_to(self.realm.id.as_str(), address)
    }

    /// Returns the salt of the hash that is computed where a name has none: the same for a name each time.
    pub(crate) fn decoy_salt(&self, key: Option<&LoginKey>) -> [u8; 16] {
        let name = key.map_or("", LoginKey::as_str);
        let tag = mac(&*self.keyring.decoy, &[name.as_bytes()]);
        let mut salt = [0; 16];
        salt.copy_from_slice(&tag[..16]);
        salt
    }

    /// Returns whose password it is: where there is a binding key, a hash is worth nothing for anybody else.
    pub(crate) fn subject<'a>(&'a self, user: &'a UserId) -> Subject<'a> {
        Subject { realm: self.realm.id.as_str(), user: user.as_str() }
    }

    /// Returns what is stored from now on; `None` if it did not replace what was proved.
    async fn rehash(&self, user: &User, password: &[u8], browser: &Browser) -> Result<Option<String>, Fault> {
        let (Ok(password), Some(seen)) = (Password::read(password), &user.password) else { return Ok(None) };
        let Some(stored) = read(seen) else { return Ok(None) };
        let salt = entropy::salt()?;
        let (key, of) = (self.fair_key(browser), self.subject(&user.id));
        let hashed = &hashed(self.hasher.rehash_of(&key, (of, &stored), password.as_bytes(), salt)).await?;
        self.announce_hash(hashed).await?;
        let kept = self
            .settle(|_, _| async move {
                let account = self.ask(ById(&user.id)).await?;
                Ok(match account.filter(|account| account.password.as_ref() == Some(seen)) {
                    Some(account) => Decision::accept(hashed.clone()).and(account.rehashed(hashed.clone())),
                    // A parallel sign-in was faster, or the password is another one by now, which was not proved.
                    None => Decision::refuse(()),
                })
            })
            .await?;
        Ok(kept.ok())
    }
}

fn charged_to(realm: &str, address: IpAddr) -> FairKey {
    FairKey::new(realm, subscriber(address))
}

/// Has a password hashed, and notes how much of that was waiting. A job that is refused only waited.
pub(crate) async fn hashed<W: Future>(work: W) -> W::Output {
    hashed_at(work).await.0
}

/// The same; also returns when the job's turn came, if it did.
pub(crate) async fn hashed_at<W: Future>(work: W) -> (W::Output, Option<Instant>) {
    let asked = Instant::now();
    let (done, turn) = hasher::turn::told(work).await;
    let ended = Instant::now();
    let begun = turn.unwrap_or(ended);
    lap(Stage::HashQueue, asked, begun);
    lap(Stage::Hash, begun, ended);
    (done, turn)
}

/// The lines on stored hashes that no password fits here: each sign-in to their accounts would write one.
static USELESS: Sparing = Sparing::unused();

/// Reads a stored hash. One that cannot be read is nobody's password, and somebody has to look at the database.
pub(crate) fn read(stored: &str) -> Option<Stored> {
    let told = |error: &_| {
        if let Some(left_out) = USELESS.room() {
            tracing::error!(%error, left_out, "a stored password hash cannot be read");
        }
    };
    stored.parse().inspect_err(told).ok()
}

/// Logs that a stored hash needs what the settings of this node do not have.
pub(crate) fn tell_of_unverifiable(user: Option<&str>, why: &hasher::Refusal) {
    if let Some(left_out) = USELESS.room() {
        tracing::error!(user, %why, left_out, "a stored password hash cannot be verified with these settings");
    }
}

/// An attempt that waited less than this had none before it.
const NO_WAIT: Duration = Duration::from_millis(1);
/// How often a node checks which kinds of hashes there are.
const LOOK_EVERY: Span = Span::hours(1);
/// An announcement that is younger than this is not made again.
const RENEW_AFTER: Span = Span::minutes(10);
/// A kind of which no hash was found is forgotten this long after its last announcement: by then the node that
/// announced it has stored one, or never will. Clocks of nodes may differ by a good part of this.
const FORGET_AFTER: Span = Span::hours(2);
/// How often an announcement is tried while others make the same.
const TRIES: usize = 5;

/// How many hashes are looked at in one step.
const AT_ONCE: i64 = 500;
/// Accounts that one step looks at, if few or none are found.
const WINDOW: i64 = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_that_cannot_be_read_fills_no_disk() {
        // Red where each look at it writes a line: whoever knows the name can look as often as they like.
        let (lines, _kept) = crate::tests::lines::Lines::kept();
        (0..1_000).for_each(|_| assert!(read("no hash").is_none()));
        let lines = lines.taken();
        assert!((1..=40).contains(&lines.len()) && lines[0].contains("cannot be read"), "{lines:?}");
    }
    use rules::Time;

    fn known(kinds: &[&str], looked: bool) -> Known {
        let kinds = kinds.iter().map(|kind| Announced { kind: (*kind).to_owned(), at: Time(1) }).collect();
        Known { kinds, looked: looked.then_some(Time(1)) }
    }

    #[test]
    fn answers_wait_until_it_is_known_that_every_hash_takes_the_time_of_a_new_one() {
        let name = Work::of_policy(&hasher::Policy::default()).to_string();
        let of = |kinds: &[&str], looked| waits(&known(kinds, looked), &name).map(|works| works.len());
        assert_eq!(of(&[], false), Some(0), "nobody has looked");
        assert_eq!((of(&[], true), of(&[&name], true)), (None, None));
        assert_eq!((of(&["bcrypt cost=4", &name], true), of(&["bcrypt cost=4"], false)), (Some(1), Some(1)));
        assert_eq!(of(&["of a newer program"], true), Some(0), "full steps at the least");
        let bound = format!("{name}{BOUND}");
        assert_eq!(of(&[&name, &bound], true), Some(1), "the same cost, bound to its account");
    }

    #[test]
    fn people_behind_a_translator_are_as_many_as_they_are() {
        // Red without `subscriber`: all of IPv4 would have one turn among those that wait for a hash.
        let of = |address: &str| charged_to("main", address.parse().unwrap());
        assert_eq!(of("64:ff9b::192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("64:ff9b::192.0.2.1"), of("64:ff9b::192.0.2.2"));
    }
}
