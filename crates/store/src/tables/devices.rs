//! Requests of the device grant.

use super::row::{Columns, json, one, to_json};
use super::sessions::{maybe_session, session_columns};
use super::users::{maybe_user, user_columns};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::id::{ClientId, FamilyId, LifeId, RealmId, SessionId, UserId};
use rules::oauth::device::{Approval, Device, Found, HEARD, Stage};
use rules::oauth::scope::Scope;
use rules::time::Time;

macro_rules! device_columns {
    () => {
        "d.handle, d.user_code, d.client_id, d.life, d.scope, d.resources, d.address, d.asked, d.expires, d.interval_s, d.polled, \
         d.stage, d.user_id, d.session_id, d.family, d.granted"
    };
}

/// A request by its device code, with the facts around it, except the user's groups.
pub struct InContext(pub Handle);

impl Question for InContext {
    type Fact = Option<Found>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT ",
            device_columns!(),
            ", ",
            session_columns!(),
            ", ",
            user_columns!(),
            " FROM devices d JOIN realms r ON r.id = d.realm \
             LEFT JOIN sessions s ON s.realm = d.realm AND s.id = d.session_id \
             AND (r.fenced IS NULL OR s.id > r.fenced) \
             LEFT JOIN users u ON u.realm = d.realm AND u.id = d.user_id WHERE d.realm = ? AND d.handle = ?"
        );
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| {
            let (device, session, user) = (device(row)?, maybe_session(row)?, maybe_user(row)?);
            Some(Found { device, session, user, groups: Vec::new() })
        })
    }
}

/// A request by its user code.
pub struct ByUserCode(pub Handle);

impl Question for ByUserCode {
    type Fact = Option<Device>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!("SELECT ", device_columns!(), " FROM devices d WHERE d.realm = ? AND d.user_code = ?");
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, device)
    }
}

fn device(row: &mut Columns) -> Option<Device> {
    Some(Device {
        handle: row.handle()?,
        user_code: row.handle()?,
        client: ClientId(row.text()?),
        life: row.maybe_text()?.map(LifeId),
        scope: Scope::parse(&row.text()?).ok()?,
        resources: json(&row.text()?)?,
        address: row.text()?,
        asked: row.time()?,
        expires: row.time()?,
        interval_s: row.int()?,
        polled: row.maybe_time()?,
        stage: stage(row)?,
    })
}

fn stage(row: &mut Columns) -> Option<Stage> {
    let name = row.text()?;
    let (user, session, family, granted) = (row.maybe_text()?, row.maybe_text()?, row.maybe_text()?, row.maybe_text()?);
    Some(match name.as_str() {
        "pending" => Stage::Pending,
        "denied" => Stage::Denied,
        "redeemed" => Stage::Redeemed,
        "approved" => Stage::Approved(Box::new(Approval {
            user: UserId(user?),
            session: SessionId(session?),
            family: FamilyId(family?),
            granted: json(&granted?)?,
        })),
        _ => return None,
    })
}

pub(super) fn ask(realm: &RealmId, device: &Device) -> Write {
    let sql = "INSERT INTO devices (realm, handle, user_code, client_id, life, scope, resources, address, asked, expires, \
               interval_s, stage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')";
    let row = values![
        realm,
        device.handle,
        device.user_code,
        &device.client,
        device.life.as_ref(),
        device.scope.to_string(),
        to_json(&device.resources),
        device.address.as_str(),
        device.asked,
        device.expires,
        device.interval_s
    ];
    write(sql, row, Must::Touch(1))
}

/// Answers a request: of any number of parallel answers, one touches the row.
pub(super) fn answer(realm: &RealmId, device: Handle, approval: Option<&Approval>, at: Time) -> Write {
    match approval {
        None => {
            let sql = "UPDATE devices SET stage = 'denied' WHERE realm = ? AND handle = ? AND stage = 'pending' AND expires > ?";
            write(sql, values![realm, device, at], Must::Touch(1))
        }
        Some(yes) => {
            let sql = "UPDATE devices SET stage = 'approved', user_id = ?, session_id = ?, family = ?, granted = ?, \
                       expires = CASE WHEN expires < ? THEN ? ELSE expires END \
                       WHERE realm = ? AND handle = ? AND stage = 'pending' AND expires > ?";
            let (granted, heard) = (to_json(&yes.granted), at + HEARD);
            let row = values![&yes.user, &yes.session, &yes.family, granted, heard, heard, realm, device, at];
            write(sql, row, Must::Touch(1))
        }
    }
}

/// Records a poll: of any number of parallel polls, one touches the row.
pub(super) fn polled(realm: &RealmId, device: Handle, at: Time, seen: Option<Time>) -> Write {
    /// A time before any poll.
    const NEVER: Time = Time(-1);
    let sql = "UPDATE devices SET polled = ? WHERE realm = ? AND handle = ? AND COALESCE(polled, -1) = ?";
    write(sql, values![at, realm, device, seen.unwrap_or(NEVER)], Must::Touch(1))
}

pub(super) fn slowed(realm: &RealmId, device: Handle, at: Time, interval_s: i64) -> Write {
    let sql = "UPDATE devices SET polled = ?, interval_s = ? WHERE realm = ? AND handle = ?";
    write(sql, values![at, interval_s, realm, device], Must::Any)
}

/// Consumes an approval: of any number of parallel polls, one touches the row.
pub(super) fn redeem(realm: &RealmId, device: Handle, at: Time) -> Write {
    let sql =
        "UPDATE devices SET stage = 'redeemed' WHERE realm = ? AND handle = ? AND stage = 'approved' AND expires > ?";
    write(sql, values![realm, device, at], Must::Touch(1))
}

pub(super) fn drop_approvals(realm: &RealmId, user: &UserId, client: Option<&ClientId>) -> Write {
    let sql =
        "DELETE FROM devices WHERE realm = ? AND user_id = ? AND stage = 'approved' AND (? IS NULL OR client_id = ?)";
    write(sql, values![realm, user, client, client], Must::Any)
}
