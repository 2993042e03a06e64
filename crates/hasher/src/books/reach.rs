//! What can be done when: here, on workers, or on both.
//!
//! A job that may be computed anywhere goes to whoever is expected to finish it first: the threads here, after all that
//! waits, or one of the workers. So the time until a newcomer begins follows from what all of them do together.

use std::time::Instant;

use super::Books;
use crate::{
    argon2::H0,
    fair::FairKey,
    job::{Job, Kind, Reach, somebodys},
    remote::{
        Parted,
        worker::{Remote, Settled},
    },
};

/// From when on somebody has time, and how much thread time that takes away in a nanosecond.
type Flow = (f64, f64);

impl Books {
    /// Nanoseconds after which a newcomer would begin if all that waits went before it: until what waits has filled the
    /// threads and the workers up to then.
    pub(crate) fn wait(&self, (kind, reach): (Kind, Reach), now: Instant) -> u64 {
        if self.has_room(kind) {
            return 0;
        }
        let here = self.flows_here(kind, now);
        let all = self.waiting_cost() as f64;
        let there = self.flows_there(kind, now);
        if there.is_empty() {
            return level(all, here);
        }
        let own = self.waiting_here(now) as f64;
        let both = level(all, here.iter().chain(&there).copied().collect());
        match self.within(kind, reach, now) {
            Reach::Here => both.max(level(own, here)),
            Reach::Anywhere => both.min(level(all - own, there)),
        }
    }

    /// By how many nanoseconds of thread time too much waits for a newcomer to begin within `most`; zero when it would.
    pub(crate) fn excess(&self, of: (Kind, Reach), most: u64, now: Instant) -> u64 {
        self.excess_beside(0, of, most, now)
    }

    /// The same as if so many more of its kind waited.
    pub(crate) fn excess_beside(&self, coming: usize, (kind, reach): (Kind, Reach), most: u64, now: Instant) -> u64 {
        if self.has_room_beside(coming, kind) {
            return 0;
        }
        let more = self.share(kind).saturating_mul(coming as u64);
        let left = self.busy(kind, now).into_iter().map(|busy| most.saturating_sub(busy));
        let here = left.fold(0, u64::saturating_add);
        let (waiting, flows) = (self.waiting_cost().saturating_add(more), self.flows_there(kind, now));
        let there = flows.iter().map(|(from, speed)| (most as f64 - from).max(0.0) * speed).sum::<f64>() as u64;
        let all = (waiting + 1).saturating_sub(here.saturating_add(there));
        if there == 0 {
            return all;
        }
        let reach = self.within(kind, reach, now);
        let own = self.waiting_here(now).saturating_add(if reach == Reach::Here { more } else { 0 });
        match reach {
            Reach::Here => all.max((own + 1).saturating_sub(here)),
            Reach::Anywhere => all.min((waiting - own.min(waiting) + 1).saturating_sub(there)),
        }
    }

    /// Gives workers what they are expected to finish before the threads here would.
    pub(crate) fn hand_out(&mut self, now: Instant) {
        if self.desk.remotes.is_empty() {
            return;
        }
        while let Some(kind) = self.queue.first_anywhere(|kind| self.desk.first(kind, None, now).is_some()) {
            let Some((worker, then)) = self.desk.first(kind, None, now) else { break };
            if then >= self.done_here(kind, now) {
                break;
            }
            let Some(job) = self.queue.take_anywhere(kind) else { break };
            self.send(worker, job, now);
        }
    }

    fn send(&mut self, worker: u64, job: Job, now: Instant) {
        let kind = job.kind;
        let Some((id, h0)) = self.desk.get(worker).and_then(|remote| remote.send(job, now)) else { return };
        self.test((worker, id), (kind, h0), FairKey::ours());
    }

    /// Has something computed here to see whether a worker's answer was right.
    pub(crate) fn test(&mut self, of: (u64, u64), (kind, h0): (Kind, H0), key: FairKey) {
        let cost = self.share(kind);
        self.queue.push(cost, Job::canary(of, (kind, h0), key));
    }

    /// Nanoseconds until all that waits would be done by the threads here; no sooner than one job takes.
    fn done_here(&self, kind: Kind, now: Instant) -> f64 {
        let flows = self.flows_here(kind, now);
        let soonest = flows.iter().map(|(from, _)| *from).fold(f64::INFINITY, f64::min);
        let one = soonest + self.costs.batch(kind, 1) as f64;
        (level(self.waiting_cost() as f64, flows) as f64).max(one)
    }

    /// What came of a worker's answer: the job and its tag, if somebody waits for it.
    pub(crate) fn settled(
        &mut self,
        worker: u64,
        settled: Settled,
        now: Instant,
    ) -> Option<(Job, crate::job::Tag, Instant)> {
        match settled {
            Settled::Nothing => None,
            Settled::Done(job, tag, sent) => Some((job, tag, sent)),
            Settled::Overtaken((key, id), tag, sent) => {
                let job = self.queue.remove(&key, id);
                if let Some(remote) = self.desk.get(worker) {
                    let count = if job.is_some() { &mut remote.counts.answered } else { &mut remote.counts.late };
                    *count += 1;
                }
                job.map(|job| (job, tag, sent))
            }
            Settled::Failed(job) => {
                self.place_again(job, Some(worker), now);
                None
            }
        }
    }

