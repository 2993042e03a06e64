//! What was refused to who had not shown who they are, counted: what it was and of which application (`what`, one text since
//! an index of MariaDB holds three), by minute and address.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 11,
    name: "rejections",
    oldest: 7,
    steps: &["CREATE TABLE rejections (realm text NOT NULL, minute bigint NOT NULL, what text NOT NULL,
            address text NOT NULL, count bigint NOT NULL, PRIMARY KEY (realm, minute, what, address)) WITHOUT ROWID"],
};
