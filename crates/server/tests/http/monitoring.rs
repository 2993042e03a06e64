//! What an operator sees: metrics, the log of slow requests, readiness under load.

mod figures;
mod files;
mod requests;
mod strain;
mod traces;
