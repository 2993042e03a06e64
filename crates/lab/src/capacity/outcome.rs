//! Everything that came of it, as one structure: for people, as JSON, and as a page.

use super::advice::{self, Change, Settings, Staffed};
use super::predict::{Forecast, Generator, forecasts, stations};
use super::probe::Probes;
use super::users::{Users, users};
use super::verify::Verification;
use load::made::Made;
use serde::{Deserialize, Serialize};

/// What this machine can carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// When, where and by which version it was measured; `None` in a result of before this was told.
    #[serde(default)]
    pub made: Option<Made>,
    /// By kind of operation.
    pub forecasts: Vec<Forecast>,
    /// What would help.
    pub changes: Vec<Change>,
    /// Sign-ins by the number of hash workers, none first; the last is the first that is not worth it.
    #[serde(default)]
    pub workers: Vec<Staffed>,
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
    /// What follows from what was measured, wherever that was.
    pub fn of(probes: Probes) -> Capacity {
        let forecasts = forecasts(&stations(&probes, Generator::Elsewhere));
        Capacity {
            made: None,
            changes: advice::changes(&probes),
            workers: advice::staffed(&stations(&probes, Generator::Elsewhere)),
            settings: advice::settings(&probes),
            users: users(&forecasts),
            forecasts,
            probes,
            verification: None,
        }
    }
}
