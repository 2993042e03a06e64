//! That a server starts and stops, as the audit log tells it.
//!
//! No start waits for that: the line is written beside the first requests, and again where the database does not take it. A server that
//! breaks down each time that it is started, and is started anew each time, leaves one line a minute, which says how many starts it is
//! about. How many they are is kept in the data folder.

use crate::private;
use app::App;
use rules::{Span, Time};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// In the data folder: when a start was told last, in milliseconds since 1970, and how many were not since.
const FILE: &str = "node.starts";
/// Between two lines of starts on one data folder.
const EVERY: Span = Span::minutes(1);

/// The start of this process.
pub struct Starts {
    file: PathBuf,
    /// Whether the audit log tells of it.
    told: AtomicBool,
}

/// What earlier starts left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kept {
    told: i64,
    untold: u64,
}

impl Starts {
    /// On this data folder.
    pub fn of(data: &Path) -> Self {
        Starts { file: data.join(FILE), told: AtomicBool::new(false) }
    }

    /// Tells of this start, once it may, and waits until it is dropped.
    pub async fn tell(&self, app: &App) {
        let kept = self.count().await;
        tokio::time::sleep(kept.wait(app.clock.now())).await;
        let mut complained = false;
        while let Err(why) = app.tell_of_start(kept.untold).await {
            if !std::mem::replace(&mut complained, true) {
                tracing::warn!(why, "the audit log does not tell yet that this node has started");
            }
            // It may be there all the same.
            tokio::time::sleep(Duration::from_millis(EVERY.0.unsigned_abs())).await;
        }
        self.told.store(true, Relaxed);
        self.keep(Kept { told: app.clock.now().0, untold: 0 }).await;
        std::future::pending().await
    }

    /// Tells of the end. One whose start is not told is part of what the next one tells.
    pub async fn leave(&self, app: &App) {
        if self.told.load(Relaxed)
            && let Err(why) = app.tell_of_stop().await
        {
            tracing::warn!(why, "the audit log may not tell that this node has stopped");
        }
    }

    /// What is kept, with this start. What cannot be read says nothing.
    async fn count(&self) -> Kept {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || fs::read_to_string(file)).await;
        let kept = read.ok().and_then(Result::ok).and_then(|text| Kept::read(&text)).unwrap_or_default();
        let kept = Kept { untold: kept.untold.saturating_add(1), ..kept };
        self.keep(kept).await;
        kept
    }

    /// Beside the thread that asks, which answers requests.
    async fn keep(&self, kept: Kept) {
        let (file, text) = (self.file.clone(), format!("{} {}\n", kept.told, kept.untold));
        let kept = tokio::task::spawn_blocking(move || private::replace(&file, text.as_bytes())).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "how often this node starts is not kept in its data folder");
        }
    }
}

impl Kept {
    fn read(text: &str) -> Option<Self> {
        let (told, untold) = text.trim_end().split_once(' ')?;
        Some(Kept { told: told.parse().ok()?, untold: untold.parse().ok()? })
    }

    /// How long the next line has to wait. One that was told by a clock that was ahead is no reason to.
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

    /// What the log tells of starts and stops, the oldest first, without the node's name.
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

    /// A process that lives until so many starts are not told, or its own is.
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
        // Red without `wait`, and where `leave` tells of ends whose start is not told: a line each time, for as long as that goes on.
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
