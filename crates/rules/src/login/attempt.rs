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
    /// The address's; `None` where the address stands for everybody behind it and is not counted.
    pub address: Option<Handle>,
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
    match after.user {
        Some(user) => failed(after, settings, now).and(Change::Record(failure(user, after, now))),
        None => {
            let address = after.origin.address.clone();
            failed(after, settings, now).and(Change::CountStranger { address, at: now })
        }
    }
}

/// Judges the current password of somebody who is signed in, asked for before a change: guesses at it count like those
/// of a sign-in.
pub fn confirm(after: &After<'_>, settings: &Settings, now: Time) -> Decision<(), Refusal> {
    if after.matches {
        return Decision::accept(()).and(Change::ForgetAttempts { key: after.counters.account });
    }
    let event = after.user.map(|user| failure(user, after, now).detail("what", "current password"));
    failed(after, settings, now).with(event.map(Change::Record))
}

/// Counts an attempt that was made although nobody can say how it ended: the answer is not known here, and whoever made
/// it is told to come back. Otherwise guesses that cannot be confirmed in time would be free.
pub fn leave_open(after: &After<'_>, settings: &Settings, now: Time) -> Decision<(), Refusal> {
    let event = after.user.map(|user| failure(user, after, now).detail("why", "not confirmed"));
    failed(after, settings, now).with(event.map(Change::Record))
}

/// The account's counter stands where [`begin`] put it; the address's follows here.
fn failed<T>(after: &After<'_>, settings: &Settings, now: Time) -> Decision<T, Refusal> {
    let leak = settings.throttle.leak;
    Decision::refuse(Refusal::Wrong).with(after.counters.address.map(|key| Change::CountFailure { key, at: now, leak }))
}

fn failure(user: &User, after: &After<'_>, now: Time) -> Event {
    Event::new(Kind::SignInFailed, now).user(&user.id).address(&after.origin.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::user::tests::person;

    const ACCOUNT: Handle = Handle([1; 32]);
    const ADDRESS: Handle = Handle([2; 32]);
    const NOW: Time = Time(1_000_000);

    fn after<'a>(user: &'a User, matches: bool, address: Option<Handle>, origin: &'a Origin) -> After<'a> {
        After { user: Some(user), matches, counters: Counters { account: ACCOUNT, address }, before: None, origin }
    }

    fn counts(changes: &[Change]) -> bool {
        changes.iter().any(|change| matches!(change, Change::CountFailure { key, .. } if *key == ADDRESS))
    }

    #[test]
    fn bf_04_a_guess_counts_for_its_address_at_every_door_and_only_where_it_has_one() {
        let (ada, settings, origin) = (person("ada"), Settings::default(), Origin::default());
        for address in [Some(ADDRESS), None] {
            let after = after(&ada, false, address, &origin);
            let (signed_in, confirmed) =
                (judge(&after, &settings, NOW, &Fresh::new([3; 32])), confirm(&after, &settings, NOW));
            let open = leave_open(&after, &settings, NOW);
            assert!(signed_in.reply.is_err() && confirmed.reply.is_err() && open.reply.is_err());
            for changes in [signed_in.changes, confirmed.changes, open.changes] {
                assert_eq!(counts(&changes), address.is_some());
                assert!(changes.iter().any(|change| matches!(change, Change::Record(_))));
                assert!(!changes.iter().any(|change| matches!(change, Change::ForgetAttempts { .. })));
            }
        }
    }

    #[test]
    fn the_right_current_password_clears_the_count() {
        let (ada, origin) = (person("ada"), Origin::default());
        let confirmed = confirm(&after(&ada, true, Some(ADDRESS), &origin), &Settings::default(), NOW);
        assert!(confirmed.reply.is_ok());
        assert!(matches!(confirmed.changes[..], [Change::ForgetAttempts { key }] if key == ACCOUNT));
    }
}
