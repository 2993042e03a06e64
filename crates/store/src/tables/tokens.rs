//! Opaque access tokens, single tokens that were revoked, and client assertions that were used.

use super::row::{json, one, to_json};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::fresh::first_id;
use rules::id::{ClientId, RealmId};
use rules::oauth::token::{AccessClaims, Opaque};
use rules::time::Time;

/// The claims that an opaque access token stands for.
pub struct ByHandle(pub Handle);

impl Question for ByHandle {
    type Fact = Option<AccessClaims>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT claims FROM opaque_tokens WHERE realm = ? AND handle = ?", values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| json(&row.text()?))
    }
}

pub(super) fn issue(realm: &RealmId, token: &Opaque) -> Write {
    let sql = "INSERT INTO opaque_tokens (realm, handle, claims, expires) VALUES (?, ?, ?, ?)";
    write(sql, values![realm, token.handle, to_json(&token.claims), token.expires], Must::Touch(1))
}

pub(super) fn drop_opaque(realm: &RealmId, token: Handle) -> Write {
    write("DELETE FROM opaque_tokens WHERE realm = ? AND handle = ?", values![realm, token], Must::Any)
}

pub(super) fn revoke(realm: &RealmId, jti: &str, expires: Time) -> Write {
    let sql = "INSERT INTO revoked_tokens (realm, jti, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    write(sql, values![realm, jti, expires], Must::Any)
}

/// Uses an assertion up: its key exists from then on. An assertion older than a [fence](super::fences) in force may
/// have been used before, in a commit that was lost: then the first statement does not hold.
pub(super) fn use_assertion(
    realm: &RealmId,
    (client, jti): (&ClientId, Handle),
    issued: Time,
    expires: Time,
) -> [Write; 2] {
    let younger = "SELECT 1 FROM realms WHERE id = ? AND (fenced IS NULL OR fenced <= ?)";
    let sql = "INSERT INTO assertions (realm, client_id, jti, expires) VALUES (?, ?, ?, ?)";
    [
        write(younger, values![realm, first_id(issued)], Must::Find(1)),
        write(sql, values![realm, client, jti, expires], Must::Touch(1)),
    ]
}
