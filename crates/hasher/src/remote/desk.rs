//! All workers: those that are here, and what those that have left said.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use super::{
    state::{Counts, Introduction, Lie},
    worker::Remote,
};
use crate::job::Kind;

/// How long a worker that has left is remembered, longer than anything waits here: it can still be found to have been
/// wrong, and is known to have left something undone.
const REMEMBERED_FOR: Duration = Duration::from_secs(120);
/// How many workers that have left are remembered, and how many of one key: beyond that, a worker that comes back is
/// asked nothing until one is forgotten. With enough connections its answers could be forgotten before they are found
/// wrong.
const MOST_REMEMBERED: (usize, usize) = (128, 24);

/// Most keys whose counts are remembered: only enrolled workers come here.
const MOST_KEYS: usize = 4096;

/// All workers that are here, by number.
#[derive(Default)]
pub(crate) struct Desk {
    pub(crate) remotes: BTreeMap<u64, Remote>,
    /// Workers that have left: what they said last may still turn out to be wrong.
    left: VecDeque<(u64, Remote, Instant)>,
    /// Counts of connections that have ended and are forgotten, by key.
    past: BTreeMap<[u8; 32], Counts>,
    last: u64,
}

impl Desk {
    /// A worker has come. If it left asks undone before, it has to prove itself first: with each new connection it
    /// could otherwise have callers admitted whose passwords it does not look at.
    pub(crate) fn add(&mut self, mut remote: Remote) -> u64 {
        let recently = |then: &Instant| remote.since.saturating_duration_since(*then) < REMEMBERED_FOR;
        let same = self.left.iter().filter(|(_, left, then)| left.who.key == remote.who.key && recently(then));
        let same: Vec<_> = same.map(|(_, left, then)| (left.owes(), *then)).collect();
        let beside = self.remotes.values().any(|other| other.who.key == remote.who.key && other.is_on_trial());
        if beside || same.iter().any(|(owes, _)| *owes) {
            remote.has_to_prove_itself();
        }
        if same.len() >= MOST_REMEMBERED.1 {
            same.first().into_iter().for_each(|(_, then)| remote.rests(*then + REMEMBERED_FOR));
        }
        self.last += 1;
        self.remotes.insert(self.last, remote);
        self.last
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<&mut Remote> {
        self.remotes.get_mut(&number)
    }

    /// A worker that is or was here, to be judged by what it said.
    pub(crate) fn heard(&mut self, number: u64) -> Option<&mut Remote> {
        let left = self.left.iter_mut().find(|(left, ..)| *left == number).map(|(_, remote, _)| remote);
        self.remotes.get_mut(&number).or(left)
    }

    /// A worker has left and holds nothing any more. A worker that was asked nothing said nothing.
    pub(crate) fn leave(&mut self, number: u64, remote: Remote, now: Instant) {
        if !remote.was_asked() {
            return self.forget(&remote);
        }
        if self.left.len() == MOST_REMEMBERED.0
            && let Some((_, first, _)) = self.left.pop_front()
        {
            self.forget(&first);
        }
        self.left.push_back((number, remote, now));
    }

    /// Keeps only the counts of a worker about which nothing more will be found out.
    fn forget(&mut self, remote: &Remote) {
        if self.past.len() < MOST_KEYS || self.past.contains_key(&remote.who.key) {
            let past = self.past.entry(remote.who.key).or_default();
            *past = past.and(remote.counts);
        }
    }

    /// The counts of the connections of this key that have ended.
    pub(crate) fn past(&self, key: &[u8; 32]) -> Counts {
        let of_left =
            self.left.iter().filter(|(_, remote, _)| remote.who.key == *key).map(|(_, remote, _)| remote.counts);
        of_left.fold(self.past.get(key).copied().unwrap_or_default(), Counts::and)
    }

    /// The workers that were found to be wrong since the last call, whether they are still here or not.
    pub(crate) fn liars(&mut self, now: Instant) -> Vec<(Introduction, Lie)> {
        let left = self.left.iter_mut().map(|(_, remote, _)| remote);
        let all = self.remotes.values_mut().chain(left);
        let liars = all.filter_map(|remote| Some((remote.who.clone(), remote.take_lie()?))).collect();
        // They are in the order in which they left.
        while let Some((_, remote, _)) =
            self.left.pop_front_if(|(.., then)| now.saturating_duration_since(*then) >= REMEMBERED_FOR)
        {
            self.forget(&remote);
        }
        liars
    }

    /// How many asks all workers hold.
    pub(crate) fn holding(&self) -> usize {
        self.remotes.values().map(Remote::holding).sum()
    }

    /// The worker, other than `but`, that would answer one more of this kind first, and after how many nanoseconds.
    pub(crate) fn first(&self, kind: Kind, but: Option<u64>, now: Instant) -> Option<(u64, f64)> {
        let able = self.remotes.iter().filter(|(number, remote)| Some(**number) != but && remote.takes(kind, now));
        able.map(|(number, remote)| (*number, remote.finish(kind))).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What the workers that are reckoned with have to give for jobs of this kind: see [`Remote::flow`].
    pub(crate) fn flows(&self, kind: Kind, unit: f64, now: Instant) -> Vec<(f64, f64)> {
        let able = self.remotes.values().filter(|remote| remote.is_reckoned_with(kind, now));
        able.map(|remote| remote.flow(kind, unit)).collect()
    }

    /// Memory of the largest hash that a worker which is reckoned with may be asked for, in KiB.
    pub(crate) fn most_memory(&self, now: Instant) -> Option<u64> {
        self.remotes.values().filter(|remote| remote.may_count(now)).map(Remote::memory).max()
    }
}
