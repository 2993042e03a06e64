//! The SQLite engine: one thread that writes in groups, a few connections that read, one file that survives power loss.

mod answer;
mod backup;
mod check;
mod copier;
mod fault;
mod group;
mod keeper;
mod migrate;
mod onlooker;
mod open;
mod place;
mod planner;
mod readers;
mod ready;
mod state;
mod stranger;
mod value;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub use backup::stands_alone;
pub use onlooker::Onlooker;
pub use open::{OpenError, absolute, is_held, local};
pub use state::{Check, Stats};
pub use stranger::vacant;
pub use writer::{ENOUGH, PACE};

use crate::dialect::Dialect;
use crate::engine::{Answer, CommitError, Durability, Engine, Health, Read, Row, Unavailable, Write};
use crate::schema::Migration;
use crate::turn;
use check::Checker;
use copier::Copier;
use group::Batch;
use keeper::Keeper;
use place::Place;
use readers::{Pace, Pool, Stopped};
use state::{State, hold};
use writer::{Job, Writer};

/// When a write is synced to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Before every answer: nothing acknowledged is lost as long as the disk survives.
    #[default]
    Full,
    /// Now and then: power loss may undo what was acknowledged shortly before it, revocations included. Shown as
    /// [`Durability::Bounded`].
    Normal,
}

impl Synchronous {
    fn keyword(self) -> &'static str {
        match self {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        }
    }
}

/// How to open a database.
#[derive(Clone)]
pub struct Options {
    /// The file. Its folder must exist.
    pub path: PathBuf,
    /// The number of connections that answer short reads, at least 1.
    pub readers: u32,
    /// When a write is synced to disk.
    pub synchronous: Synchronous,
    /// The maximum number of batches in one transaction, at least 1.
    pub group_limit: usize,
    /// The maximum number of batches that may wait; more are refused as unavailable.
    pub queue_limit: usize,
    /// Called on the writer thread, with the reason, when the disk did not confirm a write or the thread panicked.
    /// Should end the process: only a new one that reads the disk knows what is there. If it returns, nothing is
    /// written any more.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    /// The default options for this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let cores = thread::available_parallelism().map_or(2, |cores| cores.get() as u32);
        Options {
            path: path.into(),
            readers: cores.clamp(2, 4),
            synchronous: Synchronous::Full,
            group_limit: 256,
            queue_limit: 4096,
            on_fatal: Arc::new(|why| {
                tracing::error!(error = why, "writes to the database are no longer safe: exiting");
                eprintln!("writes to the database are no longer safe ({why}): exiting; start again once that is fixed");
                std::process::exit(1);
            }),
        }
    }
}

/// The number of long reads that run at the same time; more wait.
const LONG_READERS: u32 = 2;

/// A database in one file.
pub struct Sqlite {
    path: PathBuf,
    synchronous: Synchronous,
    queue_limit: usize,
    jobs: SyncSender<Job>,
    points: Arc<Pool>,
    scans: Arc<Pool>,
    state: Arc<State>,
    running: Mutex<Option<Running>>,
    /// The database file itself. Closing a file drops all locks that the process has on it (POSIX), including SQLite's.
    /// So it is closed last, and a read on another thread holds it, too.
    file: Arc<File>,
}

/// What is stopped when the database is closed.
struct Running {
    writer: JoinHandle<()>,
    checker: Option<Checker>,
    /// Released last.
    _lock: File,
}

impl Sqlite {
    /// Opens or creates the file, for this process alone. Leaves the schema as it is: see [`Engine::migrate`].
    ///
    /// After an unclean stop, the whole file is checked in the background ([`Sqlite::check`]).
    pub fn open(options: Options, migrations: &'static [Migration]) -> Result<Self, OpenError> {
        if !open::sound(rusqlite::version_number()) {
            return Err(OpenError::Version(rusqlite::version()));
        }
        let path = open::absolute(&options.path)?;
        open::local(&path)?;
        let lock = open::lock(&path)?;
        open::own(&path)?;
        // A clean close deletes the log, so its presence means an unclean stop.
        let unclean = open::beside(&path, "-wal").exists();
        let mut conn = open::writer(&path, options.synchronous)?;
        let state = Arc::new(State::new());
        let log = Arc::clone(&state);
        conn.wal_hook(Some(move |_: &mut _, pages| {
            log.wal_pages.store(pages as u32, Relaxed);
            Ok(())
        }))?;
        let points = Pool::open(&path, options.readers.max(1), Pace::Brief)?;
        let scans = Pool::open(&path, LONG_READERS, Pace::Any)?;
        let file = Arc::new(File::open(&path).map_err(|error| OpenError::Io(path.clone(), error))?);
        let copier = Copier::start(&path, Arc::clone(&file), options.synchronous)?;
        let (jobs, queue) = mpsc::sync_channel(options.queue_limit);
        let writer = Writer {
            jobs: queue,
            place: Place::of(&path),
            keeper: Keeper::new(copier, Arc::clone(&points), Arc::clone(&state)),
            state: Arc::clone(&state),
            migrations,
            group_limit: options.group_limit,
            last_group: 0,
            callers: 0,
            began: Instant::now(),
            complaints: writer::Complaints::default(),
            on_fatal: options.on_fatal,
        };
        let checker =
            if unclean { Some(Checker::start(&path, Arc::clone(&state))?.map_err(OpenError::Threads)?) } else { None };
        let thread = thread::Builder::new().name("sqlite-writer".to_owned());
        let writer = thread.spawn(move || writer.run(&conn)).map_err(OpenError::Threads)?;
        let running = Mutex::new(Some(Running { writer, checker, _lock: lock }));
        let Options { synchronous, queue_limit, .. } = options;
        Ok(Sqlite { path, synchronous, queue_limit, jobs, points, scans, state, running, file })
    }

