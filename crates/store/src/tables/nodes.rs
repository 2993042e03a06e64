//! Which nodes there are, each with a mark that it raises: a database that says less than a node remembers has lost
//! commits.

use super::row::{Columns, every};
use super::{Question, read, values, write};
use crate::engine::{Durability, Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;

/// A node, as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, the same at every start where it has a journal.
    pub node: String,
    /// When it was last there, by its own clock.
    pub seen: Time,
    /// How often it has said so.
    pub mark: i64,
    /// What it says of itself; `None` for one that was last there before nodes did.
    pub about: Option<About>,
    /// Since when an operator does not count on its return.
    pub gone: Option<Time>,
}

impl Node {
    /// Whether it can say again what it acknowledged.
    pub fn keeps_journal(&self) -> bool {
        self.about.as_ref().is_none_or(|about| about.journal != Journal::Off)
    }

    /// Whether its last word was that it stops.
    pub fn has_stopped(&self) -> bool {
        self.about.as_ref().is_some_and(|about| about.journal == Journal::Closed)
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its program's version.
    pub version: String,
    /// What it takes an acknowledgement of the database to be worth.
    pub class: Durability,
    /// How it is with its journal.
    pub journal: Journal,
}

/// How it is with a node's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// What ends something is in it before it is acknowledged.
    Kept,
    /// Nothing acknowledged can be lost at present.
    Idle,
    /// It cannot be written.
    Failing,
    /// `store.journal = "off"`.
    Off,
    /// The node has stopped, as it was told to: nothing more comes into it until the node is started again.
    Closed,
}

/// Words of the database and of operators.
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
    /// As the database and operators read it.
    pub fn name(self) -> &'static str {
        word(&JOURNALS, &self)
    }
}

impl About {
    /// The class as the database and operators read it.
    pub fn class_name(&self) -> &'static str {
        word(&CLASSES, &self.class)
    }
}

/// Every node that was there and is not forgotten.
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

fn node(row: &mut Columns) -> Option<Node> {
    let (node, seen, mark, gone) = (row.text()?, row.time()?, row.int()?, row.maybe_time()?);
    let (version, class, journal) = (row.maybe_text()?, row.maybe_text()?, row.maybe_text()?);
    // A newer program may have words that this one does not know.
    let about = version.zip(class).zip(journal).map(|((version, class), journal)| About {
        version,
        class: named(&CLASSES, &class).unwrap_or(Durability::Bounded),
        journal: named(&JOURNALS, &journal).unwrap_or(Journal::Kept),
    });
    Some(Node { node, seen, mark, about, gone })
}

/// Raises a node's mark from what it `was`, if the node is known. It is there, whatever anybody thought.
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

/// Fails when a node is not counted on any more.
pub fn is_counted_on(realm: &RealmId, node: &str) -> Write {
    write("SELECT 1 FROM nodes WHERE realm = ? AND node = ? AND gone IS NULL", values![realm, node], Must::Find(1))
}

/// Does not count on a node any more. Fails when it has been there since it was looked at, or a fence waits for it. Its mark
/// stays, so that it is known again should it return.
///
/// Its row comes first: whoever raises a fence that waits for it holds that row ([`is_counted_on`]), so that one of the two sees
/// the other.
pub fn let_go(realm: &RealmId, node: &Node, at: Time) -> Vec<Write> {
    let waited = "SELECT 1 FROM fence_nodes WHERE realm = ? AND node = ? AND state = 'waiting'";
    let sql = "UPDATE nodes SET gone = ? WHERE realm = ? AND node = ? AND mark = ?";
    let name = node.node.as_str();
    vec![
        write(sql, values![at, realm, name, node.mark], Must::Touch(1)),
        write(waited, values![realm, name], Must::Find(0)),
    ]
}

/// Takes a node out, unless it has been there since it was looked at.
pub fn remove(realm: &RealmId, node: &str, mark: i64) -> Write {
    write("DELETE FROM nodes WHERE realm = ? AND node = ? AND mark = ?", values![realm, node, mark], Must::Any)
}
