//! Admission: which jobs may wait, for how long, and in how much memory the jobs run.
//!
//! The budget is time. The gate adds up the measured cost of all jobs that wait and run, in batches as the threads run
//! them and as far as memory allows, and knows when a newcomer would begin. If that is after `max_wait`, it refuses the
//! newcomer at once, unless a queue longer than its own can give room: then the last job of that queue is refused
//! instead. So the waiting jobs never exceed the budget by more than one job, and a flood fills only its share. An
//! admitted job waits much longer than `max_wait` only behind many jobs of its own address, while others keep coming:
//! each address has its turn, and none gets more than others. Nobody knows beforehand whether others will come; most
//! refusals for that would be in vain.
//!
//! Workers count: a job that may be computed anywhere waits until threads and workers together come to it. When a
//! worker goes away, the jobs that would now have to wait too long are refused at once. Threads look for jobs that a
//! worker is late with, between jobs of their own and, one of them, while they sleep.
//!
//! One lock guards the books. Hashing threads, which have low priority, hold it too; if such a thread lost its core
//! meanwhile, it would keep callers that admit jobs waiting. So the work under the lock is bounded: steps for each
//! thread and each kind that waits, one search of the queue for a batch and one for jobs that may pass (64 looks each),
//! and two for each job that a worker is given (400 looks). Passwords are wiped and answers sent after it is released.

mod remote;
mod ticket;

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{oneshot, watch};

use crate::{
    books::{Books, LOOK, Turn},
    calibrate::{Plan, Trial},
    cost::Family,
    fair::FairKey,
    holding::Holding,
    job::{Computed, Input, Job, Kind, Reach, Reply, somebodys},
    meters::Meters,
    settings::Limits,
    took::Took,
};

pub(crate) use crate::state::{Refusal, State};
pub(crate) use ticket::Ticket;

/// The clock; a test moves it.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What a thread of the pool does next.
pub(crate) enum Next {
    /// Run these jobs, which are of one kind, side by side, and tell [`Gate::finished`].
    Run(Kind, Vec<Job>),
    /// Measure a batch and tell [`Gate::tried`].
    Try(Trial),
    /// Give memory back until at most about this many KiB are left, and tell [`Gate::kept`].
    Keep(u64),
    /// End.
    Stop,
}

/// Stands between callers and the pool.
pub(crate) struct Gate {
    limits: Limits,
    clock: Clock,
    books: Mutex<Books>,
    /// One for each thread, to wake it.
    bells: Vec<Condvar>,
    /// True while there is a plan to measure.
    measuring: watch::Sender<bool>,
    /// Callers that will hand in a job of today's policy in a moment.
    pub(crate) coming: AtomicUsize,
    /// How much CPU time the threads have had.
    pub(crate) meters: Meters,
}

impl Gate {
    pub(crate) fn new(limits: Limits, clock: Clock) -> Arc<Self> {
        let bells = (0..limits.threads).map(|_| Condvar::new()).collect();
        let books = Mutex::new(Books::new(limits.threads, limits.memory, clock()));
        Arc::new(Gate {
            limits,
            clock,
            books,
            bells,
            measuring: watch::Sender::new(false),
            coming: AtomicUsize::new(0),
            meters: Meters::default(),
        })
    }

    /// Admits a job for this machine, or refuses it at once.
    pub(crate) fn admit(self: &Arc<Self>, key: &FairKey, kind: Kind, input: Input) -> Result<Ticket, Refusal> {
        self.admit_to(Reach::Here, key, (kind, input))
    }

    /// Admits a job, or refuses it at once.
    pub(crate) fn admit_to(
        self: &Arc<Self>,
        reach: Reach,
        key: &FairKey,
        (kind, input): (Kind, Input),
    ) -> Result<Ticket, Refusal> {
        self.fits(kind)?;
        let (reply, answer) = oneshot::channel();
        let now = (self.clock)();
        let mut books = self.books();
        if !books.open {
            return Err(Refusal::Stopped);
        }
        let cost = books.share(kind);
        let pushed_out = self.room(&mut books, key, (kind, reach, cost))?;
        let job = Job { kind, input, reply: Reply::Caller(reply), reach, key: key.clone(), id: 0, failed: false };
        let id = books.queue.push(cost, job);
        let retry_after = if pushed_out.is_empty() { Duration::ZERO } else { self.return_after(&books, (kind, reach)) };
        books.hand_out(now);
        self.wake(&mut books);
        drop(books);
        self.turn_away(pushed_out, retry_after);
        Ok(Ticket { gate: self.clone(), key: key.clone(), id, answer: Some(answer) })
    }

