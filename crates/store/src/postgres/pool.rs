//! The connections: which one a flight takes, and how lost ones are replaced.

use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::cargo::{Book, Cargo, Role};
use super::connect::Door;
use super::flight::{Fault, Reply};
use super::gauge::{Gauge, Tally, Ticket};
use super::lane::Job;
use super::link::{Link, Purpose};
use super::server::{self, Facts, Identity};
use crate::caught::survive;
use crate::engine::{Durability, Read};
use crate::remote::{Loss, OpenError, REPLACED, Replication, Settings, Statements, Usage};

/// All connections to one database, and what is known about its server.
pub(super) struct Pool {
    pub(super) door: Door,
    pub(super) book: Book,
    pub(super) tally: Arc<Tally>,
    pub(super) timeout: Duration,
    pub(super) mode: Statements,
    pub(super) accepted: Vec<Loss>,
    pub(super) replication: Replication,
    /// Connections for reads first, then those for batches: a batch that waits for a row holds up no read.
    slots: Vec<Slot>,
    reads: usize,
    /// Notified when a connection was lost: connections to the same server check theirs.
    alarm: Notify,
    /// Counts the connections that were made, for callers that wait for one.
    ups: watch::Sender<u64>,
    /// Grows when a different server answers: earlier connections lead to the previous server.
    generation: watch::Sender<u64>,
    seen: Mutex<Seen>,
    closing: AtomicBool,
}

/// What is known about the server.
#[derive(Default)]
struct Seen {
    identity: Option<Identity>,
    durability: Option<Durability>,
    /// The first statement of a batch when session settings cannot be relied on.
    prelude: Option<Arc<Read>>,
    /// The search path of sessions, fixed by the first one.
    search_path: Option<String>,
    /// The advice about the server that was logged already.
    advised: Vec<&'static str>,
    /// Why the last attempt to connect failed, unless one has succeeded since.
    trouble: Option<String>,
    /// When that was last logged.
    told: Option<Instant>,
}

/// The slot of one connection.
struct Slot {
    gauge: Arc<Gauge>,
    up: Mutex<Option<Up>>,
    /// Notified when a caller wants the connection now.
    wanted: Notify,
}

/// A connection that works.
struct Up {
    jobs: mpsc::UnboundedSender<Job>,
    /// The generation of the server that it leads to, if we may know it.
    generation: Option<u64>,
}

impl Up {
    /// Whether it leads to the server that a flight is for.
    fn leads_to(&self, within: Option<u64>) -> bool {
        within.zip(self.generation).is_none_or(|(wanted, own)| wanted == own)
    }
}

/// The maximum number of flights that wait for one connection or are in flight on it.
const QUEUE: usize = 1024;

/// How long a request waits for a connection that was lost and has not been found unavailable yet.
const GRACE: Duration = Duration::from_millis(500);

/// The shortest and the longest pause between attempts to connect.
const PAUSES: Range<Duration> = Duration::from_millis(50)..Duration::from_secs(2);

/// How often the log repeats that the database cannot be reached, while nothing changes.
const REMIND: Duration = Duration::from_secs(30);

/// How often an idle connection is checked.
const LOOK: Duration = Duration::from_secs(5);

