//! The progress: on a terminal one line that is rewritten in place, elsewhere a line for each stage.

use std::io::Write as _;

/// The number of cells of the bar.
const WIDTH: usize = 24;
/// The number of cells on the narrowest terminal.
const LEAST: usize = 4;

/// The line of progress.
pub struct Bar {
    /// Whether somebody can see it.
    seen: bool,
    /// The stage that was said last.
    said: String,
}

impl Bar {
    /// Checks whether somebody can see it.
    pub fn new() -> Bar {
        Bar { seen: load::cli::is_seen(), said: String::new() }
    }

    /// Shows what is being measured, and the share of all work that is done.
    pub fn say(&mut self, what: &str, share: f64) {
        // Failing to show progress is no reason to end.
        if self.seen {
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(what, share, load::cli::columns() - 1));
        } else if let Some(line) = self.stage(what, share) {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// Returns the line for a log, if this is another stage than before.
    fn stage(&mut self, what: &str, share: f64) -> Option<String> {
        if self.said == what {
            return None;
        }
        what.clone_into(&mut self.said);
        Some(format!("{:>3.0} %  {what}", share.clamp(0.0, 1.0) * 100.0))
    }
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.seen {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Formats what fits into this many columns: the bar shrinks before the words do.
fn line(what: &str, share: f64, room: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    let said = format!(" {:>3.0} %  {what}", share * 100.0);
    let cells = room.saturating_sub(said.chars().count()).clamp(LEAST, WIDTH);
    let full = (share * cells as f64).round() as usize;
    let line = format!("{}{}{said}", "█".repeat(full), "░".repeat(cells - full));
    line.chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_for_each_stage() {
        // Red where each step of a stage is a line, or where nothing is said without a terminal.
        let mut bar = Bar { seen: false, said: String::new() };
        assert_eq!(bar.stage("signatures", 0.3).as_deref(), Some(" 30 %  signatures"));
        assert_eq!(bar.stage("signatures", 0.35), None);
        assert_eq!(bar.stage("memory", 0.6).as_deref(), Some(" 60 %  memory"));
    }

    #[test]
    fn a_line_fits_a_terminal() {
        let shown = line("signatures", 0.5, 79);
        assert!(shown.starts_with("████████████░") && shown.ends_with(" 50 %  signatures"), "{shown}");
        // Red without `take`: a line that wraps is written once more below each time.
        for room in [19, 39, 79] {
            let shown = line(&"x".repeat(200), 0.5, room);
            assert!(shown.starts_with("██░░") && shown.contains(" 50 %") && shown.chars().count() == room, "{shown}");
        }
        assert_eq!(line("", 7.0, 79), format!("{} 100 %  ", "█".repeat(24)));
    }
}
