//! Where requests waited while a profile was taken, and how long the queues were.

use crate::http::Site;
use crate::metrics::{Spent, Store};
use app::stopwatch::Stage;
use serde::{Deserialize, Serialize};

/// The requests of a route that were answered during the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The template of the route.
    pub route: String,
    /// How many requests.
    pub requests: u64,
    /// How long they took together, in seconds.
    pub seconds: f64,
    /// How much of that was spent waiting, and for what, in the order of a sign-in. The rest is computing, rendering
    /// and waiting for a core.
    pub phases: Vec<Phase>,
}

/// Waiting for one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What was waited for, as in metrics, logs and traces.
    pub name: String,
    /// How long, in seconds.
    pub seconds: f64,
    /// Its share of the requests' time.
    pub share: f64,
}

/// A queue, as the looks during the profile found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// What was waited for.
    pub name: String,
    /// How many waited on average.
    pub mean: f64,
    /// How many waited at most.
    pub most: u64,
}

/// Returns the requests that were answered between two looks; routes that took longest in total come first.
pub fn between(before: &[Spent], after: Vec<Spent>) -> Vec<Route> {
    let since = |now: Spent| match before.iter().find(|then| then.route == now.route) {
        None => now,
        Some(then) => Spent {
            requests: now.requests - then.requests,
            seconds: now.seconds - then.seconds,
            stages: std::array::from_fn(|at| now.stages[at] - then.stages[at]),
            route: now.route,
        },
    };
    let answered = after.into_iter().map(since).filter(|spent| spent.requests > 0);
    let mut routes: Vec<Route> = answered.map(Route::of).collect();
    routes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    routes
}

impl Route {
    fn of(Spent { route, requests, seconds, stages }: Spent) -> Self {
        // Stages that go on side by side are counted twice.
        let share = |part: f64| if seconds > 0.0 { (part / seconds).min(1.0) } else { 0.0 };
        let phase =
            |(stage, part): (Stage, f64)| Phase { name: stage.name().into(), seconds: part, share: share(part) };
        let phases = Stage::ALL.into_iter().zip(stages).filter(|(_, part)| *part > 0.0).map(phase).collect();
        Route { route, requests, seconds, phases }
    }

    /// Returns the share of its time in which it waited for nothing that is timed.
    pub fn other(&self) -> f64 {
        (1.0 - self.phases.iter().map(|phase| phase.share).sum::<f64>()).max(0.0)
    }
}

/// Looks at the queues repeatedly.
#[derive(Default)]
pub struct Queues {
    looks: u64,
    /// For each queue its name, the sum over all looks, and the most.
    seen: Vec<(&'static str, u64, u64)>,
}

impl Queues {
    /// Looks at all queues.
    pub fn look(&mut self, site: &Site) {
        let [tokens, pages, passwords] = site.admission.lanes().map(|(_, lane)| lane.waiting);
        self.note([
            ("password hashing", site.app.hasher.state().waiting),
            ("the database", Store::of(&site.database).waiting().0),
            ("the door: sign-ins", passwords),
            ("the door: pages", pages),
            ("the door: tokens", tokens),
            // No bar above shows where these hang: the bars are about requests that were answered.
            ("requests under way", usize::try_from(site.requests.in_flight()).unwrap_or(usize::MAX)),
        ]);
    }

    fn note(&mut self, queues: [(&'static str, usize); 6]) {
        self.looks += 1;
        self.seen.resize(queues.len(), ("", 0, 0));
        for ((known, sum, most), (name, waiting)) in self.seen.iter_mut().zip(queues) {
            let waiting = waiting as u64;
            (*known, *sum, *most) = (name, *sum + waiting, waiting.max(*most));
        }
    }

    /// Returns what was seen.
    pub fn seen(&self) -> Vec<Queue> {
        let mean = |sum: u64| sum as f64 / self.looks.max(1) as f64;
        self.seen
            .iter()
            .map(|(name, sum, most)| Queue { name: (*name).into(), mean: mean(*sum), most: *most })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(route: &str, requests: u64, seconds: f64, hash: f64) -> Spent {
        let mut stages = [0.0; Stage::ALL.len()];
        stages[Stage::Hash as usize] = hash;
        Spent { route: route.into(), requests, seconds, stages }
    }

    #[test]
    fn only_what_was_answered_meanwhile_is_told() {
        let before = [spent("/quiet", 7, 70.0, 7.0), spent("/busy", 1, 100.0, 50.0)];
        let after = vec![spent("/quiet", 7, 70.0, 7.0), spent("/busy", 3, 104.0, 53.0), spent("/new", 1, 8.0, 0.0)];
        let routes = between(&before, after);
        let named: Vec<_> = routes.iter().map(|route| (&*route.route, route.requests, route.seconds)).collect();
        assert_eq!(named, [("/new", 1, 8.0), ("/busy", 2, 4.0)]);
        assert_eq!(routes[1].phases, [Phase { name: "hash".into(), seconds: 3.0, share: 0.75 }]);
        assert_eq!((routes[0].other(), routes[1].other()), (1.0, 0.25));
    }

    #[test]
    fn a_queue_has_a_mean_and_a_peak() {
        let mut queues = Queues::default();
        for waiting in [0, 9, 3] {
            queues.note(["a", "b", "c", "d", "e", "f"].map(|name| (name, if name == "b" { waiting } else { 0 })));
        }
        let seen = queues.seen();
        assert_eq!((&*seen[1].name, seen[1].mean, seen[1].most, seen[0].most), ("b", 4.0, 9, 0));
    }
}
