//! Which steps bring a database to this program's schema. Forward only, the same on every engine: each step and the
//! row that says that it was done are committed in one transaction, so that an interrupted run is simply continued.

use std::collections::BTreeSet;
use std::fmt;

/// One version of the schema, reached from the version before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number: 1 and upwards, without gaps.
    pub version: i64,
    /// What it is about, for people.
    pub name: &'static str,
    /// One statement each, in order. A step that was released is never changed, only followed by another.
    pub steps: &'static [&'static str],
}

/// Where the steps that were done are written down. Made by every run before anything else.
pub(crate) const MARKERS: &str = "CREATE TABLE IF NOT EXISTS schema_steps (\
     version bigint NOT NULL, step bigint NOT NULL, PRIMARY KEY (version, step))";

/// Which steps were done.
pub(crate) const DONE: &str = "SELECT version, step FROM schema_steps";

/// Writes down one step. Its key makes a second run of the same step fail.
pub(crate) const MARK: &str = "INSERT INTO schema_steps (version, step) VALUES (?, ?)";

/// A step that has yet to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The version that it belongs to.
    pub(crate) version: i64,
    /// Its place in that version, from 0.
    pub(crate) step: i64,
    /// The version's name.
    pub(crate) name: &'static str,
    /// What to run.
    pub(crate) sql: &'static str,
}

/// Why a database cannot be brought to this program's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// The database holds something that this program does not know: a newer program wrote it.
    Newer {
        /// The newest version that the database has begun.
        database: i64,
        /// The newest version that this program knows.
        program: i64,
    },
    /// The program's own list is not numbered 1, 2, 3 and so on.
    Numbering {
        /// Where it breaks.
        version: i64,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::Newer { database, program } => write!(
                out,
                "the database was written by a newer program (schema {database}; this program knows {program}): \
                 run that program, or restore a backup made before the upgrade"
            ),
            SchemaError::Numbering { version } => write!(out, "schema version {version} is out of order"),
        }
    }
}

impl std::error::Error for SchemaError {}

/// The steps that remain, in order, when `done` holds the (version, step) pairs that the database has.
pub(crate) fn remaining(
    migrations: &'static [Migration],
    done: &BTreeSet<(i64, i64)>,
) -> Result<Vec<Step>, SchemaError> {
    let mut known = BTreeSet::new();
    let mut steps = Vec::new();
    for (migration, version) in migrations.iter().zip(1..) {
        if migration.version != version {
            return Err(SchemaError::Numbering { version: migration.version });
        }
        for (&sql, step) in migration.steps.iter().zip(0..) {
            known.insert((version, step));
            if !done.contains(&(version, step)) {
                steps.push(Step { version, step, name: migration.name, sql });
            }
        }
    }
    match done.difference(&known).last() {
        None => Ok(steps),
        Some(&(database, _)) => {
            Err(SchemaError::Newer { database, program: migrations.last().map_or(0, |newest| newest.version) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Migration] = &[
        Migration { version: 1, name: "first", steps: &["a", "b"] },
        Migration { version: 2, name: "second", steps: &["c"] },
    ];

    #[test]
    fn an_empty_database_needs_every_step_in_order() {
        let steps = remaining(TWO, &BTreeSet::new()).unwrap();
        assert_eq!(steps.iter().map(|step| step.sql).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((steps[2].version, steps[2].step, steps[2].name), (2, 0, "second"));
    }

    #[test]
    fn an_interrupted_run_is_continued_where_it_stopped() {
        let steps = remaining(TWO, &BTreeSet::from([(1, 0)])).unwrap();
        assert_eq!(steps.iter().map(|step| step.sql).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(remaining(TWO, &BTreeSet::from([(1, 0), (1, 1), (2, 0)])), Ok(vec![]));
    }

    #[test]
    fn a_database_of_a_newer_program_is_refused() {
        let newer = SchemaError::Newer { database: 3, program: 2 };
        assert_eq!(remaining(TWO, &BTreeSet::from([(1, 0), (3, 0)])), Err(newer));
        let longer = SchemaError::Newer { database: 2, program: 2 };
        assert_eq!(remaining(TWO, &BTreeSet::from([(2, 1)])), Err(longer));
        assert!(newer.to_string().contains("newer program"));
    }

    #[test]
    fn versions_are_numbered_without_gaps() {
        const GAP: &[Migration] = &[Migration { version: 2, name: "second", steps: &[] }];
        assert_eq!(remaining(GAP, &BTreeSet::new()), Err(SchemaError::Numbering { version: 2 }));
    }
}
