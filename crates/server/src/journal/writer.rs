//! The one thread that writes the journal.

use super::{part_file, written};
use crate::private;
use rules::Time;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The size from which on a file is followed by another one.
pub(super) const LARGEST: u64 = 16 << 20;
/// The most lines that one sync confirms.
const TOGETHER: usize = 1024;
/// How long after a failure the thread tries again to write.
const AGAIN: Duration = Duration::from_secs(1);
/// A line that has waited this long to reach the disk is trouble, although nothing has failed.
const STALLED: Duration = Duration::from_secs(5);
/// The bytes of such a try, all line endings: a disk that has no room for a line has room for an empty file.
const TRY: usize = 4096;

/// Creates a file that must not exist yet.
type Create = fn(&Path) -> io::Result<File>;

/// A line, and the caller that waits for it.
struct Job {
    line: String,
    done: oneshot::Sender<Result<(), String>>,
}

/// What the thread shares with its callers.
#[derive(Default)]
struct Shared {
    trouble: Mutex<Option<String>>,
    /// Since when each line waits that is not on the disk yet, the oldest first.
    waiting: Mutex<VecDeque<Instant>>,
    /// A file that was begun before this time is followed by another one.
    rotate: AtomicI64,
}

/// Takes lines, and answers once they are on the disk.
pub(super) struct Writer {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
}

impl Writer {
    /// Writes from file number `part` on, which must not exist.
    pub(super) fn start(folder: PathBuf, part: u64, largest: u64) -> io::Result<Self> {
        Writer::start_with(create, folder, part, largest)
    }

    pub(super) fn start_with(create: Create, folder: PathBuf, part: u64, largest: u64) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let shared = Arc::new(Shared::default());
        let hand = Hand { create, folder, part, largest, open: None, shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || hand.run(&queue))?;
        Ok(Writer { jobs, shared })
    }

    pub(super) async fn append(&self, line: String) -> Result<(), String> {
        let (done, answer) = oneshot::channel();
        let ended = || "the journal's thread has ended".to_owned();
        {
            // In the order in which the lines are written.
            let mut waiting = self.shared.waiting();
            self.jobs.send(Job { line, done }).map_err(|_| ended())?;
            waiting.push_back(Instant::now());
        }
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    pub(super) fn works(&self) -> Result<(), String> {
        if let Some(why) = &*self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(why.clone());
        }
        match self.shared.waiting().front() {
            Some(since) if since.elapsed() > STALLED => {
                Err(format!("a line has waited for the disk for more than {STALLED:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Lets a file that was begun before `time` be followed by another one, so that it can be removed some day.
    pub(super) fn rotate_before(&self, time: Time) {
        self.shared.rotate.store(time.0, SeqCst);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Hand {
    create: Create,
    folder: PathBuf,
    part: u64,
    largest: u64,
    open: Option<Part>,
    shared: Arc<Shared>,
}

/// The file that is being written.
struct Part {
    file: File,
    length: u64,
    begun: Time,
}

impl Part {
    fn add(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.length += text.len() as u64;
        Ok(())
    }
}

impl Hand {
    fn run(mut self, queue: &Receiver<Job>) {
        loop {
            let failing = self.is_failing();
            let first = match queue.recv_timeout(if failing { AGAIN } else { Duration::MAX }) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let jobs: Vec<Job> = first.into_iter().chain(queue.try_iter().take(TOGETHER - 1)).collect();
            let outcome = self.write(&jobs).map_err(|error| error.to_string());
            drop(self.shared.waiting().drain(..jobs.len()));
            self.note(&outcome);
            for job in jobs {
                // A caller that has gone need not know.
                drop(job.done.send(outcome.clone()));
            }
        }
    }

    /// Appends lines, and syncs; without any lines it is a try. After a failure it is not known what the file holds at
    /// its end, so the next lines go into another one.
    fn write(&mut self, jobs: &[Job]) -> io::Result<()> {
        let text = match jobs {
            [] => "\n".repeat(TRY),
            jobs => jobs.iter().map(|job| job.line.as_str()).collect(),
        };
        let mut part = match self.open.take() {
            Some(part) if part.length < self.largest && part.begun.0 >= self.shared.rotate.load(SeqCst) => part,
            _ => return self.begin_with(&text),
        };
        part.add(&text)?;
        self.open = Some(part);
        Ok(())
    }

    /// Writes into a new file. If that fails, the file is removed with what it may hold, none of which was
    /// acknowledged: otherwise a full disk would be left with an empty file for each try.
    fn begin_with(&mut self, text: &str) -> io::Result<()> {
        let path = part_file(&self.folder, self.part);
        let file = (self.create)(&path)?;
        let begin = || {
            private::hand_over(&file, &path)?;
            sync(&self.folder)?;
            let mut part = Part { file, length: 0, begun: written(&path)? };
            part.add(text).map(|()| part)
        };
        let begun = begin();
        if begun.is_ok() || fs::remove_file(&path).is_err() {
            self.part += 1;
        }
        self.open = Some(begun?);
        Ok(())
    }

    fn is_failing(&self) -> bool {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn note(&self, outcome: &Result<(), String>) {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (outcome, trouble.is_some()) {
            (Err(why), false) => {
                tracing::error!(
                    why,
                    "the journal cannot be written: sign-outs, revocations and other ends cannot be acknowledged"
                )
            }
            (Ok(()), true) => tracing::info!("the journal can be written again"),
            _ => {}
        }
        *trouble = outcome.clone().err();
    }
}

pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
