//! Realms, their configuration epoch, and their set-up links.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::id::RealmId;
use rules::time::Time;

/// The configuration epoch: cached clients, keys and settings are valid only at the epoch at which they were read.
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

/// A question about rows joined to its realm's row, with the epoch at which it was answered: one statement, one moment.
pub struct AtEpoch<Q>(pub Q);

/// A question that can be asked this way: it returns one row, with the epoch first.
pub trait OnRealm {
    /// What is joined to the realm's row.
    type Found;
    /// The statement that asks it.
    fn statement(&self, realm: &RealmId) -> Read;
    /// Reads the columns after the epoch.
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

/// The set-up links of a realm: their hashes, and the time until which each is valid.
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

/// The URL at which the server of a realm was last reached.
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

/// Creates a realm unless it exists, and records its issuer. The second statement touches a row if that has changed.
pub fn ensure(realm: &RealmId, issuer: &str, now: Time) -> Vec<Write> {
    vec![begin(realm, issuer, now), note_issuer(realm, issuer)]
}

/// Creates a realm unless it exists.
pub fn begin(realm: &RealmId, issuer: &str, now: Time) -> Write {
    let sql = "INSERT INTO realms (id, issuer, epoch, created) VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING";
    write(sql, values![realm, issuer, now], Must::Any)
}

/// Records a realm's issuer; touches a row if the issuer has changed.
pub fn note_issuer(realm: &RealmId, issuer: &str) -> Write {
    let sql = "UPDATE realms SET issuer = ? WHERE id = ? AND issuer <> ?";
    write(sql, values![issuer, realm, issuer], Must::Any)
}

/// Offers a set-up link, and voids the links that expire by `keep`.
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
