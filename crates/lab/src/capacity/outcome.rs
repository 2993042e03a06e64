//! The whole result as one structure: for people, as JSON, and as a page.

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
    /// When, where and by which version it was measured; `None` in results from before this field.
    #[serde(default)]
    pub made: Option<Made>,
    /// The forecast of each kind of operation.
    pub forecasts: Vec<Forecast>,
    /// Changes that might help.
    pub changes: Vec<Change>,
    /// Sign-ins by number of hash workers, from none; the last entry is the first that is not worth it.
    #[serde(default)]
    pub workers: Vec<Staffed>,
    /// The settings that suit it.
    pub settings: Settings,
    /// How many people per month it can serve.
    pub users: Users,
    /// The measurements that all of this is based on.
    pub probes: Probes,
    /// The prediction compared with measurements, if that was asked for.
    #[serde(default)]
    pub verification: Option<Verification>,
}

impl Capacity {
    /// Derives everything from the measurements, wherever they were made.
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
