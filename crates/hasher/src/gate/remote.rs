//! The gate as workers see it.

use std::{sync::Arc, time::Duration};

use zeroize::Zeroizing;

use super::{Gate, nanos};
use crate::{
    argon2::H0,
    books::Books,
    fair::FairKey,
    job::{Computed, Kind, Reach, Tag},
    remote::{
        Chance, Introduction, Lie, Link, Parted, WorkerState,
        frame::{Answer, Ask, Ready},
        worker::Remote,
    },
};

impl Gate {
    /// A worker has come; `policy` is the kind of new hashes.
    pub(crate) fn attach(
        self: &Arc<Self>,
        (who, ready): (Introduction, Ready),
        seed: Zeroizing<[u8; 32]>,
        policy: Kind,
    ) -> Link {
        let now = (self.clock)();
        let mut books = self.books();
        let unit = books.unit(policy);
        let remote = Remote::new(who, ready, (policy, unit), (Chance::new(seed), now));
        let bell = remote.bell();
        let number = books.desk.add(remote);
        if !books.open
            && let Some(remote) = books.desk.get(number)
        {
            remote.part(Parted::Stopped);
        }
        books.hand_out(now);
        Link { gate: self.clone(), number, bell }
    }

    /// A worker has gone.
    pub(crate) fn detach(&self, number: u64) {
        self.lessen(|books| {
            let Some(mut remote) = books.desk.remotes.remove(&number) else { return false };
            let now = (self.clock)();
            for job in remote.abandon() {
                books.place_again(job, None, now);
            }
            books.desk.leave(number, remote, now);
            true
        });
    }

    /// The workers that were found to be wrong since the last call, whether they are still here or not.
    pub(crate) fn liars(&self) -> Vec<(Introduction, Lie)> {
        self.books().desk.liars((self.clock)())
    }

    /// The asks to be sent to a worker.
    pub(crate) fn outgoing(&self, number: u64, most: usize) -> Result<Vec<Ask>, Parted> {
        let mut books = self.books();
        let remote = books.desk.get(number).ok_or(Parted::Dismissed)?;
        match remote.parted {
            Some(parted) => Err(parted),
            None => Ok(remote.outgoing(most)),
        }
    }

    /// Takes a worker's answers.
    pub(crate) fn answers(&self, number: u64, answers: Vec<Answer>) {
        let now = (self.clock)();
        let mut books = self.books();
        let mut done = Vec::new();
        let less = answers.iter().any(|answer| answer.tag.is_none());
        for Answer { id, tag } in answers {
            let Some(settled) = books.desk.get(number).map(|remote| remote.answer(id, tag, now)) else { break };
            done.extend(books.settled(number, settled, now));
        }
        books.done += done.len() as u64;
        books.remote += done.len() as u64;
        books.hand_out(now);
        self.wake(&mut books);
        drop(books);
        for (job, tag, begun) in done {
            self.deliver(job.reply, Ok(Computed { tag, by: Some(number), begun }));
        }
        self.lessen(|_| less);
        self.part_with_liars();
    }

    /// A worker has changed the number of its credits.
    pub(crate) fn holds(&self, number: u64, holds: u32) {
        self.lessen(|books| {
            if let Some(remote) = books.desk.get(number) {
                remote.holds(holds);
            }
            true
        });
    }

    /// The tag of a canary was computed here.
    pub(super) fn canary(&self, number: u64, (id, tag): (u64, Option<Tag>)) {
        if let Some(remote) = self.books().desk.heard(number) {
            remote.known(id, tag);
        }
        self.part_with_liars();
    }

    /// A worker's tag did not match what is stored; if it was computed again here, `wrong` tells that it is a lie.
    pub(crate) fn refused(&self, number: u64, wrong: bool) {
        if let Some(remote) = self.books().desk.heard(number) {
            remote.counts.refusals += 1;
            if wrong {
                remote.lied(Lie::Refusal);
            }
        }
        self.part_with_liars();
    }

