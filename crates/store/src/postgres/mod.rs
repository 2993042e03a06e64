//! The PostgreSQL engine.
