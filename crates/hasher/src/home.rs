//! A core of its own for each hashing thread, where there are as many cores as threads.
//!
//! Every core hashes, and threads that answer requests take turns on all of them, for a moment each. The system then
//! moves hashing threads about, and often has two of them wait for one core while another one has nothing to do: of two
//! cores, a twentieth was lost that way although passwords waited. A thread that never moves has its core as soon as
//! nobody else needs it.
//!
//! If somebody else needs it for long, staying is the worse choice: a thread that cannot move waits for as long as that
//! takes. Then it lets the system choose again, for a while.

#[cfg(target_os = "linux")]
pub(crate) use linux::Home;

/// Elsewhere the system always chooses.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Home;

#[cfg(not(target_os = "linux"))]
impl Home {
    pub(crate) fn of(_number: usize, _threads: usize) -> Option<Home> {
        None
    }

    pub(crate) fn look(&mut self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::{Duration, Instant};

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use crate::{
        meters::{CpuTime, Meter},
        took,
    };

    /// How long a thread must have run and waited, together, before that says whether its core is the right one.
    const SPAN: Duration = Duration::from_millis(200);
    /// It is not if the thread waited for so many times as long as it ran. Beside sign-ins at full speed and the
    /// generator of that load, it is two thirds.
    const CROWDED: u32 = 3;
    /// How long it then lets the system choose.
    pub(super) const AWAY: Duration = Duration::from_secs(5);

    /// Where one hashing thread runs.
    pub(crate) struct Home {
        meter: Meter,
        own: CpuSet,
        /// The cores that the program may use.
        all: CpuSet,
        /// What the thread had when the span began.
        pub(super) before: CpuTime,
        away_since: Option<Instant>,
    }

    impl Home {
        /// Takes the calling thread, number `number` of `threads`, to its core. `None` if there are more cores, or
        /// fewer, or if the system does not tell or refuses: then nothing has changed.
        pub(crate) fn of(number: usize, threads: usize) -> Option<Home> {
            let all = sched_getaffinity(None).ok()?;
            let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
            let core = cores.nth(number).filter(|_| all.count() as usize == threads)?;
            let meter = Meter::of_this_thread()?;
            // A system that keeps no such times tells zeros. Others do for a thread that has just started, until somebody
            // asks for the time that it ran.
            let _ = took::ran();
            let before = meter.read().filter(|had| !had.ran.is_zero())?;
            let mut own = CpuSet::new();
            own.set(core);
            sched_setaffinity(None, &own).ok()?;
            Some(Home { meter, own, all, before, away_since: None })
        }

        /// Call this between batches, on the thread whose home this is.
        pub(crate) fn look(&mut self) {
            if let Some(had) = self.meter.read() {
                self.judge(had, Instant::now());
            }
        }

        pub(super) fn judge(&mut self, had: CpuTime, now: Instant) {
            match self.away_since {
                Some(since) if now.duration_since(since) < AWAY => return,
                Some(_) => return self.go(None, had),
                None => {}
            }
            let ran = had.ran.saturating_sub(self.before.ran);
            let waited = had.waited.saturating_sub(self.before.waited);
            if ran + waited < SPAN {
                return;
            }
            match waited > CROWDED * ran {
                true => self.go(Some(now), had),
                false => self.before = had,
            }
        }

        /// Leaves at this moment, or comes back. What the thread had elsewhere says nothing about this core.
        fn go(&mut self, away_since: Option<Instant>, had: CpuTime) {
            let cores = if away_since.is_some() { &self.all } else { &self.own };
            // This is refused if the core is gone: then the system has chosen already.
            let _ = sched_setaffinity(None, cores);
            (self.away_since, self.before) = (away_since, had);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::linux::{AWAY, Home};
    use crate::meters::CpuTime;
    use rustix::thread::{CpuSet, sched_getaffinity};
    use std::{
        io::Write,
        thread,
        time::{Duration, Instant},
    };

    fn cores() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    /// What `of` does on a thread of its own, and where that thread may run afterwards; `None` if it has no home.
    fn housed(number: usize, threads: usize) -> Option<(Home, Vec<usize>)> {
        let spawned = thread::spawn(move || (Home::of(number, threads), cores()));
        let (home, stays) = spawned.join().unwrap();
        home.map(|home| (home, stays))
    }

    #[test]
    fn each_thread_has_a_core_if_there_are_as_many() {
        let all = cores();
        if housed(0, all.len()).is_none() {
            writeln!(std::io::stderr(), "NOT TESTED: this system does not tell how long threads wait").unwrap();
            return;
        }
        let homes = (0..all.len()).map(|number| housed(number, all.len()).unwrap().1);
        assert_eq!(homes.collect::<Vec<_>>(), all.iter().map(|core| vec![*core]).collect::<Vec<_>>());
        for threads in [all.len() - 1, all.len() + 1] {
            assert!(housed(0, threads).is_none(), "{threads} threads on {} cores", all.len());
        }
        assert_eq!(cores(), all, "others stay where they were");
    }

    /// Red without `judge`: beside a program that never lets go of that core, passwords would take many times as long.
    #[test]
    fn whoever_waits_for_its_core_for_too_long_goes_elsewhere_for_a_while() {
        let all = cores();
        let stays = thread::spawn(move || {
            let mut home = Home::of(0, all.len())?;
            let (mut had, mut now, ms) = (home.before, Instant::now(), Duration::from_millis);
            let mut after = |ran: Duration, waited: Duration, later: Duration| {
                (had, now) = (CpuTime { ran: had.ran + ran, waited: had.waited + waited }, now + later);
                home.judge(had, now);
                cores().len() == 1
            };
            let stays = [
                after(ms(60), ms(150), ms(210)),  // It waits, but not for so long.
                after(ms(10), ms(100), ms(110)),  // Too short to tell.
                after(ms(90), ms(100), ms(190)),  // Over both it was well enough.
                after(ms(40), ms(170), ms(210)),  // Too long.
                after(ms(1000), ms(0), AWAY / 2), // It is well elsewhere.
                after(ms(10), ms(900), AWAY / 2), // It comes back, and what was elsewhere does not count.
                after(ms(100), ms(100), ms(200)),
            ];
            Some((stays, all.len()))
        });
        let Some((stays, cores)) = stays.join().unwrap().filter(|(_, cores)| *cores > 1) else {
            writeln!(std::io::stderr(), "NOT TESTED: one core, or a system that does not tell how long threads wait")
                .unwrap();
            return;
        };
        assert_eq!(stays, [true, true, true, false, false, true, true], "{cores} cores");
    }
}
