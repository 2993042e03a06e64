//! What a node keeps on a disk of its own.

use rules::ending::Record;
use rules::{Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::engine::Answer;

/// How long what was acknowledged is kept.
pub const KEPT: Span = Span::hours(24);

/// What acknowledged batches ended, in the order in which they were acknowledged. Nothing of it is ever changed.
pub trait Journal: Send + Sync {
    /// Adds a record; answers once it is on the disk.
    fn append(&self, record: &Record) -> Answer<'_, (), String>;
    /// Why nothing can be added at present.
    fn works(&self) -> Result<(), String>;
    /// The numbers of the parts that it has, the newest first.
    fn parts(&self) -> Result<Vec<u64>, String>;
    /// The records of a part, the oldest first.
    fn read(&self, part: u64) -> Result<Vec<Record>, String>;
    /// Removes parts in which nothing is newer.
    fn forget(&self, before: Time) -> Result<(), String>;
    /// Whether older parts than those that it has were removed.
    fn is_cut(&self) -> bool;
    /// What was remembered last.
    fn memory(&self) -> Memory;
    /// Remembers it, over any end.
    fn remember(&self, memory: &Memory) -> Result<(), String>;
}

/// A journal that several use.
pub type Kept = Arc<dyn Journal>;

/// What a node knows of the database that it left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What the node is called, at every start.
    pub node: String,
    /// Which server it acknowledged for; none: it never did.
    #[serde(default)]
    pub identity: Option<String>,
    /// The last fence that it knows of, by number and time.
    #[serde(default)]
    pub fence: Option<(i64, Time)>,
    /// When the last fence was raised that the journal could not answer, since it does not reach back to what was lost then: that
    /// one and those before it are answered by an operator alone.
    #[serde(default)]
    pub short: Option<Time>,
    /// The mark that the database acknowledged.
    #[serde(default)]
    pub mark: i64,
    /// When it did, by this node's clock.
    #[serde(default)]
    pub seen: Option<Time>,
    /// Whether a failover could have lost something of what was acknowledged since.
    #[serde(default)]
    pub lossy: bool,
}
