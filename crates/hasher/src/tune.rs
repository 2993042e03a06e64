//! Parameters that suit this machine: measures the choices of OWASP and RFC 9106, and finds the most expensive ones
//! that still answer in time.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    argon2::Cost,
    cost::ARGON2_TOGETHER,
    cpu::Level,
    job::Kind,
    machine,
    native::{Kernel, Native, sample},
    policy::Policy,
};

/// A recommended set of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Who recommends them, and where.
    pub source: &'static str,
    /// The parameter m: memory of one hash, in KiB.
    pub memory: u32,
    /// The parameter t: passes.
    pub passes: u32,
    /// The parameter p: lanes.
    pub lanes: u32,
}

const fn choice(source: &'static str, memory: u32, passes: u32, lanes: u32) -> Choice {
    Choice { source, memory, passes, lanes }
}

/// The rows of OWASP's Password Storage Cheat Sheet, which are equally strong, then both of RFC 9106 §4.
pub const CHOICES: [Choice; 7] = [
    choice("OWASP", 47_104, 1, 1),
    choice("OWASP", 19_456, 2, 1),
    choice("OWASP", 12_288, 3, 1),
    choice("OWASP", 9_216, 4, 1),
    choice("OWASP", 7_168, 5, 1),
    choice("RFC 9106, second", 64 << 10, 3, 4),
    choice("RFC 9106, first", 2 << 20, 1, 4),
];

/// OWASP's rows.
fn owasp() -> impl Iterator<Item = Choice> {
    CHOICES.into_iter().filter(|choice| choice.source == "OWASP")
}

/// What a set of parameters costs here.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// Time of one hash on a machine with nothing else to do.
    pub single: Duration,
    /// Hashes a second of all threads together under load.
    pub rate: f64,
    /// How many hashes each thread runs side by side for that.
    pub together: usize,
    /// Threads that hash.
    pub threads: usize,
    /// Memory that all threads together need for that, in bytes.
    pub memory: u64,
}

impl Measured {
    /// Hashes a second of one core.
    pub fn rate_per_core(&self) -> f64 {
        self.rate / self.threads as f64
    }
}

/// One line of [`table`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// The parameters.
    pub choice: Choice,
    /// What they cost; `None` if one hash needs more memory than there is, or than was allowed.
    pub measured: Option<Measured>,
}

/// What [`recommend`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "it may be too slow: look at `in_time`"]
#[non_exhaustive]
pub struct Recommendation {
    /// The parameters. They always meet OWASP's list.
    pub policy: Policy,
    /// What they cost.
    pub measured: Measured,
    /// False if this machine is too slow for the target: then these are the fastest that OWASP's list allows.
    pub in_time: bool,
}

impl Recommendation {
    /// The last measurement, which is the one that is shown, decides whether the parameters are in time.
    fn of(policy: Policy, measured: Measured, target: Duration) -> Self {
        Recommendation { policy, measured, in_time: measured.single <= target }
    }
}

/// Why nothing could be recommended or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittleMemory;

impl std::fmt::Display for TooLittleMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too little memory for any parameters that meet OWASP's list (7 MiB)")
    }
}

impl std::error::Error for TooLittleMemory {}

/// A quarter of the memory of the machine, or of its container, in bytes: what password hashing takes at most unless
/// told otherwise. 512 MiB where the system does not tell.
pub fn default_memory() -> u64 {
    machine::quarter()
}

/// Memory of the machine, or of its container, in bytes: more cannot be allowed. `None` where the system does not tell.
pub fn most_memory() -> Option<u64> {
    machine::memory()
}

/// Measures [`CHOICES`] within `memory` bytes over all threads; calls `progress` with each row once it is known, and
/// with the number of rows. Takes all cores for some seconds.
pub fn table(memory: u64, mut progress: impl FnMut(&Row, usize)) -> Vec<Row> {
    let bench = Bench::new(memory);
    let row = |choice: Choice| {
        let cost = Cost::new(choice.memory, choice.passes, choice.lanes).ok();
        let row = Row { choice, measured: cost.and_then(|cost| bench.measure(cost)) };
        progress(&row, CHOICES.len());
        row
    };
    CHOICES.map(row).to_vec()
}

