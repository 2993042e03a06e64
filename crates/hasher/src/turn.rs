//! When the turn of a password came: what was waited for before it, and what the hash itself took.

use std::cell::Cell;
use std::time::Instant;

tokio::task_local! {
    static BEGUN: Cell<Option<Instant>>;
}

/// Does `work`, and tells when the batch was begun in which the last password of it was hashed; `None` where none was.
pub async fn told<W: Future>(work: W) -> (W::Output, Option<Instant>) {
    let told = BEGUN.scope(Cell::new(None), async {
        let done = work.await;
        (done, BEGUN.with(Cell::get))
    });
    let (done, last) = told.await;
    // Whoever asked for more than this hears of it, too.
    last.into_iter().for_each(begun);
    (done, last)
}

/// A password was hashed, in a batch that was begun then. Nobody may be interested.
pub(crate) fn begun(at: Instant) {
    let _ = BEGUN.try_with(|begun| begun.set(Some(at)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_asks_for_all_of_it_hears_what_who_asks_for_a_part_hears() {
        let (first, last) = (Instant::now(), Instant::now());
        let all = told(async {
            assert_eq!(told(async { begun(first) }).await.1, Some(first));
            assert_eq!(told(async {}).await.1, None);
            assert_eq!(told(async { begun(last) }).await.1, Some(last));
        });
        assert_eq!(all.await.1, Some(last));
    }
}
