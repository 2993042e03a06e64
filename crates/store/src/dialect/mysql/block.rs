//! Several statements as one, for MariaDB: a compound statement, which is prepared and takes values like any other.
//!
//! A round trip costs both sides more than most of our statements do, and every statement in a block has its own cost:
//! nothing is counted whose count is already known.

use super::lookup::{self, Lookup};
use super::{Kind, TOUCHED_NOTHING, lock};
use crate::engine::Must;

/// The message that a block raises when a guard does not hold, before the number of the statement.
const GUARD: &str = "portiere: guard ";

/// The message that a block raises when one of several guards that were checked as one does not hold.
const GUARDS: &str = "portiere: one of several guards";

/// A variable for the number of rows found, and for values that are discarded. A block's variables take precedence over
/// columns of the same name: no column has this name.
const FOUND: &str = "portiere_found";

/// One statement of a batch, translated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// For a read: the text after its columns.
    pub(crate) rows: Option<&'a str>,
    /// For a read: what it asks, if it can be combined with others.
    pub(crate) lookup: Option<&'a Lookup>,
    /// For a read: whether it locks as a change does.
    pub(crate) exclusive: bool,
    pub(crate) must: Must,
}

impl Part<'_> {
    /// Whether it inserts one row, or fails.
    fn adds_one(&self) -> bool {
        self.kind == Kind::Insert { if_absent: false } && self.must == Must::Touch(1) && self.text.contains(" VALUES (")
    }
}

/// A batch up to its commit. It returns one row with the number of rows that each [`Must::Any`] statement touched or
/// found; no row if there is no such statement. `None` if a read has no rows that can be counted.
pub(crate) fn batch(parts: &[Part<'_>]) -> Option<String> {
    let (mut text, mut told, mut at) = (String::from("START TRANSACTION; "), Vec::new(), 0);
    while at < parts.len() {
        let part = &parts[at];
        let together = asked_together(&parts[at..]);
        if together.len() > 1 {
            let rows = lookup::joined(&together, part.exclusive);
            text += &format!("SELECT COUNT(*) INTO {FOUND} {rows}; {}", unless(FOUND, 1, GUARDS));
            at += together.len();
            continue;
        }
        let (statement, count) = counted(part)?;
        text += &statement;
        match part.must {
            _ if part.adds_one() => {}
            Must::Touch(wanted) | Must::Find(wanted) => text += &unless(count, wanted, &format!("{GUARD}{at}")),
            Must::Any => {
                text += &format!("SET portiere_{at} = {count}; ");
                told.push(format!("portiere_{at}"));
            }
        }
        at += 1;
    }
    let declared: String =
        told.iter().map(String::as_str).chain([FOUND]).map(|name| format!("DECLARE {name} BIGINT; ")).collect();
    let told = if told.is_empty() { String::new() } else { format!("SELECT {}; ", told.join(", ")) };
    Some(format!("BEGIN NOT ATOMIC {declared}{text}{told}END"))
}

/// Reads that are answered one after the other.
pub(crate) fn reads<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: String = texts.map(|text| format!("{text}; ")).collect();
    format!("BEGIN NOT ATOMIC {texts}END")
}

/// Returns the number of the statement whose guard did not hold, if the server's message gives it.
pub(crate) fn broken(message: &str) -> Option<usize> {
    message.strip_prefix(GUARD)?.parse().ok()
}

/// The first statements that can be combined: reads that each have to find one row and that lock alike.
fn asked_together<'a>(parts: &[Part<'a>]) -> Vec<&'a Lookup> {
    let alike = |part: &&Part<'a>| part.must == Must::Find(1) && part.exclusive == parts[0].exclusive;
    parts.iter().take_while(alike).map_while(|part| part.lookup).collect()
}

fn unless(count: &str, wanted: u64, raised: &str) -> String {
    format!("IF {count} <> {wanted} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{raised}'; END IF; ")
}

