//! Counters and histograms. Each thread has a record of its own, so nothing is locked while load is made; the records
//! are merged at the end.

use crate::pacer::Paced;
use crate::timeline::Tally;
use crate::visitor::{Cause, Lap, Setback, Step};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest latency that is distinguished, in microseconds; longer ones count as this.
const LONGEST: u64 = 10 * 60 * 1_000_000;
/// The number of different reasons that are kept; later ones are counted together.
const MAX_REASONS: usize = 64;

/// Latencies in microseconds, to three significant digits (HDR histogram).
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // The bounds are constants that the histogram accepts, as the tests show.
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3);
        Latencies(histogram.unwrap_or_else(|error| unreachable!("{error}")))
    }
}

impl Latencies {
    /// Adds one latency.
    pub fn add(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(LONGEST));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        // Fails only if the bounds differ, and both have the same constant bounds.
        let _ = self.0.add(&other.0);
    }

    /// Forgets all latencies.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency, in milliseconds, that the given share (0 to 1) is at or below; 0 if there is none.
    pub fn quantile(&self, share: f64) -> f64 {
        milliseconds(self.0.value_at_quantile(share))
    }

    /// Returns the mean in milliseconds; 0 if there is none.
    pub fn mean(&self) -> f64 {
        self.0.mean() / 1000.0
    }

    /// Returns the longest in milliseconds; 0 if there is none.
    pub fn max(&self) -> f64 {
        milliseconds(self.0.max())
    }
}

fn milliseconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1000.0
}

/// The slices of the window that an iteration belongs to; `None` is outside of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The slice for its latency and outcome: in an open loop where it was due, in a closed loop where it ended.
    pub counts: Option<usize>,
    /// The slice in which it ended: a server's rate counts what it finished in that time, whenever that was due.
    pub ended: Option<usize>,
}

/// The shares of the window that a thread of the generator spent running and waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    /// On a processor.
    pub running: f64,
    /// Ready to run, but without a processor; `None` where that cannot be read.
    pub waiting: Option<f64>,
}

impl Busy {
    /// Returns the share in which the thread had work to do: in which it was not idle.
    pub fn all(self) -> f64 {
        self.running + self.waiting.unwrap_or_default()
    }
}

/// What iterations that were in flight at the end of the window had done. It counts only if no iteration ended in the
/// window: of those that did, some began before the window and are counted whole, which makes up for it.
#[derive(Clone, Default)]
pub struct Cut {
    /// Responses.
    pub requests: u64,
    /// Finished steps.
    pub steps: BTreeMap<Step, Latencies>,
}

/// Failures that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// How many.
    pub count: u64,
    /// What the first of them said beyond what they have in common.
    pub first: Option<String>,
}

/// Everything that one thread recorded in the window.
#[derive(Clone, Default)]
pub struct Record {
    /// Iterations that succeeded.
    pub iterations: Latencies,
    /// Finished steps, including those of iterations that failed later.
    pub steps: BTreeMap<Step, Latencies>,
    /// Successful iterations that ended in the window.
    pub ended: u64,
    /// Responses received by iterations that ended in the window.
    pub requests: u64,
    /// Connections made by those iterations.
    pub connections: u64,
    /// Starts of an open loop that found no free visitor.
    pub waited: u64,
    /// How late the starts of the window were that found a free visitor.
    pub lateness: Latencies,
    /// Pauses in the window that a visitor made because there was no connection.
    pub rested: u64,
    /// Iterations that the server refused politely (503 or 429 with Retry-After), by step and status.
    pub refused: BTreeMap<(Step, u16), Latencies>,
    /// Iterations that failed, by step and reason.
    pub failed: BTreeMap<(Step, String), Failed>,
    /// Iterations that had begun, or were due, and did not end in time.
    pub unfinished: u64,
    /// How long each unfinished iteration of a closed loop had been under way when the run ended.
    pub under_way: Vec<Duration>,
    /// What the unfinished iterations of a closed loop had done by the end.
    pub cut: Cut,
    /// The same per slice of the window.
    pub slices: Vec<Tally>,
    /// How busy the thread was, if that can be read; of several threads the busiest.
    pub busy: Busy,
    /// What it took to release the starts of an open loop.
    pub paced: Paced,
}

