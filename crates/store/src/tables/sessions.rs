//! Sessions.

use super::consents::maybe_consent;
use super::realms::OnRealm;
use super::row::{Columns, every, json, one, to_json};
use super::users::{maybe_user, user_columns};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::{ClientId, RealmId, SessionId, UserId};
use rules::login::session::Session;
use rules::oauth::consent::Consent;
use rules::people::User;
use rules::secret::Handle;
use rules::time::Time;

/// The columns of a session, under the alias `s`.
macro_rules! session_columns {
    () => {
        "s.id, s.handle, s.user_id, s.auth_time, s.amr, s.created, s.last_seen, s.expires, s.agent, s.address, s.ended_at"
    };
}
pub(super) use session_columns;

pub(super) fn session(row: &mut Columns) -> Option<Session> {
    Some(Session {
        id: SessionId(row.text()?),
        handle: row.handle()?,
        user: UserId(row.text()?),
        auth_time: row.time()?,
        amr: json(&row.text()?)?,
        created: row.time()?,
        last_seen: row.time()?,
        expires: row.time()?,
        agent: row.text()?,
        address: row.text()?,
        ended_at: row.maybe_time()?,
    })
}

/// A session that an outer join may not have found.
pub(super) fn maybe_session(row: &mut Columns) -> Option<Option<Session>> {
    if row.is_absent() {
        row.skip(11);
        return Some(None);
    }
    session(row).map(Some)
}

macro_rules! with_user {
    ($fence:literal) => {
        concat!(
            "SELECT ",
            session_columns!(),
            ", ",
            user_columns!(),
            " FROM sessions s JOIN realms r ON r.id = s.realm JOIN users u ON u.realm = s.realm AND u.id = s.user_id \
             WHERE s.realm = ? AND s.id = ?",
            $fence
        )
    };
}

/// A session and its user, for using it. A session that is [fenced](super::fences) is not found.
pub struct WithUser<'a>(pub Option<&'a SessionId>);

impl Question for WithUser<'_> {
    type Fact = Option<(Session, User)>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = with_user!(" AND (r.fenced IS NULL OR s.id > r.fenced)");
        read(sql, values![realm, self.0.map_or("", SessionId::as_str)])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        owned(rows)
    }
}

/// A session and its user, for ending it: a fenced session can be ended too.
pub struct ForEnding<'a>(pub Option<&'a SessionId>);

impl Question for ForEnding<'_> {
    type Fact = Option<(Session, User)>;
    fn read(&self, realm: &RealmId) -> Read {
        read(with_user!(""), values![realm, self.0.map_or("", SessionId::as_str)])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        owned(rows)
    }
}

fn owned(rows: Vec<Row>) -> Option<Option<(Session, User)>> {
    let found = one(rows, |row| Some((session(row)?, maybe_user(row)?)))?;
    Some(found.and_then(|(session, user)| Some((session, user?))))
}

/// A session, its user, and the user's consent for an application: for using the session.
pub struct WithConsent<'a>(pub Option<&'a SessionId>, pub &'a ClientId);

impl OnRealm for WithConsent<'_> {
    type Found = (Option<(Session, User)>, Option<Consent>);
    fn statement(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT r.epoch, ",
            session_columns!(),
            ", ",
            user_columns!(),
            ", k.user_id, k.client_id, k.scope, k.granted FROM realms r \
             LEFT JOIN sessions s ON s.realm = r.id AND s.id = ? AND (r.fenced IS NULL OR s.id > r.fenced) \
             LEFT JOIN users u ON u.realm = s.realm AND u.id = s.user_id \
             LEFT JOIN consents k ON k.realm = s.realm AND k.user_id = s.user_id AND k.client_id = ? \
             WHERE r.id = ?"
        );
        let WithConsent(session, client) = self;
        read(sql, values![session.map_or("", SessionId::as_str), *client, realm])
    }
    fn found(row: &mut Columns) -> Option<Self::Found> {
        let (session, user) = (maybe_session(row)?, maybe_user(row)?);
        Some((session.zip(user), maybe_consent(row)?))
    }
}

/// Up to `limit` sessions of a user that were not ended and have not expired, older than `before`, the newest first.
pub struct Page<'a> {
    /// The user.
    pub user: &'a UserId,
    /// The id before which the page starts; [`NEWEST`] for the first page.
    pub before: &'a str,
    /// The maximum number of sessions.
    pub limit: i64,
    /// Sessions that expire by this time are left out,
    pub now: Time,
    /// and so are those that were not used since this time.
    pub idle_since: Time,
}

/// Sorts after every id.
pub const NEWEST: &str = "~";

impl Question for Page<'_> {
    type Fact = Vec<Session>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions s JOIN realms r ON r.id = s.realm WHERE s.realm = ? AND s.user_id = ? \
             AND s.id < ? AND s.ended_at IS NULL AND s.expires > ? AND s.last_seen > ? \
             AND (r.fenced IS NULL OR s.id > r.fenced) ORDER BY s.id DESC LIMIT ?"
        );
        read(sql, values![realm, self.user, self.before, self.now, self.idle_since, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, session)
    }
}

pub(super) fn start(realm: &RealmId, session: &Session) -> Write {
    let sql = "INSERT INTO sessions (realm, id, handle, user_id, auth_time, amr, created, last_seen, expires, agent, \
               address, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let row = values![
        realm,
        &session.id,
        session.handle,
        &session.user,
        session.auth_time,
        to_json(&session.amr),
        session.created,
        session.last_seen,
        session.expires,
        session.agent.as_str(),
        session.address.as_str(),
        session.ended_at
    ];
    write(sql, row, Must::Touch(1))
}

pub(super) fn raise(realm: &RealmId, session: &Session, was: Handle) -> Write {
    let sql = "UPDATE sessions SET handle = ?, auth_time = ?, amr = ?, last_seen = ? \
               WHERE realm = ? AND id = ? AND handle = ? AND ended_at IS NULL";
    let amr = to_json(&session.amr);
    let row = values![session.handle, session.auth_time, amr, session.last_seen, realm, &session.id, was];
    write(sql, row, Must::Touch(1))
}

pub(super) fn touch(realm: &RealmId, session: &SessionId, at: Time) -> Write {
    let sql = "UPDATE sessions SET last_seen = ? WHERE realm = ? AND id = ? AND last_seen < ?";
    write(sql, values![at, realm, session, at], Must::Any)
}

pub(super) fn end(realm: &RealmId, session: &SessionId, at: Time) -> Write {
    let sql = "UPDATE sessions SET ended_at = ? WHERE realm = ? AND id = ? AND ended_at IS NULL";
    write(sql, values![at, realm, session], Must::Any)
}

pub(super) fn end_all(realm: &RealmId, user: &UserId, except: Option<&SessionId>, at: Time) -> Write {
    let sql = "UPDATE sessions SET ended_at = ? WHERE realm = ? AND user_id = ? AND ended_at IS NULL AND id <> ?";
    write(sql, values![at, realm, user, except.map_or("", SessionId::as_str)], Must::Any)
}
