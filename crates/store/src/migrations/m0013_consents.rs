//! Finds the consents of one application without those of others: they are removed with the application.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration {
    version: 13,
    name: "consents",
    oldest: 7,
    steps: &["CREATE INDEX consents_of_client ON consents (realm, client_id, user_id)"],
};
