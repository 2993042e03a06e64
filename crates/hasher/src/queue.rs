//! The waiting jobs: in fair order, and counted by kind.

use std::collections::HashMap;

use crate::{
    fair::{Fair, FairKey},
    job::{Job, Kind, Reach},
};

/// Jobs that one search looks at. Low-priority threads search while callers that admit jobs wait for the queue: this
/// bounds the search to some microseconds.
const LOOKS: usize = 64;
/// The same for workers, which would stay idle behind so many jobs that are not for them.
const LOOKS_FOR_WORKERS: usize = 400;

/// The waiting jobs.
pub(crate) struct Queue {
    fair: Fair<Job>,
    kinds: HashMap<Kind, usize>,
    /// Those of them that no worker may compute.
    here: HashMap<Kind, usize>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Queue { fair: Fair::new(), kinds: HashMap::new(), here: HashMap::new() }
    }
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.fair.len()
    }
    /// The cost of all waiting jobs, as they were pushed, in nanoseconds.
    pub(crate) fn cost(&self) -> u64 {
        self.fair.cost()
    }
    /// How many jobs of this kind wait.
    pub(crate) fn alike(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }
    /// The kinds that wait, and how many of each.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Kind, usize)> {
        self.kinds.iter().map(|(kind, count)| (*kind, *count))
    }
    /// The waiting kinds that no worker may compute, and how many jobs of each.
    pub(crate) fn kinds_here(&self) -> impl Iterator<Item = (Kind, usize)> {
        self.here.iter().map(|(kind, count)| (*kind, *count))
    }
    /// The kind of the job whose turn comes next among those that workers may compute and some worker `can`.
    pub(crate) fn first_anywhere(&self, can: impl Fn(Kind) -> bool) -> Option<Kind> {
        let anywhere = |kind: &Kind, count: usize| count > self.here.get(kind).copied().unwrap_or(0);
        let kinds: Vec<Kind> =
            self.kinds.iter().filter(|(kind, count)| anywhere(kind, **count)).map(|(kind, _)| *kind).collect();
        let able: Vec<Kind> = kinds.into_iter().filter(|kind| can(*kind)).collect();
        // If there is none at all, the queue need not be searched.
        able.first()?;
        let for_workers = |job: &Job| job.reach == Reach::Anywhere && able.contains(&job.kind);
        self.fair.peek_alike(LOOKS_FOR_WORKERS, for_workers).map(|job| job.kind)
    }
    /// The number and the kind of the job whose turn it is.
    pub(crate) fn first(&self) -> Option<(u64, Kind)> {
        self.fair.peek().map(|(id, job)| (id, job.kind))
    }
    /// The kind of the job whose turn comes next among the kinds that `may` go.
    pub(crate) fn next_of(&self, may: impl Fn(Kind) -> bool) -> Option<Kind> {
        // If there is none at all, the queue need not be searched.
        self.kinds.keys().find(|kind| may(**kind))?;
        self.fair.peek_alike(LOOKS, |job| may(job.kind)).map(|job| job.kind)
    }

    /// Puts a job of `cost` nanoseconds behind those of its key; the returned number names it for [`Queue::remove`].
    pub(crate) fn push(&mut self, cost: u64, mut job: Job) -> u64 {
        self.note(&job);
        job.id = self.fair.upcoming();
        let key = job.key.clone();
        self.fair.push(&key, cost, job)
    }

    /// Puts a job that was taken back to where it was.
    pub(crate) fn put_back(&mut self, cost: u64, job: Job) {
        self.note(&job);
        let key = job.key.clone();
        self.fair.put_back(&key, cost, (job.id, job));
    }

    /// Takes the job of this kind whose turn comes next among those that a worker may compute.
    pub(crate) fn take_anywhere(&mut self, kind: Kind) -> Option<Job> {
        let for_workers = |job: &Job| job.reach == Reach::Anywhere && job.kind == kind;
        let job = self.fair.pop_alike((1, LOOKS_FOR_WORKERS), for_workers).pop()?;
        self.forget(&job);
        Some(job)
    }

    /// See [`Fair::shed`].
    pub(crate) fn shed(&mut self, need: u64) -> Vec<Job> {
        let jobs = self.fair.shed(need);
        jobs.iter().for_each(|job| self.forget(job));
        jobs
    }

    /// Takes the jobs of this kind whose turn comes next, up to `most`.
    pub(crate) fn take(&mut self, kind: Kind, most: usize) -> Vec<Job> {
        // Never searches for more than there are.
        let jobs = self.fair.pop_alike((most.min(self.alike(kind)), LOOKS), |job| job.kind == kind);
        jobs.iter().for_each(|job| self.forget(job));
        jobs
    }

    /// Takes out a job that is no longer to wait; `None` if it was taken before.
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
        self.here.clear();
        self.fair.drain()
    }

    fn note(&mut self, job: &Job) {
        *self.kinds.entry(job.kind).or_default() += 1;
        if job.reach == Reach::Here {
            *self.here.entry(job.kind).or_default() += 1;
        }
    }

    fn forget(&mut self, job: &Job) {
        less(&mut self.kinds, job.kind);
        if job.reach == Reach::Here {
            less(&mut self.here, job.kind);
        }
    }
}

fn less(counts: &mut HashMap<Kind, usize>, kind: Kind) {
    let Some(count) = counts.get_mut(&kind) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(&kind);
    }
}
