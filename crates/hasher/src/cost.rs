//! What jobs cost on this machine, alone and side by side, measured while it works.
//!
//! Several jobs of a kind side by side take a thread longer, but less than in proportion to their number. How many are
//! best depends on the parameters and on the machine, so it is learned: every batch is a measurement. While all threads
//! are busy, a kind starts with one job at a time, goes up step by step as long as that pays, and then stays at the
//! best number, trying its neighbors from time to time. A [calibration](crate::Calibration) is a head start.
//!
//! Lanes are compared by how long the thread ran, and callers wait for longer than that if others use the core, too:
//! so many times as long as it was on average ([`Costs::stretch`]).

use std::collections::HashMap;

use crate::{
    argon2::{self, Algorithm, Cost, Params, Version},
    bcrypt,
    formats::serial::Serial,
    job::Kind,
    policy::TAG_BYTES,
    took::Took,
};

/// Most jobs that run side by side on one thread.
pub(crate) const MAX_TOGETHER: usize = argon2::MAX_TOGETHER;
const _: () = assert!(bcrypt::MAX_TOGETHER == MAX_TOGETHER, "one limit for all kernels");
/// Most Argon2 jobs among them. Each costs a thread the memory of a hash, and more than four have paid on no machine so
/// far: by then the machine's memory is as busy as it can be.
pub(crate) const ARGON2_TOGETHER: usize = 4;
/// Most families that are measured separately, and how many of them may be serial, whose jobs run one at a time. A new
/// family replaces the one about which least is known.
const MAX_FAMILIES: usize = 64;
const MAX_SERIAL: usize = 16;
/// Weight of a new measurement in the moving mean: about the last thirty batches count.
const WEIGHT: f64 = 1.0 / 16.0;
/// A batch is taken at its word up to this many times the mean of the batches before it.
const MUCH: f64 = 4.0;
/// How many batches a calibration counts for.
const CALIBRATED: u32 = 8;
/// Measurements under load after which a number of lanes is known.
pub(crate) const SETTLED: u32 = 3;
/// Each additional lane must pay at least this much: it costs memory, and patience.
const GAIN: f64 = 1.03;
/// This many steps in a row that do not pay end the climb. Four lanes of Argon2 may be worth having where neither two
/// nor three are: they fill the registers.
pub(crate) const IN_VAIN: usize = 3;
/// One batch in so many tries a neighbor of the best number of lanes that is nearly as good.
const LOOK_AROUND: u32 = 16;
/// A neighbor that takes longer than the best by more than this factor is tried this many times less often.
const FAR: (f64, u32) = (1.05, 4);

/// Kinds whose jobs take the same time per unit of work (see [`Kind::work`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// How memory is addressed, and how much of it.
    Argon2(Algorithm, Cost),
    /// All costs: every round takes the same time.
    Bcrypt,
    /// One at a time.
    Serial(Serial),
}

impl From<Kind> for Family {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Argon2(params) => Family::Argon2(params.algorithm, params.cost),
            Kind::Bcrypt { .. } => Family::Bcrypt,
            // If each number of rounds counted, each account could be a family of its own.
            Kind::Serial(serial) => Family::Serial(serial.of_any_password().rounded_up()),
        }
    }
}

impl Family {
    /// Nanoseconds per unit of work before anything was measured: an old machine without wide registers.
    fn first_guess(self) -> f64 {
        match self {
            Family::Argon2(..) => 400.0,
            Family::Bcrypt => 60_000.0,
            // Their work is estimated in nanoseconds already.
            Family::Serial(_) => 2.0,
        }
    }
    /// Whether any machine takes this many nanoseconds for a unit of work: a damaged file would have users told to come
    /// back in hours.
    pub(crate) fn may_take(self, nanos: f64) -> bool {
        (1e-3..=self.first_guess() * 1e2).contains(&nanos)
    }
    /// One of its kinds: all of them take the same memory.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Family::Argon2(algorithm, cost) => {
                let (version, tag_bytes) = (Version::V19, TAG_BYTES as u32);
                Kind::Argon2(Params { algorithm, version, cost, tag_bytes })
            }
            Family::Bcrypt => Kind::Bcrypt { cost: 10 },
            Family::Serial(serial) => Kind::Serial(serial),
        }
    }
    /// The index of its algorithm among the rates that stand in for what was not measured.
    fn algorithm(self) -> usize {
        match self {
            Family::Argon2(..) => 0,
            Family::Bcrypt => 1,
            Family::Serial(_) => 2,
        }
    }
}

