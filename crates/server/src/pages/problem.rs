//! What is wrong with a user's input: one sentence and one field each.

use super::messages::Messages;
use rules::login::password::MAX_BYTES;
use rules::people::user::LONGEST_CLAIM;

/// A mistake in a form, shown in a summary above it and beside its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The set-up code is unknown, used or older than 30 minutes.
    SetupCode,
    /// The username is empty, too long or has characters that are not allowed.
    Username,
    /// The username has the form of an id.
    UsernameForm,
    /// The username is taken.
    UsernameTaken,
    /// The e-mail address is not valid.
    Email,
    /// Somebody signs in with the e-mail address.
    EmailTaken,
    /// The e-mail address is verified, and the sign-in too long ago to change it.
    EmailKept,
    /// The sign-in is too long ago to end other sessions.
    SessionsKept,
    /// A name is longer than can be stored.
    NameLong {
        /// Its claim, which is also its field.
        field: &'static str,
    },
    /// A name has no visible character, or one that is not allowed.
    Name {
        /// Its claim, which is also its field.
        field: &'static str,
    },
    /// The password has fewer characters than the minimum.
    PasswordShort {
        /// The fewest characters allowed.
        minimum: usize,
    },
    /// The password has more bytes than are accepted.
    PasswordLong,
    /// The password is on the list of common ones.
    PasswordCommon,
    /// The password is made of the user's own name or address.
    PasswordPersonal,
    /// The current password, asked for before a change, is wrong.
    CurrentPassword,
    /// The page was older than the session: something was changed in another window. Nothing was done.
    Elsewhere,
    /// Too many attempts; new ones count again after a while.
    Throttled {
        /// Whole seconds to wait.
        seconds: i64,
    },
    /// The server is busy; nothing was checked.
    Busy {
        /// Whole seconds to wait.
        seconds: i64,
        /// Whether its database is away: then something may have been saved.
        away: bool,
    },
}

/// Why a form comes back instead of a result, as far as a program needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setback {
    /// The input is not acceptable.
    Typed,
    /// The input was not checked: too many attempts.
    Throttled {
        /// Whole seconds to wait.
        seconds: i64,
    },
    /// The input was not checked: the server is busy.
    Busy {
        /// Whole seconds to wait.
        seconds: i64,
        /// Whether its database is away: then it may have been checked, and nobody knows.
        away: bool,
    },
}

impl Setback {
    /// Returns the setback of `problems`: one that says how long to wait takes precedence.
    pub fn of(problems: &[Problem]) -> Option<Self> {
        let mut setbacks = problems.iter().map(Problem::setback);
        setbacks.find(|setback| *setback != Setback::Typed).or((!problems.is_empty()).then_some(Setback::Typed))
    }
}

impl Problem {
    /// Returns the problem to show above a form that was not checked; `None` if it was.
    pub fn later(setback: Setback) -> Option<Self> {
        match setback {
            Setback::Typed => None,
            Setback::Throttled { seconds } => Some(Problem::Throttled { seconds }),
            Setback::Busy { seconds, away } => Some(Problem::Busy { seconds, away }),
        }
    }

    fn setback(&self) -> Setback {
        match *self {
            Problem::Throttled { seconds } => Setback::Throttled { seconds },
            Problem::Busy { seconds, away } => Setback::Busy { seconds, away },
            _ => Setback::Typed,
        }
    }

    /// Returns the element that it concerns, if it is about one: a field, or what stands in place of a button.
    pub(super) fn field(&self) -> Option<&'static str> {
        match self {
            Problem::SetupCode => Some("token"),
            Problem::Username | Problem::UsernameForm | Problem::UsernameTaken => Some("username"),
            Problem::Email | Problem::EmailTaken | Problem::EmailKept => Some("email"),
            Problem::SessionsKept => Some("sessions-kept"),
            Problem::NameLong { field } | Problem::Name { field } => Some(field),
            Problem::CurrentPassword => Some("current"),
            Problem::PasswordShort { .. }
            | Problem::PasswordLong
            | Problem::PasswordCommon
            | Problem::PasswordPersonal => Some("password"),
            Problem::Elsewhere | Problem::Throttled { .. } | Problem::Busy { .. } => None,
        }
    }

    pub(super) fn text(&self, t: &Messages) -> String {
        let key = match self {
            Problem::SetupCode => "problem.setup_code",
            Problem::Username => "problem.username",
            Problem::UsernameForm => "problem.username_form",
            Problem::UsernameTaken => "problem.username_taken",
            Problem::Email => "problem.email",
            Problem::EmailTaken => "problem.email_taken",
            Problem::EmailKept => "problem.email_kept",
            Problem::SessionsKept => "problem.sessions_kept",
            Problem::Name { .. } => "problem.name",
            Problem::PasswordCommon => "problem.password_common",
            Problem::PasswordPersonal => "problem.password_personal",
            Problem::CurrentPassword => "problem.current_password",
            Problem::Elsewhere => "problem.elsewhere",
            Problem::NameLong { .. } => return t.with("problem.name_long", "maximum", &LONGEST_CLAIM.to_string()),
            Problem::PasswordLong => return t.with("problem.password_long", "maximum", &MAX_BYTES.to_string()),
            Problem::PasswordShort { minimum } => {
                return t.with("problem.password_short", "minimum", &minimum.to_string());
            }
            Problem::Throttled { seconds } => return t.with_wait("problem.throttled", *seconds),
            Problem::Busy { seconds, away: false } => return t.with_wait("problem.busy_form", *seconds),
            Problem::Busy { seconds, away: true } => return t.with_wait("away.form", *seconds),
        };
        t.say(key).to_owned()
    }
}

/// Returns whether the input is wrong. A wait concerns no field, and where a button is missing nothing was entered.
pub(super) fn are_of_fields(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.field().is_some() && *problem != Problem::SessionsKept)
}

/// Returns the hint next to the field of a new password before anything is wrong with it.
pub(super) fn password_hint(minimum: &usize, t: &Messages) -> String {
    t.with("field.password_hint", "minimum", &minimum.to_string())
}

/// Returns the sentence about `field`, if any of `problems` concerns it.
pub(super) fn about(problems: &[Problem], field: &str, t: &Messages) -> Option<String> {
    problems.iter().find(|problem| problem.field() == Some(field)).map(|problem| problem.text(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_entered_is_to_be_checked() {
        // Red without the exception in `are_of_fields`.
        assert!(!are_of_fields(&[Problem::SessionsKept, Problem::Throttled { seconds: 1 }]));
        assert!(are_of_fields(&[Problem::SessionsKept, Problem::EmailKept]));
    }
}
