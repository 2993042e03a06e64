//! What may be imported and verified, in one table. A hash outside it would cost so much that it is an attack on the
//! server, or so little that it protects nobody; it is refused when it is read and again before it is computed.

use std::fmt;

use crate::{
    argon2::{Cost, Params},
    job::Kind,
    policy::Policy,
};

use super::serial::Serial;

/// A parameter and the values it may have. Errors contain it; it tells what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The parameter, with its unit.
    pub parameter: &'static str,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
}

impl Limit {
    const fn new(parameter: &'static str, least: u64, most: u64) -> Self {
        Limit { parameter, least, most }
    }
    /// Fails with the limit itself when `value` lies outside it.
    pub(crate) const fn admit(self, value: u64) -> Result<(), Limit> {
        if value < self.least || value > self.most { Err(self) } else { Ok(()) }
    }
    pub(crate) const fn length(self, bytes: &[u8]) -> Result<(), Limit> {
        self.admit(bytes.len() as u64)
    }
    /// The beginning of `bytes` that is within the limit, and whether that is all of them.
    pub(crate) fn cut(self, bytes: &[u8]) -> (&[u8], bool) {
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        (&bytes[..bytes.len().min(most)], bytes.len() <= most)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {} to {}", self.parameter, self.least, self.most)
    }
}

/// Longest text that is read, in bytes: more than any hash within the limits needs.
pub(crate) const TEXT: Limit = Limit::new("length of a stored hash in bytes", 1, 1024);
/// Longest JSON of one account's credential.
pub(crate) const JSON: Limit = Limit::new("length of a credential's JSON in bytes", 1, 4096);

/// And at least 8 KiB for each lane (RFC 9106 §3.1).
pub(crate) const ARGON2_MEMORY: Limit = Limit::new("Argon2 memory (m) in KiB", 8, Policy::MAX_MEMORY as u64);
pub(crate) const ARGON2_PASSES: Limit = Limit::new("Argon2 passes (t)", 1, Policy::MAX_PASSES as u64);
pub(crate) const ARGON2_LANES: Limit = Limit::new("Argon2 lanes (p)", 1, Policy::MAX_LANES as u64);
/// RFC 9106 §3.1 asks for at least 8.
pub(crate) const ARGON2_SALT: Limit = Limit::new("Argon2 salt in bytes", 8, 64);
/// The PHC string format asks for at least 12: a shorter one can be hit by chance.
pub(crate) const ARGON2_TAG: Limit = Limit::new("Argon2 tag in bytes", 12, 64);
pub(crate) const ARGON2_DATA: Limit = Limit::new("Argon2 associated data in bytes", 1, 64);

/// The format's least cost, and 2^15 rounds: about two seconds.
pub(crate) const BCRYPT_COST: Limit = Limit::new("bcrypt cost", 4, 15);

/// RFC 8018 §4.2 asks for at least 1,000.
pub(crate) const PBKDF2_ITERATIONS: Limit = Limit::new("PBKDF2 iterations", 1_000, 10_000_000);

/// Below 2^10 it is a fast digest.
pub(crate) const SCRYPT_LOG_N: Limit = Limit::new("scrypt log2 of N", 10, 21);
pub(crate) const SCRYPT_R: Limit = Limit::new("scrypt block size (r)", 1, 1 << 11);
pub(crate) const SCRYPT_P: Limit = Limit::new("scrypt parallelism (p)", 1, 1 << 11);
pub(crate) const SCRYPT_WORK: Limit = Limit::new("scrypt 128 * N * r * p in bytes", 1, 256 << 20);

/// phpass's least, and Drupal's 2^16 with room: each round hashes the password again. About 0.3 s for the longest one.
pub(crate) const CHAIN_LOG_ROUNDS: Limit = Limit::new("phpass log2 of rounds", 7, 17);
pub(crate) const CHAIN_ROUNDS: Limit =
    Limit::new("phpass rounds", 1 << CHAIN_LOG_ROUNDS.least, 1 << CHAIN_LOG_ROUNDS.most);

/// WordPress accepts four times as much, but nobody has so long a password; see [`CHAIN_LOG_ROUNDS`].
pub(crate) const PHPASS_PASSWORD: Limit = Limit::new("password in bytes", 0, 1024);
/// The limit of Drupal itself.
pub(crate) const DRUPAL_PASSWORD: Limit = Limit::new("password in bytes", 0, 512);

/// The format's least, and passlib's 1,024,000 for administrators with room for the tenth that its `vary_rounds` may
/// add: some three seconds for the longest password.
pub(crate) const SHA_CRYPT_ROUNDS: Limit = Limit::new("SHA-crypt rounds", 1_000, 1_200_000);
/// The limit of libxcrypt.
pub(crate) const SHA_CRYPT_PASSWORD: Limit = Limit::new("password in bytes", 0, 511);
/// The format has room for no more, and crypt(3) accepts an empty salt.
pub(crate) const SHA_CRYPT_SALT: Limit = Limit::new("SHA-crypt salt in characters", 0, 16);

/// For PBKDF2 and scrypt.
pub(crate) const SALT: Limit = Limit::new("salt in bytes", 4, 128);
/// For PBKDF2 and scrypt. Of more than one block only the first is computed.
pub(crate) const TAG: Limit = Limit::new("derived key in bytes", 16, 512);
/// For fast digests, which may come without a salt.
pub(crate) const DIGEST_SALT: Limit = Limit::new("salt in bytes", 1, 128);
/// Firebase's hash has 64 bytes.
pub(crate) const FIREBASE_TAG: Limit = Limit::new("Firebase hash in bytes", 16, 128);

/// The cost of an Argon2 hash, if it is within the limits.
pub(crate) fn argon2(memory: u32, passes: u32, lanes: u32) -> Result<Cost, Limit> {
    ARGON2_LANES.admit(lanes.into())?;
    ARGON2_PASSES.admit(passes.into())?;
    let memory_limit = Limit { least: 8 * u64::from(lanes), ..ARGON2_MEMORY };
    memory_limit.admit(memory.into())?;
    Cost::new(memory, passes, lanes).map_err(|_| memory_limit)
}

/// Whether this kind of work is within the limits.
pub(crate) fn kind(kind: &Kind) -> Result<(), Limit> {
    match *kind {
        Kind::Argon2(Params { cost, tag_bytes, .. }) => {
            argon2(cost.memory(), cost.passes(), cost.lanes())?;
            ARGON2_TAG.admit(tag_bytes.into())
        }
        Kind::Bcrypt { cost } => BCRYPT_COST.admit(cost.into()),
        Kind::Serial(serial) => self::serial(&serial),
    }
}

/// Whether this serial work is within the limits.
pub(crate) fn serial(serial: &Serial) -> Result<(), Limit> {
    match *serial {
        Serial::Pbkdf2 { iterations, .. } => PBKDF2_ITERATIONS.admit(iterations.into()),
        Serial::Scrypt { log_n, r, p, .. } => {
            SCRYPT_LOG_N.admit(log_n.into())?;
            SCRYPT_R.admit(r.into())?;
            SCRYPT_P.admit(p.into())?;
            // Below 2^7 * 2^21 * 2^11 * 2^11 by the limits above.
            SCRYPT_WORK.admit((128 * u64::from(r) * u64::from(p)) << log_n)
        }
        Serial::Chain { rounds, .. } => CHAIN_ROUNDS.admit(rounds.into()),
        Serial::ShaCrypt { rounds, .. } => SHA_CRYPT_ROUNDS.admit(rounds.into()),
    }
}