    /// A job that a worker did not do: another one gets it, once, if it is expected to be done before the threads here would be;
    /// then it is done here, before what came later. For somebody who went away meanwhile nobody does it.
    pub(crate) fn place_again(&mut self, mut job: Job, but: Option<u64>, now: Instant) {
        if !job.is_wanted() {
            self.withdrawn += 1;
            return;
        }
        let again = !std::mem::replace(&mut job.failed, true);
        let sooner = |(_, then): &(u64, f64)| *then < self.done_here(job.kind, now);
        match self.desk.first(job.kind, but, now).filter(|other| again && sooner(other)) {
            Some((other, _)) => self.send(other, job, now),
            None => {
                job.reach = Reach::Here;
                let cost = self.share(job.kind);
                self.queue.put_back(cost, job);
            }
        }
    }

    /// Those who would have to wait longer than `most`, now that there is less to work with.
    pub(crate) fn shed(&mut self, most: u64, now: Instant) -> Vec<Job> {
        let Some(kind) = self.queue.kinds().map(|(kind, _)| kind).max_by_key(|kind| self.queue.alike(*kind)) else {
            return Vec::new();
        };
        let excess = self.excess((kind, Reach::Anywhere), most, now);
        let shed = if excess == 0 { Vec::new() } else { self.queue.shed(self.booked(excess)) };
        self.refused += somebodys(&shed);
        shed
    }

    /// Asks nothing more of anybody: what the workers held.
    pub(crate) fn dismiss_all(&mut self) -> Vec<Job> {
        let part = |remote: &mut Remote| {
            remote.part(Parted::Stopped);
            remote.abandon()
        };
        self.desk.remotes.values_mut().flat_map(part).collect()
    }

    /// Nanoseconds of a thread here for a unit of work of this kind, side by side with others.
    pub(crate) fn unit(&self, kind: Kind) -> f64 {
        self.share(kind) as f64 / kind.work()
    }

    /// What only this machine computes of what waits: because it is said so, or because no worker takes it.
    fn waiting_here(&self, now: Instant) -> u64 {
        let taken = self.taken_there(now);
        let cost = |(kind, count)| self.taken(kind, self.costs.queue(kind, count, self.fit(kind)));
        let said = self.queue.kinds_here().filter(|(kind, _)| taken(*kind));
        let untaken = self.queue.kinds().filter(|(kind, _)| !taken(*kind));
        said.chain(untaken).map(cost).fold(0, u64::saturating_add)
    }

    /// Which kinds workers take that may be reckoned with. They know Argon2 only.
    fn taken_there(&self, now: Instant) -> impl Fn(Kind) -> bool + use<> {
        let most = self.desk.most_memory(now);
        move |kind| matches!(kind, Kind::Argon2(_)) && most.is_some_and(|most| kind.memory() <= most)
    }

    /// What no worker takes is computed here, wherever it might be.
    fn within(&self, kind: Kind, reach: Reach, now: Instant) -> Reach {
        if self.taken_there(now)(kind) { reach } else { Reach::Here }
    }

    fn flows_here(&self, kind: Kind, now: Instant) -> Vec<Flow> {
        self.busy(kind, now).into_iter().map(|busy| (busy as f64, 1.0)).collect()
    }

    /// For a kind that workers do not take it matters what they do of another one.
    fn flows_there(&self, kind: Kind, now: Instant) -> Vec<Flow> {
        if self.desk.remotes.is_empty() {
            return Vec::new();
        }
        let taken = self.taken_there(now);
        let of = std::iter::once(kind).chain(self.queue.kinds().map(|(kind, _)| kind)).find(|kind| taken(*kind));
        of.map_or_else(Vec::new, |of| self.desk.flows(of, self.unit(of), now))
    }
}

/// When so much thread time has been taken away by those who have time from then on: what is done with the first of them
/// alone is no sooner than with all that have time by then.
fn level(waiting: f64, mut flows: Vec<Flow>) -> u64 {
    flows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut sum, mut speed) = (waiting, 0.0);
    let done = flows.into_iter().map(|(from, takes)| {
        sum += from * takes;
        speed += takes;
        sum / speed
    });
    done.fold(f64::INFINITY, f64::min) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_fills_whoever_has_time_first() {
        assert_eq!(level(10.0, vec![(0.0, 1.0)]), 10);
        assert_eq!(level(10.0, vec![(0.0, 1.0), (4.0, 1.0)]), 7);
        assert_eq!(level(10.0, vec![(4.0, 1.0), (0.0, 1.0), (100.0, 8.0)]), 7);
        assert_eq!(level(10.0, vec![(0.0, 1.0), (1.0, 3.0)]), 3);
        assert_eq!(level(0.0, vec![(3.0, 1.0), (5.0, 1.0)]), 3);
    }
}
