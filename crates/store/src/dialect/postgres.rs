//! What PostgreSQL wants said differently.
