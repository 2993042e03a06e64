//! Lets go of a hashing thread's core now and then while other threads wait for one.
//!
//! Niceness divides a core among the threads of one group. Where Linux schedules groups (terminal sessions with
//! autogroup, control groups of services and containers), a program that fills every core kept threads of other groups,
//! the kernel's own among them, waiting for seconds: each time that threads of very different niceness take turns in a
//! group, the group's weight changes, and what it owes others is computed anew. A thread that sleeps for a moment takes
//! its group off the core, and waiting threads have their turn. Where none wait, nothing is given away: the system is
//! first asked.

use std::time::{Duration, Instant};

/// How long a thread hashes before it looks whether others wait.
const LOOK: Duration = Duration::from_micros(250);
/// How many looks in a row must see a waiting thread before it lets go: threads that come and go are served anyway.
const LOOKS: u32 = 4;
/// How long it then sleeps. The system adds 50 µs, which is enough.
#[cfg(target_os = "linux")]
const AWAY: Duration = Duration::from_micros(1);

/// What one hashing thread knows about the threads beside it.
pub(crate) struct Courtesy {
    looked: Instant,
    /// Looks in a row that saw a waiting thread, since it last let go.
    waited: u32,
    system: Option<System>,
}

impl Courtesy {
    /// For the thread that will hash.
    pub(crate) fn new() -> Self {
        Courtesy { looked: Instant::now(), waited: 0, system: System::found() }
    }

    /// Call this several times a millisecond while hashing.
    pub(crate) fn offer(&mut self) {
        let Some(system) = &self.system else { return };
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.waited = if system.somebody_waits() { self.waited + 1 } else { 0 };
        if self.waited == LOOKS {
            self.waited = 0;
            system.let_others_go_first();
        }
        self.looked = Instant::now();
    }
}

#[cfg(not(target_os = "linux"))]
struct System;

#[cfg(not(target_os = "linux"))]
impl System {
    fn found() -> Option<System> {
        None
    }

    fn somebody_waits(&self) -> bool {
        false
    }

    fn let_others_go_first(&self) {}
}

#[cfg(target_os = "linux")]
use linux::System;

#[cfg(target_os = "linux")]
mod linux {
    use super::AWAY;
    use std::{fs, fs::File, os::unix::fs::FileExt, str, thread};

    /// Where Linux tells how many threads run or wait for a core.
    pub(super) struct System {
        pub(super) load: File,
        pub(super) cores: usize,
    }

    impl System {
        /// `None` where the system does not tell.
        pub(super) fn found() -> Option<System> {
            let cores = cores(&fs::read_to_string("/sys/devices/system/cpu/online").ok()?)?;
            Some(System { load: File::open("/proc/loadavg").ok()?, cores })
        }

        pub(super) fn let_others_go_first(&self) {
            thread::sleep(AWAY);
        }

        pub(super) fn somebody_waits(&self) -> bool {
            let mut text = [0; 64];
            let told = self.load.read_at(&mut text, 0).ok().and_then(|length| str::from_utf8(&text[..length]).ok());
            told.and_then(running).is_some_and(|running| running > self.cores)
        }
    }

    /// How many threads run or wait for a core, from `0.20 0.18 0.12 3/80 11206` (proc_loadavg(5)).
    pub(super) fn running(load: &str) -> Option<usize> {
        load.split(' ').nth(3)?.split('/').next()?.parse().ok()
    }

    /// How many cores there are in `0-3,6`.
    pub(super) fn cores(online: &str) -> Option<usize> {
        let range = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            Some((last + 1).saturating_sub(first))
        };
        online.trim().split(',').map(range).sum()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::{linux::*, *};
    use std::fs;
    use std::io::{Seek, Write};

    /// How often the calling thread has let go of its core by itself.
    fn sleeps() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    }

    /// How often it does if so many threads run on two cores at each look.
    fn sleeps_beside(running: [usize; 8]) -> u64 {
        let path = std::env::temp_dir().join(format!("portiere-load-{}-{running:?}", std::process::id()));
        let mut told = fs::File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        let load = fs::File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut courtesy = Courtesy { looked: Instant::now(), waited: 0, system: Some(System { load, cores: 2 }) };
        let mut slept = 0;
        for running in running {
            told.rewind().unwrap();
            writeln!(told, "0.20 0.18 0.12 {running}/80 11206").unwrap();
            let (begun, before) = (Instant::now(), sleeps());
            while begun.elapsed() < LOOK {}
            courtesy.offer();
            // It looked a moment ago.
            (0..9).for_each(|_| courtesy.offer());
            slept += sleeps() - before;
        }
        slept
    }

    #[test]
    fn whoever_waits_for_long_goes_first_and_nobody_is_waited_for() {
        assert_eq!(sleeps_beside([2; 8]), 0, "nobody waits");
        assert_eq!(sleeps_beside([3; 8]), 2, "somebody always does");
        assert_eq!(sleeps_beside([3, 3, 3, 2, 3, 3, 3, 2]), 0, "they come and go");
    }

    #[test]
    fn what_the_system_tells_is_understood() {
        assert_eq!(running("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(["", "0.20 0.18", "a b c d e", "0 0 0 -1/2 3"].map(running), [None; 4]);
        assert_eq!(["0\n", "0-3\n", "0-3,6,8-9\n"].map(cores), [Some(1), Some(4), Some(7)]);
        assert_eq!(["", "all", "0-"].map(cores), [None; 3]);
        assert!(System::found().is_some(), "this system tells nothing");
    }
}
