//! Where a database is being moved to or came from, and how far the move is. Not per realm: a move is of all of them.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 6,
    name: "moves",
    oldest: 6,
    steps: &["CREATE TABLE moves (part text NOT NULL, move text NOT NULL, state text NOT NULL, detail text NOT NULL,
            PRIMARY KEY (part)) WITHOUT ROWID"],
};
