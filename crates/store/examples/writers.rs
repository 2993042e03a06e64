//! What the SQLite engine costs: 64 writers of three-row batches beside one commit at a time and beside plain SQLite at 33
//! such batches a transaction, and the price of a fetch of five rows.
//!
//! `cargo run --release -p store --example writers [FOLDER]`: the folder decides which disk is measured.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use rustix::time::{ClockId, clock_gettime};
use store::conformance::{MIGRATIONS, five_reads, three_rows};
use store::engine::Engine;
use store::sqlite::{Options, Sqlite};
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// How long each figure is measured.
const SPAN: Duration = Duration::from_secs(4);

/// Writers at the same time.
const WRITERS: i64 = 64;

/// Batches in one transaction of plain SQLite.
const TOGETHER: i64 = 33;

fn main() -> Result<(), Failure> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sync = fsync_ms(&folder.path().join("probe"))?;
    println!("fsync of 4 KiB appended     {sync:8.2} ms");

    let raw = raw(&folder.path().join("raw.db"))?;
    println!("plain SQLite, 33 together   {raw:8.0} batches/s");
    let alone = runtime.block_on(store(folder.path().join("alone.db"), 1))?;
    println!("store, one at a time        {alone:8.0} batches/s");
    let many = runtime.block_on(store(folder.path().join("many.db"), WRITERS))?;
    println!("store, 64 writers           {many:8.0} batches/s");
    println!("  against one at a time     {:8.2} x   (at least 3)", many / alone);
    println!("  against plain SQLite      {:8.0} %   (at least 75)", 100.0 * many / raw);
    runtime.block_on(reads(folder.path().join("many.db")))
}

/// The time to append and sync one page, as the median of many.
fn fsync_ms(path: &Path) -> Result<f64, Failure> {
    use std::io::Write;
    let mut file = std::fs::File::create(path)?;
    let mut took = Vec::new();
    for _ in 0..200 {
        file.write_all(&[1; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(took[took.len() / 2])
}

/// The same rows, written by the library alone with full durability.
fn raw(path: &Path) -> Result<f64, Failure> {
    let conn = Connection::open(path)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    for step in MIGRATIONS.iter().flat_map(|migration| migration.steps) {
        conn.execute_batch(step)?;
    }
    let mut put = conn.prepare("INSERT INTO note (realm, name, body, number) VALUES (?, ?, ?, ?)")?;
    let body = "x".repeat(64);
    let (start, mut number) = (Instant::now(), 0);
    while start.elapsed() < SPAN {
        conn.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..TOGETHER {
            for name in ["code", "session", "event"] {
                put.execute(params!["bench", format!("{number}-{name}"), body, number])?;
            }
            number += 1;
        }
        conn.execute_batch("COMMIT")?;
    }
    Ok(number as f64 / start.elapsed().as_secs_f64())
}

/// Batches a second of so many writers, each of which waits for its answer.
async fn store(path: PathBuf, writers: i64) -> Result<f64, Failure> {
    let engine = Arc::new(Sqlite::open(Options::at(path), MIGRATIONS)?);
    engine.migrate().await.map_err(|why| why.0)?;
    let (start, cpu) = (Instant::now(), cpu());
    let mut running = JoinSet::new();
    for writer in 0..writers {
        let engine = Arc::clone(&engine);
        running.spawn(async move {
            let mut number = writer;
            while start.elapsed() < SPAN {
                engine.commit(three_rows(number)).await.map_err(|error| format!("{error:?}"))?;
                number += writers;
            }
            Ok::<_, String>(number / writers)
        });
    }
    let mut batches = 0;
    while let Some(done) = running.join_next().await {
        batches += done??;
    }
    let took = start.elapsed();
    let stats = engine.stats();
    println!(
        "  {:.1} batches a commit, {:.2} ms each; {:.1} us of CPU a batch",
        stats.batches as f64 / stats.commits as f64,
        stats.commit_ms,
        (self::cpu() - cpu).as_secs_f64() * 1e6 / batches as f64
    );
    Ok(batches as f64 / took.as_secs_f64())
}

/// The price of five point reads: as the engine does them, and handed to another thread.
async fn reads(path: PathBuf) -> Result<(), Failure> {
    const ROUNDS: i64 = 50_000;
    let engine = Arc::new(Sqlite::open(Options::at(path), MIGRATIONS)?);
    let number = |round: i64| 5 + round.wrapping_mul(7919) % 10_000;
    let start = Instant::now();
    for round in 0..ROUNDS {
        engine.fetch(&five_reads(number(round))).await.map_err(|why| why.0)?;
    }
    println!("a fetch of five rows        {:8.1} us", start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
    let start = Instant::now();
    for round in 0..ROUNDS {
        std::hint::black_box(five_reads(number(round)));
    }
    println!("  of which to ask for it    {:8.1} us", start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
    let handle = tokio::runtime::Handle::current();
    let start = Instant::now();
    for round in 0..ROUNDS {
        let (engine, handle) = (Arc::clone(&engine), handle.clone());
        let fetch = move || handle.block_on(async { engine.fetch(&five_reads(number(round))).await });
        tokio::task::spawn_blocking(fetch).await?.map_err(|why| why.0)?;
    }
    println!("  handed to another thread  {:8.1} us", start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
    Ok(())
}

/// CPU time of the whole process so far.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
