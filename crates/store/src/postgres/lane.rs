//! One connection that many callers share: every flight is sent at once behind those before it, and answered in order.
//!
//! A flight is a few statements that end with one `Sync`: the server runs them in one transaction, skips the statements
//! after a failure, and commits at the end, so no part of a batch is committed without the rest, whatever fails.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use super::cargo::{Cargo, Role};
use super::flight::{Ended, Fault, Flight, Reply};
use super::gauge::{Tally, Ticket};
use super::wire::{self, Failure, Message};

/// A stream of bytes to and from a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A flight to be sent, and where its answer goes.
pub(super) struct Job {
    pub(super) cargo: Arc<Cargo>,
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) ticket: Ticket,
    /// How often it was sent before.
    pub(super) tries: u32,
    pub(super) handed: Instant,
}

/// The maximum number of flights on the way; more wait here, where they can still be refused.
const DEPTH: usize = 128;
/// The same while the first flight, or the one before it, has waited for this share of the timeout for a row that is
/// held: each flight behind it may have to wait as long.
const DEPTH_WHILE_SLOW: usize = 2;
const SLOW: u32 = 64;

/// The number of bytes that are read at once.
const CHUNK: usize = 32 * 1024;

/// The number of bytes that a buffer keeps after a long message.
const KEPT: usize = 256 * 1024;

/// What a connection knows about a statement that it prepared.
pub(super) struct Known {
    /// The types of its columns, once the server has reported them.
    pub(super) columns: Option<Arc<[u32]>>,
}

/// A connection at work. It resolves to a sentence when the connection is lost or no caller can send flights any more.
pub(super) struct Lane {
    stream: Box<dyn Stream>,
    jobs: mpsc::UnboundedReceiver<Job>,
    timeout: Duration,
    tally: Arc<Tally>,
    flights: VecDeque<Flight>,
    /// Jobs that are retried, and when.
    later: Vec<(Instant, Job)>,
    known: Vec<Option<Known>>,
    out: Vec<u8>,
    /// How much of `out` was written.
    written: usize,
    /// The number of bytes that were written before `out`.
    before: u64,
    flushed: bool,
    inbox: Vec<u8>,
    chunk: Vec<u8>,
    /// When the server last answered something, or when the first of the flights now on the way was sent.
    progress: Instant,
    /// How long the last flight was the first of those on the way.
    took: Duration,
    timer: Pin<Box<Sleep>>,
    closing: bool,
    /// Why the connection is given up once the flights on the way have ended.
    doubt: Option<String>,
}

impl Lane {
    /// Takes over a connection that the server has accepted, with what the server has sent since.
    pub(super) fn new(
        (stream, inbox): (Box<dyn Stream>, Vec<u8>),
        jobs: mpsc::UnboundedReceiver<Job>,
        timeout: Duration,
        tally: Arc<Tally>,
    ) -> Self {
        Lane {
            stream,
            jobs,
            timeout,
            tally,
            flights: VecDeque::new(),
            later: Vec::new(),
            known: Vec::new(),
            out: Vec::new(),
            written: 0,
            before: 0,
            flushed: true,
            inbox,
            chunk: vec![0; CHUNK],
            progress: Instant::now(),
            took: Duration::ZERO,
            timer: Box::pin(tokio::time::sleep(timeout)),
            closing: false,
            doubt: None,
        }
    }

    /// Tells all waiting callers that nothing more will come.
    pub(super) fn end(&mut self, why: &str) {
        let sent = self.before + self.written as u64;
        let mut reached = true;
        for flight in self.flights.drain(..) {
            let last = flight.last;
            flight.lost((sent, reached), why);
            reached &= !last;
        }
        self.jobs.close();
        let waiting = std::iter::from_fn(|| self.jobs.try_recv().ok());
        for job in self.later.drain(..).map(|(_, job)| job).chain(waiting) {
            drop(job.reply.send(Err(Fault::Unsent(why.to_owned()))));
        }
    }

