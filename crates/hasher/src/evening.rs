//! Answers leave in steps of time that say nothing of how long they took.

use std::time::Duration;

const STEP: Duration = Duration::from_millis(50);

/// How long is left of `elapsed` until the next step that is no sooner than `least`.
pub(crate) fn left(elapsed: Duration, least: Duration) -> Duration {
    let (least, step) = (elapsed.max(least).as_nanos(), STEP.as_nanos());
    let due = Duration::from_nanos(u64::try_from(least.div_ceil(step) * step).unwrap_or(u64::MAX));
    due.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_steps() {
        let leaves = |elapsed, hash| {
            let elapsed = Duration::from_millis(elapsed);
            (elapsed + left(elapsed, 2 * Duration::from_millis(hash))).as_millis()
        };
        assert_eq!([leaves(5, 5), leaves(49, 5), leaves(50, 5), leaves(51, 5)], [50, 50, 50, 100]);
        assert_eq!([leaves(5, 30), leaves(5, 60), leaves(140, 30)], [100, 150, 150]);
    }
}
