//! Admission: who may wait, for how long, and in how much memory the jobs run.
//!
//! The budget is time. The gate adds up the measured cost of all that waits and runs; divided by the threads it is the
//! time after which a newcomer would begin. Past `max_wait` a newcomer is refused at once, unless a queue longer than
//! its own can give room: then the last to come of that queue is refused instead. So what waits never exceeds the
//! budget by more than one job, nobody admitted waits much longer than `max_wait`, and a flood fills only its share.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::{
    cost::Costs,
    fair::{Fair, FairKey},
    job::{Input, Job, Kind, Tag},
    settings::Limits,
};

/// Why a password was not hashed. Nothing is known about it: a refusal is never "wrong password".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too much waits already. What waits now will have been answered after `retry_after`.
    Busy {
        /// When to come back.
        retry_after: Duration,
    },
    /// The pool was stopped.
    Stopped,
    /// It can never be hashed here, whoever asks and whenever: the text says why.
    Unsupported(&'static str),
    /// The job died: no memory, or a fault in the kernel.
    Failed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy { retry_after } => write!(f, "too many passwords wait; come back in {retry_after:?}"),
            Refusal::Stopped => f.write_str("password hashing was stopped"),
            Refusal::Unsupported(why) => write!(f, "password cannot be hashed: {why}"),
            Refusal::Failed => f.write_str("password hashing failed"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What the pool does at this moment, and has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that run.
    pub running: usize,
    /// When a job of a newcomer would begin if all that waits went before it.
    pub expected_wait: Duration,
    /// Jobs refused as busy.
    pub refused_total: u64,
    /// Jobs answered.
    pub done_total: u64,
    /// Jobs whose caller went away while they waited.
    pub withdrawn_total: u64,
    /// Threads that hash.
    pub threads: usize,
    /// Expected time of one hash of today's policy, on one thread.
    pub mean_cost: Duration,
    /// Memory that the threads hold, in bytes.
    pub memory: u64,
}

/// What a thread of the pool does next.
pub(crate) enum Next {
    /// Run this job.
    Run(Job),
    /// Give the memory back and tell [`Gate::released`].
    Release,
    /// End.
    Stop,
}

/// Between those who ask and the pool.
pub(crate) struct Gate {
    limits: Limits,
    books: Mutex<Books>,
    changed: Condvar,
}

struct Books {
    open: bool,
    queue: Fair<Job>,
    /// What each thread runs: since when, and for how many nanoseconds it is expected to.
    running: Vec<Option<(Instant, u64)>>,
    costs: Costs,
    /// Memory of each thread's arena, in KiB.
    held: Vec<u64>,
    /// Threads that lack memory for the next job.
    starved: usize,
    refused: u64,
    done: u64,
    withdrawn: u64,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let books = Books {
            open: true,
            queue: Fair::new(),
            running: vec![None; limits.threads],
            costs: Costs::new(),
            held: vec![0; limits.threads],
            starved: 0,
            refused: 0,
            done: 0,
            withdrawn: 0,
        };
        Arc::new(Gate { limits, books: Mutex::new(books), changed: Condvar::new() })
    }

    /// Admits a job, or says no at once.
    pub(crate) fn admit(self: &Arc<Self>, key: &FairKey, kind: Kind, input: Input) -> Result<Ticket, Refusal> {
        if kind.memory() > self.limits.memory {
            return Err(Refusal::Unsupported("needs more memory than the ceiling for hashing"));
        }
        let (reply, answer) = oneshot::channel();
        let mut books = self.books();
        if !books.open {
            return Err(Refusal::Stopped);
        }
        let cost = books.costs.estimate(kind);
        let pushed_out = self.room(&mut books, key, cost)?;
        let id = books.queue.push(key, cost, Job { kind, input, reply });
        let retry_after = self.wait(&books);
        drop(books);
        self.changed.notify_one();
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

    /// Nanoseconds of work that waits or is left of what runs. A running job counts for no more than `max_wait`, so
    /// that one long job does not close the door to work for the other threads.
    fn ahead(&self, books: &Books) -> u64 {
        let left = |&(since, cost): &(Instant, u64)| cost.saturating_sub(nanos(since.elapsed()));
        let cap = nanos(self.limits.max_wait);
        let running: u64 = books.running.iter().flatten().map(|run| left(run).min(cap)).sum();
        books.queue.cost().saturating_add(running)
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
            let held = books.held[thread];
            let Some(kind) = books.queue.peek().map(|job| job.kind) else {
                if !books.open {
                    return Next::Stop;
                }
                let idle = if held > 0 { self.limits.idle } else { Duration::MAX };
                let woken;
                (books, woken) = self.sleep(books, idle);
                if !woken && books.queue.len() == 0 {
                    return Next::Release;
                }
                continue;
            };
            let free = self.limits.memory.saturating_sub(books.held.iter().sum());
            if held > 0 && (kind.memory() > held + free || books.starved > 0 && kind.memory() < held) {
                return Next::Release;
            }
            if kind.memory() <= held + free {
                self.wake_starved(&books);
                return books.start(thread, kind).map_or(Next::Release, Next::Run);
            }
            // Others hold what is missing: those who idle give it up when they look, those who run when they are done.
            if !called {
                self.changed.notify_all();
                called = true;
            }
            books.starved += 1;
            books = self.changed.wait(books).unwrap_or_else(PoisonError::into_inner);
            books.starved -= 1;
        }
    }

    /// Waits for a change for at most `patience`; false when it ran out.
    fn sleep<'a>(&self, books: MutexGuard<'a, Books>, patience: Duration) -> (MutexGuard<'a, Books>, bool) {
        if patience == Duration::MAX {
            return (self.changed.wait(books).unwrap_or_else(PoisonError::into_inner), true);
        }
        let (books, slept) = self.changed.wait_timeout(books, patience).unwrap_or_else(PoisonError::into_inner);
        (books, !slept.timed_out())
    }

    /// Thread number `thread` has given its memory back.
    pub(crate) fn released(&self, thread: usize) {
        self.books().held[thread] = 0;
        self.changed.notify_all();
    }

    /// Thread number `thread` is done with a job of this kind; `elapsed` is `None` if the job failed.
    pub(crate) fn finished(&self, thread: usize, kind: Kind, elapsed: Option<Duration>) {
        let mut books = self.books();
        books.running[thread] = None;
        books.done += 1;
        if let Some(elapsed) = elapsed {
            books.costs.record(kind, elapsed);
        }
    }

    /// Lets nobody in any more, and refuses those who wait.
    pub(crate) fn close(&self) {
        let mut books = self.books();
        books.open = false;
        let waiting = books.queue.drain();
        drop(books);
        self.changed.notify_all();
        for job in waiting {
            let _ = job.reply.send(Err(Refusal::Stopped));
        }
    }

    /// See [`State`]; `kind` is the one whose cost is told.
    pub(crate) fn state(&self, kind: Kind) -> State {
        let books = self.books();
        State {
            waiting: books.queue.len(),
            running: books.running.iter().flatten().count(),
            expected_wait: self.wait(&books),
            refused_total: books.refused,
            done_total: books.done,
            withdrawn_total: books.withdrawn,
            threads: self.limits.threads,
            mean_cost: Duration::from_nanos(books.costs.estimate(kind)),
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

    /// Another job is, or will be, next: threads that lack memory for the one before may have enough for it.
    fn wake_starved(&self, books: &Books) {
        if books.starved > 0 {
            self.changed.notify_all();
        }
    }

    /// A panic while the books are open would be a fault of this file; what they say is still the best there is.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn has_idle_thread(&self) -> bool {
        self.running.iter().flatten().count() + self.queue.len() < self.running.len()
    }

    /// Takes the next job, which is of this kind, for thread number `thread`.
    fn start(&mut self, thread: usize, kind: Kind) -> Option<Job> {
        let job = self.queue.pop()?;
        self.held[thread] = self.held[thread].max(kind.memory());
        self.running[thread] = Some((Instant::now(), self.costs.estimate(kind)));
        Some(job)
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
