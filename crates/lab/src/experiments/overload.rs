//! Congestion collapse and its cure: more people sign in at the same time than there are cores to hash their passwords.

use super::bench::Bench;
use super::{Experiment, Halt, Published};
use crate::private::{Cores, Private, Setup};
use crate::report::{Bound, Expect, Group, Row, Sheet, figure};
use load::plan::{Pace, Plan, Workload};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const EXPERIMENT: Experiment = Experiment {
    name: "overload",
    title: "Sign-in by crowds: unlimited queue or admission",
    hypothesis: "With an unlimited queue everybody waits as long as the whole queue takes, until people give up and come again. \
        An attempt that was begun is hashed to its end, since a guess has to count, so the queue fills with work for nobody and \
        few sign-ins come out well. Admission that says no in time keeps the rate, and whoever is let in waits no longer than it \
        promised. One hashing thread, as in a program that hashes where it serves, makes it worse.",
    method: "W1 with passwords (sign-in page, password, code, introspection, refresh) in closed loops of 100, 500 and 1,000 \
        users; Argon2id with m = 64 MiB, t = 3, p = 1. Who is refused stays away as long as was asked; who waits for an answer \
        for 10 s gives up and begins again. On a machine with more than two cores each server has two, so that these crowds are as \
        large for it. Unlimited: hash.max_wait and limits.max_wait = 1m, the most that can be set and six times as long as \
        anybody waits, limits.passwords = 100000, and ready.strained_after = 0s. The time is that of sign-ins that came out well, \
        from the start of the last try. Work left is for how long the server goes on hashing once everybody has gone; the next \
        turn begins after that.",
    published: Some(Published {
        source: "The death spiral of a Rust SSO server and its cure by load shedding, with other work and on another machine.",
        rows: &[
            ("no load shedding", "130 requests/s, p95 17.7 s"),
            ("with load shedding, heavy writes", "467 requests/s"),
        ],
    }),
    run,
};

/// The cores of a server, if there are more: with all of them these crowds would be no overload.
const CORES: usize = 2;
/// How long people wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// With fewer sign-ins than this in a round, the true number is known only within a factor.
const FEW: u64 = 10;

/// The remark for rounds with next to nothing to compare.
const NOBODY: &str = "In some of the rounds next to nobody signed in. They are counted as if as many had as may by chance have come \
    to so few, after as long as people wait: the truth is worse, and a ratio to them is the least that can be said.";

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Less, More, Nearly, Same};
    let dear = |setup: Setup| setup.with("hash.argon2.memory_kib", "65536").with("hash.argon2.passes", "3");
    let unlimited = |setup: Setup| {
        let setup = setup.with("hash.max_wait", "1m").with("limits.max_wait", "1m");
        setup.with("limits.passwords", "100000").with("ready.strained_after", "0s")
    };
    let cores = some_cores().unwrap_or_else(|why| {
        sheet.note(format!("Each server has all cores: {why}."));
        None
    });
    let shipped = dear(Setup { cores, ..bench.setup() });
    let (all, one) = (unlimited(shipped.clone()), unlimited(shipped.clone()).with("hash.threads", "1"));
    let mut servers = bench.servers(&[all, one, shipped])?;
    let figures = [
        figure("sign-ins a second", "/s"),
        figure("p95 of a sign-in", " ms"),
        figure("work left", " s"),
        figure("refused", "/s"),
        figure("failed", "/s"),
    ];
    for users in bench.either(&[100, 500, 1000][..], &[500]).iter().copied() {
        // A hundred users wait less than admission allows, so it has nothing to do; five hundred wait longer, and on a slow
        // machine longer than anybody would, as a thousand do everywhere.
        let shipped = match users {
            100 => [Same, Same],
            1000 => [More, Less],
            _ => [Nearly, Less],
        };
        let rows = vec![
            Row::new("unlimited queue", &[]),
            Row::new("unlimited queue, 1 hashing thread", &[Less, More]),
            Row::new("admission (as shipped)", &shipped),
        ];
        let group = Group { most_rounds: bench.either(3, 2), ..Group::new(format!("{users} users"), &figures, rows) };
        bench.turns(sheet, group, &mut servers, |bench, server| measure(bench, server, users))?;
    }
    Ok(())
}

