//! Which versions of the language a side speaks, and which of them two sides use with each other.
//!
//! A worker says in its first frame which versions it speaks; the server takes the highest that both speak, and names
//! it. So a release speaks the previous release's version beside its own, and servers and workers may be upgraded in
//! any order.

use std::fmt;

/// A range of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    lowest: u8,
    highest: u8,
}

impl Versions {
    /// The versions that this program speaks.
    pub const OURS: Versions = Versions { lowest: 1, highest: 1 };

    /// The versions from `lowest` to `highest`, the first version being 1; `None` if there are none.
    pub const fn between(lowest: u8, highest: u8) -> Option<Self> {
        if lowest == 0 || lowest > highest { None } else { Some(Versions { lowest, highest }) }
    }

    /// The lowest version.
    pub fn lowest(self) -> u8 {
        self.lowest
    }

    /// The highest version.
    pub fn highest(self) -> u8 {
        self.highest
    }

    /// Whether `version` is in the range.
    pub fn have(self, version: u8) -> bool {
        (self.lowest..=self.highest).contains(&version)
    }

    /// The version that a server with these versions speaks with `worker`: the highest that both speak.
    ///
    /// # Errors
    /// [`Apart`] when they have none in common.
    pub fn with(self, worker: Versions) -> Result<u8, Apart> {
        let highest = self.highest.min(worker.highest);
        if self.have(highest) && worker.have(highest) { Ok(highest) } else { Err(Apart { server: self, worker }) }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "version {}", self.lowest),
            false => write!(f, "versions {} to {}", self.lowest, self.highest),
        }
    }
}

/// A server and a worker have no version in common. Its text tells the reader on either side which of them to upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The versions that the server speaks.
    pub server: Versions,
    /// The versions that the worker speaks.
    pub worker: Versions,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Apart { server, worker } = self;
        let older = if server.highest < worker.lowest { "the server" } else { "the worker" };
        write!(f, "the server speaks {server} of the hash worker protocol, the worker {worker}: upgrade {older}")
    }
}

impl std::error::Error for Apart {}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lowest: u8, highest: u8) -> Versions {
        Versions::between(lowest, highest).unwrap()
    }

    #[test]
    fn two_sides_speak_the_highest_version_that_both_know() {
        // Red where the lowest is taken, or one side's highest whatever the other speaks.
        for (server, worker, common) in [
            (of(1, 1), of(1, 1), 1),
            (of(2, 3), of(2, 3), 3),
            (of(1, 2), of(1, 1), 1),
            (of(1, 1), of(1, 2), 1),
            (of(1, 4), of(2, 3), 3),
            (of(2, 3), of(1, 9), 3),
            (of(3, 4), of(1, 3), 3),
            (of(1, 255), of(255, 255), 255),
        ] {
            assert_eq!(server.with(worker), Ok(common), "{server} with {worker}");
            assert_eq!(worker.with(server), Ok(common), "{worker} with {server}");
        }
    }

    #[test]
    fn who_has_to_be_upgraded_is_said_where_there_is_no_common_version() {
        for (server, worker, older) in [
            (
                of(2, 3),
                of(1, 1),
                "the server speaks versions 2 to 3 of the hash worker protocol, the worker version 1: upgrade the worker",
            ),
            (
                of(1, 1),
                of(2, 3),
                "the server speaks version 1 of the hash worker protocol, the worker versions 2 to 3: upgrade the server",
            ),
        ] {
            let apart = server.with(worker).unwrap_err();
            assert_eq!(apart, Apart { server, worker });
            assert_eq!(apart.to_string(), older);
        }
    }

    #[test]
    fn every_pair_has_the_version_that_one_finds_by_trying_all() {
        let all = || (1..=6).flat_map(|lowest| (lowest..=6).map(move |highest| of(lowest, highest)));
        for (server, worker) in all().flat_map(|server| all().map(move |worker| (server, worker))) {
            let wanted = (1..=6).rev().find(|version| server.have(*version) && worker.have(*version));
            assert_eq!(server.with(worker).ok(), wanted, "{server} with {worker}");
        }
        for (lowest, highest) in [(0, 0), (0, 1), (2, 1), (255, 1)] {
            assert_eq!(Versions::between(lowest, highest), None);
        }
    }
}
