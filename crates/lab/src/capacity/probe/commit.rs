//! Commits: batches per second that reach the disk, alone and in groups, what each costs, and how long the disk takes.

use super::cpu;
use crate::capacity::figure::{Figure, means, quantile};
use load::Refusal;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::conformance::{MIGRATIONS, five_reads, three_rows};
use store::engine::Engine;
use store::sqlite::{Options, Sqlite};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// The numbers of concurrent writers; the writer thread commits waiting batches together.
pub const WRITERS: [usize; 4] = [1, 4, 16, 64];

/// What a number of writers reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The number of concurrent writers.
    pub writers: usize,
    /// Batches per commit.
    pub together: Figure,
    /// Batches per second.
    pub rate: Figure,
    /// The time of COMMIT in milliseconds, fsync included.
    pub commit_ms: Figure,
    /// Processor time of one batch, in microseconds.
    pub cpu_us: Figure,
}

/// What writing and reading cost on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// The results by number of writers.
    pub groups: Vec<Group>,
    /// The time of a lone commit in milliseconds, less its processor time: the means of equally frequent classes, from
    /// the shortest times to the longest.
    pub sync_ms: Vec<f64>,
    /// Point reads per second on one core.
    pub reads: Figure,
    /// The same on all cores at once.
    pub reads_all: Figure,
    /// The default number of connections that read.
    pub readers: u32,
}

impl Storage {
    /// Returns the median time of the disk for one commit, in milliseconds.
    pub fn sync(&self) -> f64 {
        quantile(&self.sync_ms, 0.5)
    }
}

const SPAN: Duration = Duration::from_millis(350);
/// The number of classes of disk times: enough that a time that was seen once is in a rare class.
const CLASSES: usize = 100;
/// Reads per fetch.
const IN_A_FETCH: f64 = 5.0;

/// Measures storage, sample by sample, in a database file of its own.
pub struct Probe {
    runtime: Runtime,
    engine: Arc<Sqlite>,
    cores: usize,
    readers: u32,
    next: i64,
    groups: Vec<Samples>,
    alone: Vec<f64>,
    reads: Vec<f64>,
    reads_all: Vec<f64>,
}

#[derive(Default)]
struct Samples {
    together: Vec<f64>,
    rate: Vec<f64>,
    commit_ms: Vec<f64>,
    cpu_us: Vec<f64>,
}

impl Probe {
    /// Opens a database in this temporary folder.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn new(folder: &Path, cores: usize) -> Result<Probe, Refusal> {
        let failed = |why: String| Refusal::Failure(format!("no database in {}: {why}", folder.display()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::Failure(format!("cannot start threads: {error}")))?;
        // The default handler ends the process, and would leave the folder behind.
        let on_fatal = Arc::new(|_: &str| ());
        let options = Options { on_fatal, ..Options::at(folder.join("capacity.db")) };
        let readers = options.readers;
        let engine = Sqlite::open(options, MIGRATIONS).map_err(|error| failed(error.to_string()))?;
        runtime.block_on(engine.migrate()).map_err(|why| failed(why.0))?;
        let groups = WRITERS.map(|_| Samples::default()).into();
        let (engine, empty) = (Arc::new(engine), Vec::new);
        Ok(Probe {
            runtime,
            engine,
            cores,
            readers,
            next: 0,
            groups,
            alone: empty(),
            reads: empty(),
            reads_all: empty(),
        })
    }

