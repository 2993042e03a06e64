//! A figure from several samples: their median, and their spread.

use serde::{Deserialize, Serialize};

/// The summary of several samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Their median.
    pub value: f64,
    /// Half the distance between the extremes, as a share of the median.
    pub spread: f64,
}

/// A spread above this is noise: the machine was busy with something else meanwhile.
const NOISY: f64 = 0.10;

impl Figure {
    /// Summarizes these samples; zero if there are none. Samples that are not numbers were not measured.
    pub fn of(samples: &[f64]) -> Figure {
        let mut sorted = samples.to_vec();
        sorted.retain(|sample| sample.is_finite());
        sorted.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else { return Figure::default() };
        let value = median(&sorted);
        Figure { value, spread: if value > 0.0 { (high - low) / 2.0 / value } else { 0.0 } }
    }

    /// Creates a figure without any spread.
    pub const fn exact(value: f64) -> Figure {
        Figure { value, spread: 0.0 }
    }

    /// Whether the samples differ too much to be believed.
    pub fn is_noisy(&self) -> bool {
        self.spread > NOISY
    }
}

/// Returns the middle value of sorted ones; NaN if there are none.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.is_empty() {
        return f64::NAN;
    }
    if sorted.len().is_multiple_of(2) { sorted[middle - 1].midpoint(sorted[middle]) } else { sorted[middle] }
}

/// Returns the value at this share (0 to 1) of sorted ones, interpolated between neighbors; zero if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, rest) = (place.floor() as usize, place.fract());
    sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * rest
}

/// Returns the means of `parts` consecutive parts of sorted values, whose lengths differ by at most one value; of fewer
/// parts if there are fewer values.
pub fn means(sorted: &[f64], parts: usize) -> Vec<f64> {
    let parts = parts.min(sorted.len());
    let bound = |part: usize| part * sorted.len() / parts;
    let part = |number| &sorted[bound(number)..bound(number + 1)];
    (0..parts).map(|number| part(number).iter().sum::<f64>() / part(number).len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_and_half_the_distance_of_the_extremes() {
        assert_eq!(Figure::of(&[12.0, 8.0, 10.0]), Figure { value: 10.0, spread: 0.2 });
        assert_eq!(Figure::of(&[1.0, 3.0]).value, 2.0);
        assert_eq!(Figure::of(&[]), Figure::default());
        assert_eq!(Figure::of(&[f64::NAN, 3.0, f64::INFINITY]), Figure::exact(3.0));
        assert!(Figure::of(&[12.0, 8.0, 10.0]).is_noisy() && !Figure::of(&[10.0, 10.5]).is_noisy());
    }

    #[test]
    fn one_value_that_is_far_away_is_in_the_last_part_alone() {
        let mut values = vec![1.0; 999];
        values.push(101.0);
        let means = means(&values, 100);
        assert_eq!((means.len(), means[98], means[99]), (100, 1.0, 11.0));
        assert!((means.iter().sum::<f64>() / 100.0 - 1.1).abs() < 1e-9, "the mean of all is kept");
        assert_eq!(super::means(&[1.0, 3.0, 5.0], 2), [1.0, 4.0]);
        assert!(super::means(&[], 100).is_empty());
    }

    #[test]
    fn quantiles_lie_between_neighbors() {
        let values = [0.0, 10.0, 20.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0, 7.0].map(|share| quantile(&values, share)), [0.0, 5.0, 10.0, 20.0, 20.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
