//! The PostgreSQL engine: a few connections shared by many callers, and batches whose guards the server itself
//! enforces.
//!
//! Reads are sent together and answered in one round trip. A batch is one flight too: its statements raise an error on
//! the server if a row count is wrong, so the end of the transaction can be sent with its beginning. Nothing that is
//! sent waits for an answer to an earlier message.

mod cargo;
mod connect;
mod dial;
mod figures;
mod flight;
mod gauge;
pub(crate) mod holds;
mod lane;
mod link;
mod migrate;
mod path;
mod pool;
mod server;
mod tls;
mod wire;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub use gauge::Stats;
pub use server::Identity;

use crate::caught::survive;
use crate::dialect::Dialect;
use crate::engine::{Answer, Answering, CommitError, Engine, Health, Must, Read, Row, Unavailable, Write};
use crate::held::{self, Held, Wait};
use crate::remote::{OpenError, Replication, Room, Settings, Statements, Usage};
use crate::schema::Migration;
use crate::standstill::Standstill;
use crate::turn;
use cargo::Cargo;
use flight::{Fault, Reply};
use link::Link;
use pool::Pool;
use server::Facts;

/// A database on a PostgreSQL server, or on the primary among several.
pub struct Postgres {
    pool: Arc<Pool>,
    migrations: &'static [Migration],
    keepers: JoinSet<()>,
    room: Room,
    standstill: Standstill,
    held: Held,
    /// The task ends with the engine.
    _figures: JoinSet<()>,
}

impl Postgres {
    /// Checks whether the settings make sense, as far as that can be told without connecting to a server.
    pub fn judge(settings: &Settings) -> Result<(), OpenError> {
        Pool::new(settings).map(drop)
    }

    /// Connects, and checks that the server meets the requirements. Leaves the schema as it is: see
    /// [`Engine::migrate`]. Lost connections are replaced in the background, on the runtime on which this was called.
    pub async fn open(settings: Settings, migrations: &'static [Migration]) -> Result<Self, OpenError> {
        let pool = Arc::new(Pool::new(&settings)?);
        let made = join_all(pool.purposes().map(|purpose| Link::make(&pool, purpose))).await;
        let mut links = made.into_iter().collect::<Result<Vec<Link>, OpenError>>()?;
        if let Some(link) = links.first_mut() {
            // Not only before a migration: queries for the existing tables answer for one schema only.
            link.found(&pool).await?.fit().map_err(OpenError::Unfit)?;
        }
        let mut keepers = JoinSet::new();
        for (at, (link, purpose)) in links.into_iter().zip(pool.purposes()).enumerate() {
            keepers.spawn(Arc::clone(&pool).keep(at, purpose, link));
        }
        let mut figures = JoinSet::new();
        let counted = Arc::clone(&pool);
        figures
            .spawn(async move { survive("updating table statistics", || figures::keep(Arc::clone(&counted))).await });
        Ok(Postgres {
            pool,
            migrations,
            keepers,
            room: Room::default(),
            standstill: Standstill::default(),
            held: Held::default(),
            _figures: figures,
        })
    }

    /// The database cluster that answered last; `None` if we may not know it.
    pub fn identity(&self) -> Option<Identity> {
        self.pool.identity()
    }

    /// What the operator said about the server's replication.
    pub fn replication(&self) -> Replication {
        self.pool.replication
    }

    /// What was done since the engine was opened.
    pub fn stats(&self) -> Stats {
        self.pool.tally.stats()
    }

    /// How the connections are used at this moment.
    pub fn usage(&self) -> Usage {
        self.pool.usage()
    }

