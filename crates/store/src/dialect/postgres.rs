//! What has to be said differently for PostgreSQL.
//!
//! `?` becomes `$1`, `$2` and so on; text columns compare as bytes (`COLLATE "C"`), `blob` is `bytea`, and there is no
//! `WITHOUT ROWID`. Statements of a batch are wrapped so that the server itself raises an error where a row count is
//! wrong: only then can a whole batch, including its commit, be sent without waiting for an answer in between.

use std::ops::Range;

use crate::engine::Must;

/// The SQLSTATE that a wrapped statement raises: division by zero, which nothing else here can cause.
pub(crate) const RAISED: &str = "22012";

/// What the same batch may do later to the rows that a locking read finds. Taking the stronger lock at once makes two
/// rivals queue; if both held the weaker lock, neither could ever get the stronger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// Nothing, and an advisory lock on the row's name is held ([`SHARE`]).
    Held,
    /// Nothing: other batches may find them too.
    Share,
    /// They are updated.
    Update,
    /// They are deleted.
    Delete,
}

impl Lock {
    fn clause(self) -> &'static str {
        match self {
            Lock::Held => "",
            Lock::Share => " FOR SHARE",
            Lock::Update => " FOR NO KEY UPDATE",
            Lock::Delete => " FOR UPDATE",
        }
    }
}

/// Holds an advisory lock until the batch ends, together with all others that share it.
pub(crate) const SHARE: &str = "SELECT pg_advisory_xact_lock_shared(?)";

/// Holds an advisory lock exclusively.
pub(crate) const ALONE: &str = "SELECT pg_advisory_xact_lock(?)";

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For the rows that it returns.
    Read,
    /// For its effect; the server reports how many rows it touched.
    Plain,
    /// Wrapped: it takes the required count as one more argument, and raises [`RAISED`] at any other count.
    Guarded(Lock),
}

impl Form {
    /// Returns how a statement of a batch is run.
    pub(crate) fn of(sql: &str, must: Must, lock: Lock) -> Self {
        match must {
            Must::Any => Form::Plain,
            // It inserts its one row, or fails.
            Must::Touch(1) | Must::Find(1) if inserts_one(sql) => Form::Plain,
            Must::Touch(_) | Must::Find(_) => Form::Guarded(lock),
        }
    }
}

/// Translates a statement for PostgreSQL, and returns it with the number of its `?` placeholders.
pub(crate) fn translate(sql: &str, form: Form) -> (String, usize) {
    let (text, count) = numbered(sql);
    let next = count + 1;
    // The division is not a constant expression, because the planner would evaluate a constant one.
    let guard = |rows: String| {
        format!("SELECT CASE WHEN count(*) = ${next} THEN count(*) ELSE 0 / (count(*) * 0) END FROM {rows}")
    };
    let text = match form {
        Form::Read | Form::Plain => text,
        Form::Guarded(lock) if verb(sql) == Verb::Select => guard(format!("({text}{}) AS found", lock.clause())),
        Form::Guarded(_) => format!("WITH touched AS ({text} RETURNING 1) {}", guard("touched".to_owned())),
    };
    (text, count)
}

/// Translates a step of the schema.
pub(crate) fn schema(step: &str) -> String {
    let mut text = String::with_capacity(step.len() + 64);
    for piece in pieces(step) {
        match piece {
            "text" => text.push_str("text COLLATE \"C\""),
            "blob" => text.push_str("bytea"),
            "WITHOUT" | "ROWID" => {}
            other => text.push_str(other),
        }
    }
    text
}

/// What a statement does to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// SELECT.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// Anything else.
    Other,
}

/// Returns what a statement does.
pub(crate) fn verb(sql: &str) -> Verb {
    match sql.split_whitespace().next() {
        Some("SELECT") => Verb::Select,
        Some("INSERT") => Verb::Insert,
        Some("UPDATE") => Verb::Update,
        Some("DELETE") => Verb::Delete,
        _ => Verb::Other,
    }
}

/// Returns the table that a statement works on: the first, if it reads several.
pub(crate) fn table(sql: &str) -> Option<&str> {
    let mut words = sql.split_whitespace();
    match verb(sql) {
        Verb::Update => words.nth(1),
        Verb::Insert => words.nth(2),
        Verb::Select | Verb::Delete => words.skip_while(|word| *word != "FROM").nth(1),
        Verb::Other => None,
    }
}

/// Returns which arguments name the one row that a statement is about, if its condition begins with `named`.
pub(crate) fn names_row(sql: &str, named: &str) -> Option<Range<usize>> {
    let (before, _) = sql.split_once(named)?;
    let at = before.matches('?').count();
    Some(at..at + named.matches('?').count())
}

/// Whether a statement inserts exactly one row, or fails.
fn inserts_one(sql: &str) -> bool {
    let values = sql.split_once("VALUES").map(|(_, values)| values);
    verb(sql) == Verb::Insert
        && values.is_some_and(|values| values.matches('(').count() == 1)
        && !sql.contains("ON CONFLICT")
}

