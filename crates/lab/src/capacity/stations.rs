//! The machine as queues: cores that network threads, writer and hashing share, threads that hash, the one writer and its
//! disk. What an operation costs each of them, and which of them sets the limit.

use super::demand::{Act, Operation};
use serde::{Deserialize, Serialize};

/// How far apart commits begin while several callers write, in seconds.
pub const PACE: f64 = store::sqlite::PACE.as_nanos() as f64 / 1e9;

/// The shares at which [`Late`] is told.
const SHARES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

/// One queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Station {
    /// All cores.
    Cores,
    /// The threads that hash, where they are fewer than cores.
    Hashing,
    /// The one writer: its statements, then the disk.
    Writer,
    /// The load generator's one thread, where it runs here.
    Generator,
}

impl Station {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Station::Cores => "cores",
            Station::Hashing => "hashing threads",
            Station::Writer => "writer and disk",
            Station::Generator => "load generator",
        }
    }
}

/// The writer and its disk; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writer {
    /// Processor time of a commit beside its batches.
    pub commit: f64,
    /// Processor time of one batch.
    pub batch: f64,
    /// Times of the disk for a commit, each as likely as the others.
    pub sync: Vec<f64>,
    /// How many commits may be on their way at the same time: one where a file is written, connections where a server writes.
    pub at_once: usize,
    /// The most batches in one commit.
    pub group: usize,
}

impl Writer {
    /// The mean time of the disk.
    pub fn mean_sync(&self) -> f64 {
        self.sync.iter().sum::<f64>() / self.sync.len().max(1) as f64
    }

    /// A time of the disk; `chance` is from 0 to 1.
    pub fn some_sync(&self, chance: f64) -> f64 {
        let place = (chance * self.sync.len() as f64) as usize;
        self.sync.get(place).or(self.sync.last()).copied().unwrap_or(0.0)
    }

    /// What a batch takes of the writer when it has all it can do: groups are as large as they may be then.
    fn least(&self) -> f64 {
        let group = self.group as f64;
        let took = (self.commit + self.batch * group + self.mean_sync()).max(PACE);
        took / group / self.at_once as f64
    }

    /// Batches that share a commit when so many come in a second.
    fn together(&self, rate: f64) -> f64 {
        // A group gathers while the one before it is written. Some rounds are enough: more batches take longer only by their
        // own time.
        let mut group = 1.0_f64;
        for _ in 0..50 {
            let took = (self.commit + self.batch * group + self.mean_sync()).max(PACE);
            group = (rate * took / self.at_once as f64).clamp(1.0, self.group as f64);
        }
        group
    }
}

/// Hashing; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Threads.
    pub threads: usize,
    /// Passwords side by side on each under load, at the most.
    pub lanes: usize,
    /// A batch of 1, 2, … on one thread while the others rest.
    pub alone: Vec<f64>,
    /// The same while all threads of the measured machine hash.
    pub crowded: Vec<f64>,
    /// How many those were.
    pub crowd: usize,
    /// What a batch takes beyond that on a thread that had nothing to do before: its memory has left the caches.
    pub rouse: f64,
    /// Hashes a second that other machines compute.
    pub workers: f64,
}

impl Pool {
    /// How long a batch takes when so many threads are at it: they share the memory.
    pub fn batch(&self, together: usize, active: usize) -> f64 {
        let at = |times: &[f64]| {
            let last = times.len().max(1);
            let time = times.get(together.clamp(1, last) - 1).copied().unwrap_or(0.0);
            // Beyond what was measured each takes its time.
            time * (together.max(last) as f64 / last as f64)
        };
        let (alone, crowded) = (at(&self.alone), at(&self.crowded));
        let more = (crowded - alone).max(0.0) / (self.crowd.max(2) - 1) as f64;
        alone + more * (active.max(1) - 1) as f64
    }

    /// Processor time of one hash under load.
    pub fn each(&self) -> f64 {
        self.batch(self.lanes, self.threads) / self.lanes as f64
    }
}

/// How much more anything but a hash or a signature costs while all cores hash: the caches are full of something else, and a
/// thread that hashes has to step aside. The sooner one request follows another, the more of what it needs is still there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cold {
    /// Where few come: requests a second on each core, and how many times as much one costs.
    pub seldom: (f64, f64),
    /// Where many come.
    pub often: (f64, f64),
}

