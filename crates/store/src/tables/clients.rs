//! Applications.

use super::row::{Columns, every, json, one, to_json};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::Handle;
use rules::id::{ClientId, LifeId, RealmId};
use rules::oauth::client::Client;
use rules::time::Time;

/// An application by id.
pub struct ById<'a>(pub &'a ClientId);

impl Question for ById<'_> {
    type Fact = Option<Client>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT data, secret, disabled_at, life, created, epoch FROM clients WHERE realm = ? AND id = ?";
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, client)
    }
}

/// Up to `limit` applications after `after`, by id.
pub struct Page<'a> {
    /// The id after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of applications.
    pub limit: i64,
}

impl Question for Page<'_> {
    type Fact = Vec<Client>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT data, secret, disabled_at, life, created, epoch FROM clients WHERE realm = ? AND id > ? \
                   ORDER BY id LIMIT ?";
        read(sql, values![realm, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, client)
    }
}

fn client(row: &mut Columns) -> Option<Client> {
    let data: Client = json(&row.text()?)?;
    let (secret, disabled_at, life) = (row.maybe_handle()?, row.maybe_time()?, row.maybe_text()?.map(LifeId));
    Some(Client { secret, disabled_at, life, created: row.time()?, epoch: row.int()?, ..data })
}

pub(super) fn add(realm: &RealmId, client: &Client) -> Write {
    let sql = "INSERT INTO clients (realm, id, data, secret, disabled_at, life, created, epoch) VALUES \
               (?, ?, ?, ?, ?, ?, ?, COALESCE((SELECT epoch FROM realms WHERE id = ?), 0))";
    let (disabled_at, life) = (client.disabled_at, client.life.as_ref());
    let row = values![realm, &client.id, to_json(client), client.secret, disabled_at, life, client.created, realm];
    write(sql, row, Must::Touch(1))
}

pub(super) fn save(realm: &RealmId, client: &Client) -> Write {
    let sql = "UPDATE clients SET data = ?, secret = ?, disabled_at = ?, life = ?, \
               epoch = COALESCE((SELECT epoch FROM realms WHERE id = ?), 0) WHERE realm = ? AND id = ?";
    let (disabled_at, life) = (client.disabled_at, client.life.as_ref());
    let row = values![to_json(client), client.secret, disabled_at, life, realm, realm, &client.id];
    write(sql, row, Must::Touch(1))
}

/// Removes an application and the consents for it. Its families die with it, because every use looks the client up. The
/// client goes first: a batch that grants it something meanwhile looks for it and waits.
pub(super) fn remove(realm: &RealmId, client: &ClientId) -> Vec<Write> {
    vec![
        write("DELETE FROM clients WHERE realm = ? AND id = ?", values![realm, client], Must::Touch(1)),
        write("DELETE FROM consents WHERE realm = ? AND client_id = ?", values![realm, client], Must::Any),
        write("DELETE FROM devices WHERE realm = ? AND client_id = ?", values![realm, client], Must::Any),
    ]
}

/// Restores an application as of `epoch`, unless it was changed later. Journals of older versions do not have its life.
pub(super) fn put_back(
    realm: &RealmId,
    client: &Client,
    (secret, disabled_at, life): (Option<Handle>, Option<Time>, Option<&LifeId>),
    epoch: i64,
) -> Write {
    let sql = "UPDATE clients SET data = ?, secret = ?, disabled_at = ?, life = COALESCE(?, life), epoch = ? \
               WHERE realm = ? AND id = ? AND epoch < ?";
    write(sql, values![to_json(client), secret, disabled_at, life, epoch, realm, &client.id, epoch], Must::Any)
}

/// Removes again what was removed at `epoch`, unless it was registered again later; earlier consents go with it.
pub(super) fn remove_again(realm: &RealmId, client: &ClientId, epoch: i64, upto: Time) -> Vec<Write> {
    let consents = "DELETE FROM consents WHERE realm = ? AND client_id = ? AND granted <= ?";
    let itself = "DELETE FROM clients WHERE realm = ? AND id = ? AND epoch < ?";
    vec![
        write(consents, values![realm, client, upto], Must::Any),
        write(itself, values![realm, client, epoch], Must::Any),
    ]
}
