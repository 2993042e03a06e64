//! What a database of an engine can store of a row, given this program's tables there.

use super::catalogue::{Kind, Table};
use crate::dialect::Dialect;
use crate::dialect::mysql::{self, LONGEST_KEY};
use crate::engine::{Row, Value};
use crate::migrations::MIGRATIONS;

/// The longest index entry of PostgreSQL, in bytes, and the overhead of each value in it.
const LONGEST_ENTRY: usize = 2704;
const BESIDE: usize = 8;

/// The overhead of a single-row statement in a packet, in bytes: an upper bound.
const STATEMENT: usize = 4096;

/// The limits for a row of one table.
pub(super) struct Limits<'a> {
    table: &'a Table,
    to: Dialect,
    /// The table's keys and indexes, each as the indexes of its columns.
    keys: Vec<Vec<usize>>,
    /// The longest packet that the server accepts, in bytes.
    packet: Option<u64>,
}

impl<'a> Limits<'a> {
    /// The limits in a database of this engine.
    pub(super) fn new(table: &'a Table, to: Dialect, packet: Option<u64>) -> Self {
        let place = |name: &&str| table.columns.iter().position(|column| column.name == *name);
        let made = mysql::keys(MIGRATIONS.iter().flat_map(|migration| migration.steps));
        let ours = made.iter().filter(|(name, _)| *name == table.name);
        let keys = ours.map(|(_, columns)| columns.iter().filter_map(place).collect()).collect();
        Limits { table, to, keys, packet }
    }

    /// What of a row would not be kept: the column, and the reason. Never the value, which may be a secret.
    pub(super) fn against(&self, row: &Row) -> Vec<(String, String)> {
        let columns = self.table.columns.iter().zip(row).enumerate();
        let one = |(at, (column, value)): (usize, (&super::catalogue::Column, &Value))| {
            Some((column.name.clone(), self.value(at, column.kind, value)?))
        };
        let found: Vec<_> = columns.filter_map(one).collect();
        if found.is_empty() { self.whole(row).into_iter().collect() } else { found }
    }

    fn value(&self, at: usize, kind: Kind, value: &Value) -> Option<String> {
        match (kind, value) {
            (_, Value::Null) | (Kind::Int, Value::Int(_)) => None,
            (Kind::Text, Value::Text(text)) if text.as_bytes().contains(&0) => {
                Some("has a NUL character, which text cannot hold".to_owned())
            }
            (Kind::Text, Value::Text(text)) if self.is_short(at) && text.len() > LONGEST_KEY => {
                too_long(text.chars().count(), "characters")
            }
            (Kind::Text, Value::Text(_)) => None,
            (Kind::Blob, Value::Blob(bytes)) if self.is_short(at) => too_long(bytes.len(), "bytes"),
            (Kind::Blob, Value::Blob(_)) => None,
            (Kind::Int, _) => Some("is not a whole number from -2^63 to 2^63 - 1".to_owned()),
            (Kind::Text, _) => Some("is not UTF-8 text".to_owned()),
            (Kind::Blob, _) => Some("is text or a number instead of bytes".to_owned()),
        }
    }

    /// Whether a column has room only for what fits into a key.
    fn is_short(&self, at: usize) -> bool {
        self.to == Dialect::Mysql && self.keys.iter().any(|key| key.contains(&at))
    }

    /// What is wrong with the row as a whole, if each of its values is fine.
    fn whole(&self, row: &Row) -> Option<(String, String)> {
        let weight = |at: &usize| BESIDE + super::page::weight_of(&row[*at]);
        match self.to {
            Dialect::Sqlite => None,
            Dialect::Postgres => self.keys.iter().find_map(|key| {
                let entry = BESIDE + key.iter().map(weight).sum::<usize>();
                let names: Vec<_> = key.iter().map(|at| self.table.columns[*at].name.as_str()).collect();
                let why = format!("make an index entry of {entry} bytes: PostgreSQL allows at most {LONGEST_ENTRY}");
                (entry > LONGEST_ENTRY).then(|| (names.join(", "), why))
            }),
            Dialect::Mysql => {
                let sent = STATEMENT + (0..row.len()).map(|at| weight(&at)).sum::<usize>();
                let most = self.packet.filter(|most| sent as u64 > *most)?;
                let why = format!(
                    "need {sent} bytes in one packet, and max_allowed_packet of the target is {most}: have it raised \
                     there"
                );
                Some(("all columns".to_owned(), why))
            }
        }
    }
}

fn too_long(length: usize, what: &str) -> Option<String> {
    let why = || format!("has {length} {what}: a key of MySQL or MariaDB holds at most {LONGEST_KEY}");
    (length > LONGEST_KEY).then(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moving::catalogue::Column;

    fn users() -> Table {
        let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
        let columns = [("realm", Kind::Text), ("id", Kind::Text), ("profile", Kind::Text), ("created", Kind::Int)];
        Table { name: "users".to_owned(), columns: columns.map(column).to_vec(), key: vec![0, 1] }
    }

    fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn what_each_engine_does_not_keep_is_named() {
        let table = users();
        let row = |id: Value, profile: Value| vec![text("main"), id, profile, Value::Int(i64::MIN)];
        let against = |to, row: Row| {
            let found = Limits::new(&table, to, Some(1 << 20)).against(&row);
            found.into_iter().map(|(column, why)| format!("{column} {why}")).collect::<Vec<_>>().join("; ")
        };
        let all = [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql];
        let of = |id: Value, profile: Value| all.map(|to| against(to, row(id.clone(), profile.clone())));
        let nothing = String::new;
        assert_eq!(of(text("a"), Value::Null), [nothing(), nothing(), nothing()]);
        assert_eq!(of(text("é".repeat(255)), text("x".repeat(100_000))), [nothing(), nothing(), nothing()]);
        let long = "id has 256 characters: a key of MySQL or MariaDB holds at most 255";
        assert_eq!(of(text("é".repeat(256)), Value::Null), [nothing(), nothing(), long.to_owned()]);
        let [_, postgres, _] = of(text("x".repeat(2700)), Value::Null);
        assert!(postgres.starts_with("realm, id make an index entry of 2728 bytes"), "{postgres}");
        let [_, _, mysql] = of(text("a"), text("x".repeat(1 << 20)));
        assert!(mysql.contains("max_allowed_packet of the target is 1048576"), "{mysql}");
        let nul = "profile has a NUL character, which text cannot hold".to_owned();
        assert_eq!(of(text("a"), text("a\0b")), [nul.clone(), nul.clone(), nul]);
    }

    #[test]
    fn a_value_of_another_type_fits_nowhere_and_is_not_repeated() {
        let table = users();
        let row = vec![Value::Blob(b"secret".to_vec()), Value::Int(7), text("x"), text("secret")];
        for to in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
            let found = Limits::new(&table, to, None).against(&row);
            let columns: Vec<_> = found.iter().map(|(column, _)| column.as_str()).collect();
            assert_eq!(columns, ["realm", "id", "created"]);
            assert!(found.iter().all(|(_, why)| !why.contains("secret")), "{found:?}");
        }
    }
}
