//! Secrets that are kept outside the database, and the proofs that tell whether a secret is the right one.

use super::row::{every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;

/// Every secret with which password hashes of the realm were made: its name, and a proof that tells it from another
/// secret with that name.
pub struct Secrets;

impl Question for Secrets {
    type Fact = Vec<(String, String)>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT name, proof FROM secrets WHERE realm = ? ORDER BY name", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| Some((row.text()?, row.text()?)))
    }
}

/// Password hashes with the ids of their accounts, in the order of the ids.
pub struct Hashes<'a> {
    /// Only accounts after this one.
    pub after: &'a str,
    /// The maximum number of hashes.
    pub limit: i64,
}

impl Question for Hashes<'_> {
    type Fact = Vec<(String, String)>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT id, password FROM users WHERE realm = ? AND id > ? AND password IS NOT NULL \
                   ORDER BY id LIMIT ?";
        read(sql, values![realm, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| Some((row.text()?, row.text()?)))
    }
}

/// Password hashes of the next accounts, except those that begin with one of `beginnings`.
pub struct OtherHashes<'a> {
    /// The beginnings of the hashes that are left out.
    pub beginnings: &'a [String; 2],
    /// Only accounts after this one.
    pub after: &'a str,
    /// The number of accounts that are looked at.
    pub window: i64,
}

impl Question for OtherHashes<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let length = |text: &String| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let [a, b] = self.beginnings;
        let sql =
            "SELECT password FROM (SELECT password FROM users WHERE realm = ? AND id > ? ORDER BY id LIMIT ?) AS part
            WHERE SUBSTR(password, 1, ?) <> ? AND SUBSTR(password, 1, ?) <> ?";
        read(sql, values![realm, self.after, self.window, length(a), a.as_str(), length(b), b.as_str()])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| row.text())
    }
}

/// The id of the last of the next accounts, if there are any.
pub struct WindowEnd<'a> {
    /// Only accounts after this one.
    pub after: &'a str,
    /// The maximum number of accounts.
    pub window: i64,
}

impl Question for WindowEnd<'_> {
    type Fact = Option<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT MAX(id) FROM (SELECT id FROM users WHERE realm = ? AND id > ? ORDER BY id LIMIT ?) AS part";
        read(sql, values![realm, self.after, self.window])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.maybe_text()).map(Option::flatten)
    }
}

/// Records a secret, unless it is known.
pub fn note(realm: &RealmId, name: &str, proof: &str) -> Write {
    let sql = "INSERT INTO secrets (realm, name, proof) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    write(sql, values![realm, name, proof], Must::Any)
}

/// Holds a secret for a batch that stores a hash which needs it: fails if it is not noted, and nobody removes it before
/// the batch has ended.
pub fn held(realm: &RealmId, name: &str) -> Write {
    write("SELECT 1 FROM secrets WHERE realm = ? AND name = ?", values![realm, name], Must::Find(1))
}

/// Removes a secret that no hash needs any more.
pub fn forget(realm: &RealmId, name: &str) -> Write {
    write("DELETE FROM secrets WHERE realm = ? AND name = ?", values![realm, name], Must::Any)
}
