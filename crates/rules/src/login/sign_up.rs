//! Self sign-up: how fast one address makes accounts, and what comes of an attempt that cost a hash.

use crate::Fresh;
use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::login::session::{Entry, Method, Origin, Session, Started, enter};
use crate::login::throttle::{Counter, Held, Seen, Shared};
use crate::people::User;
use crate::realm::Settings;
use crate::secret::Handle;
use crate::time::{Span, Time};

/// Accounts that one address may make in one go; after that one every [`LEAK`].
pub const AT_ONCE: i64 = 500;
/// How long it takes until one sign-up of an address is forgotten.
pub const LEAK: Span = Span::seconds(1);

/// Whether an address of which so many sign-ups were seen may make another account; if not, how long to wait.
pub fn admits(address: Handle, seen: Option<Counter>, now: Time) -> Result<(), Span> {
    match (Seen { shared: counted(address), counter: seen, beside: 0 }).admits(now) {
        Err(Held::Wait(wait)) => Err(wait),
        Err(Held::Crowded(_)) | Ok(_) => Ok(()),
    }
}

/// Every sign-up counts like a failure.
fn counted(address: Handle) -> Shared {
    Shared { key: address, free: AT_ONCE, leak: LEAK }
}

/// A new person whose password was hashed.
pub struct SignUp<'a> {
    /// Who it would be.
    pub user: &'a User,
    /// Whether somebody has that name by now.
    pub taken: bool,
    /// The counter of their address; `None` where it is not counted.
    pub address: Option<Handle>,
    /// The live session of this browser.
    pub before: Option<&'a Session>,
    /// From where.
    pub origin: &'a Origin,
}

/// Somebody has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

/// An account and its first session, or not. It counts either way: the hash was the same.
pub fn judge(ask: &SignUp<'_>, settings: &Settings, now: Time, fresh: &Fresh) -> Decision<Started, Taken> {
    let count = ask.address.map(|address| counted(address).failed(now));
    if ask.taken {
        return Decision::refuse(Taken).with(count);
    }
    let entry = Entry { user: ask.user, method: Method::Password, before: ask.before, origin: ask.origin };
    let entered = enter(&entry, settings, now, fresh);
    let Ok(started) = entered.reply else { return Decision::refuse(Taken).with(count) };
    let event = Event::new(Kind::UserAdded, now).user(&ask.user.id).address(&ask.origin.address);
    Decision::accept(started)
        .and(Change::AddUser(Box::new(ask.user.clone())))
        .and(Change::Record(event.detail("by", "sign-up")))
        .with(count)
        .with(entered.changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::user::tests::person;

    const NOW: Time = Time(1_000_000);

    fn signed_up(taken: bool, address: Option<Handle>) -> Decision<Started, Taken> {
        let (user, origin) = (person("ada"), Origin::default());
        let ask = SignUp { user: &user, taken, address, before: None, origin: &origin };
        judge(&ask, &Settings::default(), NOW, &Fresh::new([1; 32]))
    }

    #[test]
    fn ds_05_a_sign_up_that_cost_a_hash_counts_whatever_comes_of_it() {
        for taken in [false, true] {
            let counted = |address| {
                let counts = |change: &&Change| matches!(change, Change::CountFailure { leak: LEAK, .. });
                signed_up(taken, address).changes.iter().filter(counts).count()
            };
            assert_eq!((counted(Some(Handle([2; 32]))), counted(None)), (1, 0), "taken: {taken}");
        }
    }

    #[test]
    fn a_name_that_is_taken_makes_nothing() {
        let refused = signed_up(true, Some(Handle([2; 32])));
        assert!(refused.reply.is_err() && refused.changes.len() == 1);
        let made = signed_up(false, None);
        assert!(made.reply.is_ok());
        assert!(matches!(made.changes[0], Change::AddUser(_)), "the account is there before its session");
    }

    #[test]
    fn an_address_may_go_on_at_a_steady_rate() {
        let after = |sign_ups: i64| Some(Counter { expires: NOW.0 + sign_ups * LEAK.0, ..Counter::default() });
        let admits = |seen| admits(Handle([2; 32]), seen, NOW);
        assert!(admits(None).is_ok() && admits(after(AT_ONCE)).is_ok());
        assert_eq!(admits(after(AT_ONCE + 1)), Err(LEAK));
    }
}
