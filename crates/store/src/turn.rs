//! How long batches waited for their turn: behind others, or for a connection.

use std::cell::Cell;
use std::time::Duration;

tokio::task_local! {
    static WAITED: Cell<Duration>;
}

/// Does `work`, and tells for how long the batches in it waited before any statement of theirs ran.
pub async fn waiting<W: Future>(work: W) -> (W::Output, Duration) {
    WAITED
        .scope(Cell::new(Duration::ZERO), async {
            let done = work.await;
            (done, WAITED.with(Cell::get))
        })
        .await
}

/// A batch waited so long. Nobody may be interested.
pub fn waited(time: Duration) {
    let _ = WAITED.try_with(|waited| waited.set(waited.get() + time));
}