    /// Takes one more sample of everything.
    ///
    /// # Errors
    /// [`Refusal::Failure`] in one line: usually that the disk is full.
    pub fn round(&mut self) -> Result<(), Refusal> {
        for (at, writers) in WRITERS.into_iter().enumerate() {
            let (before, spent, begun) = (self.engine.stats(), cpu(), Instant::now());
            let (done, mut times) = self.write(writers)?;
            let (took, spent, after) = (begun.elapsed(), cpu() - spent, self.engine.stats());
            let commits = (after.commits - before.commits).max(1) as f64;
            let each = spent.as_secs_f64() * 1e6 / done as f64;
            let samples = &mut self.groups[at];
            samples.together.push((after.batches - before.batches) as f64 / commits);
            samples.rate.push(done as f64 / took.as_secs_f64());
            samples.commit_ms.push((after.commit_times.sum - before.commit_times.sum) * 1e3 / commits);
            samples.cpu_us.push(each);
            if writers == 1 {
                times.iter_mut().for_each(|time| *time = (*time - each / 1e3).max(0.0));
                self.alone.append(&mut times);
            }
        }
        let (one, all) = (self.read(1)?, self.read(self.cores)?);
        self.reads.push(one);
        self.reads_all.push(all);
        Ok(())
    }

    /// Runs this many writers, each waiting for its answer; returns how many batches, and each one's milliseconds.
    fn write(&mut self, writers: usize) -> Result<(i64, Vec<f64>), Refusal> {
        let (base, begun) = (self.next, Instant::now());
        let engine = &self.engine;
        let (done, times) = self
            .runtime
            .block_on(async {
                let mut running = JoinSet::new();
                for writer in 0..writers {
                    let engine = Arc::clone(engine);
                    running.spawn(async move {
                        let mut times = Vec::new();
                        while begun.elapsed() < SPAN {
                            let handed = Instant::now();
                            let number = base + (times.len() * writers + writer) as i64;
                            engine.commit(three_rows(number)).await.map_err(|error| error.to_string())?;
                            times.push(handed.elapsed().as_secs_f64() * 1e3);
                        }
                        Ok::<_, String>(times)
                    });
                }
                let (mut most, mut all) = (0, Vec::new());
                while let Some(ended) = running.join_next().await {
                    let times = ended.map_err(|error| error.to_string())??;
                    most = most.max(times.len());
                    all.extend(times);
                }
                Ok::<_, String>(((most * writers) as i64, all))
            })
            .map_err(|why| Refusal::Failure(format!("the disk does not take what is written: {why}")))?;
        self.next += done;
        Ok((times.len() as i64, times))
    }

    /// Returns the point reads per second of this many concurrent readers.
    fn read(&self, threads: usize) -> Result<f64, Refusal> {
        let (engine, newest, begun) = (&self.engine, self.next.max(10), Instant::now());
        let span = SPAN / 3;
        let done = self.runtime.block_on(async {
            let mut running = JoinSet::new();
            for thread in 0..threads as i64 {
                let engine = Arc::clone(engine);
                running.spawn(async move {
                    let mut done: i64 = 0;
                    while begun.elapsed() < span {
                        let place = (done * 7919 + thread * 31).rem_euclid(newest - 5) + 4;
                        engine.fetch(&five_reads(place)).await.map_err(|why| why.0)?;
                        done += 1;
                    }
                    Ok::<_, String>(done)
                });
            }
            let mut all = 0;
            while let Some(ended) = running.join_next().await {
                all += ended.map_err(|error| error.to_string())??;
            }
            Ok::<_, String>(all)
        });
        let done = done.map_err(|why| Refusal::Failure(format!("the database cannot be read: {why}")))?;
        Ok(done as f64 * IN_A_FETCH / begun.elapsed().as_secs_f64())
    }

    /// Returns the results.
    pub fn done(mut self) -> Storage {
        self.engine.close();
        self.alone.sort_by(f64::total_cmp);
        let groups = WRITERS.iter().zip(&self.groups).map(|(writers, samples)| Group {
            writers: *writers,
            together: Figure::of(&samples.together),
            rate: Figure::of(&samples.rate),
            commit_ms: Figure::of(&samples.commit_ms),
            cpu_us: Figure::of(&samples.cpu_us),
        });
        Storage {
            groups: groups.collect(),
            sync_ms: means(&self.alone, CLASSES),
            reads: Figure::of(&self.reads),
            reads_all: Figure::of(&self.reads_all),
            readers: self.readers,
        }
    }
}
