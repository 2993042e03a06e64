//! The books of the gate: what waits, what each thread runs, and how much memory each thread holds.

mod reach;

use std::time::{Duration, Instant};

use crate::{
    calibrate::{Plan, Trial},
    cost::{Costs, Family},
    holding::Holding,
    job::{Job, Kind},
    queue::Queue,
    remote::desk::Desk,
    took::Took,
};

/// How often threads look for jobs that workers are late with, unless the caller does.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A running batch, or a trial, whose `size` is 0.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) since: Instant,
    /// Nanoseconds that it is expected to take.
    pub(crate) expected: u64,
    /// Jobs in it.
    pub(crate) size: usize,
    /// Lanes that it uses.
    lanes: usize,
    kind: Kind,
    /// Its place among all runs that ever began.
    number: u64,
    /// Memory that it leaves behind, in KiB.
    keeps: u64,
    /// Whether it began while all other threads were busy, in memory that was there.
    loaded: bool,
}

impl Run {
    /// Nanoseconds that it is expected to take from now on.
    fn left(&self, now: Instant) -> u64 {
        let gone = now.saturating_duration_since(self.since).as_nanos();
        self.expected.saturating_sub(u64::try_from(gone).unwrap_or(u64::MAX))
    }
}

/// What a thread does about the next job, as far as memory allows.
pub(crate) enum Turn {
    /// Run so many jobs of this kind.
    Run(Kind, usize),
    /// Give memory back and look again.
    Release,
    /// Wait until other threads have given memory back.
    Starve,
}

pub(crate) struct Books {
    pub(crate) open: bool,
    pub(crate) queue: Queue,
    /// The workers.
    pub(crate) desk: Desk,
    /// When somebody last looked for jobs that workers are late with.
    pub(crate) looked: Instant,
    /// Whether a sleeping thread wakes up by itself to do so.
    pub(crate) is_watched: bool,
    pub(crate) costs: Costs,
    /// What to measure when nothing waits.
    pub(crate) plan: Option<Plan>,
    running: Vec<Option<Run>>,
    /// Memory of each thread.
    pub(crate) held: Vec<Holding>,
    /// When each thread last had work.
    pub(crate) worked: Vec<Instant>,
    /// Threads without work that nobody has woken.
    pub(crate) asleep: Vec<usize>,
    /// Threads that lack memory for the next job.
    pub(crate) starved: Vec<usize>,
    pub(crate) refused: u64,
    /// Callers that had no password yet and were told that too much waits.
    pub(crate) turned_away: u64,
    pub(crate) done: u64,
    /// Jobs that produced no hash: no memory, or a fault of the kernel.
    pub(crate) failed: u64,
    pub(crate) batches: u64,
    /// Jobs done by workers.
    pub(crate) remote: u64,
    pub(crate) withdrawn: u64,
    /// Threads that died and were put back to work.
    pub(crate) faults: u64,
    /// How many batches and trials have begun.
    begun: u64,
    /// The last job to lack memory when its turn came, and how many batches had begun by then.
    lacking: Option<(u64, u64)>,
    /// Most memory of all threads together, in KiB.
    ceiling: u64,
}

impl Books {
    pub(crate) fn new(threads: usize, ceiling: u64, now: Instant) -> Self {
        Books {
            open: true,
            queue: Queue::new(),
            desk: Desk::default(),
            looked: now,
            is_watched: false,
            costs: Costs::new(),
            plan: None,
            running: vec![None; threads],
            held: (0..threads).map(|_| Holding::default()).collect(),
            worked: vec![now; threads],
            asleep: Vec::new(),
            starved: Vec::new(),
            refused: 0,
            turned_away: 0,
            done: 0,
            failed: 0,
            batches: 0,
            remote: 0,
            withdrawn: 0,
            faults: 0,
            begun: 0,
            lacking: None,
            ceiling,
        }
    }

