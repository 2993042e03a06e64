//! The audit log.

use super::row::every;
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::events::Event;
use rules::id::RealmId;
use rules::time::Time;

/// A line of the audit log, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its id; later lines have greater ones, to the millisecond.
    pub id: String,
    /// When.
    pub at: Time,
    /// What happened.
    pub kind: String,
    /// To whom.
    pub user: Option<String>,
    /// Through which application.
    pub client: Option<String>,
    /// In which session.
    pub session: Option<String>,
    /// From where.
    pub address: Option<String>,
    /// Anything else, as a JSON object.
    pub detail: String,
}

/// The newest lines before `before` (empty: from the newest on).
pub struct Before<'a> {
    /// Where to go on.
    pub before: &'a str,
    /// How many.
    pub limit: i64,
}

impl Question for Before<'_> {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT id, at, kind, user_id, client_id, session_id, address, detail FROM events \
                   WHERE realm = ? AND id < ? ORDER BY id DESC LIMIT ?";
        let before = if self.before.is_empty() { "~" } else { self.before };
        read(sql, values![realm, before, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| {
            Some(Line {
                id: row.text()?,
                at: row.time()?,
                kind: row.text()?,
                user: row.maybe_text()?,
                client: row.maybe_text()?,
                session: row.maybe_text()?,
                address: row.maybe_text()?,
                detail: row.text()?,
            })
        })
    }
}

pub(super) fn record(realm: &RealmId, id: String, event: &Event) -> Write {
    let sql = "INSERT INTO events (realm, id, at, kind, user_id, client_id, session_id, address, detail) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
        detail
    ];
    write(sql, row, Must::Touch(1))
}
