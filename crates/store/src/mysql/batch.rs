//! One batch: a transaction of its own, retried if a rival won.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row, from_value_opt};
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::connect::Link;
use super::fault::{Fault, not_committed, sentence};
use super::pool::Lease;
use super::say::{Phrase, Phrasebook, Saying};
use super::value;
use crate::dialect::mysql::{Flavor, Kind, TOUCHED_NOTHING, block};
use crate::engine::{Broken, CommitError, Must, SENT_AT_ONCE, Value, Write};
use crate::held::{self, Wait};
use crate::remote::REPLACED;
use crate::turn;

/// How many attempts a batch gets that loses against others.
const ATTEMPTS: u32 = 12;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The largest amount that is sent at once, in bytes: a server may accept no more than one MiB.
const HEAVIEST: usize = 1 << 19;

/// The largest number of reads that are sent together.
const TOGETHER: usize = 8;

/// Warnings that a different value was stored: out of range, cut off, not of the character set, or too long.
const ALTERED: [u16; 5] = [1264, 1265, 1300, 1366, 1406];

/// A batch that can be sent: every statement is known, and its values fit.
pub(super) struct Batch {
    lines: Vec<Line>,
    /// The whole batch as one statement, if that is possible.
    whole: Option<Arc<Phrase>>,
    flights: Vec<Flight>,
}

struct Line {
    saying: Arc<Saying>,
    /// Whether it reads a table that the batch changes later.
    exclusive: bool,
    write: Write,
}

/// What is sent in one go.
enum Flight {
    /// One statement.
    One(usize),
    /// Consecutive reads.
    Reads(Range<usize>, Arc<Phrase>),
}

impl Line {
    fn phrase(&self) -> &Phrase {
        self.saying.phrase(self.exclusive)
    }
}

/// How an attempt ended that did not commit.
enum Ended {
    /// The combined statement failed before COMMIT was sent; sending the statements one by one will tell which one.
    Unclear(String),
    /// The guard of the statement at this index did not hold. The transaction is still open.
    Conflict(usize, Broken),
    /// The statement at this index failed, before COMMIT was sent.
    Failed(usize, Fault),
    /// COMMIT was sent, and nothing was committed.
    Undone(String),
    /// COMMIT was sent, and the outcome is unknown.
    Unknown(String),
}

impl Batch {
    /// Prepares a batch, or returns why it cannot be sent.
    pub(super) fn new(book: &Phrasebook, flavor: Flavor, writes: Vec<Write>) -> Result<Self, String> {
        let mut lines = Vec::with_capacity(writes.len());
        for write in writes {
            let saying = book.find(&write.sql)?;
            if let Some(why) = value::refused(&write.args, saying.values) {
                return Err(why);
            }
            lines.push(Line { saying, exclusive: false, write });
        }
        for at in 0..lines.len() {
            let (reads, later) = lines[at..].split_at_mut(1);
            let read = &mut reads[0];
            read.exclusive = read.saying.kind == Kind::Select
                && later.iter().any(|line| line.saying.kind == Kind::Change && line.saying.table == read.saying.table);
        }
        let flights = flights(book, &lines);
        let whole = if may_be_one(flavor, &lines) { whole(book, &lines) } else { None };
        Ok(Batch { lines, whole, flights })
    }

    /// Whether it changes anything, as far as its statements tell.
    pub(super) fn changes(&self) -> bool {
        self.lines.iter().any(|line| line.saying.kind != Kind::Select)
    }

