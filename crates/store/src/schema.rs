//! The steps that bring a database to this program's schema. They go forward only, the same on every engine. A step and
//! the row that marks it as done are committed in one transaction, so an interrupted run is simply continued.
//!
//! Before its first step, each version is announced together with the oldest program that can work beside it. That
//! tells an older program, which cannot know it by itself, whether it may go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::engine::{Engine, Read, Row, Sql, Unavailable, Value};

/// One version of the schema, reached from the version before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number: 1 and upwards, without gaps.
    pub version: i64,
    /// What it is about, in words for people.
    pub name: &'static str,
    /// The oldest program that can work on a database of this version, named by the newest version that it knows. If
    /// the steps only add, that is the previous release; if they take something away, it is this version itself.
    pub oldest: i64,
    /// One statement each, in order. A released step is never changed; another step follows it instead.
    pub steps: &'static [&'static str],
}

/// The table that records which steps were done.
pub(crate) const MARKERS: &str = "CREATE TABLE IF NOT EXISTS schema_steps (\
     version bigint NOT NULL, step bigint NOT NULL, PRIMARY KEY (version, step))";

/// Reads which steps were done.
pub(crate) const DONE: &str = "SELECT version, step FROM schema_steps";

/// Records one step as done. Its key makes a second run of the same step fail.
pub(crate) const MARK: &str = "INSERT INTO schema_steps (version, step) VALUES (?, ?)";

/// The table in which versions are announced.
pub(crate) const ANNOUNCED: &str = "CREATE TABLE IF NOT EXISTS schema_versions (\
     version bigint NOT NULL, oldest bigint NOT NULL, PRIMARY KEY (version))";

/// The tables that every run creates first, by name. Only those that are missing are created, because a server checks
/// the right to create a table before it looks whether the table exists.
pub(crate) const OURS: [(&str, &str); 2] = [("schema_steps", MARKERS), ("schema_versions", ANNOUNCED)];

/// Reads which versions were announced, each with the oldest program that can work on it.
pub(crate) const OLDEST: &str = "SELECT version, oldest FROM schema_versions";

/// Announces a version. Its key makes a second announcement fail.
pub(crate) const ANNOUNCE: &str = "INSERT INTO schema_versions (version, oldest) VALUES (?, ?)";

/// A step that is still to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The version that it belongs to.
    pub(crate) version: i64,
    /// Its place in that version, from 0.
    pub(crate) step: i64,
    /// The version's name.
    pub(crate) name: &'static str,
    /// The statement to run.
    pub(crate) sql: &'static str,
}

/// What a database records about its schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The (version, step) pairs that were done.
    pub(crate) done: BTreeSet<(i64, i64)>,
    /// The versions that were announced, each with the oldest program that can work on it.
    pub(crate) announced: BTreeMap<i64, i64>,
}

/// What is left to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Versions to announce first, each with the oldest program that can work on it.
    pub(crate) announce: Vec<(i64, i64)>,
    /// The steps to run after that, in order.
    pub(crate) steps: Vec<Step>,
    /// The newest version that the database has begun, if a newer program began it and this program can work beside it.
    pub(crate) ahead: Option<i64>,
}

impl Plan {
    /// Logs that a newer program was there, if so.
    pub(crate) fn tell(&self, migrations: &[Migration]) {
        if let Some(database) = self.ahead {
            let program = newest(migrations);
            tracing::info!(database, program, "a newer version has upgraded the schema; this version can still use it");
        }
    }
}

