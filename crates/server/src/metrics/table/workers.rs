//! Hash workers.

use crate::metrics::declare::{Group, Samples, counter, gauge};
use crate::metrics::moment::Moment;
use hasher::remote::{Counts, WorkerState};
use rules::secret::base64url;
use std::collections::BTreeMap;
use std::fmt::Display;

/// One of the counts of a worker.
type Count = fn(&Counts) -> u64;

/// What a worker has done.
const COUNTS: [(&str, Count); 10] = [
    ("asked", |counts| counts.asked),
    ("answered", |counts| counts.answered),
    ("refusal", |counts| counts.refusals),
    ("canary", |counts| counts.canaries),
    ("lie", |counts| counts.lies),
    ("failed", |counts| counts.failed),
    ("hedged", |counts| counts.hedged),
    ("late", |counts| counts.late),
    ("duplicate", |counts| counts.duplicate),
    ("unknown", |counts| counts.unknown),
];

/// A worker with all its connections: after it reconnects, the old connection remains until its end is noticed.
struct Worker<'a>(Vec<&'a WorkerState>);

impl Worker<'_> {
    /// Returns 1 if it is asked anything now.
    fn trusted(&self) -> u8 {
        u8::from(self.0.iter().any(|worker| worker.parted.is_none() && !worker.doubtful))
    }

    fn holding(&self) -> usize {
        self.0.iter().map(|worker| worker.holding).sum()
    }

    /// Returns a value of its newest connection: it is one machine, so a sum would be too large.
    fn now(&self, of: impl Fn(&WorkerState) -> f64) -> f64 {
        self.0.iter().min_by_key(|worker| worker.here).map_or(0.0, |worker| of(worker))
    }

    /// Sums a count over all connections, including past ones: a counter never decreases.
    fn counted(&self, of: Count) -> u64 {
        let before = self.0.first().map_or(0, |worker| of(&worker.before));
        before + self.0.iter().map(|worker| of(&worker.counts)).sum::<u64>()
    }
}

/// Groups workers by name, each once: a scrape does not accept two samples with the same labels. Two workers of one
/// name, as happens briefly while names are swapped, get the beginning of their keys appended.
fn named(states: &[WorkerState]) -> BTreeMap<String, Worker<'_>> {
    let mut keyed = BTreeMap::new();
    for state in states {
        let (_, worker) =
            keyed.entry(state.who.key).or_insert_with(|| (state.who.name.to_string(), Worker(Vec::new())));
        worker.0.push(state);
    }
    let mut so_called = BTreeMap::new();
    keyed.values().for_each(|(name, _)| *so_called.entry(name.clone()).or_insert(0) += 1);
    let label = |name: String, key: &[u8; 32]| match so_called.get(&name) {
        Some(1) => name,
        _ => format!("{name}/{}", base64url(&key[..6])),
    };
    keyed.into_iter().map(|(key, (name, worker))| (label(name, &key), worker)).collect()
}

/// Writes a value of each worker.
fn each<'a, V: Display>(now: &'a Moment<'_>, out: &mut Samples<'_>, of: impl Fn(&Worker<'a>) -> V) {
    out.each(named(&now.workers).iter().map(|(name, worker)| (name.as_str(), of(worker))));
}