    /// Runs it until it commits, conflicts or fails; if `within` is given, only on a server of that generation.
    pub(super) async fn run(self, shared: &Shared, within: Option<u64>) -> Result<Vec<u64>, CommitError> {
        let deadline = Instant::now() + shared.timeout;
        let (mut lost, mut whole) = (Lost::default(), self.whole.as_deref());
        loop {
            let asked = Instant::now();
            let lease = shared.pool.lease_to_write(deadline).await.map_err(CommitError::Unavailable)?;
            turn::waited(asked.elapsed());
            // A connection to another server would have changed the generation by now.
            if within.is_some_and(|generation| generation != shared.pool.generation()) {
                lease.keep();
                return Err(CommitError::Unavailable(REPLACED.to_owned()));
            }
            let (era, used) = (lease.link.era, lease.link.used);
            let way = shared.held.way(lost.held > 0, Instant::now());
            // An answer that does not come in time would be taken for a hanging server.
            let left = deadline.saturating_duration_since(Instant::now());
            let is_late = lost.row.is_some() || left < shared.timeout / 2;
            if is_late && left < lease.link.waits_at_most(way.wait) {
                let why = lost.row.unwrap_or_else(|| "no time is left to wait for a locked row".to_owned());
                lease.keep();
                return Err(CommitError::Unavailable(why));
            }
            let (why, pause) = match self.attempt(lease, (whole, way.wait), (shared, deadline)).await {
                Ok(counts) => return Ok(counts),
                Err(Ended::Unclear(why)) => {
                    tracing::debug!(why, "a batch is sent once more, statement by statement");
                    whole = None;
                    continue;
                }
                Err(Ended::Failed(_, Fault::Held(why))) => {
                    way.was_in_vain(Instant::now());
                    (why.clone(), lost.for_a_row(why))
                }
                Err(ended) => lost.otherwise(ended, shared, (era, used))?,
            };
            drop(way);
            shared.retried.fetch_add(1, Relaxed);
            if timeout_at(deadline, sleep(pause)).await.is_err() {
                return Err(CommitError::Unavailable(why));
            }
        }
    }

    /// Runs one attempt. The connection is kept only if it is known to have no open transaction.
    async fn attempt(
        &self,
        mut lease: Lease<'_>,
        (whole, wait): (Option<&Phrase>, Wait),
        (shared, deadline): (&Shared, Instant),
    ) -> Result<Vec<u64>, Ended> {
        let era = lease.link.era;
        let run = async {
            lease.link.wait(wait).await.map_err(|error| Ended::Failed(0, Fault::of(&error)))?;
            match whole {
                Some(phrase) => self.at_once(&mut lease.link, phrase).await,
                None => self.statements(&mut lease.link).await,
            }
        };
        match shared.pool.hear(era, deadline, run).await {
            Some(Ok(counts)) => commit(lease, shared).await.map(|()| counts),
            Some(Err(Ended::Failed(at, fault @ (Fault::Lost(_) | Fault::Unfit(_))))) => Err(Ended::Failed(at, fault)),
            Some(Err(ended)) => {
                // Error 1205 leaves the transaction open, and so does a key error.
                let rollback = lease.link.conn.query_drop("ROLLBACK");
                if let Some(Ok(())) = shared.pool.hear(era, shared.deadline(), rollback).await {
                    lease.keep();
                }
                Err(ended)
            }
            None => {
                shared.pool.suspect(era);
                let why = "the database took too long for a batch: it was abandoned".to_owned();
                Err(Ended::Failed(self.lines.len(), Fault::Other(why)))
            }
        }
    }

    /// Runs the whole batch except the COMMIT.
    async fn at_once(&self, link: &mut Link, phrase: &Phrase) -> Result<Vec<u64>, Ended> {
        let values = self.lines.iter().flat_map(|line| value::sent(&line.write.args)).collect();
        let run = async {
            let statement = link.statement(phrase).await?;
            link.conn.exec_first::<Row, _, _>(&statement, Params::Positional(values)).await
        };
        let told = match run.await {
            Ok(row) => row.map(Row::unwrap).unwrap_or_default(),
            Err(error) => return Err(self.in_the_whole(&error)),
        };
        let mut told = told.into_iter().map(from_value_opt::<u64>);
        let count = |line: &Line| match line.write.must {
            Must::Touch(count) | Must::Find(count) => Some(count),
            Must::Any => told.next()?.ok(),
        };
        let counts: Option<Vec<u64>> = self.lines.iter().map(count).collect();
        counts.ok_or_else(|| Ended::Unclear("a batch did not return its row counts".to_owned()))
    }

    /// Interprets an error that may come from any of the statements.
    fn in_the_whole(&self, error: &Error) -> Ended {
        if let Error::Server(server) = error
            && let Some(at) = block::broken(&server.message)
        {
            return Ended::Conflict(at, Broken::Guard);
        }
        match Fault::of(error) {
            Fault::Key(_) | Fault::Other(_) => Ended::Unclear(sentence(error)),
            fault => Ended::Failed(0, fault),
        }
    }

