//! The simulation of the cores: when a thread that gets work runs, and whom it keeps waiting.

use super::{Event, Task, World};
use crate::capacity::demand::Operation;
use crate::capacity::stations::{Station, Stations, lateness};

/// Returns whether the system looks for an idle core for a thread that wakes up, when operations come at this rate.
///
/// Linux looks through a part of the cores that share a cache, the smaller the more they are used, and through none if
/// that part is less than a core (`update_idle_cpu_scan` in kernel/sched/fair.c, since 6.0, with the margin of 117 %
/// that cores of one cache have). Two cores are then looked through up to three fifths of their time.
pub(super) fn looks_for_idle(stations: &Stations, operation: Operation, rate: f64) -> bool {
    const MARGIN: f64 = 1.17;
    let used = stations.needs_at(operation, rate).of(Station::Cores) * rate;
    (1.0 - (MARGIN * used).powi(2)) * stations.cores as f64 >= 1.0
}

impl World<'_> {
    /// A thread gets work: `warm` while the caches are warm, `fixed` in any case, and `rouse` if it was asleep. It
    /// takes a moment to start, longer if others hold the cores.
    pub(super) fn wake(&mut self, task: Task, (warm, fixed, rouse): (f64, f64, f64)) {
        let delay = self.waking();
        let rouse = if self.busy < self.stations.cores { rouse } else { 0.0 };
        let seconds = fixed + (warm + rouse) * self.stations.chill(self.hashing_share(), self.requests);
        self.after(delay, Event::Awake(task, seconds));
    }

    /// Returns how long a thread takes to wake up and run.
    pub(super) fn waking(&mut self) -> f64 {
        let (rested, crowded) = self.stations.wake;
        // In a request two threads wake up, and the measured lateness is that of both.
        let chance = &mut self.chances.late;
        let late = if chance.next() < 0.5 { lateness(&self.late, chance.next()) } else { 0.0 };
        if self.wakes_at_once() { rested } else { crowded + late }
    }

    /// Whether a thread that wakes up need not wait for one that hashes, which does not give way at once: nobody
    /// hashes, or a core is idle besides the one that its waker still uses.
    fn wakes_at_once(&self) -> bool {
        self.busy + 1 + self.hashing.len() < self.stations.cores || self.hashing.is_empty()
    }

    pub(super) fn start(&mut self, task: Task, seconds: f64) {
        if self.busy < self.stations.cores && !self.is_behind_another() {
            self.progress();
            self.hinder();
            let displaces = self.displace();
            self.busy += 1;
            self.after(seconds, Event::Done(task, displaces));
            self.foresee();
        } else {
            self.ready.push_back((task, seconds));
        }
    }

    /// Whether a thread that is to run is placed on a core where another task runs, although a hashing thread elsewhere
    /// would give way: if no core is idle, it stays on the core of its last run, or on its waker's.
    fn is_behind_another(&mut self) -> bool {
        let cores = self.stations.cores;
        let crowded = !self.hashing.is_empty() && self.busy + self.hashing.len() >= cores;
        crowded && self.chances.core.next() * (cores as f64) < self.busy as f64
    }

    /// Returns whether a thread that gets a core takes it from one that hashes: no core is idle, or it comes to the
    /// core of its last run, or its waker's, whether or not another one is idle.
    fn displace(&mut self) -> bool {
        let (exposed, free) = (self.hashing.len().saturating_sub(self.displaced), self.stations.cores - self.busy);
        let by_chance =
            |world: &mut Self| !world.looks_for_idle && world.chances.place.next() * (free as f64) < exposed as f64;
        let displaces = exposed > 0 && (exposed >= free || by_chance(self));
        self.displaced += usize::from(displaces);
        displaces
    }
}
