//! Lines that somebody may have left by writing into the table by hand: of no block, or with values no program writes.

use crate::dialect::Dialect;
use crate::engine::{Read, Row};
use crate::tables::events::{Window, line, select};
use crate::tables::row::{ALIEN, Columns, every, one};
use crate::tables::{Question, read, values};
use rules::audit::Line;
use rules::id::RealmId;

/// Like `whole!`, but -1 stands only for a block of NULL. No index finds these lines, but NULL sorts at one end.
macro_rules! nulls {
    ($rest:literal) => {
        concat!(
            "SELECT id, CASE WHEN at = (at | 0) THEN at ELSE -1 END, kind, user_id, client_id, session_id, address, request, ",
            "detail, CASE WHEN block IS NULL THEN -1 WHEN block > 0 AND block = (block | 0) THEN block ELSE 0 END ",
            "FROM events WHERE realm = ? ",
            $rest
        )
    };
}

/// A window of the whole log, whatever its columns hold.
pub struct Readable<'a>(pub Window<'a>);

impl Question for Readable<'_> {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        let sql = match self.0.newest_first {
            true => concat!(
                whole!(),
                "(",
                select!("AND id > ? AND id < ? ORDER BY id DESC LIMIT ?"),
                ") AS looked ORDER BY id DESC"
            ),
            false => {
                concat!(whole!(), "(", select!("AND id > ? AND id < ? ORDER BY id LIMIT ?"), ") AS looked ORDER BY id")
            }
        };
        read(sql, self.0.read(realm).args)
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// All lines that name one block, whatever their ids are, in the order of the ids.
pub struct Naming {
    /// The block.
    pub block: i64,
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Naming {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        // See `Unsealed`.
        read(
            lines!("AND block BETWEEN ? AND ? ORDER BY block, id LIMIT ?"),
            values![realm, self.block, self.block, self.limit],
        )
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// Where lines can be that name no existing block. Values of a column have one order across all types: numbers with or
/// without a fraction, text, bytes, and NULL at one end. These places, unsealed lines and existing blocks cover all.
#[derive(Clone, Copy, Debug)]
pub enum Astray {
    /// At the beginning, where some engines put NULL. Lines with NULL get -1, all others 0 or more, whatever they name.
    First,
    /// The same, at the end.
    Last,
    /// Below 0.
    Below,
    /// Between two blocks, both excluded.
    Among {
        /// The number of the earlier block.
        after: i64,
        /// The number of the later block.
        before: i64,
    },
    /// After the last block that was looked at. Lines that were sealed since then are left out.
    Beyond {
        /// The number of that block.
        after: i64,
    },
}

/// Lines that name no existing block.
pub struct Strays {
    /// Where to look.
    pub of: Astray,
    /// The maximum number of lines.
    pub limit: i64,
}

impl Question for Strays {
    type Fact = Vec<Line>;
    fn read(&self, realm: &RealmId) -> Read {
        let limit = self.limit;
        match self.of {
            Astray::First => read(nulls!("ORDER BY block, id LIMIT ?"), values![realm, limit]),
            Astray::Last => read(nulls!("ORDER BY block DESC, id DESC LIMIT ?"), values![realm, limit]),
            Astray::Below => read(lines!("AND block < 0 ORDER BY block, id LIMIT ?"), values![realm, limit]),
            Astray::Among { after, before } => {
                let sql = lines!("AND block > ? AND block < ? ORDER BY block, id LIMIT ?");
                read(sql, values![realm, after, before, limit])
            }
            // In one statement, because a line and its block are committed together.
            Astray::Beyond { after } => {
                let sql = lines!(
                    "AND block > ? AND NOT EXISTS (SELECT 1 FROM audit_blocks WHERE audit_blocks.realm = events.realm AND \
                     audit_blocks.number = events.block) ORDER BY block, id LIMIT ?"
                );
                read(sql, values![realm, after, limit])
            }
        }
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, line)
    }
}

/// Records of blocks whose number is that of no block: what stands there, as text. See [`Astray`] for the order.
#[derive(Clone, Copy, Debug)]
pub enum Misnumbered {
    /// Before this block.
    Before(i64),
    /// Between two blocks.
    Among(i64, i64),
    /// After this block, or after the place of the first.
    Beyond(i64),
}

impl Misnumbered {
    /// The most that are told.
    const MOST: i64 = 100;
}

impl Question for Misnumbered {
    type Fact = Vec<String>;
    fn read(&self, realm: &RealmId) -> Read {
        match *self {
            Misnumbered::Before(number) => read(
                "SELECT number FROM audit_blocks WHERE realm = ? AND number < ? \
                 AND (number < 1 OR number <> (number | 0)) ORDER BY number LIMIT ?",
                values![realm, number.max(1), Self::MOST],
            ),
            Misnumbered::Among(after, before) => read(
                "SELECT number FROM audit_blocks WHERE realm = ? AND number > ? AND number < ? AND number >= 1 \
                 AND number <> (number | 0) ORDER BY number LIMIT ?",
                values![realm, after, before, Self::MOST],
            ),
            Misnumbered::Beyond(after) => read(
                "SELECT number FROM audit_blocks WHERE realm = ? AND number > ? AND number >= 1 \
                 AND number <> (number | 0) ORDER BY number LIMIT ?",
                values![realm, after, Self::MOST],
            ),
        }
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, number)
    }
}

/// The record of a block that sorts after all others, if its number is that of no block: what stands there, as text.
pub struct Topmost;

impl Question for Topmost {
    type Fact = Option<String>;
    fn read(&self, realm: &RealmId) -> Read {
        read("SELECT number FROM audit_blocks WHERE realm = ? ORDER BY number DESC LIMIT ?", values![realm, 1i64])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let highest = one(rows, number)?;
        Some(highest.filter(|shown| !shown.parse::<i64>().is_ok_and(|number| number > 0)))
    }
}

/// A number as text, or whatever is in its place.
fn number(row: &mut Columns) -> Option<String> {
    let text = row.any_text()?;
    Some(text.strip_prefix(ALIEN).unwrap_or(&text).to_owned())
}

/// What the engine itself finds wrong with a table, in its words: all other questions trust the indexes.
pub struct Unsound {
    /// The table.
    pub table: &'static str,
    sql: &'static str,
}

impl Unsound {
    /// The most that is told of a table.
    const MOST: i64 = 100;

    /// For each table of the log; for none if the engine has no such check. Takes about a second for a million lines.
    pub fn tables(dialect: Dialect) -> Vec<Self> {
        let all = ["events", "audit_blocks", "audit_checkpoints"];
        dialect.soundness().map_or_else(Vec::new, |sql| all.map(|table| Unsound { table, sql }).into())
    }
}

impl Question for Unsound {
    type Fact = Vec<String>;
    fn read(&self, _: &RealmId) -> Read {
        read(self.sql, values![self.table, Unsound::MOST])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        let mut said = every(rows, |row| row.any_text())?;
        said.retain(|what| what != "ok");
        Some(said)
    }
}
