//! Failovers that may have lost acknowledged commits, and which nodes have replayed what they had acknowledged.
//!
//! While a node is waited for, the realm's `fenced` is the smallest id that is younger than the fence: every question
//! that loads a session or a family for use leaves out those with smaller ids.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::fresh::{first_id, time_of};
use rules::id::{ClientId, FamilyId, RealmId};
use rules::time::{Span, Time};

/// The least jump of the configuration epoch: further than the lost commits can have moved it, so that nothing that was
/// cached then is ever valid again.
const JUMP: i64 = 1_000_000;

/// Returns the configuration epoch after a fence. The lost commits may have included a fence of their own, which jumped
/// as far from the same number. So it is the fence's time in microseconds, which is beyond everything that followed an
/// earlier fence, as long as fewer than a thousand changes happen in a millisecond.
fn after(fence: &Fence) -> i64 {
    (fence.epoch + JUMP).max(fence.at.0.saturating_mul(1_000))
}

/// A failover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Counts from 1.
    pub number: i64,
    /// Everything that was issued up to this time is suspect.
    pub at: Time,
    /// The server that answers since then.
    pub identity: String,
    /// The configuration epoch that was found on it.
    pub epoch: i64,
}

impl Fence {
    /// Returns the smallest id that is younger than the fence.
    pub fn bound(&self) -> String {
        first_id(self.at + Span(1))
    }
}

/// The state of a node with regard to a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The node has not replayed yet what it had acknowledged.
    Waiting,
    /// The node has replayed it.
    Replayed,
    /// An operator decided not to wait for the node any longer.
    Waived,
    /// A state that only a later version knows, by name; possible during upgrades. The node is not waited for.
    Later(Box<str>),
}

impl State {
    /// The name of the state in the database and for operators.
    pub fn name(&self) -> &str {
        match self {
            State::Waiting => "waiting",
            State::Replayed => "replayed",
            State::Waived => "waived",
            State::Later(name) => name,
        }
    }
    fn stored(name: &str) -> Self {
        let known = [State::Waiting, State::Replayed, State::Waived].into_iter().find(|state| state.name() == name);
        known.unwrap_or_else(|| State::Later(name.into()))
    }
}

/// A node that a fence concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concerned {
    /// The number of the fence.
    pub number: i64,
    /// The name of the node.
    pub node: String,
    /// The state of the node.
    pub state: State,
    /// When it got into this state.
    pub at: Time,
}

/// The newest fence.
pub struct Newest;

impl Question for Newest {
    type Fact = Option<Fence>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT number, at, identity, epoch FROM fences WHERE realm = ? ORDER BY number DESC LIMIT 1";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, fence)
    }
}

/// The nodes of the last fences, the newest fence first, up to a limit, for display; [`Waiting`] leaves none out.
pub struct Nodes;

impl Question for Nodes {
    type Fact = Vec<Concerned>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql =
            "SELECT number, node, state, at FROM fence_nodes WHERE realm = ? ORDER BY number DESC, node LIMIT 200";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, concerned)
    }
}

/// The nodes that are waited for.
pub struct Waiting;

impl Question for Waiting {
    type Fact = Vec<Concerned>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT number, node, state, at FROM fence_nodes WHERE realm = ? AND state = 'waiting' ORDER BY number, node";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, concerned)
    }
}

/// The fences that a node has not answered, the oldest first: those that wait for it, and those that it does not know,
/// whether they waited for it or not. An operator may have waived it, or it was away for long when they were raised.
pub struct Unanswered<'a> {
    /// The node.
    pub node: &'a str,
    /// When the last fence was raised that it knows.
    pub known: Time,
}

impl Question for Unanswered<'_> {
    type Fact = Vec<Fence>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT number, at, identity, epoch FROM fences WHERE realm = ? AND (at > ? OR number IN \
                   (SELECT number FROM fence_nodes WHERE realm = ? AND node = ? AND state = 'waiting')) \
                   ORDER BY number";
        read(sql, values![realm, self.known, realm, self.node])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, fence)
    }
}

fn fence(row: &mut Columns) -> Option<Fence> {
    Some(Fence { number: row.int()?, at: row.time()?, identity: row.text()?, epoch: row.int()? })
}

fn concerned(row: &mut Columns) -> Option<Concerned> {
    Some(Concerned { number: row.int()?, node: row.text()?, state: State::stored(&row.text()?), at: row.time()? })
}

/// The smallest id that is young enough to be used; `None` while no node is waited for.
pub struct Fenced;

impl Question for Fenced {
    type Fact = Option<String>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT fenced FROM realms WHERE id = ?", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| row.maybe_text()).map(Option::flatten)
    }
}

/// Whether a family of this client exists that may not be used while a node is waited for.
pub struct Holds<'a>(pub &'a FamilyId, pub &'a ClientId);

impl Question for Holds<'_> {
    type Fact = bool;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT 1 FROM families f JOIN realms r ON r.id = f.realm \
                   WHERE f.realm = ? AND f.id = ? AND f.client_id = ? AND f.revoked_at IS NULL AND f.id < r.fenced";
        read(sql, values![realm, self.0, self.1])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        Some(!rows.is_empty())
    }
}

/// How far a database has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Its configuration epoch.
    pub epoch: i64,
    /// The bound of a fence that has not been lifted.
    pub fenced: Option<String>,
    /// When the youngest of its credible sessions and families was created, by the clock of the node that created it.
    pub newest: Time,
}

/// Asks how far the database has got, as far as its times are credible.
pub struct Reach {
    /// A later time comes from a wrong clock.
    pub by: Time,
}

