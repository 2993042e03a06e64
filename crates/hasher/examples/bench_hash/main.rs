//! Hashes per second on all cores, compared with other libraries in one run.
//!
//! `cargo run --release -p hasher --example bench_hash [-- NAME…]` measures in turn (A B A B), seven times: plain calls
//! of the `argon2` or `bcrypt` crate on one thread per core; `argon2-rust`, the fastest library for one password at a
//! time, with one pooled hasher per thread; the pool as a server starts it, with what it learned the round before; and
//! pools with each fixed number of lanes that the kind can have. It prints medians and half their range, the median of
//! the ratios within a round (to the best fixed number of lanes, too), the time of a single hash compared with the
//! kernels alone, the resident memory, and how late a light thread wakes while all cores hash. Figures with a goal are
//! judged, and the exit code is 1 if a goal is missed. Names are parts of those in the first column: `19456`, `bcrypt`,
//! `avx2`. A name takes about half a minute, `65536` two.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report on the terminal is what this is for")]

mod baseline;
mod report;

use std::{
    error::Error,
    net::Ipv4Addr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hasher::{Calibration, FairKey, Hasher, Level, Policy, Settings, Stored, bcrypt, tune};
use report::{Kernels, Row, median, percentile};
use tokio::{runtime::Runtime, task::JoinSet};

const ROUNDS: usize = 7;
/// The time of a round, for a hash that is not expensive.
const ROUND: Duration = Duration::from_millis(350);
/// Hashes of each contestant that are timed alone.
const SINGLES: usize = 41;
/// Callers per thread: enough that while a thread runs its batch, as many jobs wait.
const CALLERS: usize = 24;
const PASSWORD: &[u8] = b"correct horse battery staple";
const TAIL: &str = "$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const BCRYPT: &str = "$2b$10$abcdefghijklmnopqrstuuAnJ2ZBpRdpgbvuHuCbtnJlSEzXZqkHa";

/// What is hashed.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Argon2id with this memory in KiB and these passes.
    Argon2 {
        /// m, in KiB.
        memory: u32,
        /// t.
        passes: u32,
    },
    /// bcrypt at cost 10.
    Bcrypt,
}

impl What {
    /// Most lanes that a pool runs of this, whatever it is told.
    fn lanes(self) -> usize {
        match self {
            What::Argon2 { .. } => tune::MOST_TOGETHER,
            What::Bcrypt => bcrypt::MAX_TOGETHER,
        }
    }

    /// How long each contestant works in a round: a dozen batches per thread at least, or one more would matter.
    fn round(self) -> Duration {
        const BLOCKS: u32 = 50_000;
        match self {
            What::Argon2 { memory, passes } => ROUND * (memory * passes).div_ceil(BLOCKS),
            What::Bcrypt => ROUND,
        }
    }
}

/// One line of the report.
#[derive(Clone, Copy)]
struct Case {
    what: What,
    level: Level,
    /// Least ratios to the plain call and to `argon2-rust` to reach, where there are any.
    goal: Goal,
}

type Goal = (Option<f64>, Option<f64>);

/// The goal where the widest kernel is not that of AVX-512.
const NARROW: Goal = (None, Some(1.0));

