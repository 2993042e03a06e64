//! The books of one worker: what it holds, how fast it is, and whether it is trusted.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::{
    Chance,
    canary::Test,
    frame::{Ask, Ready},
    speed::{Speed, patience},
    state::{Counts, Introduction, Lie, Parted, WorkerState},
};
use crate::{
    argon2::{H0, Params},
    job::{Input, Job, Kind, Tag},
};

/// What an ask that a worker holds is for.
pub(crate) enum Cargo {
    /// A job that a caller waits for.
    Job(Job),
    /// A job that was late, and also waits in the queue here under this number.
    Lent(Box<(crate::FairKey, u64)>),
    /// A test that nobody waits for.
    Canary,
}

struct Flight {
    cargo: Cargo,
    kind: Kind,
    sent: Instant,
    /// Nanoseconds that it was expected to take.
    expected: f64,
    /// Work of all that the worker held once this was sent, including this.
    load: f64,
}

/// One worker.
pub(crate) struct Remote {
    pub(crate) who: Introduction,
    ready: Ready,
    /// Nanoseconds that a thread here took for a unit of work when the worker came.
    unit: f64,
    pub(super) since: Instant,
    bell: Arc<Notify>,
    chance: Chance,
    out: Vec<Ask>,
    asked: u64,
    flights: HashMap<u64, Flight>,
    /// Canaries, and from [`SUSPECT`] on refused tags that are checked without a caller waiting.
    tests: HashMap<u64, Test>,
    /// The last answered asks, to tell a second answer from an answer that was never asked for.
    answered: VecDeque<u64>,
    /// Work of all flights.
    load: f64,
    speed: Speed,
    /// How many flights are late.
    late: usize,
    rests: Option<Instant>,
    /// Answers that it has to give before its word counts again.
    to_prove: u32,
    /// Whether it left asks undone, or still had to prove itself when it left.
    owes: bool,
    pub(crate) parted: Option<Parted>,
    /// The first lie that it was caught in, until it was reported.
    lie: Option<Lie>,
    pub(crate) counts: Counts,
}

/// How many answered asks are remembered.
const REMEMBERED: usize = 1024;
/// Most canaries of one worker that wait for its answer or ours; or this fraction of its credits, where that is more.
const CANARIES: usize = 8;
/// The same for refused tags; their numbers start at `SUSPECT`, beyond all asks. A flood of guesses takes them all.
const SUSPECTS: usize = 4;
const SUSPECT: u64 = 1 << 63;
/// A worker that holds an ask for this long is gone.
const GONE: Duration = Duration::from_secs(20);
/// How long a worker that did not compute an ask is asked nothing.
const REST: Duration = Duration::from_secs(1);
/// Most asks that a worker on trial holds (it left asks undone before), and how many answers end its trial.
const ON_TRIAL: (usize, u32) = (4, 32);
/// Most asks that a worker of unknown pace holds: enough to keep dozens of threads busy at the other end of a network.
const UNMEASURED: usize = 64;
/// Most asks that a worker may hold, whatever it says.
pub const MOST_HELD: u32 = 2048;

/// What becomes of an answer.
pub(crate) enum Settled {
    /// It is the tag of this job, which was sent at this time.
    Done(Job, Tag, Instant),
    /// The job waits here under this number: if it still does, this is its tag.
    Overtaken((crate::FairKey, u64), Tag, Instant),
    /// The job has to be computed elsewhere.
    Failed(Job),
    /// Nobody waits for it.
    Nothing,
}

