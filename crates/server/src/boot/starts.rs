//! Records in the audit log that a server starts and stops.
//!
//! No start waits for its line: the line is written while the first requests are served, and retried if the database
//! does not take it. A server that breaks down at each start, and is restarted each time, leaves one line a minute,
//! which says how many starts it stands for. The data folder keeps that number.

use crate::private;
use app::App;
use rules::{Span, Time};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// In the data folder: when a start was last recorded, in milliseconds since 1970, and how many were not since then.
const FILE: &str = "node.starts";
/// The least time between two lines about starts on one data folder.
const EVERY: Span = Span::minutes(1);

/// The start of this process.
pub struct Starts {
    file: PathBuf,
    /// Whether the audit log has its line.
    told: AtomicBool,
}

/// What earlier starts left in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kept {
    told: i64,
    untold: u64,
}

impl Starts {
    /// Returns the start of this process on this data folder.
    pub fn of(data: &Path) -> Self {
        Starts { file: data.join(FILE), told: AtomicBool::new(false) }
    }

    /// Records this start once it may, then waits until the future is dropped.
    pub async fn tell(&self, app: &App) {
        let kept = self.count().await;
        tokio::time::sleep(kept.wait(app.clock.now())).await;
        let mut complained = false;
        while let Err(why) = app.tell_of_start(kept.untold).await {
            if !std::mem::replace(&mut complained, true) {
                tracing::warn!(why, "this node's start is not in the audit log yet");
            }
            // The line may have been written all the same.
            tokio::time::sleep(Duration::from_millis(EVERY.0.unsigned_abs())).await;
        }
        self.told.store(true, Relaxed);
        self.keep(Kept { told: app.clock.now().0, untold: 0 }).await;
        std::future::pending().await
    }

    /// Records the stop. A start that has no line gets no line for its stop: it is counted in the next start's line.
    pub async fn leave(&self, app: &App) {
        if self.told.load(Relaxed)
            && let Err(why) = app.tell_of_stop().await
        {
            tracing::warn!(why, "this node's stop may be missing from the audit log");
        }
    }

    /// Reads the file and counts this start in it. A file that cannot be read counts as empty.
    async fn count(&self) -> Kept {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || fs::read_to_string(file)).await;
        let kept = read.ok().and_then(Result::ok).and_then(|text| Kept::read(&text)).unwrap_or_default();
        let kept = Kept { untold: kept.untold.saturating_add(1), ..kept };
        self.keep(kept).await;
        kept
    }

    /// Writes the file on another thread: the calling thread answers requests.
    async fn keep(&self, kept: Kept) {
        let (file, text) = (self.file.clone(), format!("{} {}\n", kept.told, kept.untold));
        let kept = tokio::task::spawn_blocking(move || private::replace(&file, text.as_bytes())).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "cannot record in the data folder how often this node starts");
        }
    }
}

impl Kept {
    fn read(text: &str) -> Option<Self> {
        let (told, untold) = text.trim_end().split_once(' ')?;
        Some(Kept { told: told.parse().ok()?, untold: untold.parse().ok()? })
    }

    /// Returns how long the next line has to wait. A line that was dated by a clock that was ahead holds nothing back.
    fn wait(self, now: Time) -> Duration {
        let since = now.since(Time(self.told));
        let wait = if self.told <= now.0 && since < EVERY { EVERY.0 - since.0 } else { 0 };
        Duration::from_millis(wait.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Instance;
    use crate::config::{Config, Sources};
    use app::audit::Filter;
    use serde_json::{Value, json};

    /// Returns the log's lines about starts and stops, the oldest first, without the node's name.
    async fn lines(app: &App) -> Vec<(String, Value)> {
        let kinds = ["node.started", "node.stopped"].map(str::to_owned).to_vec();
        let page = app.audit_lines(&Filter { kinds, ..Filter::default() }, "", false, 100).await.unwrap();
        let detail = |text: &str| {
            let mut detail: Value = serde_json::from_str(text).unwrap();
            assert!(detail.as_object_mut().unwrap().remove("node").is_some_and(|node| node.is_string()), "{text}");
            detail
        };
        page.lines.iter().map(|line| (line.kind.clone(), detail(&line.detail))).collect()
    }

    fn kept(starts: &Starts) -> Option<Kept> {
        Kept::read(&fs::read_to_string(&starts.file).ok()?)
    }

    /// Runs a process until so many starts are not recorded, or until its own start is.
    async fn lives(app: &App, data: &Path, untold: u64) -> Starts {
        let starts = Starts::of(data);
        let is_counted = |kept: Kept| kept.untold == untold || starts.told.load(Relaxed) && kept.untold == 0;
        let counted = async {
            while !kept(&starts).is_some_and(is_counted) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = starts.tell(app) => panic!("it ends"),
            () = counted => {}
        }
        starts
    }

    #[tokio::test]
    async fn a_server_that_is_started_again_and_again_leaves_a_line_a_minute() {
        // Red without `wait`, and where `leave` records a stop whose start has no line: a line each time then.
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let instance = Instance::open(&config, None).await.unwrap();
        let (app, data) = (&instance.app, folder.path());
        let started = ("node.started".to_owned(), json!({ "version": env!("CARGO_PKG_VERSION") }));
        let stopped = ("node.stopped".to_owned(), json!({}));
        lives(app, data, 0).await.leave(app).await;
        for untold in 1..=20 {
            lives(app, data, untold).await.leave(app).await;
        }
        assert_eq!(lines(app).await, [started.clone(), stopped.clone()]);
        // A minute later.
        let starts = Starts::of(data);
        starts.keep(Kept { told: kept(&starts).unwrap().told - EVERY.0, untold: 20 }).await;
        // Lines of one millisecond have no order.
        tokio::time::sleep(Duration::from_millis(2)).await;
        let again = lives(app, data, 0).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        again.leave(app).await;
        let many = ("node.started".to_owned(), json!({ "version": env!("CARGO_PKG_VERSION"), "starts": 21 }));
        assert_eq!(lines(app).await[2..], [many, stopped]);
        instance.close().await;
    }

    #[test]
    fn what_is_left_of_another_clock_or_of_nobody_holds_no_line_back() {
        let now = Time(1_000_000);
        for (text, wait) in [
            ("1000000 1\n", 60_000),
            ("999999 3\n", 59_999),
            ("940001 1\n", 1),
            ("940000 1\n", 0),
            ("0 0\n", 0),
            ("1000001 1\n", 0),
            ("-9223372036854775808 1", 0),
            ("9223372036854775807 18446744073709551615", 0),
        ] {
            assert_eq!(Kept::read(text).unwrap().wait(now), Duration::from_millis(wait), "{text}");
        }
        for nothing in ["", "1", "1 ", " 1", "x 1", "1 -1", "1 2 3"] {
            assert_eq!(Kept::read(nothing), None, "{nothing:?}");
        }
    }
}
