//! How the end of a long run differs from its beginning: a leak or growth shows here.

use super::told;
use crate::timeline::{Sketch, Slice};

/// The words that the note begins with.
const FIRST: &str = "first quarter ";
/// In seconds; a shorter run says little about drift.
const LONG: f64 = 60.0;

/// Compares the last quarter of a long run with the first; `None` for a short one, or one whose load changed.
pub(super) fn drift(timeline: &[Slice]) -> Option<String> {
    let steady = timeline.windows(2).all(|pair| pair[0].level == pair[1].level);
    // A run that was ended early may have fewer slices than quarters.
    if !steady || timeline.len() < 4 || timeline.iter().map(|slice| slice.seconds).sum::<f64>() < LONG {
        return None;
    }
    let quarter = |slices: &[Slice]| {
        let (mut all, mut managed, mut seconds) = (Sketch::default(), 0, 0.0);
        for slice in slices {
            all.merge(&slice.latencies);
            managed += slice.managed();
            seconds += slice.seconds;
        }
        let [p50, p99] = [0.5, 0.99].map(|share| told(all.count(), all.quantile(share)));
        format!("{:.1}/s, p50 {p50} ms, p99 {p99} ms", managed as f64 / seconds)
    };
    let length = timeline.len() / 4;
    let (first, last) = (quarter(&timeline[..length]), quarter(&timeline[timeline.len() - length..]));
    Some(format!("{FIRST}{first}; last {last}"))
}

/// Returns true for a note on drift. It consists of the figures of one run, which no other run has.
pub(crate) fn is_drift(note: &str) -> bool {
    note.starts_with(FIRST)
}
