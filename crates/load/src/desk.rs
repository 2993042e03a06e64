//! Tells the visitors of one thread when to begin, and records what they report.

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

/// How long after the window an iteration that was due in it may still begin, if the machine is busy.
const LATE: Duration = Duration::from_millis(100);
/// How long a visitor waits after a connection attempt failed, so that it does not call a server that is gone in a
/// tight loop. The report says how often that happened, because a closed loop "without pause" then had pauses.
pub const RECONNECT: Duration = Duration::from_millis(100);
/// The shortest time between two token renewals of an idle visitor, however short-lived its tokens are.
const RENEW: Duration = Duration::from_secs(1);

/// The place where the visitors of one thread report. They run one at a time on that thread, so cells are enough.
pub struct Desk {
    window: Window,
    scene: Arc<Scene>,
    /// Only in an open loop.
    schedule: Option<Arc<Schedule>>,
    turns: Turns,
    slice: Duration,
    record: RefCell<Record>,
    pulse: RefCell<Pulse>,
    has_watcher: bool,
    /// The next start of an open loop, counted over all threads from the beginning.
    slot: Cell<u64>,
}

/// A visitor of a closed loop, and the time at which its current iteration began: when the window ends, the visitor is
/// dropped in the middle of an iteration.
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
            let mut record = self.desk.record.borrow_mut();
            record.give_up(self.visitor.lap(), before);
            record.under_way.push(self.desk.end().saturating_duration_since(begun));
        }
    }
}

impl Desk {
    /// Creates the desk for the visitors of one thread out of several.
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
            slot: Cell::new(thread as u64),
        }
    }

    /// Returns what has happened since the last call.
    pub fn pulse(&self) -> Pulse {
        self.pulse.take()
    }

    /// Runs a visitor until the window is over.
    pub async fn serve(self: Rc<Self>, visitor: Visitor, number: usize) {
        match &self.schedule {
            Some(schedule) => self.on_schedule(visitor, schedule).await,
            None => self.again_and_again(visitor, number).await,
        }
    }

    /// Hands out the starts of an open loop as they are released at the gate.
    pub async fn hand_out(self: Rc<Self>, gate: Arc<Semaphore>) {
        self.turns.hand_out(&gate).await;
    }

    async fn again_and_again(&self, visitor: Visitor, number: usize) {
        let mut turn = Turn { desk: self, visitor, begun: None };
        let visitor = &mut turn.visitor;
        let pause = self.scene.plan.pace.pause();
        sleep_until((self.window.begin + self.scene.plan.joins(number)).into()).await;
        // Visitors that pause should not all begin at the same instant.
        sleep(pause.mul_f64(fastrand::f64())).await;
        while Instant::now() < self.window.until {
            visitor.renew().await;
            let begun = Instant::now();
            turn.begun = Some(begun);
            let outcome = visitor.iterate().await;
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

    /// Takes the next start of the schedule whenever the visitor is free: if it is late by then, its latency shows it.
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
            // Before its first iteration a visitor was not busy; it had not arrived yet.
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

    /// Waits for the visitor's next start, and renews its tokens while nothing is due. Returns whether the start was
    /// due before any visitor was free, or `None` once there are no more starts.
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

    /// Returns the slices that an iteration belongs to; `counts` is the time that it counts for, if it counts.
    fn place(&self, counts: Option<Instant>, ended: Instant) -> Place {
        let slice = |when: Instant| {
            let since = when.saturating_duration_since(self.window.from);
            (since.as_secs_f64() / self.slice.as_secs_f64()) as usize
        };
        Place { counts: counts.map(slice), ended: self.window.holds(ended).then(|| slice(ended)) }
    }

    /// Records an iteration.
    fn book(&self, visitor: &Visitor, latency: Duration, outcome: &Result<(), Setback>, place: Place) {
        // What ends after the run does not count, even if the run ends early.
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

    /// Waits if an immediate retry makes no sense, or if the server asked the visitor to wait.
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

    /// Returns the record, once every visitor has stopped.
    pub fn close(&self) -> Record {
        let mut record = self.record.take();
        // In an open loop the schedule tells what is missing, including starts that never began.
        match &self.schedule {
            None => record.unfinished = record.under_way.len() as u64,
            Some(schedule) => record.waited += self.never_begun(schedule),
        }
        record
    }

    /// Returns when the run ended: with its window, or earlier if it was interrupted.
    fn end(&self) -> Instant {
        self.scene.plan.interrupt.since().map_or(self.window.until, |since| since.min(self.window.until))
    }

    /// Returns how many of this thread's starts were due in the window and were not taken by any visitor.
    fn never_begun(&self, schedule: &Schedule) -> u64 {
        let end = self.end();
        let first = schedule.counted().start;
        let due = first + schedule.due_within(end.saturating_duration_since(self.window.begin));
        let next = self.slot.get();
        let before = |start: u64| start.saturating_sub(next).div_ceil(self.scene.plan.threads() as u64);
        before(due) - before(first)
    }
}
