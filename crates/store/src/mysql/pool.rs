//! A bounded number of connections, all of them to one server at a time.
//!
//! A cluster such as Galera keeps its guarantees only for clients that stay with one node. So when the active server
//! fails, every connection to it ends or is closed before the first connection to the next server is used. The pool
//! leaves a server only then, or to return to an earlier one in the URL that is a member of the same cluster again.

mod choice;
mod crowd;
mod home;
mod search;
mod writers;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::connect::{Link, Node, Refused};
use super::fitness::Fitness;
use crate::caught::caught;
use crate::engine::Durability;
use crate::remote::Usage;
use crowd::Crowd;
use home::Home;
use search::Search;
use writers::Turn;

/// For this long after no server was fit, every request for a new connection gets the same answer.
const PAUSE: Duration = Duration::from_millis(200);

/// With this many waiting for each connection there are too many: each of them would wait for seconds.
const MANY: usize = 256;

const LATE: &str = "the database did not answer in time";
const CLOSED: &str = "the database was closed";

/// The permit to use one connection.
pub(super) type Place = OwnedSemaphorePermit;

/// The connection pool.
pub(super) struct Pool {
    nodes: Vec<Node>,
    /// Whether no other server may take over from the one in use, as far as we were told.
    pub(super) alone: bool,
    size: u32,
    /// How long a server may be silent before the pool checks that it is there, and how long that check may take.
    patience: Duration,
    /// One permit for each connection that may be in use.
    places: Arc<Semaphore>,
    /// The places that batches may take.
    writers: Arc<Semaphore>,
    /// Batches that were given up here a while ago, and whose connection the server has not ended yet.
    hanging: AtomicUsize,
    /// How many callers wait for a place.
    waiting: AtomicUsize,
    /// Connections in use. A place is also taken by a caller that is still trying to connect.
    used: AtomicUsize,
    /// Connections that are being made on request.
    making: AtomicUsize,
    /// Notified when a connection was given back.
    freed: Notify,
    state: Mutex<State>,
    /// Answers over connections of eras before this one are no longer waited for.
    given_up: watch::Sender<u64>,
}

struct State {
    active: usize,
    idle: Idle<Link>,
    fitness: Fitness,
    /// How often the server changed.
    moves: u64,
    /// Grows when a different server answers, or another state of its cluster.
    generation: u64,
    refused: Option<(Instant, String)>,
    crowd: Crowd,
    /// When the server last had answered everything that a connection asked.
    heard: Instant,
    /// Whether a check that the server is there is running.
    doubted: bool,
    /// Set while another server is looked for.
    search: Option<Search>,
    /// The state of the return to an earlier server of the URL.
    home: Home,
    /// The previous server, if the pool left it for a member of the same cluster with nothing in flight.
    came_from: Option<String>,
    /// The advice that was logged about servers.
    advised: Vec<&'static str>,
}

impl State {
    fn new(active: usize, links: Vec<Link>, fitness: Fitness) -> Self {
        let idle = Idle { era: 0, links };
        let heard = Instant::now();
        let mut state = State {
            active,
            idle,
            fitness,
            moves: 0,
            generation: 0,
            refused: None,
            crowd: Crowd::default(),
            heard,
            doubted: false,
            search: None,
            home: Home::default(),
            came_from: None,
            advised: Vec::new(),
        };
        state.advise();
        state
    }

    /// The error that every caller gets for a moment after no server was fit.
    fn lately_refused(&self) -> Result<(), String> {
        match &self.refused {
            Some((when, why)) if when.elapsed() < PAUSE => Err(why.clone()),
            _ => Ok(()),
        }
    }
}

