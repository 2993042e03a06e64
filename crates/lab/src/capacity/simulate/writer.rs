//! The simulation of the one writer: it takes what waits, and more gathers while the disk is busy.

use super::{Event, Task, World};
use crate::capacity::stations::PACE;
use std::collections::VecDeque;
use store::sqlite::ENOUGH;

/// The writer's state.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) waiting: VecDeque<usize>,
    /// Groups on their way to the disk, oldest first.
    pub(super) writing: VecDeque<Vec<usize>>,
    /// When the last group was begun.
    pub(super) begun: f64,
    pub(super) last: usize,
    pub(super) naps: bool,
}

impl World<'_> {
    /// The writer takes what waits, if it is free.
    pub(super) fn gather(&mut self) {
        let waiting = self.desk.waiting.len();
        if waiting == 0 || self.desk.naps || self.desk.writing.len() >= self.stations.writer.at_once {
            return;
        }
        // If several visits write, commits begin a little apart; a lone one is never kept waiting.
        let rest = self.desk.begun + PACE - self.now;
        let alone = self.desk.last <= 1 && waiting <= 1;
        if !alone && waiting < ENOUGH && rest > 0.0 {
            self.desk.naps = true;
            return self.after(rest, Event::Gather);
        }
        let group: Vec<usize> = self.desk.waiting.drain(..waiting.min(self.stations.writer.group)).collect();
        self.desk.last = group.len();
        self.desk.begun = self.now;
        let writer = &self.stations.writer;
        let seconds = writer.commit + writer.batch * group.len() as f64;
        self.commits = (self.commits.0 + 1, self.commits.1 + group.len());
        self.desk.writing.push_back(group);
        self.wake(Task::Write, (seconds, 0.0, 0.0));
    }

    pub(super) fn synced(&mut self) {
        let group = self.desk.writing.pop_front().unwrap_or_default();
        group.into_iter().for_each(|visit| self.proceed(visit));
        self.gather();
    }
}
