//! Shows how far a move is: a bar on a terminal, a line now and then elsewhere. Both on standard error.

use std::io::{Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::moving::Step;

/// The pause between two updates of the bar, and between two lines.
const BLINK: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(5);
/// The most cells of the bar; a narrow terminal has a shorter bar, or none, so that the figures fit.
const CELLS: u64 = 24;
/// The fewest cells.
const FEW: u64 = 4;
/// A row takes about this many times longer to copy than to compare.
const DEARER: u64 = 2;

/// The display.
pub struct Bar {
    terminal: bool,
    state: Mutex<State>,
}

struct State {
    total: u64,
    /// The rows that were checked, during the check before anything is done.
    checked: Option<u64>,
    copied: u64,
    /// How many of these this process copied.
    here: u64,
    compared: u64,
    began: Instant,
    /// When the comparison began.
    comparing: Option<Instant>,
    shown: Instant,
}

impl Bar {
    /// Shows nothing yet.
    pub fn new() -> Self {
        let now = Instant::now();
        let state =
            State { total: 0, checked: None, copied: 0, here: 0, compared: 0, began: now, comparing: None, shown: now };
        Bar { terminal: load::cli::is_seen(), state: Mutex::new(state) }
    }

    /// Takes in a step, and shows the progress when it is time to.
    pub fn tell(&self, step: Step) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match step {
            Step::Checking(rows) => (state.total, state.checked, state.began) = (rows, Some(0), Instant::now()),
            Step::Checked(rows) => *state.checked.get_or_insert(0) += rows,
            Step::Counted(rows) => (state.total, state.began) = (rows, Instant::now()),
            Step::Found(rows) => state.copied += rows,
            Step::Copied(rows) => {
                state.copied += rows;
                state.here += rows;
            }
            Step::Comparing => state.comparing = Some(Instant::now()),
            Step::Compared(rows) => state.compared += rows,
        }
        if state.shown.elapsed() >= if self.terminal { BLINK } else { LINE } {
            state.shown = Instant::now();
            let line = state.line(if self.terminal { load::cli::columns() - 1 } else { usize::MAX });
            let mut out = stderr().lock();
            // A failure to show it is no reason to stop the move.
            drop(if self.terminal { write!(out, "\r{line}\x1b[K") } else { writeln!(out, "{line}") });
            drop(out.flush());
        }
    }

    /// Clears the line for the next output.
    pub fn end(&self) {
        if self.terminal {
            drop(write!(stderr(), "\r\x1b[K"));
        }
    }
}

impl State {
    /// Returns what fits into `room` columns.
    fn line(&self, room: usize) -> String {
        let (what, rows, since, done) = match (self.checked, self.comparing) {
            (Some(checked), _) => ("checking ", checked, self.began, checked),
            (None, None) => ("copying  ", self.copied, self.began, self.here),
            (None, Some(since)) => ("comparing", self.compared, since, self.compared),
        };
        let seconds = since.elapsed().as_secs_f64().max(0.001);
        let rate = done as f64 / seconds;
        // Work of the other kind is estimated from the rate of this one.
        let (all, behind, each) = match (self.checked, self.comparing) {
            (Some(checked), _) => (self.total, checked, 1.0),
            (None, comparing) => {
                let each = if comparing.is_some() { 1.0 } else { DEARER as f64 };
                (self.total * (DEARER + 1), self.copied * DEARER + self.compared, each)
            }
        };
        let behind = behind.min(all);
        let left = if rate > 0.0 { time((all - behind) as f64 / (rate * each)) } else { "-".to_owned() };
        let percent = (100 * behind).checked_div(all).unwrap_or(100);
        let (rows, total, rate) = (grouped(rows), grouped(self.total), grouped(rate as u64));
        let said = format!("{percent:>3} %  {rows} of {total} rows, {rate}/s, {left} left");
        let cells = (room.saturating_sub(what.len() + said.len() + 4) as u64).min(CELLS);
        if cells < FEW {
            return said.chars().take(room).collect();
        }
        let full = (cells * behind).checked_div(all).unwrap_or(cells);
        let bar: String = (0..cells).map(|cell| if cell < full { '#' } else { '-' }).collect();
        format!("{what} [{bar}] {said}")
    }
}

/// Formats seconds as minutes and seconds.
fn time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Formats a number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let many = digits.len();
    let comma = |(at, digit): (usize, char)| {
        let comma = at > 0 && (many - at).is_multiple_of(3);
        [comma.then_some(','), Some(digit)]
    };
    digits.chars().enumerate().flat_map(comma).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_what_is_left() {
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let now = Instant::now();
        let state = |copied, here, compared, comparing| State {
            total: 3_000,
            checked: None,
            copied,
            here,
            compared,
            began: ago(10),
            comparing,
            shown: now,
        };
        let copying = state(2_000, 1_000, 0, None).line(usize::MAX);
        assert!(
            copying.starts_with("copying   [##########--------------]  44 %  2,000 of 3,000 rows, 99/s"),
            "{copying}"
        );
        assert!(copying.ends_with("0:25 left"), "{copying}");
        let comparing = state(3_000, 1_000, 1_500, Some(ago(3))).line(usize::MAX);
        assert!(
            comparing.contains(" 83 %  1,500 of 3,000 rows, 49") && comparing.ends_with("0:03 left"),
            "{comparing}"
        );
        assert!(state(0, 0, 0, None).line(79).ends_with("- left"));
        let nothing = State { total: 0, ..state(0, 0, 0, Some(now)) }.line(79);
        assert!(nothing.contains("100 %"), "{nothing}");
        let checking = State { checked: Some(1_500), ..state(0, 0, 0, None) }.line(usize::MAX);
        assert!(
            checking.starts_with("checking  [############------------]  50 %  1,500 of 3,000 rows, 149/s, 0:10 left"),
            "{checking}"
        );
    }

    /// Red without `room`: a line that is wrapped would appear once more below each time.
    #[test]
    fn a_line_fits_a_terminal_and_keeps_rate_and_time() {
        let began = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let (copied, here) = (1_234_567, 1_234_567);
        let total = 2_345_678;
        let state = State { total, checked: None, copied, here, compared: 0, began, comparing: None, shown: began };
        for (room, cells) in [(200, 24), (79, 10), (60, 0), (50, 0)] {
            let line = state.line(room);
            let bar = line.chars().filter(|cell| matches!(cell, '#' | '-')).count();
            assert!(line.len() <= room && bar.abs_diff(cells) <= 2, "{room}: {line}");
            assert!(room < 60 || line.contains("/s, ") && line.ends_with(" left"), "{line}");
        }
        assert_eq!(state.line(19).len(), 19);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
