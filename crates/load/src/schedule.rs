//! When the iterations of an open loop start: at a steady rate, on a ramp, or over a day; evenly spaced or at random.

use crate::chance::{self, Chance};
use crate::plan::{Arrivals, Pace, Plan, Shape};
use std::ops::Range;
use std::time::Duration;

/// The day of W5: hour, and the rate relative to the quiet hours. The morning peaks at five times that rate.
const DAY: [(f64, f64); 5] = [(0.0, 1.0), (7.0, 1.0), (9.0, 5.0), (11.0, 1.0), (24.0, 1.0)];
/// The rate at which a ramp begins, as a share of the rate at its end.
const FOOT: f64 = 0.05;
/// Where more than so many starts are due in a second at some time, all that are due within a millisecond come together,
/// at its beginning: waking for each of them would take a tenth of a core, which the server may need.
const GROUPED_ABOVE: f64 = 1000.0;

/// The starts of an open loop, counted from the beginning of the warm-up.
pub struct Schedule {
    segments: Vec<Segment>,
    counted: Range<u64>,
    /// The positions of random starts; without it each start lies at its number.
    chance: Option<Chance>,
    /// Whether starts come in groups.
    grouped: bool,
}

/// A stretch in which the rate changes linearly.
struct Segment {
    /// In seconds since the beginning.
    from: f64,
    seconds: f64,
    /// The rates at its beginning and end.
    rates: (f64, f64),
    /// The number of starts before it.
    before: f64,
}

impl Segment {
    fn starts(&self) -> f64 {
        self.seconds * self.rates.0.midpoint(self.rates.1)
    }
}

impl Schedule {
    /// Returns the schedule of `plan`; `None` for a closed loop, which has none.
    pub fn of(plan: &Plan) -> Option<Schedule> {
        let even = Schedule::even(plan)?;
        if plan.arrivals == Arrivals::Even {
            return Some(even);
        }
        let seed = format!("{} {}", plan.name(), plan.pace);
        let chance = Chance::of((even.segments[0].starts(), even.starts()), &even.counted, &seed);
        Some(Schedule { chance: Some(chance), ..even })
    }

    /// The number of all starts; it may include a fraction of one.
    fn starts(&self) -> f64 {
        self.segments.iter().map(Segment::starts).sum()
    }

    /// Whether a plan has more random starts than `Chance` can hold.
    pub fn is_beyond_chance(plan: &Plan) -> bool {
        plan.arrivals == Arrivals::Poisson && Schedule::even(plan).is_some_and(|even| even.starts() > chance::MOST)
    }

    fn even(plan: &Plan) -> Option<Schedule> {
        let Pace::Open { rate, .. } = plan.pace else { return None };
        let (warmup, window) = (plan.warmup.as_secs_f64(), plan.duration.as_secs_f64());
        let corners = match plan.shape {
            Shape::Steady => vec![(0.0, rate), (window, rate)],
            Shape::Ramp(time) => {
                let time = time.as_secs_f64();
                vec![(0.0, rate * FOOT), (time, rate), (window.max(time), rate)]
            }
            Shape::Day => {
                let mean = DAY.windows(2).map(|w| (w[1].0 - w[0].0) * w[0].1.midpoint(w[1].1)).sum::<f64>() / 24.0;
                DAY.iter().map(|(hour, level)| (window * hour / 24.0, rate * level / mean)).collect()
            }
        };
        let mut segments =
            vec![Segment { from: 0.0, seconds: warmup, rates: (corners[0].1, corners[0].1), before: 0.0 }];
        let mut before = segments[0].starts();
        let first = before;
        for pair in corners.windows(2) {
            let (from, seconds) = (warmup + pair[0].0, pair[1].0 - pair[0].0);
            segments.push(Segment { from, seconds, rates: (pair[0].1, pair[1].1), before });
            before += segments[segments.len() - 1].starts();
        }
        let grouped = segments.iter().any(|segment| segment.rates.0.max(segment.rates.1) > GROUPED_ABOVE);
        // The sums may be off in the last bit, which must not add a start.
        let whole = |starts: f64| (starts - 1e-6).ceil().max(0.0) as u64;
        Some(Schedule { segments, counted: whole(first)..whole(before), chance: None, grouped })
    }

