//! The fence: raised where a failover was seen, lifted when no node is waited for any more.

use super::{Memory, Ward};
use crate::admin::Refused;
use crate::{App, Fault};
use rules::events::{Event, Kind};
use rules::realm::{SKEW, is_believable};
use rules::{Span, Time};
use std::sync::Arc;
use store::engine::{CommitError, Write};
use store::tables::ask;
use store::tables::fences::{self, Concerned, Fence, Newest, Nodes, Reach, State, Waiting};
use store::tables::nodes::{self, Node};

/// A node seen within this time of the node that was seen last counts as having been there. Each node reports by its
/// own clock, and two clocks may be a minute off in either direction.
const THERE: Span = Span::minutes(4);
/// How much older than its lifetime an open code may be, because the clocks of nodes differ.
const SLACK: Span = Span::minutes(10);
/// How many times this node tries to raise a fence while others change the same rows.
const TRIES: usize = 10;

/// The state of the fences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// This node.
    pub node: String,
    /// The newest fence.
    pub fence: Option<Fence>,
    /// Whether what was issued before it is refused.
    pub up: bool,
    /// The nodes that the newest fences concern, and all nodes that are waited for.
    pub nodes: Vec<Concerned>,
}

impl Status {
    /// Returns the nodes that are waited for.
    pub fn waiting(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|node| node.state == State::Waiting).map(|node| node.node.as_str())
    }
}

impl App {
    /// Returns the current state of the fences.
    pub async fn fences(&self) -> Result<Status, Fault> {
        let node = self.ward.as_ref().map(|ward| ward.journal.memory().node).unwrap_or_default();
        let engine = self.ward.as_ref().map_or(&self.engine, |ward| ward.gate.inner());
        let asked = (Newest, fences::Fenced, Nodes, Waiting);
        let (fence, fenced, mut nodes, waiting) = ask(&**engine, &self.realm.id, asked).await?;
        // Nodes that an older fence still waits for, however long ago that began.
        let older: Vec<Concerned> = waiting.into_iter().filter(|waiting| !nodes.contains(waiting)).collect();
        nodes.extend(older);
        Ok(Status { node, fence, up: fenced.is_some(), nodes })
    }

    /// Returns the fences while one is up; `None` also if the database does not answer.
    pub async fn fence_that_is_up(&self) -> Option<Status> {
        let up = ask(&**self.below(), &self.realm.id, fences::Fenced).await.ok()?;
        up.as_ref()?;
        self.fences().await.ok()
    }

