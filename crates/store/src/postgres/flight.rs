//! One flight, and what the server's answers to it mean.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cargo::Role;
use super::gauge::Gauge;
use super::lane::{Job, Known};
use super::wire::{self, Failure, Garbled, Message};
use crate::dialect::moving::POSTGRES_STATE;
use crate::dialect::postgres::RAISED;
use crate::engine::{Broken, Must, Row};
use crate::remote::{POOLER, REPLACED};

/// The outcome of a flight.
pub(super) type Reply = Result<Done, Fault>;

/// A flight that was completed.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// For reads: the rows of each.
    pub(super) rows: Vec<Vec<Row>>,
    /// For a batch: how many rows each statement touched or found.
    pub(super) counts: Vec<u64>,
    /// How long it waited before it was put behind the flights on the way, in this attempt or earlier ones.
    pub(super) waited: Duration,
}

/// A flight that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing of it was committed, because the data has changed.
    Conflict { at: usize, why: Broken },
    /// Nothing of it was committed, because another server answered than the one that it is for.
    Elsewhere,
    /// Nothing of it was committed.
    Refused(String),
    /// Nothing of it was committed, because others held a lock for longer than it may wait.
    Held(String),
    /// Nothing of it was committed, and it might succeed over another connection.
    Unsent(String),
    /// It may or may not have been committed.
    Unknown(String),
}

impl Fault {
    /// The fault in words for people.
    pub(super) fn sentence(self) -> String {
        match self {
            Fault::Conflict { at, why } => format!("statement {at} conflicted ({why:?})"),
            Fault::Elsewhere => REPLACED.to_owned(),
            Fault::Refused(why) | Fault::Held(why) | Fault::Unsent(why) | Fault::Unknown(why) => why,
        }
    }
}

/// What becomes of a job when its flight has ended.
pub(super) enum Ended {
    /// It was answered.
    Answered {
        /// Whether something was committed.
        committed: bool,
    },
    /// Nothing of it was committed, and it is worth a retry.
    Again(Job),
    /// It was answered, and the connection is unusable.
    Doubt(String),
}

/// The SQLSTATE of a lock that was not released in time.
const NO_LOCK: &str = "55P03";

/// How often a batch is retried.
const TRIES: u32 = 10;

pub(super) struct Flight {
    job: Job,
    /// When it was put behind the other flights.
    pub(super) began: Instant,
    /// The index of the statement that is being answered.
    at: usize,
    /// Statements that it is preparing, not yet confirmed.
    asked: VecDeque<usize>,
    /// The columns of the statement that is being answered, once they are known.
    columns: Option<Arc<[u32]>>,
    done: Done,
    failed: Option<Failure>,
    warned: Option<String>,
    /// Whether the server itself said that it ends the connection here.
    pub(super) last: bool,
    /// How many bytes the connection has to have sent for the whole flight to be sent.
    ends: u64,
}

impl Flight {
    pub(super) fn new(job: Job, asked: VecDeque<usize>, ends: u64, began: Instant) -> Self {
        let mut done = Done { waited: began.duration_since(job.handed), ..Done::default() };
        match job.cargo.role {
            Role::Read => done.rows.resize_with(job.cargo.steps.len(), Vec::new),
            Role::Batch => done.counts.reserve(job.cargo.steps.len()),
        }
        Flight { job, began, at: 0, asked, columns: None, done, failed: None, warned: None, last: false, ends }
    }

    pub(super) fn is_batch(&self) -> bool {
        self.job.cargo.role == Role::Batch
    }

    pub(super) fn gauge(&self) -> &Gauge {
        self.job.ticket.gauge()
    }

    /// Whether every statement has been answered: only the commit remains.
    fn is_complete(&self) -> bool {
        self.at == self.job.cargo.steps.len()
    }

    /// Handles one message of the answer, except the last.
    pub(super) fn hear(&mut self, message: Message<'_>, known: &mut [Option<Known>]) -> Result<(), Garbled> {
        let statement = |at: usize| self.job.cargo.steps.get(at).map(|step| &step.statement);
        match message {
            Message::Prepared => {
                // An unnamed statement is not in `asked`.
                if statement(self.at).is_some_and(|statement| self.asked.front() == Some(&statement.id)) {
                    self.asked.pop_front();
                }
            }
            Message::Columns(columns) => {
                let columns: Arc<[u32]> = columns.into();
                let id = statement(self.at).ok_or(Garbled)?.id;
                if let Some(Some(known)) = known.get_mut(id) {
                    known.columns = Some(Arc::clone(&columns));
                }
                self.columns = Some(columns);
            }
            Message::Row(_) if self.is_batch() => {}
            Message::Row(row) => {
                if self.columns.is_none() {
                    let id = statement(self.at).ok_or(Garbled)?.id;
                    self.columns = known.get(id).and_then(Option::as_ref).and_then(|known| known.columns.clone());
                }
                let row = wire::row(row, self.columns.as_deref().ok_or(Garbled)?)?;
                self.done.rows.get_mut(self.at).ok_or(Garbled)?.push(row);
            }
            Message::Complete(count) => {
                self.complete(count)?;
            }
            Message::Failed(failure) => {
                let last = failure.is_last();
                self.last |= last && !failure.is_hearsay();
                match last && (self.is_complete() || failure.is_hearsay()) {
                    // If only the commit remained, the end of the connection says nothing about it.
                    true => self.warned = Some(failure.text),
                    false => self.failed = Some(failure),
                }
            }
            // Only if nothing but the commit remains does a warning mean that the commit may not have been replicated.
            Message::Notice(notice) if notice.severity == "WARNING" && self.is_complete() => {
                self.warned = Some(notice.text);
            }
            Message::Notice(notice) if notice.severity == "WARNING" => {
                tracing::debug!(why = notice.text, "warning from the database");
            }
            Message::Notice(_) | Message::Other | Message::Ready { .. } => {}
        }
        Ok(())
    }

