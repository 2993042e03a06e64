//! The course of a run: the window in slices, each with its own latencies.

use crate::plan::Plan;
use crate::schedule::level;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How much wider each bucket of a sketch is than the one before it.
const WIDTH: f64 = 1.02;

/// Latencies in buckets that are 2 % wide: coarser than a histogram, and small enough to keep one for every second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch(Vec<u32>);

impl Sketch {
    /// Adds one latency.
    pub fn add(&mut self, latency: Duration) {
        let bucket = (latency.as_micros().max(1) as f64).log(WIDTH) as usize;
        self.of(bucket, 1);
    }

    fn of(&mut self, bucket: usize, count: u32) {
        if bucket >= self.0.len() {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += count;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Sketch) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(own, count)| *own += count);
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the latency in milliseconds that a share (0 to 1) is at or below, to within 1 %; 0 if there is none.
    /// Latencies are assumed to be evenly spread within a bucket, so that two nearly equal results do not differ by a
    /// whole bucket.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = (share * self.count() as f64).ceil().max(1.0);
        let mut seen = 0.0;
        for (bucket, count) in self.0.iter().enumerate() {
            let count = f64::from(*count);
            if seen + count >= wanted {
                return at(bucket as f64 + (wanted - seen - 0.5) / count);
            }
            seen += count;
        }
        0.0
    }

    /// Returns the mean in milliseconds; 0 if there is none.
    pub fn mean(&self) -> f64 {
        let full = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let sum: f64 = full.map(|(bucket, count)| middle(bucket) * f64::from(*count)).sum();
        if sum == 0.0 { 0.0 } else { sum / self.count() as f64 }
    }
}

/// Returns the middle of a bucket in milliseconds.
fn middle(bucket: usize) -> f64 {
    at(bucket as f64 + 0.5)
}

/// Returns where this many buckets end, in milliseconds.
fn at(buckets: f64) -> f64 {
    WIDTH.powf(buckets) / 1000.0
}

/// Writes buckets and their counts, such as `348:2 351:1`.
impl Serialize for Sketch {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let full = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let pairs: Vec<String> = full.map(|(bucket, count)| format!("{bucket}:{count}")).collect();
        serializer.serialize_str(&pairs.join(" "))
    }
}

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut sketch = Sketch::default();
        for pair in text.split_ascii_whitespace() {
            let read = pair.split_once(':').and_then(|(at, count)| Some((at.parse().ok()?, count.parse().ok()?)));
            let Some((bucket @ 0..10_000, count)) = read else {
                return Err(serde::de::Error::custom("a sketch is made of pairs such as 348:2"));
            };
            sketch.of(bucket, count);
        }
        Ok(sketch)
    }
}

/// What happened in one slice of the window, on one thread.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Iterations that succeeded.
    pub done: Sketch,
    /// Successful iterations that ended in this slice.
    pub ended: u64,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that were refused politely.
    pub refused: u64,
}

impl Tally {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Tally) {
        self.done.merge(&other.done);
        self.ended += other.ended;
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

/// The same slice in a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slice {
    /// Seconds since the window began.
    pub from: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Users of a closed loop, or starts per second of an open loop, in the middle of the slice.
    pub level: f64,
    /// Iterations that succeeded.
    pub done: u64,
    /// Successful iterations that ended in this slice, whenever they were due; `None` in older results.
    #[serde(default)]
    pub ended: Option<u64>,
    /// Iterations that failed.
    pub failed: u64,
    /// Iterations that were refused politely.
    pub refused: u64,
    /// Latencies, in buckets of 2 %.
    pub latencies: Sketch,
}

impl Slice {
    /// Returns what the server managed in this slice: successful iterations.
    pub fn managed(&self) -> u64 {
        self.ended.unwrap_or(self.done)
    }

    /// Returns the same per second.
    pub fn rate(&self) -> f64 {
        self.managed() as f64 / self.seconds
    }
}

/// Returns the length of a slice: about a second, so that there are at least 10 and at most 120.
pub fn slice_length(window: Duration) -> Duration {
    window.div_f64(window.as_secs_f64().round().clamp(10.0, 120.0)).max(Duration::from_nanos(1))
}