    /// The batches that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Run> {
        self.running.iter().flatten().filter(|run| run.size > 0)
    }

    /// Memory of all threads, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        self.held.iter().map(|held| held.kib).sum()
    }

    fn free(&self) -> u64 {
        self.ceiling.saturating_sub(self.memory())
    }

    /// Memory of the threads that run jobs, in KiB; the other threads give theirs up when asked.
    fn memory_at_work(&self) -> u64 {
        let working = self.running.iter().zip(&self.held).filter(|(run, _)| run.is_some_and(|run| run.size > 0));
        working.map(|(_, held)| held.kib).sum()
    }

    /// True when a newcomer of this kind finds an idle thread, and memory.
    pub(crate) fn has_room(&self, kind: Kind) -> bool {
        self.has_room_beside(0, kind)
    }

    /// The same as if `coming` more jobs of its kind waited.
    pub(crate) fn has_room_beside(&self, coming: usize, kind: Kind) -> bool {
        let waiting = self.queue.kinds().map(|(kind, count)| kind.memory().saturating_mul(count as u64));
        let own = kind.memory().saturating_mul(1 + coming as u64);
        let needed = waiting.fold(self.memory_at_work().saturating_add(own), u64::saturating_add);
        self.running().count() + self.queue.len() + coming < self.running.len() && needed <= self.ceiling
    }

    /// Nanoseconds from now until each thread could take a job of this kind if nothing waited. A job that does not fit
    /// into memory beside the running ones finds no thread while these last, idle or not: each of them then counts for
    /// as many threads as there are for each job of its kind that fits into memory.
    fn busy(&self, kind: Kind, now: Instant) -> Vec<u64> {
        let lacks = self.memory_at_work() + kind.memory() > self.ceiling;
        let mut runs: Vec<_> = self.running().map(|run| (self.side_by_side(run.kind), run.left(now))).collect();
        // Those that take most of the memory first: to a job that lacks memory, the end of the others is of no use.
        runs.sort_unstable();
        let threads = self.running.len();
        let takes = |beside: usize| if lacks { threads.div_ceil(beside) } else { 1 };
        let mut busy: Vec<_> =
            runs.iter().flat_map(|&(beside, left)| std::iter::repeat_n(left, takes(beside))).collect();
        busy.resize(threads, 0);
        busy
    }

    /// True when workers hold jobs, and it is time to look whether they are late.
    pub(crate) fn is_to_look_after_workers(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.looked) >= LOOK && self.desk.holding() > 0
    }

    /// True when workers hold jobs, and no sleeping thread would look whether they are late.
    pub(crate) fn lacks_a_watch(&self) -> bool {
        !self.is_watched && self.desk.holding() > 0
    }

    /// Picks the thread to wake for a new job. The last that had work comes first: its memory and caches are warm, and
    /// the others get to give theirs back. Being woken for a job that another thread took is not work.
    pub(crate) fn rouse(&mut self) -> Option<usize> {
        let (place, _) = self.asleep.iter().enumerate().max_by_key(|(_, thread)| self.worked[**thread])?;
        Some(self.asleep.swap_remove(place))
    }

    /// Most jobs of this kind side by side for which every thread has memory at the same time; at least one, which may
    /// have to wait for the memory of others.
    pub(crate) fn fit(&self, kind: Kind) -> usize {
        let share = self.ceiling / self.running.len() as u64;
        let fit = share.checked_div(kind.memory()).map_or(usize::MAX, |fit| usize::try_from(fit).unwrap_or(usize::MAX));
        fit.clamp(1, kind.most_together())
    }

    /// How many jobs of this kind a thread runs side by side under load.
    pub(crate) fn lanes(&self, kind: Kind) -> usize {
        self.costs.best(kind, self.fit(kind))
    }

    /// How many threads can run a job of this kind at the same time, one each.
    fn side_by_side(&self, kind: Kind) -> usize {
        let fit =
            self.ceiling.checked_div(kind.memory()).map_or(usize::MAX, |fit| fit.try_into().unwrap_or(usize::MAX));
        fit.clamp(1, self.running.len())
    }

    /// Thread time that is gone when jobs of this kind have run for `nanos`, including that of the threads that
    /// meanwhile cannot run such jobs for lack of memory.
    fn taken(&self, kind: Kind, nanos: u64) -> u64 {
        nanos.saturating_mul(self.running.len() as u64) / self.side_by_side(kind) as u64
    }

    /// Expected nanoseconds of thread time that a newcomer of this kind costs.
    pub(crate) fn share(&self, kind: Kind) -> u64 {
        self.taken(kind, self.costs.share(kind, self.fit(kind)))
    }

    /// Expected nanoseconds of thread time of all waiting jobs.
    fn waiting_cost(&self) -> u64 {
        let cost = |(kind, count)| self.taken(kind, self.costs.queue(kind, count, self.fit(kind)));
        self.queue.kinds().map(cost).fold(0, u64::saturating_add)
    }

    /// How much of the queue has to go to remove this excess (in nanoseconds), in what its jobs were booked at: the
    /// cost of their kind when they came. Excess and queue have different units where costs have changed since. A flood
    /// that was admitted before everything became three times as expensive would have less booked in all than the
    /// excess: it would be asked for more than it has, so give nothing, and nobody else would be admitted until it is
    /// gone. At most the excess, because where costs have fallen, the jobs that have to go, the last to come, are
    /// booked at today's.
    pub(crate) fn booked(&self, excess: u64) -> u64 {
        let [excess, booked, today] = [excess, self.queue.cost(), self.waiting_cost()].map(u128::from);
        let need = if today == 0 { excess } else { (excess * booked).div_ceil(today).min(excess) };
        need as u64
    }

    /// Returns what thread number `thread` does about the waiting jobs; `None` when there are none. When the next job
    /// lacks memory, others may pass it: see [`Books::passing`].
    pub(crate) fn turn(&mut self, thread: usize) -> Option<Turn> {
        let (id, next) = self.queue.first()?;
        let held = self.held[thread].kib;
        let others = self.idle().saturating_sub(self.starved.len());
        let most = held + self.free();
        let fits = self.sizes(next, others).find(|size| next.holds(*size, held) <= most);
        let found = match fits {
            Some(size) => Some((next, size)),
            None => self.passing(thread, (id, next)),
        };
        Some(match found {
            // Others need what this thread does not.
            Some((kind, size)) if !self.starved.is_empty() && kind.holds(size, 0) < held => Turn::Release,
            Some((kind, size)) => Turn::Run(kind, size),
            None if held > 0 => Turn::Release,
            None => Turn::Starve,
        })
    }

    /// Picks other jobs that this thread may run while the job whose turn it is lacks memory: as long as the batches
    /// that ran when its turn came hold what it lacks, and if the others take no longer than these batches, or leave it
    /// a thread and its memory. So it loses at most the time of one such batch, however many jobs pass.
    fn passing(&mut self, thread: usize, (id, next): (u64, Kind)) -> Option<(Kind, usize)> {
        let since = self.lacking.filter(|(of, _)| *of == id).map_or(self.begun, |(_, since)| since);
        self.lacking = Some((id, since));
        let (mut longest, mut before, mut after) = (0, 0, 0);
        for (run, held) in self.running.iter().zip(&self.held).filter_map(|(run, held)| Some((run.as_ref()?, held.kib)))
        {
            match run.number < since {
                true => (longest, before) = (run.expected.max(longest), before + held),
                false => after += held,
            }
        }
        if before + next.memory() <= self.ceiling {
            return None;
        }
        let (held, idle) = (self.held[thread].kib, self.idle());
        let most = held + self.free();
        let may = |kind: Kind, size: usize| {
            let holds = kind.holds(size, held);
            let beside = idle > 1 && holds + after + next.memory() <= self.ceiling;
            holds <= most && (beside || self.costs.batch(kind, size) <= longest)
        };
        let size = |kind| self.sizes(kind, idle).find(|size| may(kind, *size));
        let kind = self.queue.next_of(|kind| kind != next && size(kind).is_some())?;
        Some((kind, size(kind)?))
    }

    /// Threads that run nothing.
    fn idle(&self) -> usize {
        self.running.iter().filter(|run| run.is_none()).count()
    }

    /// How many jobs of this kind one of `idle` idle threads may take, the best first: few enough that no other thread
    /// is left without, and no more than is worthwhile. While there are as many idle threads as jobs, each takes one,
    /// which is the fastest for that job.
    fn sizes(&self, kind: Kind, idle: usize) -> impl Iterator<Item = usize> {
        let share = self.queue.alike(kind).div_ceil(idle.max(1));
        (1..=share.clamp(1, self.costs.next(kind, self.fit(kind)))).rev()
    }

    /// Takes jobs of this kind in the order of their turns, for thread number `thread`.
    pub(crate) fn start(&mut self, thread: usize, (kind, size): (Kind, usize), now: Instant) -> Vec<Job> {
        let jobs = self.queue.take(kind, size);
        self.begin(thread, kind, (jobs.len(), jobs.len()), now);
        jobs
    }

    /// Begins a batch of `size` jobs, or a trial with so many `lanes` and size 0.
    fn begin(&mut self, thread: usize, kind: Kind, (size, lanes): (usize, usize), now: Instant) {
        let held = &mut self.held[thread].kib;
        // Other kernels allocate beside the kept memory.
        let keeps = if matches!(kind, Kind::Argon2(_)) { kind.holds(lanes, 0) } else { 0 };
        // Mapping memory takes time that says nothing about the lanes.
        let warm = kind.holds(lanes, *held) == *held;
        *held = kind.holds(lanes, *held);
        let loaded = warm && self.others_run(thread);
        let expected = self.costs.batch(kind, lanes);
        let number = self.begun;
        self.begun += 1;
        self.running[thread] = Some(Run { since: now, expected, size, lanes, kind, number, keeps, loaded });
    }

    fn others_run(&self, thread: usize) -> bool {
        self.running.iter().enumerate().all(|(number, run)| number == thread || run.is_some())
    }

    /// Thread number `thread` is done with its batch, of which `failed` jobs failed; no time is learned from a batch
    /// that did not succeed as a whole.
    pub(crate) fn finish(&mut self, thread: usize, (took, failed): (Option<Took>, usize), held: u64, now: Instant) {
        let loaded = self.others_run(thread);
        let Some(run) = self.end(thread, held, now) else { return };
        self.batches += 1;
        self.done += run.size.saturating_sub(failed) as u64;
        self.failed += failed as u64;
        if let Some(took) = took {
            self.costs.record(run.kind, run.size, took, loaded && run.loaded);
        }
    }

    /// Ends what thread number `thread` ran; the thread keeps `held` KiB.
    fn end(&mut self, thread: usize, held: u64, now: Instant) -> Option<Run> {
        let run = self.running[thread].take()?;
        self.held[thread].kib = held;
        self.held[thread].used(run.keeps.min(held), now);
        self.worked[thread] = now;
        Some(run)
    }

    /// Thread number `thread` has died, with its memory, and comes back without. The jobs that it ran are lost.
    pub(crate) fn died(&mut self, thread: usize) {
        self.faults += 1;
        self.failed += self.running[thread].take().map_or(0, |run| run.size as u64);
        self.held[thread].gone();
        self.asleep.retain(|other| *other != thread);
        self.starved.retain(|other| *other != thread);
    }

    /// Returns what thread number `thread` measures next, if there is a plan and memory for it. A trial that lacks
    /// memory ends its course: then the flag says that the other threads have something else to do now.
    pub(crate) fn trial(&mut self, thread: usize, now: Instant) -> (Option<Trial>, bool) {
        let held = self.held[thread].kib;
        let most = held + self.free();
        let Some(plan) = &mut self.plan else { return (None, false) };
        let (mut trial, mut moved) = (plan.trial(thread), false);
        while trial.is_some_and(|trial| trial.kind.holds(trial.size, held) > most) {
            moved |= trial.is_some_and(|trial| plan.tried(thread, trial, None, now));
            trial = plan.trial(thread);
        }
        if let Some(Trial { kind, size }) = trial {
            self.begin(thread, kind, (0, size), now);
        }
        (trial, moved)
    }

    /// Thread number `thread` has measured. Returns true when the others have something else to do now.
    pub(crate) fn tried(&mut self, thread: usize, took: Option<Took>, held: u64, now: Instant) -> bool {
        let Some(run) = self.end(thread, held, now) else { return false };
        let trial = Trial { kind: run.kind, size: run.lanes };
        if let Some(took) = took {
            self.costs.tried(took);
        }
        self.plan.as_mut().is_some_and(|plan| plan.tried(thread, trial, took, now))
    }

    /// Ends measurements that work has made needless, or has left no time for. Returns true when the threads have
    /// something else to do now.
    pub(crate) fn taught(&mut self, now: Instant) -> bool {
        let Some(mut plan) = self.plan.take() else { return false };
        let moved = plan.skip(now, |kind| self.knows(kind));
        self.plan = Some(plan);
        moved
    }

    /// True when nothing about the lanes of this kind remains to be measured.
    pub(crate) fn knows(&self, kind: Kind) -> bool {
        self.fit(kind) == 1 || self.costs.knows(kind, self.fit(kind))
    }

    /// Adopts paces that were measured elsewhere or before.
    pub(crate) fn know<'a>(&mut self, known: impl Iterator<Item = (Family, &'a [Option<f64>])>) {
        for (family, paces) in known {
            self.costs.settle(family, paces);
        }
    }
}

#[cfg(test)]
mod tests;
