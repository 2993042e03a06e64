//! Which secrets outside the database the password hashes need.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 2,
    name: "secrets",
    oldest: 1,
    steps: &[
        "CREATE TABLE secrets (realm text NOT NULL, name text NOT NULL, proof text NOT NULL, PRIMARY KEY (realm, name))
            WITHOUT ROWID",
    ],
};