impl Pool {
    pub(super) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let count = settings.connections.get();
        let slot = |_| Slot { gauge: Arc::new(Gauge::new()), up: Mutex::new(None), wanted: Notify::new() };
        Ok(Pool {
            door: Door::new(settings)?,
            book: Book::new(settings.statements),
            tally: Arc::new(Tally::new()),
            timeout: settings.timeout,
            mode: settings.statements,
            accepted: settings.accepted.clone(),
            replication: settings.replication,
            slots: (0..count).map(slot).collect(),
            reads: (count / 4).max(1),
            alarm: Notify::new(),
            ups: watch::Sender::new(0),
            generation: watch::Sender::new(0),
            seen: Mutex::default(),
            closing: AtomicBool::new(false),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why there is no connection. All connections find it out repeatedly: it is logged once, and then rarely.
    fn in_trouble(&self, why: String) {
        let mut seen = self.seen();
        let known = seen.trouble.as_ref() == Some(&why);
        if !(known && seen.told.is_some_and(|at| at.elapsed() < REMIND)) {
            tracing::warn!(why, "the database cannot be reached");
            seen.told = Some(Instant::now());
        }
        seen.trouble = Some(why);
    }

    /// The purpose of each connection.
    pub(super) fn purposes(&self) -> impl Iterator<Item = Purpose> {
        let reads = self.reads;
        (0..self.slots.len()).map(move |at| if at < reads { Purpose::Reads } else { Purpose::Batches })
    }

    /// The first statement of a batch.
    pub(super) fn prelude(&self) -> Option<Arc<Read>> {
        self.seen().prelude.clone()
    }

    /// The search path for a session; `None` before the first session.
    pub(super) fn search_path(&self) -> Option<String> {
        self.seen().search_path.clone()
    }

    /// Remembers the search path of the first session.
    pub(super) fn stay_in(&self, path: &str) {
        self.seen().search_path.get_or_insert_with(|| path.to_owned());
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        self.seen().identity.clone()
    }

    /// How safe an acknowledged commit was when the server was last asked.
    pub(super) fn durability(&self) -> Durability {
        self.seen().durability.unwrap_or(Durability::DurableNode)
    }

    /// Remembers what a server reported about itself.
    pub(super) fn learn(&self, facts: &Facts, prelude: Option<Read>) {
        let durability = facts.durability(self.replication, self.door.is_alone());
        let mut seen = self.seen();
        for advice in facts.advice(self.replication) {
            if !seen.advised.contains(&advice) {
                tracing::warn!("{advice}");
                seen.advised.push(advice);
            }
        }
        if let Some(prelude) = prelude {
            seen.prelude = Some(Arc::new(prelude));
        }
        if seen.durability.replace(durability) != Some(durability) {
            tracing::info!(?durability, "durability of the commits that the database acknowledges");
        }
    }

    pub(super) fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Remembers which server answered, unless a later timeline of its cluster is known. Returns its generation.
    pub(super) fn recognize(&self, identity: Identity) -> Result<u64, OpenError> {
        let mut seen = self.seen();
        if let Some(known) = &seen.identity {
            if known.system == identity.system && identity.timeline < known.timeline {
                return Err(OpenError::Unfit("the server was superseded: another one was promoted since".to_owned()));
            }
            if known.system != identity.system {
                tracing::warn!(was = known.system, now = identity.system, "another database cluster answers");
            }
            if *known != identity {
                self.generation.send_modify(|generation| *generation += 1);
            }
        }
        seen.identity = Some(identity);
        Ok(self.generation())
    }

    /// Sends a flight, over another connection if one is lost before it could have any effect.
    pub(super) async fn send(&self, cargo: Arc<Cargo>) -> Reply {
        // All connections may have been lost, and only a caller that uses one finds that out. A caller that was kept
        // waiting already is not made to wait again.
        let (mut detours, began) = (0..=self.slots.len(), Instant::now());
        loop {
            self.leads_to(cargo.within)?;
            let answer = match self.submit(&cargo)? {
                Some(answer) => answer,
                None => self.wait(&cargo).await?,
            };
            match answer.await {
                Ok(Err(Fault::Unsent(_))) if detours.next().is_some() && began.elapsed() < self.timeout / 2 => {}
                Ok(reply) => return reply,
                Err(_) => return Err(Fault::Unknown("the engine was stopped".to_owned())),
            }
        }
    }

    /// Whether the server that answers is the one that a flight is for.
    fn leads_to(&self, within: Option<u64>) -> Result<(), Fault> {
        match within.is_none_or(|generation| generation == self.generation()) {
            true => Ok(()),
            false => Err(Fault::Refused(REPLACED.to_owned())),
        }
    }

    /// Hands a flight to the connection with the least load; `None` if there is no connection.
    fn submit(&self, cargo: &Arc<Cargo>) -> Result<Option<oneshot::Receiver<Reply>>, Fault> {
        let (reads, batches) = self.slots.split_at(self.reads);
        // Batches leave the connections for reads alone if they have their own: a batch that waits for a standby would
        // block reads, and leave a connection behind on the server.
        let (own, others) = match cargo.role {
            Role::Read => (reads, batches),
            Role::Batch if batches.is_empty() => (reads, batches),
            Role::Batch => (batches, &batches[..0]),
        };
        let (mut reply, answer) = oneshot::channel();
        for slots in [own, others] {
            let up = || slots.iter().filter(|slot| slot.is_up(cargo.within));
            while let Some(slot) = up().min_by_key(|slot| (slot.gauge.is_slow(), slot.gauge.load())) {
                if slot.gauge.load() >= QUEUE {
                    return Err(Fault::Refused("too many requests are waiting for the database".to_owned()));
                }
                match slot.hand(cargo, reply) {
                    None => return Ok(Some(answer)),
                    Some(back) => reply = back,
                }
            }
        }
        Ok(None)
    }

    /// Why no batch can be written although the server answers: it accepts none of the connections for batches.
    pub(super) fn refuses_batches(&self) -> Option<String> {
        let batches = &self.slots[self.reads..];
        let none_is_up = !batches.is_empty() && !batches.iter().any(|slot| slot.is_up(None));
        self.seen().trouble.clone().filter(|_| none_is_up)
    }

    /// Waits a moment for a connection, unless it is known why there is none.
    async fn wait(&self, cargo: &Arc<Cargo>) -> Result<oneshot::Receiver<Reply>, Fault> {
        let (until, mut ups) = (Instant::now() + GRACE, self.ups.subscribe());
        loop {
            self.slots.iter().for_each(|slot| slot.wanted.notify_one());
            self.leads_to(cargo.within)?;
            // One may have come since the last look; any that comes from here on notifies.
            if let Some(answer) = self.submit(cargo)? {
                return Ok(answer);
            }
            if let Some(trouble) = &self.seen().trouble {
                return Err(Fault::Refused(trouble.clone()));
            }
            let up = timeout_at(until, ups.changed()).await;
            if self.closing.load(Relaxed) || !matches!(up, Ok(Ok(()))) {
                return Err(Fault::Refused("there is no connection to the database".to_owned()));
            }
        }
    }

    /// Counts the open connections, all slots, and the flights that wait or are in flight.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            connected: self.slots.iter().filter(|slot| slot.is_up(None)).count(),
            places: self.slots.len(),
            waiting: self.slots.iter().map(|slot| slot.gauge.load()).sum(),
            most_waiting: self.slots.len() * QUEUE,
        }
    }

