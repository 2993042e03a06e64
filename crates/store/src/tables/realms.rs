//! Realms, their configuration epoch, and their set-up links.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::id::RealmId;
use rules::time::Time;

/// The configuration epoch: what was cached of clients, keys and settings holds only at the epoch at which it was read.
pub struct Epoch;

impl Question for Epoch {
    type Fact = Option<i64>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT epoch FROM realms WHERE id = ?", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.int())
    }
}

/// A question whose answer hangs on the row of its realm, and the epoch at which it was answered: one statement, and one moment.
pub struct AtEpoch<Q>(pub Q);

/// What can be asked so: one row, the epoch before what is asked for.
pub trait OnRealm {
    /// What hangs on the row.
    type Found;
    /// The statement.
    fn statement(&self, realm: &RealmId) -> Read;
    /// What comes after the epoch.
    fn found(row: &mut Columns) -> Option<Self::Found>;
}

impl<Q: OnRealm> Question for AtEpoch<Q> {
    type Fact = Option<(i64, Q::Found)>;
    fn read(&self, realm: &RealmId) -> Read {
        self.0.statement(realm)
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| Some((row.int()?, Q::found(row)?)))
    }
}

/// The set-up links of a realm: their hashes, and until when each is good.
pub struct SetupLinks;

impl Question for SetupLinks {
    type Fact = Vec<(Handle, Time)>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT link, expires FROM setup_offers WHERE realm = ?", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| Some((row.handle()?, row.time()?)))
    }
}

/// Where the server that serves a realm was reached last.
pub struct Issuer;

impl Question for Issuer {
    type Fact = Option<String>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT issuer FROM realms WHERE id = ?", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.text())
    }
}

/// Makes a realm unless it is there, and notes its issuer. The second statement touches a row when that has changed.
pub fn ensure(realm: &RealmId, issuer: &str, now: Time) -> Vec<Write> {
    vec![begin(realm, issuer, now), note_issuer(realm, issuer)]
}

/// Makes a realm unless it is there.
pub fn begin(realm: &RealmId, issuer: &str, now: Time) -> Write {
    let sql = "INSERT INTO realms (id, issuer, epoch, created) VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING";
    write(sql, values![realm, issuer, now], Must::Any)
}

/// Notes a realm's issuer; touches a row when that has changed.
pub fn note_issuer(realm: &RealmId, issuer: &str) -> Write {
    let sql = "UPDATE realms SET issuer = ? WHERE id = ? AND issuer <> ?";
    write(sql, values![issuer, realm, issuer], Must::Any)
}

/// Offers a set-up link. Those that end before `keep` are void.
pub(super) fn offer_setup(realm: &RealmId, link: Handle, (keep, expires): (Time, Time)) -> Vec<Write> {
    let insert = "INSERT INTO setup_offers (realm, link, expires) VALUES (?, ?, ?)";
    vec![
        write("DELETE FROM setup_offers WHERE realm = ? AND expires <= ?", values![realm, keep], Must::Any),
        write(insert, values![realm, link, expires], Must::Touch(1)),
    ]
}

pub(super) fn bump_epoch(realm: &RealmId) -> Write {
    write("UPDATE realms SET epoch = epoch + 1 WHERE id = ?", values![realm], Must::Touch(1))
}

/// Uses a set-up link up.
pub(super) fn use_setup(realm: &RealmId, link: Handle, now: Time) -> Write {
    let sql = "DELETE FROM setup_offers WHERE realm = ? AND link = ? AND expires > ?";
    write(sql, values![realm, link, now], Must::Touch(1))
}
