//! Somebody who does not want to wait for the end: Ctrl-C, SIGTERM, or a terminal that is closed. What was measured by then is
//! told all the same.

use crate::Refusal;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Instant;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Since when somebody wants the end. By default nobody ever does.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Heard>);

#[derive(Clone)]
struct Heard {
    since: watch::Receiver<Option<Instant>>,
    /// Whether anybody has asked yet: until then there is nothing to tell, and nobody who would end.
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// One by hand, for a program that has an end of its own to offer: what is sent is the moment.
    pub fn by_hand() -> (watch::Sender<Option<Instant>>, Interrupt) {
        let (sender, since) = watch::channel(None);
        (sender, Interrupt(Some(Heard { since, asked: Arc::default() })))
    }

    /// Listens for SIGINT, SIGTERM and SIGHUP from now on. The first is an end before its time; the second ends the process at
    /// once, and so does the first as long as nothing has begun. Where it cannot be listened, the first does.
    pub fn by_signals() -> Interrupt {
        let (sender, since) = watch::channel(None);
        let asked = Arc::new(AtomicBool::new(false));
        let heard = Heard { since, asked: Arc::clone(&asked) };
        let listen = move || listen(&sender, &asked);
        let spawned = std::thread::Builder::new().name("load-signals".to_owned()).spawn(listen);
        spawned.map(|_| Interrupt(Some(heard))).unwrap_or_default()
    }

    /// When somebody began to want the end.
    pub fn since(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|heard| *heard.asking().borrow())
    }

    /// Goes on while nobody wants the end.
    ///
    /// # Errors
    /// [`Refusal::Failure`] otherwise.
    pub fn check(&self) -> Result<(), Refusal> {
        self.since().map_or(Ok(()), |_| Err(Refusal::Failure("interrupted".to_owned())))
    }

    /// What `work` comes to, or nothing once somebody wants the end.
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

/// What is done before a signal ends the process.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Ends the process at the first signal, once `last` was done. A process that is the first of its container is ended by none that
/// it does not listen for, and all others of the container end with it.
///
/// Whoever has something to offer by then asks what comes back: from the first time on the first signal is an end before its time, and
/// only the second ends the process.
pub fn end_after(last: fn()) -> Interrupt {
    if LAST.set(last).is_ok() { Interrupt::by_signals() } else { Interrupt::default() }
}

/// Goes on whatever signal comes, for a process that ends when another one has ended. Where it cannot be listened, one ends it.
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

/// True under `nohup`, which wants a process to go on when its terminal is closed.
fn ignores_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP != 0)
}

/// The signals, each with what a shell says of a process that it ended.
fn all() -> std::io::Result<Vec<(Signal, i32)>> {
    let hangup = (!ignores_hangup()).then_some((SignalKind::hangup(), 129));
    let kinds = [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143)].into_iter().chain(hangup);
    kinds.map(|(kind, code)| signal(kind).map(|signal| (signal, code))).collect()
}

/// The next that comes.
async fn next(heard: &mut [(Signal, i32)]) -> i32 {
    std::future::poll_fn(|context| {
        let came = heard.iter_mut().find_map(|(signal, code)| signal.poll_recv(context).is_ready().then_some(*code));
        came.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Waits for signals as long as the process runs.
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
