//! Values that are read once per page, however many metrics use them.

use super::glance::{Looked, Seen};
use super::process::Process;
use crate::admission::LaneState;
use crate::database::Database;
use crate::http::Site;
use app::ward::Status;
use hasher::State;
use hasher::remote::WorkerState;
use rules::Span;
use store::engine::Durability;
use store::remote::Usage;
use store::tally::Spread;
use store::{mysql, postgres, sqlite};

/// The server at one moment.
pub struct Moment<'a> {
    /// Where everything else is read.
    pub from: &'a Site,
    /// The places at the door.
    pub lanes: Vec<(&'static str, LaneState)>,
    /// The hashing threads.
    pub hashing: State,
    /// The hash workers.
    pub workers: Vec<WorkerState>,
    /// The values read at the last look.
    pub looked: Looked,
    /// The database.
    pub store: Store,
    /// How durable an acknowledged write is.
    pub durability: Option<Durability>,
    /// Whether this node's journal works; nothing if there is none.
    pub journal: Option<bool>,
    /// The state of the fences.
    pub fence: Option<Status>,
    /// The age of the key that signs with each algorithm.
    pub keys: Vec<(&'static str, Span)>,
    /// The process; nothing if the system does not report it.
    pub process: Option<Process>,
}

/// What an engine reports of itself.
pub enum Store {
    /// A SQLite file.
    File {
        /// What it has done.
        stats: sqlite::Stats,
        /// The most batches that may wait.
        most_waiting: usize,
        /// Connections that read: in use, and in total.
        readers: (usize, usize),
    },
    /// A PostgreSQL server.
    Postgres(postgres::Stats, Usage),
    /// A MySQL or MariaDB server.
    Mysql(mysql::Stats, Usage, mysql::Server),
}

/// How many batches a database processes in the time of one.
pub enum Together<'a> {
    /// Batches that share a commit.
    Grouped(&'a Spread),
    /// One batch on each of so many connections.
    Beside(usize),
}

impl Store {
    /// Reads this database now.
    pub fn of(database: &Database) -> Self {
        match database {
            Database::Sqlite(file) => {
                Store::File { stats: file.stats(), most_waiting: file.queue_limit(), readers: file.readers() }
            }
            Database::Postgres(server) => Store::Postgres(server.stats(), server.usage()),
            Database::Mysql(server) => Store::Mysql(server.stats(), server.usage(), server.server()),
        }
    }

    /// Returns the name of the engine.
    pub fn engine(&self) -> &'static str {
        match self {
            Store::File { .. } => "sqlite",
            Store::Postgres(..) => "postgres",
            Store::Mysql(..) => "mysql",
        }
    }

    /// Returns how the connections to a server are used.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Store::File { .. } => None,
            Store::Postgres(_, usage) | Store::Mysql(_, usage, _) => Some(*usage),
        }
    }

    /// Returns how many batches wait, and how many are too many.
    pub fn waiting(&self) -> (usize, usize) {
        match self {
            Store::File { stats, most_waiting, .. } => (stats.waiting, *most_waiting),
            Store::Postgres(_, usage) | Store::Mysql(_, usage, _) => (usage.waiting, usage.most_waiting),
        }
    }

    /// Returns how many batches the database processes in the time of one commit.
    pub fn together(&self) -> Together<'_> {
        match self {
            Store::File { stats, .. } => Together::Grouped(&stats.group_sizes),
            Store::Postgres(_, usage) | Store::Mysql(_, usage, _) => Together::Beside(usage.places),
        }
    }

    /// Returns how long commits took.
    pub fn commit_times(&self) -> &Spread {
        match self {
            Store::File { stats, .. } => &stats.commit_times,
            Store::Postgres(stats, _) => &stats.commit_times,
            Store::Mysql(stats, ..) => &stats.commit_times,
        }
    }
}

impl<'a> Moment<'a> {
    /// Returns what the database answered last.
    pub fn seen(&self) -> impl Iterator<Item = &Seen> {
        self.looked.seen.iter()
    }

    /// Reads the current values, and adds those of the last look.
    pub async fn of(from: &'a Site, looked: Looked) -> Self {
        // A database server is not asked: a scrape must be answered while the database is away.
        let durability = match from.app.engine.answering() {
            Some(answering) => Some(answering.durability),
            None => from.app.engine.health().await.ok().map(|health| health.durability),
        };
        Moment {
            from,
            lanes: from.admission.all_lanes().collect(),
            hashing: from.app.hasher.state(),
            workers: from.app.hasher.workers(),
            looked,
            store: Store::of(&from.database),
            durability,
            journal: from.app.guarded().map(|works| works.is_ok()),
            fence: from.app.last_seen(),
            keys: from.app.key_ages(),
            process: Process::now(),
        }
    }
}
