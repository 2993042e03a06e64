//! The audit log is sealed in blocks and delivered to streams. A line that an older program writes is not sealed yet,
//! like any other new line.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 8,
    name: "audit blocks",
    oldest: 7,
    steps: &[
        "ALTER TABLE events ADD COLUMN request text",
        "ALTER TABLE events ADD COLUMN block bigint NOT NULL DEFAULT 0",
        "CREATE INDEX events_of_block ON events (realm, block, id)",
        "CREATE TABLE audit_blocks (realm text NOT NULL, number bigint NOT NULL, first_line bigint NOT NULL,
            last_line bigint NOT NULL, oldest bigint NOT NULL, newest bigint NOT NULL, sealed_at bigint NOT NULL,
            key_id text NOT NULL, digest blob NOT NULL, leaves blob NOT NULL, mac_before blob NOT NULL,
            mac blob NOT NULL, PRIMARY KEY (realm, number)) WITHOUT ROWID",
        "CREATE TABLE audit_checkpoints (realm text NOT NULL, number bigint NOT NULL, last_line bigint NOT NULL,
            mac blob NOT NULL, removed_at bigint NOT NULL, key_id text NOT NULL, seal blob NOT NULL,
            PRIMARY KEY (realm)) WITHOUT ROWID",
        "CREATE TABLE audit_streams (realm text NOT NULL, name text NOT NULL, block bigint NOT NULL,
            line text NOT NULL, moved_at bigint NOT NULL, trouble text NOT NULL, PRIMARY KEY (realm, name))
            WITHOUT ROWID",
    ],
};
