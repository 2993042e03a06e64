//! The progress of a measurement: on a terminal one line that is rewritten in place, elsewhere a line now and then.

use crate::Refusal;
use crate::plan::{Pace, Plan};
use crate::report::Report;
use crate::run::{Pulse, together};
use std::ffi::OsStr;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// How many rates the small chart shows.
const SHOWN: usize = 24;
/// Below this number of columns only figures are shown.
const NARROW: usize = 70;

/// The pause between two lines where there is no terminal: the log of a job shows that it goes on, and stays short.
const EVERY: Duration = Duration::from_secs(30);

/// Lines of progress for a log, on standard error.
pub struct Lines {
    every: Duration,
    last: Instant,
}

impl Lines {
    /// Says nothing at first: what is done soon needs no progress.
    pub fn new() -> Lines {
        Lines { every: EVERY, last: Instant::now() }
    }

    /// Writes this line if it is time for one.
    pub fn say(&mut self, line: &str) {
        if self.is_due() {
            // Failing to show progress is no reason to end the run.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    fn is_due(&mut self) -> bool {
        let due = self.last.elapsed() >= self.every;
        if due {
            self.last = Instant::now();
        }
        due
    }
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::new()
    }
}

/// Returns a function that runs plans side by side, with a line of progress.
pub fn watched() -> impl FnMut(&[Plan]) -> Result<Report, Refusal> {
    let (mut runs, mut lines) = (0, Lines::new());
    move |plans| {
        runs += 1;
        if is_seen() {
            return shown(plans, runs);
        }
        // Before a run, not in it: a measurement that nobody watches spends nothing on progress.
        lines.say(Progress::of(plans, runs).title.trim_end_matches(": "));
        together(plans, None)
    }
}

/// Whether standard error is a terminal that can rewrite a line in place.
#[allow(clippy::disallowed_methods, reason = "what a terminal can do is said in its environment alone")]
pub fn is_seen() -> bool {
    std::io::stderr().is_terminal() && !is_dumb(std::env::var_os("TERM").as_deref())
}

/// Whether a terminal of this name cannot return to the beginning of a line.
fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_some_and(|name| name == "dumb")
}

/// Runs the plans as run number `run`, with progress.
fn shown(plans: &[Plan], run: usize) -> Result<Report, Refusal> {
    let mut terminal = std::io::stderr();
    let mut progress = Progress::of(plans, run);
    if plans.iter().any(|plan| plan.recovery.is_some()) {
        // The server has a minute to do so.
        let _ = write!(terminal, "{}waiting for the server to answer again", progress.title);
        let _ = terminal.flush();
    }
    let mut show = |passed: Duration, pulse: &Pulse| {
        let line = progress.line(passed, pulse, columns() - 1);
        // Failing to show progress is no reason to end the run.
        let _ = write!(terminal, "\r\x1b[K{line}");
        let _ = terminal.flush();
    };
    let outcome = together(plans, Some(&mut show));
    let _ = write!(terminal, "\r\x1b[K");
    outcome
}

/// Returns the width of the terminal that shows progress; 80 if the terminal does not say.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if size == 0 { 80 } else { size.max(20) }
}

/// What has been reported so far.
struct Progress {
    /// The number of the run, and the load that it offers.
    title: String,
    warmup: Duration,
    whole: Duration,
    visitors: usize,
    last: Duration,
    rates: Vec<f64>,
    failed: u64,
    refused: u64,
}

impl Progress {
    fn of(plans: &[Plan], run: usize) -> Progress {
        let (warmup, duration) = plans.first().map_or_else(Default::default, |plan| (plan.warmup, plan.duration));
        let visitors = plans.iter().map(|plan| plan.pace.visitors()).sum();
        let offered = match plans.first().map(|plan| plan.pace) {
            Some(Pace::Open { rate, .. }) => format!("{rate:.0}/s"),
            Some(Pace::Closed { visitors, .. }) => format!("{visitors} users"),
            None => String::new(),
        };
        Progress {
            title: format!("run {run}, {offered}: "),
            warmup,
            whole: warmup + duration,
            visitors,
            last: Duration::ZERO,
            rates: vec![],
            failed: 0,
            refused: 0,
        }
    }

    /// Formats the line in at most `width` characters: the chart of past rates takes the room that the figures leave,
    /// and in a narrow terminal everything is dropped before rate, latencies and errors.
    fn line(&mut self, passed: Duration, pulse: &Pulse, width: usize) -> String {
        if passed.is_zero() {
            let ready = format!("making ready, {} of {} users", pulse.ready, self.visitors);
            return fitting([format!("{}{ready}", self.title), ready], width);
        }
        let rate = pulse.iterations.count() as f64 / (passed - self.last).as_secs_f64().max(1e-3);
        self.last = passed;
        self.rates.push(rate);
        self.rates.drain(..self.rates.len().saturating_sub(SHOWN));
        self.failed += pulse.failed;
        self.refused += pulse.refused;
        // Without iterations there is no latency, which is not a latency of zero.
        let latency = |share: f64| match pulse.iterations.count() {
            0 => "–".to_owned(),
            _ => format!("{:.1}", pulse.iterations.quantile(share)),
        };
        let (p50, p99) = (latency(0.5), latency(0.99));
        let time = format!("{:.0}/{:.0} s", passed.as_secs_f64(), self.whole.as_secs_f64());
        let wrong = format!("{} failed {} refused", self.failed, self.refused);
        let tail = format!("p50 {p50} p99 {p99} ms  {wrong}");
        let now = match passed {
            passed if passed < self.warmup => "  (warming up)",
            passed if passed > self.whole => "  (waiting for the last answers)",
            _ => "",
        };
        let figures = format!("{time} {rate:.1}/s  {tail}");
        let narrow = [
            format!("{figures}{now}"),
            figures,
            format!("{rate:.1}/s p50 {p50} p99 {p99} {wrong}"),
            format!("{rate:.0}/s {p50}/{p99} ms {wrong}"),
        ];
        if width < NARROW {
            return fitting(narrow, width);
        }
        let head = format!("{}{time} {rate:8.1}/s ", self.title);
        let room = width.saturating_sub([&*head, "  ", &*tail, now].map(|part| part.chars().count()).iter().sum());
        let shown = &self.rates[self.rates.len().saturating_sub(room)..];
        let wide = [format!("{head}{}  {tail}{now}", sparkline(shown)), format!("{head}  {tail}")];
        fitting(wide.into_iter().chain(narrow), width)
    }
}

