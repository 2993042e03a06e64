//! The return, in a Galera cluster, to the server that the URL names first.
//!
//! All nodes should use the same member: what a batch only reads through one member, another batch may change through
//! another. After a failure all nodes move on in the same order, but a node that is restarted then begins with the
//! first fit server, which the others have left. So all nodes return to it once it has been fit for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::{Pool, identity};
use crate::caught::caught;
use crate::mysql::fitness::Fitness;

/// How long a member has to be fit before nodes return to it: a member that comes and goes would drag every node along.
const STEADY: Duration = Duration::from_secs(30);

/// The pause between the check of the active server and the check of the others.
const AFTER: Duration = Duration::from_secs(1);
/// How long work in flight has to finish; if it takes longer, the return is postponed.
const DRAINED: Duration = Duration::from_millis(300);

/// The state of the return to an earlier server.
#[derive(Default)]
pub(super) struct Home {
    /// Whether a check is running.
    looking: bool,
    /// The first server before the active one that is a member of its cluster, and since when.
    fit: Option<(usize, Instant)>,
}

impl Home {
    /// Notes which member this check found fit, and returns the member to return to, if it is time.
    fn found(&mut self, fit: Option<usize>, now: Instant) -> Option<usize> {
        self.looking = false;
        let since = match (fit, self.fit) {
            (Some(at), Some((was, since))) if at == was => since,
            _ => now,
        };
        self.fit = fit.map(|at| (at, since));
        fit.filter(|_| now.duration_since(since) >= STEADY)
    }
}

impl Pool {
    /// Checks whether servers before the active one are fit, in the background.
    #[allow(clippy::disallowed_methods, reason = "one at a time, and it ends: connecting has a deadline")]
    pub(super) fn look_home(self: &Arc<Self>) {
        let (before, fitness) = {
            let mut state = self.state();
            let away = state.active > 0 && state.fitness.galera.is_some();
            if !away || state.home.looking || state.search.is_some() {
                return;
            }
            state.home.looking = true;
            (state.active, state.fitness.clone())
        };
        let pool = Arc::clone(self);
        Handle::current().spawn(async move {
            // Lets the check of the active server finish first.
            sleep(AFTER).await;
            let fit = pool.first_with(before, &fitness).await;
            pool.go_home(before, fit);
        });
    }

    /// The first earlier server that is a member of the same cluster. One that was bootstrapped anew beside it is fit
    /// as well, but has none of its data.
    async fn first_with(&self, before: usize, active: &Fitness) -> Option<usize> {
        for at in 0..before {
            if let Ok((link, fitness)) = self.nodes[at].connect(0).await {
                // The connection is discarded either way.
                drop(caught(link.conn.disconnect()).await);
                if fitness.is_with(active) {
                    return Some(at);
                }
            }
        }
        None
    }

    fn go_home(self: &Arc<Self>, before: usize, fit: Option<usize>) {
        let (tell, home) = {
            let mut state = self.state();
            if state.active != before {
                // Another server is used by now.
                state.home.looking = false;
                return;
            }
            let Some(home) = state.home.found(fit, Instant::now()) else { return };
            if state.search.is_some() {
                return;
            }
            (state.begin_search(), home)
        };
        self.go_looking(tell, |pool| async move {
            if !pool.cross(before, home).await {
                // All callers had to wait, so this is not repeated at the next check.
                pool.state().home = Home::default();
            }
            Ok(())
        });
    }

    /// Moves to the earlier server once nothing is in flight and both are found to be members of one cluster: nothing
    /// is lost on the way. Otherwise everything stays as it is. Returns whether it moved.
    async fn cross(&self, before: usize, home: usize) -> bool {
        let Ok(Ok(_everything)) = timeout(DRAINED, self.places.acquire_many(self.size)).await else { return false };
        let era = self.state().idle.era;
        let Ok((link, here)) = self.nodes[before].connect(era).await else { return false };
        drop(caught(link.conn.disconnect()).await);
        let Ok((link, there)) = self.nodes[home].connect(era + 1).await else { return false };
        let (left, ended) = {
            let mut state = self.state();
            let is_known = here.identity == state.fitness.identity;
            if !is_known || !there.is_with(&here) || state.idle.era != era || state.active != before {
                return false;
            }
            let left = identity(&self.nodes[before].host.to_string(), &state.fitness);
            (left, std::mem::take(&mut state.idle.links))
        };
        drop(ended);
        tracing::info!("a database server listed earlier in the URL is usable again: switching back to it");
        // An error means that the pool was closed.
        self.enter(home, (link, there), Some(left)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_gone_back_to_once_it_has_been_fit_for_a_while() {
        let (mut home, start) = (Home::default(), Instant::now());
        let mut at = |seconds, fit| home.found(fit, start + Duration::from_secs(seconds));
        assert_eq!(at(0, Some(0)), None);
        assert_eq!(at(29, Some(0)), None);
        assert_eq!(at(30, Some(0)), Some(0));
        // Red where only the last check counts, or where another member inherits the time.
        assert_eq!(at(31, None), None);
        assert_eq!(at(61, Some(0)), None);
        assert_eq!(at(95, Some(1)), None);
        assert_eq!(at(125, Some(1)), Some(1));
    }
}