    /// Commits waiting batches, copies the log into the database, and closes the file. New calls fail as unavailable.
    /// Blocks for some syncs; a second call does nothing. Dropping does the same.
    pub fn close(&self) {
        let Some(running) = hold(&self.running).take() else { return };
        if let Some(checker) = running.checker {
            checker.stop();
        }
        self.points.close();
        self.scans.close();
        // Fails only if the writer has already ended.
        drop(self.jobs.send(Job::Stop));
        if running.writer.join().is_err() {
            tracing::error!("the writer's thread panicked");
        }
    }

    /// The result of the check of the whole file, if one was needed.
    pub fn check(&self) -> Check {
        self.state.check()
    }

    /// What was done since the database was opened.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// Batches that wait for the writer or are being written.
    pub fn waiting(&self) -> usize {
        self.state.waiting.load(Relaxed)
    }

    /// The number of batches that may wait before more are refused.
    pub fn queue_limit(&self) -> usize {
        self.queue_limit
    }

    /// Connections for short reads: those in use, and all of them.
    pub fn readers(&self) -> (usize, usize) {
        self.points.usage()
    }

    /// Runs reads on a thread where they may take long.
    async fn scan(&self, reads: Vec<Read>) -> Result<Vec<Vec<Row>>, Unavailable> {
        self.state.long_fetches.fetch_add(1, Relaxed);
        let lease = self.scans.take().await?;
        let file = Arc::clone(&self.file);
        match tokio::task::spawn_blocking(move || (lease.answer(&reads), lease, file).0).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(Stopped::Failed(why))) => Err(why),
            Ok(Err(Stopped::Long)) | Err(_) => Err(Unavailable("a long read was stopped".to_owned())),
        }
    }

    /// Hands a job to the writer thread, if there is room.
    fn hand_over(&self, job: Job) -> Result<(), String> {
        self.state.accepts()?;
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.state.turned_away.fetch_add(1, Relaxed);
                "too many batches are waiting".to_owned()
            }
            TrySendError::Disconnected(_) => "the writer has stopped".to_owned(),
        })
    }
}

impl Engine for Sqlite {
    /// Runs short reads on the calling thread, which is faster than any hand-over; a fetch that turns out to be long is
    /// started again on a thread of its own. Needs a tokio runtime.
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            // SQLite's check of a table reads many pages between two instructions, which are what a budget counts.
            if reads.iter().any(|read| Dialect::Sqlite.soundness() == Some(read.sql.text())) {
                return self.scan(reads.to_vec()).await;
            }
            let brief = self.points.take().await?.answer(reads);
            match brief {
                Ok(rows) => Ok(rows),
                Err(Stopped::Failed(why)) => Err(why),
                Err(Stopped::Long) => self.scan(reads.to_vec()).await,
            }
        })
    }

    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let (answer, outcome) = oneshot::channel();
            let handed = Instant::now();
            self.state.waiting.fetch_add(1, Relaxed);
            self.hand_over(Job::Batch(Batch::new(writes), answer)).map_err(|why| {
                self.state.waiting.fetch_sub(1, Relaxed);
                CommitError::Unavailable(why)
            })?;
            match outcome.await {
                Ok(answered) => {
                    turn::waited(answered.begun().map_or(Duration::ZERO, |begun| begun.duration_since(handed)));
                    answered.take()
                }
                Err(_) => Err(CommitError::Unknown("the writer ended while it held this batch".to_owned())),
            }
        })
    }

    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(async move {
            let (answer, done) = oneshot::channel();
            self.hand_over(Job::Migrate(answer)).map_err(Unavailable)?;
            done.await.unwrap_or_else(|_| Err(Unavailable("the writer ended inside a schema step".to_owned())))
        })
    }

    fn health(&self) -> Answer<'_, Health, Unavailable> {
        let durability = match self.synchronous {
            Synchronous::Full => Durability::DurableNode,
            Synchronous::Normal => Durability::Bounded,
        };
        let health = Health { durability, writable: self.state.writable(), commit_ms: self.state.commit_ms() };
        Box::pin(std::future::ready(Ok(health)))
    }

    fn backup<'a>(&'a self, file: &'a Path) -> Answer<'a, (), Unavailable> {
        let (from, to) = (self.path.clone(), file.to_owned());
        Box::pin(async move {
            let file = Arc::clone(&self.file);
            let copy = tokio::task::spawn_blocking(move || (backup::run(&from, &to), file).0).await;
            copy.unwrap_or_else(|_| Err(Unavailable("the backup was stopped".to_owned())))
        })
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(async move {
            let (answer, done) = oneshot::channel();
            self.hand_over(Job::Alter(statements, answer)).map_err(Unavailable)?;
            done.await.unwrap_or_else(|_| Err(Unavailable("the writer ended inside a change of the schema".to_owned())))
        })
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.close();
    }
}
