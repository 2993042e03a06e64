//! Machines that hash passwords, and the tokens with which they are enrolled.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::secret::Handle;
use rules::time::Time;
use rules::worker::{Worker, spent};

/// Every worker, by name.
pub struct All;

impl Question for All {
    type Fact = Vec<Worker>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT worker_key, name, enrolled, address, quarantined_at, why FROM workers WHERE realm = ? ORDER BY name";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, worker)
    }
}

/// The worker with this key.
pub struct OfKey(pub Handle);

impl Question for OfKey {
    type Fact = Option<Worker>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT worker_key, name, enrolled, address, quarantined_at, why FROM workers \
                   WHERE realm = ? AND worker_key = ?";
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, worker)
    }
}

/// The time until which a token is valid.
pub struct Token(pub Handle);

impl Question for Token {
    type Fact = Option<Time>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT expires FROM worker_tokens WHERE realm = ? AND token = ?";
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.time())
    }
}

fn worker(row: &mut Columns) -> Option<Worker> {
    let (key, name, enrolled, address) = (row.handle()?, row.text()?, row.time()?, row.text()?);
    let (since, why) = (row.maybe_time()?, row.maybe_text()?);
    let quarantine = since.map(|since| (since, why.unwrap_or_default()));
    Some(Worker { key, name, enrolled, address, quarantine })
}

/// Offers a token, and removes expired tokens.
pub(super) fn offer(realm: &RealmId, token: Handle, (now, expires): (Time, Time)) -> Vec<Write> {
    let insert = "INSERT INTO worker_tokens (realm, token, expires) VALUES (?, ?, ?)";
    vec![
        write("DELETE FROM worker_tokens WHERE realm = ? AND expires <= ?", values![realm, now], Must::Any),
        write(insert, values![realm, token, expires], Must::Touch(1)),
    ]
}

/// Uses a token up for a worker; the token is kept as the worker's until it would have expired. Fails if the token is
/// unknown, used or expired, or if the key or the name is taken.
pub(super) fn enroll(realm: &RealmId, worker: &Worker, (token, now): (Handle, Time)) -> Vec<Write> {
    let once = "UPDATE worker_tokens SET token = ? WHERE realm = ? AND token = ? AND expires > ?";
    let insert = "INSERT INTO workers (realm, worker_key, name, enrolled, address) VALUES (?, ?, ?, ?, ?)";
    let row = values![realm, worker.key, worker.name.as_str(), worker.enrolled, worker.address.as_str()];
    let spent = values![spent(token, worker.key), realm, token, now];
    vec![write(once, spent, Must::Touch(1)), write(insert, row, Must::Touch(1))]
}

/// Renames a worker; fails if the name is taken.
pub(super) fn rename(realm: &RealmId, key: Handle, name: &str) -> Write {
    let sql = "UPDATE workers SET name = ? WHERE realm = ? AND worker_key = ?";
    write(sql, values![name, realm, key], Must::Touch(1))
}

/// Removes a worker, which is not let in any more.
pub(super) fn remove(realm: &RealmId, key: Handle) -> Write {
    write("DELETE FROM workers WHERE realm = ? AND worker_key = ?", values![realm, key], Must::Touch(1))
}

/// Stops sending work to a worker; fails if it is quarantined already.
pub(super) fn quarantine(realm: &RealmId, key: Handle, (at, why): (Time, &str)) -> Write {
    let sql =
        "UPDATE workers SET quarantined_at = ?, why = ? WHERE realm = ? AND worker_key = ? AND quarantined_at IS NULL";
    write(sql, values![at, why, realm, key], Must::Touch(1))
}

/// Lets a worker get work again.
pub(super) fn trust(realm: &RealmId, key: Handle) -> Write {
    let sql = "UPDATE workers SET quarantined_at = NULL, why = NULL \
               WHERE realm = ? AND worker_key = ? AND quarantined_at IS NOT NULL";
    write(sql, values![realm, key], Must::Touch(1))
}