    /// Returns when a start is due.
    pub fn due(&self, start: u64) -> Duration {
        let start = self.chance.as_ref().map_or(start as f64, |chance| chance.place(start));
        let at = self.segments.partition_point(|segment| segment.before <= start).saturating_sub(1);
        let Segment { from, seconds, rates: (first, last), before } = self.segments[at];
        let rest = start - before;
        // The time t with first·t + slope·t²/2 = rest, written so that a slope of zero causes no division by zero.
        let slope = if seconds > 0.0 { (last - first) / seconds } else { 0.0 };
        let root = (first * first + 2.0 * slope * rest).max(0.0).sqrt();
        let exact = 2.0 * rest / (first + root);
        // Counted from the segment's beginning, so that none comes before it.
        let since = if self.grouped { (exact * 1000.0).floor() / 1000.0 } else { exact };
        Duration::try_from_secs_f64(from + since).unwrap_or(Duration::MAX)
    }

    /// Returns the starts per second at a time since the beginning.
    pub fn rate(&self, at: Duration) -> f64 {
        let at = at.as_secs_f64();
        let segment = &self.segments[self.segments.partition_point(|segment| segment.from <= at).saturating_sub(1)];
        let share = if segment.seconds > 0.0 { ((at - segment.from) / segment.seconds).min(1.0) } else { 1.0 };
        segment.rates.0 + (segment.rates.1 - segment.rates.0) * share
    }

    /// Returns the starts that are due in the window.
    pub fn counted(&self) -> Range<u64> {
        self.counted.clone()
    }
}

impl Schedule {
    /// Returns how many of the counted starts are due before a time since the beginning.
    pub fn due_within(&self, at: Duration) -> u64 {
        let (mut from, mut to) = (self.counted.start, self.counted.end);
        while from < to {
            let middle = from.midpoint(to);
            if self.due(middle) < at { from = middle + 1 } else { to = middle }
        }
        from - self.counted.start
    }
}