/// Finds the parameters that cost an attacker most while one hash takes at most `target` on this machine and all
/// threads together at most `memory` bytes: as much memory as possible first, then as many passes (RFC 9106 §4), on one
/// lane, because more lanes do not help a machine whose cores are all busy. Never goes below OWASP's list: if not even
/// its smallest memory is there for every thread, that is the result, and [`Measured::threads`] says how many can hash.
/// Calls `progress` with each memory size, in KiB, that is tried. Takes all cores for some seconds.
///
/// ```no_run
/// use std::time::Duration;
///
/// use hasher::{Hasher, Settings, tune};
///
/// let memory = tune::default_memory(); // in bytes
/// let found = tune::recommend(Duration::from_millis(250), memory, |kib| println!("looking at {kib} KiB"))?;
/// if !found.in_time {
///     println!("this machine takes {:?} for the least that is safe", found.measured.single);
/// }
/// let hasher = Hasher::start(Settings { policy: found.policy, memory: Some(memory), ..Settings::default() })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`TooLittleMemory`] when not even one hash of OWASP's smallest row fits.
pub fn recommend(
    target: Duration,
    memory: u64,
    mut progress: impl FnMut(u32),
) -> Result<Recommendation, TooLittleMemory> {
    let bench = Bench::new(memory);
    for kib in bench.sizes() {
        progress(kib);
        let least = (1..=Policy::MAX_PASSES).find(|&passes| allowed(kib, passes).is_some()).unwrap_or(1);
        let Some(most) = bench.passes_within(target, kib, least) else { continue };
        // The last measurement is the one that is shown: close to the target it may be late though the first was not.
        for policy in (least..=most).rev().take(2).filter_map(|passes| allowed(kib, passes)) {
            // If the memory cannot be had this time, a smaller size is tried.
            let Ok(found) = bench.recommend(policy, target) else { continue };
            if found.in_time {
                return Ok(found);
            }
        }
    }
    let sizes = bench.sizes();
    let rows = owasp().filter(|row| sizes.contains(&row.memory)).filter_map(|row| allowed(row.memory, row.passes));
    let timed = rows.filter_map(|policy| Some((bench.single(policy.cost)?, policy)));
    let (_, fastest) = timed.min_by_key(|(single, _)| *single).ok_or(TooLittleMemory)?;
    bench.recommend(fastest, target)
}

/// Sizes to choose from, in KiB, the largest first: OWASP's, and powers of two above them.
fn sizes() -> impl Iterator<Item = u32> {
    let powers = (16..=20).rev().map(|log| 1 << log);
    powers.chain(owasp().map(|row| row.memory))
}

fn allowed(kib: u32, passes: u32) -> Option<Policy> {
    Policy::new(kib, passes, 1).ok()
}

/// This machine, and the memory that may be used.
struct Bench {
    threads: usize,
    /// In KiB.
    memory: u64,
}

/// The most passwords that one thread takes side by side.
pub const MOST_TOGETHER: usize = ARGON2_TOGETHER;

/// About how long the rate of one size is measured.
const SPAN: Duration = Duration::from_millis(250);