fn cases() -> Vec<Case> {
    let argon2 = |memory, passes, plain, pooled| (What::Argon2 { memory, passes }, (Some(plain), Some(pooled)));
    let all = [
        argon2(19_456, 2, 3.0, 1.4),
        argon2(47_104, 1, 5.0, 1.2),
        argon2(65_536, 3, 4.3, 1.7),
        argon2(7_168, 5, 2.7, 1.0),
        (What::Bcrypt, (Some(3.0), None)),
    ];
    let wide = Level::best() > Level::Avx2;
    let best = |(what, goal)| Case { what, level: Level::best(), goal: if wide { goal } else { NARROW } };
    let mut cases: Vec<_> = all.map(best).to_vec();
    if wide {
        let masked = |&(what, _): &(What, _)| Case { what, level: Level::Avx2, goal: NARROW };
        cases.extend(all[..4].iter().map(masked));
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        match self.what {
            What::Argon2 { memory, passes } => format!("{memory}/{passes} {}", self.level.name()),
            What::Bcrypt => "bcrypt 10".to_owned(),
        }
    }
    fn policy(&self) -> Result<Policy, Box<dyn Error>> {
        Ok(match self.what {
            What::Argon2 { memory, passes } => Policy::new(memory, passes, 1)?,
            What::Bcrypt => Policy::default(),
        })
    }
    fn stored(&self) -> Result<Stored, Box<dyn Error>> {
        Ok(match self.what {
            What::Argon2 { memory, passes } => format!("$argon2id$v=19$m={memory},t={passes},p=1{TAIL}").parse()?,
            What::Bcrypt => BCRYPT.parse()?,
        })
    }
    /// Room for the lanes that are tried, on every thread.
    fn ceiling(&self) -> Result<u64, Box<dyn Error>> {
        Ok(u64::from(self.policy()?.cost().memory()) * 1024 * (self.what.lanes() * cores()) as u64)
    }
    fn settings(&self, calibration: Option<Calibration>) -> Result<Settings, Box<dyn Error>> {
        let (threads, memory) = (NonZeroUsize::new(cores()), Some(self.ceiling()?));
        let (level, max_wait) = (Some(self.level), Duration::from_secs(3600));
        Ok(Settings { policy: self.policy()?, threads, memory, max_wait, level, calibration, ..Settings::default() })
    }

    /// A pool that believes that this number of lanes is best.
    fn fixed(&self, machine: &str, lanes: usize) -> Result<Hasher, Box<dyn Error>> {
        let (name, unit) = match self.what {
            What::Argon2 { memory, passes } => (format!("argon2id m={memory} t={passes} p=1"), 1),
            What::Bcrypt => ("bcrypt".to_owned(), 250),
        };
        let pace = |of: usize| if of == lanes { 100 * unit } else { (100_000 - of * 5_000) * unit };
        let paces: Vec<_> = (1..=self.what.lanes()).map(|of| format!(" {}", pace(of))).collect();
        let text = format!("lanes 1\nmachine {machine}\n{name}:{}\n", paces.concat());
        Ok(Hasher::start(self.settings(Some(Calibration::from_text(&text)?))?)?)
    }
}

/// Threads that every contestant has.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let all = cases();
    if let Some(unknown) = names.iter().find(|part| !all.iter().any(|case| case.name().contains(part.as_str()))) {
        let known: Vec<_> = all.iter().map(Case::name).collect();
        return Err(format!("nothing is called {unknown}; there are {}", known.join(", ")).into());
    }
    report::head();
    let mut missed = 0;
    for case in all {
        let name = case.name();
        if names.is_empty() || names.iter().any(|part| name.contains(part.as_str())) {
            missed += measure(&case, &runtime)?.print(&name, case.goal);
        }
    }
    match missed {
        0 => Ok(()),
        missed => Err(format!("{missed} of these figures missed their goals").into()),
    }
}

fn measure(case: &Case, runtime: &Runtime) -> Result<Row, Box<dyn Error>> {
    let span = case.what.round();
    let resident = report::Watch::new();
    let hasher = Hasher::start(case.settings(None)?)?;
    report::progress(&case.name(), "calibrates");
    let begun = Instant::now();
    let machine = runtime.block_on(hasher.calibrate()).machine().to_owned();
    let mut row = Row { calibrated: begun.elapsed(), ceiling: case.ceiling()?, ..Row::default() };
    row.calibrated_lanes = case.lanes_of(&hasher);
    let stored = Arc::new(case.stored()?);
    runtime.block_on(load(&hasher, &stored, 2 * span))?;
    // Before the others need memory, too.
    row.resident = resident.most();
    let mut known = hasher.calibration();
    runtime.block_on(hasher.stop());
    let most = case.what.lanes();
    row.fixed = vec![Vec::new(); most];
    for round in 0..ROUNDS {
        report::progress(&case.name(), &format!("round {} of {ROUNDS}", round + 1));
        row.plain.push(baseline::plain(case.what, span)?);
        row.pooled.extend(baseline::pooled(case.what, case.level, span)?);
        // In another order each round, as the order may matter. And each pool in memory that the previous one had.
        for turn in 0..=most {
            let lanes = (turn + round) % (most + 1);
            if lanes > 0 {
                let pool = case.fixed(&machine, lanes)?;
                row.fixed[lanes - 1].push(runtime.block_on(load(&pool, &stored, span))?);
                runtime.block_on(pool.stop());
            } else {
                let pool = Hasher::start(case.settings(Some(known))?)?;
                row.pool.push(runtime.block_on(load(&pool, &stored, span))?);
                row.lanes = case.lanes_of(&pool);
                known = pool.calibration();
                runtime.block_on(pool.stop());
            }
        }
    }
    let hasher = Hasher::start(case.settings(Some(known))?)?;
    row.light = light(|| runtime.block_on(load(&hasher, &stored, 2 * span)).map(drop))?;
    (row.single, row.kernels) = runtime.block_on(single(case, &hasher, &stored))?;
    runtime.block_on(hasher.stop());
    Ok(row)
}

