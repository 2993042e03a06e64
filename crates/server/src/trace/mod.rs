//! Traces of requests, in the form of OpenTelemetry: one span for a request, and one for each stage that it waited for.
//!
//! They are built from what was timed anyway. Nothing waits for a collector: a trace that finds no room in the queue is
//! dropped, and counted.

mod export;
mod otlp;
mod parent;

pub use export::Exporter;

use crate::config::{Config, Share};
use crate::metrics::Refused;
use crate::net::Client;
use app::stopwatch::{Lap, Sheet};
use hyper::Request;
use parent::Parent;
use rules::secret::hexadecimal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::tally::Count;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most traces that may wait for the exporter.
const WAITING: usize = 1024;

/// What became of spans.
#[derive(Default)]
pub struct Spans {
    /// The collector took them.
    pub sent: Count,
    /// The queue had no room for them.
    pub unqueued: Count,
    /// The collector could not be reached, or did not want them.
    pub undelivered: Count,
}

/// Decides which requests are traced, and takes their traces.
pub struct Tracer {
    sample: Share,
    queue: Option<Sender<Trace>>,
    /// What became of spans.
    pub spans: Arc<Spans>,
}

/// A request that is traced.
pub struct Traced {
    trace: [u8; 16],
    span: [u8; 8],
    parent: Option<[u8; 8]>,
    /// What other systems said about their own places in the trace (W3C Trace Context §3.3).
    state: Box<str>,
    /// The scheme by which the client asked, before any proxy.
    scheme: &'static str,
    /// The path and the method that the request named, cut to what somebody reads.
    path: Box<str>,
    method: Box<str>,
}

/// The most characters of a path and of a method that are kept: many traces wait at a time, and strangers choose both.
const LONGEST_PATH: usize = 256;
const LONGEST_METHOD: usize = 32;

/// The outcome of a request that was traced.
pub struct Went<'a> {
    /// Its method.
    pub method: &'a str,
    /// The template of its route.
    pub route: &'a str,
    /// Its ID in the log.
    pub request: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// Why the server refused it, if it did.
    pub refused: Option<Refused>,
    /// When it arrived.
    pub began: Instant,
    /// How long it took.
    pub took: Duration,
}

/// A trace that is to be sent.
struct Trace {
    of: Traced,
    method: Box<str>,
    route: Box<str>,
    request: Box<str>,
    status: u16,
    refused: Option<Refused>,
    began: Instant,
    took: Duration,
    laps: Box<[Lap]>,
}

impl Trace {
    /// Returns the number of its spans.
    fn spans(&self) -> u64 {
        1 + self.laps.len() as u64
    }
}

impl Tracer {
    /// Returns the configured tracer, and, if there is a collector, the queue of traces for it.
    fn of(config: &Config) -> (Self, Option<Receiver<Trace>>) {
        let (queue, waiting) = match config.trace.endpoint {
            Some(_) => {
                let (queue, waiting) = channel(WAITING);
                (Some(queue), Some(waiting))
            }
            None => (None, None),
        };
        (Tracer { sample: config.trace.sample, queue, spans: Arc::default() }, waiting)
    }

    /// Decides whether a request is traced, and as what: as its caller says if that is a listed proxy, else by chance.
    pub fn begin<B>(&self, request: &Request<B>, client: &Client) -> Option<Traced> {
        self.queue.as_ref()?;
        let chance = app::entropy::bytes().ok()?;
        let [trace @ .., _, _, _, _, _, _, _, _] = *chance.first_chunk::<24>()?;
        let (span, luck) = (*chance[16..24].first_chunk::<8>()?, *chance[24..].first_chunk::<8>()?);
        let (trace, parent, state) = match client.via_proxy.then(|| Parent::of(request.headers())).flatten() {
            Some(Parent { sampled: false, .. }) => return None,
            Some(Parent { trace, span, .. }) => (trace, Some(span), parent::state(request.headers())),
            None if self.sample.holds(u64::from_le_bytes(luck)) => (trace, None, String::new()),
            None => return None,
        };
        let cut = |text: &str, most| text.chars().take(most).collect::<String>().into_boxed_str();
        let (path, method) = (cut(request.uri().path(), LONGEST_PATH), cut(request.method().as_str(), LONGEST_METHOD));
        Some(Traced { trace, span, parent, state: state.into(), scheme: client.proto.name(), path, method })
    }

    /// Takes the trace of a request that was answered.
    pub fn end(&self, of: Traced, went: Went<'_>, sheet: &Sheet) {
        let Went { method, route, request, status, refused, began, took } = went;
        let (method, route, request) = (method.into(), route.into(), request.into());
        let trace = Trace { of, method, route, request, status, refused, began, took, laps: sheet.laps().into() };
        let spans = trace.spans();
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(trace).is_err()) {
            self.spans.unqueued.add(spans);
        }
    }
}

impl Traced {
    /// Returns the trace's ID, as it is searched for.
    pub fn id(&self) -> String {
        hexadecimal(&self.trace)
    }

    /// Returns the ID of a stage's span: different for each stage, and as hard to guess as the request's own.
    fn stage(&self, number: usize) -> [u8; 8] {
        u64::from_le_bytes(self.span).wrapping_add(number as u64 + 1).max(1).to_le_bytes()
    }
}
