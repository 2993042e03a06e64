//! The engine for MySQL and MariaDB: a bounded number of connections to one server at a time, prepared statements, and
//! a transaction for each batch.
//!
//! It uses READ COMMITTED, so that a guarded UPDATE looks at its row again after waiting for it; strict mode, so that
//! nothing is cut or guessed; and `CLIENT_FOUND_ROWS`, so that an update that changes nothing still touches its row.

mod address;
mod batch;
mod connect;
mod fault;
mod fetch;
mod fitness;
mod group;
mod migrate;
mod pool;
mod say;
mod value;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::dialect::mysql::Flavor;
use crate::engine::{Answer, Answering, CommitError, Engine, Health, Read, Row, Unavailable, Write};
use crate::held::Held;
use crate::remote::{OpenError, Replication, Room, Settings, Usage};
use crate::schema::Migration;
use crate::standstill::Standstill;
use crate::tally::{Histogram, Spread, TIMES};
use crate::turn;
use address::Address;
use batch::Batch;
use connect::Node;
use pool::{Active, Pool, identity};
use say::Phrasebook;

/// The longest time that a change of the schema may take.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A database on a server.
pub struct Mysql {
    shared: Arc<Shared>,
    room: Room,
    migrations: &'static [Migration],
}

/// The state that batches need, which run in tasks of their own.
struct Shared {
    pool: Arc<Pool>,
    book: Phrasebook,
    flavor: Flavor,
    timeout: Duration,
    standstill: Standstill,
    held: Held,
    commits: AtomicU64,
    commit_ms: AtomicU64,
    commit_times: Histogram,
    /// Attempts at batches after the first attempt.
    retried: AtomicU64,
}

/// The server in use, among those that the URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its host.
    pub host: String,
    /// How often the engine has moved to another server.
    pub moves: u64,
    /// The configuration number of its Galera cluster (`wsrep_cluster_conf_id`), if it belongs to one.
    pub galera: Option<String>,
}

/// What the engine has done since it was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Batches that were committed.
    pub committed: u64,
    /// How often a batch was retried, because a rival won or the connection was lost before anything was committed.
    pub retried: u64,
    /// How long each COMMIT took.
    pub commit_times: Spread,
}

impl Mysql {
    /// Checks whether the settings make sense, as far as that can be told without connecting to a server.
    pub fn judge(settings: &Settings) -> Result<(), OpenError> {
        Node::all(settings, &Address::parse(&settings.url)?).map(drop)
    }

    /// Connects to the first of the URL's servers that is fit. Leaves the schema as it is: see [`Engine::migrate`].
    ///
    /// The URL is `mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`, and the database has to exist. It may end with
    /// `?ssl-mode=disabled` or `required`, and `?socket=PATH`. Statements are kept prepared whatever
    /// [`Settings::statements`] says, at most some hundreds per connection.
    pub async fn open(settings: Settings, migrations: &'static [Migration]) -> Result<Self, OpenError> {
        let address = Address::parse(&settings.url)?;
        let nodes = Node::all(&settings, &address)?;
        let size = u32::try_from(settings.connections.get()).unwrap_or(u32::MAX);
        let mut pool = Pool::open(nodes, size).await?;
        pool.alone &= settings.replication != Replication::Bounded;
        let shared = Shared {
            flavor: pool.active().fitness.flavor,
            pool: Arc::new(pool),
            book: Phrasebook::default(),
            timeout: settings.timeout,
            standstill: Standstill::default(),
            held: Held::default(),
            commits: AtomicU64::new(0),
            commit_ms: AtomicU64::new(0f64.to_bits()),
            commit_times: Histogram::new(&TIMES),
            retried: AtomicU64::new(0),
        };
        Ok(Mysql { shared: Arc::new(shared), room: Room::default(), migrations })
    }

    /// Waits for running batches, at most as long as one may take, and closes every connection. New calls fail as
    /// unavailable.
    pub async fn close(&self) {
        self.shared.pool.close(self.shared.deadline()).await;
    }

    /// What was done since the engine was opened.
    pub fn stats(&self) -> Stats {
        Stats {
            committed: self.shared.commits.load(Relaxed),
            retried: self.shared.retried.load(Relaxed),
            commit_times: self.shared.commit_times.spread(),
        }
    }

    /// How the connections are used at this moment.
    pub fn usage(&self) -> Usage {
        self.shared.pool.usage()
    }

    /// The server in use.
    pub fn server(&self) -> Server {
        let active = self.shared.pool.active();
        Server { host: active.host, moves: active.moves, galera: active.fitness.galera }
    }

