//! Passwords a second of the pool as a server runs it, for setting other figures beside it.
//!
//! `cargo run --release -p hasher --example rate -- SECONDS [M T P | HASH]` prints one number: for the default policy, for
//! Argon2id with these parameters (m in KiB), or for verifying a stored hash.
#![allow(clippy::print_stdout, reason = "a number on the terminal is what this is for")]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use hasher::{FairKey, Hasher, Policy, Settings, Stored};

/// Enough callers that every thread always finds a full batch.
const CALLERS: usize = 64;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (seconds, policy, stored) = match words[..] {
        [seconds] => (seconds, Policy::default(), None),
        [seconds, hash] => (seconds, Policy::default(), Some(hash.parse::<Stored>()?)),
        [seconds, m, t, p] => (seconds, Policy::new(m.parse()?, t.parse()?, p.parse()?)?, None),
        _ => return Err("usage: rate SECONDS [M T P | HASH]".into()),
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

/// Passwords a second of many callers, who ask again as soon as they were answered.
async fn run(hasher: &Hasher, stored: Option<&Stored>, span: Duration) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (hasher, stored) = (hasher.clone(), stored.cloned());
        let key = FairKey::new("main", [127, 0, 0, 1].into());
        callers.spawn(async move {
            let mut done = 0;
            while begun.elapsed() < span {
                match &stored {
                    Some(stored) => drop(hasher.verify(&key, stored, b"plum-Lantern-47-orbit").await?),
                    None => drop(hasher.hash(&key, b"plum-Lantern-47-orbit", [7; 16]).await?),
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
