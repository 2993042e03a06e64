//! An engine that answers the reads of a fetch one by one, the last first, and lets something happen between two of
//! them, like a server whose reads go over several connections.

use super::coming::Coming;
use std::sync::Arc;
use store::engine::{Answer, Around, Engine, Read, Row, Unavailable};

pub(super) struct Scattered {
    inner: Arc<dyn Engine>,
    /// What happens between two reads.
    pub(super) coming: Coming,
}

impl Scattered {
    pub(super) fn over(inner: &Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Scattered { inner: Arc::clone(inner), coming: Coming::default() })
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
                self.coming.now().await.map_err(Unavailable)?;
                answers.extend(self.inner.fetch(std::slice::from_ref(read)).await?);
            }
            answers.reverse();
            Ok(answers)
        })
    }
}
