//! Checks whether the log is as it was sealed, and if it is not, names the block and the line.

use super::Line;
use super::block::{Block, Checkpoint, Leaf, Link, digest, stored};
use super::key::Keys;
use crate::id::RealmId;
use crate::secret::hexadecimal;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The block that it is about; 0 if it is about none.
    pub block: i64,
    /// The line that it is about, if it is about one; the beginning of an id that is longer than any of ours.
    pub line: Option<String>,
    /// The kind of finding, for programs.
    pub what: String,
    /// The finding as a sentence.
    pub why: String,
}

impl Finding {
    /// A finding about a block as a whole, or about none.
    pub fn of(block: i64, what: &str, why: String) -> Self {
        Finding { block, line: None, what: what.to_owned(), why }
    }
    /// A finding about a line. `why` is given its id as it is shown.
    pub fn line(block: i64, id: &str, what: &str, why: impl FnOnce(&str) -> String) -> Self {
        let id = shown(id);
        Finding { why: why(&id), line: Some(id), ..Finding::of(block, what, String::new()) }
    }
}

/// The most characters that are shown of a text from the database: as many as a code has. Ids and keys have fewer.
const SHOWN: usize = 64;

/// Returns a text from the database as findings show it. Whoever writes there can make it as long as they like, and a
/// thousand findings have to fit into one request.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of the chain as it was once exported: what was there then has to be there for ever, unless retention removed
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The realm.
    pub realm: String,
    /// The newest block; 0 when there was none.
    pub block: i64,
    /// The position of its last line.
    pub lines: i64,
    /// Its code, in hexadecimal.
    pub mac: String,
    /// The key that it was sealed under; empty when there was none.
    pub key: String,
    /// When it was sealed, in milliseconds since 1970.
    pub sealed_at: Time,
}

/// The progress of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The last block that was checked.
    pub end: Link,
    /// Where the chain begins.
    pub begin: i64,
    /// Blocks so far.
    pub blocks: u64,
    /// Lines so far.
    pub lines: u64,
    /// The missing key, if one is missing: it is reported once for consecutive blocks under it.
    missing: Option<String>,
    /// Whether the block that was the end when it was exported has been met.
    met: bool,
}

/// Checks one block after the other.
pub struct Verifier<'a> {
    /// The realm.
    pub realm: &'a RealmId,
    /// The keys that are here.
    pub keys: &'a Keys,
    /// The end as it was once exported.
    pub head: Option<&'a Head>,
    /// The end as this node noted it, which may be a later one.
    pub mark: Option<&'a Head>,
}

