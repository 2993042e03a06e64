//! What each node reports about itself, and which kinds of password hashes exist.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 7,
    name: "nodes, kinds of hashes",
    oldest: 7,
    steps: &[
        "ALTER TABLE nodes ADD COLUMN version text",
        "ALTER TABLE nodes ADD COLUMN class text",
        "ALTER TABLE nodes ADD COLUMN journal text",
        "ALTER TABLE nodes ADD COLUMN gone bigint",
        "CREATE TABLE hash_kinds (realm text NOT NULL, kind text NOT NULL, announced bigint NOT NULL,
            PRIMARY KEY (realm, kind)) WITHOUT ROWID",
    ],
};
