//! Signing in: the password form, the choice of an account, and sign-up.

use super::messages::Messages;
use super::problem::{Problem, Setback};

/// Why the last attempt to sign in did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginProblem {
    /// An unknown user, a disabled one, an address that is not confirmed, or a wrong password: the same words for all.
    Wrong,
    /// Too many failures.
    Throttled {
        /// Whole seconds to wait.
        seconds: i64,
    },
    /// The server has more passwords to check than time; nothing was checked.
    Busy {
        /// Whole seconds to wait.
        seconds: i64,
        /// Whether its database is away.
        away: bool,
    },
}

impl LoginProblem {
    /// Returns the setback of the form.
    pub fn setback(self) -> Setback {
        match self {
            LoginProblem::Wrong => Setback::Typed,
            LoginProblem::Throttled { seconds } => Setback::Throttled { seconds },
            LoginProblem::Busy { seconds, away } => Setback::Busy { seconds, away },
        }
    }

    /// Returns the sentence; a user who has to sign in `again` has typed only a password.
    fn text(&self, again: &bool, t: &Messages) -> String {
        match self {
            LoginProblem::Wrong if *again => format!("{} {}", t.say("login.wrong_again"), t.say("login.forgotten")),
            LoginProblem::Wrong => format!("{} {}", t.say("login.wrong"), t.say("login.forgotten")),
            LoginProblem::Throttled { seconds } => t.with_wait("problem.throttled", *seconds),
            LoginProblem::Busy { seconds, away: false } => t.with_wait("problem.busy", *seconds),
            LoginProblem::Busy { seconds, away: true } => t.with_wait("away.sign_in", *seconds),
        }
    }
}

/// The form of `POST /login`: `flow`, `login`, `password`. Its "use another account" posts `flow` and `choice=other` to
/// `/login/choose`.
#[derive(Clone, Copy, Debug)]
pub struct LoginPage<'a> {
    /// The login flow, opaque.
    pub flow: &'a str,
    /// The application's name; `None` for our own pages.
    pub client: Option<&'a str>,
    /// Whether this leads to connecting a device.
    pub device: bool,
    /// What was typed before, or the `login_hint`.
    pub login: &'a str,
    /// Whether `login` is fixed: the same user has to sign in again (prompt=login, id_token_hint).
    pub again: bool,
    /// The user who is signed in already, if any user may sign in.
    pub already: Option<&'a str>,
    /// What was wrong with the last attempt.
    pub problem: Option<LoginProblem>,
    /// Where to make an account, if users may: a path within the realm's base, query included.
    pub sign_up: Option<&'a str>,
}

impl LoginPage<'_> {
    fn wrong(&self) -> bool {
        self.problem == Some(LoginProblem::Wrong)
    }
}

/// The forms of `POST /login/choose`: `flow` and `choice`, which is `continue` or `other` (prompt=select_account).
#[derive(Clone, Copy, Debug)]
pub struct AccountChoicePage<'a> {
    /// The login flow, opaque.
    pub flow: &'a str,
    /// The application's name; `None` for our own pages.
    pub client: Option<&'a str>,
    /// The username of the account that is signed in.
    pub username: &'a str,
    /// Its e-mail address, if it has one.
    pub email: Option<&'a str>,
}

/// The form of `POST /signup`: `flow`, `username`, `email` (may be empty), `password`.
#[derive(Clone, Copy, Debug)]
pub struct SignUpPage<'a> {
    /// The login flow, opaque.
    pub flow: &'a str,
    /// The application's name; `None` for our own pages.
    pub client: Option<&'a str>,
    /// The username as typed before.
    pub username: &'a str,
    /// The e-mail address as typed before.
    pub email: &'a str,
    /// The user who is signed in already.
    pub already: Option<&'a str>,
    /// The fewest characters of a password.
    pub minimum_password: usize,
    /// What was wrong with the last attempt.
    pub problems: &'a [Problem],
    /// Where users who have an account sign in: a path within the realm's base, query included.
    pub sign_in: Option<&'a str>,
}

super::page!(LoginPage<'_>, "login.html");
super::page!(AccountChoicePage<'_>, "choose.html");
super::page!(SignUpPage<'_>, "signup.html");

/// Returns the letter that stands for a name instead of a picture.
pub(super) fn initial(name: &str) -> String {
    name.chars().find(|c| c.is_alphanumeric()).map_or_else(|| "?".to_owned(), |c| c.to_uppercase().collect())
}
