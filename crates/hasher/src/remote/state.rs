//! What callers are told about workers.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use super::frame::Ready;

/// The name that people give a worker. All clones change together: a rename shows wherever the name is displayed.
#[derive(Clone, Debug)]
pub struct Name(Arc<RwLock<String>>);

impl Name {
    /// Changes the name, in all its clones.
    pub fn change(&self, name: &str) {
        name.clone_into(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Name(Arc::new(RwLock::new(name.to_owned())))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        // Never holds both locks at once: they may be the same lock.
        self.to_string() == other.to_string()
    }
}
impl Eq for Name {}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0.read().unwrap_or_else(PoisonError::into_inner) == *other
    }
}

/// Who a worker is, according to the code that let it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// What identifies the worker: the hash of its public key.
    pub key: [u8; 32],
    /// The name that people give it.
    pub name: Name,
    /// The address from which it connected.
    pub address: String,
}

/// How a worker was found to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lie {
    /// Its tag for a canary differed from the tag that was computed here.
    Canary,
    /// It refused a password with a tag that differed from the one that was computed here.
    Refusal,
    /// Its tag had another length than was asked for.
    Length,
}

impl Lie {
    /// The lie in a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Lie::Canary => "it gave a wrong answer to a test whose answer is known",
            Lie::Refusal => "it gave a wrong answer for a password, which was computed again here",
            Lie::Length => "it gave an answer of a wrong length",
        }
    }
}

/// Why a worker is asked nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parted {
    /// It was wrong.
    Lied(Lie),
    /// It held asks for far too long.
    Silent,
    /// The caller dismissed it.
    Dismissed,
    /// Hashing was stopped.
    Stopped,
}

/// What a worker is doing now, and has done since it came.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Who it is.
    pub who: Introduction,
    /// How long it has been here.
    pub here: Duration,
    /// What it said that it can do.
    pub ready: Ready,
    /// Asks that it holds now.
    pub holding: usize,
    /// Hashes of today's policy that it computes per second, as far as is known.
    pub rate: f64,
    /// The part of that rate for which callers are admitted: zero while it is late, rests, stops, has to prove itself
    /// or was sent away; until its speed was measured, no more than its threads would compute at the pace of those
    /// here.
    pub reckoned: f64,
    /// Moving mean of the time from an ask to its answer.
    pub latency: Duration,
    /// Whether it gets no new asks until it has answered the late ones.
    pub doubtful: bool,
    /// Why it is asked nothing more.
    pub parted: Option<Parted>,
    /// What it has done.
    pub counts: Counts,
    /// Counts of the connections of the same key that have ended.
    pub before: Counts,
}

/// What a worker has done since it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Asks that it was sent, including canaries.
    pub asked: u64,
    /// Tags that came back and were wanted.
    pub answered: u64,
    /// Tags that did not match what is stored.
    pub refusals: u64,
    /// Canaries that it answered with the right tag.
    pub canaries: u64,
    /// Wrong tags.
    pub lies: u64,
    /// Asks that it did not compute.
    pub failed: u64,
    /// Asks that were also computed here because they were late.
    pub hedged: u64,
    /// Answers that came when nobody waited for them any more.
    pub late: u64,
    /// Answers to asks that were answered already.
    pub duplicate: u64,
    /// Answers to asks that were never sent.
    pub unknown: u64,
}

impl Counts {
    /// The sum of both.
    #[must_use]
    pub(crate) fn and(self, other: Counts) -> Counts {
        Counts {
            asked: self.asked + other.asked,
            answered: self.answered + other.answered,
            refusals: self.refusals + other.refusals,
            canaries: self.canaries + other.canaries,
            lies: self.lies + other.lies,
            failed: self.failed + other.failed,
            hedged: self.hedged + other.hedged,
            late: self.late + other.late,
            duplicate: self.duplicate + other.duplicate,
            unknown: self.unknown + other.unknown,
        }
    }
}
