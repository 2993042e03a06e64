//! The machine as queues: cores shared by network threads, writer and hashing; the threads that hash; the one writer
//! and its disk. What an operation costs each of them, and which of them sets the limit.

use super::demand::{Act, Operation};
use serde::{Deserialize, Serialize};

/// What SQLite's writer has as [`Writer::pace`].
pub const PACE: f64 = store::sqlite::PACE.as_nanos() as f64 / 1e9;

/// The shares at which [`Late`] has values.
const SHARES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

/// One queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Station {
    /// All cores.
    Cores,
    /// The threads that hash, if there are fewer of them than cores.
    Hashing,
    /// The one writer: its statements, then the disk.
    Writer,
    /// The load generator's one thread, if it runs here.
    Generator,
}

impl Station {
    /// Returns the name in reports.
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
    /// Processor time of a commit, without its batches.
    pub commit: f64,
    /// Processor time of one batch.
    pub batch: f64,
    /// The disk's times for a commit, all equally likely.
    pub sync: Vec<f64>,
    /// How many commits may be in flight at the same time: one into a file; with a database server, one per connection.
    pub at_once: usize,
    /// The most batches in one commit.
    pub group: usize,
    /// The least time between the beginnings of two commits while several callers write; zero if each begins at once.
    pub pace: f64,
    /// So many waiting batches do not wait for that time to pass.
    pub enough: usize,
}

impl Writer {
    /// Returns the mean time of the disk.
    pub fn mean_sync(&self) -> f64 {
        self.sync.iter().sum::<f64>() / self.sync.len().max(1) as f64
    }

    /// Returns a random time of the disk; `chance` is from 0 to 1.
    pub fn some_sync(&self, chance: f64) -> f64 {
        let place = (chance * self.sync.len() as f64) as usize;
        self.sync.get(place).or(self.sync.last()).copied().unwrap_or(0.0)
    }

    /// Returns the writer's time per batch when it is fully loaded: groups are then as large as allowed.
    fn least(&self) -> f64 {
        let group = self.group as f64;
        let took = (self.commit + self.batch * group + self.mean_sync()).max(self.pace);
        took / group / self.at_once as f64
    }

    /// Returns how many batches share a commit at this rate of batches per second.
    fn together(&self, rate: f64) -> f64 {
        // A group gathers while the one before it is written. Fifty rounds are enough: each further batch adds only its
        // own time.
        let mut group = 1.0_f64;
        for _ in 0..50 {
            let took = (self.commit + self.batch * group + self.mean_sync()).max(self.pace);
            group = (rate * took / self.at_once as f64).clamp(1.0, self.group as f64);
        }
        group
    }
}

/// The threads that hash; times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Threads.
    pub threads: usize,
    /// The most passwords side by side on each thread under load.
    pub lanes: usize,
    /// The time of a batch of 1, 2, … on one thread while the others rest.
    pub alone: Vec<f64>,
    /// The same while all threads of the measured machine hash.
    pub crowded: Vec<f64>,
    /// How many threads those were.
    pub crowd: usize,
    /// The extra time of a batch on a thread that was idle before: its memory has left the caches.
    pub rouse: f64,
    /// Hashes per second that other machines compute.
    pub workers: f64,
}

impl Pool {
    /// Returns the time of a batch while `active` threads hash: they share the memory.
    pub fn batch(&self, together: usize, active: usize) -> f64 {
        let at = |times: &[f64]| {
            let last = times.len().max(1);
            let time = times.get(together.clamp(1, last) - 1).copied().unwrap_or(0.0);
            // Beyond what was measured, time grows with the number of passwords.
            time * (together.max(last) as f64 / last as f64)
        };
        let (alone, crowded) = (at(&self.alone), at(&self.crowded));
        let crowd = self.crowd.max(2);
        let more = (crowded - alone).max(0.0) / (crowd - 1) as f64;
        let active = active.max(1);
        // Beyond what was measured, another thread may add nothing, but takes nothing from all together.
        let most = if active > crowd { crowded.max(alone) * active as f64 / crowd as f64 } else { f64::INFINITY };
        (alone + more * (active - 1) as f64).min(most)
    }

