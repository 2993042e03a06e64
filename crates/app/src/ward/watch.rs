//! Checks which database server answers, and lets it in.

use super::Ward;
use super::replay::Said;
use crate::{App, Fault};
use rules::{Span, Time, keys};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::engine::{Answering, CommitError, Durability};
use store::migrations::MIGRATIONS;
use store::moving::marks;
use store::schema;
use store::tables::ask;
use store::tables::fences::{self, Fence, Newest, Waiting};
use store::tables::nodes::{self, Node};
use store::tally::Spread;

/// Between two checks, while all is well.
const BEAT: Duration = Duration::from_secs(5);
/// Between two checks of a server that is not let in.
const SOON: Duration = Duration::from_millis(300);
/// The longest that this node waits for its clock, where it is behind those of other nodes.
const BEHIND: Span = Span::minutes(1);

impl App {
    /// Returns how long it took until endings were in this node's journal; `None` where there is no journal.
    pub fn journal_times(&self) -> Option<Spread> {
        self.ward.as_ref().map(|ward| ward.times.spread())
    }

    /// Whether a ward guards what this node acknowledged, and why nothing can be acknowledged at present.
    pub fn guarded(&self) -> Option<Result<(), String>> {
        let ward = self.ward.as_ref()?;
        Some(match (ward.journal.works(), &ward.seen().trouble) {
            (Err(why), _) => Err(format!("the journal of this node does not work: {why}")),
            (Ok(()), Some(why)) if ward.gate.passes().is_none() => Err(why.clone()),
            (Ok(()), _) => Ok(()),
        })
    }

    /// The state of the fences at the last check.
    pub fn last_seen(&self) -> Option<super::Status> {
        self.ward.as_ref()?.seen().status.clone()
    }

    /// Lets in the server that answers, after everything that has to be done first. To be called before anything else.
    pub async fn meet(&self) -> Result<(), Fault> {
        match &self.ward {
            // On a file nobody else would: its nodes were those of the server from which it was moved.
            None if self.engine.file().is_some() => self.lift_if_answered().await,
            None => Ok(()),
            Some(ward) => self.look_at_server(ward).await,
        }
    }

    /// Returns why this program can no longer work on its database, if a newer version has changed it too far.
    pub async fn outgrown(&self) -> Result<Option<String>, Fault> {
        let outgrown = schema::outgrown(&**self.below(), MIGRATIONS).await?;
        Ok(outgrown.map(|why| why.to_string()))
    }

    /// Watches the server; runs until dropped.
    pub async fn watch(&self) {
        let Some(ward) = &self.ward else { return self.show_itself().await };
        loop {
            let pause = match self.look_at_server(ward).await {
                Ok(()) => {
                    self.mind_issuer().await;
                    BEAT
                }
                Err(fault) => {
                    let news = ward.seen().trouble.replace(fault.to_string()) != Some(fault.to_string());
                    if news {
                        tracing::warn!(%fault, "it is not certain yet that the database has all acknowledged writes");
                    }
                    tokio::time::sleep(SOON).await;
                    SOON
                }
            };
            // A caller that finds the gate closed need not wait for the next check.
            drop(tokio::time::timeout(pause, ward.gate.knocked()).await);
        }
    }

