//! Values as SQLite binds and returns them.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};

use crate::engine::{Row, Value};

/// Lends a value to a statement without a copy.
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

/// Gives a statement its arguments: exactly as many as it has placeholders, and no text with NUL, which other engines
/// cannot keep.
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

/// Takes the row that a statement stands on.
pub(super) fn take(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Row> {
    (0..columns).map(|at| value(at, row.get_ref(at)?)).collect()
}

fn value(at: usize, lent: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match lent {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(_) => Value::Text(lent.as_str()?.to_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Real(_) => {
            return Err(rusqlite::Error::InvalidColumnType(at, "a number with a fraction".into(), lent.data_type()));
        }
    })
}
