//! How many people per month that would be: arithmetic, only printed beside the rate and the assumptions behind it.

use super::demand::Operation;
use super::predict::Forecast;
use serde::{Deserialize, Serialize};

/// The share of a month's people who come on one day.
pub const DAILY: f64 = 0.20;
/// What each of them asks for on a day, in operations of a day's mix, of which one is a sign-in.
pub const OPERATIONS: f64 = 20.0;
/// The morning's rate relative to the mean of the day, as in W5: five times the quiet hours.
pub const PEAK: f64 = 3.75;
/// The share of the limit that is used in the morning.
pub const USED: f64 = 0.75;
const SECONDS: f64 = 86_400.0;

/// The arithmetic, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// Operations of a day's mix per second, in the morning.
    pub rate: f64,
    /// Their mean over a day.
    pub mean: f64,
    /// People per day.
    pub daily: f64,
    /// People per month.
    pub monthly: f64,
    /// Sign-ins per second in the morning.
    pub sign_ins: f64,
}

/// Computes it from the limit of a day's mix.
pub fn users(forecasts: &[Forecast]) -> Users {
    let limit = forecasts.iter().find(|one| one.operation == Operation::Day).map_or(0.0, |day| day.bound);
    let rate = limit * USED;
    let mean = rate / PEAK;
    let daily = mean * SECONDS / OPERATIONS;
    Users { rate, mean, daily, monthly: daily / DAILY, sign_ins: rate / OPERATIONS }
}
