//! The signals that stop a process, and its last work.

use super::systemd;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// The events that stop a process: SIGTERM, SIGINT, or the end of the terminal in which it was started.
pub struct Orders {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    /// SIGHUP alone asks for less (to read files again): listened to only if there is a terminal that may go away.
    hangup: Option<Signal>,
}

impl Orders {
    /// Listens for the signals: from now on none of them ends the process by itself.
    pub fn listen() -> Self {
        let heard = |kind| signal(kind).ok();
        Orders {
            terminate: heard(SignalKind::terminate()),
            interrupt: heard(SignalKind::interrupt()),
            hangup: heard(SignalKind::hangup()).filter(|_| std::io::stdin().is_terminal()),
        }
    }

    /// Passes each order on, and logs it. From the first order on, the server is `leaving`.
    pub async fn pass_on(&mut self, leaving: &AtomicBool, tell: mpsc::UnboundedSender<()>) {
        loop {
            self.next().await;
            match leaving.swap(true, Ordering::Relaxed) {
                false => {
                    tracing::info!("stopping");
                    systemd::tell(systemd::STOPPING);
                }
                true => tracing::warn!("another stop signal: open connections are cut"),
            }
            // Nobody receives the order once serving has ended.
            let _ = tell.send(());
        }
    }

    /// Waits for the next order.
    pub async fn next(&mut self) {
        tokio::select! {
            () = comes(&mut self.terminate) => {}
            () = comes(&mut self.interrupt) => {}
            () = terminal_gone(&mut self.hangup) => {}
        }
    }
}

async fn comes(signal: &mut Option<Signal>) {
    let Some(heard) = signal else { return std::future::pending().await };
    if heard.recv().await.is_none() {
        std::future::pending().await
    }
}

async fn terminal_gone(hangup: &mut Option<Signal>) {
    loop {
        comes(hangup).await;
        if !std::io::stdin().is_terminal() {
            // A terminal goes away only once.
            *hangup = None;
            return;
        }
    }
}

/// Does the last work of a server, then closes it, on a thread that may block: a disk may stall, or a database server
/// may not answer. Returns whether all was done before the server was told `again` to stop. If not, the thread abandons
/// the work and goes on with closing for as long as the process lives.
pub async fn wind_down(
    work: impl Future<Output = ()> + Send + 'static,
    close: impl FnOnce() + Send + 'static,
    again: impl Future<Output = ()>,
) -> bool {
    // Dropped when this function returns.
    let (_waited_for, given_up) = oneshot::channel::<Infallible>();
    let (runtime, work) = (Handle::current(), Box::pin(work));
    let done = spawn_blocking(move || {
        runtime.block_on(async move {
            tokio::select! {
                // Polled first: the runtime may have ended meanwhile, and the work would ask it for the time.
                biased;
                _ = given_up => {}
                () = work => {}
            }
        });
        close();
    });
    tokio::select! {
        done = done => {
            done.unwrap_or_else(|error| resume_unwind(error.into_panic()));
            true
        }
        () = again => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::thread;

    #[tokio::test]
    async fn one_more_order_ends_a_wind_down_whose_work_never_ends() {
        // red without `again`, or where abandoned work is not closed: the last to drop it would wait for the disk.
        let (closes, closed) = oneshot::channel();
        assert!(!wind_down(pending(), move || closes.send(()).unwrap(), ready(())).await);
        assert_eq!(closed.await, Ok(()));
    }

    #[tokio::test]
    async fn a_disk_that_stands_still_keeps_no_order_from_being_heard() {
        // red where the work or the closing is done on the thread that listens.
        let ours = thread::current().id();
        let (tell, mut told) = mpsc::unbounded_channel();
        let closes = tell.clone();
        let work = async move { tell.send(thread::current().id()).unwrap() };
        assert!(wind_down(work, move || closes.send(thread::current().id()).unwrap(), pending()).await);
        for what in ["work", "closing"] {
            assert!(told.recv().await.is_some_and(|theirs| theirs != ours), "{what}");
        }
    }

    #[tokio::test]
    #[should_panic(expected = "while it is closed")]
    async fn a_panic_at_the_end_is_not_taken_for_an_end() {
        wind_down(ready(()), || panic!("while it is closed"), pending()).await;
    }
}
