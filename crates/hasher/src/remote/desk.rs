//! All workers: who is here, and what those said who have left.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use super::{
    state::{Counts, Introduction, Lie},
    worker::Remote,
};
use crate::job::Kind;

/// For how long one that has left can still be found to have been wrong, longer than anything waits here, and is known to have
/// left something.
const REMEMBERED_FOR: Duration = Duration::from_secs(120);
/// Of how many that have left that is so, and of how many of one key: one of those that comes back is asked nothing until then. With
/// enough connections it could have what it said forgotten before that is found to be wrong.
const MOST_REMEMBERED: (usize, usize) = (128, 24);

/// Keys of which it is remembered what was counted: only who was enrolled comes here.
const MOST_KEYS: usize = 4096;

/// All workers that are here, by number.
#[derive(Default)]
pub(crate) struct Desk {
    pub(crate) remotes: BTreeMap<u64, Remote>,
    /// Those that have left: what they said last may still turn out to be wrong.
    left: VecDeque<(u64, Remote, Instant)>,
    /// What was counted of connections that have ended and are forgotten, by key.
    past: BTreeMap<[u8; 32], Counts>,
    last: u64,
}

impl Desk {
    /// One has come. Whoever left something of what it was asked, and comes back, has to show that it is good for something:
    /// with each connection it could have people let in whose passwords it does not look at.
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

    /// One that is here or was, to be judged by what it said.
    pub(crate) fn heard(&mut self, number: u64) -> Option<&mut Remote> {
        let left = self.left.iter_mut().find(|(left, ..)| *left == number).map(|(_, remote, _)| remote);
        self.remotes.get_mut(&number).or(left)
    }

    /// It has left, with nothing in its hands any more. One that was asked nothing said nothing.
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

    /// Nothing is found out about it any more: what was counted is all there is.
    fn forget(&mut self, remote: &Remote) {
        if self.past.len() < MOST_KEYS || self.past.contains_key(&remote.who.key) {
            let past = self.past.entry(remote.who.key).or_default();
            *past = past.and(remote.counts);
        }
    }

    /// What was counted of the connections of this key that have ended.
    pub(crate) fn past(&self, key: &[u8; 32]) -> Counts {
        let of_left =
            self.left.iter().filter(|(_, remote, _)| remote.who.key == *key).map(|(_, remote, _)| remote.counts);
        of_left.fold(self.past.get(key).copied().unwrap_or_default(), Counts::and)
    }

    /// Those that were found to be wrong since this was asked last, whether they are here or not.
    pub(crate) fn liars(&mut self, now: Instant) -> Vec<(Introduction, Lie)> {
        let left = self.left.iter_mut().map(|(_, remote, _)| remote);
        let all = self.remotes.values_mut().chain(left);
        let liars = all.filter_map(|remote| Some((remote.who.clone(), remote.take_lie()?))).collect();
        // In the order in which they left.
        while let Some((_, remote, _)) =
            self.left.pop_front_if(|(.., then)| now.saturating_duration_since(*then) >= REMEMBERED_FOR)
        {
            self.forget(&remote);
        }
        liars
    }

    /// Who would have answered one more of this kind first, but for one, and after how many nanoseconds.
    pub(crate) fn first(&self, kind: Kind, but: Option<u64>, now: Instant) -> Option<(u64, f64)> {
        let able = self.remotes.iter().filter(|(number, remote)| Some(**number) != but && remote.takes(kind, now));
        able.map(|(number, remote)| (*number, remote.finish(kind))).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What those have to give for jobs of this kind that may be reckoned with: see [`Remote::flow`].
    pub(crate) fn flows(&self, kind: Kind, unit: f64, now: Instant) -> Vec<(f64, f64)> {
        let able = self.remotes.values().filter(|remote| remote.is_reckoned_with(kind, now));
        able.map(|remote| remote.flow(kind, unit)).collect()
    }

    /// The dearest hash of which one of those may be asked that may be reckoned with, in KiB.
    pub(crate) fn most_memory(&self, now: Instant) -> Option<u64> {
        self.remotes.values().filter(|remote| remote.may_count(now)).map(Remote::memory).max()
    }
}
