//! A place in the queue.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use tokio::sync::oneshot;

use super::{Gate, Refusal};
use crate::{
    caller,
    fair::FairKey,
    job::{Computed, Tag},
    turn,
};

/// A place in the queue. Dropping it before the answer comes gives up the place.
pub(crate) struct Ticket {
    pub(super) gate: Arc<Gate>,
    pub(super) key: FairKey,
    pub(super) id: u64,
    pub(super) answer: Option<oneshot::Receiver<Result<Computed, Refusal>>>,
}

impl Ticket {
    /// Waits for the tag.
    pub(crate) async fn answer(self) -> Result<Tag, Refusal> {
        self.computed().await.map(|computed| computed.tag)
    }

    /// Waits for the tag, and also returns which worker computed it, if one did.
    pub(crate) async fn computed(mut self) -> Result<Computed, Refusal> {
        let Ticket { gate, key, id, answer: Some(answer) } = &mut self else { return Err(Refusal::Failed) };
        // Boxed: sign-ins wait by the thousand, and each would carry it several times.
        let (mut gone, mut left) = (Box::pin(caller::gone()), false);
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = Pin::new(&mut *answer).poll(context) {
                return Poll::Ready(done.unwrap_or(Err(Refusal::Failed)));
            }
            if !left && gone.as_mut().poll(context).is_ready() {
                left = true;
                if gate.withdraw(key, *id) {
                    return Poll::Ready(Err(Refusal::Withdrawn));
                }
            }
            Poll::Pending
        });
        let done = done.await;
        self.answer = None;
        done.inspect(|computed| {
            turn::begun(computed.begun);
            caller::begun();
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(answer) = &mut self.answer {
            // First: a job put back into the queue from now on is known to be for nobody, one put back before is found.
            answer.close();
            self.gate.withdraw(&self.key, self.id);
        }
    }
}
