//! The API: verifies, hashes, and pretends to verify, through the gate.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use subtle::ConstantTimeEq;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::{
    argon2,
    calibrate::{self, Calibration},
    coming::Coming,
    cost::Family,
    cpu::Level,
    evening,
    fair::FairKey,
    formats::{Check, Draft, Prepared, Stored, Subject, import::Fast, limits, params},
    gate::{Clock, Gate, Ticket},
    job::{Computed, Input, Kind, Reach, Tag, Work},
    machine,
    meters::CpuTime,
    native::{Kernel, Native},
    pepper::{Keys, Role},
    policy::{Policy, SALT_BYTES},
    pool,
    remote::{
        Introduction, Lie, Link, WorkerState,
        frame::{Ask, Ready},
    },
    settings::{Settings, StartError},
    state::{KindState, Refusal, State},
    turn,
};

/// Longest password that is accepted, in bytes; a longer one is refused as [`Refusal::TooLong`]. Sensible limits are
/// lower and are up to the caller.
pub const MAX_PASSWORD: usize = 4096;

/// What a verification found. A wrong password is also a finding, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a wrong password is no error: look at `ok`"]
pub struct Verified {
    /// Whether the password is the one that was hashed.
    pub ok: bool,
    /// Whether it is, and the stored hash is older than today's policy: call [`Hasher::rehash`] and store the result,
    /// on condition that the old hash is still stored.
    pub rehash: bool,
}

/// A pool of threads that hash passwords, and the gate in front of it. Clones share both. When the last clone drops, or
/// [`Hasher::stop`] is called, the threads finish the running jobs and end.
#[derive(Clone)]
pub struct Hasher(Arc<Inner>);

/// Shows neither keys nor waiting jobs.
impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

struct Inner {
    gate: Arc<Gate>,
    alive: watch::Receiver<usize>,
    policy: Policy,
    keys: Keys,
    machine: String,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gate.close();
    }
}

