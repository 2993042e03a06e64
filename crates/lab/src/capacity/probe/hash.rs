//! Password hashes per second: by threads and by hashes side by side on each, one alone, and with parameters that
//! others recommend.

use crate::capacity::figure::Figure;
use hasher::tune::{self, MOST_TOGETHER, Row};
use hasher::{Cost, Policy};
use load::Refusal;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Parameters of Argon2id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// m, in KiB.
    pub memory_kib: u32,
    /// t.
    pub passes: u32,
    /// p.
    pub lanes: u32,
}

impl Parameters {
    /// Returns the parameters of a cost.
    pub const fn of(cost: Cost) -> Parameters {
        Parameters { memory_kib: cost.memory(), passes: cost.passes(), lanes: cost.lanes() }
    }
}

impl std::fmt::Display for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "m={} t={} p={}", self.memory_kib, self.passes, self.lanes)
    }
}

/// How fast a number of threads hash, with a number of passwords side by side on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Threads that hash at the same time.
    pub threads: usize,
    /// Passwords side by side on each thread.
    pub together: usize,
    /// Hashes per second of all threads.
    pub rate: Figure,
    /// The same in the slowest round; `None` in results from before this field.
    #[serde(default)]
    pub slowest: Option<f64>,
}

impl Lane {
    /// Returns how long one thread takes for its batch, in seconds.
    pub fn batch(&self) -> f64 {
        (self.threads * self.together) as f64 / self.rate.value
    }

    /// Returns how many hashes per second it was at worst.
    pub fn at_worst(&self) -> f64 {
        self.slowest.unwrap_or(self.rate.value)
    }
}

/// Parameters that somebody recommends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The source of the recommendation.
    pub source: String,
    /// The parameters.
    pub parameters: Parameters,
    /// The time of one hash alone, in milliseconds; `None` where there is not enough memory for it.
    pub single_ms: Option<f64>,
    /// Hashes per second of all threads.
    pub rate: Option<f64>,
    /// The number side by side on each thread for that rate.
    pub together: Option<usize>,
    /// The memory of all of them, in bytes.
    pub memory: Option<u64>,
}

impl From<&Row> for Choice {
    fn from(row: &Row) -> Choice {
        let tune::Choice { source, memory, passes, lanes } = row.choice;
        let found = row.measured.as_ref();
        Choice {
            source: source.to_owned(),
            parameters: Parameters { memory_kib: memory, passes, lanes },
            single_ms: found.map(|found| found.single.as_secs_f64() * 1e3),
            rate: found.map(|found| found.rate),
            together: found.map(|found| found.together),
            memory: found.map(|found| found.memory),
        }
    }
}

/// What hashing costs on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hashing {
    /// The default parameters.
    pub parameters: Parameters,
    /// The memory that hashing may use, in bytes.
    pub memory: u64,
    /// The time of one hash on an idle machine, in milliseconds.
    pub single_ms: Figure,
    /// The same for an occasional hash on a thread that has rested; `None` in results from before this field.
    #[serde(default)]
    pub rested_ms: Option<Figure>,
    /// The rates by threads and lanes.
    pub lanes: Vec<Lane>,
    /// The parameters that OWASP and RFC 9106 recommend.
    pub choices: Vec<Choice>,
}

impl Hashing {
    /// Returns the rows for this number of threads, with 1, 2, … side by side.
    pub fn of_threads(&self, threads: usize) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(move |lane| lane.threads == threads)
    }

    /// Returns the most threads that were measured.
    pub fn threads(&self) -> usize {
        self.lanes.iter().map(|lane| lane.threads).max().unwrap_or(1)
    }
}

/// How long one rate is measured.
const SPAN: Duration = Duration::from_millis(220);
/// The climb ends after this many steps up without a gain, but not before four.
const PATIENCE: usize = 2;
const AT_LEAST: usize = 4;

/// How long a thread rests before an occasional hash, and how many of these make a sample.
const REST: Duration = Duration::from_millis(25);
const RESTED: usize = 20;

/// Measures hashing, sample by sample.
pub struct Probe {
    cost: Cost,
    memory: u64,
    span: Duration,
    single: Vec<f64>,
    rested: Vec<f64>,
    lanes: Vec<((usize, usize), Vec<f64>)>,
    cores: usize,
}

impl Probe {
    /// Prepares for this many cores, in at most `memory` bytes.
    pub fn new(cores: usize, memory: u64, quick: bool) -> Probe {
        let span = if quick { SPAN / 4 } else { SPAN };
        Probe { cost: Policy::default().cost(), memory, span, single: vec![], rested: vec![], lanes: vec![], cores }
    }

