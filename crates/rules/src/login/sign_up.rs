//! Self sign-up: how fast one address may create accounts, and the outcome of an attempt that cost a hash.

use crate::Fresh;
use crate::decision::{Change, Decision};
use crate::events::Kind;
use crate::login::cookie::Seal;
use crate::login::session::{Entry, Method, Origin, Session, Started, enter};
use crate::login::throttle::{Held, Policy, Seen, Shared};
use crate::people::User;
use crate::realm::Settings;
use crate::time::{Span, Time};

/// Accounts that one address may create in one go; after that, one every [`LEAK`].
pub const AT_ONCE: i64 = 500;
/// How long it takes until one sign-up of an address is forgotten.
pub const LEAK: Span = Span::seconds(1);

/// The policy for creating accounts: the one for guesses, with figures of its own.
pub fn policy(guesses: &Policy) -> Policy {
    Policy { address_free: AT_ONCE, leak: LEAK, ..*guesses }
}

/// Whether an address may create another account; if not, how long to wait. Accounts that are being created count
/// already: there is no point in waiting for them, since each of them counts whatever its outcome.
pub fn admits(shared: &[Seen], now: Time) -> Result<(), Span> {
    let wait = |seen: &Seen| match seen.admits(now) {
        Ok(_) => None,
        Err(Held::Wait(wait)) => Some(wait),
        Err(Held::Crowded(..)) => Some(seen.shared.leak),
    };
    shared.iter().filter_map(wait).max().map_or(Ok(()), Err)
}

/// A sign-up whose password was hashed.
pub struct SignUp<'a> {
    /// The user to create.
    pub user: &'a User,
    /// Whether another user has the name by now.
    pub taken: bool,
    /// The counters of the address and its networks; none if the address is not counted.
    pub shared: &'a [Shared],
    /// The live session of this browser.
    pub before: Option<&'a Session>,
    /// Where the request comes from.
    pub origin: &'a Origin,
}

/// Another user has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

/// Creates an account and its first session, or refuses. The attempt counts either way: the hash cost the same.
pub fn judge(
    ask: &SignUp<'_>,
    settings: &Settings,
    seal: &Seal,
    (now, fresh): (Time, &Fresh),
) -> Decision<Started, Taken> {
    let count = ask.shared.iter().map(|shared| shared.failed(now));
    if ask.taken {
        return Decision::refuse(Taken).with(count);
    }
    let entry = Entry { user: ask.user, method: Method::Password, before: ask.before, origin: ask.origin };
    let entered = enter(&entry, settings, seal, (now, fresh));
    let Ok(started) = entered.reply else { return Decision::refuse(Taken).with(count) };
    let event = ask.origin.event(Kind::UserAdded, &ask.user.id, now);
    Decision::accept(started)
        .and(Change::AddUser(Box::new(ask.user.clone())))
        .and(Change::Record(event.detail("by", "sign-up")))
        .with(count)
        .with(entered.changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::throttle::Counter;
    use crate::people::user::tests::person;
    use crate::secret::Handle;

    const NOW: Time = Time(1_000_000);
    const ADDRESS: Shared = Shared { key: Handle([2; 32]), free: AT_ONCE, leak: LEAK };
    const NETWORK: Shared = Shared { key: Handle([3; 32]), free: AT_ONCE * 10, leak: Span(LEAK.0 / 10) };

    fn signed_up(taken: bool, shared: &[Shared]) -> Decision<Started, Taken> {
        let (user, origin) = (person("ada"), Origin::default());
        let ask = SignUp { user: &user, taken, shared, before: None, origin: &origin };
        judge(&ask, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([1; 32])))
    }

    #[test]
    fn ds_05_a_sign_up_that_cost_a_hash_counts_whatever_comes_of_it() {
        // red without the counters of networks in `judge`, too.
        for taken in [false, true] {
            let counted = |shared: &[Shared]| {
                let leaks = |change: &Change| match change {
                    Change::CountFailure { key, leak, .. } => Some((*key, *leak)),
                    _ => None,
                };
                signed_up(taken, shared).changes.iter().filter_map(leaks).collect::<Vec<_>>()
            };
            let both = [(ADDRESS.key, ADDRESS.leak), (NETWORK.key, NETWORK.leak)];
            assert_eq!((counted(&[ADDRESS, NETWORK]), counted(&[])), (both.to_vec(), vec![]), "taken: {taken}");
        }
    }

    #[test]
    fn a_name_that_is_taken_makes_nothing() {
        let refused = signed_up(true, &[ADDRESS]);
        assert!(refused.reply.is_err() && refused.changes.len() == 1);
        let made = signed_up(false, &[]);
        assert!(made.reply.is_ok());
        assert!(matches!(made.changes[0], Change::AddUser(_)), "the account is there before its session");
    }

    #[test]
    fn an_account_is_told_of_with_the_application_that_it_was_made_for() {
        // red without the origin of the attempt in `judge`.
        let (user, origin) = (person("ada"), Origin::default().by_way_of(Some(&"shop".into())));
        let ask = SignUp { user: &user, taken: false, shared: &[], before: None, origin: &origin };
        let made = judge(&ask, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([1; 32])));
        let told = made.changes.iter().filter_map(|change| match change {
            Change::Record(event) => Some((event.kind, event.client.clone())),
            _ => None,
        });
        let client = || Some("shop".into());
        assert_eq!(told.collect::<Vec<_>>(), [(Kind::UserAdded, client()), (Kind::SignedIn, client())]);
    }

    /// A counter with so many sign-ups that have not drained, and so many under way.
    fn seen(shared: Shared, sign_ups: i64, beside: usize) -> Seen {
        let counter = Some(Counter { expires: NOW.0 + sign_ups * shared.leak.0, ..Counter::default() });
        Seen { shared, counter, beside }
    }

    #[test]
    fn an_address_may_go_on_at_a_steady_rate_and_so_may_its_network() {
        // red where `admits` asks fewer than all shared counters.
        let after = |own, network| admits(&[seen(ADDRESS, own, 0), seen(NETWORK, network, 0)], NOW);
        assert!(admits(&[], NOW).is_ok() && after(AT_ONCE, AT_ONCE * 10).is_ok());
        assert_eq!(after(AT_ONCE + 1, 0), Err(LEAK));
        assert_eq!(after(0, AT_ONCE * 10 + 2), Err(Span(LEAK.0 / 5)));
    }

    #[test]
    fn ds_05_a_sign_up_counts_before_it_is_worked_on() {
        // red where `admits` lets a crowded attempt in.
        let beside = |beside| admits(&[seen(ADDRESS, AT_ONCE - 2, beside)], NOW);
        assert_eq!((beside(2), beside(3)), (Ok(()), Err(LEAK)));
    }

    #[test]
    fn more_accounts_are_made_than_guesses() {
        let shared =
            policy(&Policy::default()).shared_by(&[1; 32], "sign-up", "192.0.2.1".parse().expect("an address"));
        let figures: Vec<_> = shared.iter().map(|one| (one.free, one.leak)).collect();
        assert_eq!(figures, [(ADDRESS.free, ADDRESS.leak), (NETWORK.free, NETWORK.leak)]);
    }
}
