//! How an iteration can go wrong.

use super::Step;
use crate::wire::Fault;
use std::time::Duration;

/// Why an iteration ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// The step in which it ended.
    pub step: Step,
    /// What went wrong.
    pub cause: Cause,
}

/// What went wrong in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// 503 or 429 with Retry-After (RFC 9110 §15.6.4, RFC 6585 §4): the server refuses in time. Not a failure.
    Refused {
        /// Which of the two.
        status: u16,
        /// How long the server asks the visitor to stay away.
        retry_after: Duration,
        /// How long the refusal took.
        took: Duration,
    },
    /// No response at all.
    Lost(Fault),
    /// A response that is not what the step needs: status and error code, or a sentence.
    Wrong(String),
}

impl std::fmt::Display for Setback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.step.name(), self.cause)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Refused { status, retry_after, .. } => {
                write!(f, "{status}, come back after {} s", retry_after.as_secs())
            }
            Cause::Lost(fault) => write!(f, "{fault}"),
            Cause::Wrong(what) => f.write_str(what),
        }
    }
}

impl Step {
    pub(super) fn wrong(self, what: impl AsRef<str>) -> Setback {
        Setback { step: self, cause: Cause::Wrong(plain(what.as_ref())) }
    }
}

/// Cleans text for terminals and reports, which may be the target's own words: removes control characters, which would
/// move a terminal's cursor, and limits the length to a few lines.
pub(super) fn plain(said: &str) -> String {
    const LONGEST: usize = 300;
    said.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_target_says_moves_no_cursor_and_fills_no_screen() {
        let said = |what: &str| Step::Login.wrong(what).to_string();
        assert_eq!(said("redirected with error \x1b[2Jno\r\n\u{9b}A"), "login: redirected with error [2JnoA");
        assert_eq!(said(&"ä".repeat(100_000)).chars().count(), "login: ".len() + 300);
    }
}
