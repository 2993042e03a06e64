//! How far it is, on a terminal: one line that is written again and again.

use std::io::{IsTerminal, Write as _};

/// Steps of the bar.
const WIDTH: usize = 24;

/// The line, where somebody can see it.
pub struct Bar(bool);

impl Bar {
    /// Looks whether somebody can.
    pub fn new() -> Bar {
        Bar(std::io::stderr().is_terminal())
    }

    /// Says what is measured, and the share of it all that is done.
    pub fn say(&mut self, what: &str, share: f64) {
        if self.0 {
            // Progress that cannot be shown is not worth ending for.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(what, share));
        }
    }
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * WIDTH as f64).round() as usize;
    let line =
        format!("{}{} {:>3.0} %  {what}", "█".repeat(full), "░".repeat(WIDTH - full), share.clamp(0.0, 1.0) * 100.0);
    line.chars().take(78).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_a_terminal() {
        let shown = line(&"x".repeat(200), 0.5);
        assert!(
            shown.starts_with("████████████░") && shown.contains(" 50 %") && shown.chars().count() == 78,
            "{shown}"
        );
        assert!(line("", 7.0).contains("100 %"));
    }
}
