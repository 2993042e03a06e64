//! Those who are on their way to the queue.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use crate::gate::Gate;

/// Somebody who will hand in a job of today's policy in a moment, and waits for something else before: while this is kept,
/// [`Hasher::crowded`](crate::Hasher::crowded) counts them as if they had come. Otherwise, when what all of them wait for stands
/// still, everybody who asks would be sent after them, and most be refused once it goes on.
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
