//! What an operator does with a stream: skip an entry, set it to another place, give it up. Each leaves an audit entry.

use super::deliver::NEVER;
use super::seal::end;
use super::{sink, trouble};
use crate::{App, Fault};
use rules::events::{Event, Kind};
use store::engine::CommitError;
use store::tables::audit::{self, Begins, Newest, Place, Stream, Streams};

impl App {
    /// Skips the entry at which a stream stands because its receiver does not take it, and leaves an audit entry. The
    /// inner error says why not.
    pub async fn skip_line(&self, name: &str, line: &str) -> Result<Result<(), String>, Fault> {
        let Some(stream) = self.ask(Streams).await?.into_iter().find(|stream| stream.name == name) else {
            return Ok(Err(format!("no stream is called {name}; see: portiere audit status")));
        };
        if !trouble::names_a_line(&stream.trouble) {
            return Ok(Err(format!("stream {name} is not stuck; see: portiere audit status")));
        }
        let Some(next) = self.sealed_after(&stream.place, 1).await?.pop().filter(|next| next.id == line) else {
            return Ok(Err(format!("stream {name} is not stuck at line {line}; see: portiere audit status")));
        };
        let event = Event::new(Kind::AuditSkipped, self.clock.now()).detail("stream", name);
        let event = event.detail("line", line).detail("block", next.block).detail("event", next.kind.as_str());
        let place = Place { block: next.block, line: next.id };
        let behind = Stream { place, trouble: String::new(), ..stream.clone() };
        let writes = vec![audit::advance(&self.realm.id, &stream.place, &behind)];
        match self.commit_telling(&*self.engine, writes, [event]).await? {
            Ok(()) => {
                tracing::warn!(
                    stream = name,
                    line,
                    "a line of the audit log was not delivered: an operator skipped it"
                );
                Ok(Ok(()))
            }
            Err(CommitError::Conflict { at: 0, .. }) => Ok(Err(format!("stream {name} has moved on meanwhile"))),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a stream to the place after a block, or after all that is sealed: it goes on from there, whatever it has
    /// delivered. One that has not begun yet begins there. Returns the block; the inner error says why not.
    pub async fn set_stream(&self, name: &str, after: Option<i64>) -> Result<Result<i64, String>, Fault> {
        let (streams, begins, newest) = self.ask((Streams, Begins, Newest)).await?;
        let (end, _) = end(newest.as_ref(), begins.as_ref());
        let (block, gone) = (after.unwrap_or(end.number), begins.as_ref().map_or(0, |begins| begins.number));
        if block > end.number {
            return Ok(Err(format!("the log ends with block {}", end.number)));
        }
        if block < gone {
            return Ok(Err(format!("the blocks up to {gone} were removed: nothing before can be delivered again")));
        }
        let seen = streams.into_iter().find(|stream| stream.name == name);
        if seen.is_none() && !sink::NAMES.contains(&name) {
            return Ok(Err(format!("no stream is called {name}; see: portiere audit status")));
        }
        let place = Place { block: block + 1, line: String::new() };
        let moved_at = seen.as_ref().map_or(NEVER, |seen| seen.moved_at);
        let next = Stream { name: name.to_owned(), place, moved_at, trouble: String::new() };
        let event = Event::new(Kind::AuditMoved, self.clock.now()).detail("stream", name).detail("after_block", block);
        let (write, event) = match &seen {
            Some(seen) => {
                let event = event.detail("from_block", seen.place.block).detail("from_line", seen.place.line.as_str());
                (audit::advance(&self.realm.id, &seen.place, &next), event)
            }
            None => (audit::begin_once(&self.realm.id, &next), event),
        };
        match self.commit_telling(&*self.engine, vec![write], [event]).await? {
            Ok(()) => {
                tracing::warn!(
                    stream = name,
                    block,
                    "a stream of the audit log goes on after this block: an operator set it there"
                );
                Ok(Ok(block))
            }
            Err(CommitError::Conflict { at: 0, .. }) => {
                Ok(Err(format!("stream {name} has moved on meanwhile: nothing was done")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a stream up: entries that it has not delivered are no longer kept for it.
    pub async fn forget_stream(&self, name: &str) -> Result<bool, Fault> {
        let event = Event::new(Kind::AuditForgotten, self.clock.now()).detail("stream", name);
        let writes = vec![audit::forget(&self.realm.id, name)];
        match self.commit_telling(&*self.engine, writes, [event]).await? {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { at: 0, .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