/// Returns the first of these that is no longer than `width`, or as much of the last one as fits.
fn fitting(lines: impl IntoIterator<Item = String>, width: usize) -> String {
    let mut last = String::new();
    for line in lines {
        last = line;
        if last.chars().count() <= width {
            return last;
        }
    }
    last.chars().take(width).collect()
}

/// Draws values as blocks of eight heights, from zero to the highest.
fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    values.iter().map(|value| BLOCKS[((value / highest * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn blocks_go_from_zero_to_the_highest() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_line_says_rate_latencies_and_what_went_wrong_so_far() {
        let mut progress = Progress::of(&[Plan { warmup: Duration::from_secs(1), ..plan() }], 3);
        let mut pulse = Pulse { failed: 2, refused: 1, ready: 1, ..Pulse::default() };
        (0..50).for_each(|_| pulse.iterations.add(Duration::from_millis(4)));
        assert_eq!(progress.line(Duration::ZERO, &pulse, 120), "run 3, 1 users: making ready, 1 of 1 users");
        let first = progress.line(Duration::from_millis(500), &pulse, 120);
        assert!(
            first.starts_with(
                "run 3, 1 users: 0/2 s    100.0/s █  p50 4.0 p99 4.0 ms  2 failed 1 refused  (warming up)"
            ),
            "{first}"
        );
        let second = progress.line(Duration::from_millis(1500), &pulse, 120);
        assert!(
            second.starts_with("run 3, 1 users: 2/2 s     50.0/s █▅  p50 4.0 p99 4.0 ms  4 failed 2 refused"),
            "{second}"
        );
        assert!(!second.contains("warming"));
        assert!(progress.line(Duration::from_secs(2), &Pulse::default(), 120).contains("p50 – p99 – ms"));
        assert!(progress.line(Duration::from_secs(3), &pulse, 120).ends_with("(waiting for the last answers)"));
        // Red where the line is cut at its end: a terminal of 80 columns does not show what failed.
        let mut progress = Progress::of(&[Plan { duration: Duration::from_secs(60), ..plan() }], 3);
        for second in 1..=30 {
            let line = progress.line(Duration::from_secs(second), &pulse, 79);
            assert!(line.contains(" failed ") && line.ends_with(" refused") && line.chars().count() <= 79, "{line}");
        }
        let open = Plan { pace: Pace::Open { rate: 240.0, visitors: 9 }, ..plan() };
        assert_eq!(Progress::of(&[open], 12).title, "run 12, 240/s: ");
    }

    /// Red where the line is cut at its end: a narrow window cuts off the errors.
    #[test]
    fn where_it_is_narrow_the_figures_stay() {
        let plans = [Plan { duration: Duration::from_secs(60), warmup: Duration::from_secs(30), ..plan() }];
        let mut pulse = Pulse { failed: 2, refused: 1, ready: 1, ..Pulse::default() };
        (0..500).for_each(|_| pulse.iterations.add(Duration::from_millis(4)));
        for width in [39, 49, 59, 69, 79] {
            let mut progress = Progress::of(&plans, 12);
            for second in 1..=20 {
                let line = progress.line(Duration::from_secs(second), &pulse, width);
                let (failed, refused) = (format!("{} failed", 2 * second), format!("{second} refused"));
                let said = ["500", "4.0", failed.as_str(), refused.as_str()];
                assert!(
                    said.iter().all(|said| line.contains(said)) && line.chars().count() <= width,
                    "{width}: {line}"
                );
                assert_eq!(line.contains("run 12"), width >= NARROW, "{line}");
                assert!(width >= NARROW || !line.contains('█'), "{line}");
            }
        }
        assert_eq!(Progress::of(&plans, 12).line(Duration::ZERO, &pulse, 39), "making ready, 1 of 1 users");
    }

    #[test]
    fn a_log_gets_a_line_now_and_then() {
        // Red where each step is a line, or none is.
        let mut lines = Lines { every: Duration::from_secs(3600), last: Instant::now() };
        assert!(!lines.is_due(), "not at once");
        lines.every = Duration::ZERO;
        assert!(lines.is_due());
        lines.every = Duration::from_secs(3600);
        assert!(!lines.is_due(), "not so soon after another one");
    }

    #[test]
    fn a_dumb_terminal_is_none() {
        let dumb = |name: &str| is_dumb(Some(OsStr::new(name)));
        assert!(dumb("dumb") && !dumb("xterm-256color") && !dumb("") && !is_dumb(None));
    }
}
