//! What a database server that may lose acknowledged commits at a failover needs: who its nodes are, which failovers were
//! seen and who has said again what was lost, and what tells older from newer where two nodes say it again.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 5,
    name: "fences",
    oldest: 5,
    steps: &[
        "CREATE TABLE nodes (realm text NOT NULL, node text NOT NULL, seen bigint NOT NULL, mark bigint NOT NULL,
            PRIMARY KEY (realm, node)) WITHOUT ROWID",
        "CREATE TABLE fences (realm text NOT NULL, number bigint NOT NULL, at bigint NOT NULL, identity text NOT NULL,
            epoch bigint NOT NULL, PRIMARY KEY (realm, number)) WITHOUT ROWID",
        "CREATE TABLE fence_nodes (realm text NOT NULL, number bigint NOT NULL, node text NOT NULL,
            state text NOT NULL, at bigint NOT NULL, PRIMARY KEY (realm, number, node)) WITHOUT ROWID",
        "ALTER TABLE realms ADD COLUMN fenced text",
        "ALTER TABLE families ADD COLUMN turn bigint NOT NULL DEFAULT 0",
        "ALTER TABLE clients ADD COLUMN epoch bigint NOT NULL DEFAULT 0",
        "ALTER TABLE members ADD COLUMN epoch bigint NOT NULL DEFAULT 0",
    ],
};
