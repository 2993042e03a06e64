//! Signing keys.

use super::row::{Columns, every};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Value, Write};
use rules::id::{Kid, RealmId};
use rules::jose::Alg;
use rules::keys::Key;
use rules::time::Time;

/// Every key of a realm, except keys with an algorithm that only a later program has: this program ignores those, and
/// its own keys keep working.
pub struct All;

impl Question for All {
    type Fact = Vec<Key>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT kid, alg, public, sealed, created, active_from, publish_until, revoked_at FROM signing_keys \
                   WHERE realm = ? ORDER BY created, kid";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let is_known = |row: &Row| !matches!(row.get(1), Some(Value::Text(text)) if alg(text).is_none());
        every(rows.into_iter().filter(is_known).collect(), key)
    }
}

/// What follows the name of the algorithm of a key whose private half was destroyed. A program that does not know such
/// keys takes it for an algorithm that only a later one has.
const DESTROYED: &str = " (public)";

fn alg(text: &str) -> Option<Alg> {
    Alg::parse(text.strip_suffix(DESTROYED).unwrap_or(text))
}

fn key(row: &mut Columns) -> Option<Key> {
    Some(Key {
        kid: Kid(row.text()?),
        alg: alg(&row.text()?)?,
        public: row.text()?,
        sealed: row.blob()?,
        created: row.time()?,
        active_from: row.time()?,
        publish_until: row.maybe_time()?,
        revoked_at: row.maybe_time()?,
    })
}

pub(super) fn add(realm: &RealmId, key: &Key) -> Write {
    let sql = "INSERT INTO signing_keys (realm, kid, alg, public, sealed, created, active_from, publish_until, \
               revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let row = values![
        realm,
        &key.kid,
        key.alg.name(),
        key.public.as_str(),
        key.sealed.clone(),
        key.created,
        key.active_from,
        key.publish_until,
        key.revoked_at
    ];
    write(sql, row, Must::Touch(1))
}

pub(super) fn retire(realm: &RealmId, kid: &Kid, until: Option<Time>) -> Write {
    let sql = "UPDATE signing_keys SET publish_until = ? WHERE realm = ? AND kid = ?";
    write(sql, values![until, realm, kid], Must::Touch(1))
}

pub(super) fn activate(realm: &RealmId, kid: &Kid, at: Time) -> Write {
    let sql = "UPDATE signing_keys SET active_from = ? WHERE realm = ? AND kid = ?";
    write(sql, values![at, realm, kid], Must::Touch(1))
}

/// Destroys the private half of a key that is [past](Key::is_past) at `now`, if it still is.
pub fn destroy(realm: &RealmId, key: &Key, now: Time) -> Write {
    let sql = "UPDATE signing_keys SET sealed = ?, alg = ? WHERE realm = ? AND kid = ? AND alg = ? \
               AND (publish_until <= ? OR revoked_at <= ?)";
    let name = key.alg.name();
    let row = values![Vec::<u8>::new(), format!("{name}{DESTROYED}"), realm, &key.kid, name, now, now];
    write(sql, row, Must::Any)
}

pub(super) fn revoke(realm: &RealmId, kid: &Kid, at: Time) -> Write {
    let sql = "UPDATE signing_keys SET revoked_at = ? WHERE realm = ? AND kid = ? AND revoked_at IS NULL";
    write(sql, values![at, realm, kid], Must::Touch(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kid: &str, alg: &str) -> Row {
        values![kid, alg, "public", vec![1_u8], Time(1), Time(1), None::<Time>, None::<Time>]
    }

    #[test]
    fn a_key_of_a_later_program_hides_no_other() {
        let rows = [("a", "ES256"), ("b", "ML-DSA-65"), ("c", "RS256"), ("d", "EdDSA (public)")];
        let keys = All.fact(rows.map(|(kid, alg)| row(kid, alg)).to_vec()).expect("the others");
        let found: Vec<_> = keys.into_iter().map(|key| (key.kid.0, key.alg.name())).collect();
        assert_eq!(found, [("a", "ES256"), ("c", "RS256"), ("d", "EdDSA")].map(|(kid, alg)| (kid.to_owned(), alg)));
        // A row that no program writes is still an error.
        assert!(All.fact(vec![row("a", "ES256"), vec![Value::Null]]).is_none());
    }
}