    /// Returns the processor time of one hash under load.
    pub fn each(&self) -> f64 {
        self.batch(self.lanes, self.threads) / self.lanes as f64
    }
}

/// How much more everything but a hash or a signature costs while all cores hash: the caches hold other data, and a
/// thread that hashes has to give way. The sooner a request follows another, the more of its data is still cached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cold {
    /// With few requests: requests per second on each core, and the factor of their cost.
    pub seldom: (f64, f64),
    /// With many requests.
    pub often: (f64, f64),
}

impl Cold {
    /// No extra cost.
    pub const NEVER: Cold = Cold { seldom: (1.0, 1.0), often: (2.0, 1.0) };

    /// Returns the factor of a request's cost at this rate per core. It depends on the order of magnitude of the time
    /// between two requests, because data leaves the caches in the order of their sizes.
    pub fn times(&self, rate: f64) -> f64 {
        let ((few, dear), (many, cheap)) = (self.seldom, self.often);
        (dear + (cheap - dear) * along(rate, few, many)).clamp(1.0, dear.max(cheap).max(1.0))
    }
}

/// Returns how far a rate lies between few and many, by orders of magnitude: 0 up to `few`, 1 at `many`, more beyond.
fn along(rate: f64, few: f64, many: f64) -> f64 {
    if many <= few || rate <= few { 0.0 } else { (rate / few).ln() / (many / few).ln() }
}

/// How much longer than usual a thread takes to wake up while all cores hash, in seconds, at 50, 90, 95, 99, 99.9 and
/// 100 %; this includes the time that requests arriving together wait for each other. The more often threads wake up,
/// the more often a hashing thread has only just been scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// With few requests: requests per second on each core, and how late.
    pub seldom: (f64, [f64; 6]),
    /// With many requests.
    pub often: (f64, [f64; 6]),
}

impl Late {
    /// No lateness.
    pub const NEVER: Late = Late { seldom: (1.0, [0.0; 6]), often: (2.0, [0.0; 6]) };

    /// Returns the lateness at this rate of requests per second on each core.
    pub fn at(&self, rate: f64) -> [f64; 6] {
        let ((few, less), (many, more)) = (self.seldom, self.often);
        let along = along(rate, few, many).min(1.0);
        std::array::from_fn(|place| less[place] + (more[place] - less[place]) * along)
    }
}

/// Draws the lateness of one request; `chance` is from 0 to 1.
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
    /// A key-set request that directly follows another.
    pub request: f64,
    /// The extra cost of a request that finds its thread asleep.
    pub rouse: f64,
    /// The same for the load generator.
    pub rouse_generator: f64,
    /// What everything else costs while all cores hash.
    pub cold: Cold,
    /// What hashing loses per thread that gets work meanwhile, beyond the core time of that work: the hashing thread
    /// gives way, and comes back to caches that hold other data.
    pub toll: f64,
    /// The time from when a thread gets work until it runs: on an idle machine, and while all cores hash.
    pub wake: (f64, f64),
    /// How much longer that takes while all cores hash.
    pub late: Late,
    /// A point read.
    pub read: f64,
    /// How long a fetch waits for a database on another machine; zero for a file.
    pub round_trip: f64,
    /// A signature with RS256, ES256 and EdDSA.
    pub sign: [f64; 3],
    /// The writer.
    pub writer: Writer,
    /// Hashing.
    pub pool: Pool,
    /// What asking for the key set costs the load generator, if it runs on the same cores.
    pub generator: Option<f64>,
    /// What each start of an open loop costs it besides.
    pub pacing: f64,
}

/// How much of each station an operation needs: seconds of it per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// By station, the most needed one first.
    pub stations: Vec<(Station, f64)>,
    /// The share of hashing in what it needs of the cores.
    pub hashing_share: f64,
    /// The same for signing.
    pub signing_share: f64,
    /// Batches in a commit at the limit.
    pub together: f64,
}

