//! The simulation of commits: the one writer of a file takes what waits, and more gathers while the disk is busy; to a
//! database server commits are sent side by side.

use super::{Event, Task, World};
use std::collections::{BTreeMap, VecDeque};

/// The writer's state.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) waiting: VecDeque<usize>,
    /// Groups on their way to the disk, by the number of their commit.
    pub(super) writing: BTreeMap<usize, Vec<usize>>,
    /// When the last group was begun.
    pub(super) begun: f64,
    pub(super) last: usize,
    pub(super) naps: bool,
}

impl World<'_> {
    /// Commits begin with what waits, as many as may run side by side.
    pub(super) fn gather(&mut self) {
        while self.is_time() {
            self.begin();
        }
    }

    /// Returns whether a commit begins now. If only the pace is against it, the desk looks again when that allows it.
    fn is_time(&mut self) -> bool {
        let (waiting, writer) = (self.desk.waiting.len(), &self.stations.writer);
        if waiting == 0 || self.desk.naps || self.desk.writing.len() >= writer.at_once {
            return false;
        }
        // If several visits write, commits begin a little apart; a lone one is never kept waiting.
        let rest = self.desk.begun + writer.pace - self.now;
        let alone = self.desk.last <= 1 && waiting <= 1;
        if alone || waiting >= writer.enough || rest <= 0.0 {
            return true;
        }
        self.desk.naps = true;
        self.after(rest, Event::Gather);
        false
    }

    fn begin(&mut self) {
        let writer = &self.stations.writer;
        let size = self.desk.waiting.len().min(writer.group);
        let group: Vec<usize> = self.desk.waiting.drain(..size).collect();
        let seconds = writer.commit + writer.batch * size as f64;
        self.desk.last = size;
        self.desk.begun = self.now;
        self.commits = (self.commits.0 + 1, self.commits.1 + size);
        let number = self.commits.0;
        self.desk.writing.insert(number, group);
        self.wake(Task::Write(number), (seconds, 0.0, 0.0));
    }

    pub(super) fn synced(&mut self, number: usize) {
        let group = self.desk.writing.remove(&number).unwrap_or_default();
        group.into_iter().for_each(|visit| self.proceed(visit));
        self.gather();
    }
}
