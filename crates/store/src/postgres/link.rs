//! A connection whose server meets the requirements, with its session settings made.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::cargo::Cargo;
use super::flight::{Fault, Reply};
use super::gauge::{Gauge, Ticket};
use super::lane::{Job, Lane};
use super::path::{self, Found};
use super::pool::Pool;
use super::server::{self, Facts, Identity, Level};
use crate::engine::{Read, Row, Sql, Value};
use crate::remote::{OpenError, Statements};

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads, each with a time limit.
    Reads,
    /// Batches, whose commit nothing may interrupt.
    Batches,
    /// Steps of the schema, which may take as long as they need.
    Schema,
}

/// A connection that is ready for use.
pub(super) struct Link {
    pub(super) lane: Lane,
    pub(super) jobs: mpsc::UnboundedSender<Job>,
    /// The generation of its server, if we may know which server it is.
    pub(super) generation: Option<u64>,
    /// Why the connection ended before it was used.
    ended: Option<String>,
}

/// Settings for a whole session. The isolation level is the default one, and no plan is compiled by JIT, however costly
/// it is. That a commit may not have been replicated is a warning, which has to come whatever the role's settings are.
/// Every statement has an index to use, and one plan for all its values: what the server knows about a table is minutes
/// old, and of a new table it believes that it is empty. The search path is fixed to the schemas that existed when this
/// program started: a later schema, named like the role or like one in the path, diverts no statement.
const SESSION: Sql = Sql::fixed(
    "SELECT set_config('synchronous_commit', ?, false), set_config('lock_timeout', ?, false), \
     set_config('statement_timeout', ?, false), set_config('default_transaction_isolation', 'read committed', false), \
     set_config('idle_in_transaction_session_timeout', '0', false), set_config('jit', 'off', false), \
     set_config('enable_seqscan', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false), \
     set_config('client_min_messages', 'warning', false), \
     set_config('tcp_keepalives_idle', '15', false), set_config('tcp_keepalives_interval', '5', false), \
     set_config('tcp_keepalives_count', '3', false), \
     set_config('search_path', COALESCE(CAST(? AS text), NULLIF(array_to_string(ARRAY(\
     SELECT quote_ident(name) FROM unnest(current_schemas(false)) AS name), ', '), ''), current_setting('search_path')), false)",
);

/// Timeouts that not every version has.
const NEWER: Sql = Sql::fixed(
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')",
);

/// The same settings for one transaction.
const PRELUDE: Sql = Sql::fixed(
    "SELECT set_config('synchronous_commit', ?, true), set_config('lock_timeout', ?, true), \
     set_config('statement_timeout', '0', true), set_config('client_min_messages', 'warning', true)",
);

