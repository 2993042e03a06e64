//! Stacks merged into a tree: one node for each function and each way to it.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Stands for the outermost functions if there were too many.
pub const DEEPER: &str = "[deeper than is kept]";
/// Stands for the callers if the stack could not be walked to its end.
pub const LOST: &str = "[callers lost]";

/// A function, below the functions that called it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The function's name; on the first level, a kind of threads.
    pub name: String,
    /// The node that called it, which always comes before it. `None` on the first level.
    pub parent: Option<usize>,
    /// Samples in it and in what it called.
    pub total: u64,
    /// Samples in itself.
    pub own: u64,
}

/// A stack with names, the outermost function first.
pub struct Stack<'a> {
    /// The kind of its thread.
    pub thread: &'a str,
    /// The functions.
    pub functions: Vec<&'a str>,
    /// How often it was seen.
    pub times: u64,
    /// Stands for the outermost functions if they are missing.
    pub outside: Option<&'static str>,
}

/// Merges stacks. Children follow their parents, the most frequent first.
pub fn merge<'a>(stacks: impl IntoIterator<Item = Stack<'a>>) -> Vec<Node> {
    let mut grown: Vec<Node> = Vec::new();
    let mut places: HashMap<(Option<usize>, &'a str), usize> = HashMap::new();
    for stack in stacks.into_iter().filter(|stack| stack.times > 0) {
        let mut parent = None;
        for name in [stack.thread].into_iter().chain(stack.outside).chain(stack.functions) {
            let at = *places.entry((parent, name)).or_insert_with(|| {
                grown.push(Node { name: name.to_owned(), parent, total: 0, own: 0 });
                grown.len() - 1
            });
            grown[at].total += stack.times;
            parent = Some(at);
        }
        if let Some(innermost) = parent {
            grown[innermost].own += stack.times;
        }
    }
    sorted(grown)
}

/// Returns the children of each node, and at the end those of the first level.
pub fn children(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); nodes.len() + 1];
    for (at, node) in nodes.iter().enumerate() {
        children[node.parent.unwrap_or(nodes.len())].push(at);
    }
    children
}

/// Returns the same tree in the order in which it is drawn.
fn sorted(nodes: Vec<Node>) -> Vec<Node> {
    let mut below = children(&nodes);
    for siblings in &mut below {
        siblings
            .sort_by(|a, b| nodes[*b].total.cmp(&nodes[*a].total).then_with(|| nodes[*a].name.cmp(&nodes[*b].name)));
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut next: Vec<(usize, Option<usize>)> = below[nodes.len()].iter().rev().map(|at| (*at, None)).collect();
    while let Some((at, parent)) = next.pop() {
        next.extend(below[at].iter().rev().map(|child| (*child, Some(order.len()))));
        order.push(Node { parent, ..nodes[at].clone() });
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack<'a>(thread: &'a str, functions: &[&'a str], times: u64) -> Stack<'a> {
        Stack { thread, functions: functions.to_vec(), times, outside: None }
    }

    fn shown(nodes: &[Node]) -> Vec<(&str, Option<usize>, u64, u64)> {
        nodes.iter().map(|node| (&*node.name, node.parent, node.total, node.own)).collect()
    }

    #[test]
    fn what_stacks_have_in_common_is_one_node() {
        let stacks = [
            stack("network", &["main", "poll"], 2),
            stack("hashing", &["run", "hash", "fill"], 5),
            stack("network", &["main", "poll", "sign"], 1),
            stack("hashing", &["run", "hash"], 3),
            stack("network", &["main", "accept"], 4),
            stack("network", &[], 0),
        ];
        let expected = [
            ("hashing", None, 8, 0),
            ("run", Some(0), 8, 0),
            ("hash", Some(1), 8, 3),
            ("fill", Some(2), 5, 5),
            ("network", None, 7, 0),
            ("main", Some(4), 7, 0),
            ("accept", Some(5), 4, 4),
            ("poll", Some(5), 3, 2),
            ("sign", Some(7), 1, 1),
        ];
        assert_eq!(shown(&merge(stacks)), expected);
    }

    #[test]
    fn the_same_function_below_another_one_is_another_node() {
        let nodes = merge([stack("a", &["f", "g", "f"], 1), stack("b", &["f"], 1)]);
        assert_eq!(nodes.iter().filter(|node| node.name == "f").count(), 3);
    }

    #[test]
    fn a_stack_that_was_too_deep_is_not_mixed_with_whole_ones() {
        let nodes = merge([Stack { outside: Some(DEEPER), ..stack("a", &["f"], 1) }, stack("a", &["f"], 1)]);
        let expected = [("a", None, 2, 0), (DEEPER, Some(0), 1, 0), ("f", Some(1), 1, 1), ("f", Some(0), 1, 1)];
        assert_eq!(shown(&nodes), expected);
    }
}
