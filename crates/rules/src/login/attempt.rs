//! One attempt to sign in with a password: unknown, disabled and wrong look the same.

use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::login::session::{Entry, Method, Origin, Session, Started, enter};
use crate::login::throttle::{Counter, Policy};
use crate::people::User;
use crate::realm::Settings;
use crate::secret::Handle;
use crate::time::{Span, Time};
use crate::{Fresh, login::throttle::Counted};

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown, disabled or wrong: nobody is told which.
    Wrong,
    /// Too many failures before: try again after so long.
    Wait(Span),
}

/// The counters under which an attempt falls.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// The account's (or the account's on a known device).
    pub account: Handle,
    /// The address's.
    pub address: Handle,
}

/// What is known before a password is hashed.
pub struct Before<'a> {
    /// Where the attempt is counted.
    pub counters: Counters,
    /// Earlier failures of the account.
    pub account: Option<Counter>,
    /// Earlier failures of the address; `None` too where this browser is known to the account.
    pub address: Option<Counter>,
    /// How guessers are slowed.
    pub policy: &'a Policy,
}

/// Admits an attempt and counts it as failed before anything is hashed. Known and unknown names alike.
pub fn begin(before: &Before<'_>, now: Time) -> Decision<Counted, Refusal> {
    if let Err(wait) = before.policy.leaky_admits(before.address, before.policy.address_free, now) {
        return Decision::refuse(Refusal::Wait(wait));
    }
    match before.policy.admit(before.counters.account, before.account, before.policy.free, now) {
        Err(wait) => Decision::refuse(Refusal::Wait(wait)),
        Ok(counted) => Decision::accept(counted.clone()).and(Change::CountAttempt(counted)),
    }
}

/// What is known after the hash.
pub struct After<'a> {
    /// The account of that name, if there is one.
    pub user: Option<&'a User>,
    /// Whether the password was its password.
    pub matches: bool,
    /// Where the attempt is counted.
    pub counters: Counters,
    /// The live session of this browser.
    pub before: Option<&'a Session>,
    /// From where.
    pub origin: &'a Origin,
}

/// Judges an attempt whose password was hashed: a session, or a refusal that counts.
pub fn judge(after: &After<'_>, settings: &Settings, now: Time, fresh: &Fresh) -> Decision<Started, Refusal> {
    if let (true, Some(user)) = (after.matches, after.user) {
        let entry = Entry { user, method: Method::Password, before: after.before, origin: after.origin };
        let entered = enter(&entry, settings, now, fresh);
        if let Ok(started) = entered.reply {
            let forget = Change::ForgetAttempts { key: after.counters.account };
            return Decision { changes: entered.changes, reply: Ok(started) }.and(forget);
        }
    }
    let count = Change::CountFailure { key: after.counters.address, at: now, leak: settings.throttle.leak };
    let failed = Decision::refuse(Refusal::Wrong).and(count);
    match after.user {
        Some(user) => {
            let event = Event::new(Kind::SignInFailed, now).user(&user.id).address(&after.origin.address);
            failed.and(Change::Record(event))
        }
        None => failed.and(Change::CountStranger { address: after.origin.address.clone(), at: now }),
    }
}
