//! The parts of the machine, each measured alone: several short samples of each in turn, so that other work on the
//! machine affects all alike.

pub mod busy;
pub mod commit;
pub mod hash;
pub mod http;
pub mod machine;
pub mod memory;
pub mod sign;

use crate::private::Folder;
use hasher::Policy;
use load::Refusal;
use machine::{Machine, Watch};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// The machine.
    pub machine: Machine,
    /// The number of samples of each figure.
    pub rounds: u32,
    /// Password hashing.
    pub hashing: hash::Hashing,
    /// Token signatures.
    pub signatures: Vec<sign::Signature>,
    /// The database.
    pub storage: commit::Storage,
    /// HTTP requests.
    pub http: http::Http,
    /// Memory bandwidth.
    pub memory: memory::Memory,
}

/// Where and how to measure.
pub struct Bench<'a> {
    /// The program that private servers run.
    pub program: &'a Path,
    /// The folder whose disk is written to, in a temporary folder.
    pub within: &'a Path,
    /// Takes one sample of each, and skips the parameters that others recommend.
    pub quick: bool,
}

/// A callback for progress: what is being measured, and the share of all work that is done.
pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

/// Free disk space that measuring needs, in bytes.
const ROOM: u64 = 512 << 20;

/// Returns how many threads a server hashes on: one per core, as long as each has memory for a hash of its policy.
fn hashing_threads(cores: usize, memory: u64) -> usize {
    let fit = memory / (u64::from(Policy::default().cost().memory()) * 1024);
    cores.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
}

/// Measures everything, which takes about a minute. Blocks, and must be called on a plain thread.
///
/// # Errors
/// [`Refusal::Failure`] in one line: no space, no memory, a folder that cannot be written.
pub fn all(bench: &Bench<'_>, progress: Progress<'_>) -> Result<Probes, Refusal> {
    room(bench.within)?;
    let rounds = if bench.quick { 1 } else { 3 };
    let mut machine = Machine::here(bench.within);
    let memory = hashing_memory(&machine)?;
    progress("starting a private server", 0.0);
    let folder = Folder::new(bench.program, Some(bench.within))?;
    let mut http = http::Probe::new(bench.program, bench.within.to_owned(), (memory, bench.quick))?;
    let mut commits = commit::Probe::new(folder.path(), machine.cores)?;
    let mut signatures = sign::Probe::new()?;
    let threads = hashing_threads(machine.cores, memory);
    let mut hashes = hash::Probe::new(threads, memory, bench.quick);
    let mut bandwidth = memory::Probe::new(threads.min(machine.cores - 1))?;
    let watch = Watch::begin(http.pid());
    for round in 0..rounds {
        let of = |part: f64| (f64::from(round) + part) / f64::from(rounds) * if bench.quick { 1.0 } else { 0.75 };
        progress("hashes by threads and lanes", of(0.05));
        hashes.round()?;
        progress("signatures", of(0.3));
        signatures.round()?;
        progress("commits and reads", of(0.4));
        commits.round()?;
        progress("memory", of(0.6));
        bandwidth.round(hashes.lanes());
        progress("requests, with and without hashing beside them", of(0.7));
        http.round(hashes.lanes())?;
    }
    (machine.others, machine.stolen) = watch.others();
    let hashing = hashes.done(bench.quick, |what| progress(what, 0.8));
    let (signatures, storage, http, memory) = (signatures.done(), commits.done(), http.done(), bandwidth.done());
    Ok(Probes { machine, rounds, hashing, signatures, storage, http, memory })
}

/// Returns the memory that hashing uses on a server with the default configuration.
fn hashing_memory(machine: &Machine) -> Result<u64, Refusal> {
    let least = u64::from(hasher::Policy::default().cost().memory()) * 1024;
    // Besides hashing, a server and the buffers to copy need memory.
    const OTHERS: u64 = 320 << 20;
    if machine.memory < OTHERS + 4 * least {
        let (have, need) = (machine.memory >> 20, (OTHERS + 4 * least) >> 20);
        return Err(Refusal::Failure(format!("this machine has {have} MiB of memory, but measuring it takes {need}")));
    }
    Ok(machine.memory / 4)
}

fn room(folder: &Path) -> Result<(), Refusal> {
    let failed = |error: rustix::io::Errno| Refusal::Failure(format!("{}: {error}", folder.display()));
    let found = rustix::fs::statvfs(folder).map_err(failed)?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free < ROOM {
        let (free, need) = (free >> 20, ROOM >> 20);
        let line = format!("the disk of {} has {free} MiB left, but measuring it takes {need}", folder.display());
        return Err(Refusal::Failure(line));
    }
    Ok(())
}

/// Returns the processor time of this process so far.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// Returns the processor time of another process and its threads, to the nanosecond if the system tells
/// (`/proc/PID/task/*/schedstat`), otherwise to a clock tick. Time of threads that have ended is missing.
fn cpu_of(pid: u32) -> Duration {
    let fine = || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let each = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        Some(each.sum::<u64>()).filter(|nanos| *nanos > 0).map(Duration::from_nanos)
    };
    fine().or_else(|| load::cpu::of_process(pid)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red where a machine with many cores and little memory counts as one thread.
    #[test]
    fn as_many_threads_hash_as_have_room() {
        let one = u64::from(Policy::default().cost().memory()) * 1024;
        assert_eq!([6 * one, 8 * one, 99 * one, one - 1].map(|memory| hashing_threads(8, memory)), [6, 8, 8, 1]);
    }
}
