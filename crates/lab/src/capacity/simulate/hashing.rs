//! The simulation of threads that hash on what the cores leave them.

use super::{Event, World};

/// The share of a core that a thread of lower priority gets beside one that wants all of it (ten steps of niceness on
/// Linux).
const LEFT_OVER: f64 = 0.097;

/// The time to a worker and back, in seconds.
const FAR: f64 = 1e-3;

/// A number of machines that is larger than a whole one by no more than this is the whole one.
const ROUNDING: f64 = 1e-6;

/// Passwords side by side on one thread.
pub(super) struct Batch {
    pub(super) visits: Vec<usize>,
    /// The work left: 1.0 at first, or more if its thread had rested.
    pub(super) left: f64,
}

impl World<'_> {
    /// Returns the share of its speed at which each hashing thread runs. A thread that was displaced from a core waits
    /// there: a core that becomes free meanwhile is not idle for long enough to be given to it.
    pub(super) fn pace(&self) -> f64 {
        let threads = self.hashing.len().max(1);
        let lacking = (threads + self.busy).saturating_sub(self.stations.cores);
        let waiting = self.displaced.max(lacking).min(threads);
        ((threads - waiting) as f64 + LEFT_OVER * waiting as f64) / threads as f64
    }

    /// Advances each batch by the time since the pool was last updated.
    pub(super) fn progress(&mut self) {
        let (pace, active) = (self.pace(), self.hashing.len());
        let passed = self.now - self.looked;
        self.looked = self.now;
        for batch in &mut self.hashing {
            let whole = self.stations.pool.batch(batch.visits.len(), active);
            batch.left -= passed * pace / whole.max(f64::MIN_POSITIVE);
        }
    }

    /// A thread gets work, other than from the previous one on its core: the thread that hashes there gives way, and
    /// loses more than the time of that work.
    pub(super) fn hinder(&mut self) {
        let (toll, active) = (self.stations.toll / self.stations.cores as f64, self.hashing.len());
        for batch in &mut self.hashing {
            batch.left += toll / self.stations.pool.batch(batch.visits.len(), active).max(f64::MIN_POSITIVE);
        }
    }

    /// Schedules the end of the next batch, as things stand.
    pub(super) fn foresee(&mut self) {
        self.state += 1;
        let (pace, active, pool) = (self.pace(), self.hashing.len(), &self.stations.pool);
        let times =
            self.hashing.iter().map(|batch| batch.left.max(0.0) * pool.batch(batch.visits.len(), active) / pace);
        let next = times.min_by(f64::total_cmp);
        if let Some(next) = next {
            self.after(next, Event::Hashed(self.state));
        }
    }

    /// Idle threads, of which `at_work` have just been working, take their share of the waiting passwords; workers take
    /// the rest, as far as they have room.
    pub(super) fn fill(&mut self, at_work: usize) {
        self.fill_here(at_work);
        let pool = &self.stations.pool;
        if pool.workers <= 0.0 {
            return;
        }
        // Workers like this machine: as many as it takes, each of which may be a little slower.
        let own = pool.threads as f64 / pool.each();
        let machines = (pool.workers / own - ROUNDING).ceil().max(1.0);
        let (slower, machines) = (machines * own / pool.workers, machines as usize);
        let threads = machines * pool.threads;
        while self.away < threads * pool.lanes {
            let Some(visit) = self.passwords.pop_front() else { return };
            self.away += 1;
            let (together, active) = (self.away.div_ceil(threads), self.away.min(threads).div_ceil(machines));
            self.after(pool.batch(together, active) * slower + FAR, Event::Computed(visit));
        }
    }

    fn fill_here(&mut self, mut at_work: usize) {
        let idle = self.stations.pool.threads - self.hashing.len();
        if idle == 0 || self.passwords.is_empty() {
            return;
        }
        self.progress();
        for idle in (1..=idle).rev() {
            let share = self.passwords.len().div_ceil(idle).min(self.stations.pool.lanes);
            if share > 0 {
                let visits = self.passwords.drain(..share).collect();
                let pool = &self.stations.pool;
                let rouse = if at_work == 0 { pool.rouse / pool.batch(share, 1).max(f64::MIN_POSITIVE) } else { 0.0 };
                at_work = at_work.saturating_sub(1);
                self.hashing.push(Batch { visits, left: 1.0 + rouse });
            }
        }
        self.foresee();
    }

    pub(super) fn hashed(&mut self) {
        /// Rounding may leave this much of a finished batch.
        const NOTHING: f64 = 1e-9;
        self.progress();
        // The batch that was foreseen is done, even if rounding leaves some of it: late in a long run that is more, and
        // otherwise the next event would be at the same moment forever.
        let least = self.hashing.iter().map(|batch| batch.left).fold(f64::INFINITY, f64::min).max(NOTHING);
        // A batch whose rest is not a number is done, too.
        let is_done = |batch: &Batch| batch.left <= least || batch.left.is_nan();
        let (done, rest) = std::mem::take(&mut self.hashing).into_iter().partition(is_done);
        self.hashing = rest;
        self.foresee();
        let done: Vec<Batch> = done;
        self.fill(done.len());
        done.into_iter().flat_map(|batch| batch.visits).for_each(|visit| self.proceed(visit));
    }
}
