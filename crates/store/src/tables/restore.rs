//! What a restored copy must not bring back to life, and whether a file is a copy of a Portiere database at all.

use super::row::{Columns, every};
use super::{Question, leases, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;
use serde_json::json;
use std::collections::BTreeMap;

/// Only runs on SQLite: the question is about its file.
pub(super) const OF_FILES: &str = "SELECT DISTINCT 'it has a ' || m.type || ' of its own' FROM sqlite_master AS m \
                                   WHERE m.sql LIKE 'CREATE VIRTUAL %' OR (m.type NOT IN ('table', 'index') AND NOT \
                                   (m.type = 'trigger' AND EXISTS (SELECT 1 FROM json_each(?) AS f \
                                   WHERE f.key = m.name AND f.value = m.sql))) \
                                   UNION ALL SELECT * FROM (SELECT quick_check FROM pragma_quick_check LIMIT 1)";

/// What the database itself finds wrong with its file, and what the file contains that no Portiere database has: a
/// trigger would act on writes, a view could stand in for a table, and both would survive any check of the rows. The
/// single line `ok` if nothing is wrong. Reads the whole file.
#[derive(Clone, Debug, Default)]
pub struct Soundness {
    /// The triggers that the file may have: the text of each, by its name. Both have to match.
    pub triggers: BTreeMap<String, String>,
}

impl Question for Soundness {
    type Fact = Vec<String>;
    fn read(&self, _realm: &RealmId) -> Read {
        read(OF_FILES, values![json!(self.triggers).to_string()])
    }
    fn fact(&self, rows: Vec<Row>) -> Option<Self::Fact> {
        every(rows, Columns::text)
    }
}

/// Why a worker is quarantined that the copy trusts: it may have been revoked since, or been found wrong.
pub const RESTORED: &str = "restored";

/// The first rows of a table in the order of a column, including all rows with the same value as the last one.
macro_rules! first {
    ($table:literal by $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE realm = ? AND ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE realm = ? ORDER BY ",
            $key,
            " LIMIT ?)"
        )
    };
}

/// Everything that may have been issued.
const ISSUED: [&str; 6] = [
    first!("sessions" by "id"),
    first!("families" by "id"),
    first!("codes" by "family"),
    first!("opaque_tokens" by "handle"),
    first!("devices" by "handle"),
    first!("consents" by "user_id"),
];

/// One batch that deletes what was issued before the copy was made: about `limit` rows each of sessions, token
/// families, codes, opaque tokens, waiting devices and consents, and all set-up links and worker tokens. It also stops
/// work for all workers and takes all jobs from earlier nodes. To be repeated until it touches fewer rows.
pub fn revive_nothing(realm: &RealmId, now: Time, limit: i64) -> Vec<Write> {
    let mut writes: Vec<Write> = ISSUED.iter().map(|sql| write(sql, values![realm, realm, limit], Must::Any)).collect();
    writes.extend([
        write(
            "UPDATE workers SET quarantined_at = ?, why = ? WHERE realm = ? AND quarantined_at IS NULL",
            values![now, RESTORED, realm],
            Must::Any,
        ),
        write("DELETE FROM setup_offers WHERE realm = ?", values![realm], Must::Any),
        write("DELETE FROM worker_tokens WHERE realm = ?", values![realm], Must::Any),
        leases::void(realm),
    ]);
    writes
}
