//! The jobs that wait: in fair order, and counted by kind.

use std::collections::HashMap;

use crate::{
    fair::{Fair, FairKey},
    job::{Job, Kind},
};

/// What waits.
pub(crate) struct Queue {
    fair: Fair<Job>,
    kinds: HashMap<Kind, usize>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Queue { fair: Fair::new(), kinds: HashMap::new() }
    }
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.fair.len()
    }
    /// How many of this kind wait.
    pub(crate) fn alike(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }
    /// The kinds that wait, and how many of each.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Kind, usize)> {
        self.kinds.iter().map(|(kind, count)| (*kind, *count))
    }
    /// The number and the kind of the job whose turn it is.
    pub(crate) fn first(&self) -> Option<(u64, Kind)> {
        self.fair.peek().map(|(id, job)| (id, job.kind))
    }
    /// The kind of the job among those that `may` go whose turn comes next.
    pub(crate) fn next_of(&self, may: impl Fn(Kind) -> bool) -> Option<Kind> {
        // Where there is none at all, nobody has to search the queue for it.
        self.kinds.keys().find(|kind| may(**kind))?;
        self.fair.peek_alike(|job| may(job.kind)).map(|job| job.kind)
    }

    /// Puts a job that will take `cost` nanoseconds behind those of its key; the answer names it for [`Queue::remove`].
    pub(crate) fn push(&mut self, key: &FairKey, cost: u64, job: Job) -> u64 {
        *self.kinds.entry(job.kind).or_default() += 1;
        self.fair.push(key, cost, job)
    }

    /// Takes the jobs of this kind whose turn comes next, up to `most`.
    pub(crate) fn take(&mut self, kind: Kind, most: usize) -> Vec<Job> {
        // Never searches on for more than there are.
        let jobs = self.fair.pop_alike(most.min(self.alike(kind)), |job| job.kind == kind);
        jobs.iter().for_each(|job| self.forget(job));
        jobs
    }

    /// Takes out one that no longer wants to wait; `None` when it was taken before.
    pub(crate) fn remove(&mut self, key: &FairKey, id: u64) -> Option<Job> {
        let job = self.fair.remove(key, id)?;
        self.forget(&job);
        Some(job)
    }

    /// See [`Fair::make_room`].
    pub(crate) fn make_room(&mut self, key: &FairKey, cost: u64, need: u64) -> Option<Vec<Job>> {
        let jobs = self.fair.make_room(key, cost, need)?;
        jobs.iter().for_each(|job| self.forget(job));
        Some(jobs)
    }

    /// See [`Fair::would_make_room`].
    pub(crate) fn would_make_room(&self, key: &FairKey, cost: u64, need: u64) -> bool {
        self.fair.would_make_room(key, cost, need)
    }

    /// Takes everything, in no order.
    pub(crate) fn drain(&mut self) -> Vec<Job> {
        self.kinds.clear();
        self.fair.drain()
    }

    fn forget(&mut self, job: &Job) {
        let Some(count) = self.kinds.get_mut(&job.kind) else { return };
        *count -= 1;
        if *count == 0 {
            self.kinds.remove(&job.kind);
        }
    }
}
