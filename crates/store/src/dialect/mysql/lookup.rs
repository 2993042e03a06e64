//! Reads that only ask whether a row exists: several of them are combined into one read of several tables.
//!
//! Most of the cost of a short statement on these servers is opening and closing what it needs, and planning it.

use super::lock;

/// A read of exactly the form `SELECT 1 FROM table WHERE column = ? AND column IS NULL …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    table: String,
    conditions: Vec<String>,
}

impl Lookup {
    /// Returns `None` for any other statement.
    pub(super) fn of(sql: &str) -> Option<Self> {
        let (table, conditions) = sql.strip_prefix("SELECT 1 FROM ")?.split_once(" WHERE ")?;
        let is_plain = |condition: &&str| {
            let column = condition.strip_suffix(" = ?").or_else(|| condition.strip_suffix(" IS NULL"));
            column.is_some_and(is_name)
        };
        let conditions: Vec<&str> = conditions.split(" AND ").collect();
        let all = is_name(table) && conditions.iter().all(is_plain);
        all.then(|| Lookup { table: table.to_owned(), conditions: conditions.into_iter().map(str::to_owned).collect() })
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'_')
}

/// The text after the columns of a read that returns exactly one row if each lookup finds one row, and another number
/// of rows if one of them does not: the counts are multiplied, and all are one if their product is. The values follow
/// each other. The rows are locked in the order of the lookups, if each lookup finds its row by a unique key.
pub(super) fn joined(lookups: &[&Lookup], exclusive: bool) -> String {
    let tables: Vec<String> =
        lookups.iter().enumerate().map(|(at, lookup)| format!("{} portiere_t{at}", lookup.table)).collect();
    let of = |(at, lookup): (usize, &&Lookup)| {
        let conditions = lookup.conditions.iter().map(|condition| format!("portiere_t{at}.{condition}"));
        conditions.collect::<Vec<_>>().join(" AND ")
    };
    let conditions: Vec<String> = lookups.iter().enumerate().map(of).collect();
    format!("FROM {} WHERE {}{}", tables.join(", "), conditions.join(" AND "), lock(exclusive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_for_more_than_rows_by_plain_conditions_is_asked_alone() {
        assert!(Lookup::of("SELECT 1 FROM users WHERE realm = ? AND id = ? AND disabled_at IS NULL").is_some());
        for sql in [
            "SELECT 1 FROM users",
            "SELECT a FROM users WHERE realm = ?",
            "SELECT 1 FROM users u WHERE u.realm = ?",
            "SELECT 1 FROM users WHERE realm = ? AND id > ?",
            "SELECT 1 FROM users WHERE realm = ? OR id = ?",
            "SELECT 1 FROM realms WHERE id = ? AND fenced IS NOT NULL",
            "SELECT 1 FROM fence_nodes WHERE realm = ? AND state = 'waiting'",
            "SELECT 1 FROM users WHERE realm = ? LIMIT 1",
        ] {
            assert_eq!(Lookup::of(sql), None, "{sql}");
        }
    }

    #[test]
    fn each_table_is_asked_by_its_own_conditions() {
        let one = Lookup::of("SELECT 1 FROM users WHERE realm = ? AND id = ?").unwrap();
        let two = Lookup::of("SELECT 1 FROM users WHERE realm = ? AND password IS NULL").unwrap();
        assert_eq!(
            joined(&[&one, &two], false),
            "FROM users portiere_t0, users portiere_t1 WHERE portiere_t0.realm = ? AND portiere_t0.id = ? \
             AND portiere_t1.realm = ? AND portiere_t1.password IS NULL LOCK IN SHARE MODE"
        );
    }
}
