//! Log lines: JSON or text, on standard error, written by a thread of their own.

use crate::config::{Config, LogFormat};
use std::io::{IsTerminal, Write};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The most lines that may wait for the writer thread. Further lines are dropped: a full disk or a stopped terminal
/// must not stop a sign-in.
const WAITING_LINES: usize = 16_384;

/// Portiere's own crates that log. Others log only from warnings up: below that, they may show what passes through.
const OURS: [&str; 3] = ["portiere", "app", "store"];

/// The running logging. Dropping it writes the lines that still wait.
pub struct Logs {
    _writer: WorkerGuard,
}

impl Logs {
    /// Starts logging for the whole process, once. Fails if logging was started before.
    pub fn start(config: &Config) -> Result<Self, tracing::subscriber::SetGlobalDefaultError> {
        let (writer, guard) =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING_LINES).finish(std::io::stderr());
        let color = std::io::stderr().is_terminal() && may_color(&crate::config::environment());
        match config.log.format {
            LogFormat::Json => tracing::subscriber::set_global_default(json(config.log.level, writer))?,
            LogFormat::Text => tracing::subscriber::set_global_default(text(config.log.level, writer, color))?,
        }
        Ok(Logs { _writer: guard })
    }
}

/// Writes a line as the JSON log does, whatever that log's level: why a server ends, before it has a log, or after.
pub fn tell_failure(line: &str) {
    let to = || Aloud(std::io::stderr());
    tracing::subscriber::with_default(json(LevelFilter::ERROR, to), || tracing::error!("{line}"));
}

/// Writes lines that are no failure in the same way, on standard output.
pub fn tell(lines: &[String]) {
    let to = || Aloud(std::io::stdout());
    tracing::subscriber::with_default(json(LevelFilter::INFO, to), || {
        lines.iter().for_each(|line| tracing::info!("{}", line.trim()));
    });
}

/// An output whose reader may have gone away: its errors are ignored.
struct Aloud<W>(W);

impl<W: Write> Write for Aloud<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        drop(self.0.write_all(bytes).and_then(|()| self.0.flush()));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether colors are allowed by <https://no-color.org>: any value of the variable forbids them, unless it is empty.
fn may_color(environment: &[(String, String)]) -> bool {
    !environment.iter().any(|(name, value)| name == "NO_COLOR" && !value.is_empty())
}

/// Libraries that warn of each wrong frame from a stranger (h2: one line of 100 bytes for each acknowledgement, of 17
/// bytes, of a ping that was never sent). They are logged from errors up: otherwise anybody could fill the disk.
const OF_STRANGERS: [&str; 1] = ["h2"];

fn filter(level: LevelFilter) -> Targets {
    let others = level.min(LevelFilter::WARN);
    Targets::new()
        .with_default(others)
        .with_targets(OF_STRANGERS.map(|name| (name, level.min(LevelFilter::ERROR))))
        .with_targets(OURS.map(|name| (name, level)))
}

/// One object per line; an event's fields stand beside `timestamp`, `level`, `target` and the request's `span`.
fn json<W>(level: LevelFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false);
    tracing_subscriber::registry().with(filter(level)).with(layer.with_writer(writer))
}

fn text<W>(level: LevelFilter, writer: W, color: bool) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_target(false).with_ansi(color);
    tracing_subscriber::registry().with(filter(level)).with(layer.with_writer(writer))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[test]
    fn whoever_wants_no_color_gets_none() {
        let env = |value: &str| [("NO_COLOR".to_owned(), value.to_owned())];
        assert!(may_color(&[]) && may_color(&env("")));
        assert!(!may_color(&env("1")) && !may_color(&env("0")));
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn writer(&self) -> impl Fn() -> Lines + Send + Sync + 'static {
            let lines = self.clone();
            move || lines.clone()
        }
        fn read(&self) -> Vec<String> {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
        }
    }

    /// Returns the lines of the log that this makes on its thread.
    pub fn said(speak: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        tracing::subscriber::with_default(text(LevelFilter::INFO, lines.writer(), false), speak);
        lines.read()
    }

    fn speak() {
        let span = tracing::info_span!(target: "portiere", "request", id = "r1");
        let _entered = span.enter();
        tracing::info!(target: "portiere::http", status = 200, "answered");
        tracing::debug!(target: "app", "detail");
        tracing::info!(target: "hyper", "chatter");
        tracing::warn!(target: "hyper", "trouble");
        // Red without OF_STRANGERS, at every level.
        tracing::warn!(target: "h2::proto::ping_pong", "recv PING ack that we never sent");
    }

    #[test]
    fn json_lines_carry_the_request_id_and_the_fields() {
        let lines = Lines::default();
        tracing::subscriber::with_default(json(LevelFilter::INFO, lines.writer()), speak);
        let lines = lines.read();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let first: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (&first["level"], &first["message"], &first["status"]),
            (&"INFO".into(), &"answered".into(), &200.into())
        );
        assert_eq!(first["span"]["id"], "r1");
        assert!(lines[1].contains("trouble"));
    }

    #[test]
    fn text_lines_follow_the_level() {
        let count = |level| {
            let lines = Lines::default();
            tracing::subscriber::with_default(text(level, lines.writer(), false), speak);
            let lines = lines.read();
            assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:?}");
            lines.len()
        };
        assert_eq!(
            [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::INFO, LevelFilter::DEBUG].map(count),
            [0, 0, 2, 3]
        );
    }
}
