//! Finds a user's live families without the old ones: a user who signs in often leaves many thousands of families
//! behind, and ending the live ones must not go through them.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 12,
    name: "living",
    oldest: 7,
    steps: &[
        "CREATE INDEX families_living ON families (realm, user_id, revoked_at)",
        "CREATE INDEX sessions_living ON sessions (realm, user_id, ended_at)",
    ],
};
