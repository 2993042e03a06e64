//! One password to hash: what goes in, what comes out, and what kind of work it is.

use std::time::Instant;

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::{
    argon2::{Algorithm, Cost, H0, Params, Version},
    bcrypt,
    cost::{ARGON2_TOGETHER, MAX_TOGETHER},
    fair::FairKey,
    formats::serial::Serial,
    policy::TAG_BYTES,
    state::Refusal,
};

/// Jobs of one kind differ only in their bytes: they take the same time and the same memory, and one kernel can run
/// them side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// One fill from H0 to tag.
    Argon2(Params),
    /// bcrypt, at 2^cost rounds.
    Bcrypt {
        /// The logarithm of the rounds.
        cost: u32,
    },
    /// Algorithms that have no kernel for several jobs at once.
    Serial(Serial),
}

/// The work that one stored hash asks of the pool: equal for hashes that take the same time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work(pub(crate) Kind);

impl From<Kind> for Work {
    fn from(kind: Kind) -> Self {
        Work(kind)
    }
}

impl Kind {
    /// The kind of new hashes at this cost.
    pub(crate) fn of_policy(cost: Cost) -> Self {
        let (algorithm, version, tag_bytes) = (Algorithm::Argon2id, Version::V19, TAG_BYTES as u32);
        Kind::Argon2(Params { algorithm, version, cost, tag_bytes })
    }

    /// A kind that takes as long as `times` jobs of this one, where a password may be tried in several spellings.
    pub(crate) fn repeated(self, times: u32) -> Self {
        match self {
            Kind::Bcrypt { cost } => Kind::Bcrypt { cost: cost + times.next_power_of_two().trailing_zeros() },
            Kind::Serial(Serial::Chain { digest, rounds, blocks }) => {
                Kind::Serial(Serial::Chain { digest, rounds: rounds.saturating_mul(times), blocks })
            }
            other => other,
        }
    }

    /// A kind, one of few, that takes as long as this one, or up to an eighth longer.
    pub(crate) fn rounded_up(self) -> Self {
        match self {
            Kind::Serial(serial) => Kind::Serial(serial.rounded_up()),
            other => other,
        }
    }

    /// Memory that one job needs, in KiB.
    pub(crate) fn memory(self) -> u64 {
        match self {
            Kind::Argon2(params) => u64::from(params.cost.memory()),
            // A state is 4 KiB and lies on the stack.
            Kind::Bcrypt { .. } => 0,
            Kind::Serial(serial) => serial.memory(),
        }
    }

    /// What a thread that keeps `kept` KiB holds while it runs `size` jobs, in KiB. Argon2 works in the kept memory;
    /// the others allocate beside it and free that at the end.
    pub(crate) fn holds(self, size: usize, kept: u64) -> u64 {
        let need = self.memory().saturating_mul(size as u64);
        match self {
            Kind::Argon2(_) => kept.max(need),
            Kind::Bcrypt { .. } | Kind::Serial(_) => kept.saturating_add(need),
        }
    }

    /// Most jobs that the kernel runs side by side.
    pub(crate) fn most_together(self) -> usize {
        match self {
            Kind::Argon2(_) => ARGON2_TOGETHER,
            Kind::Bcrypt { .. } => MAX_TOGETHER,
            Kind::Serial(_) => 1,
        }
    }

    /// How much there is to compute, in units that take about equally long throughout a family.
    pub(crate) fn work(self) -> f64 {
        match self {
            Kind::Argon2(params) => params.cost.blocks() as f64,
            Kind::Bcrypt { cost } => f64::from(cost).exp2(),
            Kind::Serial(serial) => serial.work() as f64,
        }
    }
}

/// The bytes that a tag depends on. Wiped when dropped.
pub(crate) enum Input {
    /// The pre-hash, from which alone the fill starts.
    Argon2(H0),
    /// Key, salt and flavor.
    Bcrypt(bcrypt::Job),
    /// Password and salt.
    Serial { password: Zeroizing<Vec<u8>>, salt: Vec<u8> },
}

/// The tag of one input.
pub(crate) type Tag = Zeroizing<Vec<u8>>;

/// Where a tag may be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// On this machine only.
    Here,
    /// On a worker, too.
    Anywhere,
}

/// A tag, the worker that computed it, if one did, and when its batch began.
pub(crate) struct Computed {
    pub(crate) tag: Tag,
    pub(crate) by: Option<u64>,
    pub(crate) begun: Instant,
}

/// Who or what waits for a tag.
pub(crate) enum Reply {
    /// A caller.
    Caller(oneshot::Sender<Result<Computed, Refusal>>),
    /// A check of a worker: the tag tells whether the worker's answer to this canary is right.
    Canary {
        /// The worker.
        link: u64,
        /// The canary.
        id: u64,
    },
}

/// A tag to compute, and where to send it.
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) input: Input,
    pub(crate) reply: Reply,
    pub(crate) reach: Reach,
    /// On whose behalf the tag is computed.
    pub(crate) key: FairKey,
    /// Its place in the queue.
    pub(crate) id: u64,
    /// Whether a worker has already failed to compute it.
    pub(crate) failed: bool,
}

impl Job {
    /// Whether anybody still waits for the tag.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.reply {
            Reply::Caller(reply) => !reply.is_closed(),
            Reply::Canary { .. } => true,
        }
    }

    /// Whether a caller asked for it.
    fn is_somebodys(&self) -> bool {
        matches!(self.reply, Reply::Caller(_))
    }

    /// A job that tells whether a worker's answer to its canary of this number is right.
    pub(crate) fn canary((link, id): (u64, u64), (kind, h0): (Kind, H0), key: FairKey) -> Self {
        let (input, reply) = (Input::Argon2(h0), Reply::Canary { link, id });
        Job { kind, input, reply, reach: Reach::Here, key, id: 0, failed: false }
    }
}

/// How many of these jobs callers asked for.
pub(crate) fn somebodys(jobs: &[Job]) -> u64 {
    jobs.iter().filter(|job| job.is_somebodys()).count() as u64
}
