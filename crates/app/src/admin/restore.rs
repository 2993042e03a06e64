//! Making a copy of the database safe to use.

use crate::{App, Fault, entropy};
use rules::events::{Event, Kind};
use rules::{Change, Time};
use store::engine::CommitError;
use store::tables::restore::{Issued, trust_nobody};

/// Rows that one batch deletes.
const AT_ONCE: i64 = 5_000;
/// The same where the database did not answer in time: a tenth each time, but not fewer than this.
const FEWEST: i64 = 50;

/// How much of what had been issued was removed from a copy, by a run that came to its end: what one before it removed
/// is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Sessions.
    pub sessions: u64,
    /// Families of refresh and access tokens.
    pub families: u64,
    /// Authorization codes.
    pub codes: u64,
    /// Opaque access tokens.
    pub opaque_tokens: u64,
    /// Devices that waited for an answer or for their tokens.
    pub devices: u64,
    /// Consents.
    pub consents: u64,
    /// Hash workers that were trusted.
    pub workers: u64,
}

impl App {
    /// Ends everything that was issued before this copy of the database was made: what was signed out or revoked since
    /// then must not live again, and the copy cannot know what that was. Nor does it know which hash workers were
    /// revoked or quarantined since, so none is asked until an operator trusts it again. Runs in batches; to be
    /// finished before anybody else uses the copy; a run that was interrupted is done again. The audit log says that it
    /// was done, and how much the last run removed.
    pub async fn revive_nothing(&self) -> Result<Ended, Fault> {
        let touched = self.engine.commit(trust_nobody(&self.realm.id, self.clock.now())).await?;
        let ended = Ended {
            workers: touched.first().copied().unwrap_or_default(),
            sessions: self.drop_all(Issued::Sessions).await?,
            families: self.drop_all(Issued::Families).await?,
            codes: self.drop_all(Issued::Codes).await?,
            opaque_tokens: self.drop_all(Issued::OpaqueTokens).await?,
            devices: self.drop_all(Issued::Devices).await?,
            consents: self.drop_all(Issued::Consents).await?,
        };
        self.commit(vec![Change::Record(told(&ended, self.clock.now()))], self.clock.now(), &entropy::fresh()?).await?;
        Ok(ended)
    }

    /// Deletes all rows of a kind, in batches: smaller ones after one that the database may have had no time for.
    async fn drop_all(&self, issued: Issued) -> Result<u64, Fault> {
        let (mut gone, mut limit) = (0, AT_ONCE);
        loop {
            match self.engine.commit(vec![issued.drop_first(&self.realm.id, limit)]).await {
                Ok(touched) => {
                    let touched: u64 = touched.iter().sum();
                    gone += touched;
                    if touched < limit.unsigned_abs() {
                        return Ok(gone);
                    }
                }
                Err(CommitError::Unknown(_) | CommitError::Unavailable(_)) if limit > FEWEST => limit /= 10,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Returns the audit entry about it.
fn told(ended: &Ended, at: Time) -> Event {
    let Ended { sessions, families, codes, opaque_tokens, devices, consents, workers } = *ended;
    let counts = [
        ("sessions", sessions),
        ("families", families),
        ("codes", codes),
        ("opaque_tokens", opaque_tokens),
        ("devices", devices),
        ("consents", consents),
        ("workers", workers),
    ];
    counts.into_iter().fold(Event::new(Kind::Restored, at), |event, (what, many)| event.detail(what, many))
}
