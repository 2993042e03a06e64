//! Converts values to and from the form that these servers use.

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Row as Found, Value as Sent};

use crate::engine::{Row, Value};

/// The character set number of bytes that are not text.
const BINARY: u16 = 63;

/// Returns why these values cannot be sent with a statement that takes `wanted` of them.
pub(super) fn refused(args: &[Value], wanted: usize) -> Option<String> {
    if args.len() != wanted {
        return Some(format!("a statement takes {wanted} values and was given {}", args.len()));
    }
    let nul = |value: &Value| matches!(value, Value::Text(text) if text.as_bytes().contains(&0));
    args.iter().any(nul).then(|| "a text with NUL".to_owned())
}

/// Converts `args` to the form that is sent.
pub(super) fn sent(args: &[Value]) -> Vec<Sent> {
    let one = |value: &Value| match value {
        Value::Null => Sent::NULL,
        Value::Int(number) => Sent::Int(*number),
        Value::Text(text) => Sent::Bytes(text.as_bytes().to_vec()),
        Value::Blob(bytes) => Sent::Bytes(bytes.clone()),
    };
    args.iter().map(one).collect()
}

/// Converts a row that was found.
pub(super) fn taken(row: Found) -> Result<Row, String> {
    let columns = row.columns();
    columns.iter().zip(row.unwrap()).map(|(column, value)| one(column, value)).collect()
}

fn one(column: &Column, value: Sent) -> Result<Value, String> {
    let kind = column.column_type();
    match value {
        Sent::NULL => Ok(Value::Null),
        Sent::Int(number) => Ok(Value::Int(number)),
        Sent::UInt(number) => number.try_into().map(Value::Int).map_err(|_| "a number over 63 bits".to_owned()),
        Sent::Bytes(bytes) if !is_string(kind) => Err(format!("a column of the kind {kind:?}, {} bytes", bytes.len())),
        Sent::Bytes(bytes) if column.character_set() == BINARY => Ok(Value::Blob(bytes)),
        Sent::Bytes(bytes) => String::from_utf8(bytes).map(Value::Text).map_err(|_| "a text is not UTF-8".to_owned()),
        _ => Err(format!("a column of the kind {kind:?}")),
    }
}

fn is_string(kind: ColumnType) -> bool {
    use ColumnType::{
        MYSQL_TYPE_BLOB, MYSQL_TYPE_LONG_BLOB, MYSQL_TYPE_MEDIUM_BLOB, MYSQL_TYPE_STRING, MYSQL_TYPE_TINY_BLOB,
        MYSQL_TYPE_VAR_STRING, MYSQL_TYPE_VARCHAR,
    };
    matches!(
        kind,
        MYSQL_TYPE_BLOB
            | MYSQL_TYPE_LONG_BLOB
            | MYSQL_TYPE_MEDIUM_BLOB
            | MYSQL_TYPE_TINY_BLOB
            | MYSQL_TYPE_STRING
            | MYSQL_TYPE_VAR_STRING
            | MYSQL_TYPE_VARCHAR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType, set: u16) -> Column {
        Column::new(kind).with_character_set(set)
    }

    #[test]
    fn text_and_bytes_are_told_apart_by_their_column() {
        let bytes = || Sent::Bytes(b"abc".to_vec());
        for kind in [ColumnType::MYSQL_TYPE_VAR_STRING, ColumnType::MYSQL_TYPE_BLOB, ColumnType::MYSQL_TYPE_STRING] {
            assert_eq!(one(&column(kind, 255), bytes()), Ok(Value::Text("abc".to_owned())));
            assert_eq!(one(&column(kind, BINARY), bytes()), Ok(Value::Blob(b"abc".to_vec())));
            assert_eq!(one(&column(kind, BINARY), Sent::NULL), Ok(Value::Null));
        }
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        let long = column(ColumnType::MYSQL_TYPE_LONGLONG, BINARY);
        assert_eq!(one(&long, Sent::UInt(7)), Ok(Value::Int(7)));
        assert!(one(&long, Sent::UInt(1 << 63)).is_err());
        assert!(one(&column(ColumnType::MYSQL_TYPE_DOUBLE, BINARY), Sent::Double(0.5)).is_err());
        assert!(one(&column(ColumnType::MYSQL_TYPE_NEWDECIMAL, BINARY), Sent::Bytes(b"1".to_vec())).is_err());
        assert!(one(&column(ColumnType::MYSQL_TYPE_STRING, 255), Sent::Bytes(vec![0xff])).is_err());
    }

    #[test]
    fn values_are_counted_before_they_are_sent() {
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(refused(&[text("a"), Value::Null], 2), None);
        assert!(refused(&[text("a")], 2).is_some());
        assert!(refused(&[text("a\0")], 1).is_some());
        assert_eq!(refused(&[Value::Blob(vec![0])], 1), None);
    }
}