impl Verifier<'_> {
    /// Begins where the chain begins.
    pub fn begin(&self, checkpoint: Option<&Checkpoint>) -> (Told, Vec<Finding>) {
        // Retention writes no checkpoint before the first block: such a one says nothing.
        let begins = checkpoint.filter(|checkpoint| checkpoint.number > 0);
        let end = bounded(begins.map_or_else(Link::beginning, Link::from));
        let mut told = Told { begin: end.number, end, blocks: 0, lines: 0, missing: None, met: false };
        let mut findings = Vec::new();
        if let Some(checkpoint) = checkpoint {
            let until = checkpoint.number;
            match checkpoint.is_sealed(self.realm, self.keys) {
                Some(true) => {}
                Some(false) => {
                    let what = match begins {
                        Some(_) => format!("the record that retention removed the blocks up to {until}"),
                        None => "the record of what retention removed".to_owned(),
                    };
                    findings.push(Finding::of(until, "checkpoint.edited", format!("{what} is not what was sealed")));
                }
                None => findings.extend(missing(&mut told, until, &checkpoint.key)),
            }
        }
        if let Some(head) = self.head.filter(|head| head.realm != self.realm.as_str()) {
            let why = format!("the exported head is of the realm {}, not {}", head.realm, self.realm);
            findings.push(Finding::of(0, "head.differs", why));
        }
        self.meet(&mut told, &mut findings);
        (told, findings)
    }

    /// Checks the next block with the lines that name it, in the order of their ids.
    pub fn block(&self, told: &mut Told, block: &Block, lines: &[Line]) -> Vec<Finding> {
        let (number, end) = (block.number, told.end.clone());
        let mut findings = Vec::new();
        let mut find = |what, why| findings.push(Finding::of(number, what, why));
        let next = end.number.saturating_add(1);
        if number < next {
            find("block.inserted", format!("block {number} is there although retention removed it"));
            return findings;
        }
        if number > next {
            let which = if number == next + 1 { format!("{next} is") } else { format!("{next} to {} are", number - 1) };
            find("block.missing", format!("block {which} missing"));
        } else if block.before != end.code() || block.first != end.last.saturating_add(1) {
            find("block.unlinked", format!("block {number} does not continue block {}", end.number));
        }
        match block.is_sealed(self.realm, self.keys) {
            None => findings.extend(missing(told, number, &block.key)),
            Some(_) => {
                findings.extend(proved_again(told, number));
                findings.extend(self.record(block));
            }
        }
        findings.extend(compared(block, lines));
        (told.end, told.blocks) = (bounded(Link::from(block)), told.blocks + 1);
        told.lines += lines.len() as u64;
        self.meet(told, &mut findings);
        findings
    }

    /// Checks whether the record of a block by itself, whatever is before it, is as it was sealed.
    pub fn record(&self, block: &Block) -> Option<Finding> {
        let number = block.number;
        match block.is_sealed(self.realm, self.keys) {
            Some(true) => None,
            Some(false) => {
                let why = format!("the record of block {number} is not what was sealed");
                Some(Finding::of(number, "block.edited", why))
            }
            None => Some(unknown(number, &block.key)),
        }
    }

    /// Reports lines that name a block that is not there.
    pub fn strays(&self, lines: &[Line]) -> Vec<Finding> {
        let stray = |line: &Line| {
            let why = |id: &str| format!("line {id} names block {}, which is not there", line.block);
            Finding::line(line.block, &line.id, "line.inserted", why)
        };
        lines.iter().map(stray).collect()
    }

    /// Reports records in place of blocks, whose numbers are those of no block.
    pub fn misnumbered(&self, numbers: &[String]) -> Vec<Finding> {
        let one = |number: &String| {
            let why = format!("a record of a block is there whose number is not valid: {}", shown(number));
            Finding::of(number.parse().unwrap_or(-1), "block.inserted", why)
        };
        numbers.iter().map(one).collect()
    }

    /// Ends the verification after the last block.
    pub fn end(&self, told: &Told) -> Vec<Finding> {
        let ends = [self.head, self.mark].into_iter().flatten();
        let Some(head) = ends.max_by_key(|head| head.block).filter(|head| head.block > told.end.number) else {
            return Vec::new();
        };
        let (from, last) = (told.end.number + 1, head.block);
        let which = if from == last { format!("{from} is") } else { format!("{from} to {last} are") };
        let why = format!("the chain was cut: it ended with block {last} once, and block {which} missing");
        vec![Finding::of(from, "chain.cut", why)]
    }

    /// Compares the chain with the exported and the noted end, each at its own block.
    fn meet(&self, told: &mut Told, findings: &mut Vec<Finding>) {
        let here = |end: &&Head| end.block > 0 && end.block == told.end.number;
        let (head, mark) = (self.head.filter(here), self.mark.filter(here));
        let differs = |end: &&Head| end.mac != told.end.mac || end.lines != told.end.last;
        if let Some(end) = head.into_iter().chain(mark).find(differs) {
            let why = format!("block {} is not the one that the log once ended with", end.block);
            findings.push(Finding::of(end.block, "head.differs", why));
        }
        told.met |= head.is_some();
    }
}

impl Told {
    /// Continues where `from` begins: retention removed what lay between.
    pub fn moved(self, from: Told) -> Told {
        Told { blocks: self.blocks, lines: self.lines, met: self.met || from.met, ..from }
    }