impl Remote {
    /// A worker that has just come; `unit` is how many nanoseconds a thread here takes for a unit of work.
    pub(crate) fn new(
        who: Introduction,
        ready: Ready,
        (kind, unit): (Kind, f64),
        (chance, now): (Chance, Instant),
    ) -> Self {
        let speed = Speed::said((&ready, kind), unit);
        let ready = Ready { holds: ready.holds.min(MOST_HELD), ..ready };
        Remote {
            who,
            ready,
            unit,
            since: now,
            bell: Arc::new(Notify::new()),
            chance,
            out: Vec::new(),
            asked: 0,
            flights: HashMap::new(),
            tests: HashMap::new(),
            answered: VecDeque::new(),
            load: 0.0,
            speed,
            late: 0,
            rests: None,
            to_prove: 0,
            owes: false,
            parted: None,
            lie: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn bell(&self) -> Arc<Notify> {
        self.bell.clone()
    }

    pub(crate) fn state(&self, kind: Kind, now: Instant) -> WorkerState {
        let speed = if self.is_reckoned_with(kind, now) { self.flow(kind, self.unit).1 } else { 0.0 };
        WorkerState {
            who: self.who.clone(),
            here: now.saturating_duration_since(self.since),
            ready: self.ready,
            holding: self.holding(),
            rate: 1e9 / (self.speed.pace * kind.work()),
            reckoned: speed * 1e9 / (self.unit * kind.work()),
            latency: Duration::from_nanos(self.speed.latency as u64),
            doubtful: self.late > 0,
            parted: self.parted,
            counts: self.counts,
            before: Counts::default(),
        }
    }

    /// How many asks it holds.
    pub(super) fn holding(&self) -> usize {
        self.flights.len()
    }

    /// True while it is given asks.
    fn is_asked(&self, now: Instant) -> bool {
        self.parted.is_none() && self.late == 0 && self.ready.holds > 0 && self.rests.is_none_or(|until| until <= now)
    }

    /// True if it takes another ask of this kind.
    pub(crate) fn takes(&self, kind: Kind, now: Instant) -> bool {
        self.is_asked(now) && self.flights.len() < self.most() && kind.memory() <= self.memory()
    }

    /// How many asks it is given at most. A worker whose pace was not measured yet may be as slow as it likes, and the
    /// asks that it holds wait for it until they are late.
    fn most(&self) -> usize {
        let holds = self.ready.holds as usize;
        match (self.is_on_trial(), self.speed.is_measured) {
            (true, _) => holds.min(ON_TRIAL.0),
            (false, false) => holds.min(UNMEASURED),
            (false, true) => holds,
        }
    }

    /// Most memory of one hash that it computes, in KiB.
    pub(super) fn memory(&self) -> u64 {
        self.ready.memory
    }

    /// True while callers are admitted for its capacity.
    pub(super) fn may_count(&self, now: Instant) -> bool {
        self.is_asked(now) && !self.is_on_trial()
    }

    /// The same for jobs of this kind: a worker that is never asked for one shows nothing of its speed.
    pub(super) fn is_reckoned_with(&self, kind: Kind, now: Instant) -> bool {
        self.may_count(now) && kind.memory() <= self.memory()
    }

    /// True while it is asked little, and no caller is admitted for what it says of itself.
    pub(super) fn is_on_trial(&self) -> bool {
        self.to_prove > 0
    }

    /// Nanoseconds after which it would have answered one more of this kind.
    pub(crate) fn finish(&self, kind: Kind) -> f64 {
        self.speed.takes(self.load + kind.work())
    }

    /// When it is done with what it holds, and how much thread time it then saves here per nanosecond, if a unit of
    /// work takes a thread here `unit`. A worker whose answers take long, whatever its pace, is no help to a job that
    /// has less time.
    ///
    /// Until its pace was measured, its threads count as no faster than those here, whatever it says; and it never
    /// holds more than [`Remote::most`] asks, so in the time that an answer takes it does no more than these.
    pub(super) fn flow(&self, kind: Kind, unit: f64) -> (f64, f64) {
        let most = if self.speed.is_measured { f64::INFINITY } else { f64::from(self.ready.threads.max(1)) };
        let speed = (unit / self.speed.pace).min(most);
        let carried = self.most() as f64 * kind.work() * unit / self.speed.takes(kind.work());
        (self.speed.base + self.load * unit / speed, speed.min(carried))
    }

    /// Sends a job, and now and then a canary: returns its number and pre-hash, whose tag is to be computed here.
    pub(crate) fn send(&mut self, job: Job, now: Instant) -> Option<(u64, H0)> {
        let Input::Argon2(h0) = &job.input else { return None };
        let (h0, kind) = (h0.clone(), job.kind);
        let canary = self.chance.canary().filter(|_| self.tests.len() < self.most_canaries() + self.suspects());
        let mut test = None;
        if canary == Some(true) {
            test = Some(self.test(kind, now));
        }
        self.fly(Cargo::Job(job), (kind, h0), now);
        if canary == Some(false) {
            test = Some(self.test(kind, now));
        }
        self.bell.notify_one();
        test
    }

    fn most_canaries(&self) -> usize {
        CANARIES.max(self.ready.holds as usize / CANARIES)
    }

    fn test(&mut self, kind: Kind, now: Instant) -> (u64, H0) {
        let h0 = self.chance.h0();
        let id = self.fly(Cargo::Canary, (kind, h0.clone()), now);
        self.tests.insert(id, Test::of(Lie::Canary, None));
        (id, h0)
    }

    /// Whether this one of many refusals is checked. [`Remote::suspect`] alone may use the rest of the room.
    pub(crate) fn is_doubted(&mut self) -> bool {
        self.suspects() < SUSPECTS / 2 && self.chance.looks()
    }

    fn suspects(&self) -> usize {
        self.tests.keys().filter(|id| **id >= SUSPECT).count()
    }

    /// Notes a tag that did not match what is stored and that no caller can wait to have computed again; returns the
    /// number under which to compute it all the same.
    pub(crate) fn suspect(&mut self, tag: Tag) -> Option<u64> {
        if self.suspects() >= SUSPECTS {
            return None;
        }
        let id = SUSPECT + self.counts.refusals;
        self.tests.insert(id, Test::of(Lie::Refusal, Some(tag)));
        Some(id)
    }

    fn fly(&mut self, cargo: Cargo, (kind, h0): (Kind, H0), now: Instant) -> u64 {
        let id = self.asked;
        self.asked += 1;
        self.counts.asked += 1;
        if let Kind::Argon2(Params { cost, tag_bytes, .. }) = kind {
            self.out.push(Ask { id, cost, tag_bytes: tag_bytes as u8, h0 });
        }
        let expected = self.finish(kind);
        self.load += kind.work();
        self.flights.insert(id, Flight { cargo, kind, sent: now, expected, load: self.load });
        id
    }

    /// Takes up to `most` asks to be sent.
    pub(crate) fn outgoing(&mut self, most: usize) -> Vec<Ask> {
        if self.out.len() <= most {
            return std::mem::take(&mut self.out);
        }
        let rest = self.out.split_off(most);
        std::mem::replace(&mut self.out, rest)
    }

    /// Sets its credits to another number.
    pub(crate) fn holds(&mut self, holds: u32) {
        self.ready.holds = holds.min(MOST_HELD);
    }

    /// Takes in an answer.
    pub(crate) fn answer(&mut self, id: u64, tag: Option<Tag>, now: Instant) -> Settled {
        let Some(flight) = self.flights.remove(&id) else {
            let known = self.answered.contains(&id);
            *(if known { &mut self.counts.duplicate } else { &mut self.counts.unknown }) += 1;
            return Settled::Nothing;
        };
        self.answered.push_back(id);
        if self.answered.len() > REMEMBERED {
            self.answered.pop_front();
        }
        self.load = if self.flights.is_empty() { 0.0 } else { self.load - flight.kind.work() };
        self.late -= usize::from(matches!(flight.cargo, Cargo::Lent(_)));
        let wanted = matches!(flight.kind, Kind::Argon2(params) if tag.as_ref().is_none_or(|tag| tag.len() == params.tag_bytes as usize));
        if !wanted {
            self.lied(Lie::Length);
        }
        match (flight.cargo, tag.filter(|_| wanted)) {
            (Cargo::Job(job), None) => {
                self.refuse_work(now);
                Settled::Failed(job)
            }
            (Cargo::Lent(_), None) => {
                self.refuse_work(now);
                Settled::Nothing
            }
            (Cargo::Canary, theirs) => {
                // As with a job: otherwise a worker would find out which asks are tests, and compute none of them.
                match theirs {
                    Some(_) => self.learn((flight.kind, flight.sent), (flight.load, flight.expected), now),
                    None => self.refuse_work(now),
                }
                self.judge(id, |test| test.theirs = theirs);
                Settled::Nothing
            }
            (Cargo::Job(job), Some(tag)) => {
                self.learn((flight.kind, flight.sent), (flight.load, flight.expected), now);
                self.counts.answered += 1;
                Settled::Done(job, tag, flight.sent)
            }
            (Cargo::Lent(place), Some(tag)) => {
                let (key, id) = *place;
                Settled::Overtaken((key, id), tag, flight.sent)
            }
        }
    }

    fn refuse_work(&mut self, now: Instant) {
        self.counts.failed += 1;
        self.rests = Some(now + REST);
        self.to_prove = ON_TRIAL.1;
    }

    /// Takes in the tag of a test that was computed here; `None`: it could not be computed.
    pub(crate) fn known(&mut self, id: u64, ours: Option<Tag>) {
        match ours {
            Some(ours) => self.judge(id, |test| test.ours = Some(ours)),
            None => drop(self.tests.remove(&id)),
        }
    }

    fn judge(&mut self, id: u64, fill: impl FnOnce(&mut Test)) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        fill(test);
        let (verdict, shows) = (test.verdict(), test.shows);
        // A tag that it did not compute is no lie.
        let is_open = test.theirs.is_some() || self.flights.contains_key(&id);
        if verdict.is_none() && is_open {
            return;
        }
        self.tests.remove(&id);
        match verdict {
            Some(true) => self.counts.canaries += u64::from(shows == Lie::Canary),
            Some(false) => self.lied(shows),
            None => {}
        }
    }

    /// It was wrong, and is asked nothing more.
    pub(crate) fn lied(&mut self, lie: Lie) {
        if self.counts.lies == 0 {
            self.lie = Some(lie);
        }
        self.counts.lies += 1;
        self.part(Parted::Lied(lie));
    }

    /// It is asked nothing more.
    pub(crate) fn part(&mut self, why: Parted) {
        self.parted.get_or_insert(why);
        self.bell.notify_one();
    }

    /// Takes in how long an answer took.
    fn learn(&mut self, (kind, sent): (Kind, Instant), of: (f64, f64), now: Instant) {
        self.to_prove = self.to_prove.saturating_sub(1);
        self.speed.took(now.saturating_duration_since(sent), of, self.counts.answered == 0);
        // Busy as long as it holds at least half of what it may. On trial that is next to nothing, and no sign of pace.
        let (most, held) = (self.most(), self.flights.len());
        let is_busy = !self.is_on_trial() && held >= most / 2;
        self.speed.worked(is_busy.then_some(kind.work()), most, now);
    }

    /// Returns the late jobs, which are also computed here. Afterwards `parted` tells whether the worker is gone.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Job> {
        let mut late = Vec::new();
        self.speed.rests(self.flights.is_empty(), now);
        for flight in self.flights.values_mut() {
            let gone = now.saturating_duration_since(flight.sent);
            let patience = patience(flight.expected);
            if gone <= patience {
                continue;
            }
            if gone > GONE.max(patience * 4) {
                self.parted.get_or_insert(Parted::Silent);
            }
            if let Cargo::Job(job) = &flight.cargo {
                let place = Box::new((job.key.clone(), job.id));
                let Cargo::Job(job) = std::mem::replace(&mut flight.cargo, Cargo::Lent(place)) else { continue };
                self.speed.is_late(flight.expected);
                self.counts.hedged += u64::from(job.is_wanted());
                self.late += 1;
                late.push(job);
            }
        }
        if self.parted.is_some() {
            self.bell.notify_one();
        }
        late
    }