/// Returns the slices of a window of which `passed` has passed, empty slices included. An iteration belongs to the
/// slice where it ended in a closed loop, and where it was due in an open loop; what was managed counts where it ended
/// in both.
pub fn slices(plan: &Plan, tallies: &[Tally], passed: Duration) -> Vec<Slice> {
    let length = slice_length(plan.duration);
    // Rounded, because a whole window may be off by a nanosecond, and a short rest belongs to the slice before it.
    let count = (passed.as_secs_f64() / length.as_secs_f64()).round().max(1.0) as usize;
    let slice = |at: usize| {
        let is_last = at + 1 == count;
        let mut tally = tallies.get(at).cloned().unwrap_or_default();
        tallies.iter().skip(count).filter(|_| is_last).for_each(|rest| tally.merge(rest));
        let from = length.mul_f64(at as f64);
        let seconds = if is_last && passed < plan.duration { passed.saturating_sub(from) } else { length };
        Slice {
            from: from.as_secs_f64(),
            seconds: seconds.as_secs_f64(),
            level: level(plan, plan.warmup + from + seconds / 2),
            done: tally.done.count(),
            ended: Some(tally.ended),
            failed: tally.failed,
            refused: tally.refused,
            latencies: tally.done,
        }
    };
    (0..count).map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    fn sketch(millis: impl IntoIterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::default();
        millis.into_iter().for_each(|ms| sketch.add(Duration::from_millis(ms)));
        sketch
    }

    #[test]
    fn quantiles_and_means_are_right_to_about_a_hundredth() {
        let sketch = sketch(1..=1000);
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            assert!((sketch.quantile(share) / expected - 1.0).abs() < 0.01, "{share}: {}", sketch.quantile(share));
        }
        assert!((sketch.mean() / 500.5 - 1.0).abs() < 0.02);
        assert_eq!((Sketch::default().quantile(0.5), Sketch::default().mean()), (0.0, 0.0));
    }

    #[test]
    fn a_sketch_is_written_as_text_and_read_again() {
        let mut both = sketch([1, 1, 700]);
        both.merge(&sketch([700, 90_000]));
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text.matches(':').count(), 3, "{text}");
        assert_eq!(serde_json::from_str::<Sketch>(&text).unwrap(), both);
        assert_eq!(both.count(), 5);
        for wrong in ["\"1\"", "\"a:1\"", "\"99999999999:1\"", "\"10000:1\"", "7"] {
            assert!(serde_json::from_str::<Sketch>(wrong).is_err(), "{wrong}");
        }
    }

    /// Red without `skip(count)`, and without rounding: a slice of a moment has no rate.
    #[test]
    fn a_rest_that_is_short_belongs_to_the_slice_before_it() {
        let plan = Plan { duration: Duration::from_secs(20), ..plan() };
        let tallies: Vec<Tally> =
            (0..4).map(|_| Tally { done: sketch([1, 2]), ended: 2, failed: 1, refused: 0 }).collect();
        for (millis, count) in [(3_001, 3), (3_499, 3), (3_501, 4), (100, 1)] {
            let slices = slices(&plan, &tallies, Duration::from_millis(millis));
            let length: f64 = slices.iter().map(|slice| slice.seconds).sum();
            let (done, failed) = slices.iter().fold((0, 0), |(d, f), slice| (d + slice.done, f + slice.failed));
            assert!((length * 1000.0 - millis as f64).abs() < 1e-6, "{millis}: {length}");
            assert_eq!((slices.len(), done, failed), (count, 8, 4), "{millis}");
            assert_eq!(slices.iter().map(Slice::managed).sum::<u64>(), 8, "{millis}");
        }
    }

    #[test]
    fn slices_are_about_a_second() {
        for (window, slice) in [(0.5, 0.05), (20.0, 1.0), (600.0, 5.0)] {
            let length = slice_length(Duration::from_secs_f64(window)).as_secs_f64();
            assert!((length - slice).abs() < 1e-6, "{window}: {length}");
        }
    }
}
