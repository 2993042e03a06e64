//! Which node does a job that one node does for all nodes.

use crate::{App, Fault};
use rules::{Span, Time};
use store::engine::CommitError;
use store::tables::leases::{self, Lease};

/// How long a node has the job. Clocks of nodes may differ by a good part of this: then two do it, which only costs.
pub(crate) const LEASE: Span = Span::seconds(90);

/// A lease that runs for longer than this was given by a clock that was wrong: nobody waits for its end, which may be
/// years ahead.
const BELIEVED: Span = Span(2 * LEASE.0);

impl App {
    /// Takes or keeps the lease of a job; returns until when this node has it.
    pub(crate) async fn leads(&self, job: &str) -> Result<Option<Time>, Fault> {
        let (seen, now) = (self.ask(leases::Of(job)).await?, self.clock.now());
        let runs = |seen: &Lease| !seen.until.has_come(now) && seen.until <= now + BELIEVED;
        if seen.as_ref().is_some_and(|seen| seen.node != self.node && runs(seen)) {
            return Ok(None);
        }
        let next = Lease { node: self.node.clone(), until: now + LEASE };
        match self.engine.commit(vec![leases::take(&self.realm.id, job, seen.as_ref(), &next)]).await {
            Ok(_) => Ok(Some(next.until)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes over the jobs of other nodes where it is known that none runs: a node that was killed gave nothing back.
    pub async fn take_over(&self) -> Result<(), Fault> {
        self.engine.commit(vec![leases::void(&self.realm.id)]).await?;
        Ok(())
    }
}
