//! The books of the gate: what waits, what each thread runs, and who holds how much memory.

use std::time::{Duration, Instant};

use crate::{
    calibrate::{Plan, Trial},
    cost::{Costs, Family},
    job::{Job, Kind},
    queue::Queue,
};

/// A batch, or a trial, for which `size` is 0.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) since: Instant,
    /// Nanoseconds that it is expected to take.
    pub(crate) expected: u64,
    /// Jobs in it.
    pub(crate) size: usize,
    kind: Kind,
    /// Began while all other threads were busy.
    loaded: bool,
}

/// Whose turn it is, as far as memory goes.
pub(crate) enum Turn {
    /// Run so many jobs of this kind.
    Run(Kind, usize),
    /// Give the memory back and look again.
    Release,
    /// Wait until others have given theirs back.
    Starve,
}

pub(crate) struct Books {
    pub(crate) open: bool,
    pub(crate) queue: Queue,
    pub(crate) costs: Costs,
    /// What is to be measured when nothing waits.
    pub(crate) plan: Option<Plan>,
    running: Vec<Option<Run>>,
    /// Memory of each thread, in KiB.
    pub(crate) held: Vec<u64>,
    /// When each thread last had work.
    pub(crate) worked: Vec<Instant>,
    /// Threads without work that nobody has called.
    pub(crate) asleep: Vec<usize>,
    /// Threads that lack memory for the next job.
    pub(crate) starved: Vec<usize>,
    pub(crate) refused: u64,
    pub(crate) done: u64,
    pub(crate) batches: u64,
    pub(crate) withdrawn: u64,
    /// Most memory of all threads, in KiB.
    ceiling: u64,
}

impl Books {
    pub(crate) fn new(threads: usize, ceiling: u64, now: Instant) -> Self {
        Books {
            open: true,
            queue: Queue::new(),
            costs: Costs::new(),
            plan: None,
            running: vec![None; threads],
            held: vec![0; threads],
            worked: vec![now; threads],
            asleep: Vec::new(),
            starved: Vec::new(),
            refused: 0,
            done: 0,
            batches: 0,
            withdrawn: 0,
            ceiling,
        }
    }

