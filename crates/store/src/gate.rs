//! An engine behind a gate: operations go through only while the server that was let in is the one that answers.
//!
//! A server that was promoted may have lost acknowledged commits. It must not be trusted until everything known about
//! those commits has been written to it again. So the gate compares generations before and after each operation: what
//! was read from the next server is not returned, and what may have been written to it is not confirmed.

use crate::engine::{Answer, Around, CommitError, Engine, Health, Read, Row, Unavailable, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;

/// The value of `open_for` while no server is let in.
const NONE: u64 = u64::MAX;

/// The error for an operation that is not let in.
pub const CLOSED: &str = "the database failed over: checking that no acknowledged write was lost";

/// An engine, and which of its servers was let in.
pub struct Gate {
    inner: Arc<dyn Engine>,
    open_for: AtomicU64,
    /// Notified when an operation found the gate closed.
    knock: Notify,
}

impl Gate {
    /// Creates a gate that is closed.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Gate { inner, open_for: AtomicU64::new(NONE), knock: Notify::new() }
    }

    /// The engine itself, for the code that opens and closes the gate.
    pub fn inner(&self) -> &Arc<dyn Engine> {
        &self.inner
    }

    /// Lets in the server of this generation, and no other.
    pub fn open(&self, generation: u64) {
        self.open_for.store(generation, SeqCst);
    }

    /// Lets no server in.
    pub fn close(&self) {
        self.open_for.store(NONE, SeqCst);
    }

    /// Returns the generation that is let in, if the server of this generation answers now.
    pub fn passes(&self) -> Option<u64> {
        let open = self.open_for.load(SeqCst);
        (open != NONE && self.inner.generation() == open).then_some(open)
    }

    /// Waits until an operation finds the gate closed.
    pub async fn knocked(&self) {
        self.knock.notified().await;
    }

    fn enter(&self) -> Result<u64, String> {
        self.passes().ok_or_else(|| {
            self.knock.notify_one();
            CLOSED.to_owned()
        })
    }

    /// Whether the server of generation `entered` still answers and is still let in.
    fn holds(&self, entered: u64) -> Result<(), String> {
        match self.enter()? {
            still if still == entered => Ok(()),
            _ => Err(CLOSED.to_owned()),
        }
    }
}

impl Around for Gate {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            let entered = self.enter().map_err(Unavailable)?;
            let rows = self.inner.fetch(reads).await?;
            self.holds(entered).map_err(Unavailable)?;
            Ok(rows)
        })
    }

    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let entered = self.enter().map_err(CommitError::Unavailable)?;
            let outcome = self.inner.commit_within(entered, writes).await;
            match (&outcome, self.holds(entered)) {
                // The answer may come from a server that was not let in.
                (Ok(_) | Err(CommitError::Conflict { .. }), Err(why)) => Err(CommitError::Unknown(why)),
                _ => outcome,
            }
        })
    }

    fn health_around(&self) -> Answer<'_, Health, Unavailable> {
        Box::pin(async move {
            let mut health = self.inner.health().await?;
            if let (Ok(()), Err(why)) = (&health.writable, self.enter()) {
                health.writable = Err(why);
            }
            Ok(health)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::engine::{Durability, Sql};
    use std::path::Path;

    /// A server that is replaced by the next one while it answers.
    struct Replaced(AtomicU64);

    impl Engine for Replaced {
        fn fetch<'a>(&'a self, _: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
            self.0.fetch_add(1, SeqCst);
            Box::pin(std::future::ready(Ok(vec![])))
        }
        fn commit(&self, _: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
            self.0.fetch_add(1, SeqCst);
            Box::pin(std::future::ready(Ok(vec![])))
        }
        fn commit_within(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
            assert_eq!(generation, self.0.load(SeqCst), "the batch is for the server that was let in");
            self.commit(writes)
        }
        fn migrate(&self) -> Answer<'_, (), Unavailable> {
            Box::pin(std::future::ready(Ok(())))
        }
        fn health(&self) -> Answer<'_, Health, Unavailable> {
            let health = Health { durability: Durability::Bounded, writable: Ok(()), commit_ms: 0.0 };
            Box::pin(std::future::ready(Ok(health)))
        }
        fn generation(&self) -> u64 {
            self.0.load(SeqCst)
        }
        fn backup<'a>(&'a self, _: &'a Path) -> Answer<'a, (), Unavailable> {
            Box::pin(std::future::ready(Ok(())))
        }
        fn dialect(&self) -> Dialect {
            Dialect::Postgres
        }
        fn alter(&self, _: Vec<String>) -> Answer<'_, (), Unavailable> {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    fn gate() -> Gate {
        Gate::new(Arc::new(Replaced(AtomicU64::new(7))))
    }

    #[tokio::test]
    async fn nothing_goes_through_before_somebody_was_let_in() {
        let gate = gate();
        assert!(gate.fetch(&[]).await.is_err());
        assert!(matches!(gate.commit(vec![]).await, Err(CommitError::Unavailable(_))));
        assert_eq!(gate.generation(), 7, "the server was not asked");
        assert!(gate.health().await.unwrap().writable.is_err());
    }

    #[tokio::test]
    async fn what_the_next_server_said_is_not_given() {
        // Red without the second check in fetch and in commit.
        let gate = gate();
        gate.open(7);
        assert!(gate.fetch(&[Read { sql: Sql::fixed("SELECT 1"), args: vec![] }]).await.is_err());
        gate.open(8);
        assert!(matches!(gate.commit(vec![]).await, Err(CommitError::Unknown(_))));
        assert!(matches!(gate.commit(vec![]).await, Err(CommitError::Unavailable(_))));
        assert_eq!(gate.generation(), 9);
    }
}