impl Needs {
    /// Returns the operations per second at which the first station is full.
    pub fn bound(&self) -> f64 {
        self.stations.first().map_or(f64::INFINITY, |(_, need)| 1.0 / need)
    }

    /// Returns how much of this station an operation needs.
    pub fn of(&self, station: Station) -> f64 {
        self.stations.iter().find(|(found, _)| *found == station).map_or(0.0, |(_, need)| *need)
    }

    /// Returns the first station.
    pub fn bottleneck(&self) -> Option<Station> {
        self.stations.first().map(|(station, _)| *station)
    }

    /// Returns the station after it, with the rate at which that one would be full.
    pub fn next(&self) -> Option<(Station, f64)> {
        self.stations.get(1).map(|(station, need)| (*station, 1.0 / need))
    }
}

impl Stations {
    /// Returns the processor time of an act on a network thread: the part for warm caches, and the fixed part.
    pub fn light(&self, act: Act) -> (f64, f64) {
        match act {
            Act::Work(weight) => (weight * self.request, 0.0),
            Act::Read(many) => (f64::from(many) * self.read, 0.0),
            Act::Sign(alg) => (0.0, self.sign[alg as usize]),
            Act::Commit | Act::Hash => (0.0, 0.0),
        }
    }

    /// Returns the factor of light work's cost at this share of hashing in all processor time and this rate of requests
    /// per second.
    pub fn chill(&self, hashing: f64, requests: f64) -> f64 {
        1.0 + (self.cold.times(requests / self.cores as f64) - 1.0) * hashing.clamp(0.0, 1.0)
    }

    /// Returns what an operation needs of each station at its limit.
    pub fn needs(&self, operation: Operation) -> Needs {
        /// After this many halvings nothing is left between the two ends.
        const ROUNDS: usize = 60;
        // The limit determines how many batches share a commit and how many hashes other machines take over, and both
        // determine the limit. Below the limit there is room for more, above it there is not: bisection finds it.
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

    /// Returns what an operation needs of each station at this rate per second.
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
        // A request that finds all threads busy wakes none: their share is u = x (bulk + (1 - u) rousing) / cores.
        // A thread wakes up for each answer of another machine.
        let fetches = if self.round_trip > 0.0 { demand.fetches } else { 0.0 };
        let wakes = demand.requests + demand.hashes + demand.batches + fetches;
        let rousing = wakes * self.rouse + asks * self.rouse_generator;
        let cores = self.cores as f64;
        let awake = (rate * (bulk + signing + rousing) / (cores + rate * rousing)).clamp(0.0, 1.0);
        let rouse = (1.0 - awake) * rousing;
        let hashing = hash / (hash + bulk + signing + rouse);
        let cold = self.chill(hashing, rate * demand.requests);
        // A request right after another takes the core from no hashing thread.
        let turns = (1.0 - awake) * (asks + demand.requests + demand.hashes + 2.0 * demand.batches + fetches);
        let toll = turns * self.toll * hashing;
        let whole = hash + signing + (bulk + rouse) * cold + toll;
        let generator = (asking + (1.0 - awake) * asks * self.rouse_generator) * cold;
        let mut stations = vec![
            (Station::Cores, whole / self.cores as f64),
            (Station::Writer, demand.batches * self.writer.least()),
            (Station::Generator, generator),
        ];
        // With as many threads as cores, the cores are full first.
        if self.pool.threads < self.cores {
            stations.push((Station::Hashing, hash / self.pool.threads as f64));
        }
        stations.retain(|(_, need)| *need > 0.0);
        stations.sort_by(|one, other| other.1.total_cmp(&one.1));
        Needs { stations, hashing_share: hash / whole, signing_share: signing / whole, together }
    }

    /// Returns the processor time on network threads while the caches are warm.
    fn warm(&self, operation: Operation) -> f64 {
        let requests =
            operation.courses().iter().flat_map(|(share, requests)| requests.iter().map(move |r| (share, r)));
        requests.map(|(share, request)| share * request.acts.iter().map(|act| self.light(*act).0).sum::<f64>()).sum()
    }
}
