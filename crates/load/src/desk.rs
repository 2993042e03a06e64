//! Where the visitors of one thread are told when to begin, and where they report.

use crate::record::{Place, Record};
use crate::run::{Pulse, Window};
use crate::schedule::Schedule;
use crate::timeline::slice_length;
use crate::turns::Turns;
use crate::visitor::{Cause, Scene, Setback, Visitor};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::{sleep, sleep_until, timeout_at};

/// How long after the window an iteration that was due in it may still begin, where the machine is busy.
const LATE: Duration = Duration::from_millis(100);
/// How long a visitor waits after no connection could be made, so that a server that is gone is not called in a tight loop. The report
/// says how often that was: a closed loop "without pause" then had some.
pub const RECONNECT: Duration = Duration::from_millis(100);
/// How often a visitor that nothing is asked of renews its tokens at most, however short they live.
const RENEW: Duration = Duration::from_secs(1);

/// Where the visitors of one thread report. They take turns on that thread, so cells are enough.
pub struct Desk {
    window: Window,
    scene: Arc<Scene>,
    /// Of an open loop.
    schedule: Option<Arc<Schedule>>,
    turns: Turns,
    slice: Duration,
    record: RefCell<Record>,
    pulse: RefCell<Pulse>,
    has_watcher: bool,
    under_way: Cell<u64>,
    /// The next start of an open loop, counted over all threads from the beginning.
    slot: Cell<u64>,
}

/// A visitor of a closed loop, and since when an iteration of it has been under way: it is dropped in the middle of one when the window
/// ends.
struct Turn<'d> {
    desk: &'d Desk,
    visitor: Visitor,
    begun: Option<Instant>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.visitor.settle();
            let before = self.desk.window.from.saturating_duration_since(begun);
            self.desk.record.borrow_mut().give_up(self.visitor.lap(), before);
        }
    }
}

impl Desk {
    /// For the visitors of one thread out of several.
    pub fn new(window: Window, (scene, thread): (&Arc<Scene>, usize), has_watcher: bool) -> Self {
        Desk {
            window,
            scene: Arc::clone(scene),
            schedule: scene.schedule.clone(),
            turns: Turns::of(scene.plan.workload),
            slice: slice_length(scene.plan.duration),
            record: RefCell::default(),
            pulse: RefCell::default(),
            has_watcher,
            under_way: Cell::new(0),
            slot: Cell::new(thread as u64),
        }
    }

    /// What has happened since it was asked last.
    pub fn pulse(&self) -> Pulse {
        self.pulse.take()
    }

    /// Lets a visitor do what it does until the window is over.
    pub async fn serve(self: Rc<Self>, visitor: Visitor, number: usize) {
        match &self.schedule {
            Some(schedule) => self.on_schedule(visitor, schedule).await,
            None => self.again_and_again(visitor, number).await,
        }
    }

    /// Hands out the starts of an open loop as they are let go at the gate.
    pub async fn hand_out(self: Rc<Self>, gate: Arc<Semaphore>) {
        self.turns.hand_out(&gate).await;
    }

