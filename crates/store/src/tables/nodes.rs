//! The nodes, each with a mark that it raises: a database with a lower mark than the node remembers has lost commits.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Durability, Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;

/// A node, as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, which stays the same at every start if the node has a journal.
    pub node: String,
    /// When it was last seen, by its own clock.
    pub seen: Time,
    /// How often it has reported.
    pub mark: i64,
    /// What it reports about itself; `None` for a node that was last seen before nodes did so.
    pub about: Option<About>,
    /// Since when an operator does not expect it to return.
    pub gone: Option<Time>,
}

impl Node {
    /// Whether it can replay what it acknowledged.
    pub fn keeps_journal(&self) -> bool {
        self.about.as_ref().is_none_or(|about| about.journal != Journal::Off)
    }

    /// Whether the last thing it reported was that it stops.
    pub fn has_stopped(&self) -> bool {
        self.about.as_ref().is_some_and(|about| about.journal == Journal::Closed)
    }
}

/// What a node reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its program's version.
    pub version: String,
    /// How safe it takes a commit that the database acknowledged to be.
    pub class: Durability,
    /// The state of its journal.
    pub journal: Journal,
}

/// The state of a node's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// What ends something is in the journal before it is acknowledged.
    Kept,
    /// Nothing acknowledged can be lost at present.
    Idle,
    /// The journal cannot be written.
    Failing,
    /// `store.journal = "off"`.
    Off,
    /// The node has stopped as it was told to: nothing more is journalled until it is started again.
    Closed,
}

/// The names in the database and for operators.
const JOURNALS: [(Journal, &str); 5] = [
    (Journal::Kept, "kept"),
    (Journal::Idle, "idle"),
    (Journal::Failing, "failing"),
    (Journal::Off, "off"),
    (Journal::Closed, "closed"),
];
const CLASSES: [(Durability, &str); 3] =
    [(Durability::ZeroLoss, "zero-loss"), (Durability::DurableNode, "durable"), (Durability::Bounded, "bounded-loss")];

fn named<T: Copy>(words: &[(T, &str)], name: &str) -> Option<T> {
    words.iter().find(|(_, word)| *word == name).map(|(one, _)| *one)
}

fn word<T: PartialEq>(words: &[(T, &'static str)], of: &T) -> &'static str {
    words.iter().find(|(one, _)| one == of).map_or("", |(_, word)| word)
}

impl Journal {
    /// The name of the state in the database and for operators.
    pub fn name(self) -> &'static str {
        word(&JOURNALS, &self)
    }
}

impl About {
    /// The name of the class in the database and for operators.
    pub fn class_name(&self) -> &'static str {
        word(&CLASSES, &self.class)
    }
}

/// Every node that was seen and has not been removed.
pub struct All;

impl Question for All {
    type Fact = Vec<Node>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT node, seen, mark, gone, version, class, journal FROM nodes WHERE realm = ? ORDER BY node";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, node)
    }
}

/// The mark of a node, if the node has a row. Only columns of the first version of the table are read.
pub struct Mark<'a>(pub &'a str);

impl Question for Mark<'_> {
    type Fact = Option<i64>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT mark FROM nodes WHERE realm = ? AND node = ?", values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, Columns::int)
    }
}

fn node(row: &mut Columns) -> Option<Node> {
    let (node, seen, mark, gone) = (row.text()?, row.time()?, row.int()?, row.maybe_time()?);
    let (version, class, journal) = (row.maybe_text()?, row.maybe_text()?, row.maybe_text()?);
    // A newer program may write words that this program does not know.
    let about = version.zip(class).zip(journal).map(|((version, class), journal)| About {
        version,
        class: named(&CLASSES, &class).unwrap_or(Durability::Bounded),
        journal: named(&JOURNALS, &journal).unwrap_or(Journal::Kept),
    });
    Some(Node { node, seen, mark, about, gone })
}

/// Raises a node's mark from `was`, or adds the node if that is `None`. A node that reports is not gone.
pub fn beat(realm: &RealmId, next: &Node, was: Option<i64>) -> Write {
    let about = next.about.as_ref();
    let version = about.map(|about| about.version.as_str());
    let (class, journal) = (about.map(About::class_name), about.map(|about| about.journal.name()));
    let node = next.node.as_str();
    let Some(was) = was else {
        let sql = "INSERT INTO nodes (realm, node, seen, mark, version, class, journal) VALUES (?, ?, ?, ?, ?, ?, ?)";
        return write(sql, values![realm, node, next.seen, next.mark, version, class, journal], Must::Touch(1));
    };
    let sql = "UPDATE nodes SET seen = ?, mark = ?, version = ?, class = ?, journal = ?, gone = NULL \
               WHERE realm = ? AND node = ? AND mark = ?";
    write(sql, values![next.seen, next.mark, version, class, journal, realm, node, was], Must::Touch(1))
}

/// Fails if the node is no longer expected to return.
pub fn is_counted_on(realm: &RealmId, node: &str) -> Write {
    write("SELECT 1 FROM nodes WHERE realm = ? AND node = ? AND gone IS NULL", values![realm, node], Must::Find(1))
}

/// Stops expecting a node to return. Fails if the node has reported since it was read, or if a fence waits for it. Its
/// mark stays, so that the node is recognized if it returns.
///
/// The node's row comes first: a batch that raises a fence that waits for the node locks that row ([`is_counted_on`]),
/// so one of the two sees the other.
pub fn let_go(realm: &RealmId, node: &Node, at: Time) -> Vec<Write> {
    let waited = "SELECT 1 FROM fence_nodes WHERE realm = ? AND node = ? AND state = 'waiting'";
    let sql = "UPDATE nodes SET gone = ? WHERE realm = ? AND node = ? AND mark = ?";
    let name = node.node.as_str();
    vec![
        write(sql, values![at, realm, name, node.mark], Must::Touch(1)),
        write(waited, values![realm, name], Must::Find(0)),
    ]
}

/// Removes a node, unless it has reported since it was read.
pub fn remove(realm: &RealmId, node: &str, mark: i64) -> Write {
    write("DELETE FROM nodes WHERE realm = ? AND node = ? AND mark = ?", values![realm, node, mark], Must::Any)
}
