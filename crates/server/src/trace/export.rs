//! Sends traces to a collector: OTLP over HTTP, one batch at a time.

use super::otlp::{self, Rejected, Resource};
use super::{Spans, Trace, Tracer};
use crate::boot::BootError;
use crate::config::Config;
use crate::receivers;
use app::clock::Clock;
use app::reach::{self, Inbox};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

/// The most traces that are sent together.
const TOGETHER: usize = 256;
/// How long a batch waits for more traces.
const GATHER: Duration = Duration::from_secs(1);
/// How often unused connections are closed.
const IDLE: Duration = Duration::from_secs(10);
/// The longest that a batch may be on its way, with all its retries; the next one waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses before a batch is sent again.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The longest pause that a collector may ask for.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// How long the last batch may take when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Sends the traces that wait.
pub struct Exporter {
    inbox: Inbox,
    headers: HeaderMap,
    resource: Resource,
    waiting: Receiver<Trace>,
    batch: Vec<Trace>,
    spans: Arc<Spans>,
    clock: Clock,
    told: Told,
    /// Until when the collector wants no traces.
    rests: Option<tokio::time::Instant>,
}

/// What the log says of the collector at present.
#[derive(Default)]
struct Told {
    /// That it cannot be reached.
    lost: bool,
    /// That it rejects some spans.
    rejected: bool,
}

/// Why a batch did not arrive.
enum Lost {
    /// It may arrive the next time, after a pause that the collector may have asked for.
    Now(String, Option<Duration>),
    /// The collector does not want it.
    Refused(String),
}

