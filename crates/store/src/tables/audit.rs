//! The audit log as it is sealed and delivered: blocks, where their chain begins, and how far each stream has got.

use super::events::{about, line};
use super::row::{ALIEN, Columns, every, one};
use super::{Question, read, values, write};
use crate::engine::{Must, Read, Row, Sql, Value, Write};
use rules::audit::{Block, Checkpoint, Line, Link};
use rules::id::RealmId;
use rules::time::Time;

/// Selects blocks. A record whose number is not a whole one is none: SQLite keeps values of any type in any column.
macro_rules! blocks {
    ($rest:literal) => {
        concat!(
            "SELECT number, first_line, last_line, oldest, newest, sealed_at, key_id, digest, mac_before, mac ",
            "FROM audit_blocks WHERE realm = ? AND number = (number | 0) ",
            $rest
        )
    };
}

/// The number of a checkpoint; 0, which none has, for anything else that is there.
macro_rules! number {
    () => {
        "CASE WHEN number > 0 AND number = (number | 0) THEN number ELSE 0 END"
    };
}

/// Selects what [`line`] takes apart, with -1 for a time or a block that is not a whole number: SQLite keeps values of
/// any type in any column.
macro_rules! whole {
    () => {
        "SELECT id, CASE WHEN at = (at | 0) THEN at ELSE -1 END, kind, user_id, client_id, session_id, address, request, \
         detail, CASE WHEN block = (block | 0) THEN block ELSE -1 END FROM "
    };
}

/// The same, for the lines of a realm.
macro_rules! lines {
    ($rest:literal) => {
        concat!(whole!(), "events WHERE realm = ? ", $rest)
    };
}

mod strays;

pub use strays::{Astray, Misnumbered, Naming, Readable, Strays, Topmost, Unsound};

