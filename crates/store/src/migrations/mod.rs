//! Every version of the schema, oldest first.
//!
//! Columns are `bigint` (milliseconds since 1970, booleans as 0/1), `text` and `blob`. Every row belongs to a realm,
//! and every key begins with the realm. Ids of frequent rows (sessions, families, events) sort by time, so that new
//! rows are stored next to each other and old ones are found without an index.
//!
//! From version 7 on, programs of two successive releases run on one database at the same time. So a version only adds:
//! tables, indexes, and columns that an INSERT may leave out. What is no longer needed is removed in the release after
//! the one that stopped using it, in a version whose `oldest` says so.

mod m0001_first;
mod m0002_secrets;
mod m0003_leases;
mod m0004_setup_offers;
mod m0005_fences;
mod m0006_moves;
mod m0007_nodes;
mod m0008_audit;
mod m0009_workers;
mod m0010_lives;
mod m0011_rejections;
mod m0012_living;
mod m0013_consents;

use crate::schema::Migration;

/// The migrations that bring an empty database to this program's schema.
pub static MIGRATIONS: &[Migration] = &[
    m0001_first::MIGRATION,
    m0002_secrets::MIGRATION,
    m0003_leases::MIGRATION,
    m0004_setup_offers::MIGRATION,
    m0005_fences::MIGRATION,
    m0006_moves::MIGRATION,
    m0007_nodes::MIGRATION,
    m0008_audit::MIGRATION,
    m0009_workers::MIGRATION,
    m0010_lives::MIGRATION,
    m0011_rejections::MIGRATION,
    m0012_living::MIGRATION,
    m0013_consents::MIGRATION,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect;

    /// The first version that older programs may meet.
    const NEIGHBORS: i64 = 7;

    /// Whether an older program cannot notice that a step was done.
    fn only_adds(step: &str) -> bool {
        let step = step.to_ascii_uppercase();
        let column = step.starts_with("ALTER TABLE ") && step.contains(" ADD COLUMN ");
        let optional = !step.contains("NOT NULL") || step.contains(" DEFAULT ");
        step.starts_with("CREATE TABLE ") || step.starts_with("CREATE INDEX ") || (column && optional)
    }

    #[test]
    fn a_version_that_takes_something_away_says_that_programs_of_before_cannot_stay() {
        for later in MIGRATIONS.iter().filter(|later| later.version > NEIGHBORS) {
            assert!(later.oldest >= NEIGHBORS, "{}: programs before {NEIGHBORS} refuse it", later.name);
            if !later.steps.iter().all(|step| only_adds(step)) {
                assert_eq!(later.oldest, later.version, "{}", later.name);
            }
        }
        assert!(
            only_adds("ALTER TABLE a ADD COLUMN b bigint NOT NULL DEFAULT 0") && only_adds("CREATE INDEX a ON b (c)")
        );
        assert!(!only_adds("ALTER TABLE a ADD COLUMN b bigint NOT NULL") && !only_adds("DROP TABLE a"));
        assert!(!only_adds("CREATE UNIQUE INDEX a ON b (c)") && !only_adds("UPDATE a SET b = 1"));
    }

    #[test]
    fn every_step_is_portable() {
        for migration in MIGRATIONS {
            for step in migration.steps {
                assert_eq!(dialect::check(step), Ok(()), "{step}");
            }
        }
    }
}
