//! Kept for what nodes know of each other.

use crate::schema::Migration;

pub(super) const MIGRATION: Migration = Migration { version: 7, name: "nodes", steps: &[] };
