//! A simulation of the stations, event by event, with random numbers from a fixed seed. No formula for one queue covers
//! this: a sign-in goes through twenty queues, hashes run side by side, and commits gather while the disk is busy.

mod chance;
mod cores;
mod hashing;
mod writer;

use super::demand::{Act, Course, Operation, Request};
use super::figure::quantile;
use super::stations::Stations;
use chance::Chances;
use hashing::Batch;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use writer::Desk;

/// How operations arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// At random, with this rate per second: as people come.
    People(f64),
    /// This many virtual users, each of which starts again at once.
    Users(usize),
}

/// The result; latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations per second.
    pub rate: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 % of the latencies are at or below this.
    pub p95: f64,
    /// 99 % of the latencies.
    pub p99: f64,
    /// The share of all processor time that was used.
    pub cores: f64,
    /// Batches per commit.
    pub together: f64,
}

/// The 95th percentile of one kind of request, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name in the load generator.
    pub name: String,
    /// Its 95th percentile.
    pub p95: f64,
}

/// Simulates this many operations and returns the result. The first fifth is not counted.
pub fn simulate(stations: &Stations, operation: Operation, arrivals: Arrivals, operations: usize) -> Outcome {
    in_steps(stations, operation, arrivals, operations).0
}

/// Does the same, and returns also how long each kind of request took.
pub fn in_steps(
    stations: &Stations,
    operation: Operation,
    arrivals: Arrivals,
    operations: usize,
) -> (Outcome, Vec<Step>) {
    let mut world = World::new(stations, operation, arrivals, operations);
    world.run();
    let steps = std::mem::take(&mut world.steps).into_iter().map(|(name, mut times)| {
        times.sort_by(f64::total_cmp);
        Step { name: name.to_owned(), p95: quantile(&times, 0.95) }
    });
    (world.outcome(), steps.collect())
}

/// One operation that has arrived.
struct Visit {
    came: f64,
    /// When its current request began.
    asked: f64,
    requests: &'static [Request],
    request: usize,
    act: usize,
    /// The processor time of a fetch that another machine is answering.
    owed: f64,
    counts: bool,
}

/// A task that occupies a core.
#[derive(Clone, Copy)]
enum Task {
    /// A network thread works for this visit.
    Serve(usize),
    /// The load generator begins this visit when it is due.
    Release(usize),
    /// The load generator works for this visit: it sends a request, or receives an answer.
    Ask(usize),
    /// The writer begins the commit with this number.
    Write(usize),
}

#[derive(Clone, Copy)]
enum Event {
    Come,
    /// A thread has woken up, with this much to do.
    Awake(Task, f64),
    /// The task is done; it may have taken its core from a thread that hashes.
    Done(Task, bool),
    /// The batch that ends first is done, as foreseen at this state of the pool.
    Hashed(u64),
    /// The commit with this number is on the disk.
    Synced(usize),
    /// The writer checks what waits.
    Gather,
    /// Another machine has answered: a database, or a hash worker.
    Fetched(usize),
    Computed(usize),
}

struct Due {
    at: f64,
    order: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    /// The earliest event is the greatest; of simultaneous ones the one that was added first.
    fn cmp(&self, other: &Due) -> Ordering {
        other.at.total_cmp(&self.at).then(other.order.cmp(&self.order))
    }
}

struct World<'a> {
    stations: &'a Stations,
    courses: &'static [Course],
    arrivals: Arrivals,
    operations: usize,
    /// Requests that arrive per second.
    requests: f64,
    /// How late threads are at that rate while all cores hash.
    late: [f64; 6],
    now: f64,
    order: u64,
    events: BinaryHeap<Due>,
    chances: Chances,
    visits: Vec<Visit>,
    came: usize,
    /// Tasks on cores, and tasks that wait for a core.
    busy: usize,
    ready: VecDeque<(Task, f64)>,
    /// Whether the generator's one thread is busy, and the visits that wait for it.
    asking: bool,
    asks: VecDeque<(usize, f64)>,
    hashing: Vec<Batch>,
    /// Hashing threads that were displaced from their core by a task that still runs there.
    displaced: usize,
    /// Whether the system looks for an idle core for a thread that wakes up.
    looks_for_idle: bool,
    passwords: VecDeque<usize>,
    /// Passwords that workers are computing.
    away: usize,
    /// When the pool was last updated, and its state then.
    looked: f64,
    state: u64,
    desk: Desk,
    commits: (usize, usize),
    latencies: Vec<f64>,
    /// The same by request.
    steps: BTreeMap<&'static str, Vec<f64>>,
    /// When the first and the last counted operation ended; the processor time since the first.
    window: (f64, f64),
    spent: f64,
}

