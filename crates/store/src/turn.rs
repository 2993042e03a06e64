//! Measures how long batches waited for their turn: behind other batches, or for a connection.

use std::cell::Cell;
use std::time::Duration;

tokio::task_local! {
    static WAITED: Cell<Duration>;
}

/// Runs `work`, and returns how long the batches in it waited before their first statement ran.
pub async fn waiting<W: Future>(work: W) -> (W::Output, Duration) {
    WAITED
        .scope(Cell::new(Duration::ZERO), async {
            let done = work.await;
            (done, WAITED.with(Cell::get))
        })
        .await
}

/// Adds the time that a batch waited. Does nothing outside [`waiting`].
pub fn waited(time: Duration) {
    let _ = WAITED.try_with(|waited| waited.set(waited.get() + time));
}
