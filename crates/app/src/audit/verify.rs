//! Verifying the audit log, some blocks at a time.

use super::mark::Known;
use crate::{App, Fault};
use rules::audit::{Block, Checkpoint, Finding, Head, Line, Told, Verifier};
use store::tables::audit::{Astray, Backlog, Begins, Misnumbered, Naming, Newest, Strays, Unsound, Whole};

/// Blocks that one step looks at.
const BLOCKS: i64 = 8;
/// Entries put into a block that are named, at most; the rest is not looked at.
const FOREIGN: i64 = 100;
/// How often a step is repeated where retention removed what it looked at.
const TRIES: usize = 20;

/// What a step of a verification found.
#[derive(Clone, Debug)]
pub struct Verified {
    /// How far the verification is.
    pub told: Told,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Whether that was all.
    pub done: bool,
    /// The newest block.
    pub newest: i64,
    /// The end as this node last saw it.
    pub mark: Option<Head>,
    /// Entries that are not sealed, of which nothing can be proved; counted at the end.
    pub unsealed: i64,
}

impl App {
    /// Checks the next blocks after what was `told`, or the first ones. Nothing may be missing before the exported
    /// head, if one is given, nor before the end that this node saw last.
    pub async fn verify_audit(&self, told: Option<&Told>, head: Option<&Head>) -> Result<Verified, Fault> {
        let keys = &self.books.terms().keys;
        // Read before any block: what was sealed since is not missing.
        let known = self.books.marked().known();
        let mark = if let Known::End(mark) = &known { Some(mark.clone()) } else { None };
        let verifier = Verifier { realm: &self.realm.id, keys, head, mark: mark.as_ref() };
        let unsound = if told.is_none() { self.unsound().await? } else { Vec::new() };
        for _ in 0..TRIES {
            let (begins, newest) = self.ask((Begins, Newest)).await?;
            let newest = newest.map_or(0, |newest| newest.number);
            let (mut here, mut findings) = self.start(&verifier, told, begins.as_ref()).await?;
            let blocks = self.ask(Whole { number: here.end.number, limit: BLOCKS }).await?;
            for (block, lines) in self.with_lines(&blocks).await? {
                findings.extend(self.between(&verifier, here.end.number, block.number).await?);
                findings.extend(verifier.block(&mut here, block, &lines));
            }
            // What was removed meanwhile is not missing.
            let again = self.ask(Begins).await?;
            if again.as_ref().map(|of| of.number) != begins.as_ref().map(|of| of.number)
                && again.as_ref().is_some_and(|of| told.is_none_or(|told| of.number > told.end.number))
            {
                continue;
            }
            let done = (blocks.len() as i64) < BLOCKS;
            let mut unsealed = 0;
            if done {
                findings.extend(self.beyond(&verifier, here.end.number).await?);
                findings.extend(verifier.end(&here));
                unsealed = self.ask(Backlog).await?.0;
            }
            let foreign = head.filter(|head| !head.key.is_empty() && keys.find(&head.key).is_none());
            if let (Some(head), true) = (foreign, done && !findings.is_empty()) {
                let why = format!(
                    "the exported head was sealed under {}, which is not a key of this node: is it from this log?",
                    head.key
                );
                findings.insert(0, Finding::of(head.block, "head.differs", why));
            }
            if let (Known::Untold { why, .. }, true) = (&known, told.is_none()) {
                findings.insert(0, Finding::of(0, "mark.edited", why.clone()));
            }
            findings.splice(0..0, unsound);
            return Ok(Verified { told: here, findings, done, newest, mark, unsealed });
        }
        Err(Fault::Contended("retention removes blocks faster than they are read".into()))
    }

    /// Finds what the database itself says is wrong with the tables of the log. All else is read by indexes: an entry
    /// that is in none of them would be listed, and compared with nothing.
    async fn unsound(&self) -> Result<Vec<Finding>, Fault> {
        let mut findings = Vec::new();
        for table in Unsound::tables(self.engine.dialect()) {
            let name = table.table;
            let why = |what: String| {
                format!(
                    "the table {name} is damaged, or was changed past its indexes ({what}): after a REINDEX of the \
                     file, verify names the lines that differ"
                )
            };
            let damaged = |what| Finding::of(0, "table.damaged", why(what));
            findings.extend(self.ask(table).await?.into_iter().map(damaged));
        }
        Ok(findings)
    }

