//! Advisory locks for the rows that requests rely on all the time: that of an application, which every batch that
//! issues something checks until it ends, and that of the realm, which every batch that uses an assertion up checks.
//!
//! A lock on such a row itself would be written to the row, and again for each set of holders at the same time; and a
//! batch that wants to change the row would wait for ever, since under load there is always a holder. So an advisory
//! lock on the row's name is used: it is shared by all batches that check the row, taken exclusively by a batch that
//! changes or removes it, at the very beginning of the batch, and writes nothing. Later batches queue behind one that
//! waits for the exclusive lock. Statements after it read what was committed before the lock was granted.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::dialect::postgres::{self as dialect, Verb};
use crate::engine::{Value, Write};

/// The tables whose rows are locked this way, and how the condition of a statement begins that names one row.
pub(crate) const TABLES: [(&str, &str); 2] = [("clients", " WHERE realm = ? AND id = ?"), ("realms", " WHERE id = ?")];

/// The locks that a batch begins with, in an order that is the same for all batches: whether each is exclusive.
pub(super) fn of(writes: &[Write]) -> BTreeMap<i64, bool> {
    let mut holds = BTreeMap::new();
    for write in writes {
        let alone = match dialect::verb(write.sql.text()) {
            Verb::Insert | Verb::Other => continue,
            Verb::Select => false,
            Verb::Update | Verb::Delete => true,
        };
        // A statement that names no row locks the rows that it finds, as for other tables. No statement that changes
        // such a row is of that kind (tables/tests.rs): it would bypass the batches that share the lock.
        if let Some(name) = name(write) {
            *holds.entry(name).or_default() |= alone;
        }
    }
    holds
}

/// Whether a statement only checks a row for which a lock is held.
pub(super) fn covers(write: &Write) -> bool {
    dialect::verb(write.sql.text()) == Verb::Select && name(write).is_some()
}

/// The number of the lock for the one row that a statement is about.
fn name(write: &Write) -> Option<i64> {
    let sql = write.sql.text();
    let of = dialect::table(sql)?;
    let (table, named) = TABLES.into_iter().find(|(table, _)| *table == of)?;
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(table);
    for part in write.args.get(dialect::names_row(sql, named)?)? {
        let Value::Text(part) = part else { return None };
        add(part);
    }
    hash.finalize().first_chunk().map(|bytes| i64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Must, Sql};

    const LOOK: &str = "SELECT 1 FROM clients WHERE realm = ? AND id = ? AND disabled_at IS NULL";
    const SAVE: &str = "UPDATE clients SET data = ?, life = COALESCE(?, life) WHERE realm = ? AND id = ? AND epoch < ?";
    const REMOVE: &str = "DELETE FROM clients WHERE realm = ? AND id = ?";
    const YOUNGER: &str = "SELECT 1 FROM realms WHERE id = ? AND (fenced IS NULL OR fenced <= ?)";
    const RAISE: &str = "UPDATE realms SET epoch = ?, fenced = ? WHERE id = ? AND epoch = ?";

    fn about(sql: &'static str, id: &str) -> Write {
        let named = TABLES.iter().find_map(|(_, named)| dialect::names_row(sql, named)).unwrap_or(0..2);
        let mut args = vec![Value::Int(1); sql.matches('?').count()];
        let names = ["main", id].map(|text| Value::Text(text.into()));
        args.splice(named.clone(), names.into_iter().skip(2 - named.len()));
        Write { sql: Sql::fixed(sql), args, must: Must::Any }
    }

    fn modes(writes: &[Write]) -> Vec<bool> {
        of(writes).into_values().collect()
    }

    #[test]
    fn who_looks_shares_and_who_changes_is_alone() {
        for (sql, alone) in [(LOOK, false), (SAVE, true), (REMOVE, true), (YOUNGER, false), (RAISE, true)] {
            assert_eq!(modes(&[about(sql, "shop")]), [alone], "{sql}");
        }
        for [look, change] in [[LOOK, SAVE], [YOUNGER, RAISE]].map(|pair| pair.map(|sql| about(sql, "shop"))) {
            assert!(covers(&look) && !covers(&change));
            assert_eq!(modes(&[look.clone(), change, look]), [true]);
        }
    }

    #[test]
    fn each_row_has_a_lock_of_its_own_whatever_is_said_of_it() {
        let one = |sql, id| of(&[about(sql, id)]).into_keys().next().unwrap();
        assert_eq!(one(LOOK, "shop"), one(SAVE, "shop"));
        assert_eq!(one(LOOK, "shop"), one(REMOVE, "shop"));
        assert_ne!(one(LOOK, "shop"), one(LOOK, "shops"));
        assert_eq!(one(YOUNGER, "main"), one(RAISE, "main"));
        assert_ne!(one(YOUNGER, "main"), one(YOUNGER, "other"));
        assert_ne!(one(YOUNGER, "main"), one(LOOK, "main"));
        let (here, there) = (of(&[about(LOOK, "a"), about(SAVE, "b")]), of(&[about(SAVE, "b"), about(LOOK, "a")]));
        assert_eq!(here, there);
    }

    #[test]
    fn other_tables_and_new_rows_have_none() {
        let insert = "INSERT INTO clients (realm, id) VALUES (?, ?)";
        let other = "UPDATE users SET data = ? WHERE realm = ? AND id = ?";
        for sql in [insert, other, "INSERT INTO realms (id, epoch) VALUES (?, ?)"] {
            assert_eq!(modes(&[about(sql, "shop")]), Vec::<bool>::new(), "{sql}");
        }
    }

    #[test]
    fn who_looks_at_rows_that_are_not_named_locks_them() {
        let sql = Sql::fixed("SELECT 1 FROM clients WHERE realm = ?");
        let look = Write { sql, args: vec![Value::Text("main".into())], must: Must::Find(1) };
        assert_eq!((modes(std::slice::from_ref(&look)), covers(&look)), (vec![], false));
    }
}
