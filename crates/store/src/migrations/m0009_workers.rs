//! Machines that hash passwords, and the tokens with which they are enrolled.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 9,
    name: "hash workers",
    oldest: 7,
    steps: &[
        "CREATE TABLE workers (realm text NOT NULL, worker_key blob NOT NULL, name text NOT NULL,
            enrolled bigint NOT NULL, address text NOT NULL, quarantined_at bigint, why text,
            PRIMARY KEY (realm, worker_key), UNIQUE (realm, name)) WITHOUT ROWID",
        "CREATE TABLE worker_tokens (realm text NOT NULL, token blob NOT NULL, expires bigint NOT NULL,
            PRIMARY KEY (realm, token)) WITHOUT ROWID",
    ],
};