    /// Returns where this step begins: where the one before ended, or where the chain begins by now.
    async fn start(
        &self,
        verifier: &Verifier<'_>,
        told: Option<&Told>,
        begins: Option<&Checkpoint>,
    ) -> Result<(Told, Vec<Finding>), Fault> {
        let begun = begins.map_or(0, |begins| begins.number);
        let Some(told) = told else {
            let (told, mut findings) = verifier.begin(begins);
            let of = |of| Strays { of, limit: FOREIGN };
            let of = (of(Astray::First), of(Astray::Below), removed(0, begun), of(Astray::Last));
            let (first, below, removed, last) = self.ask(of).await?;
            findings.extend(verifier.misnumbered(&self.ask(Misnumbered::Before(begun)).await?));
            for end in [first, last] {
                let nulls: Vec<Line> = end.into_iter().take_while(|line| line.block < 0).collect();
                findings.extend(strays(verifier, &nulls));
            }
            findings.extend(strays(verifier, &below));
            findings.extend(strays(verifier, &removed));
            let blocks = self.ask(Whole { number: 0, limit: 1 }).await?;
            if let Some(block) = blocks.first().filter(|block| block.number <= begun) {
                findings.extend(verifier.block(&mut told.clone(), block, &[]));
            }
            return Ok((told, findings));
        };
        if begun <= told.end.number {
            return Ok((told.clone(), Vec::new()));
        }
        let (from, mut findings) = verifier.begin(begins);
        findings.extend(strays(verifier, &self.ask(removed(told.end.number, begun)).await?));
        Ok((told.clone().moved(from), findings))
    }

    /// Returns each block with the entries that name it, in the order of the ids as they are read: an id that is not
    /// text may stand elsewhere in the database.
    pub(super) async fn with_lines<'a>(&self, blocks: &'a [Block]) -> Result<Vec<(&'a Block, Vec<Line>)>, Fault> {
        let mut with = Vec::with_capacity(blocks.len());
        for block in blocks {
            let limit = block.lines().clamp(0, 1 << 16) + FOREIGN;
            let mut lines = self.ask(Naming { block: block.number, limit }).await?;
            lines.sort_by(|one, other| one.id.cmp(&other.id));
            with.push((block, lines));
        }
        Ok(with)
    }

    /// Finds entries and records between two blocks that are there: of blocks that are missing, or of no possible
    /// block.
    async fn between(&self, verifier: &Verifier<'_>, last: i64, next: i64) -> Result<Vec<Finding>, Fault> {
        let of = Strays { of: Astray::Among { after: last, before: next }, limit: FOREIGN };
        let (lines, records) = self.ask((of, Misnumbered::Among(last, next))).await?;
        Ok([verifier.misnumbered(&records), strays(verifier, &lines)].concat())
    }

    /// Finds entries and records after the last block.
    async fn beyond(&self, verifier: &Verifier<'_>, last: i64) -> Result<Vec<Finding>, Fault> {
        let of = Strays { of: Astray::Beyond { after: last }, limit: FOREIGN };
        let (lines, records) = self.ask((of, Misnumbered::Beyond(last))).await?;
        Ok([verifier.misnumbered(&records), strays(verifier, &lines)].concat())
    }
}

/// Asks for entries of blocks that retention removed, after one block and up to another.
fn removed(after: i64, until: i64) -> Strays {
    // If it removed none, what is before the first block is found by [`App::between`].
    let before = if until > after { until.saturating_add(1) } else { after };
    Strays { of: Astray::Among { after, before }, limit: FOREIGN }
}

/// Returns findings about entries that name no block that is there.
fn strays(verifier: &Verifier<'_>, lines: &[Line]) -> Vec<Finding> {
    let (numbered, others): (Vec<Line>, Vec<Line>) = lines.iter().cloned().partition(|line| line.block >= 0);
    let no_block = |line: Line| {
        let why = |id: &str| format!("line {id} belongs to no block: its block number is not valid");
        Finding::line(line.block, &line.id, "line.inserted", why)
    };
    verifier.strays(&numbered).into_iter().chain(others.into_iter().map(no_block)).collect()
}
