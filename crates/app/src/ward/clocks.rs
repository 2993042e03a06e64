//! Whether the clocks of nodes agree, as far as the times show at which nodes report that they are there (their beats).
//! A node that keeps reporting is running, whatever its clock says.

use crate::App;
use rules::{Span, Time};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::tables::nodes::Node;

/// Operators are told of a clock that is off by more. Nodes rely on differences below ten seconds (`refresh.grace`).
const OFF: Span = Span::seconds(5);
/// A clock is right again once it is off by no more than this. The difference seen is less than the real one by up to
/// five seconds, the time between two beats; how much less varies as two nodes' checks drift.
const RIGHT: Span = Span::seconds(1);
/// This many beats in a row must be off: a single one may have waited in a database that stood still.
const ENOUGH: u32 = 2;
/// A node that has reported nothing for this long is not running, and nothing is known of its clock.
const SILENT: Span = Span::seconds(30);

/// What this node saw of other nodes' clocks.
#[derive(Default)]
pub(crate) struct Clocks(Mutex<State>);

#[derive(Default)]
struct State {
    /// When the last check of the nodes began, by this node's clock.
    looked: Option<Time>,
    others: HashMap<String, Other>,
}

/// Another node.
struct Other {
    mark: i64,
    /// When a check last found that it had reported since the check before.
    heard: Option<Time>,
    /// By how many milliseconds, at least, its clock is ahead of this node's; negative where it is behind.
    ahead: i64,
    in_a_row: u32,
    told: bool,
}

/// What an operator is told about a node's clock.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// The clock is ahead by this many milliseconds; negative where it is behind.
    Off(i64),
    Right,
}

impl Clocks {
    /// Judges nodes whose rows were read between these two moments, by this node's clock.
    fn look(&self, nodes: &[Node], own: &str, (begun, read): (Time, Time)) -> Vec<(String, News)> {
        let mut state = self.state();
        // Nothing can be told between two checks if this node's clock was set back meanwhile.
        let before = state.looked.replace(begun).filter(|before| *before <= begun && begun <= read);
        state.others.retain(|name, _| nodes.iter().any(|node| node.node == *name));
        let mut news = Vec::new();
        for node in nodes.iter().filter(|node| node.node != own) {
            let fresh = Other { mark: node.mark, heard: None, ahead: 0, in_a_row: 0, told: false };
            let other = state.others.entry(node.node.clone()).or_insert(fresh);
            let spoke = std::mem::replace(&mut other.mark, node.mark) != node.mark;
            let Some(before) = before.filter(|_| spoke) else { continue };
            other.heard = Some(read);
            other.ahead = ahead(node.seen, (before, read));
            news.extend(other.judged().map(|what| (node.node.clone(), what)));
        }
        news
    }

    /// Returns by how many milliseconds another node's clock is ahead (0 where the difference is too small to report);
    /// `None` for a node that was not heard lately.
    fn skew(&self, node: &str, now: Time) -> Option<i64> {
        let state = self.state();
        let other = state.others.get(node).filter(|other| other.runs(now))?;
        Some(if other.told { other.ahead } else { 0 })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Other {
    fn judged(&mut self) -> Option<News> {
        let off = Span(self.ahead.saturating_abs());
        self.in_a_row = if off > OFF { self.in_a_row.saturating_add(1) } else { 0 };
        match self.told {
            false if self.in_a_row >= ENOUGH => {
                self.told = true;
                Some(News::Off(self.ahead))
            }
            true if off <= RIGHT => {
                self.told = false;
                Some(News::Right)
            }
            _ => None,
        }
    }

    fn runs(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| heard <= now && now.since(heard) <= SILENT)
    }
}

/// Returns by how much, at least, a clock is ahead that showed `seen` at some time between these two moments.
fn ahead(seen: Time, (after, before): (Time, Time)) -> i64 {
    let of = |other: Time| seen.0.saturating_sub(other.0);
    if seen > before { of(before) } else { of(after).min(0) }
}

impl App {
    /// Notes the beats of nodes that were read since `begun`, and logs clocks that differ.
    pub(super) fn mind_clocks(&self, nodes: &[Node], own: &str, begun: Time) {
        for (node, what) in self.clocks.look(nodes, own, (begun, self.clock.now())) {
            match what {
                News::Off(ahead) => {
                    let off = told(ahead);
                    tracing::warn!(node, off, "the clock of another node differs from this one's: is NTP on at both?");
                }
                News::Right => tracing::info!(node, "the clock of another node agrees with this one's again"),
            }
        }
    }