/// How a caller gets a connection.
enum Next<'a> {
    /// It takes an idle connection, which is in use from now on.
    Take(Link, One<'a>),
    /// It connects to this server, in this era; the counter tells others that a connection is being made.
    Make(usize, u64, One<'a>),
    /// It waits for a connection of another caller: the server has no room for more, for this reason.
    Share(String),
    /// It waits until the search for a server has ended.
    Wait(Search),
}

/// Idle connections, all of one era.
struct Idle<L> {
    /// Counts the events that ended all earlier connections: an outage, or a change of server.
    era: u64,
    links: Vec<L>,
}

impl<L> Idle<L> {
    /// Keeps a connection made in this era, and returns one of an earlier era, which may lead to another server.
    fn keep(&mut self, era: u64, link: L) -> Option<L> {
        if era != self.era {
            return Some(link);
        }
        self.links.push(link);
        None
    }

    /// Starts the next era, and returns the connections of this one.
    fn end(&mut self) -> Vec<L> {
        self.era += 1;
        std::mem::take(&mut self.links)
    }
}

/// A connection for one purpose. Dropping it closes the connection, which rolls back what was not committed;
/// [`Lease::keep`] gives it back.
pub(super) struct Lease<'a> {
    pub(super) link: Link,
    pool: &'a Arc<Pool>,
    _used: One<'a>,
    _place: Place,
    /// The turn of a batch. Given back last.
    turn: Option<Turn>,
}

impl Lease<'_> {
    /// Gives the connection back. Only for a connection without an open transaction or an outstanding answer.
    pub(super) fn keep(mut self) {
        self.link.used = true;
        // If the connection is not kept, it is closed before its place is given up.
        let Lease { _place, pool, link, _used, turn } = self;
        let ended = {
            let mut state = pool.state();
            state.heard = Instant::now();
            if pool.places.is_closed() { Some(link) } else { state.idle.keep(link.era, link) }
        };
        drop(ended);
        pool.freed.notify_one();
        Turn::is_over(turn);
    }

    /// The server has answered everything: nothing of the batch hangs there, whatever becomes of the connection.
    pub(super) fn answered(&mut self) {
        Turn::is_over(self.turn.take());
    }

    /// Closes the connection, and gives its place up once the server has closed it too, so that there are never more
    /// connections than configured.
    pub(super) async fn end(self, deadline: Instant) {
        let Lease { link, _place, _used, turn, .. } = self;
        Turn::is_over(turn);
        // The connection is discarded either way.
        drop(timeout_at(deadline, caught(link.conn.disconnect())).await);
    }
}

/// Counts one, until dropped.
struct One<'a>(&'a AtomicUsize);

impl<'a> One<'a> {
    fn of(many: &'a AtomicUsize) -> Self {
        many.fetch_add(1, Relaxed);
        One(many)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The server in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) host: String,
    pub(super) moves: u64,
    pub(super) fitness: Fitness,
    /// The identity of the previous server, if nothing can have been lost in the change from it.
    pub(super) came_from: Option<String>,
}

/// The identity of a server, as it is remembered over restarts.
pub(super) fn identity(host: &str, fitness: &Fitness) -> String {
    format!("{host} {}", fitness.identity)
}

impl Pool {
    /// Connects to the first of the servers that is fit.
    pub(super) async fn open(nodes: Vec<Node>, size: u32) -> Result<Pool, Refused> {
        let (active, (link, fitness)) = choice::first_fit(&nodes, 0..nodes.len(), 0).await?;
        let patience = nodes[active].patience();
        Ok(Pool::new(nodes, size, patience, State::new(active, vec![link], fitness)))
    }

    fn new(nodes: Vec<Node>, size: u32, patience: Duration, state: State) -> Pool {
        let alone = nodes.len() == 1;
        let places = Arc::new(Semaphore::new(size as usize));
        let writers = Arc::new(Semaphore::new(writers::of(size)));
        let [waiting, used, making, hanging] = [const { AtomicUsize::new(0) }; 4];
        let (freed, state, given_up) = (Notify::new(), Mutex::new(state), watch::Sender::new(0));
        Pool { nodes, alone, size, patience, places, writers, hanging, waiting, used, making, freed, state, given_up }
    }

    /// The server in use.
    pub(super) fn active(&self) -> Active {
        let state = self.state();
        let host = self.nodes[state.active].host.to_string();
        Active { host, moves: state.moves, fitness: state.fitness.clone(), came_from: state.came_from.clone() }
    }

    /// How safe a commit is that the server acknowledged.
    pub(super) fn durability(&self) -> Durability {
        self.state().fitness.durability(self.alone)
    }