    async fn look_at_server(&self, ward: &Ward) -> Result<(), Fault> {
        // Also asks which server it is.
        let health = ward.gate.inner().health().await?;
        let Some(answering) = ward.gate.inner().answering() else {
            return Err(Fault::Broken("an engine that does not say which server answers is watched over".into()));
        };
        if let Some(why) = self.outgrown().await? {
            ward.gate.close();
            return Err(Fault::Unavailable(why));
        }
        let lossy = health.durability != Durability::ZeroLoss;
        self.mind_losses(ward, &answering, lossy).await?;
        let entered = ward.gate.passes() == Some(answering.generation);
        let moved = self.moved(ward, &answering).await?;
        match &moved {
            Some(why) => {
                ward.gate.close();
                // Migrations of the schema may have been lost as well.
                ward.gate.inner().migrate().await?;
                // By then, everything committed before is in the journal, or was never acknowledged.
                let _turn = ward.turn.write().await;
                self.fence_in(ward, &answering.identity, why).await?;
            }
            None => self.catch_up(ward).await?,
        }
        self.beat(ward, &answering, (lossy, moved.is_some()), ward.journal_is(lossy)).await?;
        if lossy {
            // Before any caller is let in: from the first batch on, endings are in the journal.
            ward.lossy.store(true, SeqCst);
        }
        if !entered || ward.gate.passes().is_none() {
            self.let_in(ward, &answering)?;
        }
        // A standby that is in sync has all that was acknowledged before, too.
        ward.lossy.store(lossy, SeqCst);
        let status = self.fences().await?;
        let trouble = {
            let mut seen = ward.seen();
            seen.status = Some(status);
            seen.trouble.take()
        };
        if trouble.is_some() {
            tracing::info!("it is certain again that the database has all acknowledged writes");
        }
        // A key that was revoked again may have had a successor that was lost.
        if moved.is_some() {
            self.bring_in(|rows, alg, now| keys::signer(rows, alg, now).is_none()).await?;
        }
        Ok(())
    }

    /// Keeps the journal from the moment at which it is known that commits could be lost.
    async fn mind_losses(&self, ward: &Ward, answering: &Answering, lossy: bool) -> Result<(), Fault> {
        let memory = ward.journal.memory();
        if !lossy || memory.identity.as_ref() != Some(&answering.identity) {
            return Ok(());
        }
        if !memory.lossy {
            tracing::warn!("a failover of the database may lose acknowledged writes from now on: the journal is kept");
            self.note_down(ward, |memory| memory.lossy = true).await?;
        }
        ward.lossy.store(true, SeqCst);
        Ok(())
    }

    /// Returns why the database may have lost something that this node acknowledged; `None` where it cannot have.
    async fn moved(&self, ward: &Ward, answering: &Answering) -> Result<Option<String>, Fault> {
        let memory = ward.journal.memory();
        let nodes = ask(&**ward.gate.inner(), &self.realm.id, nodes::All).await?;
        let found = nodes.iter().find(|node| node.node == memory.node).map(|node| node.mark);
        if memory.is_ahead_of(found, self.clock.now()) {
            let mark = found.unwrap_or(0);
            return Ok(Some(format!("it has mark {mark} of this node, but had acknowledged {}", memory.mark)));
        }
        let Some(was) = memory.identity.filter(|was| *was != answering.identity) else { return Ok(None) };
        let now = &answering.identity;
        // The old server took no writes after it was copied.
        if marks::moved_from(&**ward.gate.inner()).await?.is_some_and(|from| marks::is_same_server(&from, &was)) {
            tracing::info!(was, now, "the database was moved, with all that was acknowledged");
            return Ok(None);
        }
        if answering.came_from.as_ref() == Some(&was) {
            tracing::info!(was, now, "another member of the same cluster is used; nothing acknowledged was lost");
            return Ok(None);
        }
        if memory.lossy {
            return Ok(Some(format!("it was {was} before")));
        }
        tracing::info!(was, now, "another database server answers; nothing acknowledged was lost");
        Ok(None)
    }

    async fn fence_in(&self, ward: &Ward, identity: &str, why: &str) -> Result<(), Fault> {
        tracing::warn!(server = identity, why, "the database may have lost acknowledged writes");
        let fence = self.fence_off(ward, identity).await?;
        self.answer(ward, &fence).await
    }

    /// Raises a fence after a restore, on the operator's word: nodes replay what they acknowledged since the backup.
    /// Their marks, raised every few seconds, need not show it. A node with an empty journal is new: no older node is
    /// waited for on its word.
    pub async fn fence_restored(&self) -> Result<(), Fault> {
        let Some(ward) = &self.ward else { return Ok(()) };
        if ward.journal.parts().map_err(Fault::Broken)?.is_empty() || self.fences().await?.up {
            return Ok(());
        }
        let Some(answering) = ward.gate.inner().answering() else { return Ok(()) };
        let _turn = ward.turn.write().await;
        self.fence_in(ward, &answering.identity, "a backup was restored").await
    }

