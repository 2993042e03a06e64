//! The way back, in a Galera cluster, to the server that the URL names first.
//!
//! All nodes are to use the same member: what one of them only looks at, another may change through another member. After a
//! failure they all went on to the next one in the same order; but one that is started anew then begins with the first that is fit,
//! which the others left. So everybody goes back to it, once it has been fit for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Pool;

/// For how long a member has to be fit before it is gone back to: one that comes and goes would have everybody follow it.
const STEADY: Duration = Duration::from_secs(30);

/// What is known of the way back.
#[derive(Default)]
pub(super) struct Home {
    /// Somebody looks.
    looking: bool,
    /// The first member that is fit, before the active one, and since when.
    fit: Option<(usize, Instant)>,
}

impl Home {
    /// Notes which member was found fit at this look; the one to go back to, if it is time.
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
    /// Asks those before the active one whether they are fit, beside everything else.
    pub(super) fn look_home(self: &Arc<Self>) {
        let before = {
            let mut state = self.state();
            let away = state.active > 0 && state.fitness.galera.is_some();
            if !away || state.home.looking || state.search.is_some() {
                return;
            }
            state.home.looking = true;
            state.active
        };
        let pool = Arc::clone(self);
        Handle::current().spawn(async move {
            let fit = pool.first_fit(before).await;
            pool.go_home(before, fit);
        });
    }

    async fn first_fit(&self, before: usize) -> Option<usize> {
        for at in 0..before {
            if let Ok((link, fitness)) = self.nodes[at].connect(0).await {
                // It is going either way.
                drop(link.conn.disconnect().await);
                if fitness.galera.is_some() {
                    return Some(at);
                }
            }
        }
        None
    }

    fn go_home(self: &Arc<Self>, before: usize, fit: Option<usize>) {
        let (tell, order) = {
            let mut state = self.state();
            if state.active != before {
                // Another one is used by now.
                state.home.looking = false;
                return;
            }
            let Some(home) = state.home.found(fit, Instant::now()) else { return };
            if state.search.is_some() {
                return;
            }
            let rest = (0..self.nodes.len()).filter(|at| *at != home);
            (state.begin_search(), std::iter::once(home).chain(rest).collect())
        };
        tracing::info!("the database server that the URL names first is fit again: it is gone back to");
        self.go_looking(tell, order, Instant::now());
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
        // Red where only the last look counts, or where another one inherits its time.
        assert_eq!(at(31, None), None);
        assert_eq!(at(61, Some(0)), None);
        assert_eq!(at(95, Some(1)), None);
        assert_eq!(at(125, Some(1)), Some(1));
    }
}
