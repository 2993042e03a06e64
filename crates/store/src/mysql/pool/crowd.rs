//! Handles a server without room for one more connection (`max_connections`, `MAX_USER_CONNECTIONS`): the existing
//! connections keep working, and a caller that finds none free waits for one of them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{One, Pool};

/// For this long the server is not asked for another connection, and then by one caller only.
const AGAIN: Duration = Duration::from_millis(500);

/// How long this is worth a warning.
const TOLD: Duration = Duration::from_secs(60);

/// When the server had no room, and what it said.
#[derive(Default)]
pub(super) struct Crowd(Option<(Instant, String)>);

impl Crowd {
    /// Returns what the server said, if the caller should wait for a connection in use or one being made.
    pub(super) fn sharing(&self, used: usize, making: usize) -> Option<&str> {
        match (used, making) {
            (0, 0) => None,
            (_, 0) => self.within(AGAIN),
            _ => self.within(TOLD),
        }
    }

    fn within(&self, limit: Duration) -> Option<&str> {
        self.0.as_ref().filter(|(at, _)| at.elapsed() < limit).map(|(_, why)| why.as_str())
    }
}

impl Pool {
    /// Notes that the server had no room for a new connection. Returns the reason if no other connection exists here or
    /// is being made.
    pub(super) fn note_crowd(&self, why: String, made: One<'_>) -> Result<(), String> {
        drop(made);
        let mut state = self.state();
        let others = self.making.load(Relaxed) + self.used.load(Relaxed) + state.idle.links.len();
        if state.crowd.within(TOLD).is_none() {
            tracing::warn!(why, "the database server accepts no more connections: requests share the existing ones");
        }
        state.crowd = Crowd(Some((Instant::now(), why.clone())));
        drop(state);
        // It may have been the last connection that a caller could wait for.
        self.freed.notify_waiters();
        if others == 0 { Err(why) } else { Ok(()) }
    }

    /// Waits until a connection may be free or the server may be asked again; returns `why` if it is too late for that.
    pub(super) async fn until_free(&self, why: String, deadline: Instant) -> Result<(), String> {
        if Instant::now() >= deadline {
            return Err(why);
        }
        // The caller looks again either way, because a connection that is closed notifies nobody.
        drop(timeout_at(deadline.min(Instant::now() + AGAIN), self.freed.notified()).await);
        Ok(())
    }

    /// The shortage, as long as it is worth a warning.
    pub(in crate::mysql) fn shortage(&self) -> Option<String> {
        let state = self.state();
        let why = state.crowd.within(TOLD)?;
        Some(format!("the database server accepts no more connections, requests share the existing ones: {why}"))
    }
}