/// Why a database cannot be brought to this program's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// The database contains something that this program does not know and cannot work beside.
    Newer {
        /// The newest version that the database has begun.
        database: i64,
        /// The oldest program that can work on it; `None` where the database does not say.
        oldest: Option<i64>,
        /// The newest version that this program knows.
        program: i64,
    },
    /// The program's own list is not numbered 1, 2, 3 and so on, or has an `oldest` later than its version.
    Numbering {
        /// The version where the numbering breaks.
        version: i64,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::Newer { database, oldest, program } => {
                write!(out, "the database was written by a newer program (schema {database}")?;
                if let Some(oldest) = oldest {
                    write!(out, ", for programs of schema {oldest} and later")?;
                }
                write!(
                    out,
                    "; this program knows {program}): run that program, or restore a backup made before the upgrade"
                )
            }
            SchemaError::Numbering { version } => write!(out, "schema version {version} is out of order"),
        }
    }
}

impl std::error::Error for SchemaError {}

/// The newest version of a list.
pub fn newest(migrations: &[Migration]) -> i64 {
    migrations.last().map_or(0, |newest| newest.version)
}

/// What remains to be done on a database in this state.
pub(crate) fn plan(migrations: &'static [Migration], state: &State) -> Result<Plan, SchemaError> {
    let mut known = BTreeSet::new();
    let mut plan = Plan::default();
    for (migration, version) in migrations.iter().zip(1..) {
        if migration.version != version || migration.oldest > version {
            return Err(SchemaError::Numbering { version: migration.version });
        }
        if !state.announced.contains_key(&version) {
            plan.announce.push((version, migration.oldest));
        }
        for (&sql, step) in migration.steps.iter().zip(0..) {
            known.insert((version, step));
            if !state.done.contains(&(version, step)) {
                plan.steps.push(Step { version, step, name: migration.name, sql });
            }
        }
    }
    plan.ahead = ahead(newest(migrations), &known, state)?;
    Ok(plan)
}

/// Returns why a program with these migrations can no longer work on a database on which it started, if so.
pub async fn outgrown(engine: &dyn Engine, migrations: &[Migration]) -> Result<Option<SchemaError>, Unavailable> {
    let program = newest(migrations);
    let sql = Sql::fixed("SELECT version, oldest FROM schema_versions WHERE version > ?");
    let rows = engine.fetch(&[Read { sql, args: vec![Value::Int(program)] }]).await?.concat();
    let pair = |row: &Row| match row.as_slice() {
        [Value::Int(version), Value::Int(oldest)] => Some((*version, *oldest)),
        _ => None,
    };
    let announced = rows.iter().filter_map(pair).collect();
    Ok(ahead(program, &BTreeSet::new(), &State { done: BTreeSet::new(), announced }).err())
}

