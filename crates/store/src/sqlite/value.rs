//! Converts values to and from the form that SQLite uses.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};

use crate::engine::{Row, Value};
use crate::tables::row::ALIEN;

/// Binds a value to a statement without a copy.
struct Lent<'a>(&'a Value);

impl ToSql for Lent<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Binds a statement's arguments: exactly as many as it has placeholders, and no text with NUL, which other engines
/// cannot store.
pub(super) fn bind(statement: &mut Statement<'_>, args: &[Value]) -> rusqlite::Result<()> {
    let wanted = statement.parameter_count();
    if args.len() != wanted {
        return Err(rusqlite::Error::InvalidParameterCount(args.len(), wanted));
    }
    for (at, value) in args.iter().enumerate() {
        if matches!(value, Value::Text(text) if text.as_bytes().contains(&0)) {
            return Err(rusqlite::Error::ToSqlConversionFailure("a text with NUL".into()));
        }
        statement.raw_bind_parameter(at + 1, Lent(value))?;
    }
    Ok(())
}

/// Reads the current row of a statement.
pub(super) fn take(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Row> {
    (0..columns).map(|at| Ok(value(row.get_ref(at)?))).collect()
}

/// Converts a value, whatever somebody wrote there by hand. This program writes no fractions, and no text that is not
/// UTF-8. Such a value is returned as one of another type, so that the reader of the row finds that it is none of ours,
/// and can name the table. An error of the whole answer would name no row and hide all others.
fn value(lent: ValueRef<'_>) -> Value {
    match lent {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Real(number) => Value::Text(format!("{ALIEN}{number:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::row::Columns;
    use rules::Time;

    #[test]
    fn a_number_with_a_fraction_is_of_another_type_wherever_it_stands() {
        // Red with an error in `value`: a 1.5 written by hand to audit_blocks kept `audit verify` from every block.
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        let row = || {
            let take_all = |row: &rusqlite::Row<'_>| take(row, 3);
            Columns::of(conn.query_row("SELECT 1.5, CAST(2 AS real), 7", [], take_all).unwrap())
        };
        assert_eq!((row().int(), row().time(), row().blob()), (None, None, None), "no row of ours has it");
        let mut any = row();
        assert_eq!((any.any_int(), any.any_time()), (Some(-1), Some(Time(0))), "nothing that was sealed is so");
        assert_eq!(any.int(), Some(7), "what stands beside it is read");
        let mut any = row();
        assert_eq!(any.any_text(), Some(format!("{ALIEN}1.5")));
        assert_eq!(any.any_text(), Some(format!("{ALIEN}2.0")), "not what the text 2 is");
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_of_another_type_wherever_it_stands() {
        // Red with an error in `value`: one byte in one line of the log kept `audit verify` from every other line.
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        for bytes in ["ff", "61ff62", "c3", "eda080", "f8888080", "00ff"] {
            let row = || {
                let sql = format!("SELECT CAST(x'{bytes}' AS text), CAST(x'{bytes}' AS text), 'a' || char(233)");
                Columns::of(conn.query_row(&sql, [], |row| take(row, 3)).unwrap())
            };
            assert_eq!((row().text(), row().maybe_text(), row().int()), (None, None, None), "{bytes}");
            let mut any = row();
            assert!(any.any_text().unwrap().starts_with(ALIEN), "{bytes}");
            assert!(any.any_maybe_text().unwrap().unwrap().starts_with(ALIEN), "{bytes}");
            assert_eq!(any.text(), Some("aé".to_owned()), "what stands beside it is read");
            assert_eq!((row().any_int(), row().any_time()), (Some(-1), Some(Time(0))), "{bytes}");
        }
    }
}
