//! Hashes a second of the pool, beside plain calls of the `argon2` crate on as many threads.
//!
//! `cargo run --release -p hasher --example rate` measures both in turn (A B A B) and prints medians, their spread and
//! the median of the ratios of neighbours, for 1 thread up to as many as the machine runs at once. With `pool SECONDS`
//! it prints only the rate of the pool as a server starts it, for setting other figures beside it.
#![allow(clippy::print_stdout, reason = "a report on the terminal is what this is for")]

use std::{
    error::Error,
    num::NonZeroUsize,
    thread,
    time::{Duration, Instant},
};

use hasher::{FairKey, Hasher, Policy, Settings};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const SALT: [u8; 16] = [7; 16];
const PASSWORD: &[u8] = b"correct horse battery staple";
const COSTS: [(u32, u32); 4] = [(19_456, 2), (47_104, 1), (65_536, 3), (7_168, 5)];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => compare(),
        [word, seconds] if word == "pool" => alone(Duration::try_from_secs_f64(seconds.parse()?)?),
        _ => Err("usage: rate [pool SECONDS]".into()),
    }
}

/// Hashes a second with the settings that a server has without any configuration.
fn alone(span: Duration) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let hasher = Hasher::start(Settings::default())?;
    let threads = hasher.state().threads;
    // The first hashes allocate the memory that later ones find.
    runtime.block_on(pool(&hasher, threads, ROUND))?;
    println!("{:.2}", runtime.block_on(pool(&hasher, threads, span))?);
    Ok(())
}

fn compare() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let cores = thread::available_parallelism()?.get();
    println!(
        "{:>14} {:>7} {:>16} {:>16} {:>6} {:>9}",
        "Argon2id", "threads", "plain /s", "pool /s", "ratio", "one job"
    );
    for (memory, passes) in COSTS {
        let policy = Policy::new(memory, passes, 1)?;
        for threads in 1..=cores {
            let settings =
                Settings { policy, threads: NonZeroUsize::new(threads), memory: Some(4 << 30), ..Settings::default() };
            let hasher = Hasher::start(settings)?;
            let (mut plain_rates, mut pool_rates) = (Vec::new(), Vec::new());
            runtime.block_on(pool(&hasher, threads, ROUND))?;
            for _ in 0..ROUNDS {
                plain_rates.push(plain(memory, passes, threads)?);
                pool_rates.push(runtime.block_on(pool(&hasher, threads, ROUND))?);
            }
            let ratios = plain_rates.iter().zip(&pool_rates).map(|(plain, pool)| pool / plain).collect();
            let single = runtime.block_on(latency(&hasher))?;
            println!(
                "{:>14} {threads:>7} {:>16} {:>16} {:>6.2} {single:>9.2?}",
                format!("{memory}/{passes}"),
                spread(plain_rates),
                spread(pool_rates),
                median(ratios),
            );
        }
    }
    Ok(())
}

/// Plain calls, each of which allocates its own memory.
fn plain(memory: u32, passes: u32, threads: usize) -> Result<f64, Box<dyn Error>> {
    let params = argon2::Params::new(memory, passes, 1, None).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let count = move || {
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params.clone());
        let (mut done, mut tag) = (0, [0; 32]);
        while begun.elapsed() < ROUND && argon2.hash_password_into(PASSWORD, &SALT, &mut tag).is_ok() {
            done += 1;
        }
        done
    };
    let counters: Vec<_> = (0..threads).map(|_| thread::spawn(count.clone())).collect();
    let done: u32 = counters.into_iter().filter_map(|counter| counter.join().ok()).sum();
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}

/// Twice as many callers as threads, so that no thread waits for one.
async fn pool(hasher: &Hasher, threads: usize, span: Duration) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..2 * threads {
        let (hasher, key) = (hasher.clone(), FairKey::new("main", [127, 0, 0, 1].into()));
        callers.spawn(async move {
            let mut done = 0;
            while begun.elapsed() < span {
                hasher.hash(&key, PASSWORD, SALT).await?;
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

/// Median time of one hash on a pool with nothing else to do.
async fn latency(hasher: &Hasher) -> Result<Duration, Box<dyn Error>> {
    let key = FairKey::new("main", [127, 0, 0, 1].into());
    let mut times = Vec::new();
    for _ in 0..15 {
        let begun = Instant::now();
        hasher.hash(&key, PASSWORD, SALT).await?;
        times.push(begun.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(times)))
}

fn spread(rates: Vec<f64>) -> String {
    let (low, high) = rates.iter().fold((f64::MAX, 0f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    format!("{:.1} ±{:.1}", median(rates), (high - low) / 2.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
