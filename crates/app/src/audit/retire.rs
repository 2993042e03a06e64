//! Removing what is too old or too much: whole blocks from the beginning of the chain, recorded by a checkpoint under
//! the key. What was not sealed or not delivered stays, unless an operator set a ceiling; and so does what differs from
//! what was sealed, until an operator discards it.

use super::lag::goes_on_at;
use super::seal::{end, key};
use crate::jobs::Swept;
use crate::{App, Fault};
use rules::audit::{Block, Checkpoint, Finding, Key, Line, Link, Sealing, Verifier};
use rules::events::{Event, Kind};
use rules::{Span, Time};
use std::time::{Duration, Instant};
use store::engine::CommitError;
use store::tables::audit::{
    Backlog, Begins, LeftOf, Newest, Stream, Streams, Unsealed, Whole, drop_unsealed, is_nameable, retire,
};

/// Entries that one batch drops.
const AT_ONCE: i64 = 200;

/// Where blocks go that a stream did not get, room is made for the ceiling divided by this, so that the entries that
/// tell of it are few beside those that are kept.
const ROOM: i64 = 16;

/// The outcome of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Retired {
    /// A block is gone, and there may be another one.
    Block,
    /// Nothing is too old or too much.
    Nothing,
    /// Another node was faster, or is at work: what is there has to be checked again.
    Elsewhere,
    /// This node may not say what it removed: why.
    Foreign(String),
    /// Something is, but a stream waits for it: which.
    Held(String),
    /// Something is, but stays, because it is not what was sealed: what.
    Wrong(String),
}

impl App {
    /// Removes the oldest block, if its time has come and it is what was sealed: the checkpoint that follows says under
    /// the key that it was.
    pub(super) async fn retire_once(&self) -> Result<Retired, Fault> {
        self.retire_next(None).await
    }

    /// Removes the blocks up to `until` whose time has come although they are not what was sealed, and leaves audit
    /// entries; returns how many. The inner error says why one stays.
    pub async fn discard_audit(&self, until: i64) -> Result<Result<u64, String>, Fault> {
        // A log that differs from what this node has seen is not discarded, but accepted.
        if let Err(why) = self.look_at_end().await? {
            return Ok(Err(why));
        }
        let mut many = 0;
        loop {
            match self.retire_next(Some(until)).await? {
                Retired::Block => many += 1,
                Retired::Elsewhere => tokio::time::sleep(super::REST).await,
                Retired::Nothing => {
                    // Whatever is left is reported by the next check.
                    self.books.alarms().over(super::alarm::About::Old);
                    return Ok(Ok(many));
                }
                Retired::Held(why) | Retired::Wrong(why) | Retired::Foreign(why) => return Ok(Err(why)),
            }
        }
    }

    async fn retire_next(&self, discard: Option<i64>) -> Result<Retired, Fault> {
        let first = Whole { number: 0, limit: 1 };
        let (begins, oldest, newest, streams) = self.ask((Begins, first, Newest, Streams)).await?;
        let (Some(block), Some(newest)) = (oldest.into_iter().next(), newest) else { return Ok(Retired::Nothing) };
        let (terms, kept) = (self.books.terms(), newest.last.saturating_sub(block.first).saturating_add(1));
        let witness = self.sealed_behind(&block).await?;
        let written = witness.as_ref().map_or(block.newest, |later| later.sealed_at);
        if !self.due(&block, written, kept) || discard.is_some_and(|until| block.number > until) {
            return Ok(Retired::Nothing);
        }
        let beyond = terms.ceiling.is_some_and(|ceiling| kept > ceiling);
        let waiting = self.waiting_for(&block, &streams).await?;
        if let (Some(stream), false) = (waiting.first(), beyond) {
            return Ok(Retired::Held(format!(
                "the stream {} has not delivered block {} yet; to give it up: portiere audit forget {0}",
                stream.name, block.number
            )));
        }
        let (_, last) = end(Some(&newest), begins.as_ref());
        let key = match key(terms, last.as_deref()) {
            Ok(key) => key,
            Err(why) => {
                return Ok(Retired::Foreign(format!("this node cannot seal the record of what it removes: {why}")));
            }
        };
        // A block written by a clock that was far ahead goes by itself, on the word of a later block.
        if let (false, Some(ceiling), None, None) = (waiting.is_empty(), terms.ceiling, discard, &witness) {
            let room = ceiling - (ceiling / ROOM).min(AT_ONCE);
            return self.take_out_undelivered((kept, room), &newest, (begins.as_ref(), key), &streams).await;
        }
        let Some(mut wrong) = self.wrong_with(std::slice::from_ref(&block), begins.as_ref(), &newest).await? else {
            return Ok(Retired::Elsewhere);
        };
        wrong.extend(witness.and_then(|later| self.verifier().record(&later)));
        if let (Some(finding), None) = (wrong.first(), discard) {
            return Ok(not_proved(block.number, finding));
        }
        let blocks = std::slice::from_ref(&block);
        let undelivered = self.undelivered(blocks, &streams).await?;
        let told = [self.gap(&block, begins.as_ref()), undelivered, self.unproved(&block, &wrong)];
        self.take_out(blocks, (begins.as_ref(), key), told.into_iter().flatten()).await
    }