    pub(super) fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Returns a connection by `deadline`, or the reason why there is none.
    pub(super) async fn lease(self: &Arc<Self>, deadline: Instant) -> Result<Lease<'_>, String> {
        let waiter = One::of(&self.waiting);
        let place = timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await;
        drop(waiter);
        let place = place.map_err(|_| "no connection to the database became free in time".to_owned())?;
        self.lease_at(place.map_err(|_| CLOSED.to_owned())?, deadline).await
    }

    /// Counts connections in use or idle, the places, and the callers that wait for a place or have one.
    pub(super) fn usage(&self) -> Usage {
        let places = self.size as usize;
        let taken = places.saturating_sub(self.places.available_permits());
        let waiting = self.waiting.load(Relaxed);
        let (used, idle) = (self.used.load(Relaxed), self.state().idle.links.len());
        Usage { connected: (used + idle).min(places), places, waiting: taken + waiting, most_waiting: places * MANY }
    }

    /// Returns a place if one is free.
    pub(super) fn spare(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Returns a connection for a place.
    pub(super) async fn lease_at(self: &Arc<Self>, mut place: Place, deadline: Instant) -> Result<Lease<'_>, String> {
        loop {
            let (node, era, making) = match self.next() {
                Next::Take(link, used) => return Ok(self.let_in(link, used, place)),
                Next::Make(node, era, making) => (node, era, making),
                Next::Share(why) => {
                    self.until_free(why, deadline).await?;
                    continue;
                }
                Next::Wait(search) => {
                    // The search waits until it has all places.
                    drop(place);
                    place = self.found(search, deadline).await?;
                    continue;
                }
            };
            self.state().lately_refused()?;
            let asked = Instant::now();
            let connecting = self.unless_given_up(era, self.nodes[node].connect(era));
            match timeout_at(deadline, connecting).await {
                Ok(Some(Ok((mut link, fitness)))) => {
                    // If the server failed meanwhile, it is not known where this connection leads.
                    let Some(era) = self.note(era, fitness) else { continue };
                    link.era = era;
                    return Ok(self.let_in(link, One::of(&self.used), place));
                }
                Ok(Some(Err(Refused::Crowded(why)))) => self.note_crowd(why, making)?,
                Ok(Some(Err(refused))) => self.search(era, refused, asked)?,
                Ok(None) => {}
                Err(_) => {
                    // There may not have been enough time.
                    self.doubt(era);
                    return Err(LATE.to_owned());
                }
            }
        }
    }

    fn let_in<'a>(self: &'a Arc<Self>, link: Link, used: One<'a>, place: Place) -> Lease<'a> {
        Lease { link, pool: self, _used: used, _place: place, turn: None }
    }

    /// Assumes that the server may have failed: the next caller makes a new connection, which will tell.
    pub(super) fn suspect(&self, era: u64) {
        let ended = {
            let mut state = self.state();
            if state.idle.era == era { std::mem::take(&mut state.idle.links) } else { Vec::new() }
        };
        drop(ended);
    }

    /// Treats the server as no longer fit: connections in use are not reused, either.
    fn dismiss(&self, era: u64) {
        let ended = {
            let mut state = self.state();
            if state.idle.era == era { state.idle.end() } else { Vec::new() }
        };
        drop(ended);
    }

    /// Asks the active server whether it is fit, and notes the answer.
    pub(super) async fn examine(self: &Arc<Self>, deadline: Instant) -> Result<(), String> {
        let mut lease = self.lease(deadline).await?;
        let (node, era) = { (self.state().active, lease.link.era) };
        match self.hear(era, deadline, self.nodes[node].examine(&mut lease.link.conn)).await {
            Some(Ok(fitness)) => {
                if let Some(era) = self.note(era, fitness) {
                    lease.link.era = era;
                }
                lease.keep();
                self.look_home();
                Ok(())
            }
            Some(Err(refused)) => {
                drop(lease);
                match &refused {
                    Refused::Unfit(_) => self.dismiss(era),
                    _ => self.suspect(era),
                }
                Err(refused.why())
            }
            None => {
                self.suspect(era);
                Err(LATE.to_owned())
            }
        }
    }

    /// Lets no new caller in, waits until those inside have finished, and closes every connection.
    pub(super) async fn close(&self, deadline: Instant) {
        let inside = timeout_at(deadline, self.places.acquire_many(self.size)).await;
        self.places.close();
        drop(inside);
        let ended = self.state().idle.end();
        for link in ended {
            // The connection is discarded either way.
            drop(timeout_at(deadline, caught(link.conn.disconnect())).await);
        }
    }

    fn next(&self) -> Next<'_> {
        let mut state = self.state();
        if let Some(search) = &state.search {
            return Next::Wait(search.clone());
        }
        match state.idle.links.pop() {
            Some(link) => Next::Take(link, One::of(&self.used)),
            None => match state.crowd.sharing(self.used.load(Relaxed), self.making.load(Relaxed)) {
                Some(why) => Next::Share(why.to_owned()),
                None => Next::Make(state.active, state.idle.era, One::of(&self.making)),
            },
        }
    }

    /// Notes what a server said over a connection of this era, unless another era has begun. Returns the era of that
    /// connection from now on.
    fn note(&self, era: u64, fitness: Fitness) -> Option<u64> {
        let mut state = self.state();
        if state.idle.era != era {
            return None;
        }
        if state.fitness.identity != fitness.identity {
            tracing::warn!(was = state.fitness.identity, now = fitness.identity, "another database server answers");
            // Earlier connections do not lead to this server.
            state.generation += 1;
            state.crowd = Crowd::default();
            state.idle.end();
            state.came_from = None;
        }
        (state.fitness, state.refused) = (fitness, None);
        state.advise();
        Some(state.idle.era)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Combines several refusals into one.
fn together(refusals: Vec<Refused>) -> Refused {
    let unfit = refusals.iter().any(|refused| matches!(refused, Refused::Unfit(_)));
    let denied = refusals.iter().any(|refused| matches!(refused, Refused::Denied(_)));
    let why = refusals.into_iter().map(Refused::why).collect::<Vec<_>>().join("; ");
    match (unfit, denied) {
        (true, _) => Refused::Unfit(why),
        (false, true) => Refused::Denied(why),
        (false, false) => Refused::Unreachable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::mysql::Flavor;

    fn server(identity: &str) -> Fitness {
        Fitness::plain(Flavor::MariaDb, identity)
    }

    fn pool() -> Pool {
        Pool::new(vec![], 1, Duration::from_secs(1), State::new(0, vec![], server("a")))
    }

    #[test]
    fn a_connection_to_the_server_of_before_is_not_used_again() {
        // Red without the comparison in Idle::keep.
        let mut idle = Idle { era: 7, links: vec!["waits"] };
        assert_eq!(idle.keep(7, "was in use"), None);
        assert_eq!(idle.end(), ["waits", "was in use"]);
        assert_eq!(idle.keep(7, "was in use all the time"), Some("was in use all the time"));
        assert_eq!(idle.keep(8, "made since"), None);
        assert_eq!(idle.links, ["made since"]);
    }

    #[test]
    fn who_tries_to_connect_is_no_connection() {
        // Red with taken places instead of `used`: if a server drops packets, some caller is always trying to connect.
        let pool = Arc::new(pool());
        let _tries = pool.spare().unwrap();
        assert_eq!((pool.usage().connected, pool.usage().waiting), (0, 1));
        let used = One::of(&pool.used);
        assert_eq!(pool.usage().connected, 1);
        drop(used);
        assert_eq!(pool.usage().connected, 0);
    }

    #[test]
    fn a_connection_that_tells_of_another_server_is_of_its_era() {
        // Red without the new era in the answer of note.
        let pool = pool();
        assert_eq!((pool.note(0, server("a")), pool.generation()), (Some(0), 0));
        assert_eq!((pool.note(0, server("b")), pool.generation()), (Some(1), 1), "it leads there");
        assert_eq!((pool.note(0, server("a")), pool.generation()), (None, 1), "one that was asked before does not");
        assert_eq!(pool.state().fitness.identity, "b");
    }

    #[test]
    fn connections_in_use_are_not_used_again_once_their_server_is_not_fit() {
        // Red without the next era in dismiss.
        let pool = pool();
        pool.suspect(0);
        assert_eq!(pool.state().idle.era, 0, "one that was lost says nothing of the others");
        pool.dismiss(0);
        pool.dismiss(0);
        assert_eq!(pool.state().idle.era, 1, "said once for all that were made then");
    }
}
