//! Authorization codes.

use super::realms::{AtEpoch, OnRealm};
use super::row::{Columns, json, one, to_json};
use super::sessions::{maybe_session, session_columns};
use super::users::{maybe_user, user_columns};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::fresh::first_id;
use rules::id::{ClientId, FamilyId, LifeId, RealmId, SessionId, UserId};
use rules::oauth::code::{Code, Found};
use rules::time::Time;

/// A code with the facts around it, except the user's groups and whether what was issued for it has ended.
pub struct InContext<'a>(pub Option<&'a FamilyId>);

impl OnRealm for InContext<'_> {
    type Found = Option<Found>;
    fn statement(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT r.epoch, c.handle, c.client_id, c.life, c.user_id, c.session_id, c.family, c.by_consent, c.redirect_uri, \
             c.challenge, c.granted, c.expires, c.redeemed_at, ",
            session_columns!(),
            ", ",
            user_columns!(),
            ", k.granted FROM realms r \
             LEFT JOIN codes c ON c.realm = r.id AND c.family = ? \
             LEFT JOIN sessions s ON s.realm = c.realm AND s.id = c.session_id \
             AND (r.fenced IS NULL OR s.id > r.fenced) \
             LEFT JOIN users u ON u.realm = c.realm AND u.id = c.user_id \
             LEFT JOIN consents k ON k.realm = c.realm AND k.user_id = c.user_id AND k.client_id = c.client_id \
             WHERE r.id = ?"
        );
        read(sql, values![self.0.map_or("", FamilyId::as_str), realm])
    }
    /// A code that an outer join may not have found.
    fn found(row: &mut Columns) -> Option<Self::Found> {
        if row.is_absent() {
            return Some(None);
        }
        let (code, session, user) = (code(row)?, maybe_session(row)?, maybe_user(row)?);
        Some(Some(Found { code, session, user, consent: row.maybe_time()?, groups: Vec::new(), over: false }))
    }
}

impl Question for InContext<'_> {
    type Fact = Option<Found>;
    fn read(&self, realm: &RealmId) -> Read {
        self.statement(realm)
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        Some(AtEpoch(InContext(self.0)).fact(rows)?.and_then(|(_, found)| found))
    }
}

fn code(row: &mut Columns) -> Option<Code> {
    Some(Code {
        handle: row.handle()?,
        client: ClientId(row.text()?),
        life: row.maybe_text()?.map(LifeId),
        user: UserId(row.text()?),
        session: SessionId(row.text()?),
        family: FamilyId(row.text()?),
        by_consent: row.maybe_time()?,
        redirect_uri: row.text()?,
        challenge: row.maybe_text()?,
        granted: json(&row.text()?)?,
        expires: row.time()?,
        redeemed_at: row.maybe_time()?,
    })
}

pub(super) fn issue(realm: &RealmId, code: &Code) -> Write {
    let sql = "INSERT INTO codes (realm, family, handle, client_id, life, user_id, session_id, by_consent, redirect_uri, \
               challenge, granted, expires, redeemed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)";
    let row = values![
        realm,
        &code.family,
        code.handle,
        &code.client,
        code.life.as_ref(),
        &code.user,
        &code.session,
        code.by_consent,
        code.redirect_uri.as_str(),
        code.challenge.clone(),
        to_json(&code.granted),
        code.expires
    ];
    write(sql, row, Must::Touch(1))
}

/// Uses up every open code of a user; codes are found by age, since they are short-lived.
pub(super) fn burn_all(realm: &RealmId, user: &UserId, since: Time, at: Time) -> Write {
    let sql =
        "UPDATE codes SET redeemed_at = ? WHERE realm = ? AND family >= ? AND user_id = ? AND redeemed_at IS NULL";
    write(sql, values![at, realm, first_id(since), user], Must::Any)
}

/// Asks about the next codes after a family, in the order in which they were issued; at most `limit` of them.
pub struct Next<'a> {
    /// Earlier codes do not count, nor does this family's.
    pub after: &'a str,
    /// Later codes do not count.
    pub before: Time,
    /// The most codes.
    pub limit: i64,
}

/// What [`Next`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The family of the last of them.
    pub last: FamilyId,
    /// How many there are.
    pub codes: i64,
    /// How many of them nobody redeemed.
    pub unused: i64,
}

impl Question for Next<'_> {
    type Fact = Option<Stretch>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT MAX(family), COUNT(*), COUNT(CASE WHEN redeemed_at IS NULL THEN 1 END) FROM \
                   (SELECT family, redeemed_at FROM codes WHERE realm = ? AND family > ? AND family < ? \
                   ORDER BY family LIMIT ?) AS stretch";
        read(sql, values![realm, self.after, first_id(self.before), self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| match row.maybe_text()? {
            None => Some(None),
            Some(last) => Some(Some(Stretch { last: FamilyId(last), codes: row.int()?, unused: row.int()? })),
        })?
    }
}

/// Removes the codes after one family up to another that have expired and that nobody redeemed. Nothing asks for them any
/// more; a redeemed one is kept, so that its second use is noticed.
pub fn drop_unused(realm: &RealmId, (after, last): (&str, &FamilyId), now: Time) -> Write {
    let sql =
        "DELETE FROM codes WHERE realm = ? AND family > ? AND family <= ? AND redeemed_at IS NULL AND expires <= ?";
    write(sql, values![realm, after, last, now], Must::Any)
}

/// Consumes a code: of any number of parallel attempts, one touches the row.
pub(super) fn burn(realm: &RealmId, family: &FamilyId, at: Time) -> Write {
    let sql = "UPDATE codes SET redeemed_at = ? WHERE realm = ? AND family = ? AND redeemed_at IS NULL";
    write(sql, values![at, realm, family], Must::Touch(1))
}
