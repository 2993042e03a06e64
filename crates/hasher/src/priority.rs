//! Which threads go first where every core hashes: hashing steps behind all, threads that answer step ahead of it.
//!
//! Niceness says which thread gets more of a core, not how soon. Since Linux 6.6 a running thread keeps its turn (0.7
//! ms, and more with more cores) even if a thread that is owed more wakes up; since 6.12 not if that one asks for a
//! shorter turn.

/// Lowers the scheduling priority of the calling thread by `steps` of niceness, and gives it turns of the system's own
/// length. A thread that goes before all others, because the thread that started it does (SCHED_FIFO, SCHED_RR), stops
/// doing so. On Linux both belong to a thread; elsewhere the whole process would be lowered, so nothing is done.
#[cfg(target_os = "linux")]
pub(crate) fn step_back(steps: u8) {
    // Raising one's own niceness needs no privilege; if it were refused, hashing would only be less polite.
    let _ = rustix::process::nice(i32::from(steps));
    let policy = if linux::is_real_time() { linux::Policy::Other } else { linux::Policy::AsItIs };
    linux::take_turns(linux::AS_LONG_AS_OTHERS, policy);
}

/// Asks the system for short turns, for the calling thread and those that it starts from now on: they start work sooner
/// when they wake up while every core hashes, and get no more of the cores. The threads of a [`Hasher`](crate::Hasher)
/// do not keep this. For programs that answer requests, before they start threads; Linux from 6.12 on.
#[cfg(target_os = "linux")]
pub fn step_ahead() {
    linux::take_turns(linux::SHORTEST, linux::Policy::AsItIs);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn step_back(_steps: u8) {}

/// Asks the system for short turns: on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn step_ahead() {}

#[cfg(target_os = "linux")]
mod linux {
    /// The shortest turns that Linux gives, in nanoseconds.
    pub(super) const SHORTEST: u64 = 100_000;
    /// The length that it gives by itself.
    pub(super) const AS_LONG_AS_OTHERS: u64 = 0;

    /// How a thread is scheduled from now on.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Policy {
        AsItIs,
        /// By niceness.
        Other,
        /// Before all threads with a niceness, for a test.
        #[cfg(test)]
        Fifo,
    }

    /// Whether the calling thread is scheduled before all threads with a niceness, so that its own means nothing: its
    /// policy (proc_pid_stat(5), field 41) is SCHED_FIFO or SCHED_RR. Where the system does not tell, the policy is
    /// left as it is.
    pub(super) fn is_real_time() -> bool {
        let told = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
        // The thread's name comes second, and may contain anything.
        let policy = told.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(38));
        let policy: Option<i32> = policy.and_then(|policy| policy.parse().ok());
        policy.is_some_and(|policy| [libc::SCHED_FIFO, libc::SCHED_RR].contains(&policy))
    }

    /// Sets the length of the calling thread's turns (sched_setattr(2), `sched_runtime` of a thread that is not
    /// scheduled by deadlines), and its policy. A system that does not know this does nothing, and one that refuses
    /// leaves all as it was.
    #[allow(unsafe_code, reason = "a system call that no library wraps")]
    pub(super) fn take_turns(nanoseconds: u64, policy: Policy) {
        // The call also sets the niceness, which is to stay as it is.
        let Ok(nice) = rustix::process::getpriority_process(None) else { return };
        let (sched_policy, sched_priority, flags) = match policy {
            Policy::AsItIs => (0, 0, libc::SCHED_FLAG_KEEP_POLICY),
            Policy::Other => (libc::SCHED_OTHER, 0, 0),
            #[cfg(test)]
            Policy::Fifo => (libc::SCHED_FIFO, 1, 0),
        };
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: sched_policy as u32,
            sched_flags: flags as u64,
            sched_nice: nice,
            sched_priority,
            sched_runtime: nanoseconds,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the system reads as many bytes behind the pointer as their `size` says, which are there until it
        // returns, and keeps no pointer. 0 is the calling thread.
        let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{io::Write, thread};

    #[test]
    fn niceness_belongs_to_the_thread_that_asks() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let stepped = thread::spawn(move || {
            step_back(3);
            nice()
        });
        assert_eq!(stepped.join().unwrap(), (before + 3).min(19));
        assert_eq!(nice(), before);
    }

    /// Red without `Policy::Other`: hashing would go before everything that answers requests.
    #[test]
    fn hashing_steps_behind_others_whoever_started_it() {
        assert!(!linux::is_real_time());
        let (started, hashing, niceness) = thread::spawn(|| {
            let before = rustix::process::getpriority_process(None).unwrap();
            linux::take_turns(linux::AS_LONG_AS_OTHERS, linux::Policy::Fifo);
            let hashing = thread::spawn(|| {
                let started = linux::is_real_time();
                step_back(3);
                (started, linux::is_real_time(), rustix::process::getpriority_process(None).unwrap())
            });
            let (started, after, nice) = hashing.join().unwrap();
            (started, after, (nice, (before + 3).min(19)))
        })
        .join()
        .unwrap();
        if !started {
            writeln!(std::io::stderr(), "NOT TESTED: this system lets nobody go before all others").unwrap();
        }
        assert!(!hashing);
        assert_eq!(niceness.0, niceness.1);
    }

    /// The length of the calling thread's turns in nanoseconds, where the system tells.
    fn turns() -> Option<u64> {
        let told = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = told.lines().find_map(|line| line.strip_prefix("se.slice"))?;
        line.trim_start_matches([' ', ':']).parse().ok()
    }

    #[test]
    fn turns_are_short_for_all_that_come_after_but_hashing() {
        let Some(usual) = turns() else {
            writeln!(std::io::stderr(), "NOT TESTED: this system does not tell how long turns are").unwrap();
            return;
        };
        let (ahead, niceness, child, hashing) = thread::spawn(|| {
            step_ahead();
            let niceness = rustix::process::getpriority_process(None).unwrap();
            let child = thread::spawn(turns).join().unwrap();
            let hashing = thread::spawn(|| {
                step_back(1);
                turns()
            });
            (turns(), niceness, child, hashing.join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((ahead, child, hashing), (Some(linux::SHORTEST), Some(linux::SHORTEST), Some(usual)));
        assert_eq!((niceness, turns()), (rustix::process::getpriority_process(None).unwrap(), Some(usual)));
    }
}
