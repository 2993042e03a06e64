//! What is wrong with the log, or with what shows that it is not: logged as an error when it is seen, and kept for
//! callers that ask for the state.

use super::Books;
use crate::App;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// What retention would remove is not what was sealed.
    Old,
    /// The end of the chain is not what this node saw.
    End,
    /// Rows that nobody can read.
    Rows,
    /// Records of the chain that this program did not write.
    Records,
    /// Entries that cannot be sealed.
    Lines,
    /// The mark of the end of the chain, which cannot be kept.
    Mark,
}

impl About {
    /// How many there are.
    const ALL: usize = About::Mark as usize + 1;

    /// What the log of the node says of it.
    fn message(self) -> &'static str {
        match self {
            About::Old | About::End | About::Rows | About::Records | About::Lines => {
                "the audit log is not what was written"
            }
            About::Mark => "what is cut off the audit log from now on may go unseen",
        }
    }
}

/// What is wrong at present, in sentences.
#[derive(Default)]
pub(super) struct Alarms(Mutex<[Option<String>; About::ALL]>);

impl Alarms {
    fn held(&self) -> MutexGuard<'_, [Option<String>; About::ALL]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs what is wrong, once until something else is wrong or it is over.
    pub(super) fn raise(&self, about: About, why: &str) {
        let mut held = self.held();
        let kept = &mut held[about as usize];
        if kept.as_deref() != Some(why) {
            tracing::error!(why, "{}", about.message());
            *kept = Some(why.to_owned());
        }
    }

    /// Clears an alarm: all is well again, or it is another node's matter.
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
    /// Returns what this node knows to be wrong with the audit log, in sentences; empty when all is well.
    pub fn audit_alarms(&self) -> Vec<String> {
        self.books.alarms().held().iter().flatten().cloned().collect()
    }
}
