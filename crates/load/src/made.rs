//! When, where and by which version a result was made.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999: an HTTP date has four digits for the year.
const LAST: u64 = 253_402_300_799;

/// The origin of a result, for somebody who finds the file later. None of it identifies the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The version of the program.
    pub version: String,
    /// Seconds since 1970, UTC, when the measurement began.
    pub at: u64,
    /// The machine of the generator: model and number of its CPUs, system and release.
    pub machine: String,
}

impl Made {
    /// Returns the origin for a measurement that begins here and now.
    #[allow(clippy::disallowed_methods, reason = "nothing depends on it: it is written down for people")]
    pub fn here() -> Made {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Made { version: env!("CARGO_PKG_VERSION").to_owned(), at: since.as_secs(), machine: machine() }
    }
}

impl Made {
    /// Returns when it began, in UTC: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn date(&self) -> String {
        // A file may hold any number.
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(self.at.min(LAST)));
        at.map(httpdate::fmt_http_date).unwrap_or_default()
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Made { version, at: _, machine } = self;
        write!(f, "Measured by Portiere {version} on {machine}, {}", self.date())
    }
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let system = rustix::system::uname();
    let [name, release, kind] =
        [system.sysname(), system.release(), system.machine()].map(|text| text.to_string_lossy());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let word = if cores == 1 { "core" } else { "cores" };
    format!("{}, {cores} {word}, {name} {release}", model.map_or(&*kind, |(_, model)| model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_where_it_is_from() {
        let made = Made::here();
        assert!(made.at > 1_700_000_000 && made.machine.contains(" core"), "{made:?}");
        assert_eq!(made.version, env!("CARGO_PKG_VERSION"));
        let text = serde_json::to_string(&made).unwrap();
        assert_eq!(serde_json::from_str::<Made>(&text).unwrap(), made);
        let said = |at| Made { version: "1.2".to_owned(), at, machine: "a machine, 2 cores".to_owned() }.to_string();
        let day = "Measured by Portiere 1.2 on a machine, 2 cores, Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(said(784_111_777), day);
        assert!(said(u64::MAX).ends_with("31 Dec 9999 23:59:59 GMT"));
    }
}
