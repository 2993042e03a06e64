//! Processor time of processes, read from `/proc` (Linux; other systems have none to read).

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::time::Duration;

/// From this many cores on, what other programs and the host took is reported in a sentence.
pub const DISTURBED: f64 = 0.15;

/// Returns user and system time of a process with all its threads so far, `None` if it cannot be read. Its resolution
/// is one clock tick, usually 10 ms. See proc_pid_stat(5), fields 14 and 15.
pub fn of_process(pid: u32) -> Option<Duration> {
    of_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, rustix::param::clock_ticks_per_second())
}

/// Returns the same for this process.
pub fn own() -> Option<Duration> {
    of_process(std::process::id())
}

/// Returns the same for the calling thread alone, to the nanosecond.
pub fn of_thread() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// Returns how long the calling thread has been ready to run without a processor: the second field of its `schedstat`,
/// in nanoseconds (the kernel's `sched-stats`). `None` if it cannot be read.
pub fn waited_of_thread() -> Option<Duration> {
    of_schedstat(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

fn of_schedstat(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// What became of the time of some cores since the machine started, in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// In which they worked.
    pub worked: Duration,
    /// In which there was work, and the host of a virtual machine gave the processor to others.
    pub stolen: Duration,
}

impl Cores {
    /// Returns what was added after `before`; `None` if a counter went back.
    pub fn since(self, before: Cores) -> Option<Cores> {
        let worked = self.worked.checked_sub(before.worked)?;
        Some(Cores { worked, stolen: self.stolen.checked_sub(before.stolen)? })
    }
}

/// Returns what became of the time of the cores that this process or one of `pids` may use; `None` if it cannot be read.
/// See proc_stat(5).
pub fn of_cores(pids: &[u32]) -> Option<Cores> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let own = [std::process::id()];
    let pids = pids.iter().chain(&own).filter_map(|pid| Pid::from_raw((*pid).try_into().ok()?));
    let sets: Vec<CpuSet> = pids.filter_map(|pid| sched_getaffinity(Some(pid)).ok()).collect();
    let is_theirs = |core| core < CpuSet::MAX_CPU && sets.iter().any(|set| set.is_set(core));
    of_these(&stat, rustix::param::clock_ticks_per_second(), is_theirs)
}

fn of_these(stat: &str, ticks_per_second: u64, are: impl Fn(usize) -> bool) -> Option<Cores> {
    let at_work = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let core = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let fields: Vec<u64> = words.map_while(|field| field.parse().ok()).collect();
        // Guest time is already in `user`.
        let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = fields.as_slice() else { return None };
        are(core).then_some([user + nice + system + irq + softirq, *steal])
    };
    let each: Vec<[u64; 2]> = stat.lines().filter_map(at_work).collect();
    let time = |which: usize| {
        Duration::from_secs_f64(each.iter().map(|times| times[which]).sum::<u64>() as f64 / ticks_per_second as f64)
    };
    (!each.is_empty()).then(|| Cores { worked: time(0), stolen: time(1) })
}

/// Returns the sum over several processes, `None` if one cannot be read.
pub fn of_processes(pids: &[u32]) -> Option<Duration> {
    pids.iter().map(|pid| of_process(*pid)).sum()
}

/// The name in the second field may contain anything, even blanks and brackets: counting starts after its last bracket.
fn of_stat(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) as f64 / ticks_per_second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_name() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 9 9 20 0 4 0 100";
        assert_eq!(of_stat(stat, 100), Some(Duration::from_secs(2)));
        assert_eq!(of_stat("7 (x", 100), None);
        assert_eq!(of_stat("7 (x) S 1 7", 100), None);
    }

    #[test]
    fn all_that_is_not_idle_is_work_of_a_core() {
        let stat = "cpu  500 10 20 9999 8888 1 2 7 50 0\ncpu0 100 10 20 99 88 1 2 7 50 0\ncpu1 400 0 0 9 8 0 0 0 0 0\nintr 1\n";
        let of = |are: fn(usize) -> bool| of_these(stat, 100, are).unwrap();
        let cores =
            |worked, stolen| Cores { worked: Duration::from_millis(worked), stolen: Duration::from_millis(stolen) };
        // Red where what the host took is work: the report named programs that do not exist.
        assert_eq!(of(|_| true), cores(5330, 70));
        assert_eq!(of(|core| core == 0), cores(1330, 70), "and not of the others");
        assert_eq!(of(|_| true).since(of(|core| core == 0)), Some(cores(4000, 0)));
        assert_eq!(of(|core| core == 0).since(of(|_| true)), None);
        assert_eq!((of_these("cpu0 1 2", 100, |_| true), of_these("", 100, |_| true)), (None, None));
    }

    #[test]
    fn the_wait_for_a_processor_is_the_second_field() {
        assert_eq!(of_schedstat("981 1500000000 7\n"), Some(Duration::from_millis(1500)));
        assert_eq!((of_schedstat("981"), of_schedstat("")), (None, None));
    }

    #[test]
    fn a_thread_that_works_spends_time_and_one_that_sleeps_does_not() {
        let before = of_thread();
        std::thread::sleep(Duration::from_millis(30));
        let rested = of_thread() - before;
        let begun = std::time::Instant::now();
        while of_thread() - before < Duration::from_millis(30) {}
        assert!(rested < Duration::from_millis(20) && begun.elapsed() > Duration::from_millis(10), "{rested:?}");
    }

    #[test]
    fn a_process_that_is_not_there_has_no_time() {
        assert_eq!(of_process(u32::MAX), None);
        assert_eq!(of_processes(&[u32::MAX]), None);
    }
}
