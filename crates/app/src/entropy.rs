//! The one place that draws randomness.

use crate::fault::Fault;
use rules::Fresh;

/// Draws 32 bytes from the operating system.
pub fn bytes() -> Result<[u8; 32], Fault> {
    draw()
}

/// Draws 16 bytes: the salt of a hash, or a name that nobody guesses.
pub fn salt() -> Result<[u8; 16], Fault> {
    draw()
}

/// Draws the randomness for one request.
pub fn fresh() -> Result<Fresh, Fault> {
    bytes().map(Fresh::new)
}

#[allow(clippy::disallowed_methods, reason = "chance enters here")]
fn draw<const N: usize>() -> Result<[u8; N], Fault> {
    let mut drawn = [0; N];
    getrandom::fill(&mut drawn).map_err(|error| Fault::Unavailable(format!("no randomness: {error}")))?;
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_draws_are_the_same_and_every_byte_of_them_is_drawn() {
        let salts: Vec<_> = (0..64).map(|_| salt().expect("chance")).collect();
        assert!(salts.iter().enumerate().all(|(at, one)| !salts[..at].contains(one)));
        assert!((0..16).all(|at| salts.iter().any(|salt| salt[at] != 0)));
    }
}
