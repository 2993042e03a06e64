//! When a process is to stop.

use std::io::IsTerminal;
use tokio::signal::unix::{SignalKind, signal};

/// SIGTERM, SIGINT, or the end of the terminal in which it was started.
pub async fn told_to_stop() {
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = terminal_gone() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// Ready when the terminal in which the process was started is gone. SIGHUP by itself asks for less: files are read again.
async fn terminal_gone() {
    let heard = signal(SignalKind::hangup()).ok().filter(|_| std::io::stdin().is_terminal());
    let Some(mut hangup) = heard else { return std::future::pending().await };
    while hangup.recv().await.is_some() && std::io::stdin().is_terminal() {}
}