impl Bench {
    fn new(memory: u64) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Bench { threads, memory: machine::capped(memory, machine::memory()) / 1024 }
    }

    /// Memory sizes to choose from, in KiB, the largest first: those that every thread can have at once. If there are
    /// more threads than even the smallest fits for, only the smallest, which leaves the fewest of them idle.
    fn sizes(&self) -> Vec<u32> {
        let each = self.memory / self.threads as u64;
        let all: Vec<u32> = sizes().filter(|&kib| u64::from(kib) <= each).collect();
        match sizes().last() {
            Some(least) if all.is_empty() && u64::from(least) <= self.memory => vec![least],
            _ => all,
        }
    }

    /// This policy, with what it costs.
    fn recommend(&self, policy: Policy, target: Duration) -> Result<Recommendation, TooLittleMemory> {
        let measured = self.measure(policy.cost).ok_or(TooLittleMemory)?;
        Ok(Recommendation::of(policy, measured, target))
    }

    /// How many threads there is memory for.
    fn threads_for(&self, cost: Cost) -> usize {
        let fit = self.memory / u64::from(cost.memory());
        usize::try_from(fit).unwrap_or(usize::MAX).min(self.threads)
    }

    /// Most passes with which one hash of `kib` KiB takes no longer than `target`; `None` if `least` takes longer.
    fn passes_within(&self, target: Duration, kib: u32, least: u32) -> Option<u32> {
        let time = |passes| Cost::new(kib, passes, 1).ok().and_then(|cost| self.single(cost));
        let first = time(least).filter(|first| *first <= target)?;
        let more = time((least + 1).min(Policy::MAX_PASSES))?.saturating_sub(first);
        let extra = (target - first).as_nanos().checked_div(more.as_nanos()).unwrap_or(0);
        let passes = u32::try_from(extra).unwrap_or(u32::MAX).saturating_add(least).min(Policy::MAX_PASSES);
        // A line through two points may miss the target by a little.
        (least..=passes).rev().find(|&passes| time(passes).is_some_and(|time| time <= target))
    }

    /// Median time of one hash on an idle machine; `None` if its memory cannot be had.
    fn single(&self, cost: Cost) -> Option<Duration> {
        let mut kernel = Native::new(Level::best());
        let mut once = || timed(&mut kernel, Kind::of_policy(cost), 1);
        // The first hash maps the memory.
        let first = once()?;
        let mut times = (0..if first < SPAN { 5 } else { 1 }).map(|_| once()).collect::<Option<Vec<_>>>()?;
        times.sort();
        times.get(times.len() / 2).copied()
    }

    /// Measures everything about one set of parameters; `None` if there is no memory for it.
    fn measure(&self, cost: Cost) -> Option<Measured> {
        let threads = self.threads_for(cost);
        let fit = (self.memory / u64::from(cost.memory())).checked_div(threads as u64)?;
        let single = self.single(cost)?;
        let (mut best, mut together, mut worse) = (0.0, 1, 0);
        for size in 1..=usize::try_from(fit).unwrap_or(usize::MAX).min(ARGON2_TOGETHER) {
            let rate = rate(cost, (threads, size), SPAN);
            if rate > best * 1.01 {
                (best, together, worse) = (rate, size, 0);
            } else {
                worse += 1;
            }
            if worse == 2 {
                break;
            }
        }
        // One thread alone had its memory; all threads together may not.
        if best == 0.0 {
            return None;
        }
        let memory = u64::from(cost.memory()) * 1024 * (threads * together) as u64;
        Some(Measured { single, rate: best, together, threads, memory })
    }
}

/// Hashes per second of so many threads, each with so many passwords side by side (up to [`MOST_TOGETHER`]), measured
/// for about `span`. The caller must see to it that there is memory for all; 0 if one of the threads could have none.
pub fn rate(cost: Cost, (threads, size): (usize, usize), span: Duration) -> f64 {
    let size = size.clamp(1, ARGON2_TOGETHER);
    let over = AtomicBool::new(false);
    let each = || {
        let mut kernel = Native::new(Level::best());
        timed(&mut kernel, Kind::of_policy(cost), size)?;
        let (begun, mut batches) = (Instant::now(), 0);
        // Until the first thread has had its time, so that all are measured while all are busy.
        while batches == 0 || !over.load(Ordering::Relaxed) {
            timed(&mut kernel, Kind::of_policy(cost), size)?;
            batches += 1;
            if begun.elapsed() >= span {
                over.store(true, Ordering::Relaxed);
            }
        }
        Some(f64::from(batches) * size as f64 / begun.elapsed().as_secs_f64())
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        running.into_iter().map(|thread| thread.join().ok().flatten()).sum::<Option<f64>>().unwrap_or(0.0)
    })
}

/// How long a hash takes that comes now and then: `count` times, each after the thread has rested for `pause`, when
/// others have its place in the caches. [`Duration::MAX`] where the memory cannot be had.
pub fn rested(cost: Cost, pause: Duration, count: usize) -> Vec<Duration> {
    let mut kernel = Native::new(Level::best());
    timed(&mut kernel, Kind::of_policy(cost), 1);
    let after_a_rest = || {
        thread::sleep(pause);
        timed(&mut kernel, Kind::of_policy(cost), 1)
    };
    std::iter::repeat_with(after_a_rest).take(count).map(|time| time.unwrap_or(Duration::MAX)).collect()
}

