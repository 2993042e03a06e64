//! Every version of the schema, oldest first.
//!
//! Columns are `bigint` (milliseconds since 1970, booleans as 0/1), `text` and `blob`. Every row belongs to a realm, and
//! every key begins with it. Ids of what comes often (sessions, families, events) sort by time, so that new rows land
//! beside each other and old ones are found without an index.

mod m0001_first;
mod m0002_secrets;
mod m0003_leases;
mod m0004_setup_offers;
mod m0005_fences;
mod m0006_moves;
mod m0009_workers;

use crate::schema::Migration;

/// What brings an empty database to this program's schema.
pub static MIGRATIONS: &[Migration] = &[
    m0001_first::MIGRATION,
    m0002_secrets::MIGRATION,
    m0003_leases::MIGRATION,
    m0004_setup_offers::MIGRATION,
    m0005_fences::MIGRATION,
    m0006_moves::MIGRATION,
    Migration { version: 7, name: "kept for nodes", steps: &[] },
    Migration { version: 8, name: "kept for the audit log", steps: &[] },
    m0009_workers::MIGRATION,
];
