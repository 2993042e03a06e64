//! What a restored copy must not bring back to life, and whether a file is a copy of a Portiere database at all.

use super::row::{Columns, every};
use super::sweep::first;
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

/// What may have been issued before a copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// Sessions.
    Sessions,
    /// Families of refresh and access tokens.
    Families,
    /// Authorization codes.
    Codes,
    /// Opaque access tokens.
    OpaqueTokens,
    /// Devices that wait for an answer or for their tokens.
    Devices,
    /// Consents.
    Consents,
}

impl Issued {
    /// All of it.
    pub const ALL: [Issued; 6] =
        [Issued::Sessions, Issued::Families, Issued::Codes, Issued::OpaqueTokens, Issued::Devices, Issued::Consents];

    /// Deletes the first `limit` rows, and of consents all of the users who have them. To be repeated until it touches
    /// fewer.
    pub fn drop_first(self, realm: &RealmId, limit: i64) -> Write {
        let sql = match self {
            Issued::Sessions => first!("sessions" by "id", "id"),
            Issued::Families => first!("families" by "id", "id"),
            Issued::Codes => first!("codes" by "family", "family"),
            Issued::OpaqueTokens => first!("opaque_tokens" by "expires", "handle"),
            Issued::Devices => first!("devices" by "expires", "handle"),
            Issued::Consents => first!("consents" by "user_id", "user_id"),
        };
        write(sql, values![realm, realm, limit, realm, limit], Must::Any)
    }
}

/// One batch that stops work for all workers, first of all, deletes all set-up links and worker tokens, and takes all
/// jobs from earlier nodes.
pub fn trust_nobody(realm: &RealmId, now: Time) -> Vec<Write> {
    vec![
        write(
            "UPDATE workers SET quarantined_at = ?, why = ? WHERE realm = ? AND quarantined_at IS NULL",
            values![now, RESTORED, realm],
            Must::Any,
        ),
        write("DELETE FROM setup_offers WHERE realm = ?", values![realm], Must::Any),
        write("DELETE FROM worker_tokens WHERE realm = ?", values![realm], Must::Any),
        leases::void(realm),
    ]
}