/// Hash workers.
pub static GROUP: Group = Group {
    about: "Hash workers, where there are any",
    metrics: &[
        gauge("portiere_workers_connected", &[], "Workers that are connected to this node.", |now, out| {
            out.one(named(&now.workers).len());
        }),
        gauge(
            "portiere_workers_enrolled",
            &[],
            "Workers that are enrolled (portiere verifier enroll), without quarantined workers. The same at every \
             node.",
            |now, out| now.seen().for_each(|seen| out.one(seen.enrolled)),
        ),
        gauge(
            "portiere_workers_quarantined",
            &[],
            "Workers that are quarantined, after a wrong answer or a restore: no node asks them anything until portiere \
             verifier trust. The same at every node.",
            |now, out| now.seen().for_each(|seen| out.one(seen.quarantined)),
        ),
        counter(
            "portiere_workers_refused_total",
            &["reason"],
            "Connections at workers.listen that were refused: the peer said nothing in time (silent), too many waited \
             at the door (crowd), the peer spoke no TLS as workers speak it (handshake), no worker can be enrolled \
             with its token (token), the two sides have no protocol version in common, so that one has to be upgraded \
             (version), the key is not enrolled or was revoked (unknown), a message broke off or is not of the \
             protocol (broken).",
            |now, out| out.each(now.from.strangers.sums()),
        ),
        gauge(
            "portiere_worker_trusted",
            &["worker"],
            "A worker: 1 while it is trusted; 0 while it is late, or after it was wrong.",
            |now, out| each(now, out, Worker::trusted),
        ),
        gauge("portiere_worker_holding", &["worker"], "A worker: passwords that it holds.", |now, out| {
            each(now, out, Worker::holding);
        }),
        gauge(
            "portiere_worker_hashes_per_second",
            &["worker"],
            "A worker: hashes per second under the current policy, as far as is known.",
            |now, out| each(now, out, |worker| worker.now(|state| state.rate)),
        ),
        gauge(
            "portiere_worker_latency_seconds",
            &["worker"],
            "A worker: moving mean of the time from asking it to its answer.",
            |now, out| each(now, out, |worker| worker.now(|state| state.latency.as_secs_f64())),
        ),
        counter(
            "portiere_worker_asks_total",
            &["worker", "outcome"],
            "A worker: what became of the requests to it, over all of its connections: asked, answered, refusal (its \
             tag did not match), canary (a test that came out right), lie, failed, hedged (computed here as well), \
             late, duplicate, unknown.",
            |now, out| {
                for (name, worker) in named(&now.workers) {
                    COUNTS.iter().for_each(|(outcome, of)| out.of(&[&name, outcome], worker.counted(*of)));
                }
            },
        ),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use hasher::remote::Introduction;
    use hasher::remote::frame::Ready;
    use std::time::Duration;

    fn connection(name: &str, here: u64, doubtful: bool) -> WorkerState {
        WorkerState {
            who: Introduction { key: [name.len() as u8; 32], name: name.into(), address: "192.0.2.1:5".to_owned() },
            here: Duration::from_secs(here),
            ready: Ready { threads: 1, memory: 1, holds: 1, rate: 1 },
            holding: 2,
            rate: here as f64,
            reckoned: 0.0,
            latency: Duration::from_millis(here),
            doubtful,
            parted: None,
            counts: Counts { asked: here, ..Counts::default() },
            before: Counts { asked: 1000, ..Counts::default() },
        }
    }

    #[test]
    fn a_worker_that_dialled_again_is_one() {
        let states = [connection("north", 90, true), connection("southwest", 5, true), connection("north", 3, false)];
        let named = named(&states);
        assert_eq!(named.keys().collect::<Vec<_>>(), ["north", "southwest"]);
        let north = &named["north"];
        assert_eq!((north.trusted(), north.holding(), north.counted(|counts| counts.asked)), (1, 4, 1093));
        assert_eq!(north.now(|state| state.rate), 3.0, "as its newest connection says");
        assert_eq!((named["southwest"].trusted(), named["southwest"].holding()), (0, 2));
    }

    #[test]
    fn two_of_one_name_are_two() {
        // Red where they are kept by name: a rename would give one machine the counts of the other.
        let states = [connection("north", 90, true), connection("southwest", 5, false)];
        states[1].who.name.change("north");
        let named = named(&states);
        assert_eq!(named.len(), 2);
        assert!(named.keys().all(|name| name.starts_with("north/")), "{:?}", named.keys());
        assert_eq!(named.values().map(Worker::trusted).collect::<Vec<_>>(), [0, 1]);
    }
}