    fn complete(&mut self, count: u64) -> Result<(), Garbled> {
        let step = self.job.cargo.steps.get(self.at).ok_or(Garbled)?;
        let count = match step.must {
            // The wrapped statement returns one row; since it did not raise, the count is the required one.
            Must::Touch(count) | Must::Find(count) if step.statement.guarded => count,
            Must::Touch(must) | Must::Find(must) if must != count => {
                self.warned = Some(format!("a statement touched {count} rows instead of {must}"));
                count
            }
            _ => count,
        };
        if self.is_batch() && self.at >= self.job.cargo.ours {
            self.done.counts.push(count);
        }
        self.columns = None;
        self.at += 1;
        Ok(())
    }

    /// Handles the last message of the answer.
    pub(super) fn finish(self, open: bool, known: &mut [Option<Known>]) -> Ended {
        // Statements that were skipped after a failure were not prepared.
        for id in &self.asked {
            known[*id] = None;
        }
        if let Some(failure) = &self.failed {
            return match failure.code.as_str() {
                // Serialization failure, deadlock.
                "40001" | "40P01" if self.job.tries < TRIES => Ended::Again(self.job),
                // An earlier flight was to prepare the statement but did not; this is known since that flight ended.
                "26000" if self.job.tries < TRIES => Ended::Again(self.job),
                code => {
                    let doubt = doubtful(code).then(|| sentence(failure));
                    let fault = self.fault(failure);
                    self.answer(Err(fault), doubt)
                }
            };
        }
        if open || !self.is_complete() {
            let why = "the database's answer is incomplete".to_owned();
            return self.answer(Err(Fault::Unknown(why.clone())), Some(why));
        }
        match (&self.warned, self.job.cargo.role) {
            (Some(why), Role::Batch) => {
                tracing::warn!(why, "a commit came with a warning: its outcome counts as unknown");
                let unknown = Fault::Unknown(why.clone());
                self.answer(Err(unknown), None)
            }
            _ => {
                let committed = self.is_batch();
                let Flight { job, done, .. } = self;
                drop(job.ticket);
                drop(job.reply.send(Ok(done)));
                Ended::Answered { committed }
            }
        }
    }

    fn answer(self, reply: Reply, doubt: Option<String>) -> Ended {
        drop(self.job.ticket);
        drop(self.job.reply.send(reply));
        doubt.map_or(Ended::Answered { committed: false }, Ended::Doubt)
    }

    /// Ends a flight whose connection was lost. The server began nothing of it if not `reached`, or not sent whole.
    pub(super) fn lost(self, (sent, reached): (u64, bool), why: &str) {
        let reply = match (&self.failed, self.job.cargo.role) {
            (_, Role::Read) => Fault::Unsent(why.to_owned()),
            // The connection ended before the last statement did.
            (Some(failure), Role::Batch) if self.last => Fault::Unsent(sentence(failure)),
            (Some(failure), Role::Batch) => self.fault(failure),
            (None, Role::Batch) if !reached || sent < self.ends => Fault::Unsent(why.to_owned()),
            (None, Role::Batch) => Fault::Unknown(self.warned.clone().unwrap_or_else(|| why.to_owned())),
        };
        drop(self.job.reply.send(Err(reply)));
    }

    /// Interprets a failure of the current statement.
    fn fault(&self, failure: &Failure) -> Fault {
        let step = self.job.cargo.steps.get(self.at);
        let why = match failure.code.as_str() {
            RAISED if step.is_some_and(|step| step.statement.guarded) => Some(Broken::Guard),
            "23505" => Some(Broken::Unique),
            "23503" | "23001" => Some(Broken::Foreign),
            _ => None,
        };
        match (why, self.at.checked_sub(self.job.cargo.ours)) {
            (Some(why), Some(at)) if self.is_batch() => Fault::Conflict { at, why },
            // The only guard of ours is about the server.
            (Some(Broken::Guard), None) => Fault::Elsewhere,
            _ if failure.code == NO_LOCK => Fault::Held(sentence(failure)),
            _ => Fault::Refused(sentence(failure)),
        }
    }
}

