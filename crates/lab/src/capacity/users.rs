//! How many people a month that would be: arithmetic, printed only beside the rate and the assumptions that it stands on.

use super::demand::Operation;
use super::predict::Forecast;
use serde::{Deserialize, Serialize};

/// Of those who come in a month, the share that comes on a day.
pub const DAILY: f64 = 0.20;
/// What one of them asks for on a day, in operations of a day's mix: one sign-in among them.
pub const OPERATIONS: f64 = 20.0;
/// The morning's rate beside the mean of the day, as W5 has it: five times the quiet hours.
pub const PEAK: f64 = 3.75;
/// How much of the limit is used in the morning.
pub const USED: f64 = 0.75;
const SECONDS: f64 = 86_400.0;

/// The arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// Operations of a day's mix a second, in the morning.
    pub rate: f64,
    /// Their mean over a day.
    pub mean: f64,
    /// People on a day.
    pub daily: f64,
    /// People in a month.
    pub monthly: f64,
    /// Of people who come on one day, those who sign in in its busiest second.
    pub sign_ins: f64,
}

/// From the limit of a day's mix.
pub fn users(forecasts: &[Forecast]) -> Users {
    let limit = forecasts.iter().find(|one| one.operation == Operation::Day).map_or(0.0, |day| day.bound);
    let rate = limit * USED;
    let mean = rate / PEAK;
    let daily = mean * SECONDS / OPERATIONS;
    Users { rate, mean, daily, monthly: daily / DAILY, sign_ins: rate / OPERATIONS }
}
