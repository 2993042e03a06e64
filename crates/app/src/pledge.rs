//! Work that has to reach its end even if the caller goes away.

use crate::stopwatch::{apart, heard};
use crate::{Fault, asked};
use hasher::caller::{caller, on_behalf_of};
use std::any::Any;
use std::future::Future;
use std::sync::Arc;

tokio::task_local! {
    static HELD: Arc<dyn Any + Send + Sync>;
}

/// Does `work`, and holds `held` until all of it is done, including what goes on after the caller went away: a place
/// that was free before would let in more than there is room for.
pub fn holding<H: Send + Sync + 'static, W: Future>(held: H, work: W) -> impl Future<Output = W::Output> {
    HELD.scope(Arc::new(held), work)
}

/// Held by work that runs to its end. What counts an attempt asks for one, so that it cannot be done elsewhere.
pub(crate) struct Pledge(());

/// Runs `work` to its end even if the caller goes away: an attempt that was made has to be judged, and what was begun
/// after it has to be finished, whether its browser listens or not. Only where no password was hashed yet, the place
/// that it has in the queue goes to others: nothing was tried.
#[allow(clippy::disallowed_methods, reason = "it is awaited here; only a caller that disappears leaves it behind")]
pub(crate) async fn to_the_end<T, W>(work: impl FnOnce(Pledge) -> W) -> Result<T, Fault>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let held = HELD.try_with(Arc::clone).ok();
    let (_here, caller) = caller();
    // Boxed, because it is large and would be moved from layer to layer on its way into the task.
    let work = Box::pin(on_behalf_of(caller, work(Pledge(()))));
    let work = apart(async move {
        let done = work.await;
        drop(held);
        done
    });
    match tokio::spawn(asked::carried(work)).await {
        Ok((done, part)) => {
            heard(&part);
            done
        }
        Err(error) => Err(Fault::Broken(error.to_string())),
    }
}