    /// Wakes a thread for the jobs that wait, or to look after those that workers hold.
    fn wake(&self, books: &mut Books) {
        if (books.queue.len() > 0 || books.lacks_a_watch())
            && let Some(thread) = books.rouse()
        {
            self.bells[thread].notify_one();
        }
        self.wake_starved(books);
    }

    /// Refuses these jobs as busy.
    fn turn_away(&self, jobs: Vec<Job>, retry_after: Duration) {
        for job in jobs {
            self.deliver(job.reply, Err(Refusal::Busy { retry_after }));
        }
    }

    /// Delivers an answer to its recipient.
    pub(crate) fn deliver(&self, reply: Reply, answer: Result<Computed, Refusal>) {
        match reply {
            // The caller may have gone: then nobody needs the tag.
            Reply::Caller(reply) => drop(reply.send(answer)),
            Reply::Canary { link, id } => self.canary(link, (id, answer.ok().map(|computed| computed.tag))),
        }
    }

    /// Whether the budget is used up for a newcomer of this kind.
    pub(crate) fn is_full_for(&self, kind: Kind) -> bool {
        self.books().excess((kind, Reach::Here), nanos(self.limits.max_wait), (self.clock)()) > 0
    }

    /// Finds room in the budget for a newcomer; returns the jobs that must give up their place, often none.
    fn room(
        &self,
        books: &mut Books,
        key: &FairKey,
        (kind, reach, cost): (Kind, Reach, u64),
    ) -> Result<Vec<Job>, Refusal> {
        let excess = books.excess((kind, reach), nanos(self.limits.max_wait), (self.clock)());
        if excess == 0 {
            return Ok(Vec::new());
        }
        let pushed_out = books.queue.make_room(key, cost, books.booked(excess));
        books.refused += pushed_out.as_deref().map_or(1, somebodys);
        pushed_out.ok_or_else(|| Refusal::Busy { retry_after: self.return_after(books, (kind, reach)) })
    }

    /// When to come back, if a gate with `budget` would refuse a sign-in of this kind once the callers on their way to
    /// it ([`Coming`](crate::Coming)) had arrived too; admits nothing. A caller that is told to come back is counted:
    /// as refused, or, where `budget` is smaller than `max_wait`, as turned away.
    pub(crate) fn crowded(&self, key: &FairKey, (kind, reach): (Kind, Reach), budget: Duration) -> Option<Duration> {
        let mut books = self.books();
        let coming = self.coming.load(Ordering::Relaxed);
        let excess = books.excess_beside(coming, (kind, reach), nanos(budget), (self.clock)());
        if excess == 0 || books.queue.would_make_room(key, books.share(kind), books.booked(excess)) {
            return None;
        }
        match budget < self.limits.max_wait {
            true => books.turned_away += 1,
            false => books.refused += 1,
        }
        // Callers on their way have not begun to wait here; the excess covers them, too.
        let excess = Duration::from_nanos(excess / self.limits.threads.max(1) as u64);
        Some(self.return_after(&books, (kind, reach)).max(excess))
    }

    fn wait(&self, books: &Books, of: (Kind, Reach)) -> Duration {
        Duration::from_nanos(books.wait(of, (self.clock)()))
    }

    /// When to come back: once the waiting jobs have begun, but no sooner than a batch takes. Where next to nothing
    /// waits and the running batches are late, or where nobody may wait at all, nothing else tells when a thread will
    /// be free; and a client that is told "at once" asks again and again.
    fn return_after(&self, books: &Books, (kind, reach): (Kind, Reach)) -> Duration {
        let batch = books.costs.batch(kind, books.lanes(kind));
        self.wait(books, (kind, reach)).max(Duration::from_nanos(batch))
    }

    /// Returns what thread number `thread` does next; waits until there is something to do.
    pub(crate) fn next(&self, thread: usize) -> Next {
        let mut books = self.books();
        loop {
            let now = (self.clock)();
            if books.is_to_look_after_workers(now) {
                drop(books);
                self.look_after_workers();
                books = self.books();
                continue;
            }
            // Also for a thread that is never idle: it is not to keep what a large job left behind.
            if let Some(keep) = books.held[thread].surplus(now, self.limits.idle) {
                return Next::Keep(keep);
            }
            let turn = match books.turn(thread) {
                Some(turn) => turn,
                None if !books.open => return Next::Stop,
                None => match self.idle(&mut books, thread) {
                    Ok(trial) => return Next::Try(trial),
                    Err(patience) => {
                        books = self.sleep(books, thread, patience);
                        continue;
                    }
                },
            };
            match turn {
                Turn::Run(kind, size) => {
                    self.wake_starved(&books);
                    let jobs = books.start(thread, (kind, size), now);
                    // This one may have been on watch.
                    if books.lacks_a_watch() {
                        self.wake(&mut books);
                    }
                    return Next::Run(kind, jobs);
                }
                Turn::Release => return Next::Keep(0),
                Turn::Starve => {
                    // Others hold the missing memory. Running threads give it up when done, or run on; sleeping ones do
                    // one or the other when they look, so no thread is woken twice for memory that it no longer holds.
                    self.wake_holders(&mut books);
                    books.starved.push(thread);
                    books = self.bells[thread].wait(books).unwrap_or_else(PoisonError::into_inner);
                    books.starved.retain(|other| *other != thread);
                }
            }
        }
    }