impl Exporter {
    /// Returns the configured tracer, and, if there is a collector, the exporter that sends the traces to it.
    pub fn of(config: &Config, node: &str, clock: &Clock) -> Result<(Tracer, Option<Self>), BootError> {
        let (tracer, waiting) = Tracer::of(config);
        let (Some(endpoint), Some(waiting)) = (config.trace.endpoint.clone(), waiting) else {
            return Ok((tracer, None));
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.extend(receivers::headers("trace.headers", config.trace.headers.as_ref())?);
        let files = receivers::to_collector(config);
        let inbox = Inbox::at("the trace collector", endpoint, &files.tls());
        let exporter = Exporter {
            inbox: inbox.map_err(|error| files.wrong(&error, "trace.endpoint"))?,
            headers,
            resource: Resource { node: node.to_owned() },
            waiting,
            batch: Vec::with_capacity(TOGETHER),
            spans: Arc::clone(&tracer.spans),
            clock: clock.clone(),
            told: Told::default(),
            rests: None,
        };
        Ok((tracer, Some(exporter)))
    }

    /// Sends traces until the future is dropped.
    pub async fn run(&mut self) {
        while self.received().await > 0 {
            let until = tokio::time::Instant::now() + GATHER;
            while self.batch.len() < TOGETHER {
                let room = TOGETHER - self.batch.len();
                match timeout_at(until, self.waiting.recv_many(&mut self.batch, room)).await {
                    Ok(more) if more > 0 => {}
                    _ => break,
                }
            }
            let outcome = self.insist().await;
            self.settle(outcome);
        }
    }

    /// Waits for traces, and returns how many came.
    async fn received(&mut self) -> usize {
        loop {
            match timeout(IDLE, self.waiting.recv_many(&mut self.batch, TOGETHER)).await {
                Ok(many) => return many,
                Err(_) => self.inbox.let_go(),
            }
        }
    }

    /// Sends a batch, with retries where they may help, as long as there is time.
    async fn insist(&mut self) -> Result<Rejected, Lost> {
        if let Some(until) = self.rests.take() {
            sleep_until(until).await;
        }
        let end = tokio::time::Instant::now() + PATIENCE;
        let mut pauses = AGAIN.iter();
        loop {
            let late = |_| Err(Lost::Now("the collector took too long".to_owned(), None));
            let outcome = timeout_at(end, self.deliver()).await.unwrap_or_else(late);
            match (outcome, pauses.next()) {
                (Err(Lost::Now(why, asked)), Some(pause)) => {
                    let (pause, now) =
                        (asked.unwrap_or_default().clamp(*pause, LONGEST_REST), tokio::time::Instant::now());
                    if pause >= end.saturating_duration_since(now) {
                        // The next batch waits for the pause.
                        self.rests = asked.map(|_| now + pause);
                        return Err(Lost::Now(why, asked));
                    }
                    sleep(pause).await;
                }
                (outcome, _) => return outcome,
            }
        }
    }

    /// Sends the traces that still wait, once.
    pub async fn finish(&mut self) {
        self.waiting.close();
        while let Ok(trace) = self.waiting.try_recv() {
            self.batch.push(trace);
        }
        if !self.batch.is_empty() {
            let late = Err(Lost::Now("the collector took too long at shutdown".to_owned(), None));
            let outcome = timeout(FAREWELL, self.deliver()).await.unwrap_or(late);
            self.settle(outcome);
        }
    }

    /// Counts a batch, and logs when the collector is lost and found.
    fn settle(&mut self, outcome: Result<Rejected, Lost>) {
        let spans = self.batch.drain(..).map(|trace| trace.spans()).sum();
        match outcome {
            Ok(Rejected { spans: rejected, why }) if rejected > 0 => {
                let rejected = rejected.min(spans);
                self.spans.sent.add(spans - rejected);
                self.spans.undelivered.add(rejected);
                self.found();
                if !std::mem::replace(&mut self.told.rejected, true) {
                    tracing::warn!(rejected, why, "the collector rejected some spans");
                }
            }
            Ok(_) => {
                self.spans.sent.add(spans);
                self.found();
                self.told.rejected = false;
            }
            Err(Lost::Now(why, _) | Lost::Refused(why)) => {
                self.spans.undelivered.add(spans);
                if !std::mem::replace(&mut self.told.lost, true) {
                    tracing::warn!(why, "traces do not reach the collector");
                }
            }
        }
    }

    /// Logs that the collector is there, if it was lost.
    fn found(&mut self) {
        if std::mem::take(&mut self.told.lost) {
            tracing::info!("traces reach the collector again");
        }
    }

    async fn deliver(&self) -> Result<Rejected, Lost> {
        let body = otlp::request(&self.resource, &self.batch, (Instant::now(), self.clock.now()));
        let posted = self.inbox.post(self.headers.clone(), body.into()).await;
        let (head, said) = posted.map_err(|lost| Lost::Now(lost.why, None))?;
        let status = head.status;
        match status {
            status if status.is_success() => Ok(otlp::rejected(&said)),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(Lost::Now(format!("the collector answers {status}"), reach::retry_after(&head)))
            }
            status => Err(Lost::Refused(format!("the collector answers {status}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use crate::logs::tests::said;

    #[tokio::test]
    async fn a_collector_that_is_lost_and_one_that_rejects_spans_are_told_of_apart_and_once() {
        // Red where both are one complaint: of a collector that is found again and rejects, nothing would be said.
        let flags = vec![("trace.endpoint", "http://127.0.0.1:1".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let mut exporter = Exporter::of(&config, "n", &Clock::system()).unwrap().1.unwrap();
        let (lost, rejected, reached) =
            ("do not reach the collector", "rejected some spans", "reach the collector again");
        let mut told = |outcome: &str| {
            said(|| {
                exporter.settle(match outcome {
                    "lost" => Err(Lost::Now("away".to_owned(), None)),
                    "rejected" => Ok(Rejected { spans: 1, why: String::new() }),
                    _ => Ok(Rejected { spans: 0, why: String::new() }),
                });
            })
        };
        for (outcome, expected) in [
            ("lost", &[lost][..]),
            ("lost", &[]),
            ("rejected", &[reached, rejected]),
            ("rejected", &[]),
            ("lost", &[lost]),
            ("rejected", &[reached]),
            ("all", &[]),
            ("rejected", &[rejected]),
            ("all", &[]),
        ] {
            let lines = told(outcome);
            assert!(
                lines.iter().map(String::as_str).zip(expected).all(|(line, part)| line.contains(part)),
                "{lines:?}"
            );
            assert_eq!(lines.len(), expected.len(), "{outcome}: {lines:?}");
        }
    }
}
