//! Predicts from the measurements what the machine can carry. It takes [`Probes`] and nothing else: measurements of a
//! verification cannot influence it.

use super::demand::{Alg, BATCH, Operation};
use super::figure::Figure;
use super::probe::Probes;
use super::probe::hash::{Hashing, Lane};
use super::probe::http::{Http, NOW_AND_THEN, Slow};
use super::simulate::{Arrivals, Outcome, simulate};
use super::stations::{Cold, Late, Needs, PACE, Pool, Station, Stations, Writer};
use serde::{Deserialize, Serialize};
use store::sqlite::ENOUGH;

/// Where the load comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Other machines: people and applications.
    Elsewhere,
    /// The load generator on the same cores.
    Here,
}

/// The shares of the limit for which latencies are predicted.
pub const LEVELS: [f64; 4] = [0.25, 0.5, 0.75, 0.9];
/// Operations simulated per level: enough for a 99th percentile even of a kind that is one in twenty.
const OPERATIONS: usize = 20_000;

/// Builds the model of the machine as queues.
pub fn stations(probes: &Probes, generator: Generator) -> Stations {
    const MICRO: f64 = 1e-6;
    const MILLI: f64 = 1e-3;
    let http = &probes.http;
    // The time beyond the processor time of server and generator: two threads have to wake up.
    let spent = |slow: &Slow| slow.server_us.value + slow.generator_us.value;
    let wake = |slow: &Slow| ((slow.p50_ms.value * MILLI - spent(slow) * MICRO) / 2.0).max(0.0);
    let asking = http.generator_us.value * MICRO;
    Stations {
        cores: probes.machine.cores,
        request: http.server_us.value * MICRO,
        rouse: (http.rested.server_us.value - http.server_us.value).max(0.0) * MICRO,
        rouse_generator: (http.rested.generator_us.value - http.generator_us.value).max(0.0) * MICRO,
        cold: cold(probes),
        toll: toll(probes),
        wake: (wake(&http.rested), wake(&http.hashing)),
        late: late(probes),
        read: 1.0 / probes.storage.reads.value,
        round_trip: 0.0,
        sign: [Alg::Rs256, Alg::Es256, Alg::EdDsa].map(|alg| {
            let found = probes.signatures.iter().find(|one| one.alg == alg.name());
            found.map_or(0.0, |one| 1.0 / one.sign.value)
        }),
        writer: writer(probes),
        pool: pool(&probes.hashing, &probes.http),
        generator: (generator == Generator::Here).then_some(asking),
        pacing: match (generator, http.pacing_us) {
            (Generator::Here, Some(pacing)) => pacing.value * MICRO,
            _ => 0.0,
        },
    }
}

/// Returns how late threads are while all cores hash, with few requests and with many.
fn late(probes: &Probes) -> Late {
    let (http, cores) = (&probes.http, probes.machine.cores as f64);
    let beyond = |[p50, tail @ ..]: [f64; 5]| {
        let late = tail.map(|ms| (ms - p50).max(0.0) * 1e-3);
        [0.0, late[0], late[1], late[2], late[3], late[3]]
    };
    let (few, many) = (http.hashing.tail_ms, http.often.tail_ms.unwrap_or(http.hashing.tail_ms));
    Late { seldom: (NOW_AND_THEN / cores, beyond(few)), often: (http.often.rate.value / cores, beyond(many)) }
}

/// Returns what a request costs beside hashing, with few requests and with many.
fn cold(probes: &Probes) -> Cold {
    let (http, cores) = (&probes.http, probes.machine.cores as f64);
    let rested = http.rested.server_us.value + http.rested.generator_us.value;
    let times = |server: &Figure, generator: &Figure| match rested > 0.0 {
        true => (server.value + generator.value) / rested,
        false => 1.0,
    };
    let (seldom, often) = (&http.hashing, &http.often);
    Cold {
        seldom: (NOW_AND_THEN / cores, times(&seldom.server_us, &seldom.generator_us)),
        often: (often.rate.value / cores, times(&often.server_us, &often.generator_us)),
    }
}