/// Committed lines that are not sealed yet, the oldest first. Lines that are committed late are among them.
pub struct Unsealed {
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Unsealed {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        // Goes by the index on blocks. For `block = 0 ORDER BY id`, planners scan the whole log by the primary key,
        // which already has that order; to some, a range from 0 to 0 is the same. Not `<= 0` alone: a line whose block
        // was set to a negative number by hand would be found, could not be sealed, and would keep all others from
        // being sealed; so would one with a fraction.
        let sql = lines!("AND block > -1 AND block <= 0 AND block = (block | 0) ORDER BY block, id LIMIT ?");
        read(sql, values![realm, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// Whether statements can name a line: its id may have been changed by hand to a value of another type.
pub fn is_nameable(line: &Line) -> bool {
    !line.id.starts_with(ALIEN)
}

/// How many lines are not sealed, and the id of the oldest of them.
pub struct Backlog;

impl Question for Backlog {
    type Fact = (i64, Option<String>);
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT COUNT(*), MIN(id) FROM events WHERE realm = ? AND block = 0", values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| Some((row.int()?, row.any_maybe_text()?)))?
    }
}

/// Like [`Backlog`], but stops counting at `most`: for callers that ask often.
pub struct BacklogUpTo {
    /// The number at which counting stops.
    pub most: i64,
}

impl Question for BacklogUpTo {
    type Fact = <Backlog as Question>::Fact;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT COUNT(*), MIN(id) FROM \
                   (SELECT id FROM events WHERE realm = ? AND block = 0 ORDER BY id LIMIT ?) AS oldest";
        read(sql, values![realm, self.most])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        Backlog.fact(rows)
    }
}

/// The end of the chain: the newest block, without the leaves of its lines.
pub struct Newest;

impl Question for Newest {
    type Fact = Option<Block>;
    fn read(&self, realm: &RealmId) -> Read {
        read(blocks!("AND number > ? ORDER BY number DESC LIMIT 1"), values![realm, 0i64])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, block)
    }
}

/// Blocks after a number, the oldest first, without the leaves of their lines.
pub struct After {
    /// The number.
    pub number: i64,
    /// The maximum number of blocks.
    pub limit: i64,
}

impl Question for After {
    type Fact = Vec<Block>;
    fn read(&self, realm: &RealmId) -> Read {
        read(blocks!("AND number > ? ORDER BY number LIMIT ?"), values![realm, self.number, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, block)
    }
}

/// Blocks before a number, the newest first, without the leaves of their lines.
pub struct Before {
    /// The number.
    pub number: i64,
    /// The maximum number of blocks.
    pub limit: i64,
}

impl Question for Before {
    type Fact = Vec<Block>;
    fn read(&self, realm: &RealmId) -> Read {
        read(blocks!("AND number < ? ORDER BY number DESC LIMIT ?"), values![realm, self.number, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, block)
    }
}

/// Blocks after a number, the oldest first, with the leaves of their lines.
pub struct Whole {
    /// The number.
    pub number: i64,
    /// The maximum number of blocks.
    pub limit: i64,
}

impl Question for Whole {
    type Fact = Vec<Block>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT number, first_line, last_line, oldest, newest, sealed_at, key_id, digest, mac_before, mac, \
                   leaves FROM audit_blocks WHERE realm = ? AND number = (number | 0) AND number > ? ORDER BY number \
                   LIMIT ?";
        read(sql, values![realm, self.number, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| {
            let block = block(row)?;
            Some(Block { leaves: row.any_blob()?, ..block })
        })
    }
}

fn block(row: &mut Columns) -> Option<Block> {
    Some(Block {
        number: row.int()?,
        first: row.any_int()?,
        last: row.any_int()?,
        oldest: row.any_time()?,
        newest: row.any_time()?,
        sealed_at: row.any_time()?,
        key: row.any_text()?,
        digest: row.any_blob()?,
        before: row.any_blob()?,
        mac: row.any_blob()?,
        leaves: Vec::new(),
    })
}

/// Where the chain begins, if it does not begin at its first block. Its number is 0 if the stored one is that of no
/// block.
pub struct Begins;

impl Question for Begins {
    type Fact = Option<Checkpoint>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = concat!(
            "SELECT ",
            number!(),
            ", last_line, mac, removed_at, key_id, seal FROM audit_checkpoints WHERE realm = ?"
        );
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| {
            Some(Checkpoint {
                number: row.any_int()?,
                last: row.any_int()?,
                mac: row.any_blob()?,
                removed_at: row.any_time()?,
                key: row.any_text()?,
                seal: row.any_blob()?,
            })
        })
    }
}

/// The lines of one block after an id, in the order of their ids.
pub struct Within<'a> {
    /// The block.
    pub block: i64,
    /// Only lines with greater ids.
    pub after: &'a str,
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Within<'_> {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        // See `Unsealed`.
        let sql = lines!("AND block BETWEEN ? AND ? AND id > ? ORDER BY block, id LIMIT ?");
        read(sql, values![realm, self.block, self.block, self.after, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// The lines of the blocks between two, both excluded, in the order in which they were sealed. A line whose `block` is
/// not a block number is not sealed, and left out.
pub struct Between {
    /// Only lines of later blocks.
    pub after: i64,
    /// Only lines of earlier blocks.
    pub before: i64,
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Between {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = lines!("AND block > ? AND block < ? AND block = (block | 0) ORDER BY block, id LIMIT ?");
        read(sql, values![realm, self.after, self.before, self.limit])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// How many lines of a block come after an id.
pub struct LeftOf<'a> {
    /// The block.
    pub block: i64,
    /// The id.
    pub after: &'a str,
}

impl Question for LeftOf<'_> {
    type Fact = (i64, Option<Time>);
    fn read(&self, realm: &RealmId) -> Read {
        // See `Unsealed`.
        let sql = "SELECT COUNT(*), MIN(CASE WHEN at = (at | 0) THEN at END) FROM (SELECT at FROM events WHERE realm = ? \
                   AND block BETWEEN ? AND ? AND id > ? ORDER BY block, id LIMIT ?) AS rest";
        read(sql, values![realm, self.block, self.block, self.after, i64::MAX])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        one(rows, |row| Some((row.int()?, if row.is_absent() { None } else { Some(row.any_time()?) })))?
    }
}

/// Seals lines in a block, to which they belong from then on. Does not commit if any of them was sealed meanwhile, or
/// if the block's number is taken.
pub fn seal(realm: &RealmId, block: &Block, lines: &[Line]) -> Vec<Write> {
    let insert = "INSERT INTO audit_blocks (realm, number, first_line, last_line, oldest, newest, sealed_at, key_id, \
               digest, leaves, mac_before, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let row = values![
        realm,
        block.number,
        block.first,
        block.last,
        block.oldest,
        block.newest,
        block.sealed_at,
        block.key.as_str(),
        block.digest.clone(),
        block.leaves.clone(),
        block.before.clone(),
        block.mac.clone(),
    ];
    let ids: Vec<String> = lines.iter().map(|line| line.id.clone()).collect();
    let sql = "UPDATE events SET block = ? WHERE realm = ? AND block = 0";
    let sealed = about(sql, values![block.number, realm], &ids);
    std::iter::once(write(insert, row, Must::Touch(1))).chain(sealed.into_iter().map(touching)).collect()
}

/// A write that has to touch all the lines that it is about.
fn touching((sql, args, lines): (Sql, Vec<Value>, usize)) -> Write {
    Write { sql, args, must: Must::Touch(lines as u64) }
}

/// Removes the `many` oldest blocks, numbered `from` to `until`, and records it in the checkpoint, unless another node
/// has done so meanwhile.
pub fn retire(
    realm: &RealmId,
    (from, until, many): (i64, i64, u64),
    (seen, next): (Option<&Checkpoint>, &Checkpoint),
) -> Vec<Write> {
    let note = match seen {
        None => {
            let sql = "INSERT INTO audit_checkpoints (realm, number, last_line, mac, removed_at, key_id, seal) \
                       VALUES (?, ?, ?, ?, ?, ?, ?)";
            let (key, mac, seal) = (next.key.as_str(), next.mac.clone(), next.seal.clone());
            write(sql, values![realm, next.number, next.last, mac, next.removed_at, key, seal], Must::Touch(1))
        }
        Some(seen) => {
            let sql = concat!(
                "UPDATE audit_checkpoints SET number = ?, last_line = ?, mac = ?, removed_at = ?, key_id = ?, ",
                "seal = ? WHERE realm = ? AND ",
                number!(),
                " = ?"
            );
            let (key, mac, seal) = (next.key.as_str(), next.mac.clone(), next.seal.clone());
            let row = values![next.number, next.last, mac, next.removed_at, key, seal, realm, seen.number];
            write(sql, row, Must::Touch(1))
        }
    };
    vec![
        note,
        write(
            "DELETE FROM audit_blocks WHERE realm = ? AND number >= ? AND number <= ? AND number = (number | 0)",
            values![realm, from, until],
            Must::Touch(many),
        ),
        write(
            "DELETE FROM events WHERE realm = ? AND block >= ? AND block <= ?",
            values![realm, from, until],
            Must::Any,
        ),
    ]
}

/// Removes lines that were never sealed. Does not commit if any of them was sealed meanwhile, or is gone.
pub fn drop_unsealed(realm: &RealmId, ids: impl Iterator<Item = String>) -> Vec<Write> {
    let ids: Vec<String> = ids.collect();
    about("DELETE FROM events WHERE realm = ? AND block = 0", values![realm], &ids).into_iter().map(touching).collect()
}

/// How far the delivery of a stream has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The place after the line that was delivered last.
    pub place: Place,
    /// When it was delivered.
    pub moved_at: Time,
    /// Why nothing more has been delivered since; empty when all is well.
    pub trouble: String,
}

/// A place in the sealed log: after a line of a block. Lines are delivered in the order in which they are sealed,
/// because that order has neither gaps nor late arrivals, while the order of ids has both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: i64,
    /// The line's id; empty for the place before the block's first line.
    pub line: String,
}

