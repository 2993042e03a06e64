//! Batches take only some of the places, so that reads go on while commits hang, for example because they wait for a
//! replica that is away, or for space on a disk.
//!
//! A commit that was given up here goes on waiting at the server, and keeps its connection there. It also keeps its
//! turn until the server is done with it: a server has only so many connections for all its clients.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use super::{CLOSED, Lease, One, Pool};

/// The pause between checks whether an abandoned connection has ended at the server, at first and in the end.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// How long the server may take to answer such a check.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many of `size` places batches may take: a quarter, at least one, is left to reads.
pub(super) fn of(size: u32) -> usize {
    (size - (size / 4).max(1)).max(1) as usize
}

/// The right of a batch to a place.
pub(super) struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    pool: Arc<Pool>,
    /// The connection's id at the server, and its era here.
    thread: u32,
    era: u64,
}

impl Turn {
    /// Ends the turn of a batch, if there is one: the connection is clean again, or was closed properly.
    pub(super) fn is_over(turn: Option<Turn>) {
        if let Some(mut turn) = turn {
            turn.permit = None;
        }
    }
}

impl Drop for Turn {
    #[allow(clippy::disallowed_methods, reason = "it ends with the batch that hangs, or with the server")]
    fn drop(&mut self) {
        let (Some(permit), Ok(runtime)) = (self.permit.take(), Handle::try_current()) else { return };
        let (pool, thread, era) = (Arc::clone(&self.pool), self.thread, self.era);
        runtime.spawn(async move {
            pool.until_ended(thread, era).await;
            drop(permit);
        });
    }
}

impl Pool {
    /// Returns why no batch can be written: as many batches as may run were given up here and hang at the server.
    pub(in crate::mysql) fn is_free_for_batches(&self) -> Result<(), String> {
        match self.hanging.load(Relaxed) {
            hanging if hanging >= of(self.size) => {
                Err(format!("{hanging} abandoned batches still hang at the database server"))
            }
            _ => Ok(()),
        }
    }

    /// Returns a connection for a batch by `deadline`, or the reason why there is none.
    pub(in crate::mysql) async fn lease_to_write(self: &Arc<Self>, deadline: Instant) -> Result<Lease<'_>, String> {
        self.is_free_for_batches()?;
        let waiter = One::of(&self.waiting);
        let permit = timeout_at(deadline, Arc::clone(&self.writers).acquire_owned()).await;
        drop(waiter);
        let permit = permit.map_err(|_| "no connection to the database became free in time".to_owned())?;
        let permit = permit.map_err(|_| CLOSED.to_owned())?;
        let mut lease = self.lease(deadline).await?;
        let (thread, era) = (lease.link.conn.id(), lease.link.era);
        lease.turn = Some(Turn { permit: Some(permit), pool: Arc::clone(self), thread, era });
        Ok(lease)
    }

    /// Waits until the server does nothing any more for a connection that was closed here, or another server is used.
    async fn until_ended(self: &Arc<Self>, thread: u32, era: u64) {
        let (began, mut pause, mut hangs) = (Instant::now(), LOOKS.0, None);
        while self.state().idle.era == era && !self.places.is_closed() && self.is_at_server(thread).await {
            if hangs.is_none() && began.elapsed() > self.patience {
                hangs = Some(One::of(&self.hanging));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
        }
    }

    /// Whether the server still works for a connection; assumed if it does not answer. A sleeping connection holds
    /// nothing up: its end may have got lost, or it is another one, since a restarted server counts ids anew.
    async fn is_at_server(self: &Arc<Self>, thread: u32) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let Ok(mut lease) = self.lease(deadline).await else { return true };
        let era = lease.link.era;
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {thread} AND command <> 'Sleep' AND id <> CONNECTION_ID()"
        );
        match self.hear(era, deadline, lease.link.conn.query_first::<i64, _>(sql)).await {
            Some(Ok(count)) => {
                lease.keep();
                count.is_some_and(|count| count > 0)
            }
            // The server cannot be asked for that.
            Some(Err(_)) => false,
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_have_a_place_wherever_there_are_two() {
        assert_eq!([1, 2, 3, 4, 8, 20].map(of), [1, 1, 2, 3, 6, 15]);
    }
}
