//! Moments as text.

pub use rules::utc::{date, iso, when};
