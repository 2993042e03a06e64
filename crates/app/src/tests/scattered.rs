//! An engine that answers the reads of a fetch one by one, the last first, and lets something happen between two of them:
//! what a server does whose reads go over several connections.

use std::sync::{Arc, Mutex};
use store::engine::{Answer, Around, Engine, Read, Row, Unavailable};

/// What happens, once.
type Event = Answer<'static, (), String>;

pub(super) struct Scattered {
    inner: Arc<dyn Engine>,
    /// After how many more reads it happens, and what.
    coming: Mutex<Option<(usize, Event)>>,
}

impl Scattered {
    pub(super) fn over(inner: &Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Scattered { inner: Arc::clone(inner), coming: Mutex::new(None) })
    }

    /// From now, after so many reads, `event` happens before the next one.
    pub(super) fn after(&self, reads: usize, event: impl Future<Output = Result<(), String>> + Send + 'static) {
        *self.coming.lock().unwrap() = Some((reads, Box::pin(event)));
    }

    /// Whether it has happened.
    pub(super) fn is_over(&self) -> bool {
        self.coming.lock().unwrap().is_none()
    }

    fn due(&self) -> Option<Event> {
        let mut coming = self.coming.lock().unwrap();
        let (left, event) = coming.take()?;
        match left {
            0 => Some(event),
            more => {
                *coming = Some((more - 1, event));
                None
            }
        }
    }
}

impl Around for Scattered {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for read in reads.iter().rev() {
                if let Some(event) = self.due() {
                    event.await.map_err(Unavailable)?;
                }
                answers.extend(self.inner.fetch(std::slice::from_ref(read)).await?);
            }
            answers.reverse();
            Ok(answers)
        })
    }
}