/// What a failure says, in words for people.
fn sentence(failure: &Failure) -> String {
    let Failure { code, text, .. } = failure;
    match code.as_str() {
        // The message is our own already.
        POSTGRES_STATE => text.clone(),
        "42P05" | "26000" => {
            format!("{text} ({code}): {POOLER}")
        }
        _ => format!("{text} ({code})"),
    }
}

/// Whether a failure says that the connection has changed: it is read-only, the server is stopping, or prepared
/// statements are gone or do not fit the schema any more.
fn doubtful(code: &str) -> bool {
    matches!(code, "25006" | "0A000" | "26000" | "42P05") || code.starts_with("57P") || code.starts_with("08")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Read, Sql, Value, Write};
    use crate::postgres::cargo::{Book, Cargo};
    use crate::postgres::gauge::Ticket;
    use crate::remote::Statements;
    use tokio::sync::oneshot;

    /// The answer to a two-statement batch whose connection ends after this failure, with `sent` of its bytes sent.
    fn told(failure: Failure, sent: u64) -> (Fault, bool) {
        let sql = Sql::fixed("INSERT INTO t (a) VALUES (?)");
        let write = Write { sql, args: vec![Value::Int(1)], must: Must::Touch(1) };
        let cargo = Cargo::batch(&Book::new(Statements::Unnamed), &[], &[write.clone(), write]).unwrap();
        told_of(cargo, 1, failure, sent)
    }

    /// The same for any batch, after so many of its statements.
    fn told_of(cargo: Cargo, statements: usize, failure: Failure, sent: u64) -> (Fault, bool) {
        const ENDS: u64 = 100;
        let (reply, mut answer) = oneshot::channel();
        let (cargo, ticket, now) = (Arc::new(cargo), Ticket::take(&Arc::new(Gauge::new())), Instant::now());
        let job = Job { cargo, reply, ticket, tries: 0, handed: now };
        let mut flight = Flight::new(job, VecDeque::new(), ENDS, now);
        for _ in 0..statements {
            flight.hear(Message::Complete(1), &mut []).unwrap();
        }
        flight.hear(Message::Failed(failure), &mut []).unwrap();
        let last = flight.last;
        flight.lost((sent, true), "the connection was lost");
        (answer.try_recv().unwrap().unwrap_err(), last)
    }

    fn fatal(code: &str, of_pooler: bool) -> Failure {
        Failure { severity: "FATAL".into(), code: code.into(), text: "gone".into(), of_pooler }
    }

    #[test]
    fn who_lost_the_server_does_not_know_what_it_did() {
        // Red without `is_hearsay` in hear: the batch is sent once more, although it may be committed already.
        for (code, of_pooler) in [("08P01", true), ("57P01", true), ("08006", false), ("58000", false)] {
            let unknown = (Fault::Unknown("gone".into()), false);
            assert_eq!(told(fatal(code, of_pooler), 100), unknown, "{code}");
            assert!(matches!(told(fatal(code, of_pooler), 99), (Fault::Unsent(_), false)), "not sent whole: {code}");
        }
        assert_eq!(told(fatal("57P01", false), 100), (Fault::Unsent("gone (57P01)".into()), true));
    }

    #[test]
    fn a_batch_that_came_to_another_server_is_no_conflict() {
        // Red without `Elsewhere` in fault: "division by zero", and nobody would ask which server it is.
        let guard = Read { sql: Sql::fixed("SELECT 1 FROM s WHERE a = ?"), args: vec![Value::Int(1)] };
        let write = Write { sql: Sql::fixed("UPDATE t SET a = ?"), args: vec![Value::Int(1)], must: Must::Touch(1) };
        for (statements, wanted) in [(0, Fault::Elsewhere), (1, Fault::Conflict { at: 0, why: Broken::Guard })] {
            let prelude = [(&guard, Must::Find(1))];
            let writes = std::slice::from_ref(&write);
            let cargo = Cargo::batch(&Book::new(Statements::Unnamed), &prelude, writes).unwrap();
            let raised = Failure { severity: "ERROR".into(), ..fatal(RAISED, false) };
            assert_eq!(told_of(cargo, statements, raised, 100).0, wanted);
        }
    }

    #[test]
    fn a_lock_that_others_hold_is_told_from_what_is_wrong() {
        // Red without `Held`: a change of a table is not retried.
        let error = |code| Failure { severity: "ERROR".into(), ..fatal(code, false) };
        assert_eq!(told(error("55P03"), 100).0, Fault::Held("gone (55P03)".into()));
        assert_eq!(told(error("53100"), 100).0, Fault::Refused("gone (53100)".into()));
    }
}
