//! When a process is to stop.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// What tells a process to stop: SIGTERM, SIGINT, or the end of the terminal in which it was started.
pub struct Orders {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    /// SIGHUP by itself asks for less (files are read again): heard where there is a terminal that may go.
    hangup: Option<Signal>,
}

impl Orders {
    /// From now on none of them ends the process by itself.
    pub fn listen() -> Self {
        let heard = |kind| signal(kind).ok();
        Orders {
            terminate: heard(SignalKind::terminate()),
            interrupt: heard(SignalKind::interrupt()),
            hangup: heard(SignalKind::hangup()).filter(|_| std::io::stdin().is_terminal()),
        }
    }

    /// Passes each of them on, and says so. From the first on the server is `leaving`.
    pub async fn pass_on(mut self, leaving: &AtomicBool, tell: mpsc::UnboundedSender<()>) {
        loop {
            self.next().await;
            match leaving.swap(true, Ordering::Relaxed) {
                false => tracing::info!("stopping"),
                true => tracing::warn!("told to stop again: what runs is cut"),
            }
            // Nobody hears it where serving has ended.
            let _ = tell.send(());
        }
    }

    /// Ready when the next one came.
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
            // A terminal goes once.
            *hangup = None;
            return;
        }
    }
}
