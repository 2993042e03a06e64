//! Carries out a plan: independent threads, a common start, and a window in which everything counts.

use crate::Refusal;
use crate::cpu;
use crate::desk::Desk;
use crate::interrupt::Interrupt;
use crate::pacer::Pacer;
use crate::plan::{Pace, Plan};
use crate::record::{Busy, Latencies, Record};
use crate::rehearsal::{prepared, rehearse};
use crate::report::{Report, Spent};
use crate::room::make_room;
use crate::visitor::{Scene, Setback, Visitor};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep_until, timeout_at};

/// How often progress is reported.
const PULSE: Duration = Duration::from_millis(500);
/// How many visitors sign in at once while preparing: enough to keep a server busy, and few enough not to flood it.
const PREPARE_AT_ONCE: usize = 32;

/// What has happened since the last pulse.
#[derive(Clone, Default)]
pub struct Pulse {
    /// Iterations that succeeded.
    pub iterations: Latencies,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that the server refused politely.
    pub refused: u64,
    /// Before the start: the visitors that are ready.
    pub ready: usize,
}

impl Pulse {
    fn merge(&mut self, other: &Pulse) {
        self.iterations.merge(&other.iterations);
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

/// A callback for progress. It receives how much of the plan's time has passed (warm-up included; zero while visitors
/// prepare), and what happened in about the last half second.
pub type Watcher<'a> = &'a mut dyn FnMut(Duration, &Pulse);

/// Carries out `plan` on threads of its own and blocks until it is done. Without a watcher, nothing is spent on
/// progress. Call it on a plain thread, not from asynchronous code.
///
/// # Panics
/// When a thread of the generator panics, and when called inside an asynchronous runtime.
///
/// # Errors
/// [`Refusal`]: the plan makes no sense, the target is not a provider, or the first iteration did not succeed.
pub fn run(plan: &Plan, watcher: Option<Watcher<'_>>) -> Result<Report, Refusal> {
    together(std::slice::from_ref(plan), watcher)
}

/// Carries out several plans side by side, in one window: the first plan's. Returns the first plan's report, which
/// holds the other plans' reports in [`beside`](Report::beside).
///
/// # Panics
/// As [`run`], and when `plans` is empty.
///
/// # Errors
/// As [`run`].
pub fn together(plans: &[Plan], mut watcher: Option<Watcher<'_>>) -> Result<Report, Refusal> {
    plans.iter().try_for_each(Plan::check)?;
    make_room(plans.iter().map(|plan| plan.pace.visitors() as u64).sum())?;
    let scenes: Vec<_> = plans.iter().map(|plan| rehearse(plan).map(Arc::new)).collect::<Result<_, _>>()?;
    let (start, window) = watch::channel(None);
    let (send_pulse, pulses) = mpsc::channel();
    let crew = Crew::hire(&scenes, &window, watcher.is_some().then_some(&send_pulse))?;
    drop((send_pulse, window));
    // Returning early drops `start`, which makes the other threads end.
    crew.wait_until_ready(&mut watcher, &plans[0].interrupt)?;
    let window = Window::after(Instant::now(), &plans[0]);
    start.send_replace(Some(window));
    let spent = observe(&plans[0], window, &pulses, &mut watcher)?;
    // Iterations that still wait for an answer have until the timeout.
    while !pass_on(&pulses, &mut watcher, (window, Instant::now() + PULSE), || false) {}
    let mut records = vec![Record::default(); plans.len()];
    for (stream, thread) in crew.threads {
        records[stream].merge(&thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    let spent = Spent { requests: records.iter().map(Record::requests_told).sum(), ..spent };
    // Processor time covers all plans together, so only the first report states it.
    let spent = std::iter::once(spent).chain(std::iter::repeat(Spent {
        generator: None,
        others: None,
        stolen: None,
        server: None,
        server_is_gone: false,
        ..spent
    }));
    let each = scenes.iter().zip(records).zip(spent);
    let mut reports = each.map(|((scene, record), spent)| Report::of(scene, record, spent));
    let first = reports.next().unwrap_or_else(|| panic!("together() was given no plan"));
    Ok(Report { beside: reports.collect(), ..first })
}

/// The threads, and what they report while they prepare.
struct Crew {
    /// Each thread with the index of the plan that it works for.
    threads: Vec<(usize, thread::JoinHandle<Record>)>,
    reports: mpsc::Receiver<Result<(), String>>,
    /// Visitors that are ready.
    ready: Arc<AtomicUsize>,
}

impl Crew {
    fn hire(
        scenes: &[Arc<Scene>],
        window: &watch::Receiver<Option<Window>>,
        pulses: Option<&mpsc::Sender<Pulse>>,
    ) -> Result<Crew, Refusal> {
        let (report_ready, reports) = mpsc::channel();
        let mut crew = Crew { threads: Vec::new(), reports, ready: Arc::default() };
        for (stream, scene) in scenes.iter().enumerate() {
            for index in 0..scene.plan.threads() {
                let post = Post {
                    index,
                    scene: Arc::clone(scene),
                    report: Some(report_ready.clone()),
                    ready: Arc::clone(&crew.ready),
                    window: window.clone(),
                    // Only the first plan reports progress, since the run is about it: beside sign-ins that wait, the
                    // other plans may do thousands of iterations.
                    pulses: pulses.filter(|_| stream == 0).cloned(),
                };
                let thread = thread::Builder::new().name(format!("load-{stream}-{index}")).spawn(move || post.man());
                let thread = thread.map_err(|error| Refusal::Failure(format!("cannot start a thread: {error}")))?;
                crew.threads.push((stream, thread));
            }
        }
        Ok(crew)
    }

    fn wait_until_ready(&self, watcher: &mut Option<Watcher<'_>>, interrupt: &Interrupt) -> Result<(), Refusal> {
        loop {
            interrupt.check()?;
            match self.reports.recv_timeout(PULSE) {
                Ok(prepared) => prepared.map_err(Refusal::Failure)?,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Some(watcher) = watcher {
                        let ready = self.ready.load(Ordering::Relaxed);
                        watcher(Duration::ZERO, &Pulse { ready, ..Pulse::default() });
                    }
                }
            }
        }
    }
}

/// Builds a runtime for one thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("cannot start the runtime: {error}"))
}

/// The times at which a run begins (`begin`), starts to count (`from`), and ends (`until`).
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub begin: Instant,
    pub from: Instant,
    pub until: Instant,
}

impl Window {
    fn after(begin: Instant, plan: &Plan) -> Self {
        let from = begin + plan.warmup;
        Window { begin, from, until: from + plan.duration }
    }

