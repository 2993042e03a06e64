//! Secrets that are kept outside the database, and what of them tells that it is the right one.

use super::row::{every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;

/// Every secret that password hashes of the realm were made with: a name, and a proof that tells it from another one of
/// that name.
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

/// How many accounts have a password hash with this piece of text in it. Looks at every account.
pub struct HashesWith<'a>(pub &'a str);

impl Question for HashesWith<'_> {
    type Fact = Option<i64>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT COUNT(*) FROM users WHERE realm = ? AND password LIKE ? ESCAPE '!'";
        let piece = self.0.replace('!', "!!").replace('%', "!%").replace('_', "!_");
        read(sql, values![realm, format!("%{piece}%")])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.int())
    }
}

/// Whether an account has a password hash that begins in none of these ways. May look at every account.
pub struct AnyOtherHash<'a>(pub &'a [String; 3]);

impl Question for AnyOtherHash<'_> {
    type Fact = Option<i64>;
    fn read(&self, realm: &RealmId) -> Read {
        let length = |text: &String| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let [a, b, c] = self.0;
        let sql = "SELECT 1 FROM users WHERE realm = ? AND SUBSTR(password, 1, ?) <> ? AND SUBSTR(password, 1, ?) <> ?
            AND SUBSTR(password, 1, ?) <> ? LIMIT 1";
        read(sql, values![realm, length(a), a.as_str(), length(b), b.as_str(), length(c), c.as_str()])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.int())
    }
}

/// Notes a secret, unless it is known.
pub fn note(realm: &RealmId, name: &str, proof: &str) -> Write {
    let sql = "INSERT INTO secrets (realm, name, proof) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    write(sql, values![realm, name, proof], Must::Any)
}

/// Forgets a secret that no hash needs any more.
pub fn forget(realm: &RealmId, name: &str) -> Write {
    write("DELETE FROM secrets WHERE realm = ? AND name = ?", values![realm, name], Must::Any)
}
