//! Ending a run early: by Ctrl-C, SIGTERM, or a closed terminal. What was measured by then is still reported.

use crate::Refusal;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The time at which the end was requested. By default nobody can request it.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Heard>);

#[derive(Clone)]
struct Heard {
    since: watch::Receiver<Option<Instant>>,
    /// Whether the program has asked for the time yet: before that it has nothing to report and would not end.
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Creates an interrupt for a program that requests the end itself: it sends the moment.
    pub fn by_hand() -> (watch::Sender<Option<Instant>>, Interrupt) {
        let (sender, since) = watch::channel(None);
        (sender, Interrupt(Some(Heard { since, asked: Arc::default() })))
    }

    /// Listens for SIGINT, SIGTERM and SIGHUP from now on. The first signal ends the run early; the second ends the
    /// process at once, and so does the first one if nothing has begun. If listening fails, the first signal ends the
    /// process.
    pub fn by_signals() -> Interrupt {
        let (sender, since) = watch::channel(None);
        let asked = Arc::new(AtomicBool::new(false));
        let heard = Heard { since, asked: Arc::clone(&asked) };
        let listen = move || listen(&sender, &asked);
        let spawned = std::thread::Builder::new().name("load-signals".to_owned()).spawn(listen);
        spawned.map(|_| Interrupt(Some(heard))).unwrap_or_default()
    }

    /// Returns when the end was requested.
    pub fn since(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|heard| *heard.asking().borrow())
    }

    /// Returns `Ok` while nobody has requested the end.
    ///
    /// # Errors
    /// [`Refusal::Failure`] otherwise.
    pub fn check(&self) -> Result<(), Refusal> {
        self.since().map_or(Ok(()), |_| Err(Refusal::Failure("interrupted".to_owned())))
    }

    /// Returns the result of `work`, or `None` once the end is requested.
    pub async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut wanted) = (pin!(work), pin!(self.wanted()));
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => wanted.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    async fn wanted(&self) {
        if let Some(mut receiver) = self.0.as_ref().map(|heard| heard.asking().clone())
            && receiver.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

/// What to do before a signal ends the process.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Ends the process at the first signal, after calling `last`. A process that is the first of its container is only
/// ended by signals that it listens for, and all others of the container end with it.
///
/// A caller that has something to report uses the returned interrupt: from the first query on, the first signal ends
/// the run early, and only the second one ends the process.
pub fn end_after(last: fn()) -> Interrupt {
    if LAST.set(last).is_ok() { Interrupt::by_signals() } else { Interrupt::default() }
}

/// Ignores every signal, for a process that ends when another one has ended. If listening fails, a signal ends it.
pub fn ignore() {
    drop(std::thread::Builder::new().name("load-signals".to_owned()).spawn(|| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut heard) = all() else { return };
            loop {
                next(&mut heard).await;
            }
        });
    }));
}

impl Heard {
    fn asking(&self) -> &watch::Receiver<Option<Instant>> {
        if !self.asked.load(Relaxed) {
            self.asked.store(true, Relaxed);
        }
        &self.since
    }
}

/// Returns true under `nohup`, which wants a process to continue after its terminal is closed.
fn ignores_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP != 0)
}

/// Returns the signals, each with the exit code that a shell reports for a process ended by it.
fn all() -> std::io::Result<Vec<(Signal, i32)>> {
    let hangup = (!ignores_hangup()).then_some((SignalKind::hangup(), 129));
    let kinds = [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143)].into_iter().chain(hangup);
    kinds.map(|(kind, code)| signal(kind).map(|signal| (signal, code))).collect()
}

/// Waits for the next signal and returns its exit code.
async fn next(heard: &mut [(Signal, i32)]) -> i32 {
    std::future::poll_fn(|context| {
        let came = heard.iter_mut().find_map(|(signal, code)| signal.poll_recv(context).is_ready().then_some(*code));
        came.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Handles signals as long as the process runs.
fn listen(sender: &watch::Sender<Option<Instant>>, asked: &AtomicBool) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let Ok(mut heard) = all() else { return };
        loop {
            let code = next(&mut heard).await;
            if sender.borrow().is_some() || !asked.load(Relaxed) {
                if let Some(last) = LAST.get() {
                    last();
                }
                std::process::exit(code);
            }
            sender.send_replace(Some(Instant::now()));
        }
    });
}