    pub fn holds(&self, moment: Instant) -> bool {
        (self.from..self.until).contains(&moment)
    }
}

/// Reads processor times at both ends of the window, and passes pulses on to the watcher in between.
fn observe(
    plan: &Plan,
    window: Window,
    pulses: &mpsc::Receiver<Pulse>,
    watcher: &mut Option<Watcher<'_>>,
) -> Result<Spent, Refusal> {
    let mut wait_until = |end: Instant| {
        let is_over = || Instant::now() >= end || plan.interrupt.since().is_some();
        while !is_over() {
            let next = end.min(Instant::now() + PULSE);
            // Without a watcher no thread sends pulses.
            if pass_on(pulses, watcher, (window, next), is_over) {
                thread::sleep(next.saturating_duration_since(Instant::now()).min(PULSE / 5));
            }
        }
    };
    wait_until(window.from);
    // A run that is interrupted before the window has no result.
    plan.interrupt.check()?;
    let before = (cpu::own(), plan.server_time()?, cpu::of_cores(&plan.server_pids));
    let began = Instant::now();
    wait_until(window.until);
    let difference = |before: Option<Duration>, after: Option<Duration>| after?.checked_sub(before?);
    let is_named = !plan.server_pids.is_empty();
    let server = difference(Some(before.1), cpu::of_processes(&plan.server_pids)).filter(|_| is_named);
    let machine = cpu::of_cores(&plan.server_pids).and_then(|cores| cores.since(before.2?));
    let server_is_gone = is_named && server.is_none();
    let cut =
        plan.interrupt.since().map(|at| at.saturating_duration_since(window.from)).filter(|cut| *cut < plan.duration);
    let generator = difference(before.0, cpu::own());
    // Each of these is read with the resolution of a clock tick, and one after the other.
    let known = generator.unwrap_or_default() + server.unwrap_or_default();
    let others = machine.map(|machine| machine.worked.saturating_sub(known));
    let stolen = machine.map(|machine| machine.stolen);
    Ok(Spent { time: began.elapsed(), generator, others, stolen, server, server_is_gone, requests: 0, cut })
}

/// Gathers pulses until `until` or `is_over`, then passes them on. Returns true when no more pulses will come.
fn pass_on(
    pulses: &mpsc::Receiver<Pulse>,
    watcher: &mut Option<Watcher<'_>>,
    (window, until): (Window, Instant),
    is_over: impl Fn() -> bool,
) -> bool {
    let mut gathered = Pulse::default();
    while Instant::now() < until && !is_over() {
        let step = until.saturating_duration_since(Instant::now()).min(PULSE / 5);
        match pulses.recv_timeout(step) {
            Ok(pulse) => gathered.merge(&pulse),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return true,
        }
    }
    if let Some(watcher) = watcher {
        watcher(window.begin.elapsed(), &gathered);
    }
    false
}

/// What a thread needs for its work.
struct Post {
    index: usize,
    scene: Arc<Scene>,
    /// Dropped once the thread has reported: the channel closes when every thread has reported or ended.
    report: Option<mpsc::Sender<Result<(), String>>>,
    ready: Arc<AtomicUsize>,
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

