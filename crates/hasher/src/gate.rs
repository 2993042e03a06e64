//! Admission: who may wait, for how long, and in how much memory the jobs run.
//!
//! The budget is time. The gate adds up the measured cost of all that waits and runs, side by side as the threads run
//! it; divided by the threads it is the time after which a newcomer would begin. Past `max_wait` a newcomer is refused
//! at once, unless a queue longer than its own can give room: then the last to come of that queue is refused instead.
//! So what waits never exceeds the budget by more than one job, nobody admitted waits much longer than `max_wait`, and
//! a flood fills only its share.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{oneshot, watch};

use crate::{
    books::{Books, Turn},
    calibrate::{Plan, Trial},
    cost::Family,
    fair::FairKey,
    job::{Input, Job, Kind, Tag},
    settings::Limits,
};

pub(crate) use crate::state::{Refusal, State};

/// Tells the time; a test moves it.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What a thread of the pool does next.
pub(crate) enum Next {
    /// Run these jobs, which are of one kind, side by side, and tell [`Gate::finished`].
    Run(Kind, Vec<Job>),
    /// Measure a batch and tell [`Gate::tried`].
    Try(Trial),
    /// Give the memory back and tell [`Gate::released`].
    Release,
    /// End.
    Stop,
}

/// Between those who ask and the pool.
pub(crate) struct Gate {
    limits: Limits,
    clock: Clock,
    books: Mutex<Books>,
    /// Wakes each thread.
    bells: Vec<Condvar>,
    /// True while there is a plan to measure.
    measuring: watch::Sender<bool>,
}

impl Gate {
    pub(crate) fn new(limits: Limits, clock: Clock) -> Arc<Self> {
        let bells = (0..limits.threads).map(|_| Condvar::new()).collect();
        let books = Mutex::new(Books::new(limits.threads, limits.memory, clock()));
        Arc::new(Gate { limits, clock, books, bells, measuring: watch::Sender::new(false) })
    }

    /// Admits a job, or says no at once.
    pub(crate) fn admit(self: &Arc<Self>, key: &FairKey, kind: Kind, input: Input) -> Result<Ticket, Refusal> {
        self.fits(kind)?;
        let (reply, answer) = oneshot::channel();
        let mut books = self.books();
        if !books.open {
            return Err(Refusal::Stopped);
        }
        let cost = books.share(kind);
        let pushed_out = self.room(&mut books, key, cost)?;
        let id = books.queue.push(key, cost, Job { kind, input, reply });
        let retry_after = self.wait(&books);
        if let Some(thread) = books.rouse() {
            self.bells[thread].notify_one();
        }
        self.wake_starved(&books);
        drop(books);
        for job in pushed_out {
            let _ = job.reply.send(Err(Refusal::Busy { retry_after }));
        }
        Ok(Ticket { gate: self.clone(), key: key.clone(), id, answer: Some(answer) })
    }

    /// Finds room within the budget: those who have to give theirs up, often none.
    fn room(&self, books: &mut Books, key: &FairKey, cost: u64) -> Result<Vec<Job>, Refusal> {
        let budget = nanos(self.limits.max_wait).saturating_mul(self.limits.threads as u64);
        let ahead = self.ahead(books);
        if books.has_idle_thread() || ahead < budget {
            return Ok(Vec::new());
        }
        let pushed_out = books.queue.make_room(key, cost, ahead - budget + 1);
        books.refused += pushed_out.as_ref().map_or(1, Vec::len) as u64;
        pushed_out.ok_or_else(|| Refusal::Busy { retry_after: self.wait(books) })
    }

    /// Nanoseconds of work that waits or is left of what runs. What runs counts for no more than `max_wait`, so that
    /// one long job does not close the door to work for the other threads.
    fn ahead(&self, books: &Books) -> u64 {
        let cap = nanos(self.limits.max_wait);
        let now = (self.clock)();
        let left = books.running().map(|run| run.expected.saturating_sub(nanos(now - run.since)).min(cap));
        books.waiting_cost().saturating_add(left.sum())
    }

    fn wait(&self, books: &Books) -> Duration {
        if books.has_idle_thread() {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.ahead(books) / self.limits.threads as u64)
    }