    /// Removes the oldest blocks beyond the ceiling although a stream waits for them. They go many at a time: each
    /// removal leaves an entry, and where blocks have only one entry each, the log would come to consist of such
    /// entries.
    async fn take_out_undelivered(
        &self,
        (kept, room): (i64, i64),
        newest: &Block,
        (begins, key): (Option<&Checkpoint>, &Key),
        streams: &[Stream],
    ) -> Result<Retired, Fault> {
        let mut blocks = self.ask(Whole { number: 0, limit: AT_ONCE }).await?;
        let mut lines = 0;
        let going = blocks.iter().take_while(|block| {
            let more = lines < 2 || kept - lines > room && lines + block.lines() <= AT_ONCE;
            let due = more && self.due(block, block.newest, kept - lines);
            lines += block.lines();
            due
        });
        let going = going.count();
        blocks.truncate(going);
        if blocks.iter().map(Block::lines).sum::<i64>() < 2 {
            return Ok(Retired::Nothing);
        }
        let Some(wrong) = self.wrong_with(&blocks, begins, newest).await? else { return Ok(Retired::Elsewhere) };
        let (Some(oldest), Some(last)) = (blocks.first().map(|block| block.number), blocks.last()) else {
            return Ok(Retired::Nothing);
        };
        if let Some(finding) = wrong.first() {
            // In the newest block, which says how many are kept, or in the oldest: nothing goes. Else the blocks before
            // it go.
            let beyond = wrong.iter().any(|finding| finding.block > last.number);
            if beyond || finding.block <= oldest {
                return Ok(not_proved(oldest, finding));
            }
            blocks.retain(|block| block.number < finding.block);
        }
        let Some(oldest) = blocks.first() else { return Ok(Retired::Nothing) };
        let told = [self.gap(oldest, begins), self.undelivered(&blocks, streams).await?];
        self.take_out(&blocks, (begins, key), told.into_iter().flatten()).await
    }

    /// Whether the time of a block that was written by `written` has come, where `kept` entries are kept.
    fn due(&self, block: &Block, written: Time, kept: i64) -> bool {
        let (terms, now) = (self.books.terms(), self.clock.steady());
        // For a day, its entry distinguishes what a node acknowledged from what was lost: see `ward`.
        let told = self.are_relied_on() && !(written + Span::days(1)).has_come(now);
        let over = !told && terms.max_lines.is_some_and(|most| kept - block.lines() >= most);
        (written + terms.retention).has_come(now) || over
    }

    /// Whether a node that shares the database, this one or another, keeps a journal, and judges by entries of the last
    /// day what a failover has lost.
    fn are_relied_on(&self) -> bool {
        self.ward.is_some() || self.engine.answering().is_some() && self.journals.may_be()
    }

