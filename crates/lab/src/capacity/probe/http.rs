//! HTTP requests: what the cheapest one costs the server and the load generator, on an idle machine and on one that
//! hashes.

use super::busy::Busy;
use super::cpu_of;
use crate::capacity::figure::Figure;
use crate::private::{Private, Setup};
use load::Refusal;
use load::plan::{Arrivals, Pace, Plan, Workload};
use load::report::{Latency, Report};
use load::run::run;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The costs of requests for the key set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// Requests per second over 20 connections, with the generator on the same cores.
    pub rate: Figure,
    /// What the server spends on each of those, in microseconds.
    pub server_us: Figure,
    /// What the generator spends on each.
    pub generator_us: Figure,
    /// What the generator's pacer spends on each start of an open loop; `None` in results from before this field.
    #[serde(default)]
    pub pacing_us: Option<Figure>,
    /// Occasional requests on an idle machine.
    pub rested: Slow,
    /// The same while all cores hash.
    pub hashing: Slow,
    /// Many requests while all cores hash: a request costs less the sooner it follows another.
    pub often: Often,
    /// Hashes per second of the server's pool alone.
    pub pool: Figure,
    /// How many hashes side by side the pool chose.
    pub lanes: usize,
}

/// Occasional requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Median latency, in milliseconds.
    pub p50_ms: Figure,
    /// Latency at 50, 90, 95, 99 and 99.9 %, in milliseconds.
    pub tail_ms: [f64; 5],
    /// What the server spends on one request, in microseconds.
    pub server_us: Figure,
    /// What the generator spends on one request.
    pub generator_us: Figure,
}

/// Requests in quick succession while all cores hash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Often {
    /// Requests per second.
    pub rate: Figure,
    /// Latency at 50, 90, 95, 99 and 99.9 %, in milliseconds; `None` in results from before this field.
    #[serde(default)]
    pub tail_ms: Option<[f64; 5]>,
    /// What the server spends on one request, in microseconds.
    pub server_us: Figure,
    /// What the generator spends on one request.
    pub generator_us: Figure,
    /// Hashes per second beside them, as a share of the pool's rate alone just before and after; `None` in results from
    /// before this field.
    #[serde(default)]
    pub hashes_left: Option<Figure>,
}

#[derive(Default)]
struct Samples {
    p50_ms: Vec<f64>,
    tails: Vec<Vec<f64>>,
    rate: Vec<f64>,
    server_us: Vec<f64>,
    generator_us: Vec<f64>,
    pacing_us: Vec<f64>,
}

/// Connections of the closed loop.
const CONNECTIONS: usize = 20;
/// Requests per second of the open loop: few enough to find the server asleep, and as many as arrive while people sign
/// in, so that as much of their data has left the caches as then.
pub const NOW_AND_THEN: f64 = 1000.0;
/// The rate for many requests: that of a day's mix at its limit.
const ONE_UPON_ANOTHER: f64 = 5000.0;
const SPAN: Duration = Duration::from_millis(1000);
const WARMUP: Duration = Duration::from_millis(200);

/// Measures requests, sample by sample, on a private server.
pub struct Probe {
    server: Private,
    memory: u64,
    span: Duration,
    rate: Vec<f64>,
    server_us: Vec<f64>,
    generator_us: Vec<f64>,
    rested: Samples,
    hashing: Samples,
    often: Samples,
    pool: Vec<f64>,
    left: Vec<f64>,
    lanes: usize,
}

