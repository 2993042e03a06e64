//! Statements as they are sent to the server, each translated once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::dialect::mysql::block::{self, Part};
use crate::dialect::mysql::lookup::Lookup;
use crate::dialect::mysql::{self, Kind};
use crate::engine::{Must, Sql};

/// The maximum number of blocks: batches have few forms, and each connection keeps every form prepared.
const BLOCKS: usize = 300;

/// A text that is sent to a server. Connections keep it prepared under its number.
#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) number: usize,
    pub(super) text: String,
}

/// A statement, translated.
#[derive(Debug)]
pub(super) struct Saying {
    /// What it does.
    pub(super) kind: Kind,
    /// The table that it writes to, or the first one that it reads.
    pub(super) table: String,
    /// The number of its values.
    pub(super) values: usize,
    /// The statement without a lock clause.
    pub(super) plain: Phrase,
    /// A read that keeps others from changing the rows that it found until the batch ends.
    pub(super) shared: Phrase,
    /// A read of rows that the batch itself will change: rivals queue here instead of deadlocking later.
    pub(super) exclusive: Phrase,
    /// The part of a read that may be sent [together](Phrasebook::together) with others.
    rows: Option<String>,
    /// What a read asks that only asks whether a row exists.
    lookup: Option<Lookup>,
}

impl Saying {
    /// The phrase to send within a batch.
    pub(super) fn phrase(&self, exclusive: bool) -> &Phrase {
        match self.kind {
            Kind::Select if exclusive => &self.exclusive,
            Kind::Select => &self.shared,
            _ => &self.plain,
        }
    }

    fn part(&self, exclusive: bool, must: Must) -> Part<'_> {
        let (text, rows) = (self.plain.text.as_str(), self.rows.as_deref());
        Part { kind: self.kind, text, rows, lookup: self.lookup.as_ref(), exclusive, must }
    }

    /// Whether it may be sent together with others.
    pub(super) fn is_sociable(&self) -> bool {
        self.rows.is_some()
    }
}

/// The key of a block: the numbers of its phrases, and how many rows each has to touch or find.
type Form = Vec<(usize, Option<u64>)>;

/// Every statement that was translated so far.
#[derive(Default)]
pub(super) struct Phrasebook(RwLock<Pages>);

#[derive(Default)]
struct Pages {
    sayings: HashMap<Sql, Arc<Saying>>,
    /// By the numbers of the phrases in them.
    unions: HashMap<Vec<usize>, Arc<Phrase>>,
    /// `None` for a form that cannot be one statement.
    blocks: HashMap<Form, Option<Arc<Phrase>>>,
    phrases: usize,
}

impl Pages {
    fn phrase(&mut self, text: String) -> Phrase {
        self.phrases += 1;
        Phrase { number: self.phrases - 1, text }
    }
}

impl Phrasebook {
    /// Returns the translation of `sql`, or the reason why there is none.
    pub(super) fn find(&self, sql: &Sql) -> Result<Arc<Saying>, String> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).sayings.get(sql) {
            return Ok(Arc::clone(known));
        }
        let said = mysql::say(sql.text()).map_err(|why| format!("{}: {}", why.0, sql.text()))?;
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Two threads may have come at once: the first translation stays, since connections use its numbers.
        if let Some(known) = pages.sayings.get(sql) {
            return Ok(Arc::clone(known));
        }
        let saying = Arc::new(Saying {
            shared: pages.phrase(format!("{}{}", said.text, mysql::lock(false))),
            exclusive: pages.phrase(format!("{}{}", said.text, mysql::lock(true))),
            plain: pages.phrase(said.text),
            kind: said.kind,
            table: said.table,
            values: said.values,
            rows: said.rows,
            lookup: said.lookup,
        });
        pages.sayings.insert(sql.clone(), Arc::clone(&saying));
        Ok(saying)
    }

    /// Combines sociable reads into one; the flag of each says whether it locks as a change does.
    pub(super) fn together(&self, reads: &[(&Saying, bool)]) -> Arc<Phrase> {
        let numbers: Vec<usize> = reads.iter().map(|(saying, exclusive)| saying.phrase(*exclusive).number).collect();
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).unions.get(&numbers) {
            return Arc::clone(known);
        }
        let rows = reads.iter().map(|(saying, exclusive)| (saying.rows.as_deref().unwrap_or_default(), *exclusive));
        let text = mysql::counted_together(rows);
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let phrase = Arc::new(pages.phrase(text));
        Arc::clone(pages.unions.entry(numbers).or_insert(phrase))
    }

    /// Combines a batch into one statement, if possible. The flag of each line says whether it locks as a change does.
    pub(super) fn batch<'a>(&self, lines: &[(&'a Saying, bool, Must)]) -> Option<Arc<Phrase>> {
        let key = |&(saying, exclusive, must): &(&Saying, bool, Must)| match must {
            Must::Touch(count) | Must::Find(count) => (saying.phrase(exclusive).number, Some(count)),
            Must::Any => (saying.phrase(exclusive).number, None),
        };
        self.block(lines.iter().map(key).collect(), || {
            let part = |(saying, exclusive, must): &(&'a Saying, bool, Must)| saying.part(*exclusive, *must);
            let parts: Vec<Part<'a>> = lines.iter().map(part).collect();
            block::batch(&parts)
        })
    }

    /// Combines several reads into one statement with as many answers.
    pub(super) fn reads(&self, sayings: &[&Saying]) -> Option<Arc<Phrase>> {
        let key = sayings.iter().map(|saying| (saying.plain.number, None)).collect();
        self.block(key, || Some(block::reads(sayings.iter().map(|saying| saying.plain.text.as_str()))))
    }

    fn block(&self, form: Form, text: impl FnOnce() -> Option<String>) -> Option<Arc<Phrase>> {
        let known = |pages: &Pages| match pages.blocks.get(&form) {
            Some(known) => Some(known.clone()),
            None if pages.blocks.len() >= BLOCKS => Some(None),
            None => None,
        };
        if let Some(known) = known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let text = text();
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known(&pages) {
            return known;
        }
        let phrase = text.map(|text| Arc::new(pages.phrase(text)));
        pages.blocks.entry(form).or_insert(phrase).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_has_a_number_of_its_own() {
        let book = Phrasebook::default();
        let one = book.find(&Sql::fixed("SELECT a FROM t")).unwrap();
        let two = book.find(&Sql::fixed("SELECT b FROM t")).unwrap();
        assert!(Arc::ptr_eq(&one, &book.find(&Sql::fixed("SELECT a FROM t")).unwrap()));
        let numbers = [&one.plain, &one.shared, &one.exclusive, &two.plain, &two.shared, &two.exclusive];
        assert_eq!(numbers.map(|phrase| phrase.number), [2, 0, 1, 5, 3, 4]);
        assert_eq!(two.exclusive.text, "SELECT b FROM t FOR UPDATE");
        assert!(book.find(&Sql::fixed("PRAGMA quick_check(1)")).is_err());
        let both = book.together(&[(&one, false), (&two, true)]);
        assert_eq!(both.text, "(SELECT 0 FROM t LOCK IN SHARE MODE) UNION ALL (SELECT 1 FROM t FOR UPDATE)");
        assert_eq!(both.number, 6);
        assert!(Arc::ptr_eq(&both, &book.together(&[(&one, false), (&two, true)])));
        assert_eq!(book.together(&[(&one, false), (&two, false)]).number, 7);
    }
}
