//! What holds of the lab, without a server: those that need one are among the tests of the server.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod advice;
mod capacity;
mod experiments;
mod from;
mod remote;
