//! The life of its client in which something was issued. If an older program registered the client or issued to it,
//! there is none, and the time decides.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 10,
    name: "lives of applications",
    oldest: 7,
    steps: &[
        "ALTER TABLE clients ADD COLUMN life text",
        "ALTER TABLE codes ADD COLUMN life text",
        "ALTER TABLE families ADD COLUMN life text",
        "ALTER TABLE devices ADD COLUMN life text",
    ],
};
