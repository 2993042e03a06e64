//! How a group's answers reach those who wait.

use std::time::Instant;

use tokio::sync::oneshot;

use super::group::{Batch, Outcome};

/// Where an answer goes.
pub(super) type To = oneshot::Sender<Answered>;

/// So many answers travel together. The writer wakes one of those who wait, who wakes the others: to wake somebody
/// costs the writer, who is alone, more than one who already runs among them. Few enough that nobody waits long for
/// one who is slow to wake.
const TOGETHER: usize = 8;

/// The answer to one batch.
pub(super) struct Answered {
    outcome: Outcome,
    /// What was written: freed by whoever made it.
    _batch: Batch,
    /// When its group was begun.
    begun: Option<Instant>,
    /// The answers of others, to be passed on.
    others: Others,
}

impl Answered {
    pub(super) fn new(outcome: Outcome, batch: Batch) -> Self {
        Answered { outcome, _batch: batch, begun: None, others: Others(Vec::new()) }
    }

    /// Of a group that was begun then.
    pub(super) fn of_group(self, begun: Instant) -> Self {
        Answered { begun: Some(begun), ..self }
    }

    pub(super) fn begun(&self) -> Option<Instant> {
        self.begun
    }

    /// Passes on the answers of others, and takes the own one.
    pub(super) fn take(self) -> Outcome {
        drop(self.others);
        self.outcome
    }
}

/// Answers that reach those who wait for them when this is dropped: nobody's answer hangs on whether somebody else still
/// listens.
struct Others(Vec<(To, Answered)>);

impl Drop for Others {
    fn drop(&mut self) {
        for (to, answered) in self.0.drain(..) {
            // Nobody may be waiting any more: a batch that was handed over is run all the same.
            drop(to.send(answered));
        }
    }
}

/// Answers everybody, in the order in which they came.
pub(super) fn all(answers: impl Iterator<Item = (To, Answered)>) {
    let mut answers = answers.peekable();
    while let Some((first, mut answered)) = answers.next() {
        let others: Vec<_> = answers.by_ref().take(TOGETHER - 1).collect();
        answered.others = Others(others);
        // If the first has gone, the others are answered as this is dropped.
        drop(first.send(answered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many who wait, and what each is to hear: a count of its own.
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

    /// Those who were to pass answers on have gone: before they were answered, or with the answer unread.
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
