//! Rows that others hold for long: another node, a transaction that hangs. Whoever waits for one at the server keeps a connection,
//! and a few who do keep all of them, while everybody else's rows are free.
//!
//! So a batch waits there for a while only; then it gives its connection back, and comes again until its time is over. Once
//! one has waited in vain, the others hardly wait: who finds its rows free is served as ever, and who does not comes again.
//! Of those one at a time waits as before, which tells when it is over.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// For so long after somebody waited in vain a row is taken to be held: longer than the longest pause.
const LASTS: Duration = Duration::from_secs(3);

/// The longest pause before a batch comes again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a batch waits for a row at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As long as one does who knows of nothing.
    Awhile,
    /// As briefly as the server can.
    Hardly,
}

/// Whether a row is known to be held.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// When somebody last waited in vain.
    seen: Mutex<Option<Instant>>,
    /// Whether one waits to see whether it is over.
    scouted: AtomicBool,
}

impl Held {
    /// How a batch waits that is sent `now`, which was `refused` before or not.
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

/// How one batch waits, this time.
pub(crate) struct Way<'a> {
    held: &'a Held,
    scout: bool,
    /// How long at the server.
    pub(crate) wait: Wait,
}

impl Way<'_> {
    /// It waited until `now`, and did not get its row.
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

/// How long a batch pauses that was refused a row for the so manieth time: longer each time, and never the same for two.
pub(crate) fn pause(refused: u32) -> Duration {
    let longest = Duration::from_millis(16 << refused.min(16)).min(LONGEST_PAUSE);
    longest.mul_f64((1.0 + chance()) / 2.0)
}

/// From 0 to 1, and never the same for two that met.
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
        // red without the condition in `was_in_vain`: rows that many change in turn would be taken to be held for ever.
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
