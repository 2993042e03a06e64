//! The one retry loop: decide, commit and, if the facts had changed meanwhile, decide again.

use crate::stopwatch::{Stage, lap, timed};
use crate::tally::Batch;
use crate::{App, Fault, asked, entropy};
use rules::ending::Record;
use rules::events::{Event, Kind};
use rules::{Change, Decision, Fresh, Time};
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use store::engine::{CommitError, Engine, Write};
use store::tables::{Questions, ask, changes};
use store::turn;

/// How often a decision is tried. Ten parallel rivals settle within ten tries, because one of them wins each.
const TRIES: usize = 12;

/// Facts that were read with others, before it was known what for. The first try decides with them; a retry asks again.
/// What must still hold at the commit is guarded there, however old the facts are.
pub(crate) struct Ahead<F>(Mutex<Option<F>>);

impl<F> Ahead<F> {
    pub(crate) fn of(facts: F) -> Self {
        Ahead(Mutex::new(Some(facts)))
    }

    /// Returns what was read ahead, once; afterwards what `ask` finds.
    pub(crate) async fn or<A: Future<Output = Result<F, Fault>>>(&self, ask: impl FnOnce() -> A) -> Result<F, Fault> {
        let ahead = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ahead {
            Some(facts) => Ok(facts),
            None => ask().await,
        }
    }
}

/// How much of a list one step reads.
pub(crate) const AT_ONCE: i64 = 500;

/// Returns all of a list, in steps of [`AT_ONCE`]: `page` reads on after the last `key` that was read.
pub(crate) async fn whole<T, A: Future<Output = Result<Vec<T>, Fault>>>(
    page: impl Fn(String) -> A,
    key: impl Fn(&T) -> &str,
) -> Result<Vec<T>, Fault> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let found = page(after).await?;
        let more = found.len() >= AT_ONCE.unsigned_abs() as usize;
        all.extend(found);
        match all.last().filter(|_| more) {
            Some(last) => after = key(last).to_owned(),
            None => return Ok(all),
        }
    }
}

impl App {
    /// Asks the store.
    pub(crate) async fn ask<Q: Questions + Sync>(&self, questions: Q) -> Result<Q::Facts, Fault> {
        Ok(timed(Stage::Fetch, ask(&*self.engine, &self.realm.id, questions)).await?)
    }

    /// Decides with fresh facts until the changes of a decision could be committed, then returns its reply. Every try
    /// has the same randomness, so that what it makes is the same. An unknown outcome is never retried.
    pub(crate) async fn settle<T, E, D, F>(&self, decide: D) -> Result<Result<T, E>, Fault>
    where
        D: Fn(Time, Fresh) -> F,
        F: Future<Output = Result<Decision<T, E>, Fault>>,
    {
        let fresh = entropy::fresh()?;
        for tried in 1.. {
            let now = self.clock.now();
            let decision = decide(now, fresh.clone()).await?;
            match self.commit(decision.changes, now, &fresh).await {
                Ok(()) => return Ok(decision.reply),
                Err(CommitError::Conflict { .. }) if tried < TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::Broken("the last try was not the last".into()))
    }

    /// Commits changes: there is no other way, except for what [ends in steps](App::ends_all_but) before. Where the database could lose them, what they end is in the journal of
    /// this node before the caller is told.
    pub(crate) async fn commit(&self, mut changes: Vec<Change>, now: Time, fresh: &Fresh) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        for change in &mut changes {
            match change {
                Change::Record(event) => asked::sign(event),
                Change::CountStranger { address, at } => *address = self.strangers.row_of(address, *at),
                _ => {}
            }
        }
        let kinds: Vec<Kind> = changes.iter().filter_map(recorded).collect();
        let began = Instant::now();
        let (outcome, waited) = turn::waiting(self.write(changes, now, fresh)).await;
        lap(Stage::CommitQueue, began, began + waited);
        lap(Stage::Commit, began + waited, Instant::now());
        self.tally.batches.one(Batch::of(&outcome));
        if outcome.is_ok() {
            kinds.into_iter().for_each(|kind| self.tally.events.one(kind));
        }
        outcome
    }

    /// Commits what the server does by itself, outside of the journal, with the audit entries that tell of it.
    pub(crate) async fn commit_telling(
        &self,
        engine: &dyn Engine,
        mut writes: Vec<Write>,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Result<(), CommitError>, Fault> {
        let (mut kinds, mut lines) = (Vec::new(), Vec::new());
        for mut event in events {
            asked::sign(&mut event);
            kinds.push(event.kind);
            lines.push(Change::Record(event));
        }
        writes.extend(changes::batch(&self.realm.id, &lines, self.clock.now(), &entropy::fresh()?));
        let outcome = engine.commit(writes).await;
        if outcome.is_ok() {
            kinds.into_iter().for_each(|kind| self.tally.events.one(kind));
        }
        Ok(outcome.map(drop))
    }

    async fn write(&self, changes: Vec<Change>, now: Time, fresh: &Fresh) -> Result<(), CommitError> {
        let mut writes = changes::batch(&self.realm.id, &changes, now, fresh);
        writes.extend(self.held_secrets(&changes));
        if let Some(ward) = self.ward.as_ref().filter(|ward| ward.keeps()) {
            let witness = changes::witness(&changes, now, fresh);
            if let Some(record) = Record::of(changes, now, witness) {
                return ward.commit(writes, record).await;
            }
        }
        self.engine.commit(writes).await.map(drop)
    }
}

/// Returns the kind of event that a change writes into the audit log.
fn recorded(change: &Change) -> Option<Kind> {
    match change {
        Change::Record(event) => Some(event.kind),
        _ => None,
    }
}
