//! What is allowed, and what changes when it happens.
//!
//! Pure: no IO, no clock, no randomness, no log. Time and randomness are arguments ([`Time`], [`Fresh`]). A rule
//! returns its reply together with a list of the [`Change`]s that it asks for ([`Decision`]).

pub mod audit;
pub mod decision;
pub mod ending;
pub mod events;
pub mod fresh;
pub mod id;
pub mod jose;
pub mod keys;
pub mod login;
pub mod oauth;
pub mod people;
pub mod realm;
pub mod secret;
pub mod time;
pub mod utc;
pub mod worker;

pub use decision::{Change, Decision};
pub use fresh::Fresh;
pub use secret::{Handle, Secret};
pub use time::{Span, Time};
