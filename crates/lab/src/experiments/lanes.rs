//! Passwords side by side on a core, and threads, measured with the hash kernel alone.

use super::bench::Bench;
use super::{Experiment, Halt};
use crate::report::{Expect, Group, Row, Sheet, figure};
use hasher::Cost;
use hasher::tune::rate;
use std::thread;
use std::time::Duration;

pub const EXPERIMENT: Experiment = Experiment {
    name: "lanes",
    title: "Lanes and threads of the hash",
    hypothesis: "A password alone leaves a core waiting for memory: two to four side by side on one thread give more hashes a \
        second. A second thread nearly doubles the rate while memory keeps up.",
    method: "The Argon2id kernel alone (m = 19 MiB, t = 2, p = 1), in memory that is kept and of huge pages, with 1 to 4 passwords in lock \
        step on each of 1 to as many threads as there are cores (at most 8). The first row of each group is one password at a \
        time; the first row of the last group is one thread. The time of one is not measured but computed: how many are under way, \
        over hashes a second. It says what a rate means for who waits, and is not judged.",
    published: None,
    run,
};

/// OWASP's first choice for little memory, and the product's default.
const COST: (u32, u32, u32) = (19_456, 2, 1);
const MOST_THREADS: usize = 8;
const MOST_LANES: u64 = 4;
/// Only for the rate: the time of one follows from it, so comparing that would be the same comparison twice.
const EXPECTED: [Expect; 1] = [Expect::More];

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    let cost = Cost::new(COST.0, COST.1, COST.2).map_err(|error| Halt::Failed(error.to_string()))?;
    let figures = [figure("hashes a second", "/s"), figure("time of one", " ms")];
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get()).min(MOST_THREADS);
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count < cores).collect();
    counts.push(cores);
    let whole = counts.len();
    counts.retain(|threads| *threads == 1 || has_room(*threads));
    if counts.len() < whole {
        sheet.note(format!("More threads than {} would need more memory than there is.", counts[counts.len() - 1]));
    }
    for threads in counts.iter().copied() {
        let mut variants = [1, 2, 3, 4];
        let rows = variants.map(|lanes| Row::new(side_by_side(lanes), if lanes == 1 { &[][..] } else { &EXPECTED }));
        let title = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        bench.turns(sheet, Group::new(title, &figures, rows.into()), &mut variants, |bench, lanes| {
            Ok(measure(cost, threads, *lanes, bench.part()))
        })?;
    }
    if counts.len() == 1 {
        return Ok(());
    }
    let rows = counts.iter().map(|threads| match threads {
        1 => Row::new("1 thread", &[]),
        threads => Row::new(format!("{threads} threads"), &EXPECTED),
    });
    let group = Group::new("threads, 3 side by side", &figures, rows.collect());
    bench.turns(sheet, group, &mut counts, |bench, threads| Ok(measure(cost, *threads, 3, bench.part())))
}

/// Whether this many threads with the most lanes fit into half of the memory.
fn has_room(threads: usize) -> bool {
    threads as u64 * MOST_LANES * u64::from(COST.0) * 1024 <= hasher::tune::default_memory() * 2
}

fn side_by_side(lanes: usize) -> String {
    if lanes == 1 { "one at a time".to_owned() } else { format!("{lanes} side by side") }
}

/// Returns hashes per second, and the time of each in milliseconds, which follows from that.
fn measure(cost: Cost, threads: usize, lanes: usize, span: Duration) -> Vec<f64> {
    let rate = rate(cost, (threads, lanes), span);
    vec![rate, (threads * lanes) as f64 * 1e3 / rate]
}
