//! How certain a ratio of two means is, judged by how much the values of each vary (Welch's t).

/// Student's t with 2.5 % beyond it on each side, for 1 degree of freedom and more.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// A mean over runs.
pub struct Mean {
    /// The mean itself.
    pub mean: f64,
    /// The variance of its logarithm.
    variance: f64,
    /// Degrees of freedom.
    freedom: f64,
}

impl Mean {
    /// Computes the mean of one value per run.
    pub fn of(values: &[f64]) -> Mean {
        let (count, freedom) = (values.len() as f64, values.len() as f64 - 1.0);
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom;
        Mean { mean, variance: variance / count / mean.powi(2), freedom }
    }
}

/// Returns the interval of the ratio of `b` to `a`.
pub fn welch(a: &Mean, b: &Mean) -> (f64, f64) {
    let (variance, ratio) = (a.variance + b.variance, b.mean / a.mean);
    let freedom = variance.powi(2) / (a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom);
    let reach = student(freedom) * variance.sqrt();
    // Runs that do not differ at all, or that are empty.
    if !reach.is_finite() {
        return (ratio, ratio);
    }
    (ratio * (-reach).exp(), ratio * reach.exp())
}

/// Returns Student's t for a 95 % interval; between whole degrees of freedom it uses the lower one.
pub fn student(freedom: f64) -> f64 {
    const NORMAL: f64 = 1.96;
    match STUDENT.get((freedom as usize).saturating_sub(1)) {
        Some(t) => *t,
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom),
    }
}
