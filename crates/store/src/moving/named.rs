//! Of two databases it has to be said which one failed.

use std::path::Path;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::engine::{Answer, Answering, CommitError, Engine, Health, Read, Row, Unavailable, Write};

/// One end of a move, whose name stands before whatever keeps it from answering.
pub struct Named {
    engine: Arc<dyn Engine>,
    name: String,
}

impl Named {
    /// The name has no password in it.
    pub fn new(engine: Arc<dyn Engine>, name: impl Into<String>) -> Self {
        Named { engine, name: name.into() }
    }

    fn unavailable(&self, Unavailable(why): Unavailable) -> Unavailable {
        Unavailable(format!("{}: {why}", self.name))
    }

    fn uncommitted(&self, error: CommitError) -> CommitError {
        match error {
            CommitError::Unavailable(why) => CommitError::Unavailable(format!("{}: {why}", self.name)),
            CommitError::Unknown(why) => CommitError::Unknown(format!("{}: {why}", self.name)),
            conflict @ CommitError::Conflict { .. } => conflict,
        }
    }
}

impl Engine for Named {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move { self.engine.fetch(reads).await.map_err(|why| self.unavailable(why)) })
    }

    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move { self.engine.commit(writes).await.map_err(|why| self.uncommitted(why)) })
    }

    fn commit_within(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(
            async move { self.engine.commit_within(generation, writes).await.map_err(|why| self.uncommitted(why)) },
        )
    }

    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(async move { self.engine.migrate().await.map_err(|why| self.unavailable(why)) })
    }

    fn health(&self) -> Answer<'_, Health, Unavailable> {
        self.engine.health()
    }

    fn answering(&self) -> Option<Answering> {
        self.engine.answering()
    }

    fn generation(&self) -> u64 {
        self.engine.generation()
    }

    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable> {
        self.engine.backup(file)
    }

    fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }

    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(async move { self.engine.alter(statements).await.map_err(|why| self.unavailable(why)) })
    }

    fn file(&self) -> Option<&Path> {
        self.engine.file()
    }
}