    /// Does everything that can be done without waiting.
    fn turn(&mut self, context: &mut Context<'_>) -> Poll<String> {
        loop {
            let took = self.take(context);
            let wrote = self.write(context);
            let read = self.read(context);
            match (wrote, read) {
                (Ok(wrote), Ok(read)) => {
                    if !(took || wrote || read) {
                        break;
                    }
                }
                // What the server said before it went matters more than that it went.
                (_, Err(why)) | (Err(why), Ok(_)) => return Poll::Ready(why),
            }
        }
        let idle = self.flights.is_empty() && self.later.is_empty();
        if let Some(why) = self.doubt.take_if(|_| self.flights.is_empty()) {
            return Poll::Ready(why);
        }
        if self.closing && idle && self.written == self.out.len() {
            return Poll::Ready("closed".to_owned());
        }
        self.clock(context)
    }

    /// Takes jobs from the queue. Returns whether there was one.
    fn take(&mut self, context: &mut Context<'_>) -> bool {
        let mut any = false;
        let now = Instant::now();
        while self.takes(now) {
            let job = match self.later.iter().position(|(at, _)| *at <= now) {
                Some(due) => self.later.swap_remove(due).1,
                None => match self.jobs.poll_recv(context) {
                    Poll::Ready(Some(job)) => job,
                    Poll::Ready(None) => {
                        if !self.closing && self.later.is_empty() && self.flights.is_empty() {
                            self.closing = true;
                            self.out.extend_from_slice(wire::TERMINATE);
                            any = true;
                        }
                        break;
                    }
                    Poll::Pending => break,
                },
            };
            any = true;
            self.begin(job, now);
        }
        any
    }

    /// Whether another flight may be sent behind those on the way.
    fn takes(&self, now: Instant) -> bool {
        let begun = self.flights.front().map(|front| self.progress.max(front.began));
        let waits = begun.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let is_slow = waits.max(self.took) > self.timeout / SLOW;
        let most = if is_slow { DEPTH_WHILE_SLOW } else { DEPTH };
        self.flights.len() < most && self.doubt.is_none()
    }

    /// Appends a job's messages to those to be sent.
    fn begin(&mut self, job: Job, now: Instant) {
        if job.cargo.role == Role::Read && job.reply.is_closed() {
            return;
        }
        if now.duration_since(job.handed) > self.timeout / 2 && job.tries == 0 {
            drop(job.reply.send(Err(Fault::Refused("the database is too slow for all waiting requests".to_owned()))));
            return;
        }
        let mut asked = VecDeque::new();
        for (statement, run) in job.cargo.parts() {
            if statement.name.is_empty() {
                self.out.extend_from_slice(statement.prepare());
            } else {
                let id = statement.id;
                if self.known.len() <= id {
                    self.known.resize_with(id + 1, || None);
                }
                if self.known[id].is_none() {
                    self.known[id] = Some(Known { columns: None });
                    asked.push_back(id);
                    self.out.extend_from_slice(statement.prepare());
                }
            }
            self.out.extend_from_slice(run);
        }
        self.out.extend_from_slice(wire::SYNC);
        if self.flights.is_empty() {
            self.progress = now;
            job.ticket.gauge().front(now);
        }
        let ends = self.before + self.out.len() as u64;
        self.flights.push_back(Flight::new(job, asked, ends, now));
    }

