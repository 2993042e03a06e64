//! Names the database in errors: with two databases, the operator has to know which one failed.

use std::sync::Arc;

use crate::engine::{Answer, Around, CommitError, Engine, Health, Read, Row, Unavailable, Write};

/// One end of a move, whose name is put before every error.
pub struct Named {
    engine: Arc<dyn Engine>,
    name: String,
}

impl Named {
    /// Wraps an engine. The name must not contain a password.
    pub fn new(engine: Arc<dyn Engine>, name: impl Into<String>) -> Self {
        Named { engine, name: name.into() }
    }

    fn of<'a, T: 'a>(&'a self, answer: Answer<'a, T, Unavailable>) -> Answer<'a, T, Unavailable> {
        Box::pin(async move { answer.await.map_err(|Unavailable(why)| Unavailable(format!("{}: {why}", self.name))) })
    }

    fn of_commit<'a>(&'a self, answer: Answer<'a, Vec<u64>, CommitError>) -> Answer<'a, Vec<u64>, CommitError> {
        let named = |why| format!("{}: {why}", self.name);
        Box::pin(async move {
            answer.await.map_err(|error| match error {
                CommitError::Unavailable(why) => CommitError::Unavailable(named(why)),
                CommitError::Unknown(why) => CommitError::Unknown(named(why)),
                conflict @ CommitError::Conflict { .. } => conflict,
            })
        })
    }
}

impl Around for Named {
    fn inside(&self) -> &dyn Engine {
        &*self.engine
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        self.of(self.engine.fetch(reads))
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.of_commit(self.engine.commit(writes))
    }
    fn commit_within_around(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.of_commit(self.engine.commit_within(generation, writes))
    }
    fn migrate_around(&self) -> Answer<'_, (), Unavailable> {
        self.of(self.engine.migrate())
    }
    fn alter_around(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        self.of(self.engine.alter(statements))
    }
    fn health_around(&self) -> Answer<'_, Health, Unavailable> {
        self.of(self.engine.health())
    }
}
