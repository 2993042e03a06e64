//! Token families.

use super::realms::OnRealm;
use super::row::{Columns, json, one, to_json};
use super::sessions::{maybe_session, session_columns};
use super::users::{maybe_user, user_columns};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::fresh::first_id;
use rules::id::{ClientId, FamilyId, LifeId, RealmId, SessionId, UserId};
use rules::oauth::family::{Family, Found, Previous, Refresh, Rotation};
use rules::time::Time;

/// Selects the epoch and what [`found`] takes; then, if more is asked, columns of a further table.
macro_rules! in_context {
    ($of_session:literal, $of_family:literal $(, $more:literal $further:literal)?) => {
        concat!(
            "SELECT r.epoch, f.id, f.client_id, f.life, f.user_id, f.session_id, f.granted, f.current_hash, f.previous_hash, \
             f.previous_until, f.bridge, f.turn, f.created, f.idle_until, f.expires, f.revoked_at, ",
            session_columns!(),
            ", ",
            user_columns!(),
            $($more,)?
            " FROM realms r LEFT JOIN families f ON f.realm = r.id AND f.id = ?",
            $of_family,
            " LEFT JOIN sessions s ON s.realm = f.realm AND s.id = f.session_id",
            $of_session,
            " LEFT JOIN users u ON u.realm = f.realm AND u.id = f.user_id",
            $($further,)?
            " WHERE r.id = ?"
        )
    };
    (for use $($more:tt)*) => {
        in_context!(
            " AND (r.fenced IS NULL OR s.id > r.fenced)",
            " AND (r.fenced IS NULL OR f.id > r.fenced)"
            $($more)*
        )
    };
}

/// A family with the facts around it, except the user's groups, for using it. Nothing [fenced](super::fences) is found.
pub struct InContext<'a>(pub Option<&'a FamilyId>);

impl Question for InContext<'_> {
    type Fact = Option<Found>;
    fn read(&self, realm: &RealmId) -> Read {
        read(in_context!(for use), values![self.0.map_or("", FamilyId::as_str), realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        alone(rows)
    }
}

impl OnRealm for InContext<'_> {
    type Found = Option<Found>;
    fn statement(&self, realm: &RealmId) -> Read {
        self.read(realm)
    }
    fn found(row: &mut Columns) -> Option<Self::Found> {
        found(row)
    }
}

/// Like [`InContext`], but for ending the family: what is fenced can be ended too.
pub struct ForEnding<'a>(pub &'a FamilyId);

impl Question for ForEnding<'_> {
    type Fact = Option<Found>;
    fn read(&self, realm: &RealmId) -> Read {
        read(in_context!("", ""), values![self.0, realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        alone(rows)
    }
}

/// What an access token depends on: its family, as in [`InContext`], and whether the token itself was revoked. A token
/// without a family that is older than a fence in force may have been revoked, so it is not used meanwhile.
pub struct OfToken<'a> {
    /// The token's family, if it has one.
    pub family: Option<&'a FamilyId>,
    /// The token's `jti`.
    pub jti: &'a str,
    /// When the token was issued.
    pub issued: Time,
    /// Whether it is read to end what it depends on, as with [`ForEnding`].
    pub to_end: bool,
}

/// Also selects whether the token itself may not be used: it was revoked, or is older than the fence.
macro_rules! of_token {
    ($($for_use:tt)*) => {
        in_context!($($for_use)*, ", CASE WHEN t.jti IS NOT NULL OR r.fenced > ? THEN 'void' END" " LEFT JOIN revoked_tokens t ON t.realm = r.id AND t.jti = ?")
    };
}

impl OnRealm for OfToken<'_> {
    type Found = (Option<Found>, bool);
    fn statement(&self, realm: &RealmId) -> Read {
        let OfToken { family, jti, issued, to_end } = self;
        let sql = if *to_end { of_token!("", "") } else { of_token!(for use) };
        // An id that sorts after every other is behind no fence.
        let leans = *to_end || family.is_some();
        let place = if leans { "~".to_owned() } else { first_id(*issued) };
        read(sql, values![place, family.map_or("", FamilyId::as_str), *jti, realm])
    }
    fn found(row: &mut Columns) -> Option<Self::Found> {
        Some((found(row)?, !row.is_absent()))
    }
}

