//! What callers are told: refusals, and the state of the pool and the gate.

use std::{fmt, time::Duration};

use crate::{formats::Limit, hasher::MAX_PASSWORD};

/// Why there is no answer about a password. A refusal never means "wrong password".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too much waits already. After `retry_after`, the jobs that wait now will have begun.
    Busy {
        /// When to come back. Never zero: at least the time that a batch takes.
        retry_after: Duration,
    },
    /// A guess was made and is most likely wrong, but nothing confirms it. Either a worker says that the password is
    /// wrong, and it cannot be computed again here for want of time or memory or for a fault; or one spelling was
    /// wrong, and the next meets that (passwords from PHP programs have several). A caller that counts failures has to
    /// count this one, and may tell the user no more than for [`Refusal::Busy`].
    Unconfirmed {
        /// When to come back.
        retry_after: Duration,
    },
    /// The caller went away while the job waited ([`caller`](crate::caller)): nothing was hashed.
    Withdrawn,
    /// The pool was stopped.
    Stopped,
    /// The password has more than [`MAX_PASSWORD`] bytes. Nobody has such a password; the stored hash may be fine.
    TooLong,
    /// The hash can never be computed here, whoever asks and whenever, unless the settings change: the text says why.
    Unsupported(&'static str),
    /// The hash can never be computed here: a parameter of the stored hash, or of the ask, lies outside the limits.
    Limit(Limit),
    /// The job failed: no memory, or a fault in the kernel.
    Failed,
}

/// When to come back if nothing tells.
const SOON: Duration = Duration::from_secs(1);

impl Refusal {
    /// What the refusal becomes once a guess at the password was made.
    pub(crate) fn unconfirmed(self) -> Self {
        match self {
            Refusal::Busy { retry_after } => Refusal::Unconfirmed { retry_after },
            // If guesses counted for nothing where memory is short, there would be no end of them.
            Refusal::Failed => Refusal::Unconfirmed { retry_after: SOON },
            other => other,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy { retry_after } => write!(f, "too many passwords are waiting; try again in {retry_after:?}"),
            Refusal::Unconfirmed { retry_after } => {
                write!(f, "the check of the password could not be completed; try again in {retry_after:?}")
            }
            Refusal::Withdrawn => f.write_str("the caller went away"),
            Refusal::Stopped => f.write_str("password hashing was stopped"),
            Refusal::TooLong => write!(f, "the password has more than {MAX_PASSWORD} bytes"),
            Refusal::Unsupported(why) => write!(f, "not possible here: {why}"),
            Refusal::Limit(limit) => write!(f, "not possible here: {limit}"),
            Refusal::Failed => f.write_str("password hashing failed"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What the pool is doing at this moment, and has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that run: the lanes in use over all threads.
    pub running: usize,
    /// Jobs that workers hold, those that test them included. A late one is also among those that wait or run here.
    pub with_workers: usize,
    /// When a newcomer's job would begin if all waiting jobs went before it.
    pub expected_wait: Duration,
    /// Jobs refused as busy, including those that were not handed in because they would have been: see
    /// [`Hasher::crowded`](crate::Hasher::crowded).
    pub refused_total: u64,
    /// Requests that were held to a smaller share of the budget, and told that it is used up.
    pub turned_away_total: u64,
    /// Hashes that were computed, including those that test workers.
    pub done_total: u64,
    /// Jobs that produced no hash: the system gave no memory, or a kernel failed.
    pub failed_total: u64,
    /// Hashes that workers computed, which [`State::done_total`] counts, too.
    pub remote_total: u64,
    /// Batches on this machine: `(done_total - remote_total) / batches_total` is how many hashes ran side by side.
    pub batches_total: u64,
    /// Jobs whose caller went away before they began: while they waited, or while they were with a worker that did not
    /// do them.
    pub withdrawn_total: u64,
    /// Threads that hash.
    pub threads: usize,
    /// How often a thread died outside of a job, which no password causes, and was put back to work. The jobs that it
    /// ran were answered with [`Refusal::Failed`].
    pub faults_total: u64,
    /// Expected time of one hash of today's policy with a thread to itself.
    pub mean_cost: Duration,
    /// How many hashes of today's policy a thread runs side by side under load.
    pub lanes: usize,
    /// Memory that the threads hold, in bytes.
    pub memory: u64,
}

/// What is known about jobs with one algorithm and one set of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindState {
    /// Algorithm and parameters. Numbers of rounds of kinds without lanes are rounded up to one of few.
    pub name: String,
    /// How many jobs a thread runs side by side under load.
    pub lanes: usize,
}
