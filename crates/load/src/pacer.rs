//! Starts the iterations of an open loop on time. The runtime's timers have a resolution of a millisecond, which is
//! longer than a good answer takes; a thread that sleeps wakes less than a tenth of a millisecond late.

use crate::cpu;
use crate::schedule::Schedule;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The shortest sleep: starts that come due during it are released together.
const GRAIN: Duration = Duration::from_micros(100);

/// What releasing starts took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paced {
    /// How many there were.
    pub starts: u64,
    /// The processor time of the pacer for these.
    pub spent: Duration,
}

impl Paced {
    /// Returns the processor time of a start, in microseconds; `None` if there was none.
    pub fn each_us(self) -> Option<f64> {
        (self.starts > 0).then(|| self.spent.as_secs_f64() * 1e6 / self.starts as f64)
    }
}

/// A thread that releases one start after another through a gate.
pub struct Pacer {
    gate: Arc<Semaphore>,
    begin: Sender<(Instant, Instant)>,
    paced: Arc<OnceLock<Paced>>,
}

impl Pacer {
    /// Spawns a pacer for every `step`th start from `first` on. It does nothing until it is told to begin. It ends when
    /// the window ends, where it releases all `visitors`, or when nobody waits at the gate any more.
    ///
    /// # Errors
    /// When no thread can be spawned.
    pub fn hire(schedule: Arc<Schedule>, visitors: usize, (first, step): (usize, usize)) -> std::io::Result<Pacer> {
        let gate = Arc::new(Semaphore::new(0));
        let (begin, told) = channel();
        let watched = Arc::downgrade(&gate);
        let paced = Arc::new(OnceLock::new());
        let tell = Arc::clone(&paced);
        thread::Builder::new().name("load-pacer".to_owned()).spawn(move || {
            if let Ok((begin, until)) = told.recv() {
                let starts = (first as u64..schedule.counted().end).step_by(step);
                let dues = starts.map(|start| begin + schedule.due(start)).take_while(|due| *due < until);
                let starts = let_go(dues, &watched);
                let gate = starts.and_then(|_| wait(until, &watched));
                // Before the gate opens: whoever it lets through may read it.
                let _ = tell.set(Paced { starts: starts.unwrap_or(0), spent: cpu::of_thread() });
                if let Some(gate) = gate {
                    gate.add_permits(visitors);
                }
            }
        })?;
        Ok(Pacer { gate, begin, paced })
    }

    /// Begins, and returns the gate: each permit is a start, and after the last start a sign that there are no more.
    /// What that took is there once the window is over, and never if it was left early.
    pub fn begin(self, begin: Instant, until: Instant) -> (Arc<Semaphore>, Arc<OnceLock<Paced>>) {
        // The thread waits for nothing else, so the message arrives.
        let _ = self.begin.send((begin, until));
        (self.gate, self.paced)
    }
}

/// Releases each start when it is due, and returns how many there were; `None` as soon as nobody holds the gate.
fn let_go(dues: impl Iterator<Item = Instant>, gate: &Weak<Semaphore>) -> Option<u64> {
    let mut starts = 0;
    for due in dues {
        wait(due, gate)?.add_permits(1);
        starts += 1;
    }
    Some(starts)
}

/// Sleeps until `until`, then returns the gate; returns `None` as soon as nobody holds the gate any more.
fn wait(until: Instant, gate: &Weak<Semaphore>) -> Option<Arc<Semaphore>> {
    /// How long it may take to notice that nobody holds the gate any more.
    const LONGEST: Duration = Duration::from_millis(200);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return gate.upgrade();
        }
        gate.upgrade()?;
        thread::sleep(left.clamp(GRAIN, LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;
    use crate::plan::{Pace, Plan};

    #[test]
    fn every_start_is_let_go_when_it_is_due_and_in_the_end_everybody_is() {
        let plan =
            Plan { pace: Pace::Open { rate: 200.0, visitors: 1 }, duration: Duration::from_millis(200), ..plan() };
        let pacer = Pacer::hire(Arc::new(Schedule::of(&plan).unwrap()), 1000, (1, 2)).unwrap();
        let begun = Instant::now() + Duration::from_secs(1);
        let (gate, paced) = pacer.begin(begun, begun + plan.duration);
        assert_eq!(gate.available_permits(), 0);
        let mut let_go = 0;
        while gate.available_permits() < 1000 {
            // Every second one of 200 starts a second, beginning with the second: due after 5 ms, the next after 15 ms.
            let now = gate.available_permits();
            if now >= 1000 {
                break;
            }
            let due = Instant::now().saturating_duration_since(begun).as_secs_f64() * 100.0 + 0.5;
            assert!(now as f64 <= due, "{now} at {due}");
            assert!(now >= let_go && now <= 20);
            let_go = now;
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(gate.available_permits(), 1020);
        let Paced { starts, spent } = *paced.get().unwrap();
        assert!(starts == 20 && !spent.is_zero(), "{starts} starts took {spent:?}");
        assert!(Instant::now() >= begun + plan.duration, "nobody is let go before the window is over");
    }
}
