//! Users who are not signed in, and whether there is time to hash their passwords.

use crate::browser::Browser;
use crate::tally::Entry;
use crate::{App, Fault};
use std::time::Duration;

/// How much of the waiting budget may be used up before newcomers are asked to come back: a user who has typed a
/// password goes first.
const NEWCOMERS: f64 = 0.75;

/// How far a user who is not signed in has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// Asks for the form.
    Comes,
    /// Has typed a password.
    Typed,
}

impl App {
    /// Checks that a password of this browser could be hashed in time, before anything is spent on it: every door that
    /// takes a password asks. A user who has typed one and is refused is counted here, because nothing is begun that
    /// would count the refusal.
    ///
    /// # Errors
    /// [`Fault::Busy`].
    pub fn has_time_for(&self, browser: &Browser, guest: Guest) -> Result<(), Fault> {
        let share = match guest {
            Guest::Comes => NEWCOMERS,
            Guest::Typed => 1.0,
        };
        let wait = self.hasher.crowded(&self.fair_key(browser), share);
        let Some(wait) = wait.or_else(|| self.crowded_address(browser, guest)) else { return Ok(()) };
        if guest == Guest::Typed {
            self.tally.sign_ins.one(Entry::Busy);
        }
        Err(Fault::Busy(wait.into()))
    }

    /// The same for a user who asks for a form with a password: one who is signed in has none to type. A cookie alone
    /// proves nothing, because anybody can make one up: its session has to be there.
    ///
    /// # Errors
    /// [`Fault::Busy`]; what keeps the session from being read.
    pub async fn has_time_for_newcomer(&self, browser: &Browser) -> Result<(), Fault> {
        match self.session(browser).await? {
            Some(_) => Ok(()),
            None => self.has_time_for(browser, Guest::Comes),
        }
    }

    /// Returns how much too long a newcomer would wait for others of the same address. A browser that an account may
    /// know does not.
    fn crowded_address(&self, browser: &Browser, guest: Guest) -> Option<Duration> {
        if guest == Guest::Typed || browser.device.is_some() || self.stakes.nobody_waits() {
            return None;
        }
        let keys: Vec<_> = self.shared_counters("sign-in", browser).iter().map(|one| one.key).collect();
        self.stakes.crowded(&keys, self.patience().mul_f64(NEWCOMERS))
    }
}
