//! Which node does the jobs that one node does for all of them.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 3,
    name: "leases",
    oldest: 1,
    steps: &["CREATE TABLE leases (realm text NOT NULL, job text NOT NULL, node text NOT NULL, until bigint NOT NULL,
            PRIMARY KEY (realm, job)) WITHOUT ROWID"],
};
