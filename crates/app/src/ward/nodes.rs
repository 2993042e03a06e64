//! The nodes of a database: those that live, those that are waited for, and those that are gone.

use super::{Memory, Ward};
use crate::admin::Refused;
use crate::{App, Fault};
use rules::events::{Event, Kind};
use rules::realm::is_believable;
use rules::{Span, Time};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use store::engine::{CommitError, Durability, Write};
use store::tables::ask;
use store::tables::fences::{self, Concerned, Waiting};
use store::tables::nodes::{self, About, Journal, Node};

/// A node seen within this time lives: six beats.
const LIVES: Span = Span::seconds(30);
/// A node not seen for longer than this has missed two beats, one of which may be a little late.
const HEARD_WITHIN: Span = Span::seconds(12);
/// A node that was away for this long, and that no fence waits for, is removed, and so is a fence of this age. The
/// node's journal expired long before ([`KEPT`](super::KEPT)).
const KEPT_FOR: Span = Span::days(30);
/// The same for a node without a journal, which has another name at each start.
const NAMELESS_FOR: Span = Span::hours(1);
/// A node away for this long may have been removed: the clocks of nodes differ by less than the rest of `KEPT_FOR`.
const SWEPT_AFTER: Span = Span::days(29);
/// Between two beats of a node without a journal.
const BEAT: Duration = Duration::from_secs(5);
/// Longer than the time between two beats of any node.
const WATCHED: Duration = Duration::from_secs(7);

/// A node as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What the database has about it.
    pub node: Node,
    /// Whether it is the node that was asked.
    pub own: bool,
    /// Whether it was there a moment ago.
    pub lives: bool,
    /// How long ago it was last seen, if its clock can be believed.
    pub ago: Option<Span>,
    /// The newest fence that waits for it.
    pub fence: Option<i64>,
    /// By how many milliseconds, at least, its clock is ahead of this node's: negative where it is behind, 0 where the
    /// difference is small; `None` where this node has not heard it lately.
    pub ahead: Option<i64>,
}

impl Shown {
    /// Whether a node that lives has missed two beats: it was killed or cut off, or its database stands still.
    pub fn is_silent(&self) -> bool {
        self.lives && self.ago.is_some_and(|ago| ago > HEARD_WITHIN)
    }
}

impl App {
    /// Returns every node that was not forgotten: no nodes where the facts are in a file, which only one node uses.
    pub async fn nodes(&self) -> Result<Vec<Shown>, Fault> {
        let (nodes, waiting) = ask(&**self.below(), &self.realm.id, (nodes::All, Waiting)).await?;
        let skew = |name: &str| self.skew_of(name);
        Ok(shown((nodes, &waiting), &self.own_name(), self.clock.now(), &skew))
    }

    /// Returns the other nodes that run on this database: those that report while it is watched. The time of a node's
    /// last report does not tell: a copy of a database has nodes that were there a moment before the copy was made.
    pub async fn others_running(&self) -> Result<Vec<String>, Fault> {
        self.others_heard(watched()).await
    }

    /// The same, by the nodes that report while `watched` runs.
    pub(super) async fn others_heard(&self, watched: impl Future<Output = ()>) -> Result<Vec<String>, Fault> {
        let (below, own) = (&**self.below(), self.own_name());
        let before = ask(below, &self.realm.id, nodes::All).await?;
        if before.iter().all(|node| node.node == own) {
            return Ok(Vec::new());
        }
        watched.await;
        let after = ask(below, &self.realm.id, nodes::All).await?;
        Ok(running(&before, after, &own))
    }

    /// The name of this node among nodes.
    pub(crate) fn own_name(&self) -> String {
        self.ward.as_ref().map_or_else(|| self.node.clone(), |ward| ward.journal.memory().node)
    }