    /// Whether the exported end was compared. It was not if retention removed its block, or if there was none.
    pub fn met_head(&self) -> bool {
        self.met
    }
}

/// Returns where the verification is by now: that is sent back and forth with each step. What is longer than a code is
/// none, and what is shown of it is none either.
fn bounded(link: Link) -> Link {
    Link { mac: shown(&link.mac), ..link }
}

fn missing(told: &mut Told, block: i64, key: &str) -> Option<Finding> {
    let shown = Some(shown(key));
    if told.missing == shown {
        return None;
    }
    told.missing = shown;
    Some(unknown(block, key))
}

/// Reports the end of a run of blocks of which nothing is proved. Somebody who edits a block can claim that it was
/// sealed under another key, so each such run is reported, however many there are.
fn proved_again(told: &mut Told, block: i64) -> Option<Finding> {
    let key = told.missing.take()?;
    let why = format!(
        "nothing up to block {} can be proved, because key {key} is not here; block {block} was sealed under one that \
         is here",
        block - 1
    );
    Some(Finding::of(block - 1, "key.missing", why))
}

fn unknown(block: i64, key: &str) -> Finding {
    let key = shown(key);
    let why =
        format!("block {block} was sealed under key {key}, which is not here: nothing from here on can be proved");
    Finding::of(block, "key.missing", why)
}

fn compared(block: &Block, lines: &[Line]) -> Vec<Finding> {
    let (number, leaves) = (block.number, block.leaves());
    let mut findings = leaves.as_ref().map_or_else(Vec::new, |leaves| line_by_line(number, leaves, lines));
    // Also if it does not say which lines it has: what was done to them must not hide behind that.
    if findings.is_empty() && (digest(lines).as_slice() != block.digest || block.lines() != lines.len() as i64) {
        let sum = shown(&hexadecimal(&block.digest));
        let why = format!("the lines of block {number} do not have the checksum {sum} that was sealed");
        findings.push(Finding::of(number, "block.edited", why));
    }
    if leaves.is_none() {
        let why = format!("the record of block {number} does not say which lines it has");
        findings.push(Finding::of(number, "block.edited", why));
    }
    findings
}

/// Compares what a block stores of its lines with the lines, both in the order of the ids. Of lines that a block stores
/// under one name, since that is where they were cut, one may be named in place of another.
fn line_by_line(number: i64, leaves: &[Leaf], lines: &[Line]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut leaves, mut lines) = (leaves.iter().peekable(), lines.iter().peekable());
    loop {
        let order = match (leaves.peek(), lines.peek()) {
            (None, None) => return findings,
            (Some(leaf), Some(line)) => leaf.id.as_slice().cmp(stored(&line.id)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let (leaf, line) = (leaves.next_if(|_| order.is_le()), lines.next_if(|_| order.is_ge()));
        findings.extend(match (leaf, line) {
            (Some(leaf), Some(line)) => same_line(number, leaf, line),
            (Some(leaf), None) => Some(gone(number, leaf)),
            (None, line) => line.map(|line| inserted(number, line)),
        });
    }
}

fn gone(number: i64, leaf: &Leaf) -> Finding {
    let why = |id: &str| format!("line {id} of block {number} is missing");
    Finding::line(number, &String::from_utf8_lossy(&leaf.id), "line.missing", why)
}

fn inserted(number: i64, line: &Line) -> Finding {
    let why = |id: &str| format!("line {id} was not in block {number} when it was sealed");
    Finding::line(number, &line.id, "line.inserted", why)
}

fn same_line(number: i64, leaf: &Leaf, line: &Line) -> Option<Finding> {
    let same = line.hash()[..16] == leaf.hash;
    let why = |id: &str| format!("line {id} of block {number} was edited");
    (!same).then(|| Finding::line(number, &line.id, "line.edited", why))
}
