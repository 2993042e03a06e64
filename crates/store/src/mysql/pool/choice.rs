//! Which of several servers is used: the first that is fit. One that only follows another comes after all that do not: what is written
//! there reaches nobody, while others may write to the one that it follows.

use super::{State, together};
use crate::mysql::connect::{Link, Node, Refused};
use crate::mysql::fitness::Fitness;

/// A server of this number, with a connection to it.
pub(super) type Chosen = (usize, (Link, Fitness));

/// Asks servers in this order; why none may be used, otherwise.
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
    /// Says, once, what an operator should know of the server that is used.
    pub(super) fn advise(&mut self) {
        for advice in self.fitness.advice() {
            if !self.advised.contains(&advice) {
                tracing::warn!(server = self.fitness.identity, "{advice}");
                self.advised.push(advice);
            }
        }
    }
}
