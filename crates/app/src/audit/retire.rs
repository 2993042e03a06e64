//! Taking out what is too old or too much: whole blocks from the beginning of the chain, which a checkpoint under the key
//! says. What was not sealed or not delivered stays, unless an operator named a ceiling.

use super::seal::end;
use crate::{App, Fault};
use rules::Span;
use rules::audit::{Block, Checkpoint, Link, Sealing};
use rules::events::{Event, Kind};
use store::engine::{CommitError, Write};
use store::tables::audit::{After, Backlog, Begins, Newest, Stream, Streams, drop_unsealed, retire};

/// Lines that one batch drops.
const AT_ONCE: i64 = 200;

/// What came of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Retired {
    /// A block is gone, and there may be another one.
    Block,
    /// Nothing is too old or too much.
    Nothing,
    /// Something is, and stays: why.
    Held(String),
}

impl App {
    /// Takes out the oldest block, if its time has come.
    pub(super) async fn retire_once(&self) -> Result<Retired, Fault> {
        let first = After { number: 0, limit: 1 };
        let (begins, oldest, newest, streams) = self.ask((Begins, first, Newest, Streams)).await?;
        let (Some(block), Some(newest)) = (oldest.into_iter().next(), newest) else { return Ok(Retired::Nothing) };
        let (terms, kept) = (self.books.terms(), newest.last - block.first + 1);
        let aged = (block.newest + terms.retention).has_come(self.clock.now());
        // What a node acknowledged in the last day is told from what was lost by its line: see `ward`.
        let told = self.ward.is_some() && !(block.newest + Span::days(1)).has_come(self.clock.now());
        let over = !told && terms.max_lines.is_some_and(|most| kept - block.lines() >= most);
        if !aged && !over {
            return Ok(Retired::Nothing);
        }
        let waiting = streams.iter().find(|stream| stream.place.block <= block.number);
        let beyond = terms.ceiling.is_some_and(|ceiling| kept > ceiling);
        if let Some(stream) = waiting.filter(|_| !beyond) {
            return Ok(Retired::Held(format!(
                "the stream {} has not delivered block {} yet; to give it up: portiere audit forget {0}",
                stream.name, block.number
            )));
        }
        let mut writes = self.gap(&block, begins.as_ref())?;
        writes.extend(self.undelivered(&block, waiting)?);
        self.take_out(&block, (begins.as_ref(), &newest), writes).await
    }

    async fn take_out(
        &self,
        block: &Block,
        (begins, newest): (Option<&Checkpoint>, &Block),
        mut writes: Vec<Write>,
    ) -> Result<Retired, Fault> {
        let terms = self.books.terms();
        let (_, last) = end(Some(newest), begins);
        let ours = last.is_none_or(|last| terms.keys.find(&last).is_some());
        let Some(key) = terms.keys.current.as_ref().filter(|_| ours) else { return Ok(Retired::Nothing) };
        let sealing = Sealing { realm: &self.realm.id, key, now: self.clock.now() };
        let next = sealing.checkpoint(&Link::from(block));
        writes.extend(retire(&self.realm.id, block.number, (begins, &next)));
        match self.engine.commit(writes).await {
            Ok(_) => Ok(Retired::Block),
            // Another node was faster.
            Err(CommitError::Conflict { .. }) => Ok(Retired::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Blocks that somebody took out before: the new checkpoint would hide that they are missing, so the log says it.
    fn gap(&self, block: &Block, begins: Option<&Checkpoint>) -> Result<Vec<Write>, Fault> {
        let next = begins.map_or(0, |begins| begins.number) + 1;
        if block.number == next {
            return Ok(Vec::new());
        }
        tracing::error!(from = next, until = block.number - 1, "blocks of the audit log are missing");
        let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "blocks were missing");
        self.noting(event.detail("from_block", next).detail("until_block", block.number - 1))
    }

    fn undelivered(&self, block: &Block, waiting: Option<&Stream>) -> Result<Vec<Write>, Fault> {
        let Some(stream) = waiting else { return Ok(Vec::new()) };
        let (stream, lines) = (stream.name.as_str(), block.lines());
        tracing::warn!(stream, block = block.number, lines, "audit lines were dropped undelivered: audit.ceiling");
        let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "not delivered");
        self.noting(event.detail("stream", stream).detail("block", block.number).detail("lines", lines))
    }

    /// Drops the oldest lines that wait to be sealed beyond the ceiling, if there is one; how many.
    pub(crate) async fn drop_beyond_ceiling(&self) -> Result<u64, Fault> {
        let Some(ceiling) = self.books.terms().ceiling else { return Ok(0) };
        let (waiting, _) = self.ask(Backlog).await?;
        let mut dropped = 0;
        while waiting - dropped > ceiling {
            let limit = (waiting - dropped - ceiling).min(AT_ONCE);
            let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "not sealed");
            let mut writes = vec![drop_unsealed(&self.realm.id, limit)];
            dropped += limit;
            // With the last of them: what says so is not to be among what goes.
            if waiting - dropped <= ceiling {
                writes.extend(self.noting(event.detail("lines", dropped))?);
            }
            self.engine.commit(writes).await?;
            tokio::time::sleep(super::REST).await;
        }
        Ok(dropped.unsigned_abs())
    }

    /// Gives a stream up: what it has not delivered is no longer kept for it.
    pub async fn forget_stream(&self, name: &str) -> Result<bool, Fault> {
        let event = Event::new(Kind::AuditForgotten, self.clock.now()).detail("stream", name);
        let mut writes = vec![store::tables::audit::forget(&self.realm.id, name)];
        writes.extend(self.noting(event)?);
        match self.engine.commit(writes).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { at: 0, .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
