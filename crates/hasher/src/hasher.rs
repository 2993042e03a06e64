//! The whole: verify, hash, and pretend to verify, through the gate.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::{
    arena::{Arena, Kernel},
    fair::FairKey,
    gate::{Gate, Refusal, State},
    job::{Input, Kind, Tag},
    pepper::Pepper,
    phc::{Argon2Hash, Stored},
    policy::{Cost, Policy, SALT_BYTES, TAG_BYTES},
    pool,
    settings::{Settings, StartError},
};

/// Longest password that is looked at, in bytes; a longer one is refused as unsupported. Sane limits are lower and
/// belong to the caller.
pub const MAX_PASSWORD: usize = 4096;

/// What a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The password is the one that was hashed.
    pub ok: bool,
    /// It is, and the stored hash is older than today's policy: [`Hasher::rehash`] and store the result, guarded by
    /// the old hash still being there.
    pub rehash: bool,
}

/// A pool of threads that hash passwords, and the gate before it. Clones share both; when the last clone drops, or
/// [`Hasher::stop`] is called, the threads finish what runs and end.
#[derive(Clone)]
pub struct Hasher(Arc<Inner>);

struct Inner {
    gate: Arc<Gate>,
    alive: watch::Receiver<usize>,
    policy: Policy,
    peppers: Vec<Pepper>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gate.close();
    }
}

impl Hasher {
    /// Starts the threads. Their memory comes with the first jobs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        Self::start_with(settings, Arena::default)
    }

    pub(crate) fn start_with<K: Kernel>(
        settings: Settings,
        kernel: impl Fn() -> K + Clone + Send + 'static,
    ) -> Result<Self, StartError> {
        let limits = settings.limits()?;
        let threads = limits.threads;
        let gate = Gate::new(limits);
        let alive = pool::start(&gate, threads, settings.nice, kernel).map_err(|error| {
            gate.close();
            StartError::Thread(error)
        })?;
        Ok(Hasher(Arc::new(Inner { gate, alive, policy: settings.policy, peppers: settings.peppers })))
    }

    /// Is `password` the one that `stored` was made of?
    ///
    /// Takes as long as `stored` demands, whatever the answer; holds no thread of the caller meanwhile. Dropping the
    /// future gives up a place in the queue.
    ///
    /// # Errors
    /// A [`Refusal`] says nothing about the password.
    pub async fn verify(&self, key: &FairKey, stored: &Stored, password: &[u8]) -> Result<Verified, Refusal> {
        let Stored::Argon2(hash) = stored;
        let ok = self.matches(key, hash, password).await?;
        Ok(Verified { ok, rehash: ok && self.0.policy.outdates(hash, self.pepper().map(Pepper::id)) })
    }

    /// Does what [`Hasher::verify`] does for a hash of today's policy, and always answers no: for names that do not
    /// exist. `salt` should follow from the name under a secret key, so that the name always takes the same path.
    ///
    /// # Errors
    /// As [`Hasher::verify`].
    pub async fn decoy(&self, key: &FairKey, salt: [u8; SALT_BYTES], password: &[u8]) -> Result<Verified, Refusal> {
        let id = self.pepper().map(Pepper::id);
        let hash = Argon2Hash::new(self.0.policy.cost, id, salt.to_vec(), vec![0; TAG_BYTES]);
        self.matches(key, &hash, password).await.map(|_| Verified { ok: false, rehash: false })
    }

    /// Hashes a new password as the policy says; the answer is a PHC string. `salt` must be fresh random bytes.
    ///
    /// # Errors
    /// A [`Refusal`]: nothing was hashed.
    pub async fn hash(&self, key: &FairKey, password: &[u8], salt: [u8; SALT_BYTES]) -> Result<String, Refusal> {
        self.hash_at(self.0.policy.cost, key, password, salt).await
    }

    /// Hashes a password that was just verified against `stored` as the policy says, but never at a lower cost than
    /// `stored` has: an imported hash may be dearer than today's policy and yet of an older version or pepper.
    ///
    /// # Errors
    /// As [`Hasher::hash`].
    pub async fn rehash(
        &self,
        key: &FairKey,
        stored: &Stored,
        password: &[u8],
        salt: [u8; SALT_BYTES],
    ) -> Result<String, Refusal> {
        let Stored::Argon2(hash) = stored;
        self.hash_at(self.0.policy.raise(hash), key, password, salt).await
    }

    /// What the pool does now and has done, for metrics and the health page.
    pub fn state(&self) -> State {
        self.0.gate.state(Kind::of(&Argon2Hash::new(self.0.policy.cost, None, Vec::new(), Vec::new())))
    }

    /// The policy of new hashes.
    pub fn policy(&self) -> Policy {
        self.0.policy
    }

    /// Refuses what waits and what comes, lets what runs finish, and returns when every thread has ended.
    pub async fn stop(&self) {
        self.0.gate.close();
        // An error means that the last thread took the counter with it.
        let _ = self.0.alive.clone().wait_for(|&count| count == 0).await;
    }

    async fn hash_at(
        &self,
        cost: Cost,
        key: &FairKey,
        password: &[u8],
        salt: [u8; SALT_BYTES],
    ) -> Result<String, Refusal> {
        let id = self.pepper().map(Pepper::id);
        let blank = Argon2Hash::new(cost, id, salt.to_vec(), vec![0; TAG_BYTES]);
        let tag = self.tag(key, &blank, password).await?;
        Ok(Argon2Hash::new(cost, id, salt.to_vec(), tag.to_vec()).to_string())
    }

    async fn matches(&self, key: &FairKey, hash: &Argon2Hash, password: &[u8]) -> Result<bool, Refusal> {
        let tag = self.tag(key, hash, password).await?;
        Ok(tag.ct_eq(hash.tag()).into())
    }

    /// The tag of `password` with everything else as in `hash`.
    async fn tag(&self, key: &FairKey, hash: &Argon2Hash, password: &[u8]) -> Result<Tag, Refusal> {
        if password.len() > MAX_PASSWORD {
            return Err(Refusal::Unsupported("longer than any password"));
        }
        let known = |id| self.0.peppers.iter().find(|pepper| pepper.id() == id).cloned();
        let pepper = match hash.key_id() {
            None => None,
            Some(id) => Some(known(id).ok_or(Refusal::Unsupported("made with a pepper that is not configured"))?),
        };
        let password = Zeroizing::new(password.to_vec());
        let input = Input { password, salt: hash.salt().to_vec(), pepper, tag: hash.tag().len() };
        self.0.gate.admit(key, Kind::of(hash), input)?.answer().await
    }

    /// The pepper for new hashes.
    fn pepper(&self) -> Option<&Pepper> {
        self.0.peppers.first()
    }
}
