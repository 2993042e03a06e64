//! The handle of one worker, for the code that carries its frames.

use std::{fmt, sync::Arc};

use tokio::sync::Notify;

use super::{
    frame::{Answer, Ask, TOGETHER},
    state::Parted,
};
use crate::gate::Gate;

/// An attached worker. Dropping the link gives what the worker holds to others.
#[must_use = "the worker is sent away when this is dropped"]
pub struct Link {
    pub(crate) gate: Arc<Gate>,
    pub(crate) number: u64,
    pub(crate) bell: Arc<Notify>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Link {
    /// Waits for asks to be sent: at least one, and no more than one frame takes.
    ///
    /// # Errors
    /// Why the worker is asked nothing more; close its connection.
    pub async fn asks(&self) -> Result<Vec<Ask>, Parted> {
        loop {
            match self.gate.outgoing(self.number, TOGETHER) {
                Ok(asks) if asks.is_empty() => self.bell.notified().await,
                other => return other,
            }
        }
    }

    /// Takes answers that came. Answers that nobody asked for, or waits for any more, are counted and dropped.
    pub fn answers(&self, answers: Vec<Answer>) {
        self.gate.answers(self.number, answers);
    }

    /// Sets the worker's credits to another number; none: it wants no more work.
    pub fn holds(&self, holds: u32) {
        self.gate.holds(self.number, holds);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.gate.detach(self.number);
    }
}