    /// By how many milliseconds, at least, a running node's clock is ahead of this one's; negative where it is behind.
    pub(super) fn skew_of(&self, node: &str) -> Option<i64> {
        self.clocks.skew(node, self.clock.now())
    }

    /// Returns the same for all running nodes but this one, in milliseconds.
    pub fn clock_skews(&self) -> Vec<(String, i64)> {
        let mut names: Vec<String> = self.clocks.state().others.keys().cloned().collect();
        names.sort_unstable();
        names.into_iter().filter_map(|name| self.skew_of(&name).map(|ahead| (name, ahead))).collect()
    }
}

/// Says for people how far a clock is off: `ahead by 40 s`.
pub fn told(ahead: i64) -> String {
    let side = if ahead < 0 { "behind" } else { "ahead" };
    format!("{side} by {} s", ahead.unsigned_abs() / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_000_000_000);

    fn node(name: &str, mark: i64, seen: Time) -> Node {
        Node { node: name.into(), seen, mark, about: None, gone: None }
    }

    /// What an operator is told at `count` checks, five seconds apart, about a clock that is off by `off` seconds.
    fn looks(clocks: &Clocks, from: i64, off: impl Fn(i64) -> i64, count: i64) -> Vec<News> {
        let look = |number: i64| {
            let now = START + Span::seconds(5 * number);
            let seen = Time(now.0 - 2000 + off(number) * 1000);
            let nodes = [node("own", number, now), node("other", number, seen)];
            clocks.look(&nodes, "own", (now, now)).into_iter().map(|(_, news)| news).collect::<Vec<_>>()
        };
        (from..from + count).flat_map(look).collect()
    }

    #[test]
    fn a_clock_that_is_off_is_told_of_once_until_it_is_right_again() {
        // Red without `told` or `ENOUGH`: each check would tell, or a single beat that was held up on its way.
        for (off, ahead) in [(40, 38_000), (-40, -37_000)] {
            let clocks = Clocks::default();
            assert_eq!(looks(&clocks, 0, |_| off, 10), [News::Off(ahead)]);
            assert_eq!(clocks.skew("other", START + Span::seconds(45)), Some(ahead));
            assert_eq!(looks(&clocks, 10, |_| 0, 10), [News::Right]);
            assert_eq!(clocks.skew("other", START + Span::seconds(95)), Some(0));
        }
        let clocks = Clocks::default();
        assert_eq!(looks(&clocks, 0, |number| if number == 5 { -40 } else { 2 }, 10), []);
        assert_eq!(told(40_900), "ahead by 40 s");
        assert_eq!(told(-40_900), "behind by 40 s");
    }

    #[test]
    fn a_node_that_says_nothing_is_away_whatever_its_last_word_was() {
        // Red without `spoke`: the age of its last beat would be taken for its clock.
        let clocks = Clocks::default();
        assert_eq!(looks(&clocks, 0, |_| 0, 2), []);
        let last = [node("other", 1, START)];
        for minute in 1..5 {
            let now = START + Span::minutes(minute);
            assert_eq!(clocks.look(&last, "own", (now, now)), []);
            assert_eq!(clocks.skew("other", now), None);
        }
        assert_eq!(clocks.look(&[], "own", (START, START)), []);
        assert!(clocks.state().others.is_empty(), "a node that is forgotten");
    }

    #[test]
    fn a_clock_of_this_node_that_was_set_back_tells_nothing_of_others() {
        // Red without the filter of `before`.
        let clocks = Clocks::default();
        assert_eq!(looks(&clocks, 1000, |_| 0, 2), []);
        assert_eq!(looks(&clocks, 2, |_| 0, 3), []);
    }
}