    /// Returns what a thread measures while nothing waits, or for how long it sleeps.
    fn idle(&self, books: &mut Books, thread: usize) -> Result<Trial, Option<Duration>> {
        let now = (self.clock)();
        let (trial, moved) = books.trial(thread, now);
        if moved {
            self.wake_all(books);
        }
        if let Some(trial) = trial {
            return Ok(trial);
        }
        self.settle(books);
        // Counted from when its memory was last needed, not from when it was last woken for nothing.
        Err(books.held[thread].patience(now, self.limits.idle))
    }

    /// Waits for the thread's bell, for at most `patience`. While workers hold jobs one of the sleeping threads is on
    /// watch, and wakes up to look for late ones: if that were left to the caller, one who forgot it would wait forever
    /// for a worker that says nothing.
    fn sleep<'a>(
        &self,
        mut books: MutexGuard<'a, Books>,
        thread: usize,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, Books> {
        books.asleep.push(thread);
        let bell = &self.bells[thread];
        let watches = books.lacks_a_watch();
        books.is_watched |= watches;
        let look = watches.then_some(LOOK);
        books = match patience.into_iter().chain(look).min() {
            None => bell.wait(books).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => bell.wait_timeout(books, patience).unwrap_or_else(PoisonError::into_inner).0,
        };
        books.asleep.retain(|other| *other != thread);
        books.is_watched &= !watches;
        books
    }

    /// Thread number `thread` has given memory back and keeps `held` KiB.
    pub(crate) fn kept(&self, thread: usize, held: u64) {
        let mut books = self.books();
        books.held[thread].kib = held;
        self.wake_starved(&books);
    }

    /// Thread number `thread` has died and is about to begin anew.
    pub(crate) fn died(&self, thread: usize) {
        let mut books = self.books();
        books.died(thread);
        self.wake_all(&mut books);
    }

    /// Thread number `thread` is done with its batch and keeps `held` KiB. `came_out`: what it took, `None` if the batch
    /// failed, and how many of its jobs produced no hash.
    pub(crate) fn finished(&self, thread: usize, came_out: (Option<Took>, usize), held: u64) {
        let mut books = self.books();
        let now = (self.clock)();
        books.finish(thread, came_out, held, now);
        if books.taught(now) {
            self.wake_all(&mut books);
        }
        self.settle(&mut books);
        self.wake_starved(&books);
    }

    /// Thread number `thread` has measured and keeps `held` KiB; `took` is `None` if it failed.
    pub(crate) fn tried(&self, thread: usize, took: Option<Took>, held: u64) {
        let mut books = self.books();
        if books.tried(thread, took, held, (self.clock)()) {
            self.wake_all(&mut books);
        }
        self.settle(&mut books);
    }

    /// Starts to measure these kinds whenever there is nothing else to do; the receiver turns false when that is done.
    pub(crate) fn measure(&self, kinds: &[Kind]) -> watch::Receiver<bool> {
        let mut books = self.books();
        let unknown: Vec<_> = kinds.iter().copied().filter(|kind| !books.knows(*kind)).collect();
        if books.open && books.plan.is_none() && !unknown.is_empty() {
            let courses: Vec<_> = unknown.into_iter().map(|kind| (kind, books.fit(kind))).collect();
            books.plan = Some(Plan::new(self.limits.threads, courses, (self.clock)()));
            self.measuring.send_replace(true);
            self.wake_all(&mut books);
        }
        self.measuring.subscribe()
    }

    /// Adopts the measurements once all are there. The memory of the trials is given back at once.
    fn settle(&self, books: &mut Books) {
        if !books.plan.as_ref().is_some_and(Plan::is_done) {
            return;
        }
        let found = books.plan.take().map(Plan::found).unwrap_or_default();
        books.know(found.iter().map(|(family, paces)| (*family, &paces[..])));
        books.held.iter_mut().for_each(Holding::unused);
        self.measuring.send_replace(false);
        self.wake_all(books);
    }