    /// Sends a batch, to a server of the generation `within` if that is given.
    fn write(&self, writes: Vec<Write>, within: Option<u64>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            if writes.is_empty() {
                return Ok(Vec::new());
            }
            let began = Instant::now();
            let outcome = match self.send(&writes, within).await {
                Ok(done) => {
                    turn::waited(done.waited);
                    Ok(done.counts)
                }
                Err(Fault::Conflict { at, why }) => Err(CommitError::Conflict { at, why }),
                Err(Fault::Unknown(why)) => Err(CommitError::Unknown(why)),
                Err(fault) => Err(CommitError::Unavailable(fault.sentence())),
            };
            // SQLSTATE 53100: disk_full
            self.room.note(&outcome, |why| why.contains("(53100)"));
            // A batch that only reads waits for no standby.
            if writes.iter().any(|write| !matches!(write.must, Must::Find(_))) {
                self.standstill.note(&outcome, (began, Instant::now()), self.pool.timeout);
            }
            outcome
        })
    }

    /// Sends a batch again while others hold one of its rows, until half of the time is over: flights that queue behind
    /// others get no longer, either.
    async fn send(&self, writes: &[Write], within: Option<u64>) -> Reply {
        let (began, mut refused) = (Instant::now(), 0);
        loop {
            let way = self.held.way(refused > 0, Instant::now());
            let (prelude, hardly, known) = (self.pool.prelude(), link::hardly(), self.expected());
            let hardly = (way.wait == Wait::Hardly).then_some(&hardly);
            let settings = prelude.as_deref().into_iter().chain(hardly).map(|read| (read, Must::Any));
            let still = known.as_ref().map(server::still);
            let first: Vec<(&Read, Must)> = settings.chain(still.iter().map(|read| (read, Must::Find(1)))).collect();
            let mut cargo = Cargo::batch(&self.pool.book, &first, writes).map_err(Fault::Refused)?;
            cargo.within = within;
            match self.pool.send(Arc::new(cargo)).await {
                Err(Fault::Elsewhere) => {
                    // Whoever was let in to the server of before learns from the generation that it is another one.
                    drop(self.recognize(known.is_some_and(|known| known.life.is_some())).await);
                    return Err(Fault::Elsewhere);
                }
                Err(Fault::Held(why)) => {
                    way.was_in_vain(Instant::now());
                    drop(way);
                    refused += 1;
                    let pause = held::pause(refused);
                    if began.elapsed() + pause > self.pool.timeout / 2 {
                        return Err(Fault::Held(why));
                    }
                    sleep(pause).await;
                }
                reply => return reply,
            }
        }
    }

    /// The server that each flight has to find, if it may be another one than its connection was made to: behind a
    /// pooler, the server may change without the end of a connection. `None` also if no server says which it is.
    fn expected(&self) -> Option<Identity> {
        match self.pool.mode {
            Statements::Unnamed => self.pool.identity(),
            Statements::Kept => None,
        }
    }

    /// Takes the first answer of a fetch, which says which server gave it, and learns if that was not the `known` one.
    fn told_apart(&self, known: &Identity, rows: Vec<Vec<Row>>) -> Result<Vec<Vec<Row>>, String> {
        let mut rows = rows.into_iter();
        let told = rows.next().and_then(|first| Identity::of(&first));
        let told = told.ok_or_else(|| "the server does not say which one it is any more".to_owned())?;
        if told != *known {
            self.pool.recognize(told).map_err(|error| error.to_string())?;
        }
        Ok(rows.collect())
    }

    /// Asks which server it is: behind a pooler, the server may change without the end of a connection.
    async fn recognize(&self, forgets: bool) -> Result<(), String> {
        let cargo = Cargo::reads(&self.pool.book, &[server::identity(forgets)])?;
        match self.pool.send(Arc::new(cargo)).await {
            Ok(done) => match done.rows.first().and_then(|rows| Identity::of(rows)) {
                Some(identity) => self.pool.recognize(identity).map(drop).map_err(|error| error.to_string()),
                None => Ok(()),
            },
            // Not every role has the right to ask.
            Err(_) => Ok(()),
        }
    }

    /// Asks the server for its facts.
    async fn facts(&self) -> Result<Facts, Fault> {
        let cargo = Cargo::reads(&self.pool.book, &[server::facts()]).map_err(Fault::Refused)?;
        let rows = self.pool.send(Arc::new(cargo)).await?.rows;
        let Some(mut facts) = rows.first().and_then(|rows| Facts::of(rows)) else {
            return Err(Fault::Refused("the server does not answer as PostgreSQL does".to_owned()));
        };
        if self.pool.mode == Statements::Unnamed {
            // The session shows the server's own setting; batches set theirs.
            facts.commit = facts.commit.ours(&self.pool.accepted);
        }
        Ok(facts)
    }
}

impl Engine for Postgres {
    fn fetch<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        Box::pin(async move {
            if reads.is_empty() {
                return Ok(Vec::new());
            }
            let known = self.expected();
            let who = known.as_ref().map(|known| server::identity(known.life.is_some()));
            let cargo = Cargo::reads_after(&self.pool.book, who.as_ref(), reads).map_err(Unavailable)?;
            match (self.pool.send(Arc::new(cargo)).await, known) {
                (Ok(done), Some(known)) => self.told_apart(&known, done.rows).map_err(Unavailable),
                (Ok(done), None) => Ok(done.rows),
                (Err(fault), _) => Err(Unavailable(fault.sentence())),
            }
        })
    }

    fn commit(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.write(writes, None)
    }

    fn commit_within(&self, generation: u64, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.write(writes, Some(generation))
    }

    fn migrate(&self) -> Answer<'_, (), Unavailable> {
        Box::pin(migrate::run(&self.pool, self.migrations))
    }

    fn health(&self) -> Answer<'_, Health, Unavailable> {
        Box::pin(async move {
            let writable = match self.facts().await {
                Ok(facts) => {
                    self.pool.learn(&facts, None);
                    match facts.fit(&self.pool.accepted) {
                        Ok(()) => {
                            let known = self.recognize(facts.forgets()).await;
                            let taken = known.and_then(|()| self.pool.refuses_batches().map_or(Ok(()), Err));
                            let taken = taken.and_then(|()| self.standstill.is_over(Instant::now()));
                            taken.and_then(|()| self.room.is_there())
                        }
                        Err(error) => {
                            // Nothing more is written to that server, although connections to it are open.
                            self.pool.look_again();
                            Err(error.to_string())
                        }
                    }
                }
                Err(fault) => Err(fault.sentence()),
            };
            let commit_ms = self.pool.tally.stats().commit_ms;
            Ok(Health { durability: self.pool.durability(), writable, commit_ms })
        })
    }

    fn answering(&self) -> Option<Answering> {
        // In this order: if the server changes between the two reads, the caller sees a new generation and looks again.
        let generation = self.pool.generation();
        let identity = match self.pool.identity() {
            Some(known) => known.to_string(),
            None => "a PostgreSQL server that does not say which".to_owned(),
        };
        Some(Answering { generation, identity, durability: self.pool.durability(), came_from: None })
    }

    fn generation(&self) -> u64 {
        self.pool.generation()
    }

    /// Refuses: copies are made with the server's own tools.
    fn backup<'a>(&'a self, _file: &'a Path) -> Answer<'a, (), Unavailable> {
        let why = "back up PostgreSQL with its own tools: pg_dump, or pg_basebackup and a WAL archive";
        Box::pin(std::future::ready(Err(Unavailable(why.to_owned()))))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn alter(&self, statements: Vec<String>) -> Answer<'_, (), Unavailable> {
        Box::pin(migrate::alter(&self.pool, statements))
    }
}

impl Drop for Postgres {
    /// Flights that were handed over are still completed.
    fn drop(&mut self) {
        self.pool.close();
        self.keepers.detach_all();
    }
}