/// `None` where the memory cannot be had, although the machine has as much: that is no time that a hash took.
fn timed(kernel: &mut impl Kernel, kind: Kind, size: usize) -> Option<Duration> {
    let inputs: Vec<_> = (0..size).filter_map(|number| sample(kind, number as u8)).collect();
    let begun = Instant::now();
    kernel.tags(kind, &inputs).ok().map(|_| begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::{Input, Tag},
        native::Fault,
    };

    #[test]
    fn a_recommendation_is_in_time_in_memory_and_never_weak() {
        for (target, memory) in [(500, 64 << 20), (1, 64 << 20)] {
            let target = Duration::from_millis(target);
            let found = recommend(target, memory, |_| ()).unwrap();
            assert!(found.policy.meets_owasp());
            assert!(found.measured.memory <= memory, "{found:?}");
            assert!(u64::from(found.policy.cost.memory()) * 1024 * found.measured.threads as u64 <= memory);
            assert!(found.measured.rate > 0.0 && found.measured.single > Duration::ZERO);
            assert!(found.in_time || target < Duration::from_millis(500), "{found:?}");
        }
        assert_eq!(recommend(Duration::from_secs(1), 1 << 20, |_| ()), Err(TooLittleMemory));
    }

    #[test]
    fn what_is_recommended_has_memory_for_every_thread() {
        let sizes = |threads, mib: u64| Bench { threads, memory: mib << 10 }.sizes();
        assert_eq!(sizes(64, 512), [7_168], "46 MiB would leave 53 of 64 idle");
        assert_eq!(sizes(64, 1024), [12_288, 9_216, 7_168]);
        assert_eq!(sizes(64, 256), [7_168], "not for all, but for most that is possible");
        assert_eq!(sizes(2, 128), [65_536, 47_104, 19_456, 12_288, 9_216, 7_168]);
        assert_eq!(sizes(1, 4096)[0], Policy::MAX_MEMORY);
        assert!(sizes(1, 6).is_empty());
    }

    #[test]
    fn in_time_is_what_was_measured() {
        let single = Duration::from_millis(100);
        let measured = Measured { single, rate: 10.0, together: 1, threads: 1, memory: 1 };
        for (target, in_time) in [(99, false), (100, true), (101, true)] {
            let found = Recommendation::of(Policy::default(), measured, Duration::from_millis(target));
            assert_eq!(found.in_time, in_time, "{target} ms");
        }
    }

    /// A hash whose memory cannot be mapped is over at once, and would be taken for the fastest.
    #[test]
    fn a_hash_without_memory_took_no_time_that_counts() {
        struct Poor;
        impl Kernel for Poor {
            fn tags(&mut self, _: Kind, _: &[Input]) -> Result<Vec<Tag>, Fault> {
                Err(Fault)
            }
            fn held(&self) -> u64 {
                0
            }
            fn keep(&mut self, _: u64) {}
        }
        assert_eq!(timed(&mut Poor, Kind::of_policy(Policy::default().cost), 1), None);
    }

    #[test]
    fn every_choice_can_be_measured_where_there_is_room() {
        assert!(CHOICES.iter().all(|row| Cost::new(row.memory, row.passes, row.lanes).is_ok()));
        let rows = table(1 << 20, |_, of| assert_eq!(of, CHOICES.len()));
        assert!(rows.iter().all(|row| row.measured.is_none()), "nothing fits a MiB");
    }

    #[test]
    fn what_is_stored_may_take_half_of_what_is_measured() {
        assert!(Cost::new(Policy::MAX_MEMORY + 1, 1, 4).is_ok() && Policy::new(Policy::MAX_MEMORY, 1, 4).is_ok());
        assert!(Policy::new(Policy::MAX_MEMORY + 1, 1, 4).is_err());
        let text = "$argon2id$v=19$m=1048577,t=1,p=4$c29tZXNhbHQ$c29tZXNhbHRzb21lc2FsdHNvbWVzYWx0";
        assert!(text.parse::<crate::Stored>().is_err());
    }
}
