//! Reads a file that another process may have open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::open::{self, OpenError};
use super::readers::{Pace, Pool, Stopped};
use crate::dialect::Dialect;
use crate::engine::{Answer, CommitError, Durability, Engine, Health, Read, Row, Unavailable, Write};

/// A database in one file, opened only for reading: while a server runs on it, or without one.
pub struct Onlooker {
    path: PathBuf,
    pool: Arc<Pool>,
}

const ONLY_READS: &str = "the database was opened read-only";

impl Onlooker {
    /// Opens an existing file, with this many connections.
    pub fn open(path: &Path, readers: u32) -> Result<Self, OpenError> {
        let path = open::absolute(path)?;
        open::local(&path)?;
        let pool = Pool::open(&path, readers.max(1), Pace::Any)?;
        Ok(Onlooker { path, pool })
    }
}

impl Engine for Onlooker {
    /// Needs a tokio runtime: every read may take long, and runs on a thread of its own.
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            let (lease, reads) = (self.pool.take().await?, reads.to_vec());
            match tokio::task::spawn_blocking(move || lease.answer(&reads)).await {
                Ok(Ok(rows)) => Ok(rows),
                Ok(Err(Stopped::Failed(why))) => Err(why),
                Ok(Err(Stopped::Long)) | Err(_) => Err(Unavailable("a long read was stopped".to_owned())),
            }
        })
    }

    fn commit(&self, _writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(std::future::ready(Err(CommitError::Unavailable(ONLY_READS.to_owned()))))
    }

    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(std::future::ready(Err(Unavailable(ONLY_READS.to_owned()))))
    }

    fn health(&self) -> Answer<'_, Health, Unavailable> {
        let writable = Err(ONLY_READS.to_owned());
        let health = Health { durability: Durability::DurableNode, writable, commit_ms: 0.0 };
        Box::pin(std::future::ready(Ok(health)))
    }

    fn backup<'a>(&'a self, _file: &'a Path) -> Answer<'a, (), Unavailable> {
        Box::pin(std::future::ready(Err(Unavailable(ONLY_READS.to_owned()))))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn alter(&self, _statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(std::future::ready(Err(Unavailable(ONLY_READS.to_owned()))))
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
