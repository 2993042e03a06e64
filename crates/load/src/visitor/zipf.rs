//! Users of unequal activity: the n-th most active user comes 1/n times as often as the first (Zipf's law).

/// How often each user comes.
pub struct Zipf {
    /// The share of each user together with all the users before it.
    cumulative: Vec<f64>,
}

impl Zipf {
    /// Creates the distribution for `count` users.
    pub fn new(count: usize) -> Zipf {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|share| *share /= sum);
        Zipf { cumulative }
    }

    /// Returns the user for a number drawn from 0 to 1.
    pub fn pick(&self, drawn: f64) -> usize {
        self.cumulative.partition_point(|share| *share <= drawn).min(self.cumulative.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_comes_half_as_often_as_the_first() {
        let zipf = Zipf::new(4);
        // 1 + 1/2 + 1/3 + 1/4 = 25/12.
        for (drawn, expected) in [(0.0, 0), (0.47, 0), (0.49, 1), (0.71, 1), (0.73, 2), (0.87, 2), (0.89, 3), (1.0, 3)]
        {
            assert_eq!(zipf.pick(drawn), expected, "{drawn}");
        }
        assert_eq!(Zipf::new(1).pick(0.5), 0);
    }
}