/// The longest time that a step of the schema may be silent.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Link {
    /// Tries the servers that the URL names until one meets the requirements.
    pub(super) async fn make(pool: &Pool, purpose: Purpose) -> Result<Self, OpenError> {
        let mut worst = None;
        for place in pool.door.order() {
            match Link::to(pool, purpose, place).await {
                Ok(link) => {
                    pool.door.liked(place);
                    pool.tally.connections.fetch_add(1, Relaxed);
                    return Ok(link);
                }
                // That a server is unfit, or refuses us, says more than that another one does not answer.
                Err(error) => match (&worst, &error) {
                    (Some(OpenError::Unfit(_)), _) | (Some(OpenError::Refused(_)), OpenError::Unreachable(_)) => {}
                    _ => worst = Some(error),
                },
            }
        }
        Err(worst.unwrap_or_else(|| OpenError::Settings("the URL of the database names no host".to_owned())))
    }

    async fn to(pool: &Pool, purpose: Purpose, place: usize) -> Result<Self, OpenError> {
        let carrier = pool.door.enter(place).await?;
        let (jobs, queue) = mpsc::unbounded_channel();
        let patience = if purpose == Purpose::Schema { DAY } else { pool.timeout };
        let lane = Lane::new(carrier, queue, patience, Arc::clone(&pool.tally));
        let mut link = Link { lane, jobs, generation: None, ended: None };
        let greeted = tokio::time::timeout(pool.timeout, link.greet(pool, purpose)).await;
        greeted.unwrap_or_else(|_| {
            Err(OpenError::Unreachable("the server accepted the sign-in, but does not answer".to_owned()))
        })?;
        Ok(link)
    }

    /// Finds out what the server is, and makes the session settings.
    async fn greet(&mut self, pool: &Pool, purpose: Purpose) -> Result<(), OpenError> {
        let failed = |fault: Fault| OpenError::Unreachable(fault.sentence());
        let nonsense = || OpenError::Unfit("the server does not answer as PostgreSQL does".to_owned());
        let rows = self.read(pool, server::facts()).await.map_err(failed)?;
        let mut facts = Facts::of(&rows).ok_or_else(nonsense)?;
        facts.fit(&pool.accepted)?;
        let level = facts.commit.ours(&pool.accepted);
        facts.commit = level;
        // Not every role has the right to ask, and not every service allows it.
        if let Ok(rows) = self.read(pool, server::identity(facts.forgets())).await {
            let identity = Identity::of(&rows).ok_or_else(nonsense)?;
            self.generation = Some(pool.recognize(identity)?);
        }
        if purpose == Purpose::Batches {
            self.must_find_a_standby(pool).await?;
        }
        let prelude = match pool.mode {
            Statements::Unnamed => Some(prelude(level, pool.timeout)),
            Statements::Kept => {
                let told = session((level, purpose), pool.timeout, pool.search_path());
                let rows = self.read(pool, told).await.map_err(failed)?;
                if let Some(Value::Text(path)) = rows.first().and_then(|row| row.last()) {
                    pool.stay_in(path);
                }
                self.read(pool, Read { sql: NEWER, args: vec![] }).await.map_err(failed)?;
                None
            }
        };
        pool.learn(&facts, prelude);
        Ok(())
    }

    /// Refuses a server where as many commits wait for a standby as this node has connections for batches: one more
    /// would wait, too. Each one given up leaves a connection behind on the server, until it has none left for anybody.
    async fn must_find_a_standby(&mut self, pool: &Pool) -> Result<(), OpenError> {
        let most = pool.purposes().filter(|purpose| *purpose == Purpose::Batches).count() as i64;
        let rows = match self.read(pool, server::stranded(pool.timeout)).await {
            Ok(rows) => rows,
            Err(Fault::Refused(why)) => {
                tracing::debug!(why, "could not check whether commits wait for a standby");
                return Ok(());
            }
            Err(fault) => return Err(OpenError::Unreachable(fault.sentence())),
        };
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Int(stranded)) if *stranded >= most => Err(OpenError::Unreachable(format!(
                "{stranded} commits wait for a synchronous standby, and none confirms them"
            ))),
            _ => Ok(()),
        }
    }

    /// Asks in which schema the server finds our tables.
    pub(super) async fn found(&mut self, pool: &Pool) -> Result<Found, OpenError> {
        let rows = self.read(pool, path::found()).await;
        let rows = rows.map_err(|fault| OpenError::Unreachable(fault.sentence()))?;
        Found::of(&rows).ok_or_else(|| OpenError::Unfit("the server did not report its current schema".to_owned()))
    }

    /// Runs one read while nothing else uses the connection.
    pub(super) async fn read(&mut self, pool: &Pool, read: Read) -> Result<Vec<Row>, Fault> {
        let cargo = Cargo::reads(&pool.book, &[read]).map_err(Fault::Refused)?;
        let done = self.send(cargo).await?;
        Ok(done.rows.into_iter().next().unwrap_or_default())
    }

    /// Sends one flight while nothing else uses the connection.
    pub(super) async fn send(&mut self, cargo: Cargo) -> Reply {
        let (reply, answer) = oneshot::channel();
        let ticket = Ticket::take(&Arc::new(Gauge::new()));
        let job = Job { cargo: Arc::new(cargo), reply, ticket, tries: 0, handed: Instant::now() };
        let silent = || Fault::Unsent("the connection was lost".to_owned());
        if self.jobs.send(job).is_err() {
            return Err(self.ended.clone().map_or_else(silent, Fault::Unsent));
        }
        match select(answer, pin!(&mut self.lane)).await {
            Either::Left((answer, _)) => answer.unwrap_or_else(|_| Err(silent())),
            // The answer may have come before the end; a later call gets the reason for the end.
            Either::Right((why, mut answer)) => {
                self.ended = Some(why);
                answer.try_recv().unwrap_or_else(|_| Err(silent()))
            }
        }
    }
}

/// The session settings for a purpose; without a path, the session keeps its own.
fn session((level, purpose): (Level, Purpose), timeout: Duration, path: Option<String>) -> Read {
    let (lock, statement) = match purpose {
        Purpose::Reads => (millis(timeout / 4), millis(timeout * 3 / 4)),
        Purpose::Batches => (awhile(timeout), "0".to_owned()),
        Purpose::Schema => ("0".to_owned(), "0".to_owned()),
    };
    let path = path.map_or(Value::Null, Value::Text);
    let args = vec![Value::Text(level.name().to_owned()), Value::Text(lock), Value::Text(statement), path];
    Read { sql: SESSION, args }
}

fn prelude(level: Level, timeout: Duration) -> Read {
    Read { sql: PRELUDE, args: vec![Value::Text(level.name().to_owned()), Value::Text(awhile(timeout))] }
}

/// How long a batch waits for a row, again and again ([`crate::held`]): batches behind it on the connection wait, too.
fn awhile(timeout: Duration) -> String {
    millis(timeout / 40)
}

/// The first statement of a batch that hardly waits for a row: no longer than others take for a commit.
pub(super) fn hardly() -> Read {
    let sql = Sql::fixed("SELECT set_config('lock_timeout', '10ms', true)");
    Read { sql, args: vec![] }
}

fn millis(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}
