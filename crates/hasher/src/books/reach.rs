//! When waiting jobs can be done: here, on workers, or on both.
//!
//! A job that may be computed anywhere goes where it is expected to be finished first: to the threads here, after all
//! that waits, or to one of the workers. So what all of them do together decides when a newcomer begins.

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

/// From when on a thread or worker has time, and how much thread time it then works off per nanosecond.
type Flow = (f64, f64);

impl Books {
    /// Nanoseconds after which a newcomer would begin if all waiting jobs went before it: until these have filled the
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

    /// By how many nanoseconds of thread time too much waits for a newcomer to begin within `most`; zero if it would.
    pub(crate) fn excess(&self, of: (Kind, Reach), most: u64, now: Instant) -> u64 {
        self.excess_beside(0, of, most, now)
    }

    /// The same as if `coming` more jobs of its kind waited.
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

    /// Gives workers the jobs that they are expected to finish before the threads here would.
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

    /// Has a tag computed here to see whether a worker's answer was right.
    pub(crate) fn test(&mut self, of: (u64, u64), (kind, h0): (Kind, H0), key: FairKey) {
        let cost = self.share(kind);
        self.queue.push(cost, Job::canary(of, (kind, h0), key));
    }

    /// Nanoseconds until the threads here would have done all that waits; no sooner than one job takes.
    fn done_here(&self, kind: Kind, now: Instant) -> f64 {
        let flows = self.flows_here(kind, now);
        let soonest = flows.iter().map(|(from, _)| *from).fold(f64::INFINITY, f64::min);
        let one = soonest + self.costs.batch(kind, 1) as f64;
        (level(self.waiting_cost() as f64, flows) as f64).max(one)
    }

    /// Handles a worker's answer. Returns the job, its tag and when it was sent, if somebody waits for it.
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

    /// Places a job that a worker did not do: another worker gets it, once, if it is expected to finish before the
    /// threads here would; otherwise it is done here, before later ones. If its caller has gone, nobody does it.
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

    /// Takes out the jobs that would have to wait longer than `most`, now that there is less to work with.
    pub(crate) fn shed(&mut self, most: u64, now: Instant) -> Vec<Job> {
        let Some(kind) = self.queue.kinds().map(|(kind, _)| kind).max_by_key(|kind| self.queue.alike(*kind)) else {
            return Vec::new();
        };
        let excess = self.excess((kind, Reach::Anywhere), most, now);
        let shed = if excess == 0 { Vec::new() } else { self.queue.shed(self.booked(excess)) };
        self.refused += somebodys(&shed);
        shed
    }

    /// Parts with all workers, and returns the jobs that they held.
    pub(crate) fn dismiss_all(&mut self) -> Vec<Job> {
        let part = |remote: &mut Remote| {
            remote.part(Parted::Stopped);
            remote.abandon()
        };
        self.desk.remotes.values_mut().flat_map(part).collect()
    }

    /// Nanoseconds that a thread here takes for a unit of work of this kind, side by side with others.
    pub(crate) fn unit(&self, kind: Kind) -> f64 {
        self.share(kind) as f64 / kind.work()
    }

    /// The cost of the waiting jobs that only this machine computes: they must be, or no worker takes them.
    fn waiting_here(&self, now: Instant) -> u64 {
        let taken = self.taken_there(now);
        let cost = |(kind, count)| self.taken(kind, self.costs.queue(kind, count, self.fit(kind)));
        let said = self.queue.kinds_here().filter(|(kind, _)| taken(*kind));
        let untaken = self.queue.kinds().filter(|(kind, _)| !taken(*kind));
        said.chain(untaken).map(cost).fold(0, u64::saturating_add)
    }

    /// Which kinds are taken by workers that are reckoned with. Workers know Argon2 only.
    fn taken_there(&self, now: Instant) -> impl Fn(Kind) -> bool + use<> {
        let most = self.desk.most_memory(now);
        move |kind| matches!(kind, Kind::Argon2(_)) && most.is_some_and(|most| kind.memory() <= most)
    }

    /// A job that no worker takes is computed here, wherever else it might be.
    fn within(&self, kind: Kind, reach: Reach, now: Instant) -> Reach {
        if self.taken_there(now)(kind) { reach } else { Reach::Here }
    }

    fn flows_here(&self, kind: Kind, now: Instant) -> Vec<Flow> {
        self.busy(kind, now).into_iter().map(|busy| (busy as f64, 1.0)).collect()
    }

    /// For a kind that workers do not take, what they do of another kind counts.
    fn flows_there(&self, kind: Kind, now: Instant) -> Vec<Flow> {
        if self.desk.remotes.is_empty() {
            return Vec::new();
        }
        let taken = self.taken_there(now);
        let of = std::iter::once(kind).chain(self.queue.kinds().map(|(kind, _)| kind)).find(|kind| taken(*kind));
        of.map_or_else(Vec::new, |of| self.desk.flows(of, self.unit(of), now))
    }
}

/// When the flows, each from when it has time, have worked off this much thread time: the least over all prefixes, as
/// with fewer flows than have time by then it is done no sooner.
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
