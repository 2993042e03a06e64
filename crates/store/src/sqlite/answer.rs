//! How a group's answers reach the waiting callers.

use std::time::Instant;

use tokio::sync::oneshot;

use super::group::{Batch, Outcome};

/// Where an answer goes.
pub(super) type To = oneshot::Sender<Answered>;

/// The number of answers that travel together. The writer wakes one waiting caller, which wakes the others: waking
/// costs the single writer more than a caller that runs among others. The number is small, so that no caller waits long
/// for a caller that is slow to wake.
const TOGETHER: usize = 8;

/// The answer to one batch.
pub(super) struct Answered {
    outcome: Outcome,
    /// The batch: freed by the caller that made it.
    _batch: Batch,
    /// When its group began.
    begun: Option<Instant>,
    /// Answers for other callers, to be passed on.
    others: Others,
}

impl Answered {
    pub(super) fn new(outcome: Outcome, batch: Batch) -> Self {
        Answered { outcome, _batch: batch, begun: None, others: Others(Vec::new()) }
    }

    /// Sets when the group began.
    pub(super) fn of_group(self, begun: Instant) -> Self {
        Answered { begun: Some(begun), ..self }
    }

    pub(super) fn begun(&self) -> Option<Instant> {
        self.begun
    }

    /// Passes on the answers for others, and returns its own.
    pub(super) fn take(self) -> Outcome {
        drop(self.others);
        self.outcome
    }
}

/// Answers that reach their callers when this is dropped: no caller's answer depends on whether another caller still
/// listens.
struct Others(Vec<(To, Answered)>);

impl Drop for Others {
    fn drop(&mut self) {
        for (to, answered) in self.0.drain(..) {
            // The caller may not be waiting any more: a batch that was handed over runs nevertheless.
            drop(to.send(answered));
        }
    }
}

/// Sends all answers, in the order in which the batches came.
pub(super) fn all(answers: impl Iterator<Item = (To, Answered)>) {
    let mut answers = answers.peekable();
    while let Some((first, mut answered)) = answers.next() {
        let others: Vec<_> = answers.by_ref().take(TOGETHER - 1).collect();
        answered.others = Others(others);
        // If the first caller is gone, the other answers are sent when this is dropped.
        drop(first.send(answered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waiting callers, and the answer that each is to get: a count of its own.
    fn waiting(many: u64) -> (Vec<(To, Answered)>, Vec<oneshot::Receiver<Answered>>) {
        let pair = |number| {
            let (to, answer) = oneshot::channel();
            ((to, Answered::new(Ok(vec![number]), Batch::new(Vec::new()))), answer)
        };
        (0..many).map(pair).unzip()
    }

    fn heard(answer: oneshot::Receiver<Answered>) -> Outcome {
        answer.blocking_recv().unwrap().take()
    }

    #[test]
    fn everybody_hears_the_own_answer() {
        let (answers, waiting) = waiting(3 * TOGETHER as u64 + 1);
        all(answers.into_iter());
        for (number, answer) in waiting.into_iter().enumerate() {
            assert_eq!(heard(answer), Ok(vec![number as u64]));
        }
    }

    /// The callers that should pass answers on are gone: before they were answered, or with the answer unread.
    #[test]
    fn nobodys_answer_hangs_on_another() {
        let (answers, mut waiting) = waiting(3 * TOGETHER as u64);
        drop(waiting.remove(0));
        let unread = waiting.remove(TOGETHER - 1);
        all(answers.into_iter());
        drop(unread);
        assert_eq!(waiting.into_iter().map(heard).filter(Result::is_ok).count(), 3 * TOGETHER - 2);
    }
}
