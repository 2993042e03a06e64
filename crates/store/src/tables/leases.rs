//! Jobs that one node does for all nodes, for as long as its lease runs.

use super::row::one;
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;

/// Which node has a job, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The node.
    pub node: String,
    /// When the lease ends, unless it is renewed.
    pub until: Time,
}

/// The lease of a job, if the job was ever taken.
pub struct Of<'a>(pub &'a str);

impl Question for Of<'_> {
    type Fact = Option<Lease>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT node, until FROM leases WHERE realm = ? AND job = ?", values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| Some(Lease { node: row.text()?, until: row.time()? }))
    }
}

/// Takes or renews a lease, unless another node changed it since it was `seen`.
pub fn take(realm: &RealmId, job: &str, seen: Option<&Lease>, next: &Lease) -> Write {
    let Some(seen) = seen else {
        let sql = "INSERT INTO leases (realm, job, node, until) VALUES (?, ?, ?, ?)";
        return write(sql, values![realm, job, next.node.as_str(), next.until], Must::Touch(1));
    };
    let sql = "UPDATE leases SET node = ?, until = ? WHERE realm = ? AND job = ? AND node = ? AND until = ?";
    let row = values![next.node.as_str(), next.until, realm, job, seen.node.as_str(), seen.until];
    write(sql, row, Must::Touch(1))
}

/// Removes all leases, whichever node has them. For a caller that knows that no other node is running.
pub fn void(realm: &RealmId) -> Write {
    write("DELETE FROM leases WHERE realm = ?", values![realm], Must::Any)
}

/// Gives all leases of a node back, so that other nodes need not wait until they run out.
pub fn give_back(realm: &RealmId, node: &str) -> Vec<Write> {
    vec![write("DELETE FROM leases WHERE realm = ? AND node = ?", values![realm, node], Must::Any)]
}
