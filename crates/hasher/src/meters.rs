//! How much of the CPU time that it could have used the pool has had.

use std::{
    fs::File,
    io::{Read, Seek},
    str,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// CPU time of the threads of a pool since they started, over all of them. Zero where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// How long they ran.
    pub ran: Duration,
    /// How long they could have run while others did.
    pub waited: Duration,
}

/// Where Linux tells it of a thread (`/proc/PID/task/TID/schedstat`; Documentation/scheduler/sched-stats.rst).
pub(crate) struct Meter(File);

impl Meter {
    /// The calling thread's.
    pub(crate) fn of_this_thread() -> Option<Meter> {
        File::open("/proc/thread-self/schedstat").ok().map(Meter)
    }

    /// The times so far. `None` when the thread has ended.
    pub(crate) fn read(&self) -> Option<CpuTime> {
        let (mut text, mut file) = ([0; 96], &self.0);
        file.rewind().ok()?;
        let length = file.read(&mut text).ok()?;
        parse(str::from_utf8(&text[..length]).ok()?)
    }
}

/// The meters of all threads.
#[derive(Default)]
pub(crate) struct Meters(Mutex<Vec<Meter>>);

impl Meters {
    /// Counts the calling thread from now on.
    pub(crate) fn add(&self) {
        if let Some(meter) = Meter::of_this_thread() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(meter);
        }
    }

    /// The times so far. A thread that has ended is not counted any more.
    pub(crate) fn read(&self) -> CpuTime {
        let meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        meters
            .iter()
            .filter_map(Meter::read)
            .fold(CpuTime::default(), |sum, one| CpuTime { ran: sum.ran + one.ran, waited: sum.waited + one.waited })
    }
}

/// Parses `1087705 5316 2`: nanoseconds on a core, nanoseconds waiting for one, and how many turns these were.
fn parse(told: &str) -> Option<CpuTime> {
    let mut numbers = told.split_ascii_whitespace().map(|number| number.parse().ok().map(Duration::from_nanos));
    Some(CpuTime { ran: numbers.next()??, waited: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, sync::Barrier, thread, time::Instant};

    #[test]
    fn what_the_system_tells_is_understood() {
        let told = CpuTime { ran: Duration::from_nanos(1_087_705), waited: Duration::from_nanos(5_316) };
        assert_eq!(parse("1087705 5316 2\n"), Some(told));
        assert_eq!(["", "7", "7 x", "-1 2 3"].map(parse), [None; 4]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn each_thread_is_counted_for_as_long_as_it_lives() {
        if fs::read_to_string("/proc/thread-self/schedstat").map_or(true, |told| told.trim() == "0 0 0") {
            return; // A kernel that keeps no such times.
        }
        let (meters, seen) = (Meters::default(), Barrier::new(2));
        assert_eq!(meters.read(), CpuTime::default());
        let spin = Duration::from_millis(20);
        thread::scope(|scope| {
            scope.spawn(|| {
                meters.add();
                let begun = Instant::now();
                while begun.elapsed() < spin {}
                seen.wait();
                seen.wait();
            });
            seen.wait();
            let had = meters.read();
            assert!(had.ran + had.waited >= spin / 2, "{had:?}");
            seen.wait();
        });
        // The system may lag a moment behind.
        let ended = Instant::now();
        while meters.read() != CpuTime::default() {
            assert!(ended.elapsed() < Duration::from_secs(60), "a thread that has ended is counted");
            thread::yield_now();
        }
    }
}
