//! Lets each node offer a set-up link of its own.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 4,
    name: "set-up links, several at a time",
    oldest: 4,
    steps: &[
        "CREATE TABLE setup_offers (realm text NOT NULL, link blob NOT NULL, expires bigint NOT NULL,
            PRIMARY KEY (realm, link)) WITHOUT ROWID",
        "DROP TABLE setup_links",
    ],
};