    async fn again_and_again(&self, visitor: Visitor, number: usize) {
        let mut turn = Turn { desk: self, visitor, begun: None };
        let visitor = &mut turn.visitor;
        let pause = self.scene.plan.pace.pause();
        sleep_until((self.window.begin + self.scene.plan.joins(number)).into()).await;
        // Visitors that pause do not all arrive in the same instant.
        sleep(pause.mul_f64(fastrand::f64())).await;
        while Instant::now() < self.window.until {
            visitor.renew().await;
            let begun = Instant::now();
            turn.begun = Some(begun);
            self.under_way.update(|count| count + 1);
            let outcome = visitor.iterate().await;
            self.under_way.update(|count| count - 1);
            turn.begun = None;
            let ended = Instant::now();
            let counts = self.window.holds(ended).then_some(ended);
            let place = self.place(counts, ended);
            self.book(visitor, ended - begun, &outcome, place);
            self.rest(&outcome, place).await;
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    }

    /// Takes the next start of the schedule whenever it is free: if it is late by then, its latency says so.
    async fn on_schedule(&self, mut visitor: Visitor, schedule: &Schedule) {
        let counted = schedule.counted();
        let mut was_busy = false;
        while let Some(waited) = self.turn(&mut visitor).await {
            let slot = self.slot.get();
            if slot >= counted.end || Instant::now() >= self.window.until + LATE {
                return;
            }
            self.slot.set(slot + self.scene.plan.threads() as u64);
            let (due, counts) = (self.window.begin + schedule.due(slot), counted.contains(&slot));
            // Before its first a visitor was not busy, but not there yet.
            self.record.borrow_mut().waited += u64::from(waited && was_busy && counts);
            if counts && !waited {
                self.record.borrow_mut().lateness.add(Instant::now().saturating_duration_since(due));
            }
            let outcome = visitor.iterate().await;
            let ended = Instant::now();
            let latency = ended.saturating_duration_since(due);
            let place = self.place(counts.then_some(due), ended);
            self.book(&visitor, latency, &outcome, place);
            self.rest(&outcome, place).await;
            was_busy = true;
        }
    }

    /// The next start for a visitor, whose tokens are renewed while nothing is due from it; whether it was due before anybody was
    /// free. `None` once there are no more.
    async fn turn(&self, visitor: &mut Visitor) -> Option<bool> {
        loop {
            visitor.renew().await;
            let Some(stale) = visitor.stale_at() else { return self.turns.wait().await.ok() };
            let again = stale.max(Instant::now() + RENEW);
            if let Ok(start) = timeout_at(again.into(), self.turns.wait()).await {
                return start.ok();
            }
            self.turns.tidy();
        }
    }

    /// Where an iteration belongs; `counts` is the time that it counts for, if it does.
    fn place(&self, counts: Option<Instant>, ended: Instant) -> Place {
        let slice = |when: Instant| {
            let since = when.saturating_duration_since(self.window.from);
            (since.as_secs_f64() / self.slice.as_secs_f64()) as usize
        };
        Place { counts: counts.map(slice), ended: self.window.holds(ended).then(|| slice(ended)) }
    }

    /// Writes down an iteration.
    fn book(&self, visitor: &Visitor, latency: Duration, outcome: &Result<(), Setback>, place: Place) {
        // What comes after the end does not count, also when the end comes early.
        if self.scene.plan.interrupt.since().is_none() {
            self.record.borrow_mut().take(visitor.lap(), place, latency, outcome);
        }
        if self.has_watcher {
            let mut pulse = self.pulse.borrow_mut();
            match outcome {
                Ok(()) => pulse.iterations.add(latency),
                Err(Setback { cause: Cause::Refused { .. }, .. }) => pulse.refused += 1,
                Err(_) => pulse.failed += 1,
            }
        }
    }

    /// Waits where going on at once makes no sense, or was asked not to be done.
    async fn rest(&self, outcome: &Result<(), Setback>, place: Place) {
        match outcome {
            Err(Setback { cause: Cause::Lost(fault), .. }) if fault.is_unconnected() => {
                let counts = place.ended.is_some() && self.scene.plan.interrupt.since().is_none();
                self.record.borrow_mut().rested += u64::from(counts);
                sleep(RECONNECT).await;
            }
            Err(Setback { cause: Cause::Refused { retry_after, .. }, .. }) if self.scene.plan.heeds_retry_after => {
                sleep(*retry_after).await;
            }
            _ => {}
        }
    }

    /// What was seen, once every visitor has stopped.
    pub fn close(&self) -> Record {
        let mut record = self.record.take();
        // In an open loop the schedule says what is missing, also what never began.
        match &self.schedule {
            None => record.unfinished = self.under_way.get(),
            Some(schedule) => record.waited += self.never_begun(schedule),
        }
        record
    }

    /// This thread's starts that were due in the window, and that nobody has taken.
    fn never_begun(&self, schedule: &Schedule) -> u64 {
        let end = self.scene.plan.interrupt.since().map_or(self.window.until, |since| since.min(self.window.until));
        let first = schedule.counted().start;
        let due = first + schedule.due_within(end.saturating_duration_since(self.window.begin));
        let next = self.slot.get();
        let before = |start: u64| start.saturating_sub(next).div_ceil(self.scene.plan.threads() as u64);
        before(due) - before(first)
    }
}