    /// Replays what this node had acknowledged, where others wait for that.
    async fn catch_up(&self, ward: &Ward) -> Result<(), Fault> {
        let memory = ward.journal.memory();
        let (newest, waiting, up) =
            ask(&**ward.gate.inner(), &self.realm.id, (Newest, Waiting, fences::Fenced)).await?;
        if waiting.is_empty() && up.is_some() {
            // A node stopped after it had reported its replay and before it lifted the fence.
            return self.lift().await;
        }
        let mine = waiting.iter().any(|concerned| concerned.node == memory.node);
        // A fence that this node knows, and that still waits for it, is one that it cannot answer.
        let Some(fence) = newest.filter(|fence| memory.fence != Some((fence.number, fence.at))) else {
            return Ok(());
        };
        match mine {
            true => self.answer(ward, &fence).await,
            // This node has nothing to say to that fence; later it would take it for that of a loss which no other node
            // has seen yet. Asks again, now that the fence is known: it may have come between the two answers.
            false => {
                let waiting = ask(&**ward.gate.inner(), &self.realm.id, Waiting).await?;
                if waiting.iter().any(|concerned| concerned.node == memory.node) {
                    return self.answer(ward, &fence).await;
                }
                self.note_down(ward, |memory| memory.fence = Some((fence.number, fence.at))).await
            }
        }
    }

    /// Replays what this node had acknowledged, and remembers the fence.
    async fn answer(&self, ward: &Ward, fence: &Fence) -> Result<(), Fault> {
        let said = self.say_again(ward, fence).await?;
        let memory = ward.journal.memory();
        let nodes = ask(&**ward.gate.inner(), &self.realm.id, nodes::All).await?;
        // A mark that this node does not remember was set with a journal that is gone, unless this process set it and
        // the disk did not store it.
        let set = ward.seen().mark.unwrap_or(0).max(memory.mark);
        let is_older = nodes.iter().any(|node| node.node == memory.node && node.mark > set + 1);
        if is_older {
            tracing::error!(
                fence = fence.number,
                "the data folder of this node is older than its last writes: restored from a copy? What it \
                 acknowledged since is not in its journal. What was issued before the fence stays refused; portiere \
                 fence accept-loss gives the rest up"
            );
        }
        let said = Said { whole: said.whole && !is_older, ..said };
        if said.whole {
            self.has_said(ward, fence.number, said.lost).await?;
        } else if !is_older {
            tracing::error!(
                fence = fence.number,
                "the database is older than this node's journal reaches back: restored from a backup? What was issued \
                 before the fence stays refused; portiere fence accept-loss gives the rest up"
            );
        }
        self.note_down(ward, |memory| {
            memory.fence = Some((fence.number, fence.at));
            if !said.whole {
                memory.short = Some(fence.at);
            }
        })
        .await?;
        self.wait_until_past(fence.at).await;
        Ok(())
    }

    /// Waits until this node's clock is past the fence: what it issues before would be refused, too.
    async fn wait_until_past(&self, at: Time) {
        let behind = at.since(self.clock.now());
        if behind > Span::ZERO {
            let wait = behind.min(BEHIND);
            tracing::warn!(behind_ms = behind.0, "the clock of this node is behind those of others: waiting");
            tokio::time::sleep(Duration::from(wait) + Duration::from_millis(1)).await;
        }
    }

    /// Sends the last beat of a node that has a journal: it has stopped. Sent only to the server that was checked.
    pub(super) async fn close_journal(&self, ward: &Ward) -> Result<(), Fault> {
        match ward.gate.inner().answering() {
            Some(answering) if ward.gate.passes() == Some(answering.generation) => {
                let lossy = ward.lossy.load(SeqCst);
                self.beat(ward, &answering, (lossy, false), nodes::Journal::Closed).await
            }
            _ => Ok(()),
        }
    }