impl Cold {
    /// Where it costs nothing more.
    pub const NEVER: Cold = Cold { seldom: (1.0, 1.0), often: (2.0, 1.0) };

    /// How many times as much a request costs where so many come in a second on each core: by the order of magnitude of the
    /// time between two, since caches are lost in the order of their sizes.
    pub fn times(&self, rate: f64) -> f64 {
        let ((few, dear), (many, cheap)) = (self.seldom, self.often);
        (dear + (cheap - dear) * along(rate, few, many)).clamp(1.0, dear.max(cheap).max(1.0))
    }
}

/// How far a rate lies on the way from few to many, by orders of magnitude: 0 up to the one, 1 at the other, more beyond.
fn along(rate: f64, few: f64, many: f64) -> f64 {
    if many <= few || rate <= few { 0.0 } else { (rate / few).ln() / (many / few).ln() }
}

/// How much longer than usual it takes until a thread that wakes up is at work while all cores hash, in seconds, at
/// 50, 90, 95, 99, 99.9 and 100 %; with what requests that come together wait for each other in it. The more often threads wake up,
/// the more often whoever hashes has only just been given its turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// Where few come: requests a second on each core, and how late.
    pub seldom: (f64, [f64; 6]),
    /// Where many come.
    pub often: (f64, [f64; 6]),
}

impl Late {
    /// Where nobody is late.
    pub const NEVER: Late = Late { seldom: (1.0, [0.0; 6]), often: (2.0, [0.0; 6]) };

    /// The same where so many come in a second on each core.
    pub fn at(&self, rate: f64) -> [f64; 6] {
        let ((few, less), (many, more)) = (self.seldom, self.often);
        let along = along(rate, few, many).min(1.0);
        std::array::from_fn(|place| less[place] + (more[place] - less[place]) * along)
    }
}

/// How late that is for one of them; `chance` is from 0 to 1.
pub fn lateness(late: &[f64; 6], chance: f64) -> f64 {
    for (shares, times) in SHARES.windows(2).zip(late.windows(2)) {
        if chance <= shares[1] {
            let along = ((chance - shares[0]) / (shares[1] - shares[0])).max(0.0);
            return times[0] + (times[1] - times[0]) * along;
        }
    }
    late[late.len() - 1]
}

/// A machine that runs the server; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stations {
    /// Cores.
    pub cores: usize,
    /// A key-set request where one follows the other.
    pub request: f64,
    /// What a request costs beside that when it finds its thread asleep.
    pub rouse: f64,
    /// The same for the load generator.
    pub rouse_generator: f64,
    /// What everything else costs while all cores hash.
    pub cold: Cold,
    /// What hashing loses to each thread that is given something to do meanwhile, beyond what that takes of the cores: it steps
    /// aside, and comes back to caches that hold something else.
    pub toll: f64,
    /// From when a thread has something to do until it is at it: on an idle machine, and while all cores hash.
    pub wake: (f64, f64),
    /// How much longer that takes while all cores hash.
    pub late: Late,
    /// A point read.
    pub read: f64,
    /// What a fetch waits for a database on another machine; none where it is a file.
    pub round_trip: f64,
    /// A signature with RS256, ES256 and EdDSA.
    pub sign: [f64; 3],
    /// The writer.
    pub writer: Writer,
    /// Hashing.
    pub pool: Pool,
    /// What asking for the key set costs the load generator, where it runs on the same cores.
    pub generator: Option<f64>,
}

/// How much of each station an operation needs: seconds of it for each operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// By station, the most needed first.
    pub stations: Vec<(Station, f64)>,
    /// Of what it needs of the cores, the share that is hashing.
    pub hashing_share: f64,
    /// The same for signing.
    pub signing_share: f64,
    /// Batches in a commit at the limit.
    pub together: f64,
}

impl Needs {
    /// Operations a second at which the first station is full.
    pub fn bound(&self) -> f64 {
        self.stations.first().map_or(f64::INFINITY, |(_, need)| 1.0 / need)
    }

    /// The first station.
    pub fn bottleneck(&self) -> Option<Station> {
        self.stations.first().map(|(station, _)| *station)
    }

    /// The station behind it, with the rate at which it would be full.
    pub fn next(&self) -> Option<(Station, f64)> {
        self.stations.get(1).map(|(station, need)| (*station, 1.0 / need))
    }
}