impl Question for Reach {
    type Fact = Option<Reached>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT epoch, fenced, (SELECT MAX(id) FROM sessions WHERE realm = ? AND id < ?), \
                   (SELECT MAX(id) FROM families WHERE realm = ? AND id < ?) FROM realms WHERE id = ?";
        let end = first_id(self.by + Span(1));
        read(sql, values![realm, end.clone(), realm, end, realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| {
            let (epoch, fenced, session, family) =
                (row.int()?, row.maybe_text()?, row.maybe_text()?, row.maybe_text()?);
            let newest = [session, family].into_iter().flatten().map(|id| time_of(&id)).max();
            Some(Reached { epoch, fenced, newest: newest.unwrap_or(Time(0)) })
        })
    }
}

/// Fences that were raised before then, except the newest, which records the server that the nodes have seen, and those
/// for which a node is waited for.
pub struct Before(pub Time);

impl Question for Before {
    type Fact = Vec<i64>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT number FROM fences WHERE realm = ? AND at < ? \
                   AND number < (SELECT MAX(number) FROM fences WHERE realm = ?) \
                   AND number NOT IN (SELECT number FROM fence_nodes WHERE realm = ? AND state = 'waiting') \
                   ORDER BY number LIMIT 100";
        read(sql, values![realm, self.0, realm, realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::int)
    }
}

/// Removes a fence, unless a node is waited for.
pub fn remove(realm: &RealmId, number: i64) -> Vec<Write> {
    let waited = "SELECT 1 FROM fence_nodes WHERE realm = ? AND number = ? AND state = 'waiting'";
    let nodes = "DELETE FROM fence_nodes WHERE realm = ? AND number = ?";
    let fence = "DELETE FROM fences WHERE realm = ? AND number = ?";
    vec![
        write(waited, values![realm, number], Must::Find(0)),
        write(nodes, values![realm, number], Must::Any),
        write(fence, values![realm, number], Must::Any),
    ]
}

/// Raises a fence, unless another fence with its number was raised meanwhile or the configuration changed since it was
/// read. Voids every open code since `codes`, every open device request and every set-up link, and waits for `nodes`.
pub fn raise(realm: &RealmId, fence: &Fence, codes: Time, nodes: &[String]) -> Vec<Write> {
    let insert = "INSERT INTO fences (realm, number, at, identity, epoch) VALUES (?, ?, ?, ?, ?)";
    let bound = "UPDATE realms SET epoch = ?, fenced = CASE WHEN fenced > ? THEN fenced ELSE ? END \
                 WHERE id = ? AND epoch = ?";
    let void = "DELETE FROM codes WHERE realm = ? AND family >= ? AND redeemed_at IS NULL";
    let mut writes = vec![
        write(insert, values![realm, fence.number, fence.at, fence.identity.as_str(), fence.epoch], Must::Touch(1)),
        write(bound, values![after(fence), fence.bound(), fence.bound(), realm, fence.epoch], Must::Touch(1)),
        write(void, values![realm, first_id(codes)], Must::Any),
        write("DELETE FROM devices WHERE realm = ?", values![realm], Must::Any),
        // The record of which links another node had voided may be lost.
        write("DELETE FROM setup_offers WHERE realm = ?", values![realm], Must::Any),
    ];
    writes.extend(nodes.iter().map(|node| join(realm, fence.number, node, fence.at)));
    writes
}

/// Ends what clocks dated later than `by`, together with a fence: it is not behind the fence, so neither the fence nor
/// the replay would stop it.
pub fn end_later_than(realm: &RealmId, by: Time, at: Time) -> [Write; 2] {
    let from = first_id(by + Span(1));
    let sessions = "UPDATE sessions SET ended_at = ? WHERE realm = ? AND id >= ? AND ended_at IS NULL";
    let families = "UPDATE families SET revoked_at = ? WHERE realm = ? AND id >= ? AND revoked_at IS NULL";
    [sessions, families].map(|sql| write(sql, values![at, realm, from.clone()], Must::Any))
}

/// Waits for one more node, unless the fence already has it.
pub fn join(realm: &RealmId, number: i64, node: &str, at: Time) -> Write {
    let sql = "INSERT INTO fence_nodes (realm, number, node, state, at) VALUES (?, ?, ?, 'waiting', ?) \
               ON CONFLICT DO NOTHING";
    write(sql, values![realm, number, node, at], Must::Any)
}

/// Marks that a node has replayed what it had acknowledged before these fences, up to `number`, except for fences
/// raised up to `short`: the node's journal does not reach back to what they lost.
pub fn replayed(realm: &RealmId, (number, short): (i64, Time), node: &str, at: Time) -> Write {
    let sql = "UPDATE fence_nodes SET state = 'replayed', at = ? \
               WHERE realm = ? AND number <= ? AND node = ? AND state = 'waiting' \
               AND number IN (SELECT number FROM fences WHERE realm = ? AND at > ?)";
    write(sql, values![at, realm, number, node, realm, short], Must::Any)
}

/// Stops waiting for a node; fails if it is not waited for at all.
pub fn waive(realm: &RealmId, number: i64, node: &str, at: Time) -> Write {
    let sql = "UPDATE fence_nodes SET state = 'waived', at = ? \
               WHERE realm = ? AND number = ? AND node = ? AND state = 'waiting'";
    write(sql, values![at, realm, number, node], Must::Touch(1))
}

/// Lifts the fence: what was issued before may be used again. Fails while a node is waited for, or without a fence.
pub fn lift(realm: &RealmId) -> Vec<Write> {
    vec![
        write("SELECT 1 FROM realms WHERE id = ? AND fenced IS NOT NULL", values![realm], Must::Find(1)),
        write("SELECT 1 FROM fence_nodes WHERE realm = ? AND state = 'waiting'", values![realm], Must::Find(0)),
        write("UPDATE realms SET fenced = NULL WHERE id = ?", values![realm], Must::Touch(1)),
    ]
}
