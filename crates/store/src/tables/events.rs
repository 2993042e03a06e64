//! The audit log.

use super::row::{Columns, every};
use super::{Question, read, values, write};
use crate::dialect::{LONGEST_LIST, list};
use crate::engine::{Must, Read, Row, Sql, Value, Write};
use rules::events::Event;
use rules::id::RealmId;

/// A line of the audit log.
pub use rules::audit::Line;

/// Selects what [`line`] takes apart.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, at, kind, user_id, client_id, session_id, address, request, detail, block FROM events WHERE realm = ? ",
            $rest
        )
    };
}
pub(super) use select;

/// Lines by the time at which they were written, sealed or not: a window of the whole log.
pub struct Window<'a> {
    /// Only lines with greater ids.
    pub after: &'a str,
    /// Only lines with smaller ids; empty for no limit.
    pub before: &'a str,
    /// Whether the newest come first.
    pub newest_first: bool,
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Window<'_> {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        // Sorts after every id.
        let before = if self.before.is_empty() { "~" } else { self.before };
        let sql = match self.newest_first {
            true => select!("AND id > ? AND id < ? ORDER BY id DESC LIMIT ?"),
            false => select!("AND id > ? AND id < ? ORDER BY id LIMIT ?"),
        };
        read(sql, values![realm, self.after, before, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// Statements about these lines: `sql` with a condition that selects the lines, the values of both, and the number of
/// lines that each statement is about.
///
/// Ids sort by time, and these are close in time. A server with few statistics on a young table would scan the whole
/// table for a list of ids, so the condition also gives the range.
pub(super) fn about(sql: &'static str, args: Vec<Value>, ids: &[String]) -> Vec<(Sql, Vec<Value>, usize)> {
    listed((sql, " AND id >= ? AND id <= ? AND id IN "), &args, ids)
}

/// The same about rows that another column identifies.
pub(super) fn listed(
    (sql, among): (&'static str, &'static str),
    args: &[Value],
    ids: &[String],
) -> Vec<(Sql, Vec<Value>, usize)> {
    let statement = |ids: &[String]| {
        let (first, last) = (ids.iter().min()?, ids.iter().max()?);
        let (piece, listed) = list(ids.iter().map(|id| Value::Text(id.clone())).collect())?;
        let args = args.iter().cloned().chain(values![first.as_str(), last.as_str()]).chain(listed);
        Some((Sql::joined(&[sql, among, piece]), args.collect(), ids.len()))
    };
    ids.chunks(LONGEST_LIST).filter_map(statement).collect()
}

/// Reads a row that [`select`] returns.
pub(super) fn line(row: &mut Columns) -> Option<Line> {
    Some(Line {
        id: row.any_text()?,
        at: row.any_time()?,
        kind: row.any_text()?,
        user: row.any_maybe_text()?,
        client: row.any_maybe_text()?,
        session: row.any_maybe_text()?,
        address: row.any_maybe_text()?,
        request: row.any_maybe_text()?,
        detail: row.any_text()?,
        block: row.any_int()?,
    })
}

pub(super) fn record(realm: &RealmId, id: String, event: &Event) -> Write {
    let sql = "INSERT INTO events (realm, id, at, kind, user_id, client_id, session_id, address, request, detail) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let detail = if event.detail.is_empty() { "{}".to_owned() } else { super::row::to_json(&event.detail) };
    let row = values![
        realm,
        id,
        event.at,
        event.kind.name(),
        event.user.as_ref(),
        event.client.as_ref(),
        event.session.as_ref(),
        event.address.clone(),
        event.request.clone(),
        detail
    ];
    write(sql, row, Must::Touch(1))
}

/// Like [`record`], unless a line with that id exists. Stores only the event's time, kind and detail.
pub(super) fn record_unless_there(realm: &RealmId, id: &str, event: &Event) -> Write {
    let sql = "INSERT INTO events (realm, id, kind, detail, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    let detail = super::row::to_json(&event.detail);
    write(sql, values![realm, id, event.kind.name(), detail, event.at], Must::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_looked_for_where_they_are() {
        // Red without the bounds in `about`.
        let ids = ["5", "3", "9"].map(str::to_owned);
        let text = |text: &str| Value::Text(text.to_owned());
        let statements = about("SELECT id FROM events WHERE realm = ?", values![&RealmId::from("main")], &ids);
        let [(_, args, 3)] = statements.as_slice() else { panic!("{statements:?}") };
        assert_eq!(args[..3], [text("main"), text("3"), text("9")]);
    }
}
