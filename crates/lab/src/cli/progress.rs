//! The progress: on a terminal one line that is rewritten in place, elsewhere a line now and then.

use load::cli::{Lines, columns, is_seen};
use std::cell::RefCell;
use std::io::{Write as _, stderr};
use std::time::Instant;

/// The line of progress.
pub struct Progress {
    head: String,
    begun: Instant,
    /// Whether somebody can see it.
    shown: bool,
    /// For a log, if nobody can.
    lines: RefCell<Lines>,
}

impl Progress {
    /// Creates the line for the experiment of this name, and its number among all of them.
    pub fn of(name: &str, (number, all): (usize, usize)) -> Progress {
        let head = if all > 1 { format!("{number} of {all}  {name}") } else { name.to_owned() };
        Progress { head, begun: Instant::now(), shown: is_seen(), lines: RefCell::default() }
    }

    /// Shows what is being done.
    pub fn show(&self, what: &str) {
        let line = line(&self.head, self.begun.elapsed().as_secs(), what);
        if self.shown {
            let line: String = line.chars().take(columns() - 1).collect();
            // Failing to show progress is no reason to end the run.
            let _ = write!(stderr(), "\r\x1b[K{line}");
        } else {
            self.lines.borrow_mut().say(&line);
        }
    }

    /// Clears the line.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn line(head: &str, seconds: u64, what: &str) -> String {
    format!("{head}  {}:{:02}  {what}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_for_how_long_and_what() {
        let head = Progress::of("lanes", (3, 13)).head;
        assert_eq!(line(&head, 65, "1 thread, round 2 of 5"), "3 of 13  lanes  1:05  1 thread, round 2 of 5");
        assert_eq!(Progress::of("lanes", (1, 1)).head, "lanes");
    }
}
