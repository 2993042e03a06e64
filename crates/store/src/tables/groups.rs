//! Groups of users.

use super::row::{Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::{FamilyId, GroupId, RealmId, UserId};

/// A group, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: GroupId,
    /// Its name, as it appears in the `groups` claim.
    pub name: String,
}

/// The names of a user's groups.
pub struct Of<'a>(pub &'a UserId);

impl Question for Of<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT g.name FROM members m JOIN user_groups g ON g.realm = m.realm AND g.id = m.group_id \
                   WHERE m.realm = ? AND m.user_id = ? ORDER BY g.name LIMIT 500";
        read(sql, values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// The names of the groups of a family's user.
pub struct OfFamily<'a>(pub Option<&'a FamilyId>);

impl Question for OfFamily<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT g.name FROM families f JOIN members m ON m.realm = f.realm AND m.user_id = f.user_id \
                   JOIN user_groups g ON g.realm = m.realm AND g.id = m.group_id \
                   WHERE f.realm = ? AND f.id = ? ORDER BY g.name LIMIT 500";
        read(sql, values![realm, self.0.map_or("", FamilyId::as_str)])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// Up to `limit` names of a user's groups after `after`.
pub struct PageOf<'a> {
    /// The user.
    pub user: &'a UserId,
    /// The name after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of names.
    pub limit: i64,
}

impl Question for PageOf<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT g.name FROM members m JOIN user_groups g ON g.realm = m.realm AND g.id = m.group_id \
                   WHERE m.realm = ? AND m.user_id = ? AND g.name > ? ORDER BY g.name LIMIT ?";
        read(sql, values![realm, self.user, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// A group by its name.
pub struct ByName<'a>(pub &'a str);

impl Question for ByName<'_> {
    type Fact = Option<Group>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT id, name FROM user_groups WHERE realm = ? AND name = ?", values![realm, self.0])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, group)
    }
}

/// Up to `limit` groups of a realm after `after`, by name.
pub struct Page<'a> {
    /// The name after which the page starts; empty for the first page.
    pub after: &'a str,
    /// The maximum number of groups.
    pub limit: i64,
}

impl Question for Page<'_> {
    type Fact = Vec<Group>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT id, name FROM user_groups WHERE realm = ? AND name > ? ORDER BY name LIMIT ?";
        read(sql, values![realm, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, group)
    }
}

fn group(row: &mut Columns) -> Option<Group> {
    Some(Group { id: GroupId(row.text()?), name: row.text()? })
}

pub(super) fn add(realm: &RealmId, group: &GroupId, name: &str) -> Write {
    let sql = "INSERT INTO user_groups (realm, id, name) VALUES (?, ?, ?)";
    write(sql, values![realm, group, name], Must::Touch(1))
}

pub(super) fn remove(realm: &RealmId, group: &GroupId) -> Vec<Write> {
    // The group goes first: a batch that adds a member checks the group's row.
    vec![
        write("DELETE FROM user_groups WHERE realm = ? AND id = ?", values![realm, group], Must::Touch(1)),
        write("DELETE FROM members WHERE realm = ? AND group_id = ?", values![realm, group], Must::Any),
    ]
}

pub(super) fn set_member(realm: &RealmId, group: &GroupId, user: &UserId, member: bool) -> Vec<Write> {
    let mut writes = Vec::with_capacity(4);
    if member {
        // Locks both, so that neither is removed meanwhile: the member's row would stay for ever.
        let theirs = "SELECT 1 FROM users WHERE realm = ? AND id = ?";
        writes.push(write(theirs, values![realm, user], Must::Find(1)));
        let its = "SELECT 1 FROM user_groups WHERE realm = ? AND id = ?";
        writes.push(write(its, values![realm, group], Must::Find(1)));
    }
    let out = "DELETE FROM members WHERE realm = ? AND user_id = ? AND group_id = ?";
    writes.push(write(out, values![realm, user, group], Must::Any));
    if member {
        let sql = "INSERT INTO members (realm, user_id, group_id, epoch) \
                   VALUES (?, ?, ?, COALESCE((SELECT epoch FROM realms WHERE id = ?), 0))";
        writes.push(write(sql, values![realm, user, group, realm], Must::Touch(1)));
    }
    writes
}