    /// The batches that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Run> {
        self.running.iter().flatten().filter(|run| run.size > 0)
    }

    /// True when a newcomer finds a thread without work.
    pub(crate) fn has_idle_thread(&self) -> bool {
        self.running().count() + self.queue.len() < self.running.len()
    }

    /// The thread to call for a new job. The last that had work comes first: its memory and caches are warm, and the
    /// others come to give theirs back. To be called for a job that another thread took is not work.
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

    /// Expected nanoseconds of thread time that a newcomer of this kind costs.
    pub(crate) fn share(&self, kind: Kind) -> u64 {
        self.costs.share(kind, self.fit(kind))
    }

    /// Expected nanoseconds of thread time of all that waits.
    pub(crate) fn waiting_cost(&self) -> u64 {
        let costs = self.queue.kinds().map(|(kind, count)| self.costs.queue(kind, count, self.fit(kind)));
        costs.fold(0, u64::saturating_add)
    }

    /// What thread number `thread` does about the next job, which is of this kind.
    pub(crate) fn turn(&self, thread: usize, kind: Kind) -> Turn {
        let held = self.held[thread];
        let free = self.ceiling.saturating_sub(self.held.iter().sum());
        let fits = |size: &usize| kind.holds(*size, held) <= held + free;
        match (1..=self.wanted(kind)).rev().find(fits) {
            None if held > 0 => Turn::Release,
            None => Turn::Starve,
            // What this thread does not need, others do.
            Some(size) if !self.starved.is_empty() && kind.holds(size, 0) < held => Turn::Release,
            Some(size) => Turn::Run(kind, size),
        }
    }

    /// How many jobs of this kind one thread should take: enough that no other thread is left without, and no more than
    /// pay. While there are as many idle threads as jobs each takes one, which is the fastest for it.
    fn wanted(&self, kind: Kind) -> usize {
        let idle = self.running.iter().filter(|run| run.is_none()).count().saturating_sub(self.starved.len());
        let share = self.queue.alike(kind).div_ceil(idle.max(1));
        share.clamp(1, self.costs.next(kind, self.fit(kind)))
    }

    /// Takes the next job, which is of this kind, and others with it, for thread number `thread`.
    pub(crate) fn start(&mut self, thread: usize, kind: Kind, size: usize, now: Instant) -> Vec<Job> {
        let jobs = self.queue.take(size);
        self.begin(thread, kind, jobs.len(), now);
        jobs
    }

    fn begin(&mut self, thread: usize, kind: Kind, size: usize, now: Instant) {
        let loaded = self.others_run(thread);
        let expected = self.costs.batch(kind, size.max(1));
        self.running[thread] = Some(Run { since: now, expected, size, kind, loaded });
        self.held[thread] = kind.holds(size, self.held[thread]);
    }

    fn others_run(&self, thread: usize) -> bool {
        self.running.iter().enumerate().all(|(number, run)| number == thread || run.is_some())
    }

    /// Thread number `thread` is done with its batch.
    pub(crate) fn finish(&mut self, thread: usize, elapsed: Option<Duration>, held: u64, now: Instant) {
        let loaded = self.others_run(thread);
        self.held[thread] = held;
        self.worked[thread] = now;
        let Some(run) = self.running[thread].take() else { return };
        self.batches += 1;
        self.done += run.size as u64;
        if let Some(elapsed) = elapsed {
            self.costs.record(run.kind, run.size, elapsed, loaded && run.loaded);
        }
    }

    /// What thread number `thread` measures next, if there is a plan and memory for it. A trial for which there is none
    /// ends its course: then it is true that the others have something else to do now.
    pub(crate) fn trial(&mut self, thread: usize, now: Instant) -> (Option<Trial>, bool) {
        let held = self.held[thread];
        let most = held + self.ceiling.saturating_sub(self.held.iter().sum());
        let Some(plan) = &mut self.plan else { return (None, false) };
        let (mut trial, mut moved) = (plan.trial(thread), false);
        while trial.is_some_and(|trial| trial.kind.holds(trial.size, held) > most) {
            moved |= plan.tried(thread, None);
            trial = plan.trial(thread);
        }
        if let Some(Trial { kind, size }) = trial {
            self.begin(thread, kind, 0, now);
            self.held[thread] = kind.holds(size, held);
        }
        (trial, moved)
    }

    /// Thread number `thread` has measured. True when the others have something else to do now.
    pub(crate) fn tried(&mut self, thread: usize, elapsed: Option<Duration>, held: u64, now: Instant) -> bool {
        self.held[thread] = held;
        self.worked[thread] = now;
        self.running[thread] = None;
        self.plan.as_mut().is_some_and(|plan| plan.tried(thread, elapsed))
    }

    /// True when nothing about the lanes of this kind has to be measured.
    pub(crate) fn knows(&self, kind: Kind) -> bool {
        self.fit(kind) == 1 || self.costs.knows(kind, self.fit(kind))
    }

    /// Takes over paces that were measured elsewhere or before.
    pub(crate) fn know<'a>(&mut self, known: impl Iterator<Item = (Family, &'a [Option<f64>])>) {
        for (family, paces) in known {
            self.costs.settle(family, paces);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FairKey, argon2::Cost, job::Input};
    use tokio::sync::oneshot;

    /// Books with so many threads and so much memory for each, and jobs of one KiB that wait; three lanes are best.
    fn books(threads: usize, memory: u64, waiting: usize) -> (Books, Kind) {
        let mut books = Books::new(threads, memory * threads as u64, Instant::now());
        let kind = Kind::of_policy(Cost::new(10, 1, 1).unwrap());
        books.know([(kind.into(), &[4.0, 3.0, 2.0, 5.0, 5.0].map(Some)[..])].into_iter());
        let key = FairKey::new("main", [192, 0, 2, 1].into());
        for _ in 0..waiting {
            let input = Input::Serial { password: Default::default(), salt: Vec::new() };
            books.queue.push(&key, 1, Job { kind, input, reply: oneshot::channel().0 });
        }
        (books, kind)
    }

    /// What the threads take, one after the other.
    fn taken(threads: usize, memory: u64, waiting: usize) -> Vec<usize> {
        let (mut books, kind) = books(threads, memory, waiting);
        let mut take = |thread| match books.queue.next().map(|kind| books.turn(thread, kind)) {
            Some(Turn::Run(_, size)) => books.start(thread, kind, size, Instant::now()).len(),
            _ => 0,
        };
        (0..threads).map(&mut take).collect()
    }

    #[test]
    fn idle_threads_share_what_waits() {
        assert_eq!(taken(2, 1000, 1), [1, 0]);
        assert_eq!(taken(2, 1000, 2), [1, 1], "rather than two on one thread");
        assert_eq!(taken(2, 1000, 3), [2, 1]);
        assert_eq!(taken(2, 1000, 4), [2, 2]);
        assert_eq!(taken(2, 1000, 9), [3, 3], "more lanes do not pay");
        assert_eq!(taken(4, 1000, 6), [2, 2, 1, 1]);
    }

    #[test]
    fn the_last_that_had_work_is_called_first() {
        let (mut books, _) = books(3, 1000, 0);
        let start = books.worked[0];
        books.worked = vec![start, start + Duration::from_secs(2), start + Duration::from_secs(1)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            books.asleep = order.to_vec();
            assert_eq!([(); 4].map(|()| books.rouse()), [Some(1), Some(2), Some(0), None], "fell asleep as {order:?}");
        }
    }

    #[test]
    fn lanes_fit_into_the_memory() {
        assert_eq!(taken(2, 29, 9), [2, 2]);
        assert_eq!(taken(2, 10, 9), [1, 1]);
        assert_eq!(taken(2, 7, 9), [1, 0], "one after the other");
    }

    #[test]
    fn a_thread_that_holds_more_than_it_needs_gives_it_back_to_one_that_starves() {
        let (mut books, kind) = books(2, 10, 9);
        books.held = vec![15, 0];
        assert!(matches!(books.turn(1, kind), Turn::Starve));
        assert!(matches!(books.turn(0, kind), Turn::Run(_, 1)));
        books.starved.push(1);
        assert!(matches!(books.turn(0, kind), Turn::Release));
    }
}
