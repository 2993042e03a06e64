//! Finds out that the server is gone, and which server is used from then on.
//!
//! Tasks of their own do both, one at a time, and no request's deadline ends them; a request waits for their result for
//! as long as it has time.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::runtime::Handle;
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use super::choice::first_fit;
use super::crowd::Crowd;
use super::home::Home;
use super::{CLOSED, LATE, Place, Pool, State};
use crate::caught::caught;
use crate::mysql::connect::{Link, Refused};
use crate::mysql::fitness::Fitness;

/// The result of a search for another server, once it is known: it may be used, or the reason why none may.
pub(super) type Search = watch::Receiver<Option<Result<(), String>>>;

/// The sender of that result.
pub(super) type Tell = watch::Sender<Option<Result<(), String>>>;

impl State {
    /// Begins a search: from now on every caller that needs a connection waits for its result.
    pub(super) fn begin_search(&mut self) -> Tell {
        let (tell, search) = watch::channel(None);
        self.search = Some(search);
        tell
    }
}

/// Marks that a search is running, until dropped.
struct Searching(Arc<Pool>);

impl Drop for Searching {
    fn drop(&mut self) {
        self.0.state().search = None;
    }
}

impl Pool {
    /// Waits for `answer` over a connection of `era`. Returns `None` if it does not come by `deadline`, if the server
    /// is given up before, or if the driver panics. A long wait triggers a check that the server is still there.
    pub(in crate::mysql) async fn hear<T>(
        self: &Arc<Self>,
        era: u64,
        deadline: Instant,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let mut answer = pin!(self.unless_given_up(era, caught(answer)));
        loop {
            let long = Instant::now() + self.patience;
            match timeout_at(long.min(deadline), answer.as_mut()).await {
                Ok(answer) => {
                    return answer?
                        .inspect_err(|why| tracing::error!(why, "a connection to the database is closed"))
                        .ok();
                }
                Err(_) if deadline <= long => return None,
                Err(_) => self.doubt(era),
            }
        }
    }

    /// Waits for `answer`, unless the server of `era` is given up before.
    pub(super) async fn unless_given_up<T>(&self, era: u64, answer: impl Future<Output = T>) -> Option<T> {
        let mut eras = self.given_up.subscribe();
        let given_up = pin!(eras.wait_for(|since| era < *since));
        match select(pin!(answer), given_up).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    /// Checks that the server of `era`, which owes a caller an answer, is still there. Uses a connection beyond the
    /// pool's limit, since none of the pool's connections may be free.
    #[allow(clippy::disallowed_methods, reason = "one at a time, and it ends: connecting has a deadline")]
    pub(super) fn doubt(self: &Arc<Self>, era: u64) {
        let node = {
            let mut state = self.state();
            if self.nodes.len() < 2 || state.doubted || state.search.is_some() || state.idle.era != era {
                return;
            }
            state.doubted = true;
            state.active
        };
        let pool = Arc::clone(self);
        Handle::current().spawn(async move {
            let asked = Instant::now();
            let answer = pool.nodes[node].connect(era).await;
            pool.state().doubted = false;
            match answer {
                Ok((_, fitness)) => drop(pool.note(era, fitness)),
                Err(Refused::Crowded(_)) => {}
                // The next caller is told why there is none.
                Err(refused) => drop(pool.search(era, refused, asked)),
            }
        });
    }

    /// Starts a search for the server to use from now on, unless a search is running or has ended since `era`; the
    /// server of `era` refused a connection that was requested at `asked`. Otherwise returns why no search is started.
    pub(super) fn search(self: &Arc<Self>, era: u64, refused: Refused, asked: Instant) -> Result<(), String> {
        if self.nodes.len() == 1 {
            // There is no other server, and the other connections to this one may be well.
            return Err(self.note_refusal(refused.why()));
        }
        let tell = {
            let mut state = self.state();
            if state.search.is_some() || state.idle.era != era {
                return Ok(());
            }
            state.lately_refused()?;
            state.begin_search()
        };
        self.go_looking(tell, |pool| async move { pool.look(refused, asked).await });
        Ok(())
    }

    /// Runs the search; the waiting callers get its result.
    #[allow(clippy::disallowed_methods, reason = "one at a time; each caller waits for it, and none of them owns it")]
    pub(super) fn go_looking<L>(self: &Arc<Self>, tell: Tell, look: impl FnOnce(Arc<Pool>) -> L)
    where
        L: Future<Output = Result<(), String>> + Send + 'static,
    {
        let searching = Searching(Arc::clone(self));
        let look = look(Arc::clone(self));
        Handle::current().spawn(async move {
            let found = look.await;
            drop(searching);
            tell.send_replace(Some(found));
        });
    }

    /// Returns a place, once it is known which server is used.
    pub(super) async fn found(&self, mut search: Search, deadline: Instant) -> Result<Place, String> {
        let found = timeout_at(deadline, search.wait_for(Option::is_some)).await;
        let found = found.map_err(|_| "no other database server was found in time".to_owned())?;
        match found.ok().and_then(|found| found.clone()) {
            Some(found) => found?,
            None => return Err("the search for another database server was stopped".to_owned()),
        }
        let place = timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await;
        place.map_err(|_| LATE.to_owned())?.map_err(|_| CLOSED.to_owned())
    }

    async fn look(&self, refused: Refused, asked: Instant) -> Result<(), String> {
        // Callers that still use the old server finish there first.
        let _everything = self.everything(asked).await?;
        let (era, ended) = {
            let mut state = self.state();
            (state.idle.era + 1, std::mem::take(&mut state.idle.links))
        };
        drop(ended);
        match first_fit(&self.nodes, self.in_turn(&refused), era).await {
            Ok((at, found)) => self.enter(at, found, None),
            Err(refused) => Err(self.note_refusal(refused.why())),
        }
    }

    /// Waits until all places are free. While the server answers anybody, all callers keep their full time; once it has
    /// been silent for a while, nobody waits for it any more.
    async fn everything(&self, mut since: Instant) -> Result<SemaphorePermit<'_>, String> {
        let mut everything = pin!(self.places.acquire_many(self.size));
        loop {
            match timeout_at(since + self.patience, everything.as_mut()).await {
                Ok(everything) => return everything.map_err(|_| CLOSED.to_owned()),
                Err(_) => since = self.heard_after(since).unwrap_or_else(|| self.give_up()),
            }
        }
    }