    /// The same, where there is no time to compute the tag again while the caller waits. It is computed all the same,
    /// as canaries are, though not every one, and in the caller's turns: a worker that lies while there is much to do
    /// is found out as well.
    pub(crate) fn suspect(&self, number: u64, key: &FairKey, of: (Kind, H0), tag: Tag) {
        let mut books = self.books();
        let Some(remote) = books.desk.heard(number) else { return };
        remote.counts.refusals += 1;
        let suspect = remote.suspect(tag);
        let Some(id) = suspect.filter(|_| books.open) else { return };
        books.test((number, id), of, key.clone());
        self.wake(&mut books);
    }

    /// Suspects some of the tags for a caller that is slowed down anyway: a worker that lies to one account alone is
    /// found out, and a flood of guesses is not computed twice.
    pub(crate) fn doubt(&self, number: u64, key: &FairKey, of: (Kind, H0), tag: Tag) {
        let is_doubted = self.books().desk.heard(number).is_some_and(Remote::is_doubted);
        if is_doubted { self.suspect(number, key, of, tag) } else { self.refused(number, false) }
    }

    /// Asks nothing more of the workers that `which` selects, and returns their number.
    pub(crate) fn dismiss(&self, which: impl Fn(&Introduction) -> bool) -> usize {
        let here =
            self.books().desk.remotes.iter().map(|(number, remote)| (*number, remote.who.clone())).collect::<Vec<_>>();
        // The caller's code may ask this pool about its workers: the books are closed while it runs.
        let chosen: Vec<u64> = here.into_iter().filter(|(_, who)| which(who)).map(|(number, _)| number).collect();
        let mut count = 0;
        self.lessen(|books| {
            for number in &chosen {
                if let Some(remote) = books.desk.remotes.get_mut(number) {
                    remote.part(Parted::Dismissed);
                    count += 1;
                }
            }
            count > 0
        });
        self.part_with_liars();
        count
    }

    /// Handles late jobs.
    pub(crate) fn look_after_workers(&self) {
        self.lessen(|books| {
            let now = (self.clock)();
            books.looked = now;
            let late: Vec<_> = books.desk.remotes.values_mut().flat_map(|remote| remote.overdue(now)).collect();
            let some = !late.is_empty();
            for mut job in late {
                if !job.is_wanted() {
                    books.withdrawn += 1;
                    continue;
                }
                job.reach = Reach::Here;
                let cost = books.share(job.kind);
                books.queue.put_back(cost, job);
            }
            some
        });
        self.part_with_liars();
    }

    /// Gives to others what a liar, or a worker that is to go, still holds.
    fn part_with_liars(&self) {
        if !self.books().desk.remotes.values().any(Remote::is_to_leave) {
            return;
        }
        self.lessen(|books| {
            let now = (self.clock)();
            let leaving = books.desk.remotes.values_mut().filter(|remote| remote.is_to_leave());
            let jobs: Vec<_> = leaving.flat_map(Remote::abandon).collect();
            for job in jobs {
                books.place_again(job, None, now);
            }
            true
        });
    }

    /// Makes a change that may reduce capacity; then the jobs that would have to wait too long are told to come back.
    fn lessen(&self, change: impl FnOnce(&mut Books) -> bool) {
        let now = (self.clock)();
        let mut books = self.books();
        if !change(&mut books) {
            return;
        }
        books.hand_out(now);
        let shed = books.shed(nanos(self.limits.max_wait), now);
        let retry_after = shed.first().map_or(Duration::ZERO, |job| self.return_after(&books, (job.kind, job.reach)));
        // As many threads as there is work for may sleep.
        self.wake_all(&mut books);
        drop(books);
        self.turn_away(shed, retry_after);
    }

    /// The workers that are here.
    pub(crate) fn workers(&self, policy: Kind) -> Vec<WorkerState> {
        let now = (self.clock)();
        let books = self.books();
        let of =
            |remote: &Remote| WorkerState { before: books.desk.past(&remote.who.key), ..remote.state(policy, now) };
        books.desk.remotes.values().map(of).collect()
    }

    /// Whether there is any worker to ask.
    pub(crate) fn has_workers(&self) -> bool {
        !self.books().desk.remotes.is_empty()
    }

    /// Hashes of this kind that the threads here compute per second under load.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        let books = self.books();
        self.limits.threads as f64 * 1e9 / books.share(kind) as f64
    }
}
