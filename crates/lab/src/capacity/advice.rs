//! Which changes would help, and by how much: the model with one thing changed. And which settings suit this machine.

use super::demand::Operation;
use super::predict::{Generator, stations};
use super::probe::Probes;
use super::probe::hash::{Choice, Parameters};
use super::simulate::{Arrivals, simulate};
use super::stations::{Station, Stations};
use serde::{Deserialize, Serialize};

/// The operations that each change is evaluated for.
pub const LOOKED_AT: [Operation; 4] = [Operation::SignIn, Operation::Refresh, Operation::Introspect, Operation::Day];

/// One change to the machine or to its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What would change.
    pub what: String,
    /// The factor by which the limit of each of [`LOOKED_AT`] would be multiplied.
    pub limits: [f64; 4],
    /// The factor by which the 95th percentile of a sign-in at half of today's limit would be multiplied.
    pub sign_in_p95: f64,
    /// What a reader has to know about it.
    pub note: String,
}

/// A limit has to grow by this factor for a change to be worth it.
pub const WORTH_IT: f64 = 1.05;
/// A change that only shortens sign-ins has to reach this factor: the model's times are less certain than its limits.
const SOONER: f64 = 0.9;

/// Sign-ins simulated for each change: with a quarter of them, chance moved the factor by more than [`SOONER`] allows.
const SIGN_INS: usize = 16_000;

/// From this factor on down, the report says that a limit is lowered.
const LOSS: f64 = 0.95;

impl Change {
    /// Whether any limit grows enough to be worth the change.
    pub fn raises(&self) -> bool {
        self.limits.iter().any(|limit| *limit >= WORTH_IT)
    }

    /// Whether it lowers a limit noticeably.
    pub fn lowers(&self) -> bool {
        self.limits.iter().any(|limit| *limit <= LOSS)
    }

    /// Whether it makes sign-ins faster by enough to be worth it.
    pub fn hastens(&self) -> bool {
        self.sign_in_p95 <= SOONER
    }
}

/// Returns the changes, each with its predicted effect.
pub fn changes(probes: &Probes) -> Vec<Change> {
    let today = stations(probes, Generator::Elsewhere);
    let limit = |stations: &Stations, operation| stations.needs(operation).bound();
    let half = Arrivals::People(limit(&today, Operation::SignIn) / 2.0);
    let p95 = |stations: &Stations| simulate(stations, Operation::SignIn, half, SIGN_INS).p95;
    let (limits, rested) = (LOOKED_AT.map(|operation| limit(&today, operation)), p95(&today));
    let change = |(what, changed, note): (String, Stations, &str)| {
        let mut at = 0;
        let limits = LOOKED_AT.map(|operation| {
            at += 1;
            limit(&changed, operation) / limits[at - 1]
        });
        Change { what, limits, sign_in_p95: p95(&changed) / rested, note: note.to_owned() }
    };
    let mut all: Vec<_> = alternatives(&today).into_iter().collect();
    all.extend(others(probes).map(|choice| {
        let what = format!("hash parameters {}", choice.parameters);
        (
            what,
            with_hash(&today, choice, own(probes)),
            "as strong by OWASP's list; hashes are replaced as people sign in",
        )
    }));
    all.into_iter().map(change).collect()
}

/// The sign-ins with a number of hash workers, each like this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Staffed {
    /// The number of workers.
    pub workers: usize,
    /// Sign-ins per second at the limit.
    pub bound: f64,
    /// The station that is full then.
    pub bottleneck: Station,
    /// The shares of this machine's processor time for hashing and for signing.
    pub shares: (f64, f64),
}

/// The most hash workers that are considered.
const MOST_WORKERS: usize = 64;