    /// Reports that this node is there, and remembers what the database knows of it.
    async fn beat(
        &self,
        ward: &Ward,
        answering: &Answering,
        (lossy, moved): (bool, bool),
        journal: nodes::Journal,
    ) -> Result<(), Fault> {
        let memory = ward.journal.memory();
        let (below, begun) = (&**ward.gate.inner(), self.clock.now());
        let nodes = ask(below, &self.realm.id, nodes::All).await?;
        self.mind_clocks(&nodes, &memory.node, begun);
        let was = nodes.iter().find(|node| node.node == memory.node).map(|node| node.mark);
        if !moved && was.is_some_and(|was| was < memory.mark) {
            return Err(Fault::Unavailable("the database has lost writes of this node since the last check".into()));
        }
        let mark = was.unwrap_or(0).max(memory.mark) + 1;
        self.mind_double(ward, was, mark);
        let (now, about) = (self.clock.now(), self.about(answering.durability, journal));
        let next = Node { node: memory.node, seen: now, mark, about: Some(about), gone: None };
        // To the server that was checked: the note below is about that server.
        match below.commit_within(answering.generation, vec![nodes::beat(&self.realm.id, &next, was)]).await {
            Ok(_) => {}
            // Another process, or a beat of this one whose answer was lost: the next check tells.
            Err(CommitError::Conflict { .. }) => {
                let why = format!("the mark of node {} was raised meanwhile", next.node);
                return Err(Fault::Unavailable(why));
            }
            Err(error) => return Err(error.into()),
        }
        let identity = Some(answering.identity.clone());
        self.note_down(ward, |memory| {
            (memory.identity, memory.mark, memory.lossy) = (identity, mark, lossy);
            memory.seen = Some(now);
        })
        .await?;
        let before = self.clock.steady() - super::KEPT;
        on_disk(ward, move |journal| journal.forget(before)).await
    }

    /// Notes where the mark of this node is one that this process did not set: two processes that use copies of one
    /// data folder take turns, and each would take the other's work for its own.
    fn mind_double(&self, ward: &Ward, was: Option<i64>, next: i64) {
        let now = self.clock.now();
        let mut seen = ward.seen();
        if was > seen.mark && seen.mark.is_some() {
            if seen.double.is_none_or(|at| now.since(at) > DOUBLE) {
                tracing::error!("{}", double(&ward.journal.memory().node));
            }
            seen.double = Some(now);
        }
        seen.mark = seen.mark.max(Some(next));
    }

    /// Says that another process uses this node's name, if that was seen a short time ago.
    pub fn double(&self) -> Option<String> {
        let ward = self.ward.as_ref()?;
        let at = ward.seen().double?;
        (self.clock.now().since(at) <= DOUBLE).then(|| double(&ward.journal.memory().node))
    }

    async fn note_down(&self, ward: &Ward, change: impl FnOnce(&mut super::Memory)) -> Result<(), Fault> {
        let mut memory = ward.journal.memory();
        change(&mut memory);
        on_disk(ward, move |journal| journal.remember(&memory)).await
    }

    /// Opens the gate for the server that was looked at, if it still answers.
    fn let_in(&self, ward: &Ward, answering: &Answering) -> Result<(), Fault> {
        if ward.gate.inner().generation() != answering.generation {
            return Err(Fault::Unavailable("yet another database server answers".into()));
        }
        ward.gate.open(answering.generation);
        tracing::info!(server = answering.identity, "the database passed the check and is in use");
        Ok(())
    }
}

/// How long after it was last seen another process of this name is reported.
const DOUBLE: Span = Span::minutes(10);

fn double(node: &str) -> String {
    format!(
        "another process calls itself node {node}: is its data folder a copy of this one's? Stop one of them, and give it a new folder: \
         what it acknowledged may be lost at a failover"
    )
}

/// Does something in the journal's folder on another thread: otherwise, whatever else the calling thread does would
/// wait for a disk that stalls.
async fn on_disk(
    ward: &Ward,
    act: impl FnOnce(&dyn super::Journal) -> Result<(), String> + Send + 'static,
) -> Result<(), Fault> {
    let journal = ward.journal.clone();
    let done = tokio::task::spawn_blocking(move || act(&*journal)).await;
    let done = done.unwrap_or_else(|error| Err(error.to_string()));
    done.map_err(|why| Fault::Unavailable(format!("the journal's folder: {why}")))
}
