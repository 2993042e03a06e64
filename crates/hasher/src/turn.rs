//! When a password's turn came: tells the time that it waited from the time that its hash took.

use std::cell::Cell;
use std::time::Instant;

tokio::task_local! {
    static BEGUN: Cell<Option<Instant>>;
}

/// Does `work`, and returns when the batch began in which its last password was hashed; `None` if it hashed none.
pub async fn told<W: Future>(work: W) -> (W::Output, Option<Instant>) {
    BEGUN
        .scope(Cell::new(None), async {
            let done = work.await;
            (done, BEGUN.with(Cell::get))
        })
        .await
}

/// When that batch began, so far.
pub(crate) fn moment() -> Option<Instant> {
    BEGUN.try_with(Cell::get).ok().flatten()
}

/// Notes that a password was hashed, in a batch that began at `at`. Nobody may be interested.
pub(crate) fn begun(at: Instant) {
    let _ = BEGUN.try_with(|begun| begun.set(Some(at)));
}