    /// Reports once. If another thread was refused first, nobody listens any more, and the window will not open either.
    fn tell(&mut self, outcome: Result<(), String>) {
        let _ = self.report.take().map(|report| report.send(outcome));
    }

    async fn work(mut self) -> Record {
        let pacer = self
            .scene
            .schedule
            .clone()
            .map(|schedule| {
                let plan = &self.scene.plan;
                Pacer::hire(schedule, plan.pace.visitors(), (self.index, plan.threads()))
            })
            .transpose();
        let pacer = match pacer {
            Ok(pacer) => pacer,
            Err(error) => {
                self.tell(Err(format!("cannot start a thread: {error}")));
                return Record::default();
            }
        };
        let prepared = self.visitors().await;
        self.tell(prepared.as_ref().map(|_| ()).map_err(|setback| format!("a visitor cannot begin: {setback}")));
        let Ok(visitors) = prepared else { return Record::default() };
        let started = self.window.wait_for(Option::is_some).await.map(|window| *window);
        let Ok(Some(window)) = started else { return Record::default() };
        let (gate, paced) = pacer.map(|pacer| pacer.begin(window.begin, window.until)).unzip();
        let desk = Rc::new(Desk::new(window, (&self.scene, self.index), self.pulses.is_some()));
        let mut tasks = JoinSet::new();
        for (at, visitor) in visitors.into_iter().enumerate() {
            let number = self.index + at * self.scene.plan.threads();
            tasks.spawn_local(Rc::clone(&desk).serve(visitor, number));
        }
        // Spawned after the visitors, so that all of them are free before the first start.
        let porter = gate.map(|gate| tokio::task::spawn_local(Rc::clone(&desk).hand_out(gate)));
        let busy = tokio::task::spawn_local(busy(window, self.scene.plan.interrupt.clone()));
        let patience = match self.scene.plan.pace {
            Pace::Closed { .. } => Duration::ZERO,
            Pace::Open { .. } => self.scene.plan.timeout,
        };
        self.wait(&mut tasks, &desk, window.until + patience).await;
        // Dropping an iteration that is in flight records it.
        tasks.shutdown().await;
        porter.inspect(tokio::task::JoinHandle::abort);
        // This task ends with the window, which is over.
        let busy = busy.await.unwrap_or_default();
        let paced = paced.and_then(|paced| paced.get().copied()).unwrap_or_default();
        Record { busy, paced, ..desk.close() }
    }

    /// Returns this thread's share of the visitors, all of them prepared.
    async fn visitors(&self) -> Result<Vec<Visitor>, Setback> {
        let plan = &self.scene.plan;
        let mut tasks = JoinSet::new();
        let room = Rc::new(Semaphore::new((PREPARE_AT_ONCE / plan.threads()).max(1)));
        let recovery = plan.recovery;
        for _ in (self.index..plan.pace.visitors()).step_by(plan.threads()) {
            let mut visitor = Visitor::new(Arc::clone(&self.scene));
            let (room, ready) = (Rc::clone(&room), Arc::clone(&self.ready));
            tasks.spawn_local(async move {
                let _turn = room.acquire().await;
                prepared(&mut visitor, recovery).await?;
                ready.fetch_add(1, Ordering::Relaxed);
                Ok(visitor)
            });
        }
        let mut ready = Vec::with_capacity(tasks.len());
        while let Some(visitor) = tasks.join_next().await {
            ready.push(visitor.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        }
        Ok(ready)
    }

    /// Waits until every visitor has stopped, or until `deadline`; reports progress meanwhile.
    async fn wait(&self, tasks: &mut JoinSet<()>, desk: &Desk, deadline: Instant) {
        loop {
            let wake = deadline.min(Instant::now() + PULSE / 5);
            match timeout_at(wake.into(), tasks.join_next()).await {
                Ok(None) => return,
                Ok(Some(Err(error))) => std::panic::resume_unwind(error.into_panic()),
                Ok(Some(Ok(()))) => {}
                Err(_) if wake == deadline || self.scene.plan.interrupt.since().is_some() => return,
                Err(_) => {
                    if let Some(pulses) = &self.pulses {
                        // Nobody listens any more once the window is over.
                        let _ = pulses.send(desk.pulse());
                    }
                }
            }
        }
    }
}

/// Returns the shares of the window in which the calling thread ran on a processor and in which it waited for one.
async fn busy(window: Window, interrupt: Interrupt) -> Busy {
    let spent = || (cpu::of_thread(), cpu::waited_of_thread());
    interrupt.unless(sleep_until(window.from.into())).await;
    let (begun, before) = (Instant::now(), spent());
    interrupt.unless(sleep_until(window.until.into())).await;
    let (after, passed) = (spent(), begun.elapsed().as_secs_f64());
    let share = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / passed;
    let waiting = before.1.zip(after.1).map(|(before, after)| share(before, after));
    Busy { running: share(before.0, after.0), waiting }
}
