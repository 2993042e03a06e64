//! What a server refused: in which step, with which status, and how long the refusals took.

use super::{Latency, told};
use crate::record::Record;
use crate::visitor::Step;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;

/// Refusals of one step with one status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusals {
    /// Which step.
    pub step: Step,
    /// 503 or 429, with Retry-After.
    pub status: u16,
    /// How many.
    pub count: u64,
    /// How long they took.
    pub latency: Latency,
}

impl Refusals {
    /// Returns the refusals, most frequent first.
    pub(super) fn of(record: &Record) -> Vec<Refusals> {
        let each = record.refused.iter().map(|((step, status), latencies)| Refusals {
            step: *step,
            status: *status,
            count: latencies.count(),
            latency: Latency::from(latencies),
        });
        let mut all: Vec<_> = each.collect();
        all.sort_by_key(|one| Reverse(one.count));
        all
    }
}

/// Omits the count, which the caller prints before it.
impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p50 = told(self.count, self.latency.p50);
        write!(f, "{} refused with {}, p50 {p50} ms", self.step.name(), self.status)
    }
}