    /// Adopts paces that were measured before.
    pub(crate) fn know<'a>(&self, known: impl Iterator<Item = (Family, &'a [Option<f64>])>) {
        self.books().know(known);
    }

    /// The paces of all families whose best number of lanes is known.
    pub(crate) fn known(&self) -> Vec<(Family, Vec<Option<f64>>)> {
        self.books().costs.settled()
    }

    /// All families that were measured, with the number of lanes of each under load.
    pub(crate) fn families(&self) -> Vec<(Family, usize)> {
        let books = self.books();
        books.costs.all().map(|family| (family, books.lanes(family.kind()))).collect()
    }

    /// Expected time of one job with a thread to itself.
    pub(crate) fn expected(&self, kind: Kind) -> Duration {
        Duration::from_nanos(self.books().costs.batch(kind, 1))
    }

    /// The longest that one job should take once it has begun, with some margin: alone on its thread, or with as many
    /// others as there may be under load.
    pub(crate) fn longest(&self, kind: Kind) -> Duration {
        let books = self.books();
        let together = books.lanes(kind).max(books.costs.next(kind, books.fit(kind)));
        let (alone, crowded) = (books.costs.batch(kind, 1), books.costs.batch(kind, together));
        Duration::from_nanos(alone.saturating_mul(2).max(crowded.saturating_add(crowded / 4)))
    }

    /// Refuses a job that can never run here.
    pub(crate) fn fits(&self, kind: Kind) -> Result<(), Refusal> {
        match kind.memory() > self.limits.memory {
            true => Err(Refusal::Unsupported("needs more memory than the ceiling for hashing")),
            false => Ok(()),
        }
    }

    /// The budget: how long a job may be expected to wait.
    pub(crate) fn max_wait(&self) -> Duration {
        self.limits.max_wait
    }

    /// Admits nobody any more, and refuses the waiting jobs.
    pub(crate) fn close(&self) {
        let mut books = self.books();
        books.open = false;
        books.plan = None;
        let mut waiting = books.queue.drain();
        waiting.extend(books.dismiss_all());
        self.wake_all(&mut books);
        drop(books);
        self.measuring.send_replace(false);
        for job in waiting {
            self.deliver(job.reply, Err(Refusal::Stopped));
        }
    }

    /// See [`State`]; `kind` is that of today's policy.
    pub(crate) fn state(&self, kind: Kind) -> State {
        let books = self.books();
        State {
            waiting: books.queue.len(),
            running: books.running().map(|run| run.size).sum(),
            expected_wait: self.wait(&books, (kind, Reach::Anywhere)),
            refused_total: books.refused,
            turned_away_total: books.turned_away,
            done_total: books.done,
            failed_total: books.failed,
            with_workers: books.desk.holding(),
            remote_total: books.remote,
            batches_total: books.batches,
            withdrawn_total: books.withdrawn,
            threads: self.limits.threads,
            faults_total: books.faults,
            mean_cost: Duration::from_nanos(books.costs.batch(kind, 1)),
            lanes: books.lanes(kind),
            memory: books.memory() * 1024,
        }
    }

    /// Removes a job that waits; returns whether it did.
    fn withdraw(&self, key: &FairKey, id: u64) -> bool {
        let mut books = self.books();
        let job = books.queue.remove(key, id);
        books.withdrawn += u64::from(job.is_some());
        self.wake_starved(&books);
        drop(books);
        job.is_some()
    }

    /// Wakes the threads that lack memory: some came back, or another job is or will be next.
    fn wake_starved(&self, books: &Books) {
        for &thread in &books.starved {
            self.bells[thread].notify_one();
        }
    }

    /// Wakes the sleeping threads that hold memory, so that they look again.
    fn wake_holders(&self, books: &mut Books) {
        let held = &books.held;
        for thread in books.asleep.extract_if(.., |thread| held[*thread].kib > 0) {
            self.bells[thread].notify_one();
        }
    }

    /// Wakes every thread to look again. The lock is held meanwhile, so that none looks before and sleeps after.
    fn wake_all(&self, books: &mut Books) {
        books.asleep.clear();
        self.bells.iter().for_each(Condvar::notify_one);
    }

    /// Makes every thread look at the clock, as if the time of its patience had passed too.
    #[cfg(test)]
    pub(crate) fn tick(&self) {
        self.wake_all(&mut self.books());
    }

    /// How many threads sleep and have not been woken.
    #[cfg(test)]
    pub(crate) fn asleep(&self) -> usize {
        self.books().asleep.len()
    }

    /// A panic while the lock is held would be a bug in this file; the books are still the best information there is.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