/// A mean of measurements: nanoseconds of a thread for one unit of work of one job with a given number of lanes, or how
/// many times as long as their threads ran batches took.
#[derive(Clone, Copy, Default)]
struct Mean {
    value: f64,
    samples: u32,
    /// Whether it was measured while all threads were busy, which is when it matters.
    loaded: bool,
}

impl Mean {
    fn record(&mut self, found: f64, loaded: bool) {
        if self.loaded && !loaded {
            // Other threads can make it slower, but not by so much: `self` was measured while something stood still.
            if found * MUCH < self.value {
                self.value += (found - self.value) * WEIGHT;
            }
            return;
        }
        if loaded && !self.loaded {
            *self = Mean { loaded, ..Mean::default() };
        }
        self.samples = self.samples.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.samples));
        // Far longer than those before: that is believed, but not by how much, as the machine may have stood still.
        let found = if self.samples > 1 { found.min(self.value * MUCH) } else { found };
        self.value += (found - self.value) * weight;
    }
    fn is_settled(&self) -> bool {
        self.loaded && self.samples >= SETTLED
    }
}

/// The paces of a family with 1, 2, … lanes.
#[derive(Clone, Copy, Default)]
struct Paces {
    with: [Mean; MAX_TOGETHER],
    batches: u32,
}

impl Paces {
    /// Climbs from one lane and stops where some steps in a row did not pay. Returns the best so far, and the number of
    /// lanes met on the way about which too little is known.
    fn climb(&self, most: usize) -> (usize, Option<usize>) {
        let mut best = 1;
        for lanes in 1..=most.min(MAX_TOGETHER) {
            let pace = self.with[lanes - 1];
            if !pace.is_settled() {
                return (best, Some(lanes));
            }
            if pays((lanes, pace.value), (best, self.with[best - 1].value)) {
                best = lanes;
            } else if lanes >= best + IN_VAIN {
                break;
            }
        }
        (best, None)
    }

    fn best(&self, most: usize) -> usize {
        self.climb(most).0
    }

    /// How many lanes the next batch may have: a number to be tried, or the best.
    fn next(&self, most: usize) -> usize {
        match self.climb(most) {
            (_, Some(unknown)) => unknown,
            (best, None) if self.batches % LOOK_AROUND == LOOK_AROUND - 1 => {
                self.neighbor(best, most, self.batches / LOOK_AROUND)
            }
            (best, None) => best,
        }
    }

    /// The number to try the `turn`th time: the neighbors above and below the best in turn, a far worse one seldom.
    fn neighbor(&self, best: usize, most: usize, turn: u32) -> usize {
        let up = turn.is_multiple_of(2);
        let other = if up { (best + 1).min(most) } else { (best - 1).max(1) };
        let (times, seldom) = FAR;
        let near = self.with[other - 1].value <= self.with[best - 1].value * times;
        if near || (turn / 2).is_multiple_of(seldom) { other } else { best }
    }

    /// How many measurements there are.
    fn known(&self) -> u32 {
        self.with.iter().map(|pace| pace.samples).fold(0, u32::saturating_add)
    }

    /// The pace with this many lanes, or else with the nearest number below, or above, that was measured.
    fn pace(&self, lanes: usize) -> Option<f64> {
        let (fewer, more) = self.with.split_at(lanes.min(MAX_TOGETHER));
        fewer.iter().rev().chain(more).find(|pace| pace.samples > 0).map(|pace| pace.value)
    }
}

/// Whether so many lanes at that pace are worth having, compared with fewer lanes at theirs.
pub(crate) fn pays((lanes, pace): (usize, f64), (fewer, before): (usize, f64)) -> bool {
    let more = i32::try_from(lanes.saturating_sub(fewer)).unwrap_or(i32::MAX);
    pace * GAIN.powi(more) < before
}

/// The moving means of all measurements.
pub(crate) struct Costs {
    families: HashMap<Family, Paces>,
    /// Nanoseconds per unit of work, over all families of an algorithm: for those not measured yet.
    overall: [Option<f64>; 3],
    /// How many times as long as its thread ran a batch took: others use the core, too.
    stretch: Mean,
}

impl Costs {
    pub(crate) fn new() -> Self {
        Costs { families: HashMap::new(), overall: [None; 3], stretch: Mean::default() }
    }

    /// Expected nanoseconds of a batch of `size` jobs of this kind; never zero.
    pub(crate) fn batch(&self, kind: Kind, size: usize) -> u64 {
        let family = Family::from(kind);
        let guess = || self.overall[family.algorithm()].unwrap_or(family.first_guess());
        let pace = self.families.get(&family).and_then(|paces| paces.pace(size)).unwrap_or_else(guess);
        ((pace * kind.work() * size as f64 * self.stretch()) as u64).max(1)
    }

