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
    Wrong(Reason),
}

/// What was wrong with a response, and what is the same whenever that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What all failures of this kind have in common; those with the same text are counted together.
    pub what: String,
    /// What else this one says: a user, or what belongs to a single response.
    pub example: Option<String>,
    /// Both, as one sentence.
    pub whole: String,
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
            Cause::Wrong(reason) => f.write_str(&reason.whole),
        }
    }
}

impl Step {
    pub(crate) fn wrong(self, what: impl AsRef<str>) -> Setback {
        self.because(Reason::of(what.as_ref()))
    }

    pub(crate) fn because(self, reason: Reason) -> Setback {
        Setback { step: self, cause: Cause::Wrong(reason) }
    }
}

impl Cause {
    /// Returns what all failures of this kind have in common, and what this one says beyond that.
    pub fn split(&self) -> (String, Option<String>) {
        match self {
            Cause::Wrong(Reason { what, example, .. }) => (what.clone(), example.clone()),
            other => (other.to_string(), None),
        }
    }
}

impl Reason {
    /// Creates a reason that is the same whenever it occurs.
    pub(crate) fn of(what: &str) -> Reason {
        Reason { what: plain(what), example: None, whole: plain(what) }
    }

    /// Creates a reason from the target's own words. From the first word with a digit on, they usually belong to this
    /// one response: the number of a request, a time.
    pub(crate) fn said(before: &str, words: &str) -> Reason {
        let (common, rest) = words.split_at(first_number(words));
        let whole = plain(format!("{before}{words}").trim_end());
        if rest.is_empty() {
            return Reason { what: whole.clone(), example: None, whole };
        }
        Reason { what: plain(&format!("{before}{common}…")), example: Some(plain(rest)), whole }
    }

    /// Creates a reason that names a user: `say` builds the sentence around the words for the user, or without them.
    pub(crate) fn of_user(preposition: &str, login: &str, say: impl Fn(&str) -> String) -> Reason {
        let whole = plain(&say(&format!(" {preposition} {login}")));
        Reason { what: without(&plain(&say("")), login), example: Some(plain(login)), whole }
    }

    /// Adds who signed in, unless the reason says so: it may be one user of many.
    pub(crate) fn with_user(self, login: &str) -> Reason {
        let example = match self.example {
            Some(example) if example == plain(login) => Some(example),
            Some(example) => Some(plain(&format!("{login}: {example}"))),
            None => Some(plain(login)),
        };
        let names = self.whole.contains(login);
        let whole = if names { self.whole } else { plain(&format!("{} (as {login})", self.whole)) };
        Reason { what: without(&self.what, login), example, whole }
    }

    /// Adds something at the end.
    pub(crate) fn and(self, more: &str) -> Reason {
        let with = |text: &str| plain(&format!("{text}{more}"));
        Reason { what: with(&self.what), whole: with(&self.whole), ..self }
    }
}

/// Returns where the first word with a digit begins; the end of the text if no word has one.
fn first_number(text: &str) -> usize {
    let at = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let start = text[..at].rfind(char::is_whitespace);
    let start = start.map_or(0, |space| space + text[space..].chars().next().map_or(0, char::len_utf8));
    if at == text.len() { at } else { start }
}

/// Removes a name from what failures have in common. A very short one may be part of any word.
fn without(text: &str, login: &str) -> String {
    if login.len() < 3 { text.to_owned() } else { text.replace(login, "…") }
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

    /// Red where a failure is counted by its whole sentence: each user, and each number of a request, was another one.
    #[test]
    fn failures_that_are_alike_have_the_same_reason() {
        let reason = Reason::said("400 invalid_grant: ", "The code has expired. Trace ID: 5f0c Timestamp: 2026");
        assert_eq!(reason.what, "400 invalid_grant: The code has expired. Trace ID: …");
        assert_eq!(reason.example.as_deref(), Some("5f0c Timestamp: 2026"));
        assert_eq!(reason.whole, "400 invalid_grant: The code has expired. Trace ID: 5f0c Timestamp: 2026");
        assert_eq!(Reason::said("500 ", "7 of 9").what, "500 …");
        assert_eq!(Reason::said("500 ", ""), Reason::of("500"));
        assert_eq!(Reason::said("403 ", "not for you"), Reason::of("403 not for you"));
        let page = |login: &str| Reason::of_user("to", login, |to| format!("a page (Hello {login}) came back{to}: no"));
        assert_eq!(page("ann").whole, "a page (Hello ann) came back to ann: no");
        assert_eq!(
            (page("ann").what.as_str(), page("ann").example.as_deref()),
            ("a page (Hello …) came back: no", Some("ann"))
        );
        assert_eq!(page("ann").what, page("bob").what);
    }

    #[test]
    fn who_signed_in_is_named_once() {
        let with = |reason: Reason| reason.with_user("ann");
        let reason = with(Reason::of("403 Access denied"));
        assert_eq!((reason.what.as_str(), reason.whole.as_str()), ("403 Access denied", "403 Access denied (as ann)"));
        assert_eq!(reason.example.as_deref(), Some("ann"));
        assert_eq!(with(Reason::said("", "id 7")).example.as_deref(), Some("ann: 7"));
        let named = with(Reason::of("403 ann is not assigned"));
        assert_eq!((named.what.as_str(), named.whole.as_str()), ("403 … is not assigned", "403 ann is not assigned"));
        let page = Reason::of_user("of", "ann", |of| format!("a code is asked for{of}"));
        assert_eq!(with(page.clone()), page);
    }
}