impl Stations {
    /// Processor time of an act on a network thread: while the caches are warm, and what does not depend on them.
    pub fn light(&self, act: Act) -> (f64, f64) {
        match act {
            Act::Work(weight) => (weight * self.request, 0.0),
            Act::Read(many) => (f64::from(many) * self.read, 0.0),
            Act::Sign(alg) => (0.0, self.sign[alg as usize]),
            Act::Commit | Act::Hash => (0.0, 0.0),
        }
    }

    /// How many times as much light work costs when so much of all processor time is hashing and so many requests come in a
    /// second.
    pub fn chill(&self, hashing: f64, requests: f64) -> f64 {
        1.0 + (self.cold.times(requests / self.cores as f64) - 1.0) * hashing.clamp(0.0, 1.0)
    }

    /// What an operation needs of each station at its limit.
    pub fn needs(&self, operation: Operation) -> Needs {
        /// Halvings after which nothing is left between the two ends.
        const ROUNDS: usize = 60;
        // The limit says how many batches share a commit and how many hashes other machines take over, and both say the
        // limit. Below it there is room for more, above it there is not: between the two it is halved.
        let has_room = |rate: f64| self.needs_at(operation, rate).bound() > rate;
        let (mut below, mut above) = (0.0, 1.0);
        while has_room(above) && above < 1e12 {
            (below, above) = (above, above * 2.0);
        }
        for _ in 0..ROUNDS {
            let middle = f64::midpoint(below, above);
            *(if has_room(middle) { &mut below } else { &mut above }) = middle;
        }
        self.needs_at(operation, above)
    }

    /// What an operation needs of each station when so many come in a second.
    pub fn needs_at(&self, operation: Operation, rate: f64) -> Needs {
        let demand = operation.demand();
        let together = self.writer.together(rate * demand.batches);
        let away = if demand.hashes > 0.0 { (self.pool.workers / (rate * demand.hashes)).min(1.0) } else { 0.0 };
        let hash = demand.hashes * (1.0 - away) * self.pool.each();
        let write = demand.batches * (self.writer.batch + self.writer.commit / together);
        let signing = demand.rs256 * self.sign[0] + demand.es256 * self.sign[1] + demand.eddsa * self.sign[2];
        let here = f64::from(u8::from(self.generator.is_some()));
        let asks = here * demand.requests;
        let asking = self.generator.map_or(0.0, |cost| cost * demand.asking);
        let bulk = self.warm(operation) + asking + write;
        // Who comes while all threads are at work need not wake one: the share of u = x (bulk + (1 - u) rousing) / cores.
        let wakes = demand.requests + demand.hashes + demand.batches;
        let rousing = wakes * self.rouse + asks * self.rouse_generator;
        let cores = self.cores as f64;
        let awake = (rate * (bulk + signing + rousing) / (cores + rate * rousing)).clamp(0.0, 1.0);
        let rouse = (1.0 - awake) * rousing;
        let hashing = hash / (hash + bulk + signing + rouse);
        let cold = self.chill(hashing, rate * demand.requests);
        // Who comes right after another takes the core from nobody who hashes.
        let turns = (1.0 - awake) * (asks + demand.requests + demand.hashes + 2.0 * demand.batches);
        let toll = turns * self.toll * hashing;
        let whole = hash + signing + (bulk + rouse) * cold + toll;
        let generator = (asking + (1.0 - awake) * asks * self.rouse_generator) * cold;
        let mut stations = vec![
            (Station::Cores, whole / self.cores as f64),
            (Station::Writer, demand.batches * self.writer.least()),
            (Station::Generator, generator),
        ];
        // Where there are as many threads as cores, the cores are full first.
        if self.pool.threads < self.cores {
            stations.push((Station::Hashing, hash / self.pool.threads as f64));
        }
        stations.retain(|(_, need)| *need > 0.0);
        stations.sort_by(|one, other| other.1.total_cmp(&one.1));
        Needs { stations, hashing_share: hash / whole, signing_share: signing / whole, together }
    }

    /// Processor time on network threads while the caches are warm.
    fn warm(&self, operation: Operation) -> f64 {
        let requests =
            operation.courses().iter().flat_map(|(share, requests)| requests.iter().map(move |r| (share, r)));
        requests.map(|(share, request)| share * request.acts.iter().map(|act| self.light(*act).0).sum::<f64>()).sum()
    }
}
