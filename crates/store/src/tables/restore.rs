//! What a restored copy must not bring back to life, and whether a file is a copy of ours at all.

use super::row::{Columns, every};
use super::{Question, leases, read, values, write};
use crate::engine::{Must, Read, Row, Write};
use rules::id::RealmId;
use rules::time::Time;
use serde_json::json;
use std::collections::BTreeMap;

/// Only SQLite is asked, whose file it is about.
pub(super) const OF_FILES: &str = "SELECT DISTINCT 'it has a ' || m.type || ' of its own' FROM sqlite_master AS m \
                                   WHERE m.sql LIKE 'CREATE VIRTUAL %' OR (m.type NOT IN ('table', 'index') AND NOT \
                                   (m.type = 'trigger' AND EXISTS (SELECT 1 FROM json_each(?) AS f \
                                   WHERE f.key = m.name AND f.value = m.sql))) \
                                   UNION ALL SELECT * FROM (SELECT quick_check FROM pragma_quick_check LIMIT 1)";

/// What the database itself finds wrong with its file, and what it holds that no database of ours has: a trigger would act on
/// what is written, a view stand in for a table, and both would outlive every look at the rows. The one line `ok` when nothing is.
/// Reads all of it.
#[derive(Clone, Debug, Default)]
pub struct Soundness {
    /// The triggers that it may have: the text of each, by its name. Both have to be the same.
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

/// Why a worker is quarantined that a copy says is trusted: it may have been revoked since, or been wrong.
pub const RESTORED: &str = "restored";

/// The first rows of a table in the order of a column, with all that have the last one's value there.
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

/// What may have been issued.
const ISSUED: [&str; 6] = [
    first!("sessions" by "id"),
    first!("families" by "id"),
    first!("codes" by "family"),
    first!("opaque_tokens" by "handle"),
    first!("devices" by "handle"),
    first!("consents" by "user_id"),
];

/// One batch that takes out what was issued before the copy was made: sessions, families of tokens, codes, opaque
/// tokens, devices that wait, consents, about `limit` rows of each, and the set-up link; then no worker is asked any more, and no
/// node of before has a job. To be run until it touches fewer.
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
