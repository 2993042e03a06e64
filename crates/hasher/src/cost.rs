//! What a job costs on this machine, measured while it works.

use std::{collections::HashMap, time::Duration};

use crate::job::Kind;

/// Most kinds of job that are measured apart; an import with more parameter sets shares one rate.
const MAX_KINDS: usize = 64;
/// Weight of a new measurement in the moving mean: about the last fifteen jobs count.
const WEIGHT: f64 = 1.0 / 8.0;
/// Nanoseconds for a 1 KiB block before anything was measured: a machine without wide registers.
const FIRST_GUESS: f64 = 400.0;

/// The moving mean of the time that a job takes, for each kind of job.
pub(crate) struct Costs {
    kinds: HashMap<Kind, f64>,
    /// Nanoseconds a block, over all kinds: for those not measured yet.
    per_block: Option<f64>,
}

impl Costs {
    pub(crate) fn new() -> Self {
        Costs { kinds: HashMap::new(), per_block: None }
    }

    /// Expected nanoseconds for one job of this kind; never zero.
    pub(crate) fn estimate(&self, kind: Kind) -> u64 {
        let blocks = kind.cost.blocks() as f64;
        let nanos = self.kinds.get(&kind).copied().unwrap_or(self.per_block.unwrap_or(FIRST_GUESS) * blocks);
        (nanos as u64).max(1)
    }

    /// Takes in that a job of this kind took `elapsed`.
    pub(crate) fn record(&mut self, kind: Kind, elapsed: Duration) {
        let nanos = elapsed.as_nanos() as f64;
        let rate = nanos / kind.cost.blocks() as f64;
        self.per_block = Some(self.per_block.map_or(rate, |mean| moved(mean, rate)));
        if let Some(mean) = self.kinds.get_mut(&kind) {
            *mean = moved(*mean, nanos);
        } else if self.kinds.len() < MAX_KINDS {
            self.kinds.insert(kind, nanos);
        }
    }
}

fn moved(mean: f64, sample: f64) -> f64 {
    mean + (sample - mean) * WEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        phc::{Algorithm, Version},
        policy::Cost,
    };

    fn kind(memory: u32, passes: u32) -> Kind {
        let cost = Cost::new(memory, passes, 1).unwrap();
        Kind { algorithm: Algorithm::Argon2id, version: Version::V19, cost }
    }

    #[test]
    fn an_unmeasured_kind_is_scaled_from_what_was_measured() {
        let mut costs = Costs::new();
        costs.record(kind(1000, 1), Duration::from_millis(1));
        assert_eq!(costs.estimate(kind(1000, 1)), 1_000_000);
        assert_eq!(costs.estimate(kind(2000, 3)), 6_000_000);
    }

    #[test]
    fn the_mean_follows_a_machine_that_slows_down() {
        let mut costs = Costs::new();
        costs.record(kind(1000, 1), Duration::from_millis(1));
        for _ in 0..40 {
            costs.record(kind(1000, 1), Duration::from_millis(5));
        }
        assert!((4_900_000..=5_000_000).contains(&costs.estimate(kind(1000, 1))));
    }

    #[test]
    fn the_number_of_kinds_is_bounded() {
        let mut costs = Costs::new();
        for memory in 8..1000 {
            costs.record(kind(memory, 1), Duration::from_millis(1));
        }
        assert_eq!(costs.kinds.len(), MAX_KINDS);
    }
}