impl From<&Link> for Place {
    /// Returns the place after a whole block.
    fn from(link: &Link) -> Self {
        Place { block: link.number.saturating_add(1), line: String::new() }
    }
}

/// Every stream that was begun and not given up.
pub struct Streams;

impl Question for Streams {
    type Fact = Vec<Stream>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = "SELECT name, block, line, moved_at, trouble FROM audit_streams WHERE realm = ? ORDER BY name";
        read(sql, values![realm])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, |row| {
            Some(Stream {
                name: row.text()?,
                place: Place { block: row.int()?, line: row.text()? },
                moved_at: row.time()?,
                trouble: row.text()?,
            })
        })
    }
}

/// Begins a stream, unless it has begun already.
pub fn begin(realm: &RealmId, stream: &Stream) -> Write {
    let sql = "INSERT INTO audit_streams (realm, name, block, line, moved_at, trouble) VALUES (?, ?, ?, ?, ?, ?) \
               ON CONFLICT DO NOTHING";
    let (name, place) = (stream.name.as_str(), &stream.place);
    let row = values![realm, name, place.block, place.line.as_str(), stream.moved_at, stream.trouble.as_str()];
    write(sql, row, Must::Any)
}

/// Begins a stream. Does not commit if it has begun already.
pub fn begin_once(realm: &RealmId, stream: &Stream) -> Write {
    Write { must: Must::Touch(1), ..begin(realm, stream) }
}

/// Records how far a stream has got, unless another node has moved it on from `seen`.
pub fn advance(realm: &RealmId, seen: &Place, next: &Stream) -> Write {
    let sql = "UPDATE audit_streams SET block = ?, line = ?, moved_at = ?, trouble = ? \
               WHERE realm = ? AND name = ? AND block = ? AND line = ?";
    let place = &next.place;
    let to = values![place.block, place.line.as_str(), next.moved_at, next.trouble.as_str()];
    let of = values![realm, next.name.as_str(), seen.block, seen.line.as_str()];
    write(sql, [to, of].concat(), Must::Touch(1))
}

/// Gives a stream up.
pub fn forget(realm: &RealmId, name: &str) -> Write {
    write("DELETE FROM audit_streams WHERE realm = ? AND name = ?", values![realm, name], Must::Touch(1))
}
