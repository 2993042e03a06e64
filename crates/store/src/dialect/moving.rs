//! What has to be said differently to move a database: listing the tables, triggers that refuse writes, and pages.

use super::Dialect;

/// The error for a write to a database that is being moved or was moved. MySQL cuts it at 128 characters.
pub const REFUSAL: &str = "this database is being moved to another, or was moved: nothing is written to it any more";

/// The SQLSTATE with which PostgreSQL reports [`REFUSAL`].
pub(crate) const POSTGRES_STATE: &str = "PMOVE";

/// The kinds of write, for engines that need a trigger for each.
const EVENTS: [&str; 3] = ["insert", "update", "delete"];

const SQLITE_COLUMNS: &str = "SELECT m.name, c.name, lower(c.type), c.pk FROM sqlite_schema AS m \
     JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND substr(m.name, 1, 7) <> 'sqlite_' \
     ORDER BY m.name, c.cid";

const POSTGRES_COLUMNS: &str = "SELECT CAST(t.relname AS text), CAST(c.attname AS text), \
     CAST(CASE c.atttypid WHEN 20 THEN 'bigint' WHEN 25 THEN 'text' WHEN 17 THEN 'blob' \
     ELSE format_type(c.atttypid, c.atttypmod) END AS text), \
     CAST(COALESCE((SELECT k.place FROM pg_index AS i, unnest(i.indkey) WITH ORDINALITY AS k (att, place) \
     WHERE i.indrelid = t.oid AND i.indisprimary AND k.att = c.attnum), 0) AS bigint) \
     FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped \
     WHERE t.relkind IN ('r', 'p') AND t.relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) \
     AND NOT EXISTS (SELECT 1 FROM pg_depend AS d \
     WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = t.oid AND d.deptype = 'e') \
     ORDER BY t.relname COLLATE \"C\", c.attnum";

// Each part names the database itself, because MariaDB opens every table of the server for a view that is only joined.
const MYSQL_COLUMNS: &str = "SELECT f.table_name, f.column_name, \
     CASE WHEN f.data_type IN ('varchar', 'longtext') THEN 'text' \
     WHEN f.data_type IN ('varbinary', 'longblob') THEN 'blob' ELSE f.data_type END, CAST(f.place AS SIGNED) FROM (\
     SELECT c.table_name, c.column_name, c.data_type, c.ordinal_position, k.seq_in_index AS place \
     FROM information_schema.tables AS t \
     JOIN information_schema.columns AS c ON c.table_name = t.table_name \
     JOIN information_schema.statistics AS k ON k.table_name = c.table_name AND k.column_name = c.column_name \
     WHERE t.table_schema = DATABASE() AND c.table_schema = DATABASE() AND k.table_schema = DATABASE() \
     AND t.table_type = 'BASE TABLE' AND k.index_name = 'PRIMARY' \
     UNION ALL SELECT c.table_name, c.column_name, c.data_type, c.ordinal_position, 0 \
     FROM information_schema.tables AS t \
     JOIN information_schema.columns AS c ON c.table_name = t.table_name \
     WHERE t.table_schema = DATABASE() AND c.table_schema = DATABASE() \
     AND t.table_type = 'BASE TABLE' AND c.column_key <> 'PRI') AS f \
     ORDER BY f.table_name, f.ordinal_position";

const SQLITE_TABLES: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name";

// Without the tables of extensions such as PostGIS; the same above.
const POSTGRES_TABLES: &str = "SELECT CAST(t.relname AS text) FROM pg_class AS t WHERE t.relkind IN ('r', 'p') \
     AND t.relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) AND NOT EXISTS (SELECT 1 FROM pg_depend AS d \
     WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = t.oid AND d.deptype = 'e') \
     ORDER BY t.relname COLLATE \"C\"";

// Includes views: only opening a table would tell whether it is a view.
const MYSQL_TABLES: &str =
    "SELECT t.table_name FROM information_schema.tables AS t WHERE t.table_schema = DATABASE() ORDER BY t.table_name";

const SQLITE_FENCES: &str = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, 7) = 'moving_'";

const POSTGRES_FENCES: &str = "SELECT CAST(t.relname AS text) FROM pg_trigger AS f JOIN pg_class AS t ON t.oid = f.tgrelid \
     WHERE f.tgname = 'moving' AND t.relnamespace = CAST(quote_ident(current_schema()) AS regnamespace)";

// A user without the right to make triggers sees none, and has made none.
const MYSQL_FENCES: &str = "SELECT t.trigger_name FROM information_schema.triggers AS t \
     WHERE t.event_object_schema = DATABASE() AND SUBSTR(t.trigger_name, 1, 7) = 'moving_'";

