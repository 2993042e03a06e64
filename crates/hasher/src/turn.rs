//! When the turn of a password came: what was waited for before it, and what the hash itself took.

use std::cell::Cell;
use std::time::Instant;

tokio::task_local! {
    static BEGUN: Cell<Option<Instant>>;
}

/// Does `work`, and tells when the batch was begun in which the last password of it was hashed; `None` where none was.
pub async fn told<W: Future>(work: W) -> (W::Output, Option<Instant>) {
    BEGUN
        .scope(Cell::new(None), async {
            let done = work.await;
            (done, BEGUN.with(Cell::get))
        })
        .await
}

/// When that was, so far.
pub(crate) fn moment() -> Option<Instant> {
    BEGUN.try_with(Cell::get).ok().flatten()
}

/// A password was hashed, in a batch that was begun then. Nobody may be interested.
pub(crate) fn begun(at: Instant) {
    let _ = BEGUN.try_with(|begun| begun.set(Some(at)));
}