    /// What thread number `thread` does next; waits for something to do.
    pub(crate) fn next(&self, thread: usize) -> Next {
        let mut books = self.books();
        let mut called = false;
        loop {
            let turn = match books.queue.next() {
                Some(kind) => books.turn(thread, kind),
                None if !books.open => return Next::Stop,
                None => match self.idle(&mut books, thread) {
                    Ok(next) => return next,
                    Err(patience) => {
                        books = self.sleep(books, thread, patience);
                        continue;
                    }
                },
            };
            match turn {
                Turn::Run(kind, size) => {
                    self.wake_starved(&books);
                    let jobs = books.start(thread, kind, size, (self.clock)());
                    return Next::Run(kind, jobs);
                }
                Turn::Release => return Next::Release,
                Turn::Starve => {
                    // Others hold what is missing: those who idle give it up when they look, those who run when done.
                    if !called {
                        self.wake_all(&mut books);
                        called = true;
                    }
                    books.starved.push(thread);
                    books = self.bells[thread].wait(books).unwrap_or_else(PoisonError::into_inner);
                    books.starved.retain(|other| *other != thread);
                }
            }
        }
    }

    /// What a thread does while nothing waits, or for how long it sleeps.
    fn idle(&self, books: &mut Books, thread: usize) -> Result<Next, Option<Duration>> {
        let (trial, moved) = books.trial(thread, (self.clock)());
        if moved {
            self.wake_all(books);
        }
        if let Some(trial) = trial {
            return Ok(Next::Try(trial));
        }
        self.settle(books);
        if books.held[thread] == 0 {
            return Err(None);
        }
        // From when it last had work, not from when it was last woken for nothing.
        let idle = (self.clock)() - books.worked[thread];
        match self.limits.idle.checked_sub(idle).filter(|left| !left.is_zero()) {
            Some(left) => Err(Some(left)),
            None => Ok(Next::Release),
        }
    }

    /// Waits for the thread's bell, for at most `patience`.
    fn sleep<'a>(
        &self,
        mut books: MutexGuard<'a, Books>,
        thread: usize,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, Books> {
        books.asleep.push(thread);
        let bell = &self.bells[thread];
        books = match patience {
            None => bell.wait(books).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => bell.wait_timeout(books, patience).unwrap_or_else(PoisonError::into_inner).0,
        };
        books.asleep.retain(|other| *other != thread);
        books
    }

    /// Thread number `thread` has given its memory back.
    pub(crate) fn released(&self, thread: usize) {
        let mut books = self.books();
        books.held[thread] = 0;
        self.wake_starved(&books);
    }

    /// Thread number `thread` is done with its batch and keeps `held` KiB; `elapsed` is `None` if it failed.
    pub(crate) fn finished(&self, thread: usize, elapsed: Option<Duration>, held: u64) {
        let mut books = self.books();
        books.finish(thread, elapsed, held, (self.clock)());
        self.wake_starved(&books);
    }

    /// Thread number `thread` has measured and keeps `held` KiB; `elapsed` is `None` if it failed.
    pub(crate) fn tried(&self, thread: usize, elapsed: Option<Duration>, held: u64) {
        let mut books = self.books();
        if books.tried(thread, elapsed, held, (self.clock)()) {
            self.wake_all(&mut books);
        }
        self.settle(&mut books);
    }

    /// Starts to measure these kinds when nothing else is to do; the answer turns false when that is done.
    pub(crate) fn measure(&self, kinds: &[Kind]) -> watch::Receiver<bool> {
        let mut books = self.books();
        let unknown: Vec<_> = kinds.iter().copied().filter(|kind| !books.knows(*kind)).collect();
        if books.open && books.plan.is_none() && !unknown.is_empty() {
            let courses: Vec<_> = unknown.into_iter().map(|kind| (kind, books.fit(kind))).collect();
            books.plan = Some(Plan::new(self.limits.threads, courses));
            self.measuring.send_replace(true);
            self.wake_all(&mut books);
        }
        self.measuring.subscribe()
    }

    /// Takes over what was measured, once all of it was. The memory of the trials goes back at once.
    fn settle(&self, books: &mut Books) {
        if !books.plan.as_ref().is_some_and(Plan::is_done) {
            return;
        }
        let found = books.plan.take().map(Plan::found).unwrap_or_default();
        books.know(found.iter().map(|(family, paces)| (*family, &paces[..])));
        let now = (self.clock)();
        let past = now.checked_sub(self.limits.idle).unwrap_or(now);
        books.worked.iter_mut().for_each(|worked| *worked = past);
        self.measuring.send_replace(false);
        self.wake_all(books);
    }