    /// Writes what the socket accepts. Returns whether it accepted anything.
    fn write(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let mut any = false;
        while self.written < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.out[self.written..]) {
                Poll::Ready(Ok(0)) => return Err("the connection accepts no more data".to_owned()),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    (self.flushed, any) = (false, true);
                }
                Poll::Ready(Err(error)) => return Err(format!("the connection was lost: {error}")),
                Poll::Pending => return Ok(any),
            }
        }
        self.before += self.written as u64;
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(KEPT);
        if !self.flushed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(error)) => return Err(format!("the connection was lost: {error}")),
                Poll::Pending => {}
            }
        }
        Ok(any)
    }

    /// Reads what is available. Returns whether there was anything.
    fn read(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let mut any = false;
        loop {
            let mut chunk = ReadBuf::new(&mut self.chunk);
            match Pin::new(&mut self.stream).poll_read(context, &mut chunk) {
                Poll::Pending => return Ok(any),
                Poll::Ready(Err(error)) => return Err(format!("the connection was lost: {error}")),
                Poll::Ready(Ok(())) if chunk.filled().is_empty() => {
                    return Err("the server closed the connection".to_owned());
                }
                Poll::Ready(Ok(())) => self.inbox.extend_from_slice(chunk.filled()),
            }
            any = true;
            self.hear_all()?;
        }
    }

    /// Handles every complete message.
    fn hear_all(&mut self) -> Result<(), String> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut at = 0;
        let garbled = |_| "the server sent something that is not a PostgreSQL message".to_owned();
        while let Some((message, length)) = wire::next(&inbox[at..]).map_err(garbled)? {
            at += length;
            self.hear(message)?;
        }
        inbox.drain(..at);
        inbox.shrink_to(KEPT);
        self.inbox = inbox;
        Ok(())
    }

    fn hear(&mut self, message: Message<'_>) -> Result<(), String> {
        let Some(flight) = self.flights.front_mut() else { return unasked(message) };
        let Message::Ready { open } = message else {
            return flight
                .hear(message, &mut self.known)
                .map_err(|_| "the server sent an answer that cannot be read".to_owned());
        };
        let now = Instant::now();
        let began = self.progress.max(flight.began);
        (self.progress, self.took) = (now, now.duration_since(began));
        let Some(flight) = self.flights.pop_front() else { return Ok(()) };
        let front = self.flights.front().map(|_| now);
        flight.gauge().at(front);
        let batch = flight.is_batch();
        match flight.finish(open, &mut self.known) {
            Ended::Answered { committed } => {
                self.tally.ended(batch, committed.then(|| now.duration_since(began)));
                Ok(())
            }
            Ended::Again(mut job) => {
                let pause = self.tally.pause(job.tries);
                job.tries += 1;
                self.later.push((now + pause, job));
                Ok(())
            }
            Ended::Doubt(why) => {
                self.doubt = Some(why);
                Ok(())
            }
        }
    }

    /// Ends the connection if the server has been silent for too long, and wakes up for jobs that are due later.
    fn clock(&mut self, context: &mut Context<'_>) -> Poll<String> {
        loop {
            let now = Instant::now();
            let silent = self.progress + self.timeout;
            if !self.flights.is_empty() && silent <= now {
                return Poll::Ready(format!("the database did not answer for {:?}", self.timeout));
            }
            let idle = now + self.timeout;
            // A job that cannot be taken yet is not waited for: a flight that ends makes room, and wakes this task.
            let takes = self.takes(now);
            let due = self.later.iter().map(|(at, _)| *at).min().filter(|_| takes);
            let next = if self.flights.is_empty() { idle } else { silent }.min(due.unwrap_or(idle));
            if next < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(next);
            }
            ready!(self.timer.as_mut().poll(context));
            if due.is_some() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl Future for Lane {
    type Output = String;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<String> {
        let why = ready!(self.turn(context));
        self.end(&why);
        Poll::Ready(why)
    }
}

/// Handles what a server says without being asked: a notice, its settings, or the end of the connection.
fn unasked(message: Message<'_>) -> Result<(), String> {
    match message {
        Message::Notice(Failure { severity, text, .. }) => {
            tracing::debug!(severity, text, "notice from the database");
            Ok(())
        }
        Message::Other => Ok(()),
        Message::Failed(failure) => Err(format!("the database ended the connection: {}", failure.text)),
        _ => Err("the server sent an unexpected message".to_owned()),
    }
}