/// Returns the limit by number of hash workers, up to the first that is not worth it, where something else is full.
pub fn staffed(today: &Stations) -> Vec<Staffed> {
    let with = |workers: usize| {
        let needs = with_workers(today, workers).needs(Operation::SignIn);
        let bottleneck = needs.bottleneck().unwrap_or(Station::Cores);
        Staffed { workers, bound: needs.bound(), bottleneck, shares: (needs.hashing_share, needs.signing_share) }
    };
    let mut rows = vec![with(0)];
    for workers in 1..=MOST_WORKERS {
        let (before, next) = (rows[workers - 1].bound, with(workers));
        rows.push(next);
        if next.bound < before * WORTH_IT {
            break;
        }
    }
    rows
}

/// Adds this many machines like this one that do nothing but hash for it.
fn with_workers(today: &Stations, workers: usize) -> Stations {
    let own = today.pool.threads as f64 / today.pool.each();
    Stations { pool: super::stations::Pool { workers: own * workers as f64, ..today.pool.clone() }, ..today.clone() }
}

fn alternatives(today: &Stations) -> [(String, Stations, &'static str); 4] {
    [
        (
            format!("{} cores in place of {}", today.cores * 2, today.cores),
            more_cores(today, 2),
            "of the same kind; sharing the memory slows hashing as it does from one core to all here",
        ),
        (
            "a disk ten times as fast".to_owned(),
            faster_disk(today, 10.0),
            "the time of an fsync; its processor time stays",
        ),
        (
            "PostgreSQL on another machine".to_owned(),
            postgres(today),
            "assumed: 16 connections, 0.3 ms a round trip and 60 µs of these cores for each",
        ),
        (
            "a hash worker like this machine".to_owned(),
            with_workers(today, 1),
            "that does nothing else; sign-ins wait for the network as well",
        ),
    ]
}

/// Multiplies the cores, and the threads that hash with them.
pub fn more_cores(today: &Stations, times: usize) -> Stations {
    let mut changed = today.clone();
    changed.cores *= times;
    changed.pool.threads *= times;
    changed
}

/// Makes the disk this many times as fast.
pub fn faster_disk(today: &Stations, times: f64) -> Stations {
    let mut changed = today.clone();
    changed.writer.sync.iter_mut().for_each(|time| *time /= times);
    changed
}

/// A database server reached over a network: each fetch and each batch is a round trip, and many commits run at once.
///
/// Nothing keeps a batch waiting but a lack of connections: each is sent at once, and is a commit of its own.
pub fn postgres(today: &Stations) -> Stations {
    const ROUND_TRIP: f64 = 0.3e-3;
    const CPU: f64 = 60e-6;
    const CONNECTIONS: usize = 16;
    let mut changed = today.clone();
    changed.round_trip = ROUND_TRIP;
    // Most fetches hold three or four reads.
    changed.read = CPU / 3.5;
    // A batch ends with its commit, so that both are one round trip.
    let sync = changed.writer.sync.iter().map(|time| time + ROUND_TRIP).collect();
    let (at_once, group, pace, enough) = (CONNECTIONS, 1, 0.0, 0);
    changed.writer = super::stations::Writer { commit: CPU, batch: 0.0, sync, at_once, group, pace, enough };
    changed
}

/// Returns the measured choices of others that are as strong as the default.
fn others(probes: &Probes) -> impl Iterator<Item = &Choice> {
    let today = probes.hashing.parameters;
    let measured = probes.hashing.choices.iter().filter(|choice| choice.rate.is_some());
    measured.filter(move |choice| choice.source == "OWASP" && choice.parameters != today)
}

/// Returns today's parameters, measured in the same way as the others.
fn own(probes: &Probes) -> Option<&Choice> {
    let today = probes.hashing.parameters;
    probes.hashing.choices.iter().find(|choice| choice.parameters == today)
}

/// Applies the cost of such a hash. `own` is today's cost measured beside it: samples of different times do not
/// compare.
fn with_hash(today: &Stations, choice: &Choice, own: Option<&Choice>) -> Stations {
    let (Some(rate), Some(lanes)) = (choice.rate, choice.together) else { return today.clone() };
    let mut changed = today.clone();
    let own_rate = own.and_then(|own| own.rate);
    let times = own_rate.unwrap_or(today.pool.threads as f64 / today.pool.each()) / rate;
    for paces in [&mut changed.pool.alone, &mut changed.pool.crowded] {
        paces.iter_mut().for_each(|time| *time *= times);
    }
    // Its own best number of lanes has that rate; the time of one hash alone was measured.
    let each = today.pool.each() * times;
    changed.pool.crowded = (1..=lanes).map(|together| each * together as f64).collect();
    let own_single = own.and_then(|own| own.single_ms).zip(today.pool.alone.first());
    let single = choice.single_ms.map(|single| match own_single {
        Some((own, known)) => known * 1e3 * single / own,
        None => single,
    });
    if let Some(single) = single {
        changed.pool.alone = (1..=lanes).map(|together| (single / 1e3).max(each * together as f64)).collect();
        changed.pool.crowded[0] = changed.pool.crowded[0].max(single / 1e3);
    }
    changed.pool.lanes = lanes;
    changed
}

/// The settings that suit this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `hash.threads`.
    pub threads: usize,
    /// How many hashes a thread will run side by side; the server finds this out by itself.
    pub lanes: usize,
    /// `hash.memory`, in MiB: a quarter of the machine's, or what these threads and lanes need, if that is more. It is
    /// a ceiling, and stored hashes may have larger parameters than today's.
    pub memory_mib: u64,
    /// How much of it these threads and lanes use, in MiB.
    pub in_use_mib: u64,
    /// `hash.argon2`.
    pub parameters: Parameters,
    /// `store.readers`.
    pub readers: u32,
    /// Why these parameters.
    pub why: String,
}