    fn heard_after(&self, since: Instant) -> Option<Instant> {
        Some(self.state().heard).filter(|heard| *heard > since)
    }

    /// Ends all waiting for answers of the server. Returns the time of that.
    fn give_up(&self) -> Instant {
        let (era, ended) = {
            let mut state = self.state();
            let ended = state.idle.end();
            (state.idle.era, ended)
        };
        self.given_up.send_replace(era);
        drop(ended);
        Instant::now()
    }

    /// The order in which the servers are asked. One that was not reached is asked once more, now that nothing keeps it
    /// busy: changing to another is a loss if commits may be missing there. A server that is not fit comes last.
    fn in_turn(&self, refused: &Refused) -> impl Iterator<Item = usize> + use<> {
        let (active, count) = (self.state().active, self.nodes.len());
        let from = usize::from(matches!(refused, Refused::Unfit(_)));
        (from..from + count).map(move |step| (active + step) % count)
    }

    fn note_refusal(&self, why: String) -> String {
        self.state().refused = Some((Instant::now(), why.clone()));
        why
    }

    /// Uses this server from now on; `came_from` is the previous one, if nothing can have been lost in the change.
    pub(super) fn enter(
        &self,
        at: usize,
        (link, fitness): (Link, Fitness),
        came_from: Option<String>,
    ) -> Result<(), String> {
        let mut state = self.state();
        if self.places.is_closed() {
            return Err(CLOSED.to_owned());
        }
        if state.fitness.identity != fitness.identity || state.active != at {
            state.generation += 1;
        }
        if state.active != at {
            state.moves += 1;
            let (from, to) = (&self.nodes[state.active].host, &self.nodes[at].host);
            tracing::warn!(%from, %to, "switched to another database server");
            state.crowd = Crowd::default();
        }
        (state.active, state.fitness, state.refused) = (at, fitness, None);
        state.advise();
        (state.home, state.came_from) = (Home::default(), came_from);
        state.idle = super::Idle { era: link.era, links: vec![link] };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::*;
    use crate::dialect::mysql::Flavor;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn pool() -> Arc<Pool> {
        Arc::new(Pool::new(vec![], 2, PATIENCE, State::new(0, vec![], Fitness::plain(Flavor::MariaDb, "a"))))
    }

    /// A request that is never answered, and holds a place for as long as it waits.
    async fn wait(pool: Arc<Pool>, era: u64, time: Duration) -> Option<()> {
        let _place = Arc::clone(&pool.places).acquire_owned().await.unwrap();
        pool.hear(era, Instant::now() + time, pending()).await
    }

    #[tokio::test]
    async fn nobody_waits_for_a_server_that_is_silent_while_another_is_looked_for() {
        // Red without give_up in everything, or without the comparison in unless_given_up.
        let pool = pool();
        let began = Instant::now();
        let (answer, everything) =
            tokio::join!(wait(Arc::clone(&pool), 0, Duration::from_secs(60)), pool.everything(began));
        drop(everything.unwrap());
        assert_eq!(answer, None);
        assert!((PATIENCE..Duration::from_secs(30)).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert_eq!(pool.state().idle.era, 1, "what was in use is not used again");
        assert_eq!(pool.unless_given_up(1, async { 7 }).await, Some(7), "who asks the next server waits for it");
    }

    #[tokio::test]
    async fn everybody_has_their_time_at_a_server_that_says_something() {
        // Red without heard_after in everything.
        let pool = pool();
        let began = Instant::now();
        let talking = async {
            while began.elapsed() < 6 * PATIENCE {
                pool.state().heard = Instant::now();
                tokio::time::sleep(PATIENCE / 20).await;
            }
        };
        let waiting = wait(Arc::clone(&pool), 0, 5 * PATIENCE);
        let (answer, everything, ()) = tokio::join!(waiting, pool.everything(began), talking);
        drop(everything.unwrap());
        assert_eq!((answer, pool.state().idle.era), (None, 0));
    }

    #[tokio::test]
    async fn who_waits_for_a_search_waits_no_longer_than_there_is_time_and_is_told_what_came_of_it() {
        let pool = pool();
        let (tell, search) = watch::channel(None);
        let late = pool.found(search.clone(), Instant::now() + PATIENCE).await;
        assert!(late.is_err_and(|why| why.contains("was found in time")));
        let (refused, found) = (pool.found(search.clone(), Instant::now() + Duration::from_secs(60)), async {
            tell.send_replace(Some(Err("no server".to_owned())));
        });
        assert_eq!(tokio::join!(refused, found).0.err(), Some("no server".to_owned()));
        tell.send_replace(Some(Ok(())));
        assert!(pool.found(search.clone(), Instant::now() + PATIENCE).await.is_ok());
        tell.send_replace(None);
        drop(tell);
        assert!(pool.found(search, Instant::now() + PATIENCE).await.is_err(), "it was stopped");
    }
}
