//! Checks whether the log is as it was sealed, and if it is not, names the block and the line.

use super::Line;
use super::block::{Block, Checkpoint, Leaf, Link, digest};
use super::key::Keys;
use crate::id::RealmId;
use crate::secret::hexadecimal;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The block that it is about; 0 if it is about none.
    pub block: i64,
    /// The line that it is about, if it is about one.
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
    fn line(block: i64, id: &str, what: &str, why: String) -> Self {
        Finding { line: Some(id.to_owned()), ..Finding::of(block, what, why) }
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
        let end = checkpoint.map_or_else(Link::beginning, Link::from);
        let mut told = Told { begin: end.number, end, blocks: 0, lines: 0, missing: None, met: false };
        let mut findings = Vec::new();
        if let Some(checkpoint) = checkpoint {
            let until = checkpoint.number;
            match checkpoint.is_sealed(self.realm, self.keys) {
                Some(true) => {}
                Some(false) => findings.push(Finding::of(
                    until,
                    "checkpoint.edited",
                    format!("the record that retention removed the blocks up to {until} is not what was sealed"),
                )),
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
        (told.end, told.blocks) = (Link::from(block), told.blocks + 1);
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
            let why = format!("line {} names block {}, which is not there", line.id, line.block);
            Finding::line(line.block, &line.id, "line.inserted", why)
        };
        lines.iter().map(stray).collect()
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

fn missing(told: &mut Told, block: i64, key: &str) -> Option<Finding> {
    if told.missing.as_deref() == Some(key) {
        return None;
    }
    told.missing = Some(key.to_owned());
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
    let why =
        format!("block {block} was sealed under key {key}, which is not here: nothing from here on can be proved");
    Finding::of(block, "key.missing", why)
}

fn compared(block: &Block, lines: &[Line]) -> Vec<Finding> {
    let number = block.number;
    let Some(leaves) = block.leaves() else {
        let why = format!("the record of block {number} does not say which lines it has");
        return vec![Finding::of(number, "block.edited", why)];
    };
    let mut findings = Vec::new();
    let (mut leaves, mut lines_left) = (leaves.iter().peekable(), lines.iter().peekable());
    loop {
        let (leaf, line) = (leaves.peek(), lines_left.peek());
        let found = match (leaf, line) {
            (None, None) => break,
            (Some(leaf), Some(line)) if leaf.id == line.id => same_line(number, leaf, line),
            (Some(leaf), Some(line)) if leaf.id < line.id => Some(gone(number, &leaf.id)),
            (Some(leaf), None) => Some(gone(number, &leaf.id)),
            (_, Some(line)) => {
                let why = format!("line {} was not in block {number} when it was sealed", line.id);
                Some(Finding::line(number, &line.id, "line.inserted", why))
            }
        };
        let (ahead, behind) = match (leaf, line) {
            (Some(leaf), Some(line)) => (leaf.id <= line.id, line.id <= leaf.id),
            (leaf, line) => (leaf.is_some(), line.is_some()),
        };
        findings.extend(found);
        let _ = (ahead.then(|| leaves.next()), behind.then(|| lines_left.next()));
    }
    if findings.is_empty() && (digest(lines).as_slice() != block.digest || block.lines() != lines.len() as i64) {
        let sum = hexadecimal(&block.digest);
        let why = format!("the lines of block {number} do not have the checksum {sum} that was sealed");
        findings.push(Finding::of(number, "block.edited", why));
    }
    findings
}

fn gone(number: i64, id: &str) -> Finding {
    Finding::line(number, id, "line.missing", format!("line {id} of block {number} is missing"))
}

fn same_line(number: i64, leaf: &Leaf, line: &Line) -> Option<Finding> {
    let same = line.hash()[..16] == leaf.hash;
    let why = || format!("line {} of block {number} was edited", line.id);
    (!same).then(|| Finding::line(number, &line.id, "line.edited", why()))
}
