//! Somebody who does not want to wait for the end: Ctrl-C, or SIGTERM. What was measured by then is told all the same.

use crate::Refusal;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Since when somebody wants the end. By default nobody ever does.
#[derive(Clone, Default)]
pub struct Interrupt(Option<watch::Receiver<Option<Instant>>>);

impl Interrupt {
    /// One by hand, for a program that has an end of its own to offer: what is sent is the moment.
    pub fn by_hand() -> (watch::Sender<Option<Instant>>, Interrupt) {
        let (sender, receiver) = watch::channel(None);
        (sender, Interrupt(Some(receiver)))
    }

    /// Listens for SIGINT and SIGTERM from now on. The first is an end before its time; the second ends the process at once. Where
    /// it cannot be listened, the first does.
    pub fn by_signals() -> Interrupt {
        let (sender, interrupt) = Interrupt::by_hand();
        let spawned = std::thread::Builder::new().name("load-signals".to_owned()).spawn(move || listen(&sender));
        spawned.map(|_| interrupt).unwrap_or_default()
    }

    /// When somebody began to want the end.
    pub fn since(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|receiver| *receiver.borrow())
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
        if let Some(mut receiver) = self.0.clone()
            && receiver.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Waits for signals as long as the process runs.
fn listen(sender: &watch::Sender<Option<Instant>>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let Ok(mut interrupt) = signal(SignalKind::interrupt()) else { return };
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        loop {
            // What a shell says of a process that a signal ended.
            let code = std::future::poll_fn(|context| match interrupt.poll_recv(context) {
                Poll::Ready(_) => Poll::Ready(130),
                Poll::Pending => terminate.poll_recv(context).map(|_| 143),
            });
            let code = code.await;
            if sender.borrow().is_some() {
                std::process::exit(code);
            }
            sender.send_replace(Some(Instant::now()));
        }
    });
}
