//! What can go wrong between a rule and its effect.

use crate::rates::Over;
use rules::Span;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::engine::{CommitError, Unavailable};

/// A use case that could not be completed. Everything that was answered is true.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Too much waits for the hashing threads: try again after this time.
    Busy(Span),
    /// This client has asked more often than it may.
    Over(Over),
    /// The database cannot be reached or written at present.
    Unavailable(String),
    /// The outcome of a commit is unknown: what was asked for may have been done.
    InDoubt(String),
    /// Others changed the same thing at every try. What a try met is for the log.
    Contended(String),
    /// Something is as it can never be.
    Broken(String),
    /// What is stored was encrypted with another master key than this server's.
    Foreign(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Busy(after) => write!(f, "busy; try again in {} s", after.whole_seconds()),
            Fault::Over(over) => write!(f, "too many requests; try again in {:?}", over.wait),
            Fault::Unavailable(why) => write!(f, "unavailable: {why}"),
            Fault::InDoubt(why) => write!(f, "the outcome of a commit is unknown: {why}"),
            Fault::Contended(_) => f.write_str("many changes at once; try again"),
            Fault::Broken(why) | Fault::Foreign(why) => write!(f, "broken: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// Whether a row was met that this program did not write: trying again does not help.
    pub fn is_alien(&self) -> bool {
        matches!(self, Fault::Unavailable(why) if store::tables::is_alien(why))
    }
}

impl From<Unavailable> for Fault {
    fn from(Unavailable(why): Unavailable) -> Self {
        Fault::Unavailable(why)
    }
}

impl From<CommitError> for Fault {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Unavailable(why) => Fault::Unavailable(why),
            CommitError::Unknown(why) => Fault::InDoubt(why),
            CommitError::Conflict { at, why } => Fault::Contended(format!("statement {at} met {why:?} every time")),
        }
    }
}

impl From<hasher::Refusal> for Fault {
    fn from(refusal: hasher::Refusal) -> Self {
        match refusal {
            hasher::Refusal::Busy { retry_after } | hasher::Refusal::Unconfirmed { retry_after } => {
                Fault::Busy(retry_after.into())
            }
            // Nobody is there to be told.
            hasher::Refusal::Withdrawn => Fault::Busy(Span::seconds(1)),
            // The server is about to stop: a client that is told so reaches the next one.
            hasher::Refusal::Stopped => Fault::Busy(Span::seconds(1)),
            // Only for the moment: there was no memory.
            hasher::Refusal::Failed => {
                tell_of_failure();
                Fault::Busy(Span::seconds(1))
            }
            refusal @ (hasher::Refusal::TooLong | hasher::Refusal::Unsupported(_) | hasher::Refusal::Limit(_)) => {
                Fault::Broken(format!("hashing: {refusal}"))
            }
        }
    }
}

/// Logs that a password was not hashed, at most once a second: where memory is short it happens hundreds of times.
fn tell_of_failure() {
    static TOLD: Mutex<Option<Instant>> = Mutex::new(None);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.is_none_or(|at| at.elapsed() >= Duration::from_secs(1)) {
        *told = Some(Instant::now());
        tracing::error!("a password was not hashed: there was no memory for it, or the kernel failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::engine::Broken;

    #[test]
    fn who_loses_every_time_is_told_what_to_do_and_not_how_it_went() {
        let fault = Fault::from(CommitError::Conflict { at: 0, why: Broken::Guard });
        assert_eq!(fault.to_string(), "many changes at once; try again");
    }
}