/// Returns the users of a closed loop, or the starts per second of an open loop, at a time since the beginning.
pub fn level(plan: &Plan, at: Duration) -> f64 {
    let visitors = plan.pace.visitors();
    match Schedule::even(plan) {
        Some(schedule) => schedule.rate(at),
        None => (0..visitors).filter(|visitor| plan.joins(*visitor) <= at).count() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    fn schedule(shape: Shape, seconds: u64) -> Schedule {
        let pace = Pace::Open { rate: 100.0, visitors: 1 };
        let (warmup, duration) = (Duration::from_secs(2), Duration::from_secs(seconds));
        Schedule::of(&Plan { pace, shape, warmup, duration, ..plan() }).unwrap()
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-6 * expected.max(1.0)
    }

    #[test]
    fn a_steady_rate_starts_every_so_often() {
        let steady = schedule(Shape::Steady, 10);
        assert_eq!(steady.counted(), 200..1200);
        assert!(near(steady.due(0).as_secs_f64(), 0.0) && near(steady.due(777).as_secs_f64(), 7.77));
    }

    #[test]
    fn starts_by_chance_keep_the_rate_and_its_shape() {
        let shapes = [Shape::Steady, Shape::Day];
        for shape in shapes {
            let plan = Plan {
                pace: Pace::Open { rate: 100.0, visitors: 1 },
                shape,
                arrivals: Arrivals::Poisson,
                duration: Duration::from_secs(240),
                ..plan()
            };
            let (chance, even) = (Schedule::of(&plan).unwrap(), Schedule::even(&plan).unwrap());
            assert_eq!(chance.counted(), even.counted());
            let of = |schedule: &Schedule, second| schedule.due_within(Duration::from_secs(second)) as f64;
            // Within four standard deviations of a count.
            let near = |second| (of(&chance, second) - of(&even, second)).abs() < 4.0 * of(&even, second).sqrt();
            assert!([40, 80, 100, 200].into_iter().all(near) && of(&chance, 240) == 24_000.0);
            assert!((0..500).any(|start| chance.due(start) != even.due(start)));
        }
    }

    #[test]
    fn what_counts_is_due_in_the_window_whether_evenly_or_by_chance() {
        // Red where random starts use whole starts as the ends of the window.
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            for rate in [0.1, 0.33, 1.7, 12.34, 171.4925] {
                let pace = Pace::Open { rate, visitors: 1 };
                let (warmup, duration) = (Duration::from_secs(3), Duration::from_secs(20));
                let schedule = Schedule::of(&Plan { pace, arrivals, warmup, duration, ..plan() }).unwrap();
                let counted = schedule.counted();
                let is_in = |start| (warmup..warmup + duration).contains(&schedule.due(start));
                assert!(counted.clone().all(is_in), "{arrivals:?} {rate}");
                assert!((0..counted.start).all(|start| schedule.due(start) < warmup), "{arrivals:?} {rate}");
            }
        }
    }

    #[test]
    fn above_a_thousand_a_second_starts_come_in_groups_and_none_is_late_or_lost() {
        for (rate, grouped) in [(1000.0, false), (3441.0, true)] {
            let pace = Pace::Open { rate, visitors: 1 };
            // The warm-up ends within a millisecond.
            let (warmup, duration) = (Duration::from_micros(666_700), Duration::from_secs(2));
            let schedule = Schedule::of(&Plan { pace, warmup, duration, ..plan() }).unwrap();
            let counted = schedule.counted();
            let since = |start: u64| schedule.due(start).as_secs_f64() - warmup.as_secs_f64();
            let exact = |start: u64| start as f64 / rate - warmup.as_secs_f64();
            let early: Vec<f64> = counted.clone().map(|start| exact(start) - since(start)).collect();
            assert!(early.iter().all(|early| (-1e-6..0.001).contains(early)), "{rate}: {early:?}");
            assert!(counted.clone().all(|start| since(start) > -1e-6 && since(start) < 2.0), "{rate}");
            let mut dues: Vec<Duration> = counted.clone().map(|start| schedule.due(start)).collect();
            assert!(dues.is_sorted());
            dues.dedup();
            let groups = if grouped { 2000 } else { counted.clone().count() };
            assert_eq!(dues.len(), groups, "{rate}");
            assert_eq!(schedule.due_within(warmup + duration), counted.end - counted.start);
        }
    }

    #[test]
    fn a_ramp_climbs_to_the_rate_and_stays() {
        let ramp = schedule(Shape::Ramp(Duration::from_secs(4)), 10);
        // Two seconds at 5/s, four from 5 to 100, six at 100.
        assert_eq!(ramp.counted(), 10..10 + 210 + 600);
        let rates = [0, 2, 4, 6, 12].map(|at| ramp.rate(Duration::from_secs(at)));
        assert!(rates.iter().zip([5.0, 5.0, 52.5, 100.0, 100.0]).all(|(rate, expected)| near(*rate, expected)));
        // Halfway up the ramp: 5·2 + (95/4)·2²/2 = 57.5 starts.
        assert!(near(ramp.due(10 + 210).as_secs_f64(), 6.0));
        assert!(ramp.due(67) < Duration::from_secs(4) && ramp.due(68) > Duration::from_secs(4));
        let dues: Vec<_> = (0..820).map(|start| ramp.due(start)).collect();
        assert!(dues.is_sorted());
    }

    #[test]
    fn a_day_has_its_peak_in_the_morning_and_keeps_the_mean() {
        let day = schedule(Shape::Day, 24);
        assert_eq!(day.counted().count(), 2400);
        let rate = |hour: u64| day.rate(Duration::from_secs(2 + hour));
        assert!(near(rate(9), 375.0) && near(rate(3), 75.0) && near(rate(20), 75.0), "{}", rate(9));
    }

    #[test]
    fn what_is_due_is_known_at_every_moment() {
        let day = schedule(Shape::Day, 24);
        let due = |second: u64| day.due_within(Duration::from_secs(second));
        assert_eq!((due(0), due(2), due(26), due(99)), (0, 0, 2400, 2400));
        assert!(due(9) > 500 && due(11) - due(9) > 400, "{} {}", due(9), due(11));
        assert_eq!(schedule(Shape::Steady, 10).due_within(Duration::from_secs(7)), 500);
    }

    #[test]
    fn the_users_of_a_closed_loop_come_one_by_one() {
        let (warmup, duration) = (Duration::from_secs(1), Duration::from_secs(10));
        let shape = Shape::Ramp(Duration::from_secs(5));
        let plan =
            Plan { pace: Pace::Closed { visitors: 10, pause: Duration::ZERO }, shape, warmup, duration, ..plan() };
        let levels = [0, 1, 2, 3, 6, 11].map(|at| level(&plan, Duration::from_secs(at)) as u32);
        assert_eq!(levels, [1, 1, 3, 5, 10, 10]);
    }
}
