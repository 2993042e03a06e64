//! Statements as the server takes them, each translated once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::dialect::mysql::{self, Kind};
use crate::engine::Sql;

/// Text that is sent to a server. Connections keep it prepared under its number.
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
    /// The table that it writes, or reads first.
    pub(super) table: String,
    /// How many values it takes.
    pub(super) values: usize,
    /// As it is.
    pub(super) plain: Phrase,
    /// A read that keeps others from changing what it found until the batch ends.
    pub(super) shared: Phrase,
    /// A read of what the batch itself will change: whoever wants the same waits here, and not for each other.
    pub(super) exclusive: Phrase,
}

/// Every statement that was said so far.
#[derive(Default)]
pub(super) struct Phrasebook(RwLock<HashMap<Sql, Arc<Saying>>>);

impl Phrasebook {
    /// The translation of `sql`; otherwise why there is none.
    pub(super) fn find(&self, sql: &Sql) -> Result<Arc<Saying>, String> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(sql) {
            return Ok(Arc::clone(known));
        }
        let said = mysql::say(sql.text()).map_err(|why| format!("{}: {}", why.0, sql.text()))?;
        let mut book = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let first = 3 * book.len();
        let phrase = |at: usize, ending: &str| Phrase { number: first + at, text: format!("{}{ending}", said.text) };
        let saying = Arc::new(Saying {
            plain: phrase(0, ""),
            shared: phrase(1, " LOCK IN SHARE MODE"),
            exclusive: phrase(2, " FOR UPDATE"),
            kind: said.kind,
            table: said.table,
            values: said.values,
        });
        // Two may have come at once: the first stays, since connections know its numbers.
        Ok(Arc::clone(book.entry(sql.clone()).or_insert(saying)))
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
        assert_eq!(numbers.map(|phrase| phrase.number), [0, 1, 2, 3, 4, 5]);
        assert_eq!(two.exclusive.text, "SELECT b FROM t FOR UPDATE");
        assert!(book.find(&Sql::fixed("PRAGMA quick_check(1)")).is_err());
    }
}