    async fn statements(&self, link: &mut Link) -> Result<Vec<u64>, Ended> {
        let mut counts = Vec::with_capacity(self.lines.len());
        link.conn.query_drop("START TRANSACTION").await.map_err(|error| Ended::Failed(0, Fault::of(&error)))?;
        for flight in &self.flights {
            let at = counts.len();
            let found = match flight {
                Flight::One(at) => self.one(link, *at).await.map(|count| vec![count]),
                Flight::Reads(range, phrase) => self.reads(link, range.clone(), phrase).await,
            };
            counts.extend(found.map_err(|fault| match fault {
                Fault::Key(why) => Ended::Conflict(at, why),
                fault => Ended::Failed(at, fault),
            })?);
            for (at, line) in self.lines.iter().enumerate().take(counts.len()).skip(at) {
                match line.write.must {
                    Must::Touch(wanted) | Must::Find(wanted) if wanted != counts[at] => {
                        return Err(Ended::Conflict(at, Broken::Guard));
                    }
                    _ => {}
                }
            }
        }
        Ok(counts)
    }

    /// Runs one statement, and returns how many rows it touched or found.
    async fn one(&self, link: &mut Link, at: usize) -> Result<u64, Fault> {
        let line = &self.lines[at];
        let run = async {
            let statement = link.statement(line.phrase()).await?;
            let values = Params::Positional(value::sent(&line.write.args));
            if line.saying.kind == Kind::Select {
                return Ok(link.conn.exec::<Row, _, _>(&statement, values).await?.len() as u64);
            }
            link.conn.exec_drop(&statement, values).await?;
            let was_there = link.conn.last_insert_id() == Some(TOUCHED_NOTHING);
            let skipped = line.saying.kind == (Kind::Insert { if_absent: true }) && was_there;
            Ok(if skipped { 0 } else { link.conn.affected_rows() })
        };
        let count = run.await.map_err(|error| Fault::of(&error))?;
        if line.saying.kind != Kind::Select && link.conn.get_warnings() > 0 {
            kept_as_sent(link).await?;
        }
        Ok(count)
    }

    /// Runs several reads, and returns how many rows each found.
    async fn reads(&self, link: &mut Link, range: Range<usize>, phrase: &Phrase) -> Result<Vec<u64>, Fault> {
        let mut counts = vec![0; range.len()];
        let values = self.lines[range].iter().flat_map(|line| value::sent(&line.write.args)).collect();
        let run = async {
            let statement = link.statement(phrase).await?;
            link.conn.exec::<usize, _, _>(&statement, Params::Positional(values)).await
        };
        for at in run.await.map_err(|error| Fault::of(&error))? {
            *counts
                .get_mut(at)
                .ok_or_else(|| Fault::Other("the database returned a row that belongs to no read".to_owned()))? += 1;
        }
        Ok(counts)
    }
}

/// How often a batch was attempted in vain.
#[derive(Default)]
struct Lost {
    /// Because of rivals, or because the connection was lost.
    again: u32,
    /// Because a row was held.
    held: u32,
    /// The last error about a held row.
    row: Option<String>,
}

impl Lost {
    /// Another transaction holds a row: returns the pause. The batch is retried for as long as there is time.
    fn for_a_row(&mut self, why: String) -> Duration {
        self.held += 1;
        self.row = Some(why);
        held::pause(self.held)
    }

    /// Handles an attempt that failed for another reason, over a connection of this era that was `used` before or not.
    /// Returns the reason and the pause before the next attempt, or else the outcome of the batch.
    fn otherwise(
        &mut self,
        ended: Ended,
        shared: &Shared,
        (era, used): (u64, bool),
    ) -> Result<(String, Duration), CommitError> {
        let why = match ended {
            Ended::Conflict(at, why) => return Err(CommitError::Conflict { at, why }),
            Ended::Unknown(why) => {
                shared.pool.suspect(era);
                return Err(CommitError::Unknown(why));
            }
            Ended::Unclear(why) | Ended::Undone(why) | Ended::Failed(_, Fault::Rival(why)) => why,
            Ended::Failed(at, fault) => {
                let first = self.again == 0 && at == 0;
                if matches!(fault, Fault::Lost(_) | Fault::Unfit(_)) {
                    shared.pool.suspect(era);
                }
                // A server may have closed a connection that was idle for long, and one that became read-only says so.
                match fault {
                    Fault::Lost(why) if first && used => why,
                    Fault::Unfit(why) if self.again == 0 => why,
                    fault => return Err(CommitError::Unavailable(fault.why())),
                }
            }
        };
        self.again += 1;
        match self.again {
            ATTEMPTS => Err(CommitError::Unavailable(format!(
                "{} conflicts in a row with other transactions: {why}",
                self.again
            ))),
            again => Ok((why, pause(again))),
        }
    }
}

