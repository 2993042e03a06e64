//! Several statements as one, for MariaDB: a compound statement, which is prepared and takes values as any other does.
//!
//! A round trip costs both sides more than most of our statements do.

use super::{Kind, TOUCHED_NOTHING, lock};
use crate::engine::Must;

/// What a block raises when a guard does not hold, before the number of the statement.
const GUARD: &str = "portiere: guard ";

/// One statement of a batch, translated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Of a read: what follows its columns, and whether it locks as a change does.
    pub(crate) rows: Option<(&'a str, bool)>,
    pub(crate) must: Must,
}

/// A batch that answers one row: how many rows each statement touched or found of which [any](Must::Any) number will do.
/// Without such a statement it answers none. `None` where a read has no rows to be counted.
pub(crate) fn batch(parts: &[Part<'_>]) -> Option<String> {
    let mut text = String::from("BEGIN NOT ATOMIC ");
    for at in 0..parts.len() {
        text += &format!("DECLARE {} BIGINT DEFAULT 0; ", count(at));
    }
    for (at, part) in parts.iter().enumerate() {
        text += &counted(&count(at), part)?;
        if let Must::Touch(wanted) | Must::Find(wanted) = part.must {
            text += &format!(
                "IF {} <> {wanted} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{GUARD}{at}'; END IF; ",
                count(at)
            );
        }
    }
    let told: Vec<String> = (0..parts.len()).filter(|at| matches!(parts[*at].must, Must::Any)).map(count).collect();
    if !told.is_empty() {
        text += &format!("SELECT {}; ", told.join(", "));
    }
    Some(text + "END")
}

/// Reads that answer one after the other.
pub(crate) fn reads<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: String = texts.map(|text| format!("{text}; ")).collect();
    format!("BEGIN NOT ATOMIC {texts}END")
}

/// The number of the statement whose guard did not hold, when that is what a server's message says.
pub(crate) fn broken(message: &str) -> Option<usize> {
    message.strip_prefix(GUARD)?.parse().ok()
}

/// A variable of a block has precedence over a column of the same name: no column has such a one.
fn count(at: usize) -> String {
    format!("portiere_{at}")
}

/// A statement, and how many rows it touched or found.
fn counted(count: &str, part: &Part<'_>) -> Option<String> {
    let text = part.text;
    Some(match part.kind {
        Kind::Select => {
            let (rows, exclusive) = part.rows?;
            format!("SELECT COUNT(*) INTO {count} {rows}{}; ", lock(exclusive))
        }
        // What an earlier statement left behind says nothing about this one.
        Kind::Insert { if_absent: true } => format!(
            "SET {count} = LAST_INSERT_ID(0); {text}; \
             SET {count} = IF(LAST_INSERT_ID() = {TOUCHED_NOTHING}, 0, ROW_COUNT()); "
        ),
        _ => format!("{text}; SET {count} = ROW_COUNT(); "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(kind: Kind, text: &str, must: Must) -> Part<'_> {
        Part { kind, text, rows: None, must }
    }

    #[test]
    fn a_batch_raises_where_a_guard_does_not_hold_and_tells_what_is_not_known() {
        let find = Part { rows: Some(("FROM t WHERE a = ?", true)), ..part(Kind::Select, "", Must::Find(1)) };
        let change = part(Kind::Change, "DELETE FROM t", Must::Any);
        assert_eq!(
            batch(&[find, change]).unwrap(),
            "BEGIN NOT ATOMIC DECLARE portiere_0 BIGINT DEFAULT 0; DECLARE portiere_1 BIGINT DEFAULT 0; \
             SELECT COUNT(*) INTO portiere_0 FROM t WHERE a = ? FOR UPDATE; \
             IF portiere_0 <> 1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'portiere: guard 0'; END IF; \
             DELETE FROM t; SET portiere_1 = ROW_COUNT(); SELECT portiere_1; END"
        );
        assert_eq!(batch(&[part(Kind::Select, "SELECT MAX(a) FROM t", Must::Any)]), None);
    }

    #[test]
    fn a_guard_is_known_by_its_number() {
        assert_eq!(broken("portiere: guard 12"), Some(12));
        assert_eq!(broken("portiere: guard "), None);
        assert_eq!(broken("a trigger of somebody else"), None);
    }
}
