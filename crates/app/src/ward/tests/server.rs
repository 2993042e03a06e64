//! A database server that fails over when a test says so, to a copy that was made before: the facts are in real files,
//! and the test decides which of them answers. Also a journal of a node on paper.

use crate::ward::{Journal, Memory};
use rules::Time;
use rules::ending::Record;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use store::dialect::Dialect;
use store::engine::{Answer, Answering, CommitError, Durability, Engine, Health, Read, Row, Unavailable, Write};
use store::migrations::MIGRATIONS;
use store::sqlite::{Options, Sqlite};

/// What happens at a moment that a test has chosen.
pub type Hook = Mutex<Option<Box<dyn FnMut() + Send>>>;

fn rings(hook: &Hook) {
    let taken = hook.lock().unwrap().take();
    if let Some(mut happens) = taken {
        happens();
    }
}

/// The server that answers.
pub struct Server {
    folder: tempfile::TempDir,
    answers: Mutex<(Arc<Sqlite>, String)>,
    generation: AtomicU64,
    pub durability: Mutex<Durability>,
    /// The server of which it has all that was acknowledged.
    pub came_from: Mutex<Option<String>>,
    files: AtomicU64,
    /// The largest number of statements that a batch had.
    pub longest: AtomicUsize,
    /// How many more batches are committed, where that is limited.
    pub takes: Mutex<Option<usize>>,
}

impl Server {
    pub async fn start() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let first = open(&folder.path().join("0")).await;
        Arc::new(Server {
            folder,
            answers: Mutex::new((first, "first".to_owned())),
            generation: AtomicU64::new(0),
            durability: Mutex::new(Durability::Bounded),
            came_from: Mutex::new(None),
            files: AtomicU64::new(1),
            longest: AtomicUsize::new(0),
            takes: Mutex::new(None),
        })
    }

    /// Whether it takes one more batch.
    fn takes_one(&self) -> bool {
        match &mut *self.takes.lock().unwrap() {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    pub fn now(&self) -> Arc<Sqlite> {
        Arc::clone(&self.answers.lock().unwrap().0)
    }

    /// Copies all that there is: a standby that learns nothing from now on.
    pub async fn standby(&self) -> Arc<Sqlite> {
        let file = self.folder.path().join(self.files.fetch_add(1, SeqCst).to_string());
        self.now().backup(&file).await.unwrap();
        open(&file).await
    }

    /// Lets another server answer from now on.
    pub fn fail_over(&self, to: Arc<Sqlite>, name: &str) {
        *self.answers.lock().unwrap() = (to, name.to_owned());
        self.generation.fetch_add(1, SeqCst);
    }

    /// Lets the same server answer with what a copy had, without telling anybody.
    pub fn forget(&self, to: Arc<Sqlite>) {
        self.answers.lock().unwrap().0 = to;
    }

    /// Changes something that the identity does not show.
    pub fn stir(&self) {
        self.generation.fetch_add(1, SeqCst);
    }
}

async fn open(file: &Path) -> Arc<Sqlite> {
    let engine = Arc::new(Sqlite::open(Options::at(file), MIGRATIONS).unwrap());
    engine.migrate().await.unwrap();
    engine
}

impl Engine for Server {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        let engine = self.now();
        Box::pin(async move { engine.fetch(reads).await })
    }
    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let engine = self.now();
        self.longest.fetch_max(writes.len(), SeqCst);
        let takes = self.takes_one();
        Box::pin(async move {
            match takes {
                true => engine.commit(writes).await,
                false => Err(CommitError::Unavailable("it takes no more".to_owned())),
            }
        })
    }
    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn health(&self) -> Answer<'_, Health, Unavailable> {
        let health = Health { durability: *self.durability.lock().unwrap(), writable: Ok(()), commit_ms: 0.0 };
        Box::pin(std::future::ready(Ok(health)))
    }
    fn answering(&self) -> Option<Answering> {
        let generation = self.generation();
        let identity = self.answers.lock().unwrap().1.clone();
        let (durability, came_from) = (*self.durability.lock().unwrap(), self.came_from.lock().unwrap().clone());
        Some(Answering { generation, identity, durability, came_from })
    }
    fn generation(&self) -> u64 {
        self.generation.load(SeqCst)
    }
    fn backup<'a>(&'a self, _: &'a Path) -> Answer<'a, (), Unavailable> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }
    fn alter(&self, _: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A journal with a part for each record, and hooks for its uses.
#[derive(Default)]
pub struct Paper {
    pub records: Mutex<Vec<Record>>,
    memory: Mutex<Memory>,
    pub on_append: Hook,
    pub on_read: Hook,
    pub on_remember: Hook,
    /// Nothing more is remembered.
    pub full: AtomicBool,
    /// Nothing more is added, and it is known.
    pub broken: AtomicBool,
    /// A caller that appends waits while this is held for writing.
    pub slow: tokio::sync::RwLock<()>,
    /// Parts that contain nothing newer were to be removed.
    pub forgotten: Mutex<Option<Time>>,
    /// Parts before this one were removed.
    pub cut: Mutex<bool>,
}

impl Paper {
    pub fn of(node: &str) -> Arc<Self> {
        let memory = Mutex::new(Memory { node: node.to_owned(), ..Memory::default() });
        Arc::new(Paper { memory, ..Paper::default() })
    }
}

impl Journal for Paper {
    fn append(&self, record: &Record) -> Answer<'_, (), String> {
        let record = record.clone();
        Box::pin(async move {
            rings(&self.on_append);
            let _slow = self.slow.read().await;
            self.works()?;
            self.records.lock().unwrap().push(record);
            Ok(())
        })
    }
    fn works(&self) -> Result<(), String> {
        match self.broken.load(SeqCst) {
            true => Err("no space is left".to_owned()),
            false => Ok(()),
        }
    }
    fn parts(&self) -> Result<Vec<u64>, String> {
        Ok((0..self.records.lock().unwrap().len() as u64).rev().collect())
    }
    fn read(&self, part: u64) -> Result<Vec<Record>, String> {
        rings(&self.on_read);
        Ok(vec![self.records.lock().unwrap()[part as usize].clone()])
    }
    fn forget(&self, before: Time) -> Result<(), String> {
        *self.forgotten.lock().unwrap() = Some(before);
        Ok(())
    }
    fn is_cut(&self) -> bool {
        *self.cut.lock().unwrap()
    }
    fn memory(&self) -> Memory {
        self.memory.lock().unwrap().clone()
    }
    fn remember(&self, memory: &Memory) -> Result<(), String> {
        if self.full.load(SeqCst) {
            return Err("no space is left".to_owned());
        }
        *self.memory.lock().unwrap() = memory.clone();
        rings(&self.on_remember);
        Ok(())
    }
}
