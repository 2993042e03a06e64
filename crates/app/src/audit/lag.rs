//! How far sealing and delivering are behind.

use super::deliver::NEVER;
use super::seal::end;
use super::trouble;
use crate::{App, Fault};
use rules::audit::Link;
use rules::fresh::time_of;
use rules::secret::hexadecimal;
use rules::{Span, Time};
use store::tables::audit::{After, BacklogUpTo, Begins, LeftOf, Newest, Place, Stream, Streams};

/// Unsealed entries are counted up to this many: the count is taken often.
const MOST: i64 = 100_000;

/// How far the audit log is behind.
#[derive(Clone, Debug)]
pub struct Lag {
    /// The newest block, with the position of its last line.
    pub end: Link,
    /// The key under which it was sealed; `None` before the first block.
    pub key: Option<String>,
    /// Entries that are not sealed yet, counted up to a hundred thousand.
    pub unsealed: i64,
    /// How long the oldest of them has waited.
    pub unsealed_for: Span,
    /// Entries that are sealed and kept.
    pub kept: i64,
    /// Each stream.
    pub streams: Vec<Lagging>,
}

/// How far a stream is behind.
#[derive(Clone, Debug)]
pub struct Lagging {
    /// Its name.
    pub name: String,
    /// Entries that it has not delivered: the sealed ones, and the others, counted up to a hundred thousand.
    pub lines: i64,
    /// How long the oldest of them has waited since it was written. Where nothing is sealed, nothing is delivered.
    pub waits: Span,
    /// When something was delivered last; `None` when nothing ever was.
    pub moved_at: Option<Time>,
    /// Why nothing more was delivered; empty when all is well.
    pub trouble: String,
    /// Whether it stands still at an entry that its receiver refuses for good.
    pub stuck: bool,
}

/// Whether a chain with this end does not reach a place: nothing that is sealed would ever come after it.
pub(super) fn is_beyond(place: &Place, end: &Link) -> bool {
    let next = Place::from(end);
    (place.block, &place.line) > (next.block, &next.line)
}

/// Returns where a stream goes on: at its place, or where the log ended when it ended before that. What was sealed
/// since then was not delivered, whatever its numbers are.
pub(super) fn goes_on_at(stream: &Stream) -> Place {
    match trouble::cut_at(&stream.trouble) {
        Some(ends) if ends < stream.place.block => Place { block: ends.saturating_add(1), line: String::new() },
        _ => stream.place.clone(),
    }
}

impl App {
    /// Returns the block with which the log ends, if that is before `place`, which the caller has seen.
    pub async fn audit_ends_before(&self, place: &Place) -> Result<Option<i64>, Fault> {
        let (newest, begins) = self.ask((Newest, Begins)).await?;
        let (end, _) = end(newest.as_ref(), begins.as_ref());
        Ok(is_beyond(place, &end).then_some(end.number))
    }

    /// Returns the code of a block, in hexadecimal; `None` if it is not there, or was removed with others after it.
    pub async fn audit_code(&self, number: i64) -> Result<Option<String>, Fault> {
        let (blocks, begins) = self.ask((After { number: number - 1, limit: 1 }, Begins)).await?;
        let block = blocks.into_iter().find(|block| block.number == number).map(|block| block.mac);
        let begins = begins.filter(|begins| begins.number == number).map(|begins| begins.mac);
        Ok(block.or(begins).map(|mac| hexadecimal(&mac)))
    }

    /// Says how far sealing and delivering are behind. A few reads, each of an index: for a metrics page now and then.
    pub async fn audit_lag(&self) -> Result<Lag, Fault> {
        let (backlog, newest, begins, streams) =
            self.ask((BacklogUpTo { most: MOST }, Newest, Begins, Streams)).await?;
        let (end, key) = end(newest.as_ref(), begins.as_ref());
        let now = self.clock.now();
        let (unsealed, oldest) = backlog;
        let unsealed_for = oldest.map_or(Span::ZERO, |id| now.since(time_of(&id)));
        let mut lagging = Vec::with_capacity(streams.len());
        for stream in streams {
            let sealed = self.behind(stream, &end, now).await?;
            let (lines, waits) = (sealed.lines.saturating_add(unsealed), sealed.waits.max(unsealed_for));
            lagging.push(Lagging { lines, waits, ..sealed });
        }
        Ok(Lag {
            kept: end.last.saturating_sub(begins.as_ref().map_or(0, |begins| begins.last)),
            end,
            key,
            unsealed,
            unsealed_for,
            streams: lagging,
        })
    }

    /// Returns how far a stream is behind the end of the chain.
    async fn behind(&self, stream: Stream, end: &Link, now: Time) -> Result<Lagging, Fault> {
        let place = goes_on_at(&stream);
        let of = LeftOf { block: place.block, after: &place.line };
        let (here, next) =
            (After { number: place.block.saturating_sub(1), limit: 1 }, After { number: place.block, limit: 1 });
        let ((left, oldest), here, next) = self.ask((of, here, next)).await?;
        // Everything up to the end of the stream's block, or of the block before the next one that is there.
        let until = here.first().filter(|block| block.number == place.block).map(|block| block.last);
        let until = until.or_else(|| next.first().map(|block| block.first.saturating_sub(1))).unwrap_or(end.last);
        let waits = oldest.or_else(|| next.first().map(|block| block.oldest));
        Ok(Lagging {
            lines: left.saturating_add(end.last.saturating_sub(until).max(0)),
            waits: waits.map_or(Span::ZERO, |oldest| now.since(oldest)),
            name: stream.name,
            moved_at: Some(stream.moved_at).filter(|at| *at != NEVER),
            stuck: trouble::is_stuck(&stream.trouble),
            trouble: stream.trouble,
        })
    }
}