    /// Lets no new flight in; flights in progress are completed.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
        for slot in &self.slots {
            slot.clear();
            slot.wanted.notify_one();
        }
    }

    /// Keeps one connection for as long as the engine is open, whatever panics over it.
    pub(super) async fn keep(self: Arc<Self>, at: usize, purpose: Purpose, first: Link) {
        let Some(slot) = self.slots.get(at) else { return };
        let mut first = Some(first);
        let keep_on = || {
            // The connection of a task that panicked leads nowhere.
            slot.clear();
            self.keep_on(slot, purpose, first.take())
        };
        survive("keeping a connection to the database", keep_on).await;
    }

    async fn keep_on(&self, slot: &Slot, purpose: Purpose, mut link: Option<Link>) {
        let (mut pause, mut failed) = (PAUSES.start, false);
        while !self.closing.load(Relaxed) {
            let made = match link.take() {
                Some(link) => Ok(link),
                None => Link::make(self, purpose).await,
            };
            match made {
                Ok(link) => {
                    (pause, failed) = (PAUSES.start, false);
                    if let Some(why) = self.serve(slot, link).await {
                        tracing::warn!(why, "a connection to the database was lost");
                        self.look_again();
                    }
                }
                // The event that ended the previous connection may have ended this one too.
                Err(OpenError::Unreachable(_) | OpenError::Refused(_)) if !failed => failed = true,
                Err(error) => {
                    self.in_trouble(error.to_string());
                    // Not at once, however much a caller wants it.
                    sleep(PAUSES.start).await;
                    drop(timeout(pause, slot.wanted.notified()).await);
                    pause = (pause * 2).min(PAUSES.end);
                }
            }
        }
    }

    /// Serves flights over one connection until it is lost, and returns why it was.
    async fn serve(&self, slot: &Slot, link: Link) -> Option<String> {
        let Link { mut lane, jobs, generation, .. } = link;
        if !slot.open(Up { jobs, generation }, &self.closing) {
            return None;
        }
        if self.seen().trouble.take().is_some() {
            tracing::info!("the database is reachable again");
        }
        self.ups.send_modify(|count| *count += 1);
        let mut generations = self.generation.subscribe();
        let replaced = pin!(generations.wait_for(|now| generation.is_some_and(|own| own < *now)));
        let looked = pin!(self.look_after(slot));
        let changed = select(replaced, looked);
        let why = match select(&mut lane, changed).await {
            Either::Left((why, _)) => why,
            Either::Right((Either::Left(_), _)) => "another server answers by now".to_owned(),
            Either::Right((Either::Right((why, _)), _)) => why,
        };
        slot.clear();
        lane.end(&why);
        slot.gauge.at(None);
        (!self.closing.load(Relaxed)).then_some(why)
    }

    /// Makes every connection check at once whether its server still meets the requirements.
    pub(super) fn look_again(&self) {
        self.alarm.notify_waiters();
    }

    /// Checks a connection now and then, and when another was lost, and returns what is wrong with it: its server may
    /// have become a standby, or its settings may have changed since the connection was made.
    async fn look_after(&self, slot: &Slot) -> String {
        let read = [server::facts()];
        loop {
            drop(timeout(LOOK, self.alarm.notified()).await);
            let Ok(cargo) = Cargo::reads(&self.book, &read) else { continue };
            let (reply, answer) = oneshot::channel();
            if slot.hand(&Arc::new(cargo), reply).is_some() {
                continue;
            }
            // If the connection is lost, its lane reports that itself.
            let Ok(Ok(done)) = answer.await else { continue };
            let now = done.rows.first().and_then(|rows| Facts::of(rows));
            if let Some(Err(why)) = now.map(|now| now.fit(&self.accepted)) {
                return why.to_string();
            }
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Up>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets flights in, unless the engine is `closing`. That is checked under the lock under which [`Pool::close`]
    /// empties the slots after setting it: a connection that came in between would wait for flights for ever.
    fn open(&self, up: Up, closing: &AtomicBool) -> bool {
        let mut place = self.lock();
        let opens = !closing.load(Relaxed);
        if opens {
            *place = Some(up);
        }
        opens
    }

    /// Lets no more flights in: the connection ends once those on it are done.
    fn clear(&self) {
        drop(self.lock().take());
    }

    fn is_up(&self, within: Option<u64>) -> bool {
        self.lock().as_ref().is_some_and(|up| up.leads_to(within))
    }

    /// Hands a flight over, or gives back its reply channel.
    fn hand(&self, cargo: &Arc<Cargo>, reply: oneshot::Sender<Reply>) -> Option<oneshot::Sender<Reply>> {
        let mut up = self.lock();
        let Some(open) = up.as_ref().filter(|up| up.leads_to(cargo.within)) else { return Some(reply) };
        let ticket = Ticket::take(&self.gauge);
        let job = Job { cargo: Arc::clone(cargo), reply, ticket, tries: 0, handed: Instant::now() };
        let back = open.jobs.send(job).err()?.0;
        // The connection has ended, so it no longer counts as a working one.
        *up = None;
        Some(back.reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_goes_only_where_it_is_to_go() {
        // Red without `leads_to` in is_up, or in hand.
        let pool = Pool::new(&Settings::at("postgres://a:b@127.0.0.1:1/c")).unwrap();
        let flight = |within| {
            let mut cargo = Cargo::reads(&pool.book, &[]).unwrap();
            cargo.within = within;
            Arc::new(cargo)
        };
        let slot = &pool.slots[0];
        let (jobs, _taken) = mpsc::unbounded_channel();
        *slot.lock() = Some(Up { jobs, generation: Some(7) });
        for (within, goes) in [(None, true), (Some(7), true), (Some(6), false), (Some(8), false)] {
            assert_eq!(slot.is_up(within), goes, "{within:?}");
            assert_eq!(slot.hand(&flight(within), oneshot::channel().0).is_none(), goes, "{within:?}");
        }
        assert!(slot.is_up(None), "who was not let go of works on");
        let (jobs, _taken) = mpsc::unbounded_channel();
        *slot.lock() = Some(Up { jobs, generation: None });
        assert!(slot.hand(&flight(Some(8)), oneshot::channel().0).is_none(), "where nobody may know");
    }

    #[test]
    fn nobody_opens_a_connection_of_an_engine_that_was_closed() {
        // Red without `closing` in open: a connection that was just made would be served for ever.
        let pool = Pool::new(&Settings::at("postgres://a:b@127.0.0.1:1/c")).unwrap();
        let slot = &pool.slots[0];
        let opened = || {
            let (jobs, taken) = mpsc::unbounded_channel();
            (slot.open(Up { jobs, generation: None }, &pool.closing), taken)
        };
        let (opens, mut taken) = opened();
        assert!(opens && slot.is_up(None) && !taken.is_closed());
        pool.close();
        assert_eq!(taken.try_recv().err(), Some(mpsc::error::TryRecvError::Disconnected), "the lane ends");
        let (opens, mut taken) = opened();
        assert!(!opens && !slot.is_up(None));
        assert_eq!(taken.try_recv().err(), Some(mpsc::error::TryRecvError::Disconnected), "this one, too");
    }

    #[test]
    fn another_server_or_a_later_timeline_is_another_generation() {
        // Red without the comparison in recognize.
        let pool = Pool::new(&Settings::at("postgres://a:b@127.0.0.1:1/c")).unwrap();
        let system =
            |system: &str, timeline| pool.recognize(Identity { system: system.to_owned(), timeline, life: None });
        assert_eq!((system("7", 1), system("7", 1)), (Ok(0), Ok(0)), "each connection says so");
        assert_eq!(system("7", 3), Ok(1));
        assert!(system("7", 2).is_err(), "who was promoted since has replaced it");
        assert_eq!((system("8", 1), system("7", 3), pool.generation()), (Ok(2), Ok(3), 3));
    }

    #[test]
    fn a_server_that_forgets_is_another_one_after_each_start() {
        // Red without `life` in server.rs, Identity.
        let pool = Pool::new(&Settings::at("postgres://a:b@127.0.0.1:1/c")).unwrap();
        let life =
            |life: &str| pool.recognize(Identity { system: "7".to_owned(), timeline: 1, life: Some(life.to_owned()) });
        assert_eq!((life("5 6"), life("5 6")), (Ok(0), Ok(0)));
        assert_eq!((life("5 7"), life("8 9")), (Ok(1), Ok(2)));
    }
}
