//! The kinds of password hashes that are stored, or may be at any moment. A node announces a kind before it stores such
//! a hash, and bumps the configuration epoch if the kind is new: so every node knows the kind at the next sign-in.

use super::realms::bump_epoch;
use super::row::every;
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;

/// Not a kind: records that all hashes were looked at, and when last.
const ALL: &str = "all";

/// A kind of hash, named as the hasher names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// What verifying such a hash needs.
    pub kind: String,
    /// When a node last announced that it stores such hashes.
    pub at: Time,
}

/// What is known about the hashes of a realm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Every kind that was announced.
    pub kinds: Vec<Announced>,
    /// When a check last found that there are no other kinds.
    pub looked: Option<Time>,
}

/// Asks what is known about the hashes.
pub struct Kinds;

impl Question for Kinds {
    type Fact = Known;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT kind, announced FROM hash_kinds WHERE realm = ? ORDER BY kind", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let mut kinds = every(rows, |row| Some(Announced { kind: row.text()?, at: row.time()? }))?;
        let looked = kinds.iter().position(|known| known.kind == ALL).map(|at| kinds.remove(at).at);
        Some(Known { kinds, looked })
    }
}

/// Announces that hashes of this kind are stored from now on. Fails if another node announced it since it was `seen`.
pub fn announce(realm: &RealmId, kind: &str, seen: Option<Time>, at: Time) -> Vec<Write> {
    match seen {
        Some(seen) => vec![renew(realm, kind, seen, at)],
        None => vec![insert(realm, kind, at), bump_epoch(realm)],
    }
}

/// Records that every stored hash is of an announced kind. If it is the first time, nodes wait less from then on.
pub fn looked(realm: &RealmId, seen: Option<Time>, at: Time) -> Vec<Write> {
    announce(realm, ALL, seen, at)
}

/// Removes a kind of which no hash exists, unless it was announced again since it was `seen`.
pub fn forget(realm: &RealmId, seen: &Announced) -> Vec<Write> {
    let sql = "DELETE FROM hash_kinds WHERE realm = ? AND kind = ? AND announced = ?";
    vec![write(sql, values![realm, seen.kind.as_str(), seen.at], Must::Touch(1)), bump_epoch(realm)]
}

fn insert(realm: &RealmId, kind: &str, at: Time) -> Write {
    let sql = "INSERT INTO hash_kinds (realm, kind, announced) VALUES (?, ?, ?)";
    write(sql, values![realm, kind, at], Must::Touch(1))
}

fn renew(realm: &RealmId, kind: &str, seen: Time, at: Time) -> Write {
    let sql = "UPDATE hash_kinds SET announced = ? WHERE realm = ? AND kind = ? AND announced = ?";
    write(sql, values![at, realm, kind, seen], Must::Touch(1))
}
