//! Callers at the door, and what the log tells about them: nobody can fill it.

use app::tally::Label as _;
use rules::secret::Handle;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

app::labels! {
    /// Why a caller at the door is no worker.
    Turned {
        /// It said nothing in time.
        Silent = "silent",
        /// Too many callers stand at the door.
        Crowd = "crowd",
        /// No TLS as workers speak it.
        Handshake = "handshake",
        /// A token that enrolls nobody.
        Token = "token",
        /// It speaks no version that the server speaks.
        Version = "version",
        /// A key that is not enrolled, or was revoked.
        Unknown = "unknown",
        /// What it said is not of the protocol, or broke off.
        Broken = "broken",
        /// The database could not say whether its key is enrolled.
        Away = "away",
    }
}

/// Callers that were no workers, counted by reason. The first, second, fourth and so on of each are logged: an operator
/// whose listener others reach, or is behind a proxy that speaks TLS, finds that in the log, and nobody can fill it.
#[derive(Default)]
pub struct Strangers([AtomicU64; Turned::ALL.len()]);

impl Strangers {
    /// Counts and logs one more.
    pub fn another(&self, from: SocketAddr, (turned, why): (Turned, &str)) {
        let so_far = self.count(turned);
        match turned {
            // Somebody waits for their worker, or guesses.
            Turned::Token | Turned::Version if is_told(so_far) => {
                tracing::warn!(%from, why, so_far, "a hash worker was not enrolled")
            }
            Turned::Away if is_told(so_far) => tracing::warn!(%from, why, so_far, "cannot serve a hash worker"),
            _ if so_far.is_power_of_two() => {
                tracing::info!(%from, why, so_far, "refused a connection that is not from a hash worker");
            }
            _ => tracing::debug!(%from, why, so_far, "refused a connection that is not from a hash worker"),
        }
    }

    /// Counts one more that is logged elsewhere; returns how many there were.
    pub fn count(&self, turned: Turned) -> u64 {
        self.0[turned.place()].fetch_add(1, Relaxed) + 1
    }

    /// Returns how many there were, by reason.
    pub fn sums(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Turned::ALL.iter().zip(&self.0).map(|(turned, count)| (turned.name(), count.load(Relaxed)))
    }
}

/// That many short conversations of one worker in a row are all logged, and after that the 16th, the 32nd and so on.
const ALL_TOLD: u64 = 8;
/// A conversation that lasted this long did something: it is logged, and so are the next ones.
const LONG: Duration = Duration::from_secs(60);

/// Conversations with enrolled workers, by key: how many in a row were short. A worker that is quarantined, or breaks
/// the protocol, may dial again as often as it likes. Only keys that somebody enrolled are here.
#[derive(Default)]
pub struct Callers(Mutex<HashMap<Handle, u64>>);

impl Callers {
    /// Counts a conversation that begins; returns how many in a row there are with it.
    pub fn begins(&self, key: Handle) -> u64 {
        let mut in_a_row = self.in_a_row();
        let so_far = in_a_row.entry(key).or_default();
        *so_far += 1;
        *so_far
    }

    /// Ends a conversation that was that many in a row, after so long; returns whether it is to be logged.
    pub fn ended(&self, key: Handle, so_far: u64, after: Duration) -> bool {
        if after < LONG {
            return is_told(so_far);
        }
        self.in_a_row().remove(&key);
        true
    }

    fn in_a_row(&self) -> MutexGuard<'_, HashMap<Handle, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a conversation is logged that was that many in a row.
pub fn is_told(so_far: u64) -> bool {
    so_far <= ALL_TOLD || so_far.is_power_of_two()
}

/// Explains for people how a worker's connection failed.
pub fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => "the connection was lost: the worker was killed, or the network failed".into(),
        io::ErrorKind::TimedOut => "it stopped responding: its machine or the network hangs".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dials_again_and_again_does_not_fill_the_log() {
        let (callers, key) = (Callers::default(), |number| Handle([number; 32]));
        let call = |number, after| callers.ended(key(number), callers.begins(key(number)), Duration::from_secs(after));
        // Red without `is_told`.
        assert_eq!((0..2637).filter(|_| call(1, 0)).count(), 8 + 8, "as far as the 2048th");
        assert!(call(2, 0), "another one is told of all the same");
        // Red without `remove`: a worker that was wrong once would hardly ever be logged again.
        assert!(call(1, 60) && call(1, 0));
    }

    #[test]
    fn strangers_are_counted_by_why() {
        // Red where all have one count.
        let (strangers, from) = (Strangers::default(), SocketAddr::from(([192, 0, 2, 1], 5)));
        for (turned, count) in [(Turned::Token, 3), (Turned::Broken, 1)] {
            (0..count).for_each(|_| strangers.another(from, (turned, "why")));
        }
        let counted: Vec<_> = strangers.sums().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("token", 3), ("broken", 1)]);
    }

    #[test]
    fn a_failure_is_told_in_words() {
        // Red without `explained`: rustls names an address of its documentation.
        let killed = io::Error::new(io::ErrorKind::UnexpectedEof, "peer closed connection: https://docs.rs/rustls");
        assert!(explained(&killed).contains("killed"), "{}", explained(&killed));
        assert!(explained(&io::ErrorKind::TimedOut.into()).contains("stopped responding"));
        let bad = io::Error::new(io::ErrorKind::InvalidData, "an unexpected message came");
        assert_eq!(explained(&bad), "an unexpected message came");
    }
}