impl<'a> World<'a> {
    fn new(stations: &'a Stations, operation: Operation, arrivals: Arrivals, operations: usize) -> World<'a> {
        let rate = match arrivals {
            Arrivals::People(rate) => rate,
            // Users who start again at once fill the machine.
            Arrivals::Users(_) => stations.needs(operation).bound(),
        };
        let requests = rate * operation.demand().requests;
        World {
            stations,
            courses: operation.courses(),
            arrivals,
            operations,
            requests,
            late: stations.late.at(requests / stations.cores as f64),
            now: 0.0,
            order: 0,
            events: BinaryHeap::new(),
            chances: Chances::new(),
            visits: Vec::with_capacity(operations),
            came: 0,
            busy: 0,
            ready: VecDeque::new(),
            asking: false,
            asks: VecDeque::new(),
            hashing: Vec::new(),
            displaced: 0,
            looks_for_idle: cores::looks_for_idle(stations, operation, rate),
            passwords: VecDeque::new(),
            away: 0,
            looked: 0.0,
            state: 0,
            desk: Desk { begun: f64::NEG_INFINITY, ..Desk::default() },
            commits: (0, 0),
            latencies: Vec::new(),
            steps: BTreeMap::new(),
            window: (f64::INFINITY, 0.0),
            spent: 0.0,
        }
    }

    fn run(&mut self) {
        match self.arrivals {
            Arrivals::Users(users) => (0..users).for_each(|_| self.come()),
            Arrivals::People(_) => self.after(0.0, Event::Come),
        }
        while let Some(due) = self.events.pop() {
            self.advance(due.at);
            match due.event {
                Event::Come => self.come_and_call(),
                Event::Awake(task, seconds) => self.start(task, seconds),
                Event::Done(task, displaces) => self.done(task, displaces),
                Event::Hashed(state) if state == self.state => self.hashed(),
                Event::Hashed(_) => {}
                Event::Synced(number) => self.synced(number),
                Event::Fetched(visit) => self.proceed(visit),
                Event::Computed(visit) => {
                    self.away -= 1;
                    self.proceed(visit);
                    self.fill(0);
                }
                Event::Gather => {
                    self.desk.naps = false;
                    self.gather();
                }
            }
        }
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.order += 1;
        // A figure that could not be measured costs nothing: an event whose time is not a number would never be due.
        let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        self.events.push(Due { at: self.now + seconds, order: self.order, event });
    }

    /// Lets time pass, and counts the processor time in it.
    fn advance(&mut self, to: f64) {
        let passed = to - self.now;
        self.now = to;
        if passed > 0.0 && !self.latencies.is_empty() {
            let hashing = self.pace() * self.hashing.len() as f64;
            self.spent += passed * (self.busy as f64 + hashing).min(self.stations.cores as f64);
        }
    }

    fn come_and_call(&mut self) {
        self.come();
        let gap = match self.arrivals {
            Arrivals::People(rate) => -(1.0 - self.chances.coming.next()).ln() / rate,
            Arrivals::Users(_) => return,
        };
        if self.came < self.operations {
            self.after(gap, Event::Come);
        }
    }

    fn come(&mut self) {
        if self.came >= self.operations {
            return;
        }
        let mut at = self.chances.kind.next();
        let found = self.courses.iter().find(|(share, _)| {
            at -= share;
            at <= 0.0
        });
        let Some((_, requests)) = found.or(self.courses.last()) else { return };
        let counts = self.came >= self.operations / 5;
        self.came += 1;
        self.visits.push(Visit { came: self.now, asked: self.now, requests, request: 0, act: 0, owed: 0.0, counts });
        let visit = self.visits.len() - 1;
        if matches!(self.arrivals, Arrivals::People(_)) && self.stations.pacing > 0.0 {
            return self.wake(Task::Release(visit), (self.stations.pacing, 0.0, 0.0));
        }
        self.ask(visit);
    }

    /// The visit sends its next request.
    fn ask(&mut self, visit: usize) {
        let Some(cost) = self.stations.generator else { return self.proceed(visit) };
        let request = &self.visits[visit].requests[self.visits[visit].request];
        let seconds = cost * request.asking;
        if self.asking {
            return self.asks.push_back((visit, seconds));
        }
        self.asking = true;
        self.wake(Task::Ask(visit), (seconds, 0.0, self.stations.rouse_generator));
    }

    /// The generator's thread is awake, and continues with the next visit that waits for it.
    fn ask_on(&mut self) {
        if let Some((visit, seconds)) = self.asks.pop_front() {
            self.asking = true;
            let seconds = seconds * self.stations.chill(self.hashing_share(), self.requests);
            self.after(0.0, Event::Awake(Task::Ask(visit), seconds));
        }
    }

    /// Continues a request up to the next act for which it has to wait.
    fn proceed(&mut self, visit: usize) {
        // The thread that takes an answer goes on with it.
        let owed = std::mem::take(&mut self.visits[visit].owed);
        let Visit { requests, request, act, .. } = &self.visits[visit];
        let acts = &requests[*request].acts[*act..];
        let far = self.stations.round_trip > 0.0;
        let waits = |act: &Act| matches!(act, Act::Commit | Act::Hash) || far && matches!(act, Act::Read(_));
        let light = acts.iter().take_while(|act| !waits(act)).count();
        let (warm, fixed) = acts[..light].iter().fold((owed, 0.0), |(warm, fixed), act| {
            let cost = self.stations.light(*act);
            (warm + cost.0, fixed + cost.1)
        });
        match acts.get(light) {
            _ if light > 0 || owed > 0.0 => {
                self.visits[visit].act += light;
                self.wake(Task::Serve(visit), (warm, fixed, self.stations.rouse));
            }
            Some(read @ Act::Read(_)) => {
                // What asking and the answer cost is spent once the answer is there.
                self.visits[visit].owed = self.stations.light(*read).0;
                self.visits[visit].act += 1;
                self.after(self.stations.round_trip, Event::Fetched(visit));
            }
            Some(Act::Commit) => {
                self.visits[visit].act += 1;
                self.desk.waiting.push_back(visit);
                self.gather();
            }
            Some(_) => {
                self.visits[visit].act += 1;
                self.passwords.push_back(visit);
                self.fill(0);
            }
            None => self.answered(visit),
        }
    }

    fn answered(&mut self, visit: usize) {
        let Visit { requests, request, came, asked, counts, .. } = &mut self.visits[visit];
        if *counts {
            self.steps.entry(requests[*request].name).or_default().push((self.now - *asked) * 1e3);
        }
        *asked = self.now;
        if *request + 1 < requests.len() {
            *request += 1;
            self.visits[visit].act = 0;
            return self.ask(visit);
        }
        if *counts {
            self.window = (self.window.0.min(self.now), self.now);
            self.latencies.push((self.now - *came) * 1e3);
        }
        if matches!(self.arrivals, Arrivals::Users(_)) {
            self.come();
        }
    }

    fn hashing_share(&self) -> f64 {
        (self.hashing.len() as f64 / self.stations.cores as f64).min(1.0)
    }

    fn done(&mut self, task: Task, displaces: bool) {
        match self.ready.pop_front() {
            Some((next, seconds)) => self.after(seconds, Event::Done(next, displaces)),
            None => {
                self.progress();
                self.busy -= 1;
                self.displaced -= usize::from(displaces);
                self.foresee();
            }
        }
        match task {
            Task::Serve(visit) => self.proceed(visit),
            Task::Release(visit) => self.ask(visit),
            Task::Ask(visit) => {
                self.asking = false;
                self.ask_on();
                self.proceed(visit);
            }
            Task::Write(number) => {
                // The writer waits for the disk, and wakes up; the measured time includes waking up on an idle machine.
                let sync = self.stations.writer.some_sync(self.chances.sync.next());
                let late = (self.waking() - self.stations.wake.0).max(0.0);
                self.after(sync + late, Event::Synced(number));
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        self.latencies.sort_by(f64::total_cmp);
        let (begin, end) = self.window;
        let seconds = (end - begin).max(f64::MIN_POSITIVE);
        let count = self.latencies.len() as f64;
        let at = |share| quantile(&self.latencies, share);
        Outcome {
            rate: (count - 1.0).max(0.0) / seconds,
            mean: self.latencies.iter().sum::<f64>() / count.max(1.0),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            cores: (self.spent / seconds / self.stations.cores as f64).min(1.0),
            together: self.commits.1 as f64 / self.commits.0.max(1) as f64,
        }
    }
}