impl Record {
    /// Records what an abandoned iteration had done. If it began `before` the window by this much, only those of its
    /// steps count that ended in the window.
    pub fn give_up(&mut self, lap: &Lap, before: Duration) {
        let mut passed = Duration::ZERO;
        let mut ended = 0;
        for (step, took) in &lap.steps {
            passed += *took;
            if passed >= before {
                self.cut.steps.entry(*step).or_default().add(*took);
                ended += 1;
            }
        }
        // It is not known when each response came: one per step is the minimum.
        self.cut.requests += if before.is_zero() { lap.requests } else { ended };
    }

    /// Returns true if no iteration ended in the window.
    pub fn is_empty(&self) -> bool {
        self.iterations.count() == 0 && self.ended == 0 && self.failed.is_empty() && self.refused.is_empty()
    }

    /// Returns the record, completed with what unfinished iterations had done if none ended in the window.
    pub fn with_cut_if_empty(mut self) -> Record {
        self.requests = self.requests_told();
        if self.is_empty() {
            self.steps.append(&mut self.cut.steps);
        }
        self
    }

    /// Returns the responses that came in the window, as the [report](Self::with_cut_if_empty) states them.
    pub fn requests_told(&self) -> u64 {
        self.requests + if self.is_empty() { self.cut.requests } else { 0 }
    }

    /// Records one iteration and its outcome.
    pub fn take(&mut self, lap: &Lap, place: Place, latency: Duration, outcome: &Result<(), Setback>) {
        if let Some(slice) = place.ended {
            let done = u64::from(outcome.is_ok());
            self.requests += lap.requests;
            self.connections += lap.connections;
            self.ended += done;
            self.slice(slice).ended += done;
        }
        if let Some(slice) = place.counts {
            self.judge(lap, slice, latency, outcome);
        }
    }

    fn judge(&mut self, lap: &Lap, slice: usize, latency: Duration, outcome: &Result<(), Setback>) {
        let tally = self.slice(slice);
        match outcome {
            Ok(()) => tally.done.add(latency),
            Err(Setback { cause: Cause::Refused { .. }, .. }) => tally.refused += 1,
            Err(_) => tally.failed += 1,
        }
        for (step, took) in &lap.steps {
            self.steps.entry(*step).or_default().add(*took);
        }
        match outcome {
            Ok(()) => self.iterations.add(latency),
            Err(Setback { step, cause: Cause::Refused { status, took, .. } }) => {
                self.refused.entry((*step, *status)).or_default().add(*took)
            }
            Err(Setback { step, cause }) => {
                let (reason, first) = cause.split();
                self.fail(*step, reason, Failed { count: 1, first });
            }
        }
    }

    fn slice(&mut self, slice: usize) -> &mut Tally {
        if slice >= self.slices.len() {
            self.slices.resize_with(slice + 1, Tally::default);
        }
        &mut self.slices[slice]
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Record) {
        self.iterations.merge(&other.iterations);
        self.ended += other.ended;
        self.requests += other.requests;
        self.connections += other.connections;
        self.waited += other.waited;
        self.lateness.merge(&other.lateness);
        self.rested += other.rested;
        self.unfinished += other.unfinished;
        self.under_way.extend(&other.under_way);
        self.paced.starts += other.paced.starts;
        self.paced.spent += other.paced.spent;
        if other.busy.all() >= self.busy.all() {
            self.busy = other.busy;
        }
        if other.slices.len() > self.slices.len() {
            self.slices.resize_with(other.slices.len(), Tally::default);
        }
        self.slices.iter_mut().zip(&other.slices).for_each(|(own, other)| own.merge(other));
        for (step, latencies) in &other.steps {
            self.steps.entry(*step).or_default().merge(latencies);
        }
        self.cut.requests += other.cut.requests;
        for (step, latencies) in &other.cut.steps {
            self.cut.steps.entry(*step).or_default().merge(latencies);
        }
        for (what, latencies) in &other.refused {
            self.refused.entry(*what).or_default().merge(latencies);
        }
        for ((step, reason), failed) in &other.failed {
            self.fail(*step, reason.clone(), failed.clone());
        }
    }

