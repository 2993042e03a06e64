//! Counts events, in the lowest crate that has something to count.
//!
//! Counting mostly touches memory of the own thread, takes no lock, and allocates only once. Reading adds up what the
//! threads have counted while they go on: a sum may lack what was counted at that very moment.

use std::array;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The number of threads that count in shards of their own; with more threads, several share a shard.
const SHARDS: usize = 8;

/// The most bounds that a histogram may have.
const MOST_BOUNDS: usize = 15;

thread_local! {
    /// The shard that this thread counts in.
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        own.get()
    })
}

/// A value on cache lines that no other thread writes to.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// One `T` for each thread that counts, made when it is first needed.
pub struct Shards<T>([OnceLock<Box<Apart<T>>>; SHARDS]);

impl<T: Default> Shards<T> {
    /// No shard is made yet.
    pub fn new() -> Self {
        Shards(array::from_fn(|_| OnceLock::new()))
    }

    /// The shard of this thread.
    pub fn own(&self) -> &T {
        &self.0[own()].get_or_init(Box::default).0
    }

    /// All shards that were made.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(|shard| shard.get().map(|apart| &apart.0))
    }
}

impl<T: Default> Default for Shards<T> {
    fn default() -> Self {
        Shards::new()
    }
}

/// A number that only grows.
#[derive(Default)]
pub struct Count(Shards<AtomicU64>);

impl Count {
    /// Adds one.
    pub fn one(&self) {
        self.add(1);
    }
    /// Adds `many`.
    pub fn add(&self, many: u64) {
        self.0.own().fetch_add(many, Relaxed);
    }
    /// The sum of all shards.
    pub fn sum(&self) -> u64 {
        self.0.all().map(|shard| shard.load(Relaxed)).sum()
    }
}

/// Upper bounds of a histogram's buckets.
pub struct Bounds {
    /// In the unit that is counted, in ascending order.
    at: &'static [u64],
    /// How many counted units make one unit that is shown.
    per: f64,
}

impl Bounds {
    const fn new(at: &'static [u64], per: f64) -> Self {
        assert!(at.len() <= MOST_BOUNDS, "a histogram has room for so many bounds");
        Bounds { at, per }
    }
}

/// Times, counted in nanoseconds and shown in seconds: half a millisecond to ten seconds.
pub static TIMES: Bounds = Bounds::new(
    &[
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000,
        5_000_000_000,
        10_000_000_000,
    ],
    1e9,
);

/// How many items were processed together.
pub static SIZES: Bounds = Bounds::new(&[1, 2, 4, 8, 16, 32, 64, 128, 256], 1.0);

/// The buckets of one thread; the last one counts the values above all bounds.
#[derive(Default)]
pub struct Buckets {
    counts: [AtomicU64; MOST_BOUNDS + 1],
    sum: AtomicU64,
}

impl Buckets {
    /// Counts one value.
    pub fn observe(&self, bounds: &Bounds, value: u64) {
        let bucket = bounds.at.iter().position(|bound| value <= *bound).unwrap_or(bounds.at.len());
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Adds up what several threads counted.
    pub fn total<'a>(bounds: &Bounds, shards: impl Iterator<Item = &'a Buckets>) -> Spread {
        let (mut counts, mut sum) = (vec![0; bounds.at.len() + 1], 0);
        for shard in shards {
            sum += shard.sum.load(Relaxed);
            for (count, bucket) in counts.iter_mut().zip(&shard.counts) {
                *count += bucket.load(Relaxed);
            }
        }
        let mut below = 0;
        let steps = bounds.at.iter().zip(&counts).map(|(bound, count)| {
            below += count;
            (*bound as f64 / bounds.per, below)
        });
        Spread { steps: steps.collect(), count: counts.iter().sum(), sum: sum as f64 / bounds.per }
    }
}

/// Counts how many values of each size there were.
pub struct Histogram {
    bounds: &'static Bounds,
    shards: Shards<Buckets>,
}

impl Histogram {
    /// An empty histogram.
    pub fn new(bounds: &'static Bounds) -> Self {
        Histogram { bounds, shards: Shards::new() }
    }
    /// Counts one value.
    pub fn observe(&self, value: u64) {
        self.shards.own().observe(self.bounds, value);
    }
    /// Counts one event that took this long.
    pub fn took(&self, time: Duration) {
        self.observe(nanos(time));
    }
    /// The values of all shards.
    pub fn spread(&self) -> Spread {
        Buckets::total(self.bounds, self.shards.all())
    }
}

/// The content of a histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The bounds, each with the number of values that were not above it.
    pub steps: Vec<(f64, u64)>,
    /// The number of all values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

/// A duration in the unit that histograms of times count.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_count_is_counted_once() {
        let (count, sizes) = (Count::default(), Histogram::new(&SIZES));
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| {
                    for size in 0..1000 {
                        count.one();
                        sizes.observe(size);
                    }
                });
            }
        });
        let threads = 2 * SHARDS as u64;
        assert_eq!(count.sum(), 1000 * threads);
        let spread = sizes.spread();
        assert_eq!((spread.count, spread.sum), (1000 * threads, (499_500 * threads) as f64));
        assert_eq!(spread.steps[0], (1.0, 2 * threads), "nothing and one are not above one");
        assert_eq!(spread.steps.last(), Some(&(256.0, 257 * threads)), "the rest is above all bounds");
    }

    #[test]
    fn times_are_shown_in_seconds() {
        let times = Histogram::new(&TIMES);
        times.took(Duration::from_micros(500));
        times.took(Duration::from_millis(20));
        let spread = times.spread();
        assert_eq!(spread.steps[0], (0.0005, 1), "a bound belongs to its bucket");
        assert_eq!((spread.count, spread.sum), (2, 0.0205));
    }
}
