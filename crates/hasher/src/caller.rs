//! Whether anybody still waits for an answer: who went away before anything was hashed for them leaves the queue.

use std::cell::Cell;
use std::future::pending;
use tokio::sync::watch;

tokio::task_local! {
    static CALLER: Awaited;
}

/// Held by whoever waits; dropping it is going away.
#[derive(Debug)]
pub struct Presence {
    _here: watch::Sender<()>,
}

/// Somebody who may go away while work goes on for them.
#[derive(Debug)]
pub struct Caller {
    presence: watch::Receiver<()>,
}

struct Awaited {
    caller: Caller,
    /// Whether anything was hashed for them.
    begun: Cell<bool>,
}

/// Returns a caller, and what they hold.
#[must_use]
pub fn caller() -> (Presence, Caller) {
    let (here, presence) = watch::channel(());
    (Presence { _here: here }, Caller { presence })
}

/// Does `work` for somebody, in a task that outlives them. If they go away while its first job still waits, that job
/// leaves the queue ([`Refusal::Withdrawn`](crate::Refusal::Withdrawn)). A job that has begun, and every job after
/// it, goes on to its end: a guess that was made can be counted.
pub fn on_behalf_of<W: Future>(caller: Caller, work: W) -> impl Future<Output = W::Output> {
    CALLER.scope(Awaited { caller, begun: Cell::new(false) }, work)
}

/// Notes that something was hashed.
pub(crate) fn begun() {
    let _ = CALLER.try_with(|awaited| awaited.begun.set(true));
}

/// Ends when nobody waits for the first job of this task any more; never, if it is not the first.
pub(crate) async fn gone() {
    let caller = CALLER.try_with(|awaited| (!awaited.begun.get()).then(|| awaited.caller.presence.clone()));
    match caller.ok().flatten() {
        Some(mut presence) => while presence.changed().await.is_ok() {},
        None => pending().await,
    }
}