impl Probe {
    /// Starts a private server in this folder.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn new(program: &Path, within: PathBuf, (memory, quick): (u64, bool)) -> Result<Probe, Refusal> {
        let server = Private::start(&Setup { people: 1, within: Some(within), ..Setup::of(program) })?;
        let (empty, span) = (Vec::new, if quick { SPAN / 3 } else { SPAN });
        let (rested, hashing, often) = (Samples::default(), Samples::default(), Samples::default());
        Ok(Probe {
            server,
            memory,
            span,
            rate: empty(),
            server_us: empty(),
            generator_us: empty(),
            rested,
            hashing,
            often,
            pool: empty(),
            left: empty(),
            lanes: 1,
        })
    }

    /// Returns the PID of the server.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Takes one more sample of everything, with `lanes` passwords side by side while hashing.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn round(&mut self, lanes: usize) -> Result<(), Refusal> {
        let plan = Plan { warmup: WARMUP, duration: self.span, ..self.server.plan(Workload::Jwks)? };
        let closed = Pace::Closed { visitors: CONNECTIONS, pause: Duration::ZERO };
        let report = run(&Plan { pace: closed, ..plan.clone() }, None)?;
        let spent = report.server.map_or(0.0, |server| server.cpu_seconds * 1e6 / report.requests.max(1) as f64);
        self.rate.push(report.requests_per_second);
        self.server_us.push(spent);
        self.generator_us.push(asking(&report));
        let slow = Plan { pace: Pace::Open { rate: NOW_AND_THEN, visitors: CONNECTIONS }, ..plan };
        self.rested.take(&self.server, &slow)?;
        let busy = Busy::start(lanes, self.memory)?;
        // This maps its memory, and lets it reach its full rate.
        busy.rate(self.span / 3);
        // Random arrivals from here on: people who arrive together meet the slice that hashing has just been given.
        let slow = Plan { arrivals: Arrivals::Poisson, ..slow };
        let pace = Pace::Open { rate: ONE_UPON_ANOTHER, visitors: CONNECTIONS };
        let many = Plan { pace, ..slow.clone() };
        let before = busy.rate(self.span / 2);
        let (taken, beside) = busy.beside(|| self.often.take(&self.server, &many));
        taken?;
        let alone = f64::midpoint(before, busy.rate(self.span / 2));
        self.pool.push(alone);
        // If hashing got nothing done at all beside others that keep all cores busy, its loss is unknown.
        self.left.extend(Some(beside / alone).filter(|left| left.is_finite()));
        self.lanes = busy.lanes();
        self.hashing.take(&self.server, &slow)
    }

    /// Returns the results.
    pub fn done(self) -> Http {
        self.server.stop();
        Http {
            rate: Figure::of(&self.rate),
            server_us: Figure::of(&self.server_us),
            generator_us: Figure::of(&self.generator_us),
            pacing_us: (!self.rested.pacing_us.is_empty()).then(|| Figure::of(&self.rested.pacing_us)),
            rested: self.rested.figures(),
            hashing: self.hashing.figures(),
            often: self.often.many(&self.left),
            pool: Figure::of(&self.pool),
            lanes: self.lanes,
        }
    }
}

/// The shares of [`Slow::tail_ms`].
pub const TAIL: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

impl Samples {
    /// Returns the median of all samples, share by share.
    fn tail(&self) -> [f64; 5] {
        let at = |place: usize| {
            let values: Vec<f64> = self.tails.iter().filter_map(|tail| tail.get(place).copied()).collect();
            Figure::of(&values).value
        };
        [at(0), at(1), at(2), at(3), at(4)]
    }

    fn figures(&self) -> Slow {
        Slow {
            p50_ms: Figure::of(&self.p50_ms),
            tail_ms: self.tail(),
            server_us: Figure::of(&self.server_us),
            generator_us: Figure::of(&self.generator_us),
        }
    }

    fn many(&self, left: &[f64]) -> Often {
        Often {
            rate: Figure::of(&self.rate),
            tail_ms: Some(self.tail()),
            server_us: Figure::of(&self.server_us),
            generator_us: Figure::of(&self.generator_us),
            hashes_left: (!left.is_empty()).then(|| Figure::of(left)),
        }
    }

    /// Takes one more sample.
    fn take(&mut self, server: &Private, plan: &Plan) -> Result<(), Refusal> {
        let before = cpu_of(server.pid());
        let report = run(plan, None)?;
        let spent = cpu_of(server.pid()).saturating_sub(before);
        // The server's time includes the warm-up's requests, the report does not.
        let all = report.requests as f64 * (1.0 + plan.warmup.as_secs_f64() / plan.duration.as_secs_f64());
        self.rate.push(report.requests_per_second);
        self.server_us.push(spent.as_secs_f64() * 1e6 / all.max(1.0));
        self.generator_us.push(asking(&report));
        self.pacing_us.extend(report.pacing_us);
        self.p50_ms.push(report.latency.p50);
        let Latency { p50, p90, p95, p99, p999, .. } = report.latency;
        self.tails.push(vec![p50, p90, p95, p99, p999]);
        Ok(())
    }
}

/// Returns what the generator's thread spent on a request, in microseconds.
fn asking(report: &Report) -> f64 {
    report.generator_busiest * report.seconds * 1e6 / report.requests.max(1) as f64
}
