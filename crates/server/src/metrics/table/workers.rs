//! Hash workers.

use crate::metrics::declare::{Group, counter, gauge};
use crate::metrics::moment::Moment;
use hasher::remote::{Counts, WorkerState};

/// One of the things that are counted.
type Count = fn(&Counts) -> u64;

/// What a worker has done, by name. What was counted goes with its connection.
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

/// Whether a worker is asked anything now.
fn trusted(worker: &WorkerState) -> u8 {
    u8::from(worker.parted.is_none() && !worker.doubtful)
}

fn names<'a>(now: &'a Moment<'_>) -> impl Iterator<Item = (&'a str, &'a WorkerState)> {
    now.workers.iter().map(|worker| (worker.who.name.as_str(), worker))
}

/// Hash workers.
pub static GROUP: Group = Group {
    about: "Hash workers, where there are any",
    metrics: &[
        gauge("portiere_workers_connected", &[], "Workers that are connected to this node.", |now, out| {
            out.one(now.workers.len());
        }),
        gauge(
            "portiere_workers_quarantined",
            &[],
            "Workers that were found to be wrong: no node asks them anything until portiere verifier trust. The same at every \
             node.",
            |now, out| now.seen.iter().for_each(|seen| out.one(seen.quarantined)),
        ),
        gauge(
            "portiere_worker_trusted",
            &["worker"],
            "A worker: whether it is asked: 0 while it is late, or after it was wrong.",
            |now, out| out.each(names(now).map(|(name, worker)| (name, trusted(worker)))),
        ),
        gauge("portiere_worker_holding", &["worker"], "A worker: passwords that it holds.", |now, out| {
            out.each(names(now).map(|(name, worker)| (name, worker.holding)));
        }),
        gauge(
            "portiere_worker_hashes_per_second",
            &["worker"],
            "A worker: hashes of today's policy a second, as far as is known.",
            |now, out| out.each(names(now).map(|(name, worker)| (name, worker.rate))),
        ),
        gauge(
            "portiere_worker_latency_seconds",
            &["worker"],
            "A worker: moving mean of the time from asking it to its answer.",
            |now, out| out.each(names(now).map(|(name, worker)| (name, worker.latency.as_secs_f64()))),
        ),
        counter(
            "portiere_worker_asks_total",
            &["worker", "outcome"],
            "A worker: what became of what it was asked since it came: asked, answered, refusal (its tag did not match), canary \
             (a test that came out right), lie, failed, hedged (computed here as well), late, duplicate, unknown.",
            |now, out| {
                for (name, worker) in names(now) {
                    COUNTS.iter().for_each(|(outcome, of)| out.of(&[name, outcome], of(&worker.counts)));
                }
            },
        ),
    ],
};
