//! The errands of W2 and W5, one of which is picked at random for each iteration.

use super::{Setback, Visitor};
use crate::plan::Workload;

/// One purpose of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// To sign in and get tokens.
    Arrive,
    Refresh,
    Introspect,
    Claims,
    Keys,
    Discovery,
    Device,
    /// To read the account, or the userinfo claims where there is no account API.
    Profile,
}

/// Shares in percent.
const TRAFFIC: [(u32, Errand); 3] = [(70, Errand::Claims), (20, Errand::Device), (10, Errand::Profile)];
/// Shares in thousandths.
const DAY: [(u32, Errand); 7] = [
    (50, Errand::Arrive),
    (300, Errand::Refresh),
    (400, Errand::Introspect),
    (150, Errand::Claims),
    (45, Errand::Keys),
    (45, Errand::Discovery),
    (10, Errand::Profile),
];

/// Returns the errands of a workload with their shares; empty where every iteration is the same.
pub(super) fn errands(workload: Workload) -> &'static [(u32, Errand)] {
    match workload {
        Workload::Traffic => &TRAFFIC,
        Workload::Day => &DAY,
        _ => &[],
    }
}

/// Returns the errand at position `at`, with the shares laid end to end.
fn pick(errands: &[(u32, Errand)], mut at: u32) -> Option<Errand> {
    let found = errands.iter().find(|(share, _)| match at.checked_sub(*share) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    });
    found.map(|(_, errand)| *errand)
}

impl Visitor {
    /// Runs a random errand. A visitor of W5 that has lost its tokens signs in again.
    pub(super) async fn some_errand(&mut self) -> Result<(), Setback> {
        let workload = self.scene.plan.workload;
        let errands = errands(workload);
        let whole: u32 = errands.iter().map(|(share, _)| share).sum();
        let at = self.rng.u32(..whole);
        let lost = workload == Workload::Day && self.held.access.is_empty();
        let errand = pick(errands, at).filter(|_| !lost).unwrap_or(Errand::Arrive);
        self.run(errand).await
    }

    /// Runs every errand once, so that nothing is left to chance.
    pub(super) async fn every_errand(&mut self) -> Result<(), Setback> {
        for (_, errand) in errands(self.scene.plan.workload) {
            self.run(*errand).await?;
        }
        Ok(())
    }

    async fn run(&mut self, errand: Errand) -> Result<(), Setback> {
        match errand {
            Errand::Arrive => self.arrive().await,
            Errand::Refresh => self.refresh().await,
            Errand::Introspect => self.introspect().await,
            Errand::Claims => self.userinfo().await,
            Errand::Keys => self.keys().await,
            Errand::Discovery => self.discovery().await,
            Errand::Device => self.device().await,
            Errand::Profile => self.profile().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errand_is_picked_as_often_as_its_share_says() {
        for (errands, whole) in [(&TRAFFIC[..], 100), (&DAY[..], 1000)] {
            for (share, errand) in errands {
                let count = (0..whole).filter(|at| pick(errands, *at) == Some(*errand)).count();
                assert_eq!(count, *share as usize, "{errand:?}");
            }
            assert_eq!(pick(errands, whole), None);
        }
    }
}
