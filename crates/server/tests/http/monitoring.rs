//! What an operator sees: metrics, the log of slow requests, readiness under load.

pub mod figures;
mod files;
mod requests;
mod strain;
mod traces;
