//! Chooses one of several servers: the first that is fit. A replica comes after all servers that are not replicas: what
//! is written to it reaches no other server, while others may write to its primary.

use super::{State, together};
use crate::mysql::connect::{Link, Node, Refused};
use crate::mysql::fitness::Fitness;

/// The number of a server, with a connection to it.
pub(super) type Chosen = (usize, (Link, Fitness));

/// Asks servers in this order, and returns the one to use, or why none may be used.
pub(super) async fn first_fit(nodes: &[Node], order: impl Iterator<Item = usize>, era: u64) -> Result<Chosen, Refused> {
    let (mut second, mut refusals) = (None, Vec::new());
    for at in order {
        match nodes[at].connect(era).await {
            Ok(found) if !found.1.is_replica => return Ok((at, found)),
            Ok(found) if second.is_none() => second = Some((at, found)),
            Ok(_) => {}
            Err(refused) => refusals.push(refused),
        }
    }
    second.ok_or_else(|| together(refusals))
}

impl State {
    /// Logs, once, what an operator should know about the server in use.
    pub(super) fn advise(&mut self) {
        for advice in self.fitness.advice() {
            if !self.advised.contains(&advice) {
                tracing::warn!(server = self.fitness.identity, "{advice}");
                self.advised.push(advice);
            }
        }
    }
}
