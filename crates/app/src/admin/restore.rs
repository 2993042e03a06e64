//! Making a copy of the database safe to use.

use crate::{App, Fault, entropy};
use rules::events::{Event, Kind};
use rules::{Change, Time};
use store::tables::restore::revive_nothing;

/// Rows of each kind that one batch deletes.
const AT_ONCE: i64 = 5_000;

/// How much of what had been issued was removed from a copy.
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
    /// finished before anybody else uses the copy. The audit log says that it was done, and how much it was.
    pub async fn revive_nothing(&self) -> Result<Ended, Fault> {
        let mut ended = Ended::default();
        loop {
            let touched = self.engine.commit(revive_nothing(&self.realm.id, self.clock.now(), AT_ONCE)).await?;
            let [sessions, families, codes, opaque_tokens, devices, consents, workers, ..] = touched[..] else {
                return Err(Fault::Broken("the batch returned too few row counts".into()));
            };
            ended.sessions += sessions;
            ended.families += families;
            ended.codes += codes;
            ended.opaque_tokens += opaque_tokens;
            ended.devices += devices;
            ended.consents += consents;
            ended.workers += workers;
            if touched.iter().all(|rows| *rows < AT_ONCE.unsigned_abs()) {
                break;
            }
        }
        self.commit(vec![Change::Record(told(&ended, self.clock.now()))], self.clock.now(), &entropy::fresh()?).await?;
        Ok(ended)
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