    /// Takes one more sample of everything.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if there is no memory for one hash on each thread.
    pub fn round(&mut self) -> Result<(), Refusal> {
        let mut alone: Vec<f64> = (0..5)
            .map(|_| {
                let begun = Instant::now();
                let rate = tune::rate(self.cost, (1, 1), Duration::ZERO);
                // The rate covers only the hash; the time around it includes mapping its memory.
                if rate > 0.0 { 1e3 / rate } else { begun.elapsed().as_secs_f64() * 1e3 }
            })
            .collect();
        alone.sort_by(f64::total_cmp);
        self.single.push(alone[alone.len() / 2]);
        let mut rested = tune::rested(self.cost, REST, RESTED);
        rested.sort();
        self.rested.push(rested[RESTED / 2].as_secs_f64() * 1e3);
        match self.lanes.is_empty() {
            true => steps(self.cores).into_iter().try_for_each(|threads| self.climb(threads)),
            false => {
                for at in 0..self.lanes.len() {
                    let rate = tune::rate(self.cost, self.lanes[at].0, self.span);
                    // Nothing if there was no memory this time.
                    self.lanes[at].1.extend(Some(rate).filter(|rate| *rate > 0.0));
                }
                Ok(())
            }
        }
    }

    /// Returns how many side by side have been best so far with all threads.
    pub fn lanes(&self) -> usize {
        let all = self.lanes.iter().filter(|((threads, _), _)| *threads == self.cores);
        let best = all.max_by(|(_, one), (_, other)| Figure::of(one).value.total_cmp(&Figure::of(other).value));
        best.map_or(1, |((_, together), _)| *together)
    }

    /// Climbs from one lane as long as that pays.
    fn climb(&mut self, threads: usize) -> Result<(), Refusal> {
        let (mut best, mut worse) = (0.0, 0);
        for together in 1..=MOST_TOGETHER {
            let need = (threads * together) as u64 * u64::from(self.cost.memory()) * 1024;
            if worse >= PATIENCE && together > AT_LEAST || need > self.memory {
                return Ok(());
            }
            let rate = tune::rate(self.cost, (threads, together), self.span);
            if rate <= 0.0 {
                return if together > 1 { Ok(()) } else { Err(no_memory(need)) };
            }
            self.lanes.push(((threads, together), vec![rate]));
            if rate > best * 1.01 {
                (best, worse) = (rate, 0);
            } else {
                worse += 1;
            }
        }
        Ok(())
    }

    /// Returns the results, after measuring the parameters that others recommend.
    pub fn done(self, quick: bool, mut progress: impl FnMut(&str)) -> Hashing {
        let choices = match quick {
            true => vec![],
            false => tune::table(self.memory, |row, _| {
                progress(&format!("hashes: {} {} KiB x {}", row.choice.source, row.choice.memory, row.choice.passes));
            }),
        };
        Hashing {
            parameters: Parameters::of(self.cost),
            memory: self.memory,
            single_ms: Figure::of(&self.single),
            rested_ms: Some(Figure::of(&self.rested)),
            lanes: self
                .lanes
                .iter()
                .map(|((threads, together), rates)| Lane {
                    threads: *threads,
                    together: *together,
                    rate: Figure::of(rates),
                    slowest: rates.iter().copied().min_by(f64::total_cmp),
                })
                .collect(),
            choices: choices.iter().map(Choice::from).collect(),
        }
    }
}

/// The one-line refusal if something cannot be measured without this memory.
pub(super) fn no_memory(bytes: u64) -> Refusal {
    let need = bytes >> 20;
    Refusal::Failure(format!(
        "cannot get {need} MiB of memory, which measuring needs (ulimit -v, vm.overcommit_memory)"
    ))
}

/// Returns the numbers of threads to measure: one, half, all.
fn steps(cores: usize) -> Vec<usize> {
    let mut steps = vec![1, cores / 2, cores];
    steps.retain(|threads| *threads > 0);
    steps.dedup();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_one_half_and_all() {
        assert_eq!([1, 2, 3, 8].map(steps), [vec![1], vec![1, 2], vec![1, 3], vec![1, 4, 8]]);
    }

    #[test]
    fn a_batch_takes_as_long_as_all_threads_need_for_theirs() {
        let lane = Lane { threads: 2, together: 2, rate: Figure::exact(150.0), slowest: None };
        assert!((lane.batch() - 4.0 / 150.0).abs() < 1e-12);
        assert_eq!(lane.at_worst(), 150.0, "in results without it");
        assert_eq!(Lane { slowest: Some(90.0), ..lane }.at_worst(), 90.0);
    }
}
