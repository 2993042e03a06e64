//! How much memory a thread holds, and how much of that it has needed lately.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Less than this is not worth giving back by itself, in KiB: a huge page, which cannot be freed in part.
const WORTH: u64 = 2048;

/// The memory of one thread.
#[derive(Default)]
pub(crate) struct Holding {
    /// In KiB.
    pub(crate) kib: u64,
    /// What was needed, in KiB, and when last: the most first. Each entry needed less than the one before, later.
    needs: VecDeque<(u64, Instant)>,
}

impl Holding {
    /// This many KiB were needed until now.
    pub(crate) fn used(&mut self, kib: u64, now: Instant) {
        while self.needs.back().is_some_and(|(need, _)| *need <= kib) {
            self.needs.pop_back();
        }
        self.needs.push_back((kib, now));
    }

    /// Nothing is needed any more.
    pub(crate) fn unused(&mut self) {
        self.needs.clear();
    }

    /// Nothing is held any more.
    pub(crate) fn gone(&mut self) {
        *self = Holding::default();
    }

    /// How much to keep, if clearly more is held than was needed within the last `idle`.
    pub(crate) fn surplus(&mut self, now: Instant, idle: Duration) -> Option<u64> {
        while self.needs.front().is_some_and(|(_, last)| now.saturating_duration_since(*last) >= idle) {
            self.needs.pop_front();
        }
        let keep = self.needs.front().map_or(0, |(need, _)| *need);
        let clearly = if keep == 0 { self.kib > 0 } else { self.kib >= keep + WORTH };
        clearly.then_some(keep)
    }

    /// How long until a surplus is worth asking for again, if nothing else is needed meanwhile.
    pub(crate) fn patience(&self, now: Instant, idle: Duration) -> Option<Duration> {
        let (_, last) = self.needs.front().filter(|_| self.kib > 0)?;
        Some(idle.saturating_sub(now.saturating_duration_since(*last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(10);

    #[test]
    fn what_was_not_needed_for_a_while_is_surplus_whatever_else_was_needed() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut holding = Holding { kib: 100_000, ..Holding::default() };
        holding.used(100_000, at(0));
        holding.used(30_000, at(3));
        for second in 4..10 {
            holding.used(20_000, at(second));
            assert_eq!(holding.surplus(at(second), IDLE), None);
            assert_eq!(holding.patience(at(second), IDLE), Some(at(10) - at(second)));
        }
        assert_eq!(holding.surplus(at(10), IDLE), Some(30_000));
        holding.kib = 30_000;
        assert_eq!(holding.surplus(at(10), IDLE), None);
        assert_eq!(holding.patience(at(10), IDLE), Some(Duration::from_secs(3)));
        assert_eq!(holding.surplus(at(13), IDLE), Some(20_000));
        holding.kib = 20_000 + WORTH - 1;
        assert_eq!(holding.surplus(at(13), IDLE), None, "a huge page is not cut");
        assert_eq!(holding.surplus(at(19), IDLE), Some(0));
        assert!(holding.needs.is_empty());
    }

    #[test]
    fn jobs_that_need_nothing_keep_nothing() {
        let start = Instant::now();
        let mut holding = Holding { kib: 5, ..Holding::default() };
        holding.used(5, start);
        holding.used(0, start + IDLE);
        assert_eq!(holding.surplus(start + IDLE, IDLE), Some(0));
    }
}
