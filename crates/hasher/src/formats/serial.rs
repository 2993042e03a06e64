//! Hashes without a kernel: computed one at a time, scrypt by `romix`, the others with the usual crates, and replaced
//! at the owner's next sign-in.

use hmac::{
    EagerHash,
    digest::{self, Digest as _, FixedOutputReset, Output},
};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use zeroize::{Zeroize, Zeroizing};

use super::{prf, romix::scrypt};
use crate::job::Tag;

/// The hash functions that stored hashes are built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Digest {
    /// MD5 (RFC 1321), broken; an MD5 digest is stored only wrapped.
    Md5,
    /// SHA-1 (FIPS 180-4).
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-384 (FIPS 180-4).
    Sha384,
    /// SHA-512 (FIPS 180-4).
    Sha512,
}

/// Runs `$body` with `$hash` standing for the type that computes the digest.
macro_rules! with_digest {
    ($digest:expr, $hash:ident => $body:expr) => {
        with_digest!($digest, $hash => $body, Md5 Sha1 Sha256 Sha384 Sha512)
    };
    ($digest:expr, $hash:ident => $body:expr, $($name:ident)+) => {
        match $digest {
            $(Digest::$name => {
                type $hash = $name;
                $body
            })+
        }
    };
}

impl Digest {
    const ALL: [Digest; 5] = [Digest::Md5, Digest::Sha1, Digest::Sha256, Digest::Sha384, Digest::Sha512];

    /// Its name in stored hashes.
    pub const fn name(self) -> &'static str {
        match self {
            Digest::Md5 => "md5",
            Digest::Sha1 => "sha1",
            Digest::Sha256 => "sha256",
            Digest::Sha384 => "sha384",
            Digest::Sha512 => "sha512",
        }
    }
    /// The digest of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|digest| digest.name() == name)
    }
    /// Its length, in bytes.
    pub fn bytes(self) -> usize {
        with_digest!(self, H => H::output_size())
    }
    /// The digest of `parts`, one after the other.
    pub(crate) fn of(self, parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        with_digest!(self, H => {
            let mut hash = H::new();
            parts.iter().for_each(|part| hash.update(part));
            // In one place, as in `chain_of`.
            kept(hash.finalize_reset())
        })
    }

    /// Whether no other key has the same HMAC: a key no longer than a block is padded with NULs (RFC 2104 §2). (A
    /// longer one has the HMAC of its digest, which nobody types.)
    pub(super) fn tells_apart(self, key: &[u8]) -> bool {
        key.last() != Some(&0) || key.len() > self.block()
    }
    /// HMAC of the whole message (RFC 2104).
    pub(super) fn mac(self, key: &[u8], message: &[u8]) -> Zeroizing<Vec<u8>> {
        with_digest!(self, H => prf::mac::<H>(key, message))
    }
}

/// Work for one password at a time. Jobs of one kind take the same time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Serial {
    /// PBKDF2-HMAC (RFC 8018 §5.2).
    Pbkdf2 { digest: Digest, iterations: u32, bytes: u32 },
    /// scrypt (RFC 7914), N = 2^`log_n`.
    Scrypt { log_n: u8, r: u32, p: u32, bytes: u32 },
    /// phpass and Drupal: H(salt, password), then `rounds` times H(last, password), with `blocks` compressions each
    /// time.
    Chain { digest: Digest, rounds: u32, blocks: u32 },
    /// SHA-crypt: `rounds` digests of the last one with password and salt, of `blocks` compressions on average.
    ShaCrypt { digest: Digest, rounds: u32, blocks: u32 },
}

/// The next of eight numbers between two powers of two.
fn rounded_up(number: u32) -> u32 {
    let step = 1 << number.max(8).ilog2().saturating_sub(3);
    number.checked_next_multiple_of(step).unwrap_or(u32::MAX)
}

impl Serial {
    /// The same with a number of iterations that is one of few, and no smaller.
    pub(crate) fn rounded_up(self) -> Self {
        match self {
            Serial::Pbkdf2 { digest, iterations, bytes } => {
                Serial::Pbkdf2 { digest, iterations: rounded_up(iterations), bytes }
            }
            Serial::Chain { digest, rounds, blocks } => Serial::Chain { digest, rounds: rounded_up(rounds), blocks },
            Serial::ShaCrypt { digest, rounds, blocks } => {
                Serial::ShaCrypt { digest, rounds: rounded_up(rounds), blocks }
            }
            Serial::Scrypt { .. } => self,
        }
    }

    /// PBKDF2 for a stored key of `bytes`. Of a key longer than one digest only the first block is computed: the blocks
    /// are independent, each is sufficient proof, and an attacker does not compute the others either.
    pub(crate) fn pbkdf2(digest: Digest, iterations: u32, bytes: usize) -> Self {
        Serial::Pbkdf2 { digest, iterations, bytes: bytes.min(digest.bytes()) as u32 }
    }
    /// scrypt for a stored key of `bytes`; it ends in PBKDF2-HMAC-SHA-256, so the same holds as for [`Serial::pbkdf2`].
    pub(crate) fn scrypt(log_n: u8, r: u32, p: u32, bytes: usize) -> Self {
        Serial::Scrypt { log_n, r, p, bytes: bytes.min(Digest::Sha256.bytes()) as u32 }
    }