/// Returns a statement, and the expression that then gives the number of rows that it touched or found.
fn counted(part: &Part<'_>) -> Option<(String, &'static str)> {
    // Reset first, so that an id that an earlier statement left behind is not taken for this one's.
    const ABSENT: &str = "IF(LAST_INSERT_ID() = 1, 0, ROW_COUNT())";
    const { assert!(TOUCHED_NOTHING == 1) };
    let text = part.text;
    Some(match part.kind {
        Kind::Select => (format!("SELECT COUNT(*) INTO {FOUND} {}{}; ", part.rows?, lock(part.exclusive)), FOUND),
        Kind::Insert { if_absent: true } => (format!("SET {FOUND} = LAST_INSERT_ID(0); {text}; "), ABSENT),
        _ => (format!("{text}; "), "ROW_COUNT()"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(kind: Kind, text: &str, must: Must) -> Part<'_> {
        Part { kind, text, rows: None, lookup: None, exclusive: false, must }
    }

    #[test]
    fn a_batch_raises_where_a_guard_does_not_hold_and_tells_what_is_not_known() {
        let find = Part { rows: Some("FROM t WHERE a = ?"), exclusive: true, ..part(Kind::Select, "", Must::Find(1)) };
        let touch = part(Kind::Change, "UPDATE t SET a = ?", Must::Touch(2));
        let change = part(Kind::Change, "DELETE FROM t", Must::Any);
        assert_eq!(
            batch(&[find, touch, change]).unwrap(),
            "BEGIN NOT ATOMIC DECLARE portiere_2 BIGINT; DECLARE portiere_found BIGINT; \
             START TRANSACTION; SELECT COUNT(*) INTO portiere_found FROM t WHERE a = ? FOR UPDATE; \
             IF portiere_found <> 1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'portiere: guard 0'; END IF; \
             UPDATE t SET a = ?; \
             IF ROW_COUNT() <> 2 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'portiere: guard 1'; END IF; \
             DELETE FROM t; SET portiere_2 = ROW_COUNT(); SELECT portiere_2; END"
        );
        assert_eq!(batch(&[part(Kind::Select, "SELECT MAX(a) FROM t", Must::Any)]), None);
    }

    #[test]
    fn a_row_that_is_added_or_fails_is_not_counted() {
        let insert = |if_absent, must| part(Kind::Insert { if_absent }, "INSERT INTO t (a) VALUES (?)", must);
        assert!(!batch(&[insert(false, Must::Touch(1))]).unwrap().contains("ROW_COUNT"));
        for counted in [insert(true, Must::Touch(1)), insert(false, Must::Touch(2)), insert(false, Must::Any)] {
            assert!(batch(&[counted]).unwrap().contains("ROW_COUNT"), "{counted:?}");
        }
        let several = part(Kind::Insert { if_absent: false }, "INSERT INTO t (a) SELECT a FROM s", Must::Touch(1));
        assert!(batch(&[several]).unwrap().contains("ROW_COUNT"));
    }

    #[test]
    fn reads_that_lock_alike_are_asked_as_one() {
        let (a, b) = (Lookup::of("SELECT 1 FROM a WHERE k = ?"), Lookup::of("SELECT 1 FROM b WHERE k = ?"));
        let find = |lookup, exclusive, must| Part {
            rows: Some("FROM t WHERE k = ?"),
            lookup,
            exclusive,
            ..part(Kind::Select, "", must)
        };
        let (a, b) = (a.as_ref(), b.as_ref());
        let one = |second| asked_together(&[find(a, false, Must::Find(1)), second]).len();
        assert_eq!(one(find(b, false, Must::Find(1))), 2);
        for alone in [find(b, true, Must::Find(1)), find(b, false, Must::Find(0)), find(None, false, Must::Find(1))] {
            assert_eq!(one(alone), 1, "{alone:?}");
        }
        let text = batch(&[find(a, false, Must::Find(1)), find(b, false, Must::Find(1))]).unwrap();
        assert_eq!(text.matches("SELECT COUNT(*)").count(), 1, "{text}");
        assert!(text.contains(GUARDS) && broken(GUARDS).is_none(), "which one it was is asked again: {text}");
    }

    #[test]
    fn a_guard_is_known_by_its_number() {
        assert_eq!(broken("portiere: guard 12"), Some(12));
        assert_eq!(broken("portiere: guard "), None);
        assert_eq!(broken("a trigger of somebody else"), None);
    }
}
