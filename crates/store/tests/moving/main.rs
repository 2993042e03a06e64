//! Moving a database: everything arrives, from any engine at any other, wherever it was interrupted; nothing is written to
//! the source meanwhile, or after.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where something is wrong, and says what it leaves out"
)]
#![allow(clippy::disallowed_methods, reason = "a test has no configuration, and its tasks end with it")]

mod claims;
mod fences;
mod fits;
mod interrupted;
mod place;
mod whole;
