//! What somebody has that lives is found without what they had: whoever signs in often leaves many thousands of families behind,
//! and ending what lives must not go through them. Devices that somebody answered are found among those that nobody did.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 12,
    name: "living",
    oldest: 7,
    steps: &[
        "CREATE INDEX families_living ON families (realm, user_id, revoked_at)",
        "CREATE INDEX sessions_living ON sessions (realm, user_id, ended_at)",
        "CREATE INDEX devices_of_user ON devices (realm, user_id)",
    ],
};
