//! What is wrong with the log: said as an error when it is seen, and kept where whoever asks for the state finds it.

use super::Books;
use crate::App;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// What retention would take out is not what was sealed.
    Old,
    /// The end of the chain is not what this node saw.
    End,
    /// Rows that nobody can read.
    Rows,
    /// Lines that cannot be sealed.
    Lines,
}

/// What is wrong at present, in sentences.
#[derive(Default)]
pub(super) struct Alarms(Mutex<[Option<String>; 4]>);

impl Alarms {
    fn held(&self) -> MutexGuard<'_, [Option<String>; 4]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says it, once until it is another thing or over.
    pub(super) fn raise(&self, about: About, why: &str) {
        let mut held = self.held();
        let kept = &mut held[about as usize];
        if kept.as_deref() != Some(why) {
            tracing::error!(why, "the audit log is not what it was");
            *kept = Some(why.to_owned());
        }
    }

    /// It is well again, or another node's matter.
    pub(super) fn over(&self, about: About) {
        self.held()[about as usize] = None;
    }
}

impl Books {
    pub(super) fn alarms(&self) -> &Alarms {
        &self.alarms
    }
}

impl App {
    /// What this node knows to be wrong with the audit log, in sentences; empty when all is well.
    pub fn audit_alarms(&self) -> Vec<String> {
        self.books.alarms().held().iter().flatten().cloned().collect()
    }
}