    /// True if it is to be asked nothing more and still holds something.
    pub(crate) fn is_to_leave(&self) -> bool {
        self.parted.is_some() && !self.flights.is_empty()
    }

    /// Whether it was sent any ask, which it may have answered.
    pub(super) fn was_asked(&self) -> bool {
        self.asked > 0
    }

    /// Whether it left asks undone, or still had to prove itself when it left.
    pub(super) fn owes(&self) -> bool {
        self.owes
    }

    /// Has it prove itself before its word counts.
    pub(super) fn has_to_prove_itself(&mut self) {
        self.to_prove = ON_TRIAL.1;
    }

    /// Has it asked nothing until then.
    pub(super) fn rests(&mut self, until: Instant) {
        self.rests = Some(until);
    }

    /// The first lie that it was caught in; told only once.
    pub(super) fn take_lie(&mut self) -> Option<Lie> {
        self.lie.take()
    }

    /// Takes back the jobs that it held, for others.
    pub(crate) fn abandon(&mut self) -> Vec<Job> {
        self.owes |= !self.flights.is_empty() || self.is_on_trial();
        self.load = 0.0;
        self.late = 0;
        self.out.clear();
        let flights = std::mem::take(&mut self.flights).into_values();
        let mut jobs: Vec<Job> = flights
            .filter_map(|flight| match flight.cargo {
                Cargo::Job(job) => Some(job),
                Cargo::Lent(_) | Cargo::Canary => None,
            })
            .collect();
        jobs.sort_by_key(|job| job.id);
        jobs
    }
}