    fn fail(&mut self, step: Step, reason: String, failed: Failed) {
        let mut key = (step, reason);
        let mut first = failed.first;
        if self.failed.len() >= MAX_REASONS && !self.failed.contains_key(&key) {
            (key.1, first) = ("other reasons".to_owned(), None);
        }
        let known = self.failed.entry(key).or_insert(Failed { count: 0, first });
        known.count += failed.count;
    }
}

/// Returns the coefficient of variation: sample standard deviation over mean, as a share. `None` for fewer than two
/// values, or where their mean is zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt() / mean.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visitor::Reason;
    use crate::wire::Fault;

    fn setback(cause: Cause) -> Result<(), Setback> {
        Err(Setback { step: Step::Token, cause })
    }

    #[test]
    fn successes_failures_and_refusals_are_kept_apart() {
        let lap = Lap { requests: 2, connections: 1, steps: vec![(Step::Authorize, Duration::from_millis(2))] };
        let refused =
            Cause::Refused { status: 503, retry_after: Duration::from_secs(1), took: Duration::from_millis(3) };
        let mut record = Record::default();
        let second = Place { counts: Some(1), ended: Some(1) };
        record.take(&lap, second, Duration::from_millis(10), &Ok(()));
        record.take(&lap, second, Duration::from_millis(99), &setback(refused));
        record.take(&lap, second, Duration::from_millis(99), &Err(Step::Token.wrong("400 invalid_grant")));
        record.take(&lap, second, Duration::from_millis(99), &setback(Cause::Lost(Fault::Timeout)));
        (record.rested, record.under_way) = (3, vec![Duration::from_secs(35)]);
        let mut whole = record.clone();
        whole.merge(&record);
        assert_eq!((whole.iterations.count(), whole.requests, whole.rested), (2, 16, 6));
        assert_eq!(whole.iterations.max().round(), 10.0);
        assert_eq!(whole.steps[&Step::Authorize].count(), 8);
        let refused = &whole.refused[&(Step::Token, 503)];
        assert_eq!((refused.count(), refused.max().round()), (2, 3.0));
        assert_eq!(whole.failed[&(Step::Token, "400 invalid_grant".to_owned())].count, 2);
        let last = &whole.slices[1];
        assert_eq!((whole.slices.len(), last.done.count(), last.refused, last.failed), (2, 2, 2, 4));
        assert_eq!(whole.failed[&(Step::Token, "no response in time".to_owned())].count, 2);
        assert_eq!((whole.ended, last.ended), (2, 2));
        // Red without `extend`: of several threads, only one knows of a server that stopped answering.
        assert_eq!(whole.under_way, [Duration::from_secs(35); 2]);
    }

    /// Red where rates count what was due in the window: a server that is offered twice its capacity would then seem to
    /// manage it.
    #[test]
    fn what_ends_after_the_window_has_a_latency_and_no_part_in_the_rate() {
        let lap = Lap { requests: 3, connections: 1, steps: vec![] };
        let mut record = Record::default();
        record.take(&lap, Place { counts: Some(0), ended: Some(2) }, Duration::from_secs(2), &Ok(()));
        record.take(&lap, Place { counts: Some(1), ended: None }, Duration::from_secs(9), &Ok(()));
        record.take(&lap, Place { counts: None, ended: Some(0) }, Duration::from_secs(1), &Ok(()));
        record.take(&lap, Place::default(), Duration::from_secs(1), &Ok(()));
        assert_eq!((record.iterations.count(), record.ended, record.requests, record.connections), (2, 2, 6, 2));
        let slices: Vec<_> = record.slices.iter().map(|slice| (slice.done.count(), slice.ended)).collect();
        assert_eq!(slices, [(1, 1), (1, 0), (0, 1)]);
    }

    #[test]
    fn the_busiest_thread_is_the_one_with_the_least_rest() {
        let of = |running, waiting| Record { busy: Busy { running, waiting }, ..Record::default() };
        let mut whole = of(0.6, Some(0.0));
        whole.merge(&of(0.5, Some(0.3)));
        assert_eq!((whole.busy.running, whole.busy.waiting), (0.5, Some(0.3)));
        whole.merge(&of(0.9, None));
        assert_eq!((whole.busy.running, whole.busy.waiting), (0.9, None));
    }

    /// Red where users or numbers are part of the key: they would leave no room for another failure.
    #[test]
    fn a_failure_of_many_users_is_one_line_with_the_first_of_them() {
        let mut records = [Record::default(), Record::default()];
        for (n, record) in (0..1000).map(|n| (n, n % 2)) {
            let place = Place { counts: Some(0), ended: Some(0) };
            let login = format!("user{n}");
            let reason = Reason::of_user("to", &login, |to| format!("the sign-in page came back{to}"));
            records[record].take(&Lap::default(), place, Duration::ZERO, &Err(Step::Login.because(reason)));
        }
        let [mut whole, other] = records;
        whole.merge(&other);
        let expected = Failed { count: 1000, first: Some("user0".to_owned()) };
        let key = (Step::Login, "the sign-in page came back".to_owned());
        assert_eq!(whole.failed.into_iter().collect::<Vec<_>>(), [(key, expected)]);
    }

    #[test]
    fn endless_reasons_do_not_grow_the_record() {
        let mut record = Record::default();
        for n in 0..1000 {
            let place = Place { counts: Some(0), ended: Some(0) };
            record.take(&Lap::default(), place, Duration::ZERO, &Err(Step::Token.wrong(n.to_string())));
        }
        assert_eq!(record.failed.len(), MAX_REASONS + 1);
        assert_eq!(record.failed.values().map(|failed| failed.count).sum::<u64>(), 1000);
    }

    #[test]
    fn latencies_beyond_the_bounds_are_counted_at_the_bound() {
        let mut latencies = Latencies::default();
        latencies.add(Duration::from_secs(100_000));
        latencies.add(Duration::ZERO);
        assert_eq!(latencies.count(), 2);
        assert!((latencies.max() / 600_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|n| latencies.add(Duration::from_millis(n)));
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            assert!((latencies.quantile(share) / expected - 1.0).abs() < 0.002);
        }
        assert!((latencies.mean() - 500.5).abs() < 1.0);
    }

    #[test]
    fn variation_is_the_sample_deviation_over_the_mean() {
        assert_eq!(variation(&[5.0, 5.0, 5.0]), Some(0.0));
        assert!((variation(&[9.0, 10.0, 11.0]).unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(variation(&[1.0]), None);
        assert_eq!(variation(&[]), None);
    }

    /// Red without `cut`: a server that answered for the whole window was reported to have answered nothing.
    #[test]
    fn where_no_iteration_ends_what_it_had_done_counts() {
        let second = Duration::from_secs(1);
        let steps = vec![(Step::Authorize, second), (Step::Login, second * 3)];
        let lap = Lap { requests: 5, connections: 1, steps };
        let mut record = Record::default();
        record.give_up(&lap, Duration::ZERO);
        record.give_up(&lap, second * 2);
        record.give_up(&lap, second * 9);
        let mut all = Record::default();
        all.merge(&record);
        let (counted, told) = (all.clone().with_cut_if_empty(), all.requests_told());
        assert_eq!(told, counted.requests, "and what the server's processor time is for");
        assert_eq!(
            (counted.requests, counted.steps[&Step::Authorize].count(), counted.steps[&Step::Login].count()),
            (6, 1, 2)
        );
        let place = Place { counts: Some(0), ended: Some(0) };
        all.take(&Lap::default(), place, second, &Ok(()));
        let counted = all.with_cut_if_empty();
        assert!(counted.requests == 0 && counted.steps.is_empty(), "where others ended they do");
    }
}
