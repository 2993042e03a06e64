//! Portiere.
fn main() {}
