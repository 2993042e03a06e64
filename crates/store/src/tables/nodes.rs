//! Which nodes there are, each with a mark that it raises: a database that says less than a node remembers has lost
//! commits.

use super::row::every;
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;

/// A node, as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, the same at every start.
    pub node: String,
    /// When it was last there, by its own clock.
    pub seen: Time,
    /// How often it has said so.
    pub mark: i64,
}

/// Every node that was ever there.
pub struct All;

impl Question for All {
    type Fact = Vec<Node>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT node, seen, mark FROM nodes WHERE realm = ? ORDER BY node", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| Some(Node { node: row.text()?, seen: row.time()?, mark: row.int()? }))
    }
}

/// Raises a node's mark from what it `was`, if the node is known.
pub fn beat(realm: &RealmId, next: &Node, was: Option<i64>) -> Write {
    let Some(was) = was else {
        let sql = "INSERT INTO nodes (realm, node, seen, mark) VALUES (?, ?, ?, ?)";
        return write(sql, values![realm, next.node.as_str(), next.seen, next.mark], Must::Touch(1));
    };
    let sql = "UPDATE nodes SET seen = ?, mark = ? WHERE realm = ? AND node = ? AND mark = ?";
    write(sql, values![next.seen, next.mark, realm, next.node.as_str(), was], Must::Touch(1))
}
