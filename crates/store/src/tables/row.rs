//! Conversions between rows and facts.

use crate::engine::{Row, Value};
use rules::{Handle, Time};

/// A type that a column can hold.
pub(crate) trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for i64 {
    fn into_value(self) -> Value {
        Value::Int(self)
    }
}
impl IntoValue for bool {
    fn into_value(self) -> Value {
        Value::Int(self.into())
    }
}
impl IntoValue for Time {
    fn into_value(self) -> Value {
        Value::Int(self.0)
    }
}
impl IntoValue for String {
    fn into_value(self) -> Value {
        Value::Text(self)
    }
}
impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::Text(self.to_owned())
    }
}
impl IntoValue for Vec<u8> {
    fn into_value(self) -> Value {
        Value::Blob(self)
    }
}
impl IntoValue for Handle {
    fn into_value(self) -> Value {
        Value::Blob(self.0.to_vec())
    }
}
impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, T::into_value)
    }
}

macro_rules! ids {
    ($($name:ident),+) => {$(
        impl IntoValue for &rules::id::$name {
            fn into_value(self) -> Value {
                Value::Text(self.0.clone())
            }
        }
    )+};
}
ids!(RealmId, UserId, ClientId, SessionId, FamilyId, Kid, GroupId, LifeId);

/// The first character of a text that was read from a value of another type. SQLite keeps values of any type in any
/// column. The audit log is read whatever was written to it by hand, but none of that may be taken for what was sealed.
pub(crate) const ALIEN: char = char::REPLACEMENT_CHARACTER;

/// Takes a row apart, column by column. Each `None` means that this program did not write the row.
pub struct Columns(std::vec::IntoIter<Value>);

impl Columns {
    pub(crate) fn of(row: Row) -> Self {
        Columns(row.into_iter())
    }
    pub(crate) fn text(&mut self) -> Option<String> {
        match self.0.next()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    pub(crate) fn maybe_text(&mut self) -> Option<Option<String>> {
        match self.0.next()? {
            Value::Text(text) => Some(Some(text)),
            Value::Null => Some(None),
            _ => None,
        }
    }
    pub(crate) fn int(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(int) => Some(int),
            _ => None,
        }
    }
    pub(crate) fn time(&mut self) -> Option<Time> {
        self.int().map(Time)
    }
    pub(crate) fn maybe_time(&mut self) -> Option<Option<Time>> {
        match self.0.next()? {
            Value::Int(int) => Some(Some(Time(int))),
            Value::Null => Some(None),
            _ => None,
        }
    }
    pub(crate) fn blob(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Value::Blob(blob) => Some(blob),
            _ => None,
        }
    }
    pub(crate) fn maybe_blob(&mut self) -> Option<Option<Vec<u8>>> {
        match self.0.next()? {
            Value::Blob(blob) => Some(Some(blob)),
            Value::Null => Some(None),
            _ => None,
        }
    }
    /// Reads a text, whatever the column holds: see [`ALIEN`].
    pub(crate) fn any_text(&mut self) -> Option<String> {
        Some(self.any_maybe_text()?.unwrap_or_else(|| ALIEN.to_string()))
    }
    /// Like `any_text`, but the column may be NULL.
    pub(crate) fn any_maybe_text(&mut self) -> Option<Option<String>> {
        Some(match self.0.next()? {
            Value::Text(text) => Some(text),
            Value::Null => None,
            Value::Int(int) => Some(format!("{ALIEN}{int}")),
            Value::Blob(bytes) => Some(format!("{ALIEN}{}", String::from_utf8_lossy(&bytes))),
        })
    }
    /// Reads a number, whatever the column holds: -1, which no row has, for anything but a number.
    pub(crate) fn any_int(&mut self) -> Option<i64> {
        Some(if let Value::Int(int) = self.0.next()? { int } else { -1 })
    }
    /// Reads a time, whatever the column holds: 0 for anything but a number.
    pub(crate) fn any_time(&mut self) -> Option<Time> {
        Some(if let Value::Int(int) = self.0.next()? { Time(int) } else { Time(0) })
    }
    /// Reads bytes, whatever the column holds.
    pub(crate) fn any_blob(&mut self) -> Option<Vec<u8>> {
        Some(match self.0.next()? {
            Value::Blob(bytes) => bytes,
            Value::Text(text) => [ALIEN.to_string().as_bytes(), text.as_bytes()].concat(),
            Value::Int(_) | Value::Null => Vec::new(),
        })
    }
    pub(crate) fn handle(&mut self) -> Option<Handle> {
        Handle::from_slice(&self.blob()?)
    }
    pub(crate) fn maybe_handle(&mut self) -> Option<Option<Handle>> {
        match self.maybe_blob()? {
            Some(bytes) => Handle::from_slice(&bytes).map(Some),
            None => Some(None),
        }
    }
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.int().map(|int| int != 0)
    }
    /// Whether the next column is NULL, without taking it: an outer join found nothing.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.0.as_slice().first(), None | Some(Value::Null))
    }
    /// Skips `count` columns.
    pub(crate) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.0.next();
        }
    }
}

/// Turns at most one row into a fact.
pub(crate) fn one<T>(rows: Vec<Row>, fact: impl FnOnce(&mut Columns) -> Option<T>) -> Option<Option<T>> {
    match rows.into_iter().next() {
        None => Some(None),
        Some(row) => fact(&mut Columns::of(row)).map(Some),
    }
}

/// Turns every row into a fact.
pub(crate) fn every<T>(rows: Vec<Row>, fact: impl Fn(&mut Columns) -> Option<T>) -> Option<Vec<T>> {
    rows.into_iter().map(|row| fact(&mut Columns::of(row))).collect()
}

/// Parses JSON that this program wrote.
pub(crate) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Writes JSON for a column.
pub(crate) fn to_json<T: serde::Serialize>(fact: &T) -> String {
    serde_json::to_string(fact).unwrap_or_else(|_| "null".into())
}
