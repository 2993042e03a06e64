//! Lines as somebody may have left them who wrote into the table by hand: of no block, or beside what no program writes.

use crate::engine::{Read, Row};
use crate::tables::events::{Window, line, select};
use crate::tables::row::every;
use crate::tables::{Question, read, values};
use rules::audit::Line;
use rules::id::RealmId;

/// The same with -1 for a block of NULL alone. No index tells which those are, but for their being at one end.
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

/// A window of the whole log, whatever stands in its columns.
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

/// All lines that name one block, whatever their ids are, in the order of those.
pub struct Naming {
    /// The block.
    pub block: i64,
    /// How many.
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

/// Where lines can be that name no block. What a column holds has one order, whatever its type is: numbers with or without a
/// fraction, text, bytes, and NULL at one end. So these, what is not sealed and the blocks that are there leave nothing out.
#[derive(Clone, Copy, Debug)]
pub enum Astray {
    /// At the beginning, where some engines put NULL. Lines of NULL have -1, the others no less than 0, whatever they name.
    First,
    /// The same at the end.
    Last,
    /// Below 0.
    Below,
    /// Between two blocks, neither of them included.
    Among {
        /// The one.
        after: i64,
        /// The other.
        before: i64,
    },
    /// After the last block that was looked at. What was sealed since is not among them.
    Beyond {
        /// That one.
        after: i64,
    },
}

/// Lines that name no block that is there.
pub struct Strays {
    /// Where.
    pub of: Astray,
    /// How many.
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
            // In one statement: a line is there when its block is.
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
