//! The threads that hash: each runs one batch at a time, at a low priority, and survives whatever a job does.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    calibrate::Trial,
    gate::{Gate, Next},
    home::Home,
    job::{Computed, Input, Job, Kind, Tag},
    native::{Fault, Kernel, sample},
    priority,
    state::Refusal,
    took::Stopwatch,
};

/// Starts `threads` threads that work for `gate` until it closes, each with a kernel of its own. The returned receiver
/// counts the threads that are alive.
///
/// # Errors
/// When the system gives no more threads; those that did start end when the gate closes.
pub(crate) fn start<K: Kernel>(
    gate: &Arc<Gate>,
    threads: usize,
    nice: u8,
    kernel: impl Fn() -> K + Clone + Send + 'static,
) -> io::Result<watch::Receiver<usize>> {
    let (alive, seen) = watch::channel(0);
    let alive = Arc::new(alive);
    for number in 0..threads {
        let (gate, kernel, living) = (gate.clone(), kernel.clone(), Living::new(alive.clone()));
        thread::Builder::new().name(format!("hasher-{number}")).spawn(move || {
            let _living = living;
            priority::step_back(nice);
            gate.meters.add();
            let home = Home::of(number, threads);
            survive(&gate, number, (kernel, home));
        })?;
    }
    Ok(seen)
}

/// Counts a thread from before it starts until it ends, however it ends.
struct Living(Arc<watch::Sender<usize>>);

impl Living {
    fn new(alive: Arc<watch::Sender<usize>>) -> Self {
        alive.send_modify(|count| *count += 1);
        Living(alive)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// How long a thread that died pauses: if it dies again and again, it leaves the core to others.
const REST: Duration = Duration::from_millis(100);

/// Works until the gate closes, whatever happens outside of the jobs: if the thread stayed dead, what it ran and held
/// would stay in the books for ever. Its memory goes with its kernel, the callers of its jobs get an error, and it
/// begins anew.
fn survive<K: Kernel>(gate: &Gate, number: usize, (kernel, mut home): (impl Fn() -> K, Option<Home>)) {
    while catch_unwind(AssertUnwindSafe(|| work(gate, number, (kernel(), &mut home)))).is_err() {
        gate.died(number);
        thread::sleep(REST);
    }
}

fn work<K: Kernel>(gate: &Gate, number: usize, (mut kernel, home): (K, &mut Option<Home>)) {
    loop {
        if let Some(home) = home {
            home.look();
        }
        match gate.next(number) {
            Next::Run(kind, jobs) => run(gate, number, &mut kernel, (kind, jobs)),
            Next::Try(trial) => measure(gate, number, &mut kernel, trial),
            Next::Keep(kib) => {
                kernel.keep(kib);
                gate.kept(number, kernel.held());
            }
            Next::Stop => return,
        }
    }
}

/// Runs a batch and answers each of its jobs.
fn run<K: Kernel>(gate: &Gate, number: usize, kernel: &mut K, (kind, jobs): (Kind, Vec<Job>)) {
    let (inputs, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.input, job.reply)).unzip();
    let watch = Stopwatch::start(kernel);
    let together = compute(kernel, kind, &inputs);
    let took = together.is_ok().then(|| watch.took(kernel));
    let tags: Vec<Result<Tag, Fault>> = match together {
        Ok(tags) => tags.into_iter().map(Ok).collect(),
        Err(fault) if inputs.len() == 1 => vec![Err(fault)],
        // Whichever job failed, the others are not to suffer for it.
        Err(_) => inputs.chunks(1).map(|input| compute(kernel, kind, input)?.pop().ok_or(Fault)).collect(),
    };
    drop(inputs);
    let failed = tags.iter().filter(|tag| tag.is_err()).count();
    gate.finished(number, (took, failed), kernel.held());
    for (reply, tag) in replies.into_iter().zip(tags) {
        let answer = tag.map(|tag| Computed { tag, by: None, begun: watch.begun() }).map_err(|Fault| Refusal::Failed);
        // This wakes the caller, whose waker is not ours: a fault of it must not harm the other jobs.
        drop(catch_unwind(AssertUnwindSafe(|| gate.deliver(reply, answer))));
    }
}

/// Runs a batch that nobody waits for.
fn measure<K: Kernel>(gate: &Gate, number: usize, kernel: &mut K, trial: Trial) {
    let inputs: Vec<_> = (0..trial.size).filter_map(|number| sample(trial.kind, number as u8)).collect();
    let watch = Stopwatch::start(kernel);
    let tags = compute(kernel, trial.kind, &inputs);
    gate.tried(number, tags.is_ok().then(|| watch.took(kernel)), kernel.held());
}

/// A panic ends the batch, not the thread; after any fault the kernel's memory is neither trusted nor kept.
fn compute<K: Kernel>(kernel: &mut K, kind: Kind, inputs: &[Input]) -> Result<Vec<Tag>, Fault> {
    let tags = catch_unwind(AssertUnwindSafe(|| kernel.tags(kind, inputs))).unwrap_or(Err(Fault));
    let tags = tags.and_then(|tags| if tags.len() == inputs.len() { Ok(tags) } else { Err(Fault) });
    if tags.is_err() {
        kernel.keep(0);
    }
    tags
}
