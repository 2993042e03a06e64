//! Stores Portiere's data: the SQL is written once, and one conformance suite holds for every engine.

mod caught;
pub mod conformance;
pub mod dialect;
pub mod engine;
pub mod gate;
mod held;
pub mod migrations;
pub mod moving;
pub mod mysql;
pub mod postgres;
pub mod remote;
pub mod schema;
mod sealing;
pub mod sqlite;
mod standstill;
pub mod tables;
pub mod tally;
pub mod turn;