    /// Expected nanoseconds of thread time that one of many jobs of this kind takes, with at most `most` side by side.
    pub(crate) fn share(&self, kind: Kind, most: usize) -> u64 {
        let lanes = self.best(kind, most);
        (self.batch(kind, lanes) / lanes as u64).max(1)
    }

    /// Expected nanoseconds of thread time that `count` jobs of this kind take: full batches and a remainder.
    pub(crate) fn queue(&self, kind: Kind, count: usize, most: usize) -> u64 {
        let lanes = self.best(kind, most);
        let rest = match count % lanes {
            0 => 0,
            rest => self.batch(kind, rest),
        };
        self.batch(kind, lanes).saturating_mul((count / lanes) as u64).saturating_add(rest)
    }

    /// The number of lanes with the best rate among the known ones, up to `most`.
    pub(crate) fn best(&self, kind: Kind, most: usize) -> usize {
        self.families.get(&kind.into()).map_or(1, |paces| paces.best(most))
    }

    /// How many jobs of this kind the next batch may have, up to `most`.
    pub(crate) fn next(&self, kind: Kind, most: usize) -> usize {
        self.families.get(&kind.into()).map_or(1, |paces| paces.next(most))
    }

    /// True when the best number of lanes is known.
    pub(crate) fn knows(&self, kind: Kind, most: usize) -> bool {
        self.families.get(&kind.into()).is_some_and(|paces| paces.with[most.min(2) - 1].is_settled())
    }

    /// How many times as long as its thread runs a batch takes.
    fn stretch(&self) -> f64 {
        if self.stretch.samples > 0 { self.stretch.value } else { 1.0 }
    }

    /// Records what a measurement ahead of load says of the core: others use it, or a container may not use all of it.
    pub(crate) fn tried(&mut self, took: Took) {
        self.stretch.record(took.stretch(), false);
    }

    /// Records what a batch took; `loaded` if all threads were busy meanwhile.
    pub(crate) fn record(&mut self, kind: Kind, size: usize, took: impl Into<Took>, loaded: bool) {
        let (family, took) = (Family::from(kind), took.into());
        self.stretch.record(took.stretch(), loaded);
        let nanos = took.ran.as_nanos() as f64 / (size as f64 * kind.work());
        let overall = &mut self.overall[family.algorithm()];
        *overall = Some(overall.map_or(nanos, |mean| mean + (nanos.min(mean * MUCH) - mean) * WEIGHT));
        let paces = self.paces_of(family);
        paces.with[size - 1].record(nanos, loaded);
        paces.batches = paces.batches.wrapping_add(1);
    }

    /// The entry of a family, which may be a new one.
    fn paces_of(&mut self, family: Family) -> &mut Paces {
        if !self.families.contains_key(&family) {
            let is_serial = |family: &Family| matches!(family, Family::Serial(_));
            let serial = is_serial(&family);
            let alike = self.families.iter().filter(|(other, _)| is_serial(other) == serial);
            let full = alike.clone().count() >= if serial { MAX_SERIAL } else { MAX_FAMILIES - MAX_SERIAL };
            let least = alike.min_by_key(|(_, paces)| paces.known()).map(|(other, _)| *other);
            if let Some(least) = least.filter(|_| full) {
                self.families.remove(&least);
            }
        }
        self.families.entry(family).or_default()
    }

    /// Adopts what was measured elsewhere or before: nanoseconds per unit of work with 1, 2, … lanes. What work has
    /// taught takes precedence: it comes from whole hashes, and from today.
    pub(crate) fn settle(&mut self, family: Family, measured: &[Option<f64>]) {
        if measured.iter().all(Option::is_none) {
            return;
        }
        let paces = self.paces_of(family);
        for (pace, nanos) in paces.with.iter_mut().zip(measured).filter(|(pace, _)| !pace.is_settled()) {
            if let Some(nanos) = *nanos {
                *pace = Mean { value: nanos, samples: CALIBRATED, loaded: true };
            }
        }
    }

    /// The input for [`Costs::settle`], for all families whose best number of lanes is known.
    pub(crate) fn settled(&self) -> Vec<(Family, Vec<Option<f64>>)> {
        let known = |pace: &Mean| pace.is_settled().then_some(pace.value);
        let paces = |paces: &Paces| paces.with.iter().map(known).collect::<Vec<_>>();
        let all = self.families.iter().map(|(family, with)| (*family, paces(with)));
        all.filter(|(family, paces)| !matches!(family, Family::Serial(_)) && paces[0].is_some()).collect()
    }

    /// The families that were measured.
    pub(crate) fn all(&self) -> impl Iterator<Item = Family> {
        self.families.keys().copied()
    }
}

#[cfg(test)]
mod tests;