impl Hasher {
    /// Starts the threads. Their memory is allocated with the first jobs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let level = settings.level.unwrap_or_else(Level::best);
        Self::start_with(settings, Arc::new(Instant::now), move || Native::new(level))
    }

    pub(crate) fn start_with<K: Kernel>(
        settings: Settings,
        clock: Clock,
        kernel: impl Fn() -> K + Clone + Send + 'static,
    ) -> Result<Self, StartError> {
        let limits = settings.limits()?;
        let threads = limits.threads;
        let machine = machine::fingerprint(threads, settings.level.unwrap_or_else(Level::best));
        let gate = Gate::new(limits, clock);
        if let Some(known) = settings.calibration.filter(|known| known.machine() == machine) {
            gate.know(known.families());
        }
        let alive = pool::start(&gate, threads, settings.nice, kernel).map_err(|error| {
            gate.close();
            StartError::Thread(error)
        })?;
        let (policy, keys) = (settings.policy, settings.keys);
        Ok(Hasher(Arc::new(Inner { gate, alive, policy, keys, machine })))
    }

    /// Verifies whether `password` is the one that `stored` was made from.
    ///
    /// Takes as long as `stored` demands, whatever the answer, with one exception: the programs behind `$wp$`, `$P$`,
    /// `$H$` and Drupal's hashes may have been given another spelling of the password, and the first that matches ends
    /// the search, so a "no" takes up to five times as long as a "yes". (It is the longer one that [`Hasher::work`]
    /// tells, and [`Hasher::even_out`] evens out.) Holds no thread of the caller meanwhile. Dropping the future gives up
    /// the place in the queue.
    ///
    /// # Errors
    /// A [`Refusal`] is no verdict on the password. A verifier that is bound to an account is unsupported here: see
    /// [`Hasher::verify_of`].
    pub async fn verify(&self, who: &FairKey, stored: &Stored, password: &[u8]) -> Result<Verified, Refusal> {
        if stored.keys().any(|(role, _)| role == Role::Binding) {
            return Err(Refusal::Unsupported("bound to an account, which was not named"));
        }
        self.verify_of(who, NOBODY, stored, password).await
    }

    /// As [`Hasher::verify`], for the password of `subject`: also accepts a verifier that is bound to `subject`.
    ///
    /// # Errors
    /// A [`Refusal`] is no verdict on the password.
    pub async fn verify_of(
        &self,
        who: &FairKey,
        subject: Subject<'_>,
        stored: &Stored,
        password: &[u8],
    ) -> Result<Verified, Refusal> {
        admissible(password)?;
        let prepared = stored.prepare(password, subject, &self.0.keys)?;
        let others = stored.spellings(password);
        let ok = match others.is_empty() {
            true => self.accepts(who, prepared).await?,
            false => {
                let others = others.iter().map(|other| stored.prepare(other, subject, &self.0.keys));
                self.accepts_one_of(who, std::iter::once(Ok(prepared)).chain(others)).await?
            }
        };
        // Where the format truncates passwords, the typed text may have a typo beyond the cut: it need not be the
        // password.
        let whole = stored.hears_all_of(password);
        Ok(Verified { ok, rehash: ok && whole && self.0.policy.outdates(stored, &self.0.keys) })
    }

    /// Does the work of [`Hasher::verify`] for a hash of today's policy, and always answers no: for names that do not
    /// exist. Derive `salt` from the name under a secret key, so that a name always takes the same path.
    ///
    /// # Errors
    /// As [`Hasher::verify`].
    pub async fn decoy(&self, who: &FairKey, salt: [u8; SALT_BYTES], password: &[u8]) -> Result<Verified, Refusal> {
        admissible(password)?;
        let draft = Draft::new(self.0.policy.cost, password, salt, (NOBODY, &self.0.keys));
        // Takes the path of a wrong password for a hash of today's policy.
        let check = if self.0.keys.binding().is_some() { Check::Decoy } else { Check::Never };
        self.accepts(who, Prepared { kind: draft.kind, input: draft.input, check }).await?;
        Ok(Verified { ok: false, rehash: false })
    }

    /// Hashes a new password as the policy says, and returns a PHC string. `salt` must be fresh random bytes.
    ///
    /// # Errors
    /// A [`Refusal`]: nothing was hashed. Unsupported where verifiers are bound to accounts: see [`Hasher::hash_of`].
    pub async fn hash(&self, who: &FairKey, password: &[u8], salt: [u8; SALT_BYTES]) -> Result<String, Refusal> {
        self.unbound()?;
        self.hash_of(who, NOBODY, password, salt).await
    }

    /// As [`Hasher::hash`], for the password of `subject`: where a binding key is configured, returns a verifier that
    /// is bound to `subject`.
    ///
    /// # Errors
    /// A [`Refusal`]: nothing was hashed.
    pub async fn hash_of(
        &self,
        who: &FairKey,
        subject: Subject<'_>,
        password: &[u8],
        salt: [u8; SALT_BYTES],
    ) -> Result<String, Refusal> {
        admissible(password)?;
        let draft = Draft::new(self.0.policy.cost, password, salt, (subject, &self.0.keys));
        self.finish(who, draft).await
    }

    /// Hashes a password that was just verified against `stored` as the policy says, but, if `stored` is an Argon2
    /// hash, never at a lower cost: an imported hash may cost more than today's policy and yet have an older version or
    /// pepper.
    ///
    /// # Errors
    /// As [`Hasher::hash`].
    pub async fn rehash(
        &self,
        who: &FairKey,
        stored: &Stored,
        password: &[u8],
        salt: [u8; SALT_BYTES],
    ) -> Result<String, Refusal> {
        self.unbound()?;
        self.rehash_of(who, (NOBODY, stored), password, salt).await
    }

    /// As [`Hasher::rehash`], for the password of a subject, given together with its stored hash.
    ///
    /// # Errors
    /// As [`Hasher::hash_of`].
    pub async fn rehash_of(
        &self,
        who: &FairKey,
        (subject, stored): (Subject<'_>, &Stored),
        password: &[u8],
        salt: [u8; SALT_BYTES],
    ) -> Result<String, Refusal> {
        admissible(password)?;
        let draft = Draft::new(self.0.policy.raise(stored), password, salt, (subject, &self.0.keys));
        self.finish(who, draft).await
    }

    /// Makes a slow hash of a fast digest that another system stored and whose password nobody knows: for imports.
    /// Returns text for [`Stored`].
    ///
    /// # Errors
    /// A [`Refusal`]: nothing was hashed.
    pub async fn wrap(&self, who: &FairKey, digest: &Fast, salt: [u8; SALT_BYTES]) -> Result<String, Refusal> {
        self.finish(who, Draft::wrap(self.0.policy.cost, digest, salt, &self.0.keys)).await
    }

    /// Attaches a worker that computes tags for this pool. `seed` is 32 random bytes, which decide when and with what
    /// the worker is tested. See [`remote`](crate::remote).
    ///
    /// # Errors
    /// Unsupported unless new hashes are bound to their account: the tags of unbound hashes are worth something to the
    /// worker that computes them.
    pub fn attach(&self, who: Introduction, ready: Ready, seed: Zeroizing<[u8; 32]>) -> Result<Link, Refusal> {
        if self.0.keys.binding().is_none() {
            return Err(Refusal::Unsupported("workers need a pepper and a binding key"));
        }
        Ok(self.0.gate.attach((who, ready), seed, Kind::of_policy(self.0.policy.cost)))
    }

    /// Handles jobs that workers are late with. The threads here do so by themselves, except while all of them are busy:
    /// where one job may take them long, call this every few hundredths of a second while there are any workers.
    pub fn look_after_workers(&self) {
        self.0.gate.look_after_workers();
    }

    /// Returns the workers that were found to be wrong since the last call, and how; a worker that hangs up after a lie
    /// is among them. Call this every few hundredths of a second while there are any workers.
    #[must_use = "each is told once"]
    pub fn liars(&self) -> Vec<(Introduction, Lie)> {
        self.0.gate.liars()
    }

    /// Asks nothing more of the workers that `which` selects, and returns their number.
    pub fn dismiss(&self, which: impl Fn(&Introduction) -> bool) -> usize {
        self.0.gate.dismiss(which)
    }

    /// Whether any worker is attached.
    pub fn has_workers(&self) -> bool {
        self.0.gate.has_workers()
    }

    /// The workers that are attached.
    pub fn workers(&self) -> Vec<WorkerState> {
        self.0.gate.workers(Kind::of_policy(self.0.policy.cost))
    }

    /// Hashes of today's policy that the threads here compute per second under load, as far as is known.
    pub fn rate(&self) -> f64 {
        self.0.gate.rate(Kind::of_policy(self.0.policy.cost))
    }

    /// Computes the tag for an ask: the job of a worker.
    ///
    /// # Errors
    /// A [`Refusal`]: the tag was not computed. [`Refusal::Limit`] if the ask's parameters are above, or below, those
    /// that a stored hash may have: a caller could otherwise keep the threads busy for hours.
    pub async fn fill(&self, who: &FairKey, ask: Ask) -> Result<argon2::Tag, Refusal> {
        let kind = Kind::Argon2(argon2::Params { tag_bytes: u32::from(ask.tag_bytes), ..params(ask.cost) });
        limits::kind(&kind).map_err(Refusal::Limit)?;
        self.tag(who, kind, Input::Argon2(ask.h0)).await
    }

    /// What the pool is doing now and has done so far, for metrics and the health page.
    pub fn state(&self) -> State {
        self.0.gate.state(Kind::of_policy(self.0.policy.cost))
    }

    /// How long the threads have run, and have waited for a core.
    pub fn cpu_time(&self) -> CpuTime {
        self.0.gate.meters.read()
    }

    /// Returns when to come back, if a job of today's policy would find this share (of 1.0) of [`Settings::max_wait`]
    /// used up and so had better not begin. Asking first saves what a request costs before it comes to its hash, and a
    /// user who has not begun at all can be held to a smaller share than one who has typed a password. A request that
    /// is told when to come back is counted: do not ask for it again.
    #[must_use = "who is told when to come back was counted as refused"]
    pub fn crowded(&self, who: &FairKey, share: f64) -> Option<Duration> {
        let longest = self.0.gate.max_wait();
        let budget = Duration::try_from_secs_f64(longest.as_secs_f64() * share.clamp(0.0, 1.0)).unwrap_or(longest);
        // Reckons as for sign-ins: with workers, where there are any.
        let reach = if self.0.keys.binding().is_some() { Reach::Anywhere } else { Reach::Here };
        self.0.gate.crowded(who, (Kind::of_policy(self.0.policy.cost), reach), budget)
    }

    /// Announces a job of today's policy that will come in a moment: keep the result until the job is handed in.
    pub fn coming(&self) -> Coming {
        Coming::to(&self.0.gate)
    }

    /// The algorithms and parameters that have run so far, and how many jobs of each run side by side.
    pub fn kinds(&self) -> Vec<KindState> {
        let state = |(family, lanes): (Family, usize)| KindState { name: calibrate::name(family), lanes };
        let mut kinds: Vec<_> = self.0.gate.families().into_iter().map(state).collect();
        kinds.sort_by(|one, other| one.name.cmp(&other.name));
        kinds
    }

    /// The keys that stored hashes may name.
    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The policy of new hashes.
    pub fn policy(&self) -> Policy {
        self.0.policy
    }

    /// Whether `stored` is older than today's policy, so that it would be hashed again once its password is verified.
    pub fn outdates(&self, stored: &Stored) -> bool {
        self.0.policy.outdates(stored, &self.0.keys)
    }

    /// The most work that a verification against `stored` asks of this pool. Numbers of iterations are rounded up, by
    /// an eighth at most: so kinds are few even where each hash has its own number, as in some systems.
    ///
    /// # Errors
    /// As [`Hasher::verify`], without waiting.
    pub fn work(&self, stored: &Stored) -> Result<Work, Refusal> {
        // Some formats take longer the longer the password is.
        let kind = stored.prepare(&[0; MAX_PASSWORD], NOBODY, &self.0.keys)?.kind;
        self.0.gate.fits(kind).map(|()| Work(kind.repeated(stored.tries()).rounded_up()))
    }

    /// Expected time of one such job with a thread to itself.
    pub fn expected(&self, work: Work) -> Duration {
        self.0.gate.expected(work.0)
    }

    /// How much longer to hold back an answer, `elapsed` after the question came, so that its timing reveals neither
    /// the format of a stored hash nor whether there is one.
    ///
    /// A decoy costs as much as a hash of today's policy; while hashes of other formats are stored, names that have one
    /// could be told from names that do not exist. Then all answers to sign-ins should wait: to the next full 50 ms,
    /// and at least twice the time of the most expensive hash there is, today's or one of `others`, and as long as it
    /// takes beside as many others as a thread runs with it under load, but no longer than [`Settings::max_wait`]: a
    /// hash so expensive that everybody would have to wait longer can be told by its time. The caller does the waiting,
    /// and also knows when the last such hash is gone.
    #[must_use = "waiting is the caller's"]
    pub fn even_out(&self, elapsed: Duration, others: &[Work]) -> Duration {
        let today = self.0.gate.longest(Kind::of_policy(self.0.policy.cost));
        let dearest = others.iter().map(|&work| self.0.gate.longest(work.0)).fold(today, Duration::max);
        evening::left(elapsed, dearest.min(self.0.gate.max_wait()))
    }

    /// Finds out how many passwords side by side are best on this machine, for today's policy and for bcrypt, unless
    /// that is known. This takes all threads for about 0.3 s, between real jobs, so call it when the server is ready.
    /// Keep the result for [`Settings::calibration`].
    pub async fn calibrate(&self) -> Calibration {
        // The second kind gets the time that the first leaves.
        let kinds = [Kind::Bcrypt { cost: 5 }, Kind::of_policy(self.0.policy.cost)];
        // An error means that the pool is gone.
        let _ = self.0.gate.measure(&kinds).wait_for(|measuring| !measuring).await;
        self.calibration()
    }

    /// What is known so far about how many passwords side by side are best: from calibration and from work.
    pub fn calibration(&self) -> Calibration {
        Calibration::new(self.0.machine.clone(), self.0.gate.known())
    }

    /// Refuses waiting and new jobs, lets running ones finish, and returns when every thread has ended.
    pub async fn stop(&self) {
        self.0.gate.close();
        // An error means that the last thread has dropped the counter.
        let _ = self.0.alive.clone().wait_for(|&count| count == 0).await;
    }

    async fn finish(&self, who: &FairKey, draft: Draft) -> Result<String, Refusal> {
        let tag = self.tag(who, draft.kind, draft.input).await?;
        Ok(draft.seal.stored(&tag).to_string())
    }

    /// Whether the tag is the right one. Where a worker may compute it, the check proves a yes, and a no is computed
    /// again here: a faulty worker locks nobody out. A throttled caller does not wait for that, but now and then it is
    /// done all the same.
    async fn accepts(&self, who: &FairKey, Prepared { kind, input, check }: Prepared) -> Result<bool, Refusal> {
        let gate = &self.0.gate;
        let copy = match &input {
            Input::Argon2(h0) if check.is_blind() && gate.has_workers() => h0.clone(),
            _ => return Ok(check.accepts(&self.tag(who, kind, input).await?)),
        };
        let Computed { tag, by, .. } = gate.admit_to(Reach::Anywhere, who, (kind, input))?.computed().await?;
        let ok = check.accepts(&tag);
        let Some(worker) = by.filter(|_| !ok) else { return Ok(ok) };
        if who.is_throttled() {
            gate.doubt(worker, who, (kind, copy), tag);
            return Ok(false);
        }
        match self.tag(who, kind, Input::Argon2(copy.clone())).await {
            Ok(own) => {
                gate.refused(worker, !bool::from(own.ct_eq(&tag)));
                Ok(check.accepts(&own))
            }
            Err(refusal) => {
                gate.suspect(worker, who, (kind, copy), tag);
                Err(refusal.unconfirmed())
            }
        }
    }

    /// Whether one of several tags is the right one. All are admitted before any is awaited, or none is: they are one
    /// question, which waits once and began with the first. Where nobody else waits, the budget excludes none of them:
    /// an idle pool takes them in one after the other.
    async fn accepts_one_of(
        &self,
        who: &FairKey,
        spellings: impl Iterator<Item = Result<Prepared, Refusal>>,
    ) -> Result<bool, Refusal> {
        let (mut admitted, mut later) = (VecDeque::new(), VecDeque::new());
        for prepared in spellings {
            let prepared = prepared?;
            let alone = !admitted.is_empty() && self.state().waiting <= admitted.len();
            if !later.is_empty() || alone && self.0.gate.is_full_for(prepared.kind) {
                later.push_back(prepared);
            } else {
                admitted.push_back(self.admitted(who, prepared)?);
            }
        }
        let mut first = None;
        loop {
            // Once one spelling was tried, a guess was made, whatever becomes of the others.
            let told = |refusal: Refusal| if first.is_some() { refusal.unconfirmed() } else { refusal };
            let next = match admitted.pop_front() {
                Some(next) => Some(next),
                None => later.pop_front().map(|next| self.admitted(who, next)).transpose().map_err(told)?,
            };
            let Some((ticket, check)) = next else { break };
            let tag = ticket.answer().await.map_err(told)?;
            first = first.or_else(turn::moment).or_else(|| Some(Instant::now()));
            if check.accepts(&tag) {
                first.into_iter().for_each(turn::begun);
                return Ok(true);
            }
        }
        first.into_iter().for_each(turn::begun);
        Ok(false)
    }

    /// Admits a job; returns its ticket and the check for its tag.
    fn admitted(&self, who: &FairKey, Prepared { kind, input, check }: Prepared) -> Result<(Ticket, Check), Refusal> {
        Ok((self.0.gate.admit(who, kind, input)?, check))
    }

    async fn tag(&self, who: &FairKey, kind: Kind, input: Input) -> Result<Tag, Refusal> {
        self.0.gate.admit(who, kind, input)?.answer().await
    }

    fn unbound(&self) -> Result<(), Refusal> {
        match self.0.keys.binding() {
            None => Ok(()),
            Some(_) => Err(Refusal::Unsupported("verifiers are bound to accounts, and none was named")),
        }
    }

    #[cfg(test)]
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.0.gate
    }
}

/// The subject of hashes that are bound to nobody.
const NOBODY: Subject<'static> = Subject { realm: "", user: "" };

fn admissible(password: &[u8]) -> Result<(), Refusal> {
    if password.len() > MAX_PASSWORD { Err(Refusal::TooLong) } else { Ok(()) }
}