    /// Stops counting on a node's return: no failover from now on waits for it.
    pub async fn forget_node(&self, name: &str) -> Result<Result<(), Refused>, Fault> {
        let refuse = |why: String| Ok(Err(Refused::new(why)));
        let nodes = self.nodes().await?;
        let Some(found) = nodes.iter().find(|shown| shown.node.node == name) else {
            return Ok(Err(Refused::missing(format!("there is no node called {name}; see: portiere node list"))));
        };
        if found.fence.is_some() {
            return refuse(format!(
                "a fence waits for node {name}: start it, or give up what it acknowledged: portiere fence accept-loss {name}"
            ));
        }
        if found.lives {
            return refuse(format!("node {name} is running: stop it first; if it was killed, wait for half a minute"));
        }
        let writes = nodes::let_go(&self.realm.id, &found.node, self.clock.now());
        let told = Event::new(Kind::NodeForgotten, self.clock.now()).detail("node", name);
        match self.commit_telling(&**self.below(), writes, [told]).await? {
            Ok(()) => {
                tracing::warn!(node = name, "an operator removed this node from the list");
                Ok(Ok(()))
            }
            Err(CommitError::Conflict { .. }) => {
                refuse(format!("node {name} has come back meanwhile, or a fence waits for it; see: portiere node list"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Raises the mark of a node in a file to the mark that the node remembers from a server: the file was restored,
    /// and all that was issued has ended there, so that nothing lost can come to life again. A start need not refuse it.
    pub async fn accept_mark(&self, memory: &Memory) -> Result<(), Fault> {
        let nodes = self.ask(nodes::All).await?;
        let was = nodes.into_iter().find(|node| node.node == memory.node);
        if !memory.is_ahead_of(was.as_ref().map(|was| was.mark), self.clock.now()) {
            return Ok(());
        }
        let (mark, seen) = (was.as_ref().map(|was| was.mark), memory.seen.unwrap_or(self.clock.now()));
        let about = was.and_then(|was| was.about);
        let next = Node { node: memory.node.clone(), seen, mark: memory.mark, about, gone: None };
        self.engine.commit(vec![nodes::beat(&self.realm.id, &next, mark)]).await?;
        Ok(())
    }

    /// Removes nodes and fences of long ago.
    pub(crate) async fn sweep_nodes(&self) -> Result<(), Fault> {
        let now = self.clock.steady();
        let asked = (nodes::All, Waiting, fences::Before(now - KEPT_FOR));
        let (nodes, waiting, fences) = self.ask(asked).await?;
        let realm = &self.realm.id;
        let old = old(&nodes, &waiting, now);
        let writes: Vec<Write> = old.map(|node| nodes::remove(realm, &node.node, node.mark)).collect();
        let fences = fences.into_iter().map(|number| fences::remove(realm, number));
        for batch in [writes].into_iter().filter(|writes| !writes.is_empty()).chain(fences) {
            match self.engine.commit(batch).await {
                // A fence waits for the node by now: the next sweep tries again.
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reports regularly that a node without a journal is there. For operators alone: no fence waits for such a node.
    pub(super) async fn show_itself(&self) {
        let mut was = None;
        loop {
            self.show_once(&mut was).await;
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Reports once; `was` is the mark of the last report.
    pub(super) async fn show_once(&self, was: &mut Option<i64>) {
        // The server's settings may have changed: they are checked with or without a journal.
        if self.engine.answering().is_some()
            && let Err(error) = self.engine.health().await
        {
            tracing::debug!(?error, "the database is not healthy");
        }
        let Some(answering) = self.engine.answering() else { return };
        let about = self.about(answering.durability, Journal::Off);
        let (node, seen) = (self.node.clone(), self.clock.now());
        let next = Node { node, seen, mark: was.unwrap_or(0) + 1, about: Some(about), gone: None };
        match self.engine.commit(vec![nodes::beat(&self.realm.id, &next, *was)]).await {
            Ok(_) => *was = Some(next.mark),
            // The row was removed meanwhile, or an outcome was unknown: the node is not there under its mark.
            Err(CommitError::Conflict { .. }) => *was = self.own_mark().await,
            Err(error) => tracing::debug!(?error, "the database could not be told that this node is running"),
        }
        let begun = self.clock.now();
        if let Ok(nodes) = self.ask(nodes::All).await {
            self.mind_clocks(&nodes, &self.node, begun);
            self.journals.saw(&nodes);
        }
        self.mind_issuer().await;
    }

    async fn own_mark(&self) -> Option<i64> {
        let nodes = self.ask(nodes::All).await.ok()?;
        nodes.into_iter().find(|node| node.node == self.node).map(|node| node.mark)
    }

    /// For the end of a node: removes it if it has no journal, and so nothing to come back for, or notes its stop.
    pub async fn take_leave(&self) {
        if let Some(ward) = &self.ward {
            if let Err(fault) = self.close_journal(ward).await {
                tracing::debug!(%fault, "the database could not be told that this node has stopped");
            }
            return;
        }
        if self.engine.answering().is_none() {
            return;
        }
        if let Some(mark) = self.own_mark().await {
            drop(self.engine.commit(vec![nodes::remove(&self.realm.id, &self.node, mark)]).await);
        }
    }

    /// What this node reports about itself.
    pub(super) fn about(&self, class: Durability, journal: Journal) -> About {
        About { version: env!("CARGO_PKG_VERSION").to_owned(), class, journal }
    }
}

/// Whether a node without a journal has found no node with one when it last looked. Until it has looked, there may be
/// one: a command does not look.
#[derive(Default)]
pub(crate) struct Journals {
    none: AtomicBool,
}

impl Journals {
    fn saw(&self, nodes: &[Node]) {
        self.none.store(!nodes.iter().any(Node::keeps_journal), SeqCst);
    }

    /// Whether a node on this database may keep a journal.
    pub(crate) fn may_be(&self) -> bool {
        !self.none.load(SeqCst)
    }
}

impl Ward {
    /// The state of the journal, over a server that could lose commits or not.
    pub(super) fn journal_is(&self, lossy: bool) -> Journal {
        match (lossy, self.journal.works()) {
            (_, Err(_)) => Journal::Failing,
            (true, Ok(())) => Journal::Kept,
            (false, Ok(())) => Journal::Idle,
        }
    }
}

/// Waits for as long as it takes to hear every running node.
pub(super) fn watched() -> impl Future<Output = ()> {
    tokio::time::sleep(WATCHED)
}

/// Returns the nodes whose marks grew from one reading to the next, or are new; not those that said that they stopped,
/// such as a command that opened the database for a moment.
fn running(before: &[Node], after: Vec<Node>, own: &str) -> Vec<String> {
    let same = |node: &Node| before.iter().any(|was| was.node == node.node && was.mark == node.mark);
    after
        .into_iter()
        .filter(|node| node.node != own && !same(node) && !node.has_stopped())
        .map(|node| node.node)
        .collect()
}

fn shown(
    (nodes, waiting): (Vec<Node>, &[Concerned]),
    own: &str,
    now: Time,
    skew: &dyn Fn(&str) -> Option<i64>,
) -> Vec<Shown> {
    // By the clocks of the nodes, and by this node's where none of them runs.
    let newest =
        nodes.iter().map(|node| node.seen).filter(|seen| is_believable(*seen, now)).max().unwrap_or(now).max(now);
    let fence = |node: &Node| {
        let waited = waiting.iter().filter(|concerned| concerned.node == node.node);
        waited.map(|concerned| concerned.number).max()
    };
    let shown = |node: Node| {
        // A node that is heard lives, whatever its clock says, unless that was its last report.
        let (own, ahead) = (node.node == own, skew(&node.node));
        let by_clock = newest.since(node.seen) <= LIVES && is_believable(node.seen, now);
        let lives = (by_clock || ahead.is_some()) && !node.has_stopped();
        // By this node's clock if it is known how much the other one differs.
        let ago = match ahead {
            Some(ahead) => Some(Span(now.0.saturating_sub(node.seen.0).saturating_add(ahead))),
            None => is_believable(node.seen, now).then(|| newest.since(node.seen)),
        };
        let ago = ago.map(|ago| Span(ago.0.max(0)));
        Shown { own, lives, ago, fence: fence(&node), ahead, node }
    };
    // A node that is waited for is shown, even if it was forgotten.
    nodes.into_iter().map(shown).filter(|shown| shown.node.gone.is_none() || shown.fence.is_some()).collect()
}

/// Returns the nodes that nobody needs to know of any more.
fn old<'a>(nodes: &'a [Node], waiting: &'a [Concerned], now: Time) -> impl Iterator<Item = &'a Node> {
    nodes.iter().filter(move |node| {
        let kept = if node.keeps_journal() { KEPT_FOR } else { NAMELESS_FOR };
        now.since(node.seen) > kept && waiting.iter().all(|concerned| concerned.node != node.node)
    })
}

/// Whether a node that the database last saw at `seen` may have been removed from it since. If so, the node was away
/// for so long that its journal has expired.
pub(super) fn may_be_swept(seen: Option<Time>, now: Time) -> bool {
    seen.is_some_and(|seen| now.since(seen) > SWEPT_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::fences::State;

    const NOW: Time = Time(100 * 86_400_000);

    fn node(name: &str, age: Span, journal: Journal) -> Node {
        let about = About { version: "1".into(), class: Durability::Bounded, journal };
        Node { node: name.into(), seen: NOW - age, mark: 3, about: Some(about), gone: None }
    }

    fn waited(name: &str, number: i64) -> Concerned {
        Concerned { number, node: name.into(), state: State::Waiting, at: Time(1) }
    }

    #[test]
    fn a_node_is_taken_out_when_it_was_away_for_longer_than_any_journal_and_nobody_waits_for_it() {
        let (day, hour) = (Span::days(1), Span::hours(1));
        let nodes = [
            node("lives", Span::ZERO, Journal::Kept),
            node("away", KEPT_FOR, Journal::Kept),
            node("gone", KEPT_FOR + Span(1), Journal::Idle),
            node("waited", KEPT_FOR + day, Journal::Kept),
            node("nameless", hour, Journal::Off),
            node("of before", hour + Span(1), Journal::Off),
            Node { about: None, ..node("of an older program", day, Journal::Kept) },
        ];
        let waiting = [waited("waited", 1)];
        let old: Vec<&str> = old(&nodes, &waiting, NOW).map(|node| node.node.as_str()).collect();
        assert_eq!(old, ["gone", "of before"]);
        assert!(SWEPT_AFTER > super::super::KEPT, "what it had in its journal has ended");
    }

    #[test]
    fn who_says_that_it_is_there_while_it_is_watched_runs() {
        let of = |name: &str, mark| Node { mark, ..node(name, Span::ZERO, Journal::Kept) };
        let before = [of("own", 1), of("runs", 1), of("stopped a moment ago", 7)];
        let after = vec![of("own", 2), of("runs", 2), of("stopped a moment ago", 7), of("started", 1)];
        assert_eq!(running(&before, after, "own"), ["runs", "started"]);
    }

    #[test]
    fn who_was_taken_out_is_told_from_who_was_lost() {
        assert!(may_be_swept(Some(NOW - KEPT_FOR), NOW));
        assert!(!may_be_swept(Some(NOW - Span::days(20)), NOW));
        assert!(!may_be_swept(None, NOW), "a memory that does not say");
    }

    #[test]
    fn a_node_that_missed_two_beats_is_silent_long_before_it_is_away() {
        // Red without `is_silent`, or without `ahead` in `ago`: a node whose clock is behind would always be silent.
        let (late, behind) = (Span::seconds(12), Some(-20_000));
        for (age, ahead, silent) in [
            (late, None, false),
            (late + Span(1), None, true),
            (LIVES, None, true),
            (LIVES + Span(1), None, false),
            (Span::seconds(20), behind, false),
            (Span::seconds(33), behind, true),
        ] {
            let shown = shown((vec![node("a", age, Journal::Kept)], &[]), "b", NOW, &|_| ahead);
            assert_eq!(shown[0].is_silent(), silent, "{age:?} {ahead:?}");
            assert_eq!(shown[0].ago, Some(Span(age.0 + ahead.unwrap_or(0))));
        }
    }

    #[test]
    fn operators_see_who_lives_who_is_waited_for_and_nobody_that_is_forgotten() {
        let gone = |name: &str| Node { gone: Some(NOW), ..node(name, Span::days(1), Journal::Kept) };
        let nodes = vec![
            node("a", Span::ZERO, Journal::Kept),
            node("b", LIVES, Journal::Kept),
            node("c", LIVES + Span(1), Journal::Kept),
            gone("d"),
            gone("e"),
        ];
        // A node whose clock was wrong lives for nobody, and makes no other look dead. Red without `is_believable`.
        let ahead = Node { seen: NOW + Span::days(365), ..node("f", Span::ZERO, Journal::Kept) };
        let beside = shown(([nodes.clone(), vec![ahead.clone()]].concat(), &[]), "b", NOW, &|_| None);
        assert_eq!(beside.iter().map(|one| one.lives).collect::<Vec<_>>(), [true, true, false, false]);
        // Unless the node is heard. Red without `ahead.is_some()`.
        let heard = shown((vec![ahead], &[]), "b", NOW, &|_| Some(1));
        assert_eq!(heard.iter().map(|one| (one.lives, one.ahead)).collect::<Vec<_>>(), [(true, Some(1))]);
        // Red without `has_stopped`: a node that stopped a moment ago could not be forgotten.
        let stopped = shown((vec![node("s", Span::ZERO, Journal::Closed)], &[]), "b", NOW, &|_| Some(1));
        assert!(!stopped[0].lives);
        let told = |waiting: &[Concerned]| {
            let shown = shown((nodes.clone(), waiting), "b", NOW, &|_| None);
            shown.into_iter().map(|one| (one.node.node, one.own, one.lives, one.fence)).collect::<Vec<_>>()
        };
        let [a, b, c] = [("a", false, true), ("b", true, true), ("c", false, false)];
        let one = |(name, own, lives): (&str, bool, bool), fence| (name.to_owned(), own, lives, fence);
        assert_eq!(told(&[]), [one(a, None), one(b, None), one(c, None)]);
        let waiting = [waited("c", 4), waited("c", 5), waited("e", 5)];
        assert_eq!(told(&waiting), [one(a, None), one(b, None), one(c, Some(5)), one(("e", false, false), Some(5))]);
    }
}
