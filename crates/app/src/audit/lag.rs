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

/// Lines that are not sealed are counted up to so many: it is looked often.
const MOST: i64 = 100_000;

/// How far the audit log is behind.
#[derive(Clone, Debug)]
pub struct Lag {
    /// The newest block, with the position of its last line.
    pub end: Link,
    /// Under which key it was sealed; `None` before the first block.
    pub key: Option<String>,
    /// Lines that are not sealed yet, counted up to a hundred thousand.
    pub unsealed: i64,
    /// How long the oldest of them has waited.
    pub unsealed_for: Span,
    /// Lines that are sealed and kept.
    pub kept: i64,
    /// Each stream.
    pub streams: Vec<Lagging>,
}

/// How far a stream is behind.
#[derive(Clone, Debug)]
pub struct Lagging {
    /// Its name.
    pub name: String,
    /// Lines that it has not delivered: those that are sealed, and those that are not yet, counted up to a hundred thousand.
    pub lines: i64,
    /// How long the oldest of them has waited, by when it was written. Where nothing is sealed, nothing is delivered.
    pub waits: Span,
    /// When something was delivered last; `None` when nothing ever was.
    pub moved_at: Option<Time>,
    /// Why nothing more was; empty when all is well.
    pub trouble: String,
    /// Whether it stands still at a line that its receiver refuses for good.
    pub stuck: bool,
}

/// Whether a place is one that a chain with this end does not reach: nothing that is sealed would ever be behind it.
pub(super) fn is_beyond(place: &Place, end: &Link) -> bool {
    let next = Place::from(end);
    (place.block, &place.line) > (next.block, &next.line)
}

impl App {
    /// With which block the log ends, where that is before a place that somebody has seen.
    pub async fn audit_ends_before(&self, place: &Place) -> Result<Option<i64>, Fault> {
        let (newest, begins) = self.ask((Newest, Begins)).await?;
        let (end, _) = end(newest.as_ref(), begins.as_ref());
        Ok(is_beyond(place, &end).then_some(end.number))
    }

    /// The code of a block, in hexadecimal; `None` where it is not there, or was taken out and others after it.
    pub async fn audit_code(&self, number: i64) -> Result<Option<String>, Fault> {
        let (blocks, begins) = self.ask((After { number: number - 1, limit: 1 }, Begins)).await?;
        let block = blocks.into_iter().find(|block| block.number == number).map(|block| block.mac);
        let begins = begins.filter(|begins| begins.number == number).map(|begins| begins.mac);
        Ok(block.or(begins).map(|mac| hexadecimal(&mac)))
    }

    /// How far sealing and delivering are behind. A few reads, each of an index: for a page of metrics now and then.
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
            let (lines, waits) = (sealed.lines + unsealed, sealed.waits.max(unsealed_for));
            lagging.push(Lagging { lines, waits, ..sealed });
        }
        Ok(Lag {
            kept: end.last - begins.as_ref().map_or(0, |begins| begins.last),
            end,
            key,
            unsealed,
            unsealed_for,
            streams: lagging,
        })
    }

    /// How far a stream is behind the end of the chain.
    async fn behind(&self, stream: Stream, end: &Link, now: Time) -> Result<Lagging, Fault> {
        let place = &stream.place;
        let of = LeftOf { block: place.block, after: &place.line };
        let (here, next) = (After { number: place.block - 1, limit: 1 }, After { number: place.block, limit: 1 });
        let ((left, oldest), here, next) = self.ask((of, here, next)).await?;
        // Everything up to the end of the block that it is in, or of the one before the next that is there.
        let until = here.first().filter(|block| block.number == place.block).map(|block| block.last);
        let until = until.or_else(|| next.first().map(|block| block.first - 1)).unwrap_or(end.last);
        let waits = oldest.or_else(|| next.first().map(|block| block.oldest));
        Ok(Lagging {
            lines: left + (end.last - until).max(0),
            waits: waits.map_or(Span::ZERO, |oldest| now.since(oldest)),
            name: stream.name,
            moved_at: Some(stream.moved_at).filter(|at| *at != NEVER),
            stuck: trouble::is_stuck(&stream.trouble),
            trouble: stream.trouble,
        })
    }
}
