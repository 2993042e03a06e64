//! What the outside is told of workers.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use super::frame::Ready;

/// What people call a worker. All copies change together: whoever renames one that is here renames it wherever it is told of.
#[derive(Clone, Debug)]
pub struct Name(Arc<RwLock<String>>);

impl Name {
    /// It is called something else from now on.
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
        // Never both locks at once: they may be the same one.
        self.to_string() == other.to_string()
    }
}
impl Eq for Name {}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0.read().unwrap_or_else(PoisonError::into_inner) == *other
    }
}

/// Who a worker is, as whoever let it in knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// What it is known by: the hash of its public key.
    pub key: [u8; 32],
    /// What people call it.
    pub name: Name,
    /// Where it calls from.
    pub address: String,
}

/// How a worker was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lie {
    /// Its tag for a canary was not the one that was computed here.
    Canary,
    /// It refused a password with a tag that was not the one that was computed here.
    Refusal,
    /// Its tag had another length than was asked for.
    Length,
}

impl Lie {
    /// In a sentence.
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
    /// Somebody said so.
    Dismissed,
    /// Hashing was stopped.
    Stopped,
}

/// What a worker does and has done since it came.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Who it is.
    pub who: Introduction,
    /// For how long it has been here.
    pub here: Duration,
    /// What it said it is good for.
    pub ready: Ready,
    /// Asks that it holds now.
    pub holding: usize,
    /// Hashes a second of today's policy, as far as is known.
    pub rate: f64,
    /// Those of them that people are let in for: none while it is late, rests, stops, has to prove itself or was sent away; of one
    /// whose speed was not measured yet no more than its threads would compute at the pace of those here.
    pub reckoned: f64,
    /// Moving mean of the time from an ask to its answer.
    pub latency: Duration,
    /// Whether it gets nothing new until it has answered what is late.
    pub doubtful: bool,
    /// Why it is asked nothing more.
    pub parted: Option<Parted>,
    /// What it has done.
    pub counts: Counts,
    /// What was done over connections of the same key that have ended.
    pub before: Counts,
}

/// What a worker has done since it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Asks, canaries among them.
    pub asked: u64,
    /// Tags that came back and were wanted.
    pub answered: u64,
    /// Tags that did not match what is stored.
    pub refusals: u64,
    /// Canaries whose tag was the right one.
    pub canaries: u64,
    /// Wrong tags.
    pub lies: u64,
    /// Asks that it did not compute.
    pub failed: u64,
    /// Asks that were computed here as well, because they were late.
    pub hedged: u64,
    /// Answers that came when nobody waited for them any more.
    pub late: u64,
    /// Answers that were given a second time.
    pub duplicate: u64,
    /// Answers to what was never asked.
    pub unknown: u64,
}

impl Counts {
    /// All of both.
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
