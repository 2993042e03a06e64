//! Password hashing.

use crate::metrics::declare::{Group, counter, gauge};
use hasher::CpuTime;

/// Password hashing.
pub static GROUP: Group = Group {
    about: "Password hashing",
    metrics: &[
        gauge("portiere_hashing_waiting", &[], "Passwords that wait for their turn.", |now, out| {
            out.one(now.hashing.waiting);
        }),
        gauge("portiere_hashing_running", &[], "Passwords that are being hashed.", |now, out| {
            out.one(now.hashing.running);
        }),
        gauge(
            "portiere_hashing_expected_wait_seconds",
            &[],
            "How long a password that arrives now would wait for its turn.",
            |now, out| out.one(now.hashing.expected_wait.as_secs_f64()),
        ),
        gauge(
            "portiere_hashing_max_wait_seconds",
            &[],
            "The longest wait allowed (hash.max_wait); a password that would wait longer is refused.",
            |now, out| out.one(now.from.strain.max_wait().as_secs_f64()),
        ),
        counter(
            "portiere_hashing_refused_total",
            &[],
            "Passwords that were refused because too many wait, at admission or later.",
            |now, out| {
                out.one(now.hashing.refused_total);
            },
        ),
        counter(
            "portiere_hashing_turned_away_total",
            &[],
            "Newcomers who were not shown a form because three quarters of the longest wait allowed were used up \
             already.",
            |now, out| out.one(now.hashing.turned_away_total),
        ),
        counter(
            "portiere_hashing_done_total",
            &[],
            "Passwords that were hashed, including tests of workers.",
            |now, out| {
                out.one(now.hashing.done_total);
            },
        ),
        counter(
            "portiere_hashing_failed_total",
            &[],
            "Hashes that failed because the system gave no memory or a hash kernel broke down; the request was \
             answered with 500, or with 503 if the comparison had begun.",
            |now, out| out.one(now.hashing.failed_total),
        ),
        counter(
            "portiere_hashing_remote_total",
            &[],
            "Of the passwords that were hashed, those that hash workers computed.",
            |now, out| {
                out.one(now.hashing.remote_total);
            },
        ),
        counter(
            "portiere_hashing_batches_total",
            &[],
            "Batches in which this node hashed passwords. The passwords that no worker computed, divided by the \
             batches, is how many ran side by side on a thread.",
            |now, out| out.one(now.hashing.batches_total),
        ),
        counter(
            "portiere_hashing_withdrawn_total",
            &[],
            "Passwords given up before they were hashed. A sign-in continues if its client goes away.",
            |now, out| {
                out.one(now.hashing.withdrawn_total);
            },
        ),
        counter(
            "portiere_hashing_faults_total",
            &[],
            "Threads that died and were restarted. Any value but 0 is a fault of the program or of the machine.",
            |now, out| out.one(now.hashing.faults_total),
        ),
        gauge("portiere_hashing_threads", &[], "Hashing threads. As many batches run at a time.", |now, out| {
            out.one(now.hashing.threads);
        }),
        gauge(
            "portiere_hashing_lanes",
            &["kind"],
            "How many passwords of a kind (algorithm and parameters) a thread runs side by side under load.",
            |now, out| {
                now.from.app.hasher.kinds().iter().for_each(|kind| out.of(&[&kind.name], kind.lanes));
            },
        ),
        gauge(
            "portiere_hashing_mean_cost_seconds",
            &[],
            "Expected time of one hash under the current policy on a thread of its own.",
            |now, out| out.one(now.hashing.mean_cost.as_secs_f64()),
        ),
        counter(
            "portiere_hashing_thread_seconds_total",
            &["state"],
            "Time that hashing threads spent running on a core, and waiting because others ran, as Linux reports it.",
            |now, out| {
                let CpuTime { ran, waited } = now.from.app.hasher.cpu_time();
                out.each([("running", ran), ("waiting", waited)].map(|(state, time)| (state, time.as_secs_f64())));
            },
        ),
        gauge("portiere_hashing_memory_bytes", &[], "Memory that the hashing threads hold.", |now, out| {
            out.one(now.hashing.memory);
        }),
    ],
};
