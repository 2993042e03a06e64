//! Every statement is answered by an index that leads to its rows, however many others there are: its plan is checked
//! whenever a test asks or writes something.

use rusqlite::Connection;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::engine::{Answer, Around, CommitError, Engine, Read, Row, Unavailable, Write};
use store::sqlite::{Options, Sqlite};

/// Tables that grow with people, requests or time. Of the others, all rows of a realm may be read.
const GROWING: [&str; 17] = [
    "users",
    "logins",
    "members",
    "sessions",
    "codes",
    "families",
    "consents",
    "devices",
    "opaque_tokens",
    "revoked_tokens",
    "assertions",
    "counters",
    "strangers",
    "rejections",
    "events",
    "audit_blocks",
    "clients",
];

/// Statements that may read more than they need: what an operator does now and then, to a user or a thing that is
/// removed, and what a user does who signs out everywhere.
const RARE: [&str; 4] = [
    "DELETE FROM devices WHERE realm = ? AND client_id = ?",
    "DELETE FROM devices WHERE realm = ? AND user_id = ?",
    "DELETE FROM devices WHERE realm = ? AND user_id = ? AND stage = 'approved' AND (? IS NULL OR client_id = ?)",
    // A restored copy has none of them any more.
    "DELETE FROM devices WHERE realm = ?",
];

/// An engine that answers only what it need not search for.
struct Planned {
    inside: Sqlite,
    seen: Mutex<(Connection, HashSet<String>)>,
}

/// The database in a file, with its tables.
pub async fn planned(file: &Path) -> Arc<dyn Engine> {
    let inside = Sqlite::open(Options::at(file), store::migrations::MIGRATIONS).unwrap();
    inside.migrate().await.unwrap();
    Arc::new(Planned { inside, seen: Mutex::new((Connection::open(file).unwrap(), HashSet::new())) })
}

impl Planned {
    fn look(&self, sql: &str) {
        let (connection, seen) = &mut *self.seen.lock().unwrap();
        if !seen.insert(sql.to_owned()) {
            return;
        }
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = plan.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>, _>>().unwrap();
        // The first rows in the order of an index are as near as any.
        let few = sql.contains("WHERE realm = ? ORDER BY") && sql.contains("LIMIT ") || RARE.contains(&sql);
        let searched = steps.iter().find(|step| !few && searches(step));
        assert!(searched.is_none(), "{searched:?} reads all there is: {sql}");
    }
}

/// Whether a step of a plan reads a whole table that grows, or all that a realm has in it.
fn searches(step: &str) -> bool {
    let mut words = step.split(' ');
    let (Some("SCAN" | "SEARCH"), Some(table)) = (words.next(), words.next()) else { return false };
    GROWING.contains(&table) && (step.starts_with("SCAN") || step.ends_with("(realm=?)"))
}

impl Around for Planned {
    fn inside(&self) -> &dyn Engine {
        &self.inside
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        reads.iter().for_each(|read| self.look(read.sql.text()));
        self.inside.fetch(reads)
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        writes.iter().for_each(|write| self.look(write.sql.text()));
        self.inside.commit(writes)
    }
}

#[test]
fn what_reads_a_realm_is_told_from_what_reads_a_row() {
    for (step, all) in [
        ("SCAN events", true),
        ("SEARCH events USING PRIMARY KEY (realm=?)", true),
        ("SEARCH events USING INDEX events_of_block (realm=?)", true),
        ("SEARCH events USING PRIMARY KEY (realm=? AND id>?)", false),
        ("SEARCH signing_keys USING PRIMARY KEY (realm=?)", false),
        ("USE TEMP B-TREE FOR ORDER BY", false),
        ("SCAN oldest", false),
    ] {
        assert_eq!(searches(step), all, "{step}");
    }
}