    /// phpass and Drupal with a password of `bytes`.
    pub(crate) fn chain(digest: Digest, rounds: u32, bytes: usize) -> Self {
        Serial::Chain { digest, rounds, blocks: digest.compressions(digest.bytes() + bytes) }
    }
    /// SHA-crypt with a password of `bytes`. A round takes the password once, and in six rounds of seven again; and in
    /// two of three the salt of up to 16 bytes.
    pub(crate) fn sha_crypt(digest: Digest, rounds: u32, bytes: usize) -> Self {
        Serial::ShaCrypt { digest, rounds, blocks: digest.compressions(digest.bytes() + bytes * 13 / 7 + 11) }
    }

    /// The same without the password's length: nobody is to know it, and each unit of work takes the same time.
    pub(crate) fn of_any_password(self) -> Self {
        match self {
            Serial::Chain { digest, rounds, .. } => Serial::Chain { digest, rounds, blocks: 1 },
            Serial::ShaCrypt { digest, rounds, .. } => Serial::ShaCrypt { digest, rounds, blocks: 1 },
            other => other,
        }
    }

    /// Memory that it needs, in KiB, rounded up. scrypt takes its `p` blocks one after the other in the same memory.
    pub(crate) fn memory(self) -> u64 {
        match self {
            Serial::Scrypt { log_n, r, p, .. } => {
                (128 * u64::from(r) * ((1 << log_n) + u64::from(p) + 1)).div_ceil(1024)
            }
            Serial::Pbkdf2 { .. } | Serial::Chain { .. } | Serial::ShaCrypt { .. } => 1,
        }
    }

    /// The work, in units that a core does in about a nanosecond: a first guess of the time, until it is measured.
    pub(crate) fn work(self) -> u64 {
        match self {
            // Two compressions an iteration.
            Serial::Pbkdf2 { digest, iterations, .. } => 2 * digest.nanoseconds() * u64::from(iterations),
            // Each 128 bytes are mixed twice, and read once from anywhere in memory.
            Serial::Scrypt { log_n, r, p, .. } => ((u64::from(r) * u64::from(p)) << log_n).saturating_mul(400),
            Serial::Chain { digest, rounds, blocks } | Serial::ShaCrypt { digest, rounds, blocks } => {
                digest.nanoseconds() * u64::from(rounds) * u64::from(blocks)
            }
        }
    }

    /// Computes the tag of `password` under `salt`. `None` if there is no memory for it, or it is outside the limits.
    pub(crate) fn tag(self, password: &[u8], salt: &[u8]) -> Option<Tag> {
        match self {
            Serial::Pbkdf2 { digest, iterations, bytes } => {
                with_digest!(digest, H => Some(pbkdf2_of::<H>(password, salt, iterations, bytes)))
            }
            Serial::Scrypt { log_n, r, p, bytes } => {
                let mut tag = Zeroizing::new(vec![0; bytes as usize]);
                scrypt((password, salt), (log_n, r, p), &mut tag).ok()?;
                Some(tag)
            }
            Serial::Chain { digest, rounds, .. } => {
                with_digest!(digest, H => Some(chain_of::<H>(password, salt, rounds)))
            }
            Serial::ShaCrypt { digest, rounds, .. } => {
                let params = sha_crypt::Params::new(rounds).ok()?;
                match digest {
                    Digest::Sha256 => Some(kept(sha_crypt::sha256_crypt(password, salt, params))),
                    Digest::Sha512 => Some(kept(sha_crypt::sha512_crypt(password, salt, params))),
                    Digest::Md5 | Digest::Sha1 | Digest::Sha384 => None,
                }
            }
        }
    }
}

impl Digest {
    /// About how long one compression takes, on a CPU with instructions for SHA-1 and SHA-256.
    const fn nanoseconds(self) -> u64 {
        match self {
            Digest::Md5 => 130,
            Digest::Sha1 | Digest::Sha256 => 70,
            Digest::Sha384 | Digest::Sha512 => 250,
        }
    }
    /// How many compressions a message of `bytes` takes: a byte marks its end, and its length follows.
    const fn compressions(self, bytes: usize) -> u32 {
        let block = self.block();
        (bytes + block / 8 + 1).div_ceil(block) as u32
    }
    /// Bytes that one compression takes.
    const fn block(self) -> usize {
        match self {
            Digest::Md5 | Digest::Sha1 | Digest::Sha256 => 64,
            Digest::Sha384 | Digest::Sha512 => 128,
        }
    }
}

fn pbkdf2_of<H: EagerHash>(password: &[u8], salt: &[u8], iterations: u32, bytes: u32) -> Tag {
    let mut tag = Zeroizing::new(vec![0; bytes as usize]);
    prf::pbkdf2::<H>(password, salt, iterations, &mut tag);
    tag
}

/// In one place: moving a state would leave behind the password that it has buffered.
fn chain_of<H: hmac::digest::Digest + FixedOutputReset>(password: &[u8], salt: &[u8], rounds: u32) -> Tag {
    let (mut hash, mut last) = (<H as hmac::digest::Digest>::new(), Output::<H>::default());
    digest::Update::update(&mut hash, salt);
    for _ in 0..rounds {
        digest::Update::update(&mut hash, password);
        FixedOutputReset::finalize_into_reset(&mut hash, &mut last);
        digest::Update::update(&mut hash, &last);
    }
    digest::Update::update(&mut hash, password);
    FixedOutputReset::finalize_into_reset(&mut hash, &mut last);
    kept(last)
}

/// Copies the bytes of a digest, and wipes it.
pub(super) fn kept(mut digest: impl AsMut<[u8]>) -> Tag {
    let tag = Zeroizing::new(digest.as_mut().to_vec());
    digest.as_mut().zeroize();
    tag
}
