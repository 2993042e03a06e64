//! What a node keeps on its own disk.

use super::nodes::may_be_swept;
use rules::ending::Record;
use rules::{Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::engine::Answer;

/// How long records of what was acknowledged are kept.
pub const KEPT: Span = Span::hours(24);

/// What acknowledged batches ended, in the order in which they were acknowledged. A record is never changed.
pub trait Journal: Send + Sync {
    /// Adds a record; answers once it is on the disk.
    fn append(&self, record: &Record) -> Answer<'_, (), String>;
    /// Fails with the reason why nothing can be added at present.
    fn works(&self) -> Result<(), String>;
    /// The numbers of the parts that it has, newest first.
    fn parts(&self) -> Result<Vec<u64>, String>;
    /// The records of a part, oldest first.
    fn read(&self, part: u64) -> Result<Vec<Record>, String>;
    /// Removes the parts that contain nothing newer than `before`.
    fn forget(&self, before: Time) -> Result<(), String>;
    /// Whether parts older than those that it has were removed.
    fn is_cut(&self) -> bool;
    /// Returns what was remembered last.
    fn memory(&self) -> Memory;
    /// Remembers `memory` across any end of the process.
    fn remember(&self, memory: &Memory) -> Result<(), String>;
}

/// A journal that has several owners.
pub type Kept = Arc<dyn Journal>;

/// What a node remembers of the database that it last worked with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The node's name, which is the same at every start.
    pub node: String,
    /// The server for which it acknowledged commits; `None` if it never did.
    #[serde(default)]
    pub identity: Option<String>,
    /// The last fence that it knows of, by number and time.
    #[serde(default)]
    pub fence: Option<(i64, Time)>,
    /// When the last fence was raised that the journal could not answer, because it does not reach back to what was
    /// lost then: only an operator can answer that fence and those before it.
    #[serde(default)]
    pub short: Option<Time>,
    /// The last mark that the database acknowledged.
    #[serde(default)]
    pub mark: i64,
    /// When the database acknowledged it, by this node's clock.
    #[serde(default)]
    pub seen: Option<Time>,
    /// Whether a failover could have lost something that was acknowledged since.
    #[serde(default)]
    pub lossy: bool,
}

impl Memory {
    /// Whether a database that has `mark` of this node, or no row of the node, lacks what the node acknowledged.
    pub fn is_ahead_of(&self, mark: Option<i64>, now: Time) -> bool {
        let swept = mark.is_none() && may_be_swept(self.seen, now);
        mark.unwrap_or(0) < self.mark && !swept
    }
}
