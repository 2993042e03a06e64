//! The PostgreSQL engine against the conformance suite, and what it promises beyond that: no half of a batch whatever fails,
//! no answer before a commit, servers that would lose commits refused.
//!
//! Runs against the server whose admin URL is in `PORTIERE_TEST_POSTGRES`, which `scripts/databases up postgres FOLDER`
//! starts; each test has a database and a role of its own there.
#![allow(clippy::unwrap_used, reason = "a test stops where something is wrong")]
#![allow(clippy::print_stdout, reason = "a test that was not run says so")]

mod conforms;
mod doors;
mod faults;
mod path;
mod proxy;
mod rounds;
mod schema;
mod server;
mod standing;
#[path = "../until/mod.rs"]
mod until;