    /// Returns a later block that says by when the entries of this one were written, if a clock that was ahead wrote
    /// them: they, and all after them, would stay for as long as it was ahead. Leaps over blocks sealed in that time.
    async fn sealed_behind(&self, block: &Block) -> Result<Option<Block>, Fault> {
        let now = self.clock.now();
        if block.newest.has_come(now) {
            return Ok(None);
        }
        let mut leap = 0;
        loop {
            let later = self.ask(Whole { number: block.number.saturating_add(leap), limit: 1 }).await?;
            match later.into_iter().next() {
                Some(later) if !later.sealed_at.has_come(now) => {
                    leap = later.number.saturating_sub(block.number).saturating_mul(2);
                }
                later => return Ok(later),
            }
        }
    }

    fn verifier(&self) -> Verifier<'_> {
        Verifier { realm: &self.realm.id, keys: &self.books.terms().keys, head: None, mark: None }
    }

    /// Returns the streams that have not delivered all of a block.
    async fn waiting_for<'a>(&self, block: &Block, streams: &'a [Stream]) -> Result<Vec<&'a Stream>, Fault> {
        let mut waiting = Vec::new();
        for stream in streams {
            let place = goes_on_at(stream);
            let (left, _) = match place.block == block.number {
                true => self.ask(LeftOf { block: block.number, after: &place.line }).await?,
                false => (0, None),
            };
            if place.block < block.number || left > 0 {
                waiting.push(stream);
            }
        }
        Ok(waiting)
    }

    /// Returns how the oldest blocks, with all their entries, differ from those sealed there; `None` if another node is
    /// at work. How many entries are kept is the newest block's word, so that block has to be a sealed one, too.
    async fn wrong_with(
        &self,
        blocks: &[Block],
        begins: Option<&Checkpoint>,
        newest: &Block,
    ) -> Result<Option<Vec<Finding>>, Fault> {
        let verifier = self.verifier();
        let (mut told, mut findings) = verifier.begin(begins);
        for (block, lines) in self.with_lines(blocks).await? {
            findings.extend(verifier.block(&mut told, block, &lines));
        }
        let (last, again) = self.ask((Whole { number: newest.number - 1, limit: 1 }, Begins)).await?;
        let same = |last: &&Block| Block { leaves: Vec::new(), ..(*last).clone() } == *newest;
        let Some(last) = last.first().filter(same).filter(|_| again.as_ref() == begins) else { return Ok(None) };
        findings.extend(verifier.record(last));
        Ok(Some(findings))
    }

    async fn take_out(
        &self,
        blocks: &[Block],
        (begins, key): (Option<&Checkpoint>, &Key),
        told: impl Iterator<Item = Event>,
    ) -> Result<Retired, Fault> {
        let sealing = Sealing { realm: &self.realm.id, key, now: self.clock.now() };
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(Retired::Nothing) };
        let next = sealing.checkpoint(&Link::from(last));
        let numbers = (first.number, last.number, blocks.len() as u64);
        let writes = retire(&self.realm.id, numbers, (begins, &next));
        match self.commit_telling(&*self.engine, writes, told).await? {
            Ok(()) => Ok(Retired::Block),
            Err(CommitError::Conflict { .. }) => Ok(Retired::Elsewhere),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells of blocks that somebody removed before: the new checkpoint would hide that they are missing.
    fn gap(&self, block: &Block, begins: Option<&Checkpoint>) -> Option<Event> {
        let next = begins.map_or(0, |begins| begins.number).saturating_add(1);
        if block.number == next {
            return None;
        }
        tracing::error!(from = next, until = block.number - 1, "blocks of the audit log are missing");
        let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "blocks were missing");
        Some(event.detail("from_block", next).detail("until_block", block.number - 1))
    }

    /// Tells that an operator discards a block that is not what was sealed.
    fn unproved(&self, block: &Block, wrong: &[Finding]) -> Option<Event> {
        let first = wrong.first()?;
        tracing::warn!(block = block.number, why = first.why, "a block of the audit log was discarded unproved");
        let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "not what was sealed");
        let event = event.detail("block", block.number).detail("lines", block.lines());
        Some(event.detail("finding", first.what.as_str()).detail("findings", wrong.len() as i64))
    }

    /// Tells which streams do not get all entries of these blocks, nor those whose earlier loss one of them told of.
    /// `None` if every stream has them. One entry for all: it says how many are lost, and they are lost once.
    async fn undelivered(&self, blocks: &[Block], streams: &[Stream]) -> Result<Option<Event>, Fault> {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(None) };
        // Whichever lacks something of an earlier block lacks the last one, too.
        let waiting = self.waiting_for(last, streams).await?;
        if waiting.is_empty() {
            return Ok(None);
        }
        let stream = waiting.iter().map(|stream| stream.name.as_str()).collect::<Vec<_>>().join(" ");
        let (from, until) = (first.number, last.number);
        let with = self.with_lines(blocks).await?;
        let lines = with.iter().flat_map(|(_, lines)| lines).map(lost_with).sum::<i64>();
        tracing::warn!(stream, from, until, lines, "blocks of the audit log were dropped undelivered: audit.ceiling");
        let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "not delivered");
        let event = event.detail("stream", stream).detail("from_block", from).detail("until_block", until);
        Ok(Some(event.detail("lines", lines)))
    }

    /// Drops the oldest entries that wait to be sealed beyond the ceiling, if there is one, but stops once it has taken
    /// `stretch`; returns how many. Each batch tells what it drops, and what dropped entries told of. The backlog is
    /// counted once, since that takes long where it is large, and again if some of it was sealed meanwhile; new entries
    /// are for the next time.
    pub(crate) async fn drop_beyond_ceiling(&self, stretch: Duration) -> Result<Swept, Fault> {
        let Some(ceiling) = self.books.terms().ceiling else { return Ok(Swept { gone: 0, all: true }) };
        let (start, now) = (Instant::now(), self.clock.now());
        let (mut gone, mut beyond) = (0, self.ask(Backlog).await?.0 - ceiling);
        // As with blocks: for a day, its entry distinguishes what a node acknowledged from what was lost.
        let told = |line: &Line| self.are_relied_on() && !(line.at + Span::days(1)).has_come(now);
        while beyond > 0 {
            let began = Instant::now();
            // One more, for the entry that says so.
            let mut lines = self.ask(Unsealed { limit: (beyond + 1).min(AT_ONCE) }).await?;
            lines.truncate(lines.iter().position(told).unwrap_or(lines.len()));
            lines.retain(is_nameable);
            // One that goes leaves one that tells of it.
            if lines.len() < 2 {
                break;
            }
            let (many, lost) = (lines.len() as u64, lines.iter().map(lost_with).sum::<i64>());
            let ids = lines.into_iter().map(|line| line.id);
            let event = Event::new(Kind::AuditDropped, self.clock.now()).detail("why", "not sealed");
            let event = event.detail("lines", lost);
            match self.commit_telling(&*self.engine, drop_unsealed(&self.realm.id, ids), [event]).await? {
                Ok(()) => (gone, beyond) = (gone + many, beyond + 1 - many as i64),
                // One of them was sealed meanwhile.
                Err(CommitError::Conflict { .. }) => beyond = self.ask(Backlog).await?.0 - ceiling,
                Err(error) => return Err(error.into()),
            }
            // As sweeps do: requests go first.
            tokio::time::sleep(super::REST.max(began.elapsed() * 4)).await;
            if start.elapsed() >= stretch {
                return Ok(Swept { gone, all: beyond <= 0 });
            }
        }
        Ok(Swept { gone, all: true })
    }
}

/// Describes a block that is due to go, and stays.
fn not_proved(number: i64, finding: &Finding) -> Retired {
    Retired::Wrong(format!(
        "block {number} is due for removal, but cannot be proved to be what was sealed: {}. It is kept. See portiere \
         audit verify; to remove it anyway: portiere audit discard {number}",
        finding.why
    ))
}

/// Returns how many entries are unknown once this one is gone: it may be the one that told of others.
fn lost_with(line: &Line) -> i64 {
    let detail = Some(&line.detail).filter(|_| line.kind == Kind::AuditDropped.name());
    let detail = detail.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    1 + detail.and_then(|detail| detail["lines"].as_i64()).unwrap_or(0)
}
