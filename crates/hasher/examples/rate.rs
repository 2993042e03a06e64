//! Passwords per second of the pool as a server runs it, for comparison with other figures.
//!
//! `cargo run --release -p hasher --example rate -- SECONDS [M T P | HASH | argon2-rust]` prints one number: for the
//! default policy, for Argon2id with these parameters (m in KiB), for verifying a stored hash, or for the default
//! policy with the fastest library for one password at a time, with memory that is kept and one thread per core.
#![allow(clippy::print_stdout, reason = "a number on the terminal is what this is for")]

use std::{
    error::Error,
    thread,
    time::{Duration, Instant},
};

use argon2_rust::params::{Memory, TagLen};
use argon2_rust::{Algorithm, Argon2, Params, Version};
use hasher::{FairKey, Hasher, Policy, Settings, Stored};

/// Callers for each core: enough that every thread always finds a full batch.
const CALLERS: usize = 24;

const PASSWORD: &[u8] = b"plum-Lantern-47-orbit";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (seconds, policy, stored) = match words[..] {
        [seconds] => (seconds, Policy::default(), None),
        [seconds, "argon2-rust"] => {
            println!("{:.2}", one_at_a_time(Duration::try_from_secs_f64(seconds.parse()?)?)?);
            return Ok(());
        }
        [seconds, hash] => (seconds, Policy::default(), Some(hash.parse::<Stored>()?)),
        [seconds, m, t, p] => (seconds, Policy::weak(m.parse()?, t.parse()?, p.parse()?)?, None),
        _ => return Err("usage: rate SECONDS [M T P | HASH | argon2-rust]".into()),
    };
    let span = Duration::try_from_secs_f64(seconds.parse()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    // Nobody is turned away, and the first hash of any cost fits.
    let settings = Settings { policy, max_wait: Duration::from_secs(3600), ..Settings::default() };
    let hasher = Hasher::start(settings)?;
    runtime.block_on(hasher.calibrate());
    runtime.block_on(run(&hasher, stored.as_ref(), Duration::from_millis(500)))?;
    println!("{:.2}", runtime.block_on(run(&hasher, stored.as_ref(), span))?);
    Ok(())
}

/// Passwords per second with one thread per core, each of which hashes one password after the other in its own memory.
fn one_at_a_time(span: Duration) -> Result<f64, Failure> {
    let params = Params::builder().memory(Memory::kib(19_456)).passes(2).lanes(1).threads(1);
    let params = params.tag_len(TagLen::bytes(32)).build().map_err(|error| format!("{error:?}"))?;
    let hash = || {
        let mut hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hasher();
        let (mut begun, mut done) = (Instant::now(), 0_u32);
        let mut warm = false;
        while begun.elapsed() < span {
            hasher.hash_into(PASSWORD, &[7; 16], &mut [0; 32]).map_err(|error| format!("{error:?}"))?;
            match warm {
                true => done += 1,
                false => (begun, warm) = (Instant::now(), true),
            }
        }
        Ok::<f64, String>(f64::from(done) / begun.elapsed().as_secs_f64())
    };
    let rates: Result<Vec<f64>, String> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(hash)).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread died".to_owned())?).collect()
    });
    Ok(rates?.into_iter().sum())
}

/// Passwords per second of many callers, each of which asks again as soon as it is answered.
async fn run(hasher: &Hasher, stored: Option<&Stored>, span: Duration) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS * thread::available_parallelism()?.get() {
        let (hasher, stored) = (hasher.clone(), stored.cloned());
        let who = FairKey::new("main", [127, 0, 0, 1].into());
        callers.spawn(async move {
            let mut done = 0;
            while begun.elapsed() < span {
                match &stored {
                    Some(stored) => drop(hasher.verify(&who, stored, PASSWORD).await?),
                    None => drop(hasher.hash(&who, PASSWORD, [7; 16]).await?),
                }
                done += 1;
            }
            Ok::<u32, hasher::Refusal>(done)
        });
    }
    let mut done = 0;
    while let Some(caller) = callers.join_next().await {
        done += caller??;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