/// Whether a batch may be sent as one statement: only to MariaDB. Warnings are checked only after single statements,
/// and only a warning tells that spaces at the end of a text were too many for its column.
fn may_be_one(flavor: Flavor, lines: &[Line]) -> bool {
    let spaced = |value: &Value| matches!(value, Value::Text(text) if text.ends_with(' '));
    let weight = |value: &Value| match value {
        Value::Null | Value::Int(_) => 8,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
    };
    flavor == Flavor::MariaDb
        && (2..=SENT_AT_ONCE).contains(&lines.len())
        && !lines.iter().any(|line| line.write.args.iter().any(spaced))
        && lines.iter().flat_map(|line| &line.write.args).map(weight).sum::<usize>() <= HEAVIEST
}

fn whole(book: &Phrasebook, lines: &[Line]) -> Option<Arc<Phrase>> {
    let lines: Vec<_> = lines.iter().map(|line| (&*line.saying, line.exclusive, line.write.must)).collect();
    book.batch(&lines)
}

/// Checks that a statement with warnings stored what it was given. Strict mode turns such warnings into errors, except
/// for spaces at the end that are too many for a column: the server cuts them off.
async fn kept_as_sent(link: &mut Link) -> Result<(), Fault> {
    let warnings: Vec<(String, u16, String)> =
        link.conn.query("SHOW WARNINGS").await.map_err(|error| Fault::of(&error))?;
    match warnings.into_iter().find(|(_, code, _)| ALTERED.contains(code)) {
        Some((_, code, text)) => Err(Fault::Other(format!("warning {code}: {text}"))),
        None => Ok(()),
    }
}

/// Groups the statements that are sent in one go: consecutive reads.
fn flights(book: &Phrasebook, lines: &[Line]) -> Vec<Flight> {
    let mut flights = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let sociable = |line: &&Line| line.saying.is_sociable();
        let many = lines[at..].iter().take_while(sociable).take(TOGETHER).count();
        if many > 1 {
            let reads: Vec<_> = lines[at..at + many].iter().map(|line| (&*line.saying, line.exclusive)).collect();
            flights.push(Flight::Reads(at..at + many, book.together(&reads)));
        } else {
            flights.push(Flight::One(at));
        }
        at += many.max(1);
    }
    flights
}

/// Sends COMMIT. From here on only the server knows the outcome.
async fn commit(mut lease: Lease<'_>, shared: &Shared) -> Result<(), Ended> {
    let (began, era) = (Instant::now(), lease.link.era);
    match shared.pool.hear(era, shared.deadline(), lease.link.conn.query_drop("COMMIT")).await {
        Some(Ok(())) => {
            shared.committed(began.elapsed());
            lease.keep();
            Ok(())
        }
        Some(Err(error)) if not_committed(&error) => {
            lease.answered();
            Err(Ended::Undone(sentence(&error)))
        }
        Some(Err(error)) => Err(Ended::Unknown(sentence(&error))),
        None => Err(Ended::Unknown("the database did not answer a COMMIT in time".to_owned())),
    }
}

/// The pause before the next attempt: longer each time, and randomised.
fn pause(again: u32) -> Duration {
    let longest = Duration::from_millis(1 << again.min(16)).min(LONGEST_PAUSE);
    longest.mul_f64(held::chance())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sql;

    #[test]
    fn what_is_too_heavy_for_one_packet_is_sent_in_several() {
        // Red without HEAVIEST: three statements of 300 KiB each are lost on a server that accepts one MiB.
        let book = Phrasebook::default();
        let of = |length: usize| {
            let write = Write {
                sql: Sql::of_catalogue("INSERT INTO t (a) VALUES (?)".to_owned()),
                args: vec![Value::Text("a".repeat(length))],
                must: Must::Any,
            };
            Batch::new(&book, Flavor::MariaDb, vec![write.clone(), write.clone(), write]).unwrap().whole.is_some()
        };
        assert_eq!((of(1000), of(300 << 10)), (true, false));
    }
}
