//! What the outside is told: refusals, and the state of pool and gate.

use std::{fmt, time::Duration};

use crate::{formats::Limit, hasher::MAX_PASSWORD};

/// Why there is no answer about a password. A refusal is never "wrong password".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too much waits already. What waits now will have been answered after `retry_after`.
    Busy {
        /// When to come back. Never at once: no sooner than a batch takes.
        retry_after: Duration,
    },
    /// A worker says that the password is wrong, and it cannot be computed again here, for want of time or memory or for a fault; or one spelling of it
    /// was wrong, and so it is with the next (what programs in PHP stored has several). It was tried, and most likely it is wrong:
    /// whoever counts failures has to count this one, and may say no more than for [`Refusal::Busy`].
    Unconfirmed {
        /// When to come back.
        retry_after: Duration,
    },
    /// The pool was stopped.
    Stopped,
    /// The password has more than [`MAX_PASSWORD`] bytes. It is nobody's; the stored hash may be fine.
    TooLong,
    /// It can never be hashed here, whoever asks and whenever, until the settings are others: the text says why.
    Unsupported(&'static str),
    /// It can never be hashed here, because a parameter of the stored hash, or of the ask, lies outside what is admitted.
    Limit(Limit),
    /// The job died: no memory, or a fault in the kernel.
    Failed,
}

/// When to come back where nobody knows.
const SOON: Duration = Duration::from_secs(1);

impl Refusal {
    /// What it is once something was found out about the password.
    pub(crate) fn unconfirmed(self) -> Self {
        match self {
            Refusal::Busy { retry_after } => Refusal::Unconfirmed { retry_after },
            // A guess that counts for nothing where memory is short is one without end.
            Refusal::Failed => Refusal::Unconfirmed { retry_after: SOON },
            other => other,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy { retry_after } => write!(f, "too many passwords wait; come back in {retry_after:?}"),
            Refusal::Unconfirmed { retry_after } => {
                write!(f, "the password could not be compared to the end; come back in {retry_after:?}")
            }
            Refusal::Stopped => f.write_str("password hashing was stopped"),
            Refusal::TooLong => write!(f, "the password has more than {MAX_PASSWORD} bytes"),
            Refusal::Unsupported(why) => write!(f, "not possible here: {why}"),
            Refusal::Limit(limit) => write!(f, "not possible here: {limit}"),
            Refusal::Failed => f.write_str("password hashing failed"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What the pool does at this moment, and has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that run: the lanes in use over all threads.
    pub running: usize,
    /// When a job of a newcomer would begin if all that waits went before it.
    pub expected_wait: Duration,
    /// Jobs refused as busy, with those that were not handed in because they would have been: see
    /// [`Hasher::crowded`](crate::Hasher::crowded).
    pub refused_total: u64,
    /// Those who were held to a smaller share of the budget, and told that it is used up.
    pub turned_away_total: u64,
    /// Hashes that were computed, with those that test workers.
    pub done_total: u64,
    /// Jobs that came to no hash: the system gave no memory, or a kernel broke down.
    pub failed_total: u64,
    /// Those that workers computed, which [`State::done_total`] counts, too.
    pub remote_total: u64,
    /// Batches in which they were computed: `(done_total - remote_total) / batches_total` is how many ran side by side.
    pub batches_total: u64,
    /// Jobs whose caller went away before they were begun: while they waited, or while a worker had
    /// them that did not do them.
    pub withdrawn_total: u64,
    /// Threads that hash.
    pub threads: usize,
    /// How often one of them died outside of a job, which no password causes, and was put back to work. What it ran was
    /// answered with [`Refusal::Failed`].
    pub faults_total: u64,
    /// Expected time of one hash of today's policy that has a thread to itself.
    pub mean_cost: Duration,
    /// How many hashes of today's policy a thread runs side by side under load.
    pub lanes: usize,
    /// Memory that the threads hold, in bytes.
    pub memory: u64,
}

/// What is known of jobs with one algorithm and one set of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindState {
    /// Algorithm and parameters; of what has no lanes, numbers of rounds are rounded up to one of few.
    pub name: String,
    /// How many a thread runs side by side under load.
    pub lanes: usize,
}
