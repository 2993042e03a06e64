//! Set-up: the first account, made through the one-time link.

use super::problem::Problem;

/// The form of `POST /setup`: `csrf`, `token`, `username`, `email`, `password`.
#[derive(Clone, Copy, Debug)]
pub struct SetupPage<'a> {
    /// The CSRF token.
    pub csrf: &'a str,
    /// The set-up code as typed before; empty at first, when the script takes it from the fragment.
    pub token: &'a str,
    /// The username as typed before.
    pub username: &'a str,
    /// The e-mail address as typed before.
    pub email: &'a str,
    /// The fewest characters of a password.
    pub minimum_password: usize,
    /// What was wrong with the last attempt.
    pub problems: &'a [Problem],
}

/// Why the set-up link does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupClosed {
    /// The server has an owner.
    Done,
    /// The link is too old, or was replaced by a newer one.
    Expired,
}

/// Shown instead of the form if the link does nothing (410).
#[derive(Clone, Copy, Debug)]
pub struct SetupClosedPage {
    /// Why the link does nothing.
    pub reason: SetupClosed,
}

impl SetupClosedPage {
    fn done(&self) -> bool {
        self.reason == SetupClosed::Done
    }
}

super::page!(SetupPage<'_>, "setup.html");
super::page!(SetupClosedPage, "setup_closed.html");
