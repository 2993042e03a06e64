//! One batch: a transaction of its own, begun again where a rival won.

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
use crate::engine::{Broken, CommitError, Must, Value, Write};
use crate::held::{self, Wait};
use crate::remote::REPLACED;
use crate::turn;

/// How often a batch is begun that loses against others.
const ATTEMPTS: u32 = 12;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The most statements that are sent at once.
const LONGEST: usize = 40;

/// The most that is sent at once, in bytes: a server may take no more than a MiB.
const HEAVIEST: usize = 1 << 19;

/// The most reads that are sent together.
const TOGETHER: usize = 8;

/// Warnings that another value was kept: out of range, cut off, not of its character set, too long.
const ALTERED: [u16; 5] = [1264, 1265, 1300, 1366, 1406];

/// A batch that can be sent: every statement is known, and takes the values that it is given.
pub(super) struct Batch {
    lines: Vec<Line>,
    /// All of it at once, where that can be.
    whole: Option<Arc<Phrase>>,
    flights: Vec<Flight>,
}

struct Line {
    saying: Arc<Saying>,
    /// A read of a table that the batch changes further down.
    exclusive: bool,
    write: Write,
}

/// What is sent at once.
enum Flight {
    /// One statement.
    One(usize),
    /// Reads that follow each other.
    Reads(Range<usize>, Arc<Phrase>),
}

impl Line {
    fn phrase(&self) -> &Phrase {
        self.saying.phrase(self.exclusive)
    }
}

/// How an attempt ended that did not stand.
enum Ended {
    /// Something went wrong in the whole of it, before COMMIT was sent: one by one the statements will tell.
    Unclear(String),
    /// The statement at this place did not hold. The transaction is still there.
    Conflict(usize, Broken),
    /// It went wrong at this place, before COMMIT was sent.
    Failed(usize, Fault),
    /// COMMIT was sent, and nothing was committed.
    Undone(String),
    /// COMMIT was sent, and nobody knows.
    Unknown(String),
}

impl Batch {
    /// Otherwise why it cannot be sent.
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

    /// Runs it until it stands, does not hold, or cannot; on a server of the generation that it is for, if it is.
    pub(super) async fn run(self, shared: &Shared, within: Option<u64>) -> Result<Vec<u64>, CommitError> {
        let deadline = Instant::now() + shared.timeout;
        let (mut lost, mut whole) = (Lost::default(), self.whole.as_deref());
        loop {
            let asked = Instant::now();
            let lease = shared.pool.lease_to_write(deadline).await.map_err(CommitError::Unavailable)?;
            turn::waited(asked.elapsed());
            // Whoever connected to another server has said so by now.
            if within.is_some_and(|generation| generation != shared.pool.generation()) {
                lease.keep();
                return Err(CommitError::Unavailable(REPLACED.to_owned()));
            }
            let (era, used) = (lease.link.era, lease.link.used);
            let way = shared.held.way(lost.held > 0, Instant::now());
            // An answer that does not come in time would be taken for a server that hangs.
            let left = deadline.saturating_duration_since(Instant::now());
            let is_late = lost.row.is_some() || left < shared.timeout / 2;
            if is_late && left < lease.link.waits_at_most(way.wait) {
                let why = lost.row.unwrap_or_else(|| "there is no time left to wait for a row".to_owned());
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

    /// Runs it once. The connection is kept only where it is known to have no transaction.
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
                // Error 1205 leaves a transaction standing, and so does a key.
                let rollback = lease.link.conn.query_drop("ROLLBACK");
                if let Some(Ok(())) = shared.pool.hear(era, shared.deadline(), rollback).await {
                    lease.keep();
                }
                Err(ended)
            }
            None => {
                shared.pool.suspect(era);
                let why = "the database took too long over a batch: it was given up".to_owned();
                Err(Ended::Failed(self.lines.len(), Fault::Other(why)))
            }
        }
    }

