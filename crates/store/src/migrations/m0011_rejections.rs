//! Counts of refused requests from unidentified senders, by minute and address. The kind and its application are one
//! text (`what`), since an index of MariaDB holds only three.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 11,
    name: "rejections",
    oldest: 7,
    steps: &["CREATE TABLE rejections (realm text NOT NULL, minute bigint NOT NULL, what text NOT NULL,
            address text NOT NULL, count bigint NOT NULL, PRIMARY KEY (realm, minute, what, address)) WITHOUT ROWID"],
};