/// Returns what was found, without the epoch.
fn alone(rows: Vec<Row>) -> Option<Option<Found>> {
    let found = one(rows, |row| {
        row.skip(1);
        found(row)
    });
    found.map(Option::flatten)
}

/// A family that an outer join may not have found.
fn found(row: &mut Columns) -> Option<Option<Found>> {
    if row.is_absent() {
        row.skip(36);
        return Some(None);
    }
    let (family, session, user) = (family(row)?, maybe_session(row)?, maybe_user(row)?);
    Some(Some(Found { family, session, user, groups: Vec::new() }))
}

fn family(row: &mut Columns) -> Option<Family> {
    Some(Family {
        id: FamilyId(row.text()?),
        client: ClientId(row.text()?),
        life: row.maybe_text()?.map(LifeId),
        user: UserId(row.text()?),
        session: row.maybe_text()?.map(SessionId),
        granted: json(&row.text()?)?,
        refresh: refresh(row)?,
        created: row.time()?,
        idle_until: row.time()?,
        expires: row.time()?,
        revoked_at: row.maybe_time()?,
    })
}

fn refresh(row: &mut Columns) -> Option<Option<Refresh>> {
    let (current, previous) = (row.maybe_handle()?, row.maybe_handle()?);
    let (until, bridge, turn) = (row.maybe_time()?, row.maybe_blob()?, row.int()?);
    let Some(current) = current else { return Some(None) };
    let previous = match (previous, until, bridge) {
        (Some(handle), Some(until), Some(bridge)) => Some(Previous { handle, until, bridge: bridge.try_into().ok()? }),
        _ => None,
    };
    Some(Some(Refresh { current, previous, turn }))
}

pub(super) fn start(realm: &RealmId, family: &Family) -> Write {
    let sql = "INSERT INTO families (realm, id, client_id, life, user_id, session_id, granted, current_hash, created, \
               idle_until, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let row = values![
        realm,
        &family.id,
        &family.client,
        family.life.as_ref(),
        &family.user,
        family.session.as_ref(),
        to_json(&family.granted),
        family.refresh.as_ref().map(|refresh| refresh.current),
        family.created,
        family.idle_until,
        family.expires
    ];
    write(sql, row, Must::Touch(1))
}

/// Rotates the refresh token: of any number of parallel attempts, one touches the row.
pub(super) fn rotate(realm: &RealmId, family: &FamilyId, rotation: &Rotation) -> Write {
    let sql = "UPDATE families SET current_hash = ?, previous_hash = ?, previous_until = ?, bridge = ?, idle_until = ?, \
               turn = turn + 1 WHERE realm = ? AND id = ? AND current_hash = ? AND revoked_at IS NULL";
    let previous = &rotation.previous;
    let row = values![
        rotation.current,
        previous.handle,
        previous.until,
        previous.bridge.to_vec(),
        rotation.idle_until,
        realm,
        family,
        rotation.was
    ];
    write(sql, row, Must::Touch(1))
}

pub(super) fn revoke(realm: &RealmId, family: &FamilyId, at: Time) -> Write {
    let sql = "UPDATE families SET revoked_at = ? WHERE realm = ? AND id = ? AND revoked_at IS NULL";
    write(sql, values![at, realm, family], Must::Any)
}

pub(super) fn revoke_all(
    realm: &RealmId,
    user: &UserId,
    (client, except): (Option<&ClientId>, Option<&SessionId>),
    at: Time,
) -> Write {
    let sql = "UPDATE families SET revoked_at = ? WHERE realm = ? AND user_id = ? AND revoked_at IS NULL \
               AND (? IS NULL OR client_id = ?) AND (? IS NULL OR COALESCE(session_id, '') <> ?)";
    write(sql, values![at, realm, user, client, client, except, except], Must::Any)
}
