//! Measures the cost of the SQLite engine: 64 writers of three-row batches, compared with one commit at a time and with
//! plain SQLite at 33 such batches per transaction; and the cost of a fetch of five rows.
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

/// The figures are measured in turns, so that other load on the machine affects all of them alike.
const ROUNDS: i64 = 7;

/// How long each figure is measured in one round.
const SPAN: Duration = Duration::from_secs(1);

/// The number of concurrent writers.
const WRITERS: i64 = 64;

/// The number of batches in one transaction of plain SQLite.
const TOGETHER: i64 = 33;

fn main() -> Result<(), Failure> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!("fsync of 4 KiB appended     {:8.2} ms", fsync_ms(&folder.path().join("probe"))?);
    let raw = Raw::open(&folder.path().join("raw.db"))?;
    let engine = runtime.block_on(engine(&folder.path().join("store.db")))?;
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    let (mut times, mut shares, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let base = round * 10_000_000;
        let plain = raw.write(base)?;
        let alone = runtime.block_on(store(&engine, base, 1))?;
        let before = engine.stats();
        let many = runtime.block_on(store(&engine, base + 5_000_000, WRITERS))?;
        let after = engine.stats();
        groups.push((after.batches - before.batches) as f64 / (after.commits - before.commits) as f64);
        for (rates, rate) in rates.iter_mut().zip([plain, alone, many]) {
            rates.push(rate);
        }
        times.push(many.rate / alone.rate);
        shares.push(100.0 * many.rate / plain.rate);
    }
    for (name, rates) in
        ["plain SQLite, 33 together  ", "store, one at a time       ", "store, 64 writers          "].iter().zip(rates)
    {
        let rate = spread(rates.iter().map(|one| one.rate));
        let cpu = spread(rates.iter().map(|one| one.cpu_us));
        println!("{name} {:8.0} batches/s ({:.0} to {:.0}), {:.1} us of CPU each", rate.1, rate.0, rate.2, cpu.1);
    }
    for (name, figures, least) in
        [("one at a time", times, "x, at least 3"), ("plain SQLite", shares, "%, at least 75")]
    {
        let (low, middle, high) = spread(figures.into_iter());
        println!("64 writers / {name:14} {middle:8.2} ({low:.2} to {high:.2}) {least}");
    }
    let (low, middle, high) = spread(groups.into_iter());
    println!(
        "64 writers: batches a commit{middle:8.1} ({low:.1} to {high:.1}), {:.2} ms each",
        engine.stats().commit_ms
    );
    runtime.block_on(reads(&engine))
}

/// Batches per second, and the CPU time of the process for each.
#[derive(Clone, Copy)]
struct Rate {
    rate: f64,
    cpu_us: f64,
}

impl Rate {
    fn of(batches: i64, took: Duration, cpu: Duration) -> Self {
        let batches = batches as f64;
        Rate { rate: batches / took.as_secs_f64(), cpu_us: cpu.as_secs_f64() * 1e6 / batches }
    }
}

/// Returns the lowest, the median and the highest.
fn spread(figures: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1])
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

/// SQLite alone, with full durability.
struct Raw(Connection);

impl Raw {
    fn open(path: &Path) -> Result<Self, Failure> {
        let conn = Connection::open(path)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        for step in MIGRATIONS.iter().flat_map(|migration| migration.steps) {
            conn.execute_batch(step)?;
        }
        Ok(Raw(conn))
    }

    /// Writes the same rows as [`three_rows`], from this number on, as much out of order as that many writers send
    /// them: rows in key order are cheaper, because they are always appended at the end.
    fn write(&self, base: i64) -> Result<Rate, Failure> {
        let mut put = self.0.prepare("INSERT INTO note (realm, name, body, number) VALUES (?, ?, ?, ?)")?;
        let body = "x".repeat(64);
        let (start, before, mut number) = (Instant::now(), cpu(), base);
        while start.elapsed() < SPAN {
            self.0.execute_batch("BEGIN IMMEDIATE")?;
            for _ in 0..TOGETHER {
                let place = number - base;
                // 29 is coprime to the number of writers, so each place comes once.
                let key = base + place / WRITERS * WRITERS + place * 29 % WRITERS;
                for name in ["code", "session", "event"] {
                    put.execute(params!["bench", format!("{key}-{name}"), body, key])?;
                }
                number += 1;
            }
            self.0.execute_batch("COMMIT")?;
        }
        Ok(Rate::of(number - base, start.elapsed(), cpu() - before))
    }
}

async fn engine(path: &Path) -> Result<Arc<Sqlite>, Failure> {
    let engine = Sqlite::open(Options::at(path), MIGRATIONS)?;
    engine.migrate().await.map_err(|why| why.0)?;
    Ok(Arc::new(engine))
}

/// Runs this many writers, each of which waits for its answer.
async fn store(engine: &Arc<Sqlite>, base: i64, writers: i64) -> Result<Rate, Failure> {
    let (start, before) = (Instant::now(), cpu());
    let mut running = JoinSet::new();
    for writer in 0..writers {
        let engine = Arc::clone(engine);
        running.spawn(async move {
            let mut done = 0;
            while start.elapsed() < SPAN {
                let batch = three_rows(base + writer + done * writers);
                engine.commit(batch).await.map_err(|error| format!("{error:?}"))?;
                done += 1;
            }
            Ok::<_, String>(done)
        });
    }
    let mut batches = 0;
    while let Some(done) = running.join_next().await {
        batches += done??;
    }
    Ok(Rate::of(batches, start.elapsed(), cpu() - before))
}

/// The cost of five point reads in CPU time: as the engine runs them, and when handed to another thread.
async fn reads(engine: &Arc<Sqlite>) -> Result<(), Failure> {
    const FETCHES: i64 = 50_000;
    // Every round wrote the first thousand of its numbers.
    let reads = |fetch: i64| five_reads(5_000_005 + fetch % ROUNDS * 10_000_000 + fetch.wrapping_mul(7919) % 1000);
    let price = |start: Duration| (cpu() - start).as_secs_f64() * 1e6 / FETCHES as f64;
    let start = cpu();
    for round in 0..FETCHES {
        engine.fetch(&reads(round)).await.map_err(|why| why.0)?;
    }
    println!("a fetch of five rows        {:8.1} us of CPU   (at most 25)", price(start));
    let start = cpu();
    for round in 0..FETCHES {
        std::hint::black_box(reads(round));
    }
    println!("  of which to ask for it    {:8.1} us of CPU", price(start));
    let handle = tokio::runtime::Handle::current();
    let start = cpu();
    for round in 0..FETCHES {
        let (engine, handle) = (Arc::clone(engine), handle.clone());
        let fetch = move || handle.block_on(async { engine.fetch(&reads(round)).await });
        tokio::task::spawn_blocking(fetch).await?.map_err(|why| why.0)?;
    }
    println!("  handed to another thread  {:8.1} us of CPU", price(start));
    Ok(())
}

/// CPU time of the whole process so far.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