    /// Runs all of it but the COMMIT.
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
        counts.ok_or_else(|| Ended::Unclear("a batch did not tell its counts".to_owned()))
    }

    /// What an error means that may be of any statement.
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

    /// Runs one statement; answers how many rows it touched or found.
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

    /// Runs several reads; answers how many rows each found.
    async fn reads(&self, link: &mut Link, range: Range<usize>, phrase: &Phrase) -> Result<Vec<u64>, Fault> {
        let mut counts = vec![0; range.len()];
        let values = self.lines[range].iter().flat_map(|line| value::sent(&line.write.args)).collect();
        let run = async {
            let statement = link.statement(phrase).await?;
            link.conn.exec::<usize, _, _>(&statement, Params::Positional(values)).await
        };
        for at in run.await.map_err(|error| Fault::of(&error))? {
            *counts.get_mut(at).ok_or_else(|| Fault::Other("a row of no read".to_owned()))? += 1;
        }
        Ok(counts)
    }
}

/// How often a batch was begun in vain.
#[derive(Default)]
struct Lost {
    /// To others, or with its connection.
    again: u32,
    /// For a row that was held.
    held: u32,
    /// What was said of that last.
    row: Option<String>,
}

impl Lost {
    /// Another holds a row: how long it pauses. As long as there is time, it comes again.
    fn for_a_row(&mut self, why: String) -> Duration {
        self.held += 1;
        self.row = Some(why);
        held::pause(self.held)
    }

    /// Why it did not stand for another reason, over a connection of this era that was used before or not, and how long it pauses;
    /// otherwise what it comes to.
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
                // One that waited may have been forgotten by the server long ago, and one that only reads says so.
                match fault {
                    Fault::Lost(why) if first && used => why,
                    Fault::Unfit(why) if self.again == 0 => why,
                    fault => return Err(CommitError::Unavailable(fault.why())),
                }
            }
        };
        self.again += 1;
        match self.again {
            ATTEMPTS => Err(CommitError::Unavailable(format!("others were faster {} times: {why}", self.again))),
            again => Ok((why, pause(again))),
        }
    }
}

/// Whether a batch may be sent at once: to MariaDB, which is asked for warnings only after each statement. A space at the
/// end may be one too many for a column, and only a warning says so.
fn may_be_one(flavor: Flavor, lines: &[Line]) -> bool {
    let spaced = |value: &Value| matches!(value, Value::Text(text) if text.ends_with(' '));
    let weight = |value: &Value| match value {
        Value::Null | Value::Int(_) => 8,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
    };
    flavor == Flavor::MariaDb
        && (2..=LONGEST).contains(&lines.len())
        && !lines.iter().any(|line| line.write.args.iter().any(spaced))
        && lines.iter().flat_map(|line| &line.write.args).map(weight).sum::<usize>() <= HEAVIEST
}

fn whole(book: &Phrasebook, lines: &[Line]) -> Option<Arc<Phrase>> {
    let lines: Vec<_> = lines.iter().map(|line| (&*line.saying, line.exclusive, line.write.must)).collect();
    book.batch(&lines)
}

/// Whether a statement that had warnings kept what it was given. Strict mode makes errors of them, but for spaces at the
/// end that are too many for a column: those are cut off.
async fn kept_as_sent(link: &mut Link) -> Result<(), Fault> {
    let warnings: Vec<(String, u16, String)> =
        link.conn.query("SHOW WARNINGS").await.map_err(|error| Fault::of(&error))?;
    match warnings.into_iter().find(|(_, code, _)| ALTERED.contains(code)) {
        Some((_, code, text)) => Err(Fault::Other(format!("warning {code}: {text}"))),
        None => Ok(()),
    }
}

/// Which statements are sent at once: reads that follow each other.
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

/// Sends COMMIT. From here on only the server knows what is true.
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

/// Longer after each attempt, and never the same for two that met.
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
        // red without HEAVIEST: three statements of 300 KiB each are lost on a server that takes a MiB.
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
