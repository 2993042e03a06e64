//! The one place that draws chance.

use crate::fault::Fault;
use rules::Fresh;

/// 32 bytes from the operating system.
#[allow(clippy::disallowed_methods, reason = "chance enters here")]
pub fn bytes() -> Result<[u8; 32], Fault> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Fault::Unavailable(format!("no randomness: {error}")))?;
    Ok(seed)
}

/// Chance for one request.
pub fn fresh() -> Result<Fresh, Fault> {
    bytes().map(Fresh::new)
}
