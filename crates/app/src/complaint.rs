//! What is said in the log: the same trouble of background work once, and few of many lines that requests make.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the background said last about each subject, which is the sentence that it says: a database that takes no
/// writes for long, while it is being moved, is reported once for each of them. What goes well elsewhere makes
/// nothing new of it.
#[derive(Default)]
pub struct Complaints(Vec<(&'static str, String)>);

impl Complaints {
    /// Returns what was done. If it failed, says so unless that was said last; if not, the trouble is over.
    pub fn hear<T, E: Display>(&mut self, what: &'static str, done: Result<T, E>) -> Option<T> {
        match done {
            Ok(done) => {
                self.over(what);
                Some(done)
            }
            Err(why) => {
                self.tell(&why, what);
                None
            }
        }
    }

    /// Says what is wrong, unless that was said last about it.
    pub fn tell(&mut self, why: &dyn Display, what: &'static str) {
        if let Some(why) = self.anew(why, what) {
            tracing::warn!(fault = why, "{what}");
        }
    }

    /// The same about what only an operator can put right.
    pub fn accuse(&mut self, why: &dyn Display, what: &'static str) {
        if let Some(why) = self.anew(why, what) {
            tracing::error!(fault = why, "{what}");
        }
    }

    fn anew(&mut self, why: &dyn Display, what: &'static str) -> Option<&str> {
        let why = why.to_string();
        if self.0.iter().any(|(about, said)| *about == what && *said == why) {
            return None;
        }
        self.over(what);
        self.0.push((what, why));
        self.0.last().map(|(_, why)| why.as_str())
    }

    /// Notes that this is well again.
    pub fn over(&mut self, what: &'static str) {
        self.0.retain(|(about, _)| *about != what);
    }

    /// Notes that all is well, or another node's matter.
    pub fn all_over(&mut self) {
        self.0.clear();
    }
}

/// The most lines of one kind in a second. More of them would say no more about what is wrong.
const LINES: u32 = 10;

/// Decides which lines of one kind are written. There is one for each kind, as this process has one log.
pub struct Sparing(Mutex<Recent>);

impl Sparing {
    /// For a kind of which nothing was written yet.
    pub const fn unused() -> Self {
        Sparing(Mutex::new(Recent { since: None, written: 0, left_out: 0 }))
    }

    /// Returns how many lines were left out since the previous one; `None` if there is no room for one more.
    pub fn room(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).room(Instant::now())
    }
}

/// Counts the lines of one kind that were written recently.
struct Recent {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Recent {
    fn room(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.written) = (Some(now), 0);
        }
        if self.written == LINES {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_is_a_few_lines_and_the_number_of_the_others() {
        let mut lines = Recent { since: None, written: 0, left_out: 0 };
        let began = Instant::now();
        let written = (0..1_000).filter(|at| lines.room(began + Duration::from_micros(*at)).is_some());
        assert_eq!(written.count(), LINES as usize);
        let later = began + Duration::from_secs(1);
        assert_eq!(lines.room(later), Some(1_000 - u64::from(LINES)));
        assert_eq!(lines.room(later), Some(0), "they are told once");
    }
}
