//! What users allow applications.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::{ClientId, RealmId, UserId};
use rules::oauth::consent::Consent;
use rules::oauth::scope::Scope;

const COLUMNS: &str =
    "SELECT user_id, client_id, scope, granted FROM consents WHERE realm = ? AND user_id = ? AND client_id = ?";

/// What a user allowed an application.
pub struct Between<'a>(pub &'a UserId, pub &'a ClientId);

impl Question for Between<'_> {
    type Fact = Option<Consent>;
    fn read(&self, realm: &RealmId) -> Read {
        read(COLUMNS, values![realm, self.0, self.1])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, consent)
    }
}

/// Up to `limit` applications after `after` that a user has consented to, by id.
pub struct Page<'a> {
    /// The user.
    pub user: &'a UserId,
    /// The id after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of applications.
    pub limit: i64,
}

impl Question for Page<'_> {
    type Fact = Vec<Consent>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT user_id, client_id, scope, granted FROM consents \
                   WHERE realm = ? AND user_id = ? AND client_id > ? ORDER BY client_id LIMIT ?";
        read(sql, values![realm, self.user, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, consent)
    }
}

/// Up to `limit` users who have consented to an application, by id.
pub struct Givers<'a> {
    /// The application.
    pub client: &'a ClientId,
    /// The maximum number of users.
    pub limit: i64,
}

impl Question for Givers<'_> {
    type Fact = Vec<UserId>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT user_id FROM consents WHERE realm = ? AND client_id = ? ORDER BY user_id LIMIT ?";
        read(sql, values![realm, self.client, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| row.text().map(UserId))
    }
}

/// A consent that an outer join may not have found.
pub(super) fn maybe_consent(row: &mut Columns) -> Option<Option<Consent>> {
    if row.is_absent() {
        row.skip(4);
        return Some(None);
    }
    consent(row).map(Some)
}

fn consent(row: &mut Columns) -> Option<Consent> {
    Some(Consent {
        user: UserId(row.text()?),
        client: ClientId(row.text()?),
        scope: Scope::kept(&row.text()?).ok()?,
        granted: row.time()?,
    })
}

/// Stores a consent: a first one, or a wider one in place of the one that was seen.
pub(super) fn grant(realm: &RealmId, consent: &Consent, seen: Option<&Scope>) -> Write {
    let (user, client, scope) = (&consent.user, &consent.client, consent.scope.to_string());
    match seen {
        None => {
            let sql = "INSERT INTO consents (realm, user_id, client_id, scope, granted) VALUES (?, ?, ?, ?, ?)";
            write(sql, values![realm, user, client, scope, consent.granted], Must::Touch(1))
        }
        Some(seen) => {
            let sql = "UPDATE consents SET scope = ? WHERE realm = ? AND user_id = ? AND client_id = ? \
                       AND granted = ? AND scope = ?";
            let row = values![scope, realm, user, client, consent.granted, seen.to_string()];
            write(sql, row, Must::Touch(1))
        }
    }
}

/// Removes the consents for an application that users up to this one gave.
pub(super) fn drop_some(realm: &RealmId, client: &ClientId, upto: &UserId) -> Write {
    let sql = "DELETE FROM consents WHERE realm = ? AND client_id = ? AND user_id <= ?";
    write(sql, values![realm, client, upto], Must::Any)
}

pub(super) fn revoke(realm: &RealmId, user: &UserId, client: &ClientId) -> Write {
    let sql = "DELETE FROM consents WHERE realm = ? AND user_id = ? AND client_id = ?";
    write(sql, values![realm, user, client], Must::Any)
}