/// Replaces each `?` with `$1`, `$2` and so on, and returns how many there are. A cast states the type where the server
/// cannot infer it: for an argument that is only compared with NULL, and for a position in SUBSTR, which is no bigint.
fn numbered(sql: &str) -> (String, usize) {
    let mut text = String::with_capacity(sql.len() + 32);
    let mut count = 0;
    let mut calls: Vec<&str> = Vec::new();
    let pieces: Vec<&str> = pieces(sql).collect();
    let mut before = "";
    for (at, &piece) in pieces.iter().enumerate() {
        match piece {
            "(" => calls.push(before),
            ")" => drop(calls.pop()),
            _ => {}
        }
        if piece == "?" {
            count += 1;
            let mut after = pieces[at + 1..].iter().filter(|piece| !piece.trim().is_empty());
            let position = calls.last().is_some_and(|call| call.eq_ignore_ascii_case("SUBSTR"));
            text.push_str(&match after.next() {
                _ if position => format!("CAST(${count} AS integer)"),
                Some(&"IS") => format!("CAST(${count} AS text)"),
                _ => format!("${count}"),
            });
        } else {
            text.push_str(piece);
        }
        if !piece.trim().is_empty() {
            before = piece;
        }
    }
    (text, count)
}

/// Cuts a statement into words, quoted strings, and single characters of anything else.
fn pieces(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let length = match first {
            // A doubled quote in a string reads as two adjacent strings, which does no harm here.
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            first if word(first) => rest.find(|letter| !word(letter)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_of_strings() {
        let numbered = |sql| translate(sql, Form::Read);
        assert_eq!(
            numbered("SELECT a FROM t WHERE b = ? AND c = ?"),
            ("SELECT a FROM t WHERE b = $1 AND c = $2".into(), 2)
        );
        assert_eq!(
            numbered("SELECT '?', 'it''s ?' FROM t LIMIT ?"),
            ("SELECT '?', 'it''s ?' FROM t LIMIT $1".into(), 1)
        );
        assert_eq!(numbered("SELECT 1"), ("SELECT 1".into(), 0));
    }

    #[test]
    fn a_type_is_said_where_the_server_cannot_know_it() {
        let text = |sql| translate(sql, Form::Plain).0;
        assert_eq!(
            text("DELETE FROM t WHERE (? IS NULL OR a = ?)"),
            "DELETE FROM t WHERE (CAST($1 AS text) IS NULL OR a = $2)"
        );
        assert_eq!(
            text("SELECT a FROM t WHERE SUBSTR(b, 1, ?) <> ? AND COALESCE(b, ?) = ?"),
            "SELECT a FROM t WHERE SUBSTR(b, 1, CAST($1 AS integer)) <> $2 AND COALESCE(b, $3) = $4"
        );
    }

    #[test]
    fn columns_get_types_of_this_engine() {
        assert_eq!(
            schema("CREATE TABLE t (a text NOT NULL, context blob, n bigint, PRIMARY KEY (a)) WITHOUT ROWID").trim(),
            "CREATE TABLE t (a text COLLATE \"C\" NOT NULL, context bytea, n bigint, PRIMARY KEY (a))"
        );
        assert_eq!(schema("CREATE INDEX i ON t (a)"), "CREATE INDEX i ON t (a)");
    }

    #[test]
    fn a_count_that_must_be_raises_on_the_server() {
        let update = "UPDATE t SET a = ? WHERE b = ?";
        let form = Form::of(update, Must::Touch(1), Lock::Share);
        assert_eq!(
            translate(update, form).0,
            "WITH touched AS (UPDATE t SET a = $1 WHERE b = $2 RETURNING 1) SELECT CASE WHEN count(*) = $3 \
             THEN count(*) ELSE 0 / (count(*) * 0) END FROM touched"
        );
        let select = "SELECT 1 FROM t WHERE a = ?";
        for (lock, clause) in [
            (Lock::Held, ""),
            (Lock::Share, " FOR SHARE"),
            (Lock::Update, " FOR NO KEY UPDATE"),
            (Lock::Delete, " FOR UPDATE"),
        ] {
            let text = translate(select, Form::of(select, Must::Find(1), lock)).0;
            assert!(text.ends_with(&format!("(SELECT 1 FROM t WHERE a = $1{clause}) AS found")), "{text}");
        }
    }

    #[test]
    fn what_inserts_one_row_or_fails_needs_no_guard() {
        let of = |sql, must| Form::of(sql, must, Lock::Share);
        let insert = "INSERT INTO t (a, b) VALUES (?, ?)";
        assert_eq!(of(insert, Must::Touch(1)), Form::Plain);
        assert_eq!(of(insert, Must::Any), Form::Plain);
        for (sql, must) in [
            (insert, Must::Touch(0)),
            (insert, Must::Touch(2)),
            ("INSERT INTO t (a) VALUES (?), (?)", Must::Touch(1)),
            ("INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING", Must::Touch(1)),
            ("INSERT INTO t (a) SELECT a FROM u WHERE b = ?", Must::Touch(1)),
            ("UPDATE t SET a = ?", Must::Touch(1)),
            ("DELETE FROM t WHERE a = ?", Must::Touch(1)),
        ] {
            assert_eq!(of(sql, must), Form::Guarded(Lock::Share), "{sql}");
        }
    }

    #[test]
    fn statements_name_their_table() {
        for (sql, wanted) in [
            ("SELECT a, b FROM t WHERE a = ?", (Verb::Select, Some("t"))),
            ("INSERT INTO t (a) VALUES (?)", (Verb::Insert, Some("t"))),
            ("UPDATE t SET a = ?", (Verb::Update, Some("t"))),
            ("DELETE FROM t WHERE a IN (SELECT a FROM u)", (Verb::Delete, Some("t"))),
            ("CREATE TABLE t (a text)", (Verb::Other, None)),
        ] {
            assert_eq!((verb(sql), table(sql)), wanted, "{sql}");
        }
    }
}