    async fn run_migrations(&self) -> Result<(), String> {
        let mut lease = self.shared.pool.lease(self.shared.deadline()).await?;
        let era = lease.link.era;
        let run = migrate::run(&mut lease.link.conn, self.shared.flavor, self.migrations);
        let done = self.shared.patiently(era, run).await;
        // The session has other limits now.
        lease.end(self.shared.deadline()).await;
        done
    }

    async fn run_alterations(&self, statements: Vec<String>) -> Result<(), String> {
        let mut lease = self.shared.pool.lease(self.shared.deadline()).await?;
        let era = lease.link.era;
        self.shared.patiently(era, migrate::alter(&mut lease.link.conn, self.shared.flavor, &statements)).await
    }
}

impl Mysql {
    /// Needs a tokio runtime: the batch runs in a task of its own.
    #[allow(
        clippy::disallowed_methods,
        reason = "it is awaited here; a batch whose caller disappears goes on to its end"
    )]
    fn write(&self, writes: Vec<Write>, within: Option<u64>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let batch = Batch::new(&self.shared.book, self.shared.flavor, writes).map_err(CommitError::Unavailable)?;
            let shared = Arc::clone(&self.shared);
            let running = Handle::current().spawn(async move {
                let (began, changes) = (Instant::now(), batch.changes());
                let done = turn::waiting(batch.run(&shared, within)).await;
                if changes {
                    shared.standstill.note(&done.0, (began, Instant::now()), shared.timeout);
                }
                done
            });
            let stopped = |_| (Err(CommitError::Unknown("a batch was stopped half-way".to_owned())), Duration::ZERO);
            let (outcome, waited) = running.await.unwrap_or_else(stopped);
            turn::waited(waited);
            self.room.note(&outcome, lacks_room);
            outcome
        })
    }
}

/// Whether a batch was refused because the disk or a table's space is full. An error of the storage engine (1030) tells
/// by its system error number: no space left, or over quota.
fn lacks_room(why: &str) -> bool {
    let of = |code: u16| why.starts_with(&format!("error {code}:"));
    of(1021) || of(1114) || (of(1030) && ["28", "122"].iter().any(|errno| why.contains(&format!("error {errno} "))))
}

impl Shared {
    fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Runs a change of the schema, which may take as long as it needs while the server responds.
    async fn patiently(&self, era: u64, change: impl Future<Output = Result<(), String>>) -> Result<(), String> {
        let done = self.pool.hear(era, Instant::now() + DAY, change).await;
        done.unwrap_or_else(|| Err("the database does not answer".to_owned()))
    }

    /// Updates the average commit time, which covers about the last twenty commits.
    fn committed(&self, took: Duration) {
        let (before, now) = (self.commit_ms(), took.as_secs_f64() * 1e3);
        let average = if self.commits.fetch_add(1, Relaxed) == 0 { now } else { before + (now - before) / 20.0 };
        // Of two commits at the same time, one may be missed.
        self.commit_ms.store(average.to_bits(), Relaxed);
        self.commit_times.took(took);
    }

    fn commit_ms(&self) -> f64 {
        f64::from_bits(self.commit_ms.load(Relaxed))
    }
}

impl Engine for Mysql {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move { fetch::run(&self.shared, reads).await.map_err(Unavailable) })
    }

    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.write(writes, None)
    }

    fn commit_within(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.write(writes, Some(generation))
    }

    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(async move { self.run_migrations().await.map_err(Unavailable) })
    }

    /// Asks the server again, since its settings may have changed.
    fn health(&self) -> Answer<'_, Health, Unavailable> {
        Box::pin(async move {
            let writable = self.shared.pool.examine(self.shared.deadline()).await;
            let writable = writable.and_then(|()| self.shared.pool.is_free_for_batches());
            let writable = writable.and_then(|()| self.shared.standstill.is_over(Instant::now()));
            let writable = writable.and_then(|()| self.room.is_there());
            Ok(Health { durability: self.shared.pool.durability(), writable, commit_ms: self.shared.commit_ms() })
        })
    }

    fn warning(&self) -> Option<String> {
        self.shared.pool.shortage()
    }

    fn answering(&self) -> Option<Answering> {
        // In this order: if the server changes between the two reads, the caller sees a new generation and looks again.
        let generation = self.shared.pool.generation();
        let Active { host, fitness, came_from, .. } = self.shared.pool.active();
        let durability = self.shared.pool.durability();
        Some(Answering { generation, identity: identity(&host, &fitness), durability, came_from })
    }

    fn generation(&self) -> u64 {
        self.shared.pool.generation()
    }

    fn backup<'a>(&'a self, _file: &'a Path) -> Answer<'a, (), Unavailable> {
        let why = "back up a database server with its own tools: mariadb-dump --single-transaction, or mysqldump";
        Box::pin(std::future::ready(Err(Unavailable(why.to_owned()))))
    }
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(async move { self.run_alterations(statements).await.map_err(Unavailable) })
    }
}
