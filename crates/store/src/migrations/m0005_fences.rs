//! Tables for a database server that may lose acknowledged commits at a failover: its nodes, the failovers that were
//! seen, which nodes have replayed what was lost, and what orders changes that two nodes replay.

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
