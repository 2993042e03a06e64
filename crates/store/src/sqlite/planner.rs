//! What SQLite's planner is told about the tables: the same on every machine and at every size.
//!
//! Every key begins with the realm, and there is only one. Without statistics the planner assumes ten rows per realm,
//! and scans a whole table although an index leads to the row. With counted statistics (`ANALYZE`), its plans would
//! depend on the data of the day. So it is always told about a large installation: only a whole key selects few rows.

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::group::{commit, execute, undo};

/// The rows of each table, all in one realm.
const ROWS: u64 = 1_000_000;
/// The rows that also share the second column of an index; each further column halves them.
const ALIKE: u64 = 10;

const INDEXES: &str = "SELECT t.name, CASE i.origin WHEN 'pk' THEN t.name ELSE i.name END, i.\"unique\", \
     (SELECT COUNT(*) FROM pragma_index_info(i.name)) FROM sqlite_schema AS t JOIN pragma_index_list(t.name) AS i \
     WHERE t.type = 'table' AND substr(t.name, 1, 7) <> 'sqlite_' ORDER BY 1, 2";

/// Table, index, and the row counts that remain after each of its first columns.
type Figure = (String, String, String);

/// Tells the planner, unless it already knows.
pub(super) fn tell(conn: &Connection) -> Result<(), Fault> {
    let figures = figures(conn)?;
    if known(conn)? == figures {
        return Ok(());
    }
    execute(conn, "BEGIN IMMEDIATE")?;
    let ran = write(conn, &figures).map_err(Fault::from).and_then(|()| commit(conn));
    undo(conn, &ran)?;
    ran?;
    // Makes SQLite read them.
    Ok(conn.execute_batch("ANALYZE sqlite_schema")?)
}

fn figures(conn: &Connection) -> rusqlite::Result<Vec<Figure>> {
    let mut indexes = conn.prepare(INDEXES)?;
    let found = indexes.query_map([], |row| Ok((row.get(0)?, row.get(1)?, rows(row.get(2)?, row.get(3)?))))?;
    found.collect()
}

/// The figures for an index with this many columns, the first of which is the realm.
fn rows(unique: bool, columns: u32) -> String {
    let left = |column| match column {
        last if unique && last == columns => 1,
        1 => ROWS,
        further => (ALIKE >> (further - 2)).max(1),
    };
    std::iter::once(ROWS).chain((1..=columns).map(left)).map(|rows| rows.to_string()).collect::<Vec<_>>().join(" ")
}

fn known(conn: &Connection) -> rusqlite::Result<Vec<Figure>> {
    if !conn.table_exists(None, "sqlite_stat1")? {
        return Ok(Vec::new());
    }
    let mut known = conn.prepare("SELECT tbl, COALESCE(idx, ''), stat FROM sqlite_stat1 ORDER BY 1, 2")?;
    known.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

fn write(conn: &Connection, figures: &[Figure]) -> rusqlite::Result<()> {
    // Only ANALYZE creates the table; the markers are few rows. As a new table it is a new schema, which all
    // connections read.
    conn.execute_batch(
        "DROP TABLE IF EXISTS sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4; \
         ANALYZE schema_steps; DELETE FROM sqlite_stat1",
    )?;
    let mut insert = conn.prepare("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)")?;
    figures.iter().try_for_each(|(table, index, stat)| insert.execute(params![table, index, stat]).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(conn: &Connection, sql: &str) -> String {
        conn.query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get(3)).unwrap()
    }

    #[test]
    fn an_index_is_used_whatever_is_in_the_table() {
        // Red without `tell`: it uses the primary key, with the realm alone.
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE schema_steps (a bigint);
             CREATE TABLE members (realm text, user_id text, group_id text, name text,
                                   PRIMARY KEY (realm, user_id, group_id)) WITHOUT ROWID;
             CREATE INDEX of_group ON members (realm, group_id);",
        )
        .unwrap();
        let delete = "DELETE FROM members WHERE realm = 'a' AND group_id = 'b' AND name > ''";
        assert_eq!(plan(&conn, delete), "SEARCH members USING PRIMARY KEY (realm=?)");
        tell(&conn).unwrap();
        let told = "SEARCH members USING INDEX of_group (realm=? AND group_id=?)";
        assert_eq!(plan(&conn, delete), told);
        conn.execute("INSERT INTO members VALUES ('a', 'b', 'c', 'd')", []).unwrap();
        conn.execute_batch("ANALYZE").unwrap();
        assert_ne!(known(&conn).unwrap(), figures(&conn).unwrap(), "what was counted");
        let schema = || conn.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0)).unwrap();
        let (before, ()) = (schema(), tell(&conn).unwrap());
        assert_ne!(schema(), before, "or connections that are open keep what was counted");
        assert_eq!((known(&conn).unwrap(), plan(&conn, delete)), (figures(&conn).unwrap(), told.to_owned()));
        let (before, ()) = (conn.total_changes(), tell(&conn).unwrap());
        assert_eq!(conn.total_changes(), before, "nothing is written where all is known");
    }

    /// Red where the third column leaves as many as the second: a user's ended rows would be scanned for the live ones.
    #[test]
    fn what_lives_is_found_without_what_does_not() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE schema_steps (a bigint);
             CREATE TABLE families (realm text, id text, user_id text, revoked_at bigint, PRIMARY KEY (realm, id)) WITHOUT ROWID;
             CREATE INDEX families_of_user ON families (realm, user_id);
             CREATE INDEX families_living ON families (realm, user_id, revoked_at);",
        )
        .unwrap();
        tell(&conn).unwrap();
        let end = "UPDATE families SET revoked_at = 1 WHERE realm = 'a' AND user_id = 'b' AND revoked_at IS NULL";
        let told = "SEARCH families USING COVERING INDEX families_living (realm=? AND user_id=? AND revoked_at=?)";
        assert_eq!(plan(&conn, end), told);
    }

    #[test]
    fn only_a_whole_unique_key_is_one_row() {
        assert_eq!(rows(true, 3), "1000000 1000000 10 1");
        assert_eq!(rows(false, 2), "1000000 1000000 10");
        assert_eq!(rows(false, 3), "1000000 1000000 10 5");
        assert_eq!(rows(true, 1), "1000000 1");
    }
}