/// The most that `store.readers` may be.
const MOST_READERS: u32 = 64;

/// Returns the settings that suit this machine.
pub fn settings(probes: &Probes) -> Settings {
    let today = stations(probes, Generator::Elsewhere);
    let default = probes.hashing.parameters;
    let own = own(probes).and_then(|own| own.rate);
    let gain = |choice: &Choice| choice.rate.zip(own).map_or(1.0, |(rate, own)| rate / own);
    // Less memory is not worth it: memory is what an attacker has to buy.
    let large = others(probes).filter(|choice| choice.parameters.memory_kib >= default.memory_kib);
    let better = large.filter(|choice| gain(choice) > 1.1).max_by(|one, other| gain(one).total_cmp(&gain(other)));
    let (parameters, lanes, why) = match better {
        Some(best) => (
            best.parameters,
            best.together.unwrap_or(1),
            format!(
                "as strong by OWASP's list as the default, with more memory, and {:.2} times as fast here",
                gain(best)
            ),
        ),
        None if own.is_none() => (default, today.pool.lanes, "the default; others were not measured".to_owned()),
        None => (default, today.pool.lanes, "the default; nothing that is as strong and as large is faster".to_owned()),
    };
    // A connection is held only while it reads: this many are in use at the limit of the operation that reads most.
    let introspect = today.needs(Operation::Introspect).bound();
    let reading = introspect * Operation::Introspect.demand().reads * today.read;
    let readers = ((reading / 0.7).ceil() as u32).clamp(2, MOST_READERS);
    let bytes = (today.pool.threads * lanes) as u64 * u64::from(parameters.memory_kib) * 1024;
    let in_use_mib = bytes.div_ceil(1 << 20);
    let memory_mib = ((probes.machine.memory / 4) >> 20).max(in_use_mib);
    Settings { threads: today.pool.threads, lanes, memory_mib, in_use_mib, parameters, readers, why }
}

/// Describes in a line what limits an operation.
pub fn limit(bottleneck: Station, (hashing, signing): (f64, f64)) -> String {
    match bottleneck {
        Station::Cores if hashing >= 0.5 => format!("cores ({:.0} % of it hashing)", hashing * 100.0),
        Station::Cores if signing >= 0.3 => format!("cores ({:.0} % of it signing)", signing * 100.0),
        other => other.name().to_owned(),
    }
}
