//! Random starts, like those of people who act independently of each other: a Poisson process.
//!
//! If the number of such starts in a period is known, they lie like that many random numbers in order: the gaps between
//! them, before the first and after the last are exponentially distributed values, divided by their sum. So a window
//! gets exactly the number of starts that its rate implies. The draw is the same in every run of a plan: two runs
//! differ in what they measured, not in when the starts came.

use std::ops::Range;

/// The most starts that are drawn: this takes a second of work, and 25 MB.
pub const MOST: f64 = 1e8;

/// Only the first of this many starts is kept; the ones in between are drawn again when one of them is looked up.
const BLOCK: u64 = 64;

/// Where the starts of a schedule lie, in units of evenly spaced starts.
pub struct Chance {
    /// The time before the window, and the window.
    parts: [Part; 2],
}

impl Chance {
    /// Draws the `counted` starts of a window from `begin` to `end`, and those before it. Streams that run side by side
    /// need different seeds, or their starts would all come at the same moments.
    pub fn of((begin, end): (f64, f64), counted: &Range<u64>, seed: &str) -> Chance {
        let mut draw = Draw::of(seed);
        let before = Part::of(0..counted.start, (0.0, begin), &mut draw);
        Chance { parts: [before, Part::of(counted.clone(), (begin, end), &mut draw)] }
    }

    /// Returns the place of a start; a start after the window lies at its number.
    pub fn place(&self, start: u64) -> f64 {
        let part = self.parts.iter().find(|part| part.starts.contains(&start));
        part.map_or(start as f64, |part| part.place(start))
    }
}

/// A period with a known number of starts.
struct Part {
    starts: Range<u64>,
    from: f64,
    /// The length of a gap of one.
    scale: f64,
    /// For the first start of each block: the state that its gap is drawn from, and the sum of the gaps before it.
    blocks: Vec<(Draw, f64)>,
}

impl Part {
    fn of(starts: Range<u64>, (from, to): (f64, f64), draw: &mut Draw) -> Part {
        let many = starts.end - starts.start;
        let (mut blocks, mut sum) = (Vec::new(), 0.0);
        for start in 0..many {
            if start.is_multiple_of(BLOCK) {
                blocks.push((*draw, sum));
            }
            sum += draw.gap();
        }
        Part { starts, from, scale: (to - from) / (sum + draw.gap()), blocks }
    }

    fn place(&self, start: u64) -> f64 {
        let within = start - self.starts.start;
        let Some((mut draw, before)) = self.blocks.get((within / BLOCK) as usize).copied() else { return start as f64 };
        let sum = (0..=within % BLOCK).fold(before, |sum, _| sum + draw.gap());
        self.from + sum * self.scale
    }
}

/// Pseudorandom numbers (xorshift).
#[derive(Clone, Copy)]
struct Draw(u64);

impl Draw {
    fn of(seed: &str) -> Draw {
        // FNV-1a; never zero, because xorshift would stay at zero.
        let mixed = seed
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |mixed: u64, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        Draw(mixed | 1)
    }

    /// Returns an exponentially distributed number with a mean of one.
    fn gap(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        -(1.0 - (self.0 >> 11) as f64 / (1u64 << 53) as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential_and_none_leads_out_of_the_window() {
        let chance = Chance::of((500.0, 20_500.0), &(500..20_500), "w1");
        let places: Vec<f64> = (500..20_500).map(|start| chance.place(start)).collect();
        assert!(places.is_sorted() && places[0] >= 500.0 && places[places.len() - 1] <= 20_500.0);
        let gaps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let share = |least: f64| gaps.iter().filter(|gap| **gap > least).count() as f64 / gaps.len() as f64;
        for least in [0.1, 1.0, 3.0] {
            assert!((share(least) - f64::exp(-least)).abs() < 0.01, "{least}: {}", share(least));
        }
        // Successive gaps are not correlated.
        let (mean, pairs) = (1.0, gaps.windows(2));
        let together = pairs.map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        assert!(together.abs() < 0.03, "{together}");
    }

    #[test]
    fn what_lies_before_and_behind_the_window_stays_there() {
        let chance = Chance::of((100.0, 200.0), &(100..200), "w1");
        let places: Vec<f64> = (0..210).map(|start| chance.place(start)).collect();
        assert!(places.is_sorted() && places[99] <= 100.0 && places[100] >= 100.0 && places[199] <= 200.0);
        assert_eq!(places[205], 205.0);
        assert_eq!(Chance::of((0.0, 0.0), &(0..0), "w1").place(3), 3.0);
    }

    #[test]
    fn streams_side_by_side_do_not_come_together() {
        let of = |seed| Chance::of((0.0, 100.0), &(0..100), seed);
        let (one, again, other) = (of("w1 at 5"), of("w1 at 5"), of("jwks at 5"));
        assert!((0..100).all(|start| one.place(start) == again.place(start)), "the same in every run");
        assert!((0..100).all(|start| one.place(start) != other.place(start)));
    }
}
