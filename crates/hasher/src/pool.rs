//! The threads that hash: one job at a time each, at a low priority, alive whatever a job does.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Instant,
};

use tokio::sync::watch;

use crate::{
    arena::Kernel,
    gate::{Gate, Next, Refusal},
    job::Job,
    machine,
};

/// Starts `threads` threads that work for `gate` until it closes, each with a kernel of its own. The answer counts
/// those that live.
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
            machine::step_back(nice);
            work(&gate, number, kernel());
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

fn work<K: Kernel>(gate: &Gate, number: usize, mut kernel: K) {
    loop {
        match gate.next(number) {
            Next::Run(job) => run(gate, number, &mut kernel, job),
            Next::Release => {
                kernel.release();
                gate.released(number);
            }
            Next::Stop => return,
        }
    }
}

/// Runs one job. A panic in it ends the job, not the thread; the kernel's memory is not trusted afterwards.
fn run<K: Kernel>(gate: &Gate, number: usize, kernel: &mut K, job: Job) {
    let Job { kind, input, reply } = job;
    let begun = Instant::now();
    let tag = catch_unwind(AssertUnwindSafe(|| kernel.tag(kind, &input)));
    let elapsed = begun.elapsed();
    drop(input);
    let tag = match tag {
        Ok(Ok(tag)) => Ok(tag),
        Ok(Err(_)) | Err(_) => {
            kernel.release();
            gate.released(number);
            Err(Refusal::Failed)
        }
    };
    gate.finished(number, kind, tag.is_ok().then_some(elapsed));
    // Whoever asked may have gone: then nobody needs the tag.
    let _ = reply.send(tag);
}