/// Returns what hashing loses per thread that wakes up: its loss beside many requests, less what server and generator
/// spent on them. Two threads wake up per request.
fn toll(probes: &Probes) -> f64 {
    let often = &probes.http.often;
    let lost = often.hashes_left.map_or(0.0, |left| 1.0 - left.value) * probes.machine.cores as f64;
    let beyond = lost / often.rate.value.max(1.0) - (often.server_us.value + often.generator_us.value) * 1e-6;
    (beyond / 2.0).max(0.0)
}

/// Separates the cost of a commit from that of each batch in it: a line through the processor times of lone batches and
/// large groups.
fn writer(probes: &Probes) -> Writer {
    let storage = &probes.storage;
    let unknown = Writer { commit: 0.0, batch: 0.0, sync: vec![], at_once: 1, group: 256, pace: PACE, enough: ENOUGH };
    let (one, many) = match storage.groups.as_slice() {
        [first, .., last] => (first, last),
        _ => return unknown,
    };
    let shares = (1.0 / one.together.value.max(1.0), 1.0 / many.together.value.max(1.0));
    let apart = (shares.0 - shares.1).max(1e-3);
    let commit = ((one.cpu_us.value - many.cpu_us.value) / apart).max(0.0);
    let batch = (many.cpu_us.value - commit * shares.1).max(0.0);
    let sync = storage.sync_ms.iter().map(|ms| ms / 1e3).collect();
    Writer { commit: commit * 1e-6, batch: BATCH * batch * 1e-6, sync, ..unknown }
}

/// Uses as many lanes as the server's own pool chose, and its rate: the pool was watched for seconds, a row of the
/// table for a fraction of one. The differences between the rows come from the table, each as slow as it was at worst:
/// with one hash on each thread it depends on where their memory happens to be whether both fit into a shared cache.
fn pool(hashing: &Hashing, http: &Http) -> Pool {
    let threads = hashing.threads();
    let mut alone: Vec<f64> = hashing.of_threads(1).map(Lane::batch).collect();
    let crowded: Vec<&Lane> = hashing.of_threads(threads).collect();
    let lanes = http.lanes.clamp(1, crowded.len().max(1));
    let faster = crowded.get(lanes - 1).map(|row| row.at_worst() / http.pool.value).filter(|times| times.is_finite());
    let faster = faster.unwrap_or(1.0);
    let rested = hashing.rested_ms.map_or(0.0, |rested| rested.value * 1e-3);
    let rouse = alone.first().map_or(0.0, |one| (rested - one).max(0.0));
    if threads == 1 {
        // With one thread, that thread is the pool.
        alone.iter_mut().for_each(|time| *time *= faster);
    }
    Pool {
        threads,
        lanes,
        rouse,
        alone,
        crowded: crowded.iter().map(|lane| (threads * lane.together) as f64 / lane.at_worst() * faster).collect(),
        crowd: threads,
        workers: 0.0,
    }
}

/// The predicted latency at a share of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The share of the limit.
    pub share: f64,
    /// The rate offered then, per second.
    pub offered: f64,
    /// The simulated result.
    pub outcome: Outcome,
}

/// What the machine can carry of one kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The kind of operation.
    pub operation: Operation,
    /// The limit, per second.
    pub bound: f64,
    /// The station that is full then.
    pub bottleneck: Station,
    /// The station that would be full next, and at which rate.
    pub next: Option<(Station, f64)>,
    /// The shares of the processor time for hashing and for signing.
    pub shares: (f64, f64),
    /// Batches in a commit at the limit.
    pub together: f64,
    /// The predictions below the limit.
    pub levels: Vec<Level>,
}

/// Predicts every kind of operation.
pub fn forecasts(stations: &Stations) -> Vec<Forecast> {
    Operation::ALL.into_iter().map(|operation| forecast(stations, operation)).collect()
}

/// Predicts one kind of operation.
pub fn forecast(stations: &Stations, operation: Operation) -> Forecast {
    let needs = stations.needs(operation);
    let bound = needs.bound();
    let level = |share: f64| {
        let offered = bound * share;
        Level { share, offered, outcome: simulate(stations, operation, Arrivals::People(offered), OPERATIONS) }
    };
    let Needs { hashing_share, signing_share, together, .. } = needs;
    Forecast {
        operation,
        bound,
        bottleneck: needs.bottleneck().unwrap_or(Station::Cores),
        next: needs.next(),
        shares: (hashing_share, signing_share),
        together,
        levels: LEVELS.map(level).into(),
    }
}
