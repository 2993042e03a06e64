//! What a user holds, found and ended or removed some at a time: a database server rolls back a batch that takes too long, and
//! nothing of it is ended then.

use super::events::{about, listed};
use super::row::{Columns, every};
use super::{Question, read, values};
use crate::dialect::LONGEST_LIST;
use crate::engine::{Must, Read, Row, SENT_AT_ONCE, Sql, Value, Write};
use rules::id::{RealmId, SessionId, UserId};
use rules::time::Time;

/// How many rows one batch ends.
pub const AT_ONCE: usize = LONGEST_LIST * SENT_AT_ONCE;

/// What of a user is ended some at a time.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    /// Sessions.
    Sessions,
    /// Families of tokens.
    Families,
}

/// Ids of live rows of a user, [`AT_ONCE`] at most, in no order: those that were found are ended before more are looked
/// for, and no index has the live ones in order.
pub struct Living<'a> {
    /// The kind of rows.
    pub kept: Kept,
    /// The user.
    pub user: &'a UserId,
    /// A session that goes on.
    pub except: Option<&'a SessionId>,
}

impl Question for Living<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let most = i64::try_from(AT_ONCE).unwrap_or(i64::MAX);
        match self.kept {
            Kept::Sessions => {
                let sql = "SELECT id FROM sessions WHERE realm = ? AND user_id = ? AND ended_at IS NULL AND id <> ? \
                           LIMIT ?";
                read(sql, values![realm, self.user, self.except.map_or("", SessionId::as_str), most])
            }
            Kept::Families => {
                let sql = "SELECT id FROM families WHERE realm = ? AND user_id = ? AND revoked_at IS NULL LIMIT ?";
                read(sql, values![realm, self.user, most])
            }
        }
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// One batch that ends the rows with these ids.
pub fn end(realm: &RealmId, kept: Kept, ids: &[String], at: Time) -> Vec<Write> {
    let sql = match kept {
        Kept::Sessions => "UPDATE sessions SET ended_at = ? WHERE realm = ? AND ended_at IS NULL",
        Kept::Families => "UPDATE families SET revoked_at = ? WHERE realm = ? AND revoked_at IS NULL",
    };
    writes(about(sql, values![at, realm], ids))
}

/// Ids of rows of a user, live or not, [`AT_ONCE`] at most.
pub struct Held<'a> {
    /// The kind of rows.
    pub kept: Kept,
    /// The user.
    pub user: &'a UserId,
}

impl Question for Held<'_> {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = match self.kept {
            Kept::Sessions => "SELECT id FROM sessions WHERE realm = ? AND user_id = ? LIMIT ?",
            Kept::Families => "SELECT id FROM families WHERE realm = ? AND user_id = ? LIMIT ?",
        };
        read(sql, values![realm, self.user, i64::try_from(AT_ONCE).unwrap_or(i64::MAX)])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// The batches that remove the rows with these ids; before families, the codes from which they came. Of codes that
/// nobody redeemed there is no family: a sweep takes them within minutes.
pub fn remove(realm: &RealmId, kept: Kept, ids: &[String]) -> Vec<Vec<Write>> {
    let args = values![realm];
    match kept {
        Kept::Sessions => vec![writes(about("DELETE FROM sessions WHERE realm = ?", args, ids))],
        Kept::Families => {
            let among = " AND family >= ? AND family <= ? AND family IN ";
            let codes = listed(("DELETE FROM codes WHERE realm = ?", among), &args, ids);
            vec![writes(codes), writes(about("DELETE FROM families WHERE realm = ?", args, ids))]
        }
    }
}

fn writes(statements: Vec<(Sql, Vec<Value>, usize)>) -> Vec<Write> {
    statements.into_iter().map(|(sql, args, _)| Write { sql, args, must: Must::Any }).collect()
}