    /// Stops waiting for a node: what it acknowledged before the fence and the database lost stays lost.
    pub async fn accept_loss(&self, node: &str) -> Result<Result<Status, Refused>, Fault> {
        let waiting = ask(&**self.below(), &self.realm.id, Waiting).await?;
        let waiting: Vec<i64> =
            waiting.iter().filter(|concerned| concerned.node == node).map(|concerned| concerned.number).collect();
        if waiting.is_empty() {
            return Ok(Err(Refused::missing(format!(
                "no fence waits for a node called {node}; see: portiere fence status"
            ))));
        }
        let now = self.clock.now();
        let writes: Vec<Write> =
            waiting.iter().map(|number| fences::waive(&self.realm.id, *number, node, now)).collect();
        let told = self.about_fence(Kind::FenceWaived, node, waiting.last().copied().unwrap_or_default());
        match self.commit_telling(&**self.below(), writes, [told]).await? {
            Ok(()) => tracing::warn!(node, "a fence no longer waits for a node: an operator accepted the loss"),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.lift().await?;
        self.fences().await.map(Ok)
    }

    /// The engine below the gate, for what has to be written while the gate is closed.
    pub(super) fn below(&self) -> &Arc<dyn store::engine::Engine> {
        self.ward.as_ref().map_or(&self.engine, |ward| ward.gate.inner())
    }

    /// Builds an audit entry about a fence.
    fn about_fence(&self, kind: Kind, node: &str, number: i64) -> Event {
        Event::new(kind, self.clock.now()).detail("fence", number).detail("node", node)
    }

    /// Joins the fence that another node raised for the server that answers, or raises one.
    pub(super) async fn fence_off(&self, ward: &Ward, identity: &str) -> Result<Fence, Fault> {
        let memory = ward.journal.memory();
        let below = &**ward.gate.inner();
        for _ in 0..TRIES {
            let nodes = ask(below, &self.realm.id, nodes::All).await?;
            let clock = believed(&nodes, &memory.node, self.clock.now());
            let by = clock + SKEW + SKEW;
            let (newest, reached) = ask(below, &self.realm.id, (Newest, Reach { by })).await?;
            let reached = reached.ok_or_else(|| Fault::Broken("the realm is not in the database".into()))?;
            if let Some(fence) = newest.as_ref().filter(|fence| fence.identity == identity)
                && memory.fence.is_none_or(|(_, at)| fence.at > at)
            {
                below.commit(vec![fences::join(&self.realm.id, fence.number, &memory.node, self.clock.now())]).await?;
                tracing::warn!(fence = fence.number, server = identity, "joined the fence of another node");
                return Ok(fence.clone());
            }
            // Also later than a fence that this node knows and the database lost: the epoch is counted from its time.
            let known = memory.fence.map(|(_, at)| at + Span(1)).filter(|at| is_believable(*at, clock));
            let fence = next(newest.as_ref(), identity, &reached, clock.max(known.unwrap_or(clock)));
            let waited = there(&nodes, &memory.node, clock);
            let since = fence.at - self.realm.settings.code_ttl - SLACK;
            let others = waited.iter().filter(|node| **node != memory.node);
            let mut writes: Vec<Write> = others.map(|node| nodes::is_counted_on(&self.realm.id, node)).collect();
            writes.extend(fences::raise(&self.realm.id, &fence, since, &waited));
            if is_in_time(&nodes, &memory.node, by) {
                writes.extend(fences::end_later_than(&self.realm.id, by, self.clock.now()));
            }
            let told = self.about_fence(Kind::FenceRaised, &memory.node, fence.number);
            match self.commit_telling(below, writes, [told]).await? {
                Ok(()) => {
                    let number = fence.number;
                    tracing::warn!(
                        fence = number,
                        server = identity,
                        waits_for = ?waited,
                        "raised a fence: what was issued before is refused until these nodes have replayed what they \
                         had acknowledged"
                    );
                    return Ok(fence);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::Contended("a fence could not be raised".into()))
    }

    /// Notes that this node has replayed everything that it had acknowledged.
    pub(super) async fn has_said(&self, ward: &Ward, number: i64, lost: u64) -> Result<(), Fault> {
        let Memory { node, short, .. } = ward.journal.memory();
        let upto = (number, short.unwrap_or(Time(i64::MIN)));
        let writes = vec![fences::replayed(&self.realm.id, upto, &node, self.clock.now())];
        let told = self.about_fence(Kind::FenceReplayed, &node, number);
        self.commit_telling(&**self.below(), writes, [told]).await??;
        tracing::warn!(fence = number, lost, "this node has replayed what it had acknowledged");
        self.lift().await
    }

    /// Lifts a fence that is up although no node is waited for: a node stopped before it could do that.
    pub(super) async fn lift_if_answered(&self) -> Result<(), Fault> {
        let (waiting, up) = ask(&**self.below(), &self.realm.id, (Waiting, fences::Fenced)).await?;
        if waiting.is_empty() && up.is_some() { self.lift().await } else { Ok(()) }
    }

    /// Lifts the fence unless a node is waited for.
    pub(super) async fn lift(&self) -> Result<(), Fault> {
        let node = self.ward.as_ref().map(|ward| ward.journal.memory().node).unwrap_or_default();
        let number = self.fences().await?.fence.map_or(0, |fence| fence.number);
        let told = self.about_fence(Kind::FenceLifted, &node, number);
        match self.commit_telling(&**self.below(), fences::lift(&self.realm.id), [told]).await? {
            Ok(()) => {
                tracing::warn!(fence = number, "lifted the fence: it waits for no node any more");
                Ok(())
            }
            Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a fence later than all that is there and believed, and than what was lost, which is dated up to now. A fence
/// later than what a wrong clock dated would keep everybody out until its time: what is so dated ends instead.
fn next(newest: Option<&Fence>, identity: &str, reached: &fences::Reached, clock: Time) -> Fence {
    let believed = newest.filter(|fence| is_believable(fence.at, clock));
    let after = believed.map_or(Time(0), |fence| fence.at + Span(1));
    Fence {
        number: newest.map_or(1, |fence| fence.number + 1),
        at: clock.max(reached.newest).max(after),
        identity: identity.to_owned(),
        epoch: reached.epoch,
    }
}

/// Returns the time by which a fence is placed: this node's, or, where most others have been ahead of it, that of the
/// middle one. A fence placed by a clock that is behind would miss what others dated and the database lost.
fn believed(nodes: &[Node], itself: &str, now: Time) -> Time {
    let mut others: Vec<Time> = nodes.iter().filter(|node| node.node != itself).map(|node| node.seen).collect();
    others.sort_unstable();
    match others.get(others.len() / 2) {
        Some(middle) if !is_in_time(nodes, itself, now + SKEW + SKEW) => *middle,
        _ => now,
    }
}

/// Whether what is dated later than `by` was dated by a wrong clock, as far as other nodes show: where most of them are
/// ahead of `by`, too, the wrong clock is this node's.
fn is_in_time(nodes: &[Node], itself: &str, by: Time) -> bool {
    let others = || nodes.iter().filter(|node| node.node != itself);
    others().filter(|node| node.seen > by).count() * 2 <= others().count()
}

/// Returns the nodes that were there when the database was last well, of those that have a journal and are counted on,
/// and the node that asks. A node whose row was dated by a wrong clock is no measure for the others.
fn there(nodes: &[Node], itself: &str, now: Time) -> Vec<String> {
    let newest = nodes.iter().map(|node| node.seen).filter(|seen| is_believable(*seen, now)).max().unwrap_or(Time(0));
    let counted = |node: &&Node| node.keeps_journal() && (node.gone.is_none() || node.node == itself);
    let mut there: Vec<String> = nodes
        .iter()
        .filter(counted)
        .filter(|node| newest.since(node.seen) <= THERE || node.node == itself)
        .map(|node| node.node.clone())
        .collect();
    if !there.iter().any(|node| node == itself) {
        there.push(itself.to_owned());
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::engine::Durability;
    use store::tables::nodes::{About, Journal};

    #[test]
    fn a_fence_is_placed_by_the_clocks_of_most() {
        // Red with this node's clock alone: what others dated and the database lost would not be held.
        let node = |name: &str, seen| Node { node: name.into(), seen: Time(seen), mark: 1, about: None, gone: None };
        let placed = |seen: &[i64], now: i64| {
            let nodes: Vec<_> = seen.iter().enumerate().map(|(at, seen)| node(&at.to_string(), *seen)).collect();
            believed(&nodes, "0", Time(now)).0
        };
        let behind = 600_000;
        assert_eq!(placed(&[0, 1_000_000, 1_005_000], 1_000_000 - behind), 1_005_000);
        assert_eq!(placed(&[0, 1_000_000, 1_005_000], 1_006_000), 1_006_000, "they are not ahead");
        assert_eq!(placed(&[0, 9_000_000, 1_000_000, 1_000_000], 1_000_000), 1_000_000, "one alone is no measure");
        assert_eq!(placed(&[0], 5), 5);
    }

    #[test]
    fn a_clock_that_most_others_are_ahead_of_is_no_measure() {
        // Red with one clock alone: a node that is days behind would end whatever anybody signed in to since.
        let node = |name: &str, seen| Node { node: name.into(), seen: Time(seen), mark: 1, about: None, gone: None };
        let in_time = |seen: &[i64]| {
            let nodes: Vec<_> = seen.iter().enumerate().map(|(at, seen)| node(&at.to_string(), *seen)).collect();
            is_in_time(&nodes, "0", Time(100))
        };
        assert!(in_time(&[]) && in_time(&[500]) && in_time(&[50, 90]) && in_time(&[50, 90, 500]));
        assert!(!in_time(&[50, 500]) && !in_time(&[50, 500, 90, 600]));
    }

    #[test]
    fn who_was_there_is_told_by_who_was_there_last_and_not_by_our_clock() {
        let now = Time(9_000_000);
        let node =
            |name: &str, seen: i64| Node { node: name.into(), seen: Time(seen), mark: 1, about: None, gone: None };
        let nodes = [node("a", 1_000_000), node("b", 1_000_000 - THERE.0), node("c", 999_999 - THERE.0)];
        assert_eq!(there(&nodes, "a", now), ["a", "b"]);
        assert_eq!(there(&nodes, "c", now), ["a", "b", "c"]);
        assert_eq!(there(&nodes, "new", now), ["a", "b", "new"]);
        assert_eq!(there(&[], "new", now), ["new"]);
        // Red with 2 minutes, and without `is_believable`.
        let minute = Span::minutes(1);
        let clocks = [node("fast", (now + minute).0), node("slow", (now - minute - Span::seconds(5)).0)];
        assert_eq!(there(&clocks, "fast", now), ["fast", "slow"]);
        let ahead = [node("ahead", (now + Span::days(365)).0), node("b", (now - Span::seconds(5)).0)];
        assert_eq!(there(&ahead, "b", now), ["ahead", "b"]);
        let about = |journal| Some(About { version: "1".into(), class: Durability::Bounded, journal });
        let gone = Node { gone: Some(Time(1)), ..node("gone", 1_000_000) };
        let others = [gone, Node { about: about(Journal::Off), ..node("off", 1_000_000) }];
        assert_eq!(there(&others, "new", now), ["new"], "who is not counted on, and who has nothing to say");
        assert_eq!(there(&others, "gone", now), ["gone"], "who looks is there");
    }
}
