//! Where the server has no room for one more connection (`max_connections`, `MAX_USER_CONNECTIONS`): those that are there
//! work, and whoever finds none free waits for one of them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{One, Pool};

/// The server is not asked for another one again for so long, and then by one alone.
const AGAIN: Duration = Duration::from_millis(500);

/// For how long it is worth a warning.
const TOLD: Duration = Duration::from_secs(60);

/// When the server had no room, and what it said.
#[derive(Default)]
pub(super) struct Crowd(Option<(Instant, String)>);

impl Crowd {
    /// What it said, where one of those in use is waited for, or whether the one that is being made is let in.
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
    /// Notes that the server had no room for the one that was being made; `why` there is none where nobody else here has one, or
    /// makes one.
    pub(super) fn note_crowd(&self, why: String, made: One<'_>) -> Result<(), String> {
        drop(made);
        let mut state = self.state();
        let others = self.making.load(Relaxed) + self.used.load(Relaxed) + state.idle.links.len();
        if state.crowd.within(TOLD).is_none() {
            tracing::warn!(
                why,
                "the database server has no room for another connection: those that are there are shared"
            );
        }
        state.crowd = Crowd(Some((Instant::now(), why.clone())));
        drop(state);
        // It may have been the last that somebody could wait for.
        self.freed.notify_waiters();
        if others == 0 { Err(why) } else { Ok(()) }
    }

    /// Waits until a connection may be free, or the server may be asked again; `why` there is none where it is too late for that.
    pub(super) async fn until_free(&self, why: String, deadline: Instant) -> Result<(), String> {
        if Instant::now() >= deadline {
            return Err(why);
        }
        // It is looked at again either way: one that was closed rings for nobody.
        drop(timeout_at(deadline.min(Instant::now() + AGAIN), self.freed.notified()).await);
        Ok(())
    }

    /// What is wrong, as long as it is worth a warning.
    pub(in crate::mysql) fn shortage(&self) -> Option<String> {
        let state = self.state();
        let why = state.crowd.within(TOLD)?;
        Some(format!("the database server has no room for another connection, those that are there are shared: {why}"))
    }
}