/// Returns the cores that a server is held to; `None` if it may use all. The error says why it cannot be held.
fn some_cores() -> Result<Option<Cores>, String> {
    let all = Cores::all()?;
    if all.count() <= CORES {
        return Ok(None);
    }
    let some = all.first(CORES)?;
    some.hold(|| ())?;
    Ok(Some(some))
}

fn measure(bench: &mut Bench<'_>, server: &mut Private, users: usize) -> Result<Vec<f64>, Halt> {
    let pace = Pace::Closed { visitors: users, pause: Duration::ZERO };
    // Until the queue is as long as it gets.
    let (warmup, duration) =
        bench.either((PATIENCE, Duration::from_secs(15)), (Duration::from_secs(5), Duration::from_secs(5)));
    let plan = server.plan(Workload::Flow)?;
    let plan = Plan { pace, warmup, duration, timeout: PATIENCE, heeds_retry_after: true, ..plan };
    let report = Bench::crowd(&[plan], None)?;
    let left = drained(bench, server)?;
    let each = |count: u64| count as f64 / report.seconds;
    let patience = PATIENCE.as_secs_f64() * 1e3;
    let (rate, p95) = match report.iterations {
        came if came == 0 || came < FEW && many_gave_up(came, report.failed) => {
            bench.remark(NOBODY);
            bench.bound(&[Some(Bound::AtMost), Some(Bound::AtLeast)]);
            (each(perhaps(came)), patience)
        }
        came => {
            let report = bench.judged(Some(report.clone()))?;
            // One in twenty of all attempts waited until the user gave up, however long the successful ones took.
            match many_gave_up(came, report.failed) {
                true => {
                    bench.bound(&[None, Some(Bound::AtLeast)]);
                    (report.iterations_per_second, report.latency.p95.max(patience))
                }
                false => (report.iterations_per_second, report.latency.p95),
            }
        }
    };
    Ok(vec![rate, p95, left, each(report.refused), each(report.failed)])
}

/// Whether the 95th percentile of all attempts lies among those that gave up.
fn many_gave_up(came: u64, failed: u64) -> bool {
    failed * 20 > came + failed
}

/// Returns how many might have been expected where so few came: about the upper end of the 95 % interval (Poisson).
fn perhaps(came: u64) -> u64 {
    came + 2 * came.isqrt() + 3
}

/// Waits until nothing is hashed any more; returns how long that took, in seconds.
fn drained(bench: &mut Bench<'_>, server: &Private) -> Result<f64, Halt> {
    /// Longer than any queue that an experiment leaves.
    const MOST: Duration = Duration::from_secs(300);
    let begun = Instant::now();
    while begun.elapsed() < MOST {
        let metrics = server.metrics()?;
        let left = metrics.sum("portiere_hashing_waiting") + metrics.sum("portiere_hashing_running");
        if left == 0.0 {
            return Ok(begun.elapsed().as_secs_f64());
        }
        bench.say(&format!("{left} passwords are left of a crowd that has gone"));
        sleep(Duration::from_millis(100));
    }
    Err(Halt::Failed("the server still hashes, five minutes after everybody has gone".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_the_lucky_is_a_bound() {
        assert!(many_gave_up(3, 800) && many_gave_up(94, 6));
        assert!(!many_gave_up(95, 5) && !many_gave_up(1, 0));
    }

    #[test]
    fn what_came_to_nothing_may_have_been_three() {
        // Upper limits of 95 % are 3.0, 4.7, 7.8 (for 3) and 15.7 (for 9).
        assert_eq!([0, 1, 3, 9].map(perhaps), [3, 6, 8, 18]);
    }
}
