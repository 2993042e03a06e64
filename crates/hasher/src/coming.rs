//! Callers that are on their way to the queue.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use crate::gate::Gate;

/// A caller that will hand in a job of today's policy in a moment, and waits for something else first: while this is
/// kept, [`Hasher::crowded`](crate::Hasher::crowded) counts the job as if it had come. Otherwise, while the thing that
/// all of them wait for stands still, all who ask would be let in after them, and most be refused once it goes on.
#[must_use = "whoever is on the way is forgotten when this is dropped"]
pub struct Coming(Arc<Gate>);

impl Coming {
    pub(crate) fn to(gate: &Arc<Gate>) -> Self {
        gate.coming.fetch_add(1, Ordering::Relaxed);
        Coming(Arc::clone(gate))
    }
}

impl fmt::Debug for Coming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coming").finish_non_exhaustive()
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::Relaxed);
    }
}