/// Returns the newest version that the database has begun and `program` does not know, if `program` can work on it.
fn ahead(program: i64, known: &BTreeSet<(i64, i64)>, state: &State) -> Result<Option<i64>, SchemaError> {
    let begun = state.done.difference(known).map(|(version, _)| *version);
    // A version that was announced may be begun at any moment.
    let foreign: BTreeSet<i64> = begun.chain(state.announced.keys().copied().filter(|one| *one > program)).collect();
    let Some(&database) = foreign.last() else { return Ok(None) };
    // An extra step in a known version, or a version that was never announced, is not from this program's history.
    let whole = foreign.iter().all(|version| *version > program && state.announced.contains_key(version));
    let oldest = foreign.iter().filter_map(|version| state.announced.get(version)).max().copied();
    match oldest.filter(|oldest| whole && *oldest <= program) {
        Some(_) => Ok(Some(database)),
        None => Err(SchemaError::Newer { database, oldest: oldest.filter(|_| whole), program }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Migration] = &[
        Migration { version: 1, name: "first", oldest: 1, steps: &["a", "b"] },
        Migration { version: 2, name: "second", oldest: 1, steps: &["c"] },
    ];

    fn state(done: &[(i64, i64)], announced: &[(i64, i64)]) -> State {
        State { done: done.iter().copied().collect(), announced: announced.iter().copied().collect() }
    }

    fn steps(plan: &Plan) -> Vec<&'static str> {
        plan.steps.iter().map(|step| step.sql).collect()
    }

    #[test]
    fn what_is_made_first_has_the_name_that_is_looked_for() {
        for (name, sql) in OURS {
            assert!(sql.starts_with(&format!("CREATE TABLE IF NOT EXISTS {name} (")), "{sql}");
        }
    }

    #[test]
    fn an_empty_database_needs_every_step_in_order() {
        let plan = plan(TWO, &State::default()).unwrap();
        assert_eq!(steps(&plan), ["a", "b", "c"]);
        assert_eq!((plan.steps[2].version, plan.steps[2].step, plan.steps[2].name), (2, 0, "second"));
        assert_eq!((plan.announce, plan.ahead), (vec![(1, 1), (2, 1)], None));
    }

    #[test]
    fn an_interrupted_run_is_continued_where_it_stopped() {
        let begun = plan(TWO, &state(&[(1, 0)], &[(1, 1)])).unwrap();
        assert_eq!((steps(&begun), begun.announce), (vec!["b", "c"], vec![(2, 1)]));
        let whole = plan(TWO, &state(&[(1, 0), (1, 1), (2, 0)], &[(1, 1), (2, 1)]));
        assert_eq!(whole, Ok(Plan::default()));
    }

    #[test]
    fn a_database_of_a_newer_program_is_taken_where_that_says_so() {
        // Red without the comparison with `program` in `ahead`.
        let own = [(1, 0), (1, 1), (2, 0)];
        let with =
            |more: &[(i64, i64)], announced: &[(i64, i64)]| plan(TWO, &state(&[&own[..], more].concat(), announced));
        let ahead = |more: &[(i64, i64)], announced: &[(i64, i64)]| with(more, announced).map(|plan| plan.ahead);
        assert_eq!(ahead(&[(3, 0)], &[(3, 2)]), Ok(Some(3)));
        assert_eq!(ahead(&[], &[(3, 2)]), Ok(Some(3)), "announced, and not begun yet");
        assert_eq!(ahead(&[(3, 0), (4, 0)], &[(3, 2), (4, 1)]), Ok(Some(4)), "two versions of one release");
        let newer = |database, oldest| Err(SchemaError::Newer { database, oldest, program: 2 });
        assert_eq!(ahead(&[(3, 0)], &[(3, 3)]), newer(3, Some(3)), "it takes something away");
        assert_eq!(ahead(&[], &[(3, 3)]), newer(3, Some(3)), "and may do so at any moment");
        assert_eq!(ahead(&[(3, 0), (4, 0)], &[(3, 2), (4, 3)]), newer(4, Some(3)), "too far");
        assert_eq!(ahead(&[(3, 0), (4, 0)], &[(3, 3), (4, 2)]), newer(4, Some(3)), "whichever of them says it");
        assert_eq!(ahead(&[(3, 0)], &[]), newer(3, None), "nobody announced it");
        assert_eq!(ahead(&[(2, 1)], &[(2, 1)]), newer(2, None), "a version that is known has no further steps");
        assert_eq!(ahead(&[(2, 1), (3, 0)], &[(2, 1), (3, 2)]), newer(3, None));
    }

    #[test]
    fn who_is_too_old_is_told_so_in_a_sentence() {
        let of = |oldest| SchemaError::Newer { database: 5, oldest, program: 2 }.to_string();
        assert!(of(Some(4)).contains("(schema 5, for programs of schema 4 and later; this program knows 2)"));
        assert!(of(None).contains("newer program (schema 5; this program knows 2)"));
    }

    #[test]
    fn versions_are_numbered_without_gaps_and_run_with_their_own_program() {
        const GAP: &[Migration] = &[Migration { version: 2, name: "second", oldest: 1, steps: &[] }];
        assert_eq!(plan(GAP, &State::default()), Err(SchemaError::Numbering { version: 2 }));
        const NOBODY: &[Migration] = &[Migration { version: 1, name: "first", oldest: 2, steps: &[] }];
        assert_eq!(plan(NOBODY, &State::default()), Err(SchemaError::Numbering { version: 1 }));
    }
}
