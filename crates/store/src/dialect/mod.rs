//! The SQL that every engine understands, and what has to be said differently per engine.
//!
//! Statements are written once, in the subset that [`check`] describes, with `?` for each value. SQLite runs that text
//! as it is; the other engines translate it (`$1` for `?`, their own type names, nothing for `WITHOUT ROWID`, a locking
//! clause for the reads of a batch).

pub mod moving;
pub mod mysql;
pub mod postgres;

use crate::engine::Value;

/// The dialect of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

impl Dialect {
    /// The engine's own check of a table: a row for each thing that is wrong, up to a number, or one that says `ok`. It
    /// compares each row with its entry in every index. Whoever can write to a file of SQLite can take an index out of
    /// the schema, change rows, and put it back: then what is read by that index is not what is stored.
    ///
    /// `None` for a server, which lets nobody write to a table past its indexes.
    pub(crate) fn soundness(self) -> Option<&'static str> {
        match self {
            Dialect::Sqlite => Some("SELECT integrity_check FROM pragma_integrity_check(?) LIMIT ?"),
            Dialect::Postgres | Dialect::Mysql => None,
        }
    }
}

/// The lengths that a list in a statement can have. Few lengths mean few statements to keep prepared.
const LISTS: [(usize, &str); 5] = [
    (1, "(?)"),
    (4, "(?, ?, ?, ?)"),
    (16, "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    (
        32,
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
          ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    (
        64,
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
          ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
          ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
          ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
];

/// The longest list in one statement; longer lists are read in chunks.
pub const LONGEST_LIST: usize = 64;

/// Returns the piece that follows `IN` for these values, and the values padded to its length with the last one (a value
/// that occurs twice in a list finds its row only once). An empty list becomes one NULL, which equals nothing.
///
/// Returns `None` for more than [`LONGEST_LIST`] values.
pub fn list(mut values: Vec<Value>) -> Option<(&'static str, Vec<Value>)> {
    let &(length, piece) = LISTS.iter().find(|(length, _)| values.len() <= *length)?;
    let last = values.last().cloned().unwrap_or(Value::Null);
    values.resize(length, last);
    Some((piece, values))
}

/// Why a statement would fail, or mean something else, on another engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPortable(pub &'static str);

/// Words that other engines do not know or understand differently. Each is matched as a whole word.
const WORDS: [(&str, &str); 13] = [
    ("AUTOINCREMENT", "ids are ours"),
    ("COLLATE", "text compares as bytes, and the engine sees to it"),
    ("DEFERRABLE", "foreign keys hold at every statement"),
    ("GLOB", "only SQLite has it"),
    ("ILIKE", "only PostgreSQL has it"),
    ("LIKE", "it ignores case on some engines"),
    ("OFFSET", "pages go by keyset"),
    ("PRAGMA", "only SQLite has it"),
    ("REPLACE", "it deletes rows on the way"),
    ("RETURNING", "MySQL has none: a batch answers with counts"),
    ("ROWID", "rows are known by our own keys"),
    ("STRICT", "only SQLite has it"),
    ("DO UPDATE", "no guarded upsert: insert if absent, then a guarded UPDATE"),
];

/// Checks that a statement keeps to the subset that every engine understands. Tests run it on every statement.
pub fn check(sql: &str) -> Result<(), NotPortable> {
    let sql = without_constants(sql);
    if sql.contains(['\'', '"', '`', '[']) {
        return Err(NotPortable("values are arguments, and no name needs quotes"));
    }
    if sql.contains([';', '$', ':', '@']) || sql.contains("--") || sql.contains("/*") {
        return Err(NotPortable("one statement, placeholders `?`, no comments"));
    }
    let numbered = |pair: &[u8]| pair[0] == b'?' && pair[1].is_ascii_digit();
    if sql.as_bytes().windows(2).any(numbered) {
        return Err(NotPortable("placeholders are in order, not numbered"));
    }
    let spaced: String = sql
        .to_ascii_uppercase()
        .replace("WITHOUT ROWID", "")
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .flat_map(|word| [" ", word])
        .chain([" "])
        .collect();
    match WORDS.iter().find(|(word, _)| spaced.contains(&format!(" {word} "))) {
        Some((_, why)) => Err(NotPortable(why)),
        None => Ok(()),
    }
}

/// Replaces the constants that mean the same on every engine: empty ones and words of lowercase letters. A pattern
/// without letters does too, since it has no case to ignore.
fn without_constants(sql: &str) -> String {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    let pattern = |text: &str| !text.is_empty() && text.bytes().all(|byte| b"%@".contains(&byte));
    let mut kept = String::new();
    let mut rest = sql;
    while let Some((before, (text, after))) =
        rest.split_once('\'').and_then(|(before, rest)| Some((before, rest.split_once('\'')?)))
    {
        match before.strip_suffix(" LIKE ") {
            // The constant contains a quote.
            _ if after.starts_with('\'') => break,
            Some(before) if pattern(text) => kept.extend([before, " = ?"]),
            _ if plain(text) => kept.extend([before, "?"]),
            _ => break,
        }
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_padded_to_the_next_size() {
        let ints = |many: i64| (0..many).map(Value::Int).collect::<Vec<_>>();
        for many in 0..=64 {
            let (piece, values) = list(ints(many)).unwrap();
            assert_eq!(piece.matches('?').count(), values.len(), "{many}");
            assert!(values.len() >= many as usize);
            assert!(values.starts_with(&ints(many)));
        }
        assert_eq!(list(vec![]), Some(("(?)", vec![Value::Null])));
        assert_eq!(list(ints(3)).unwrap().1[3], Value::Int(2));
        assert_eq!(list(ints(LONGEST_LIST as i64 + 1)), None);
    }

    #[test]
    fn the_subset_refuses_what_only_some_engines_understand() {
        for good in [
            "SELECT a, b FROM t WHERE a = ? AND b IN (?, ?) ORDER BY a LIMIT ?",
            "INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING",
            "CREATE TABLE t (a text NOT NULL PRIMARY KEY, replaced bigint) WITHOUT ROWID",
            "SELECT offset_ms FROM t",
            "SELECT a FROM t WHERE a = 'x' AND COALESCE(b, '') <> ?",
            "SELECT a FROM t WHERE a LIKE '%@%'",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "SELECT a FROM t WHERE a = 'X'",
            "SELECT a FROM t WHERE a = 'x''y'",
            "SELECT a FROM t WHERE a = 'x\\'",
            "SELECT a FROM t WHERE a LIKE 'x%'",
            "SELECT a FROM t WHERE a = 'x' AND b = \"y\"",
            "SELECT a FROM t WHERE a = ?1",
            "SELECT a FROM t WHERE a = $1",
            "SELECT a FROM t LIMIT ? OFFSET ?",
            "SELECT a FROM t WHERE a LIKE ?",
            "INSERT OR REPLACE INTO t (a) VALUES (?)",
            "INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO\n UPDATE SET a = ?",
            "DELETE FROM t WHERE a = ? RETURNING a",
            "SELECT rowid FROM t",
            "SELECT 1; SELECT 2",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
