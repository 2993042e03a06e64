//! Everything that came of it, as one structure: for people, as JSON, and as a page.

use super::advice::{self, Change, Settings};
use super::predict::{Forecast, Generator, forecasts, stations};
use super::probe::Probes;
use super::users::{Users, users};
use super::verify::Verification;
use serde::{Deserialize, Serialize};

/// What this machine can carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// By kind of operation.
    pub forecasts: Vec<Forecast>,
    /// What would help.
    pub changes: Vec<Change>,
    /// What suits it.
    pub settings: Settings,
    /// People a month.
    pub users: Users,
    /// What all that was made of.
    pub probes: Probes,
    /// Predicted beside measured, where that was asked for.
    #[serde(default)]
    pub verification: Option<Verification>,
}

impl Capacity {
    /// What follows from what was measured.
    pub fn of(probes: Probes) -> Capacity {
        let forecasts = forecasts(&stations(&probes, Generator::Elsewhere));
        Capacity {
            changes: advice::changes(&probes),
            settings: advice::settings(&probes),
            users: users(&forecasts),
            forecasts,
            probes,
            verification: None,
        }
    }
}
