//! Detects whether the server writes anything at all. While a backup tool holds `FLUSH TABLES WITH READ LOCK` (MySQL and
//! MariaDB), or a standby that has to confirm every commit is away (PostgreSQL), it answers every query and keeps each
//! batch waiting.
//!
//! The rule: once a batch has run out of time and nothing else was committed since it began, nothing can be written
//! until something is committed. If others committed meanwhile, the batch only waited for a row that was held. Each
//! node writes a heartbeat every five seconds, so an otherwise idle node also notices the standstill, and its end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::CommitError;

/// A heartbeat and a bit: in this time something is committed if anything can be. A batch may have less time than that.
const QUIET: Duration = Duration::from_secs(6);

/// The outcomes of the last batches that write.
#[derive(Debug, Default)]
pub(crate) struct Standstill(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    committed: Option<Instant>,
    /// When the first batch since then began that ran out of time, and its error.
    held: Option<(Instant, String)>,
}

impl Standstill {
    /// Notes the outcome, at `now`, of a batch that began at `began` and had `limit`.
    pub(crate) fn note<T>(&self, outcome: &Result<T, CommitError>, (began, now): (Instant, Instant), limit: Duration) {
        let mut seen = self.seen();
        match outcome {
            Ok(_) => *seen = Seen { committed: Some(now), held: None },
            Err(CommitError::Unavailable(why) | CommitError::Unknown(why)) => {
                let alone = seen.committed.is_none_or(|at| at < began);
                if alone && now.duration_since(began) >= limit {
                    seen.held.get_or_insert_with(|| (began, why.clone()));
                }
            }
            Err(CommitError::Conflict { .. }) => {}
        }
    }

    /// Returns why nothing can be written, as far as that is known at `now`.
    pub(crate) fn is_over(&self, now: Instant) -> Result<(), String> {
        match &self.seen().held {
            Some((began, why)) if now.duration_since(*began) >= QUIET => {
                Err(format!("the database server has committed nothing since a batch timed out: {why}"))
            }
            _ => Ok(()),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_be_written_once_a_batch_ran_out_of_time_and_no_other_was_committed() {
        // Red without `held`: ready under FLUSH TABLES WITH READ LOCK; without `alone`: not ready for one held row.
        let (standstill, start) = (Standstill::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let given_up = || Err::<(), _>(CommitError::Unavailable("given up".to_owned()));
        let note = |outcome, began, ended| standstill.note(&outcome, (at(began), at(ended)), Duration::from_secs(10));

        note(Ok(()), 0, 1);
        note(given_up(), 0, 10);
        assert_eq!(standstill.is_over(at(20)), Ok(()), "another was committed while it waited for its row");
        note(given_up(), 2, 3);
        assert_eq!(standstill.is_over(at(20)), Ok(()), "refused, and not for want of time");
        note(given_up(), 2, 12);
        assert!(standstill.is_over(at(12)).is_err_and(|why| why.ends_with(": given up")));
        note(given_up(), 3, 13);
        note(Ok(()), 3, 14);
        assert_eq!(standstill.is_over(at(14)), Ok(()));
    }

    #[test]
    fn a_batch_that_has_less_time_than_a_heartbeat_takes_says_nothing_at_once() {
        // Red without QUIET: where nothing else writes, each row that is held for long would take the node out.
        let (standstill, start) = (Standstill::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let outcome = Err::<(), _>(CommitError::Unknown("no answer".to_owned()));
        standstill.note(&outcome, (at(0), at(2)), Duration::from_secs(2));
        assert_eq!(standstill.is_over(at(5)), Ok(()));
        assert!(standstill.is_over(at(6)).is_err());
    }
}