impl Case {
    /// How many hashes of this case the pool runs side by side.
    fn lanes_of(&self, hasher: &Hasher) -> usize {
        let name = match self.what {
            What::Argon2 { memory, passes } => format!("argon2id m={memory} t={passes} p=1"),
            What::Bcrypt => "bcrypt".to_owned(),
        };
        hasher.kinds().iter().find(|kind| kind.name == name).map_or(1, |kind| kind.lanes)
    }
}

/// Hashes per second with more callers than can run, once all memory is there: from the end of one batch to the end of
/// another, about `span` later.
async fn load(hasher: &Hasher, stored: &Arc<Stored>, span: Duration) -> Result<f64, Box<dyn Error>> {
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for host in 0..(CALLERS * cores()) as u32 {
        let (hasher, stored, over) = (hasher.clone(), stored.clone(), over.clone());
        let key = FairKey::new("main", Ipv4Addr::from_bits(0x0a00_0000 + host).into());
        callers.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let _ = hasher.verify(&key, &stored, PASSWORD).await?;
            }
            Ok::<(), hasher::Refusal>(())
        });
    }
    let batches = || hasher.state().batches_total;
    let (begun, before) = end_of_batch(hasher, batches() + 2 * cores() as u64).await;
    tokio::time::sleep(span).await;
    let (ended, after) = end_of_batch(hasher, batches() + 1).await;
    over.store(true, Ordering::Relaxed);
    callers.abort_all();
    while let Some(caller) = callers.join_next().await {
        match caller {
            Ok(done) => done?,
            Err(error) if error.is_cancelled() => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Running jobs end before anything else is measured.
    while hasher.state().running > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok((after - before) as f64 / (ended - begun).as_secs_f64())
}

/// When this many batches were done, and how many hashes that were.
async fn end_of_batch(hasher: &Hasher, batches: u64) -> (Instant, u64) {
    loop {
        let state = hasher.state();
        if state.batches_total >= batches {
            return (Instant::now(), state.done_total);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Median times of one hash on an otherwise idle pool and of one hash by each kernel, measured in turn.
async fn single(case: &Case, hasher: &Hasher, stored: &Stored) -> Result<(Duration, Kernels), Box<dyn Error>> {
    let key = FairKey::new("main", [127, 0, 0, 1].into());
    let mut kernels = baseline::alone(case.what, case.level)?;
    let (mut pool, mut alone) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..SINGLES {
        let begun = Instant::now();
        let _ = hasher.verify(&key, stored, PASSWORD).await?;
        pool.push(begun.elapsed().as_secs_f64());
        for ((_, hash), times) in kernels.iter_mut().zip(&mut alone) {
            let begun = Instant::now();
            hash();
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let median = |times: Vec<f64>| Duration::from_secs_f64(median(times));
    let names = kernels.iter().map(|(name, _)| *name);
    Ok((median(pool), names.zip(alone.map(median)).collect()))
}

/// How late a thread of ordinary priority that sleeps a millisecond at a time wakes while `busy` runs: median, 99th
/// percentile and worst.
fn light(busy: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<[Duration; 3], Box<dyn Error>> {
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let sleeper = thread::spawn(move || {
        let (pause, mut late) = (Duration::from_millis(1), Vec::new());
        while !seen.load(Ordering::Relaxed) {
            let begun = Instant::now();
            thread::sleep(pause);
            late.push(begun.elapsed().saturating_sub(pause).as_secs_f64());
        }
        late
    });
    let done = busy();
    over.store(true, Ordering::Relaxed);
    let late = sleeper.join().map_err(|_| "the light thread died")?;
    done?;
    Ok([0.5, 0.99, 1.0].map(|share| Duration::from_secs_f64(percentile(&late, share))))
}
