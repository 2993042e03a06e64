//! Rows that others hold locked for long: another node, or a transaction that hangs. A batch that waits for such a row
//! at the server occupies a connection, and a few such batches occupy all of them, while all other rows are free.
//!
//! So a batch waits at the server only for a while; then it gives its connection back and is retried until its time is
//! over. Once one batch has waited in vain, the others hardly wait: a batch whose rows are free is served as ever, and
//! the others are retried. One retried batch at a time waits as long as before, to find out when the row is free again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// For this long after a batch waited in vain, a row is taken to be held: longer than the longest pause.
const LASTS: Duration = Duration::from_secs(3);

/// The longest pause before a batch is retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a batch waits for a row at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As long as when no row is known to be held.
    Awhile,
    /// As briefly as the server can.
    Hardly,
}

/// Whether a row is known to be held.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// When a batch last waited in vain.
    seen: Mutex<Option<Instant>>,
    /// Whether a batch is waiting to find out whether the row is free again.
    scouted: AtomicBool,
}

impl Held {
    /// Returns how a batch waits that is sent `now`; `refused` says whether it was refused a row before.
    pub(crate) fn way(&self, refused: bool, now: Instant) -> Way<'_> {
        let lately = self.seen().is_some_and(|at| now.duration_since(at) < LASTS);
        let known = lately || self.scouted.load(SeqCst);
        let scout = known && refused && !self.scouted.swap(true, SeqCst);
        let wait = if known && !scout { Wait::Hardly } else { Wait::Awhile };
        Way { held: self, scout, wait }
    }

    fn seen(&self) -> MutexGuard<'_, Option<Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How one batch waits, for this attempt.
pub(crate) struct Way<'a> {
    held: &'a Held,
    scout: bool,
    /// How long it waits at the server.
    pub(crate) wait: Wait,
}

impl Way<'_> {
    /// Notes that the batch waited until `now` and did not get its row.
    pub(crate) fn was_in_vain(&self, now: Instant) {
        if self.wait == Wait::Awhile {
            *self.held.seen() = Some(now);
        }
    }
}

impl Drop for Way<'_> {
    fn drop(&mut self) {
        if self.scout {
            self.held.scouted.store(false, SeqCst);
        }
    }
}

/// The pause of a batch that was refused a row for the `refused`th time: longer each time, and randomised.
pub(crate) fn pause(refused: u32) -> Duration {
    let longest = Duration::from_millis(16 << refused.min(16)).min(LONGEST_PAUSE);
    longest.mul_f64((1.0 + chance()) / 2.0)
}

/// A random number from 0 to 1, so that two batches that collided differ.
pub(crate) fn chance() -> f64 {
    (RandomState::new().hash_one(0) % 1024) as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_row_is_known_to_be_held_one_waits_for_it_and_the_others_hardly() {
        // red without `scouted`, or without `seen`, in `way`.
        let (held, start) = (Held::default(), Instant::now());
        let at = |time: Duration| start + time;
        let just = |time: Duration| at(time) - Duration::from_millis(1);
        let (one, other) = (held.way(false, start), held.way(false, start));
        assert_eq!((one.wait, other.wait), (Wait::Awhile, Wait::Awhile), "nobody knows of anything");
        one.was_in_vain(start);
        assert_eq!(held.way(false, start).wait, Wait::Hardly, "who comes new");
        let scout = held.way(true, start);
        assert_eq!(
            (scout.wait, held.way(true, start).wait),
            (Wait::Awhile, Wait::Hardly),
            "one of those who come again"
        );
        assert_eq!(held.way(false, at(LASTS)).wait, Wait::Hardly, "the scout is not back");
        scout.was_in_vain(at(LASTS));
        drop(scout);
        assert_eq!(held.way(false, just(LASTS * 2)).wait, Wait::Hardly);
        assert_eq!(held.way(true, just(LASTS * 2)).wait, Wait::Awhile, "the next scout");
        assert_eq!(held.way(false, at(LASTS * 2)).wait, Wait::Awhile, "it is over");
    }

    #[test]
    fn who_hardly_waited_says_nothing_of_how_long_a_row_is_held() {
        // Red without the condition in `was_in_vain`: rows that many batches change in turn would always count as held.
        let (held, start) = (Held::default(), Instant::now());
        held.way(false, start).was_in_vain(start);
        held.way(false, start + LASTS / 2).was_in_vain(start + LASTS / 2);
        assert_eq!(held.way(false, start + LASTS).wait, Wait::Awhile);
    }

    #[test]
    fn pauses_grow_to_a_second() {
        for refused in 1..100 {
            let longest = Duration::from_millis(16 << refused.min(16)).min(LONGEST_PAUSE);
            assert!((longest / 2..=longest).contains(&pause(refused)), "{refused}");
        }
        assert!(pause(1) <= Duration::from_millis(32) && LONGEST_PAUSE * 2 < LASTS);
    }
}
