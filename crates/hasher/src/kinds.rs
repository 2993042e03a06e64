//! A kind of work as text, for programs that tell others which kinds of stored hashes there are.

use std::{fmt, str::FromStr};

use crate::{
    argon2::{Algorithm, Params, Version},
    formats::{Digest, limits, serial::Serial},
    job::{Kind, Work},
    policy::{Policy, TAG_BYTES},
};

impl Work {
    /// The work of a new hash under this policy.
    pub fn of_policy(policy: &Policy) -> Self {
        Work(Kind::of_policy(policy.cost))
    }
}

/// A text that is no kind of work known to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWork;

impl fmt::Display for UnknownWork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a kind of work that this program knows")
    }
}

impl std::error::Error for UnknownWork {}

/// Omits the length of an Argon2 tag, which takes no time.
impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Argon2(Params { algorithm, version, cost, .. }) => {
                let (m, t, p) = (cost.memory(), cost.passes(), cost.lanes());
                write!(out, "{} v={} m={m} t={t} p={p}", algorithm.name(), version as u32)
            }
            Kind::Bcrypt { cost } => write!(out, "bcrypt cost={cost}"),
            Kind::Serial(Serial::Pbkdf2 { digest, iterations, bytes }) => {
                write!(out, "pbkdf2-{} n={iterations} bytes={bytes}", digest.name())
            }
            Kind::Serial(Serial::Scrypt { log_n, r, p, bytes }) => {
                write!(out, "scrypt ln={log_n} r={r} p={p} bytes={bytes}")
            }
            Kind::Serial(Serial::Chain { digest, rounds, blocks }) => {
                write!(out, "chain-{} n={rounds} blocks={blocks}", digest.name())
            }
            Kind::Serial(Serial::ShaCrypt { digest, rounds, blocks }) => {
                write!(out, "crypt-{} n={rounds} blocks={blocks}", digest.name())
            }
        }
    }
}

/// The largest number that is accepted: times stay far from any overflow.
const MOST: u32 = 100_000_000;

impl FromStr for Work {
    type Err = UnknownWork;
    fn from_str(text: &str) -> Result<Self, UnknownWork> {
        read(text).map(Work).ok_or(UnknownWork)
    }
}

fn read(text: &str) -> Option<Kind> {
    let mut words = text.split(' ');
    let name = words.next()?;
    let mut number = |name: &str| {
        let number = words.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()?;
        (number <= MOST).then_some(number)
    };
    let kind = match name.split_once('-') {
        Some((family, digest)) => {
            let digest = Digest::named(digest)?;
            Kind::Serial(match family {
                "pbkdf2" => Serial::Pbkdf2 { digest, iterations: number("n")?, bytes: number("bytes")? },
                "chain" => Serial::Chain { digest, rounds: number("n")?, blocks: number("blocks")? },
                "crypt" => Serial::ShaCrypt { digest, rounds: number("n")?, blocks: number("blocks")? },
                _ => return None,
            })
        }
        None if name == "bcrypt" => Kind::Bcrypt { cost: number("cost").filter(|cost| *cost < 32)? },
        None if name == "scrypt" => {
            let log_n = number("ln").filter(|log_n| *log_n < 32)?.try_into().ok()?;
            let mut small = |name| number(name).filter(|number| *number < 1 << 14);
            Kind::Serial(Serial::Scrypt { log_n, r: small("r")?, p: small("p")?, bytes: number("bytes")? })
        }
        None => argon2(name, number)?,
    };
    words.next().is_none().then_some(kind)
}

fn argon2(name: &str, mut number: impl FnMut(&str) -> Option<u32>) -> Option<Kind> {
    let algorithms = [Algorithm::Argon2d, Algorithm::Argon2i, Algorithm::Argon2id];
    let algorithm = algorithms.into_iter().find(|algorithm| algorithm.name() == name)?;
    let version = match number("v")? {
        16 => Version::V16,
        19 => Version::V19,
        _ => return None,
    };
    let cost = limits::argon2(number("m")?, number("t")?, number("p")?).ok()?;
    Some(Kind::Argon2(Params { algorithm, version, cost, tag_bytes: TAG_BYTES as u32 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hasher, Settings};

    #[test]
    fn what_a_stored_hash_asks_for_is_read_as_it_was_written() {
        let hasher = Hasher::start(Settings::default()).unwrap();
        let tag = "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let hashes = [
            format!("$argon2id$v=19$m=19456,t=2,p=1${tag}"),
            format!("$argon2i$v=16$m=64,t=3,p=4${tag}"),
            "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i".to_owned(),
            "pbkdf2_sha256$1000$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=".to_owned(),
            "$P$BabcdefghrPxbV5UXi7XoWCQLxvQ001".to_owned(),
            "$5$rounds=5000$toolongsaltstrin$Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGsHvU31".to_owned(),
        ];
        for hash in hashes {
            let work = hasher.work(&hash.parse().unwrap()).unwrap();
            assert_eq!(work.to_string().parse(), Ok(work), "{hash}");
        }
        let scrypt = Work(Kind::Serial(Serial::scrypt(14, 8, 1, 64)));
        assert_eq!(scrypt.to_string().parse(), Ok(scrypt));
    }

    #[test]
    fn of_thousands_of_numbers_of_rounds_there_are_few_kinds_and_none_too_cheap() {
        // Red without `rounded_up` in Hasher::work: passlib's vary_rounds gives nearly each account its own number.
        let hasher = Hasher::start(Settings::default()).unwrap();
        let work = |rounds: u32| {
            let hash = format!("pbkdf2_sha256${rounds}$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=");
            let Work(Kind::Serial(Serial::Pbkdf2 { iterations, .. })) = hasher.work(&hash.parse().unwrap()).unwrap()
            else {
                panic!("{hash}")
            };
            assert!(iterations >= rounds && iterations <= rounds + rounds / 8, "{rounds}: {iterations}");
            iterations
        };
        let kinds: std::collections::BTreeSet<u32> = (540_000..660_000).step_by(17).map(work).collect();
        assert!(kinds.len() <= 4, "{kinds:?}");
        for rounds in [1000, 1023, 1024, 1025, 10_000_000] {
            work(rounds);
        }
    }

    #[test]
    fn anything_else_is_not_known() {
        for text in [
            "",
            "all",
            "bcrypt",
            "bcrypt cost=32",
            "bcrypt cost=4 x=1",
            "scrypt ln=60 r=8 p=1 bytes=32",
            "argon2id v=20 m=64 t=1 p=1",
            "argon2id v=19 m=1 t=1 p=1",
            "pbkdf2-sha3 n=1 bytes=1",
            "chain-md5 n=4000000000 blocks=1",
            "yescrypt n=1",
        ] {
            assert_eq!(text.parse::<Work>(), Err(UnknownWork), "{text}");
        }
    }
}