    /// Takes over paces that were measured before.
    pub(crate) fn know<'a>(&self, known: impl Iterator<Item = (Family, &'a [Option<f64>])>) {
        self.books().know(known);
    }

    /// The paces of all families of which the best number of lanes is known.
    pub(crate) fn known(&self) -> Vec<(Family, Vec<Option<f64>>)> {
        self.books().costs.settled()
    }

    /// All families that were measured, with their best number of lanes.
    pub(crate) fn families(&self) -> Vec<(Family, usize)> {
        self.books().costs.all().collect()
    }

    /// Expected time of one job that has a thread to itself.
    pub(crate) fn expected(&self, kind: Kind) -> Duration {
        Duration::from_nanos(self.books().costs.batch(kind, 1))
    }

    /// Refuses what can never run here.
    pub(crate) fn fits(&self, kind: Kind) -> Result<(), Refusal> {
        match kind.memory() > self.limits.memory {
            true => Err(Refusal::Unsupported("needs more memory than the ceiling for hashing")),
            false => Ok(()),
        }
    }

    /// The budget of waiting.
    pub(crate) fn max_wait(&self) -> Duration {
        self.limits.max_wait
    }

    /// Lets nobody in any more, and refuses those who wait.
    pub(crate) fn close(&self) {
        let mut books = self.books();
        books.open = false;
        books.plan = None;
        let waiting = books.queue.drain();
        self.wake_all(&mut books);
        drop(books);
        self.measuring.send_replace(false);
        for job in waiting {
            let _ = job.reply.send(Err(Refusal::Stopped));
        }
    }

    /// See [`State`]; `kind` is that of today's policy.
    pub(crate) fn state(&self, kind: Kind) -> State {
        let books = self.books();
        State {
            waiting: books.queue.len(),
            running: books.running().map(|run| run.size).sum(),
            expected_wait: self.wait(&books),
            refused_total: books.refused,
            done_total: books.done,
            batches_total: books.batches,
            withdrawn_total: books.withdrawn,
            threads: self.limits.threads,
            mean_cost: Duration::from_nanos(books.costs.batch(kind, 1)),
            lanes: books.lanes(kind),
            memory: books.held.iter().sum::<u64>() * 1024,
        }
    }

    fn withdraw(&self, key: &FairKey, id: u64) {
        let mut books = self.books();
        let job = books.queue.remove(key, id);
        books.withdrawn += u64::from(job.is_some());
        self.wake_starved(&books);
        drop(books);
    }

    /// Memory came back, or another job is, or will be, next: threads that lack memory may have enough now.
    fn wake_starved(&self, books: &Books) {
        for &thread in &books.starved {
            self.bells[thread].notify_one();
        }
    }

    /// Lets every thread look again. The books are open meanwhile, so that none looks before and sleeps after.
    fn wake_all(&self, books: &mut Books) {
        books.asleep.clear();
        self.bells.iter().for_each(Condvar::notify_one);
    }

    /// Lets every thread look at the clock, as if time had passed for its patience too.
    #[cfg(test)]
    pub(crate) fn tick(&self) {
        self.wake_all(&mut self.books());
    }

    /// How many threads sleep and are not called.
    #[cfg(test)]
    pub(crate) fn asleep(&self) -> usize {
        self.books().asleep.len()
    }

    /// A panic while the books are open would be a fault of this file; what they say is still the best there is.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue. Dropping it before the answer gives the place up.
pub(crate) struct Ticket {
    gate: Arc<Gate>,
    key: FairKey,
    id: u64,
    answer: Option<oneshot::Receiver<Result<Tag, Refusal>>>,
}

impl Ticket {
    /// Waits for the tag.
    pub(crate) async fn answer(mut self) -> Result<Tag, Refusal> {
        let Some(answer) = &mut self.answer else { return Err(Refusal::Failed) };
        let tag = answer.await.unwrap_or(Err(Refusal::Failed));
        self.answer = None;
        tag
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.answer.is_some() {
            self.gate.withdraw(&self.key, self.id);
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
