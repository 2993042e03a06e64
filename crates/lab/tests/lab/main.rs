//! What the lab says, from figures that are made up.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod experiments;