impl Dialect {
    /// Lists a name for every fence that exists.
    pub(crate) fn fences(self) -> &'static str {
        match self {
            Dialect::Sqlite => SQLITE_FENCES,
            Dialect::Postgres => POSTGRES_FENCES,
            Dialect::Mysql => MYSQL_FENCES,
        }
    }

    /// Lists the name of every table. It runs at each start and opens no table.
    pub(crate) fn tables(self) -> &'static str {
        match self {
            Dialect::Sqlite => SQLITE_TABLES,
            Dialect::Postgres => POSTGRES_TABLES,
            Dialect::Mysql => MYSQL_TABLES,
        }
    }

    /// What [`Dialect::tables`] lists, in words for people.
    pub(crate) fn listed(self) -> &'static str {
        match self {
            Dialect::Sqlite | Dialect::Postgres => "tables",
            Dialect::Mysql => "tables or views",
        }
    }

    /// Lists every column of every table: table, column, type (`bigint`, `text`, `blob`, or the engine's own name), and
    /// its place in the primary key from 1, or 0.
    pub(crate) fn columns(self) -> &'static str {
        match self {
            Dialect::Sqlite => SQLITE_COLUMNS,
            Dialect::Postgres => POSTGRES_COLUMNS,
            Dialect::Mysql => MYSQL_COLUMNS,
        }
    }

    /// Statements after which no program can write a row of `table`. Running them twice is the same as once.
    pub(crate) fn fence(self, table: &str) -> Vec<String> {
        match self {
            Dialect::Sqlite => EVENTS
                .iter()
                .map(|event| {
                    format!(
                        "CREATE TRIGGER IF NOT EXISTS moving_{table}_{event} BEFORE {event} ON {table} \
                         BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
                    )
                })
                .collect(),
            // For each statement: a statement that writes many rows is refused at once.
            Dialect::Postgres => vec![format!(
                "DO $$ BEGIN CREATE TRIGGER moving BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} \
                 FOR EACH STATEMENT EXECUTE FUNCTION portiere_moving(); \
                 EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            )],
            Dialect::Mysql => EVENTS
                .iter()
                .map(|event| {
                    format!(
                        "CREATE TRIGGER moving_{table}_{event} BEFORE {event} ON {table} FOR EACH ROW \
                         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{REFUSAL}'"
                    )
                })
                .collect(),
        }
    }

    /// Statements that have to run before the first table is fenced.
    pub(crate) fn before_fences(self) -> Vec<String> {
        match self {
            Dialect::Postgres => vec![format!(
                "CREATE OR REPLACE FUNCTION portiere_moving() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = '{POSTGRES_STATE}'; END $$"
            )],
            Dialect::Sqlite | Dialect::Mysql => Vec::new(),
        }
    }

    /// The names under which [`Dialect::fences`] lists the whole fence of `table`.
    pub(crate) fn fence_names(self, table: &str) -> Vec<String> {
        match self {
            Dialect::Postgres => vec![table.to_owned()],
            Dialect::Sqlite | Dialect::Mysql => EVENTS.iter().map(|event| format!("moving_{table}_{event}")).collect(),
        }
    }

    /// Removes the fence of `table`, if it has one.
    pub(crate) fn unfence(self, table: &str) -> Vec<String> {
        let names = self.fence_names(table);
        match self {
            Dialect::Postgres => vec![format!("DROP TRIGGER IF EXISTS moving ON {table}")],
            Dialect::Sqlite | Dialect::Mysql => {
                names.iter().map(|name| format!("DROP TRIGGER IF EXISTS {name}")).collect()
            }
        }
    }

    /// Statements to run once for a table that was filled from empty: its plans are good from the first request on.
    pub(crate) fn filled(self, table: &str) -> Vec<String> {
        match self {
            Dialect::Sqlite => Vec::new(),
            Dialect::Postgres => vec![format!("ANALYZE {table}")],
            Dialect::Mysql => vec![format!("ANALYZE TABLE {table}")],
        }
    }

    /// The reads that together return the rows after a key, in order, up to a limit: all rows of one read come before
    /// all rows of the next. Each is returned with the number of key columns that it takes, from the first on.
    ///
    /// A comparison of whole keys is one range of an index on SQLite and PostgreSQL. MySQL would look at every row of
    /// the table, so there each read compares one column of the key by `>` and those before it by `=`.
    pub(crate) fn after(self, select: &str, table: &str, key: &[&str]) -> Vec<(String, usize)> {
        let names = key.join(", ");
        match self {
            Dialect::Sqlite | Dialect::Postgres => {
                let marks = vec!["?"; key.len()].join(", ");
                let sql = format!("{select} FROM {table} WHERE ({names}) > ({marks}) ORDER BY {names} LIMIT ?");
                vec![(sql, key.len())]
            }
            Dialect::Mysql => (1..=key.len())
                .rev()
                .map(|taken| {
                    let same: String = key[..taken - 1].iter().map(|name| format!("{name} = ? AND ")).collect();
                    let (next, rest) = (key[taken - 1], key[taken - 1..].join(", "));
                    let sql = format!(
                        "{select} FROM {table} FORCE INDEX (PRIMARY) WHERE {same}{next} > ? ORDER BY {rest} LIMIT ?"
                    );
                    (sql, taken)
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_fits_into_what_mysql_keeps_of_it() {
        assert!(REFUSAL.len() <= 128 && !REFUSAL.contains(['\'', '%']));
    }

    #[test]
    fn a_fence_has_the_names_that_are_looked_for() {
        for dialect in [Dialect::Sqlite, Dialect::Mysql] {
            let (made, names) = (dialect.fence("users"), dialect.fence_names("users"));
            assert_eq!(made.len(), names.len());
            assert!(made.iter().zip(&names).all(|(made, name)| made.contains(&format!(" {name} "))), "{made:?}");
        }
        assert_eq!(Dialect::Postgres.fence_names("users"), ["users"], "the name of the table is listed");
    }

    #[test]
    fn mysql_goes_through_a_key_from_its_last_column_to_its_first() {
        let reads = Dialect::Mysql.after("SELECT a", "t", &["a", "b"]);
        let texts: Vec<_> = reads.iter().map(|(sql, taken)| (sql.as_str(), *taken)).collect();
        assert_eq!(
            texts,
            [
                ("SELECT a FROM t FORCE INDEX (PRIMARY) WHERE a = ? AND b > ? ORDER BY b LIMIT ?", 2),
                ("SELECT a FROM t FORCE INDEX (PRIMARY) WHERE a > ? ORDER BY a, b LIMIT ?", 1),
            ]
        );
    }
}
