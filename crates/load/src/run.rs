//! Carrying out a plan: threads that know nothing of one another, a common start, a window in which everything counts.

use crate::Refusal;
use crate::cpu;
use crate::plan::{Pace, Plan};
use crate::record::{Latencies, Record};
use crate::report::{Report, Spent};
use crate::visitor::{Cause, Provider, Scene, Setback, Visitor};
use crate::wire::Fault;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, sleep_until, timeout_at};

/// How often progress is told.
const PULSE: Duration = Duration::from_millis(500);
/// How often a visitor that is refused while it prepares comes back.
const PREPARE_TRIES: u32 = 20;
/// How long a visitor waits after no connection could be made, so that a server that is gone is not called in a tight loop.
const RECONNECT: Duration = Duration::from_millis(100);

/// What has happened since the last pulse.
#[derive(Clone, Default)]
pub struct Pulse {
    /// Iterations without a setback.
    pub iterations: Latencies,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that were refused politely.
    pub refused: u64,
}

impl Pulse {
    fn merge(&mut self, other: &Pulse) {
        self.iterations.merge(&other.iterations);
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

/// Told about progress: seconds of the plan that have passed (warm-up included), and what happened in about half a second.
pub type Watcher<'a> = &'a mut dyn FnMut(Duration, &Pulse);

/// Carries out `plan`; blocks until it is done, on threads of its own. Without a watcher, nothing is spent on progress. To be
/// called on a plain thread, not from asynchronous code.
///
/// # Panics
/// When a thread of the generator does, and inside of an asynchronous runtime.
///
/// # Errors
/// [`Refusal`]: the plan makes no sense, the target is no provider, or a first iteration did not come out right.
pub fn run(plan: &Plan, watcher: Option<Watcher<'_>>) -> Result<Report, Refusal> {
    plan.check()?;
    let scene = Arc::new(rehearse(plan)?);
    let (report_ready, ready) = mpsc::channel();
    let (start, window) = watch::channel(None);
    let (send_pulse, pulses) = mpsc::channel();
    let mut threads = Vec::new();
    for index in 0..plan.threads {
        let pulses = watcher.is_some().then(|| send_pulse.clone());
        let post = Post {
            index,
            scene: Arc::clone(&scene),
            ready: Some(report_ready.clone()),
            window: window.clone(),
            pulses,
        };
        let thread = thread::Builder::new().name(format!("load-{index}")).spawn(move || post.man());
        threads.push(thread.map_err(|error| Refusal::Failure(format!("no thread: {error}")))?);
    }
    drop((report_ready, send_pulse, window));
    for prepared in ready {
        // Returning drops `start`, which sends the other threads home.
        prepared.map_err(Refusal::Failure)?;
    }
    let window = Window::after(Instant::now(), plan);
    start.send_replace(Some(window));
    let spent = observe(plan, window, &pulses, watcher)?;
    let mut record = Record::default();
    for thread in threads {
        record.merge(&thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    Ok(Report::of(plan, record, spent))
}

/// Learns the endpoints and goes through one iteration, so that a mistake is one clear line and not a table of failures.
fn rehearse(plan: &Plan) -> Result<Scene, Refusal> {
    let runtime = runtime().map_err(Refusal::Failure)?;
    runtime.block_on(async {
        let provider = Provider::discover(&plan.target, plan.timeout).await?;
        let scene = Arc::new(Scene::new(plan.clone(), provider));
        let mut visitor = Visitor::new(Arc::clone(&scene));
        let clear = |setback: Setback| Refusal::Failure(format!("the first iteration failed: {setback}"));
        prepared(&mut visitor).await.map_err(clear)?;
        let mut tries = 0;
        while let Err(setback) = visitor.iterate().await {
            tries += 1;
            wait_if_refused(setback, tries).await.map_err(clear)?;
        }
        drop(visitor);
        Ok(Arc::into_inner(scene).unwrap_or_else(|| unreachable!("the visitor held the only other reference")))
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("no runtime: {error}"))
}

/// Prepares a visitor, with patience while the server is busy with the others.
async fn prepared(visitor: &mut Visitor) -> Result<(), Setback> {
    let mut tries = 0;
    while let Err(setback) = visitor.prepare().await {
        tries += 1;
        wait_if_refused(setback, tries).await?;
    }
    Ok(())
}

async fn wait_if_refused(setback: Setback, tries: u32) -> Result<(), Setback> {
    match setback.cause {
        Cause::Refused { retry_after, .. } if tries < PREPARE_TRIES => {
            // Spread over twice the time asked for: all visitors are told the same.
            sleep(retry_after.mul_f64(1.0 + fastrand::f64()).min(Duration::from_secs(10))).await;
            Ok(())
        }
        _ => Err(setback),
    }
}

/// When things count.
#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    from: Instant,
    until: Instant,
}

impl Window {
    fn after(begin: Instant, plan: &Plan) -> Self {
        let from = begin + plan.warmup;
        Window { begin, from, until: from + plan.duration }
    }
}

/// Reads processor times at both ends of the window, and passes on pulses meanwhile.
fn observe(
    plan: &Plan,
    window: Window,
    pulses: &mpsc::Receiver<Pulse>,
    mut watcher: Option<Watcher<'_>>,
) -> Result<Spent, Refusal> {
    let mut wait_until = |end: Instant| {
        let mut gathered = Pulse::default();
        let mut next = Instant::now() + PULSE;
        loop {
            let now = Instant::now();
            if now >= end {
                return;
            }
            match pulses.recv_timeout(end.min(next).saturating_duration_since(now)) {
                Ok(pulse) => gathered.merge(&pulse),
                Err(mpsc::RecvTimeoutError::Disconnected) => thread::sleep(end.saturating_duration_since(now)),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Some(watcher) = &mut watcher {
                        watcher(window.begin.elapsed(), &std::mem::take(&mut gathered));
                    }
                    next += PULSE;
                }
            }
        }
    };
    let server = || cpu::of_processes(&plan.server_pids);
    wait_until(window.from);
    let before = (cpu::own(), server());
    if before.1.is_none() {
        return Err(Refusal::Use(format!("no CPU time of {:?}: no such process, or no /proc", plan.server_pids)));
    }
    let began = Instant::now();
    wait_until(window.until);
    let difference = |before: Option<Duration>, after: Option<Duration>| after?.checked_sub(before?);
    let server = difference(before.1, server()).filter(|_| !plan.server_pids.is_empty());
    Ok(Spent { time: began.elapsed(), generator: difference(before.0, cpu::own()), server })
}

/// What a thread is given.
struct Post {
    index: usize,
    scene: Arc<Scene>,
    /// Dropped once told: the channel ends when every thread has reported, or is gone.
    ready: Option<mpsc::Sender<Result<(), String>>>,
    window: watch::Receiver<Option<Window>>,
    pulses: Option<mpsc::Sender<Pulse>>,
}

impl Post {
    fn man(mut self) -> Record {
        match runtime() {
            Ok(runtime) => runtime.block_on(LocalSet::new().run_until(self.work())),
            Err(why) => {
                self.tell(Err(why));
                Record::default()
            }
        }
    }

    /// Nobody listens any more when another thread was refused first; the window will then not open either.
    fn tell(&mut self, outcome: Result<(), String>) {
        let _ = self.ready.take().map(|ready| ready.send(outcome));
    }

    async fn work(mut self) -> Record {
        let prepared = self.visitors().await;
        self.tell(prepared.as_ref().map(|_| ()).map_err(|setback| format!("a visitor cannot begin: {setback}")));
        let Ok(visitors) = prepared else { return Record::default() };
        let started = self.window.wait_for(Option::is_some).await.map(|window| *window);
        let Ok(Some(window)) = started else { return Record::default() };
        let desk = Rc::new(Desk::new(window, &self));
        let mut tasks = JoinSet::new();
        for visitor in visitors {
            tasks.spawn_local(Rc::clone(&desk).serve(visitor));
        }
        let patience = match self.scene.plan.pace {
            Pace::Closed { .. } => Duration::ZERO,
            Pace::Open { .. } => self.scene.plan.timeout,
        };
        self.wait(&mut tasks, &desk, window.until + patience).await;
        tasks.abort_all();
        desk.close()
    }

    /// This thread's share of the visitors, all made ready.
    async fn visitors(&self) -> Result<Vec<Visitor>, Setback> {
        let plan = &self.scene.plan;
        let mut tasks = JoinSet::new();
        for _ in (self.index..plan.pace.visitors()).step_by(plan.threads) {
            let mut visitor = Visitor::new(Arc::clone(&self.scene));
            tasks.spawn_local(async move { prepared(&mut visitor).await.map(|()| visitor) });
        }
        let mut ready = Vec::with_capacity(tasks.len());
        while let Some(visitor) = tasks.join_next().await {
            ready.push(visitor.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        }
        Ok(ready)
    }

    /// Until every visitor has stopped, or `deadline`; tells progress meanwhile.
    async fn wait(&self, tasks: &mut JoinSet<()>, desk: &Desk, deadline: Instant) {
        loop {
            let wake = deadline.min(Instant::now() + PULSE);
            match timeout_at(wake.into(), tasks.join_next()).await {
                Ok(None) => return,
                Ok(Some(Err(error))) => std::panic::resume_unwind(error.into_panic()),
                Ok(Some(Ok(()))) => {}
                Err(_) if wake == deadline => return,
                Err(_) => {
                    if let Some(pulses) = &self.pulses {
                        // Nobody listens any more once the window is over.
                        let _ = pulses.send(desk.pulse.take());
                    }
                }
            }
        }
    }
}

/// Where the visitors of one thread report. They take turns on that thread, so cells are enough.
struct Desk {
    window: Window,
    scene: Arc<Scene>,
    record: RefCell<Record>,
    pulse: RefCell<Pulse>,
    has_watcher: bool,
    under_way: Cell<u64>,
    /// The next start of an open loop, counted over all threads from the beginning.
    slot: Cell<u64>,
}

impl Desk {
    fn new(window: Window, post: &Post) -> Self {
        Desk {
            window,
            scene: Arc::clone(&post.scene),
            record: RefCell::default(),
            pulse: RefCell::default(),
            has_watcher: post.pulses.is_some(),
            under_way: Cell::new(0),
            slot: Cell::new(post.index as u64),
        }
    }

    async fn serve(self: Rc<Self>, visitor: Visitor) {
        match self.scene.plan.pace {
            Pace::Closed { pause, .. } => self.again_and_again(visitor, pause).await,
            Pace::Open { rate, .. } => self.on_schedule(visitor, rate).await,
        }
    }

    async fn again_and_again(&self, mut visitor: Visitor, pause: Duration) {
        // Visitors that pause do not all arrive in the same instant.
        sleep(pause.mul_f64(fastrand::f64())).await;
        while Instant::now() < self.window.until {
            let begun = Instant::now();
            self.under_way.update(|count| count + 1);
            let outcome = visitor.iterate().await;
            self.under_way.update(|count| count - 1);
            let ended = Instant::now();
            let counts = (self.window.from..self.window.until).contains(&ended);
            self.book(&visitor, ended - begun, &outcome, counts);
            self.rest(&outcome).await;
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    }

    /// Takes the next start of the schedule whenever it is free: if it is late by then, its latency says so.
    async fn on_schedule(&self, mut visitor: Visitor, rate: f64) {
        let plan = &self.scene.plan;
        let slots = counted_slots(plan, rate);
        loop {
            let slot = self.slot.get();
            if slot >= slots.end || Instant::now() >= self.window.until {
                return;
            }
            self.slot.set(slot + plan.threads as u64);
            let due = self.window.begin + Duration::from_secs_f64(slot as f64 / rate);
            sleep_until(due.into()).await;
            let outcome = visitor.iterate().await;
            self.book(&visitor, due.elapsed(), &outcome, slots.contains(&slot));
            self.rest(&outcome).await;
        }
    }

    fn book(&self, visitor: &Visitor, latency: Duration, outcome: &Result<(), Setback>, counts: bool) {
        if counts {
            self.record.borrow_mut().take(visitor.lap(), latency, outcome);
        }
        if self.has_watcher {
            let mut pulse = self.pulse.borrow_mut();
            match outcome {
                Ok(()) => pulse.iterations.add(latency),
                Err(Setback { cause: Cause::Refused { .. }, .. }) => pulse.refused += 1,
                Err(_) => pulse.failed += 1,
            }
        }
    }

    async fn rest(&self, outcome: &Result<(), Setback>) {
        match outcome {
            Err(Setback { cause: Cause::Lost(Fault::Connect(_)), .. }) => sleep(RECONNECT).await,
            Err(Setback { cause: Cause::Refused { retry_after, .. }, .. }) if self.scene.plan.heeds_retry_after => {
                sleep(*retry_after).await;
            }
            _ => {}
        }
    }

    fn close(&self) -> Record {
        let mut record = self.record.take();
        // In an open loop the schedule says what is missing, also what never began.
        if matches!(self.scene.plan.pace, Pace::Closed { .. }) {
            record.unfinished = self.under_way.get();
        }
        record
    }
}

/// The starts of an open loop that are due in the window.
pub(crate) fn counted_slots(plan: &Plan, rate: f64) -> std::ops::Range<u64> {
    let slots_until = |time: Duration| (time.as_secs_f64() * rate).ceil() as u64;
    slots_until(plan.warmup)..slots_until(plan.warmup + plan.duration)
}
