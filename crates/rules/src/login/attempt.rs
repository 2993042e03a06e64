//! One attempt to sign in with a password. An unknown name, a disabled account and a wrong password look the same.

use crate::Fresh;
use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::login::cookie::Seal;
use crate::login::session::{Entry, Method, Origin, Session, Started, enter};
use crate::login::throttle::{Counted, Counter, Held, Policy, Seen, Shared, all_admit, counted_as};
use crate::people::User;
use crate::realm::Settings;
use crate::secret::Handle;
use crate::time::{Span, Time};

/// Why an attempt was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An unknown name, a disabled account or a wrong password: nobody is told which.
    Wrong,
    /// Too many failures before: try again after this long.
    Wait(Span),
}

/// The counters that apply to an attempt.
#[derive(Clone, Debug)]
pub struct Counters {
    /// The account's counter (or the account's counter on a known device).
    pub account: Handle,
    /// Those of the address and its networks; none if the address stands for everybody behind it and is not counted.
    pub shared: Vec<Shared>,
}

/// What is known before a password is hashed.
pub struct Before<'a> {
    /// The account's counter.
    pub key: Handle,
    /// Earlier failures of the account.
    pub account: Option<Counter>,
    /// Earlier failures of the address and its networks; none if this browser is known to the account.
    pub shared: &'a [Seen],
    /// How guessers are slowed down.
    pub policy: &'a Policy,
}

/// Admits an attempt, and counts it as failed before anything is hashed. Known and unknown names are treated alike.
pub fn begin(before: &Before<'_>, now: Time) -> Decision<Counted, Held> {
    let shared = all_admit(before.shared, now);
    if let Err(Held::Wait(wait)) = shared {
        return Decision::refuse(Held::Wait(wait));
    }
    match (before.policy.admit(before.key, before.account, before.policy.free, now), shared) {
        // A caller that has to wait for the account need not stand in a crowd first.
        (Err(wait), _) => Decision::refuse(Held::Wait(wait)),
        (Ok(_), Err(held)) => Decision::refuse(held),
        (Ok(counted), Ok(_)) => Decision::accept(counted.clone()).and(Change::CountAttempt(counted)),
    }
}

/// What is known after the hash.
pub struct After<'a> {
    /// The account of that name, if there is one.
    pub user: Option<&'a User>,
    /// Whether the password was the account's.
    pub matches: bool,
    /// The counters of the attempt.
    pub counters: &'a Counters,
    /// The live session of this browser.
    pub before: Option<&'a Session>,
    /// Where the attempt comes from.
    pub origin: &'a Origin,
}

/// Judges an attempt after its password was hashed: starts a session, or refuses and counts the failure.
pub fn judge(
    after: &After<'_>,
    settings: &Settings,
    seal: &Seal,
    (now, fresh): (Time, &Fresh),
) -> Decision<Started, Refusal> {
    if let (true, Some(user)) = (after.matches, after.user) {
        let entry = Entry { user, method: Method::Password, before: after.before, origin: after.origin };
        let entered = enter(&entry, settings, seal, (now, fresh));
        if let Ok(started) = entered.reply {
            let forget = Change::ForgetAttempts { key: after.counters.account };
            return Decision { changes: entered.changes, reply: Ok(started) }.and(forget);
        }
    }
    match after.user {
        Some(user) => failed(after, now).and(Change::Record(failure(user, after, now))),
        None => {
            let address = &after.origin.address;
            let address = address.parse().map_or_else(|_| address.clone(), counted_as);
            failed(after, now).and(Change::CountStranger { address, at: now })
        }
    }
}

/// Judges the current password of a signed-in user (`before`), who has to give it before a change. Wrong guesses count
/// like those of a sign-in.
pub fn confirm(after: &After<'_>, now: Time) -> Decision<(), Refusal> {
    if after.matches {
        return Decision::accept(()).and(Change::ForgetAttempts { key: after.counters.account });
    }
    let event = after.user.map(|user| failure(user, after, now).detail("what", "current password"));
    let event = match after.before {
        Some(session) => event.map(|event| event.session(&session.id)),
        None => event,
    };
    failed(after, now).with(event.map(Change::Record))
}

/// Counts an attempt as failed because its outcome is not known here, and its caller is told to come back. Otherwise
/// guesses that cannot be confirmed in time would be free.
pub fn leave_open(after: &After<'_>, now: Time) -> Decision<(), Refusal> {
    let event = after.user.map(|user| failure(user, after, now).detail("why", "not confirmed"));
    failed(after, now).with(event.map(Change::Record))
}

/// Counts a failure on the shared counters; the account's counter already stands where [`begin`] put it.
fn failed<T>(after: &After<'_>, now: Time) -> Decision<T, Refusal> {
    Decision::refuse(Refusal::Wrong).with(after.counters.shared.iter().map(|shared| shared.failed(now)))
}

fn failure(user: &User, after: &After<'_>, now: Time) -> Event {
    after.origin.event(Kind::SignInFailed, &user.id, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::user::tests::person;

    const ACCOUNT: Handle = Handle([1; 32]);
    const ADDRESS: Shared = Shared { key: Handle([2; 32]), free: 50, leak: Span(30_000) };
    const NETWORK: Shared = Shared { key: Handle([3; 32]), free: 500, leak: Span(3_000) };
    const NOW: Time = Time(1_000_000);

    fn counters(shared: &[Shared]) -> Counters {
        Counters { account: ACCOUNT, shared: shared.to_vec() }
    }

    fn after<'a>(user: &'a User, matches: bool, counters: &'a Counters, origin: &'a Origin) -> After<'a> {
        After { user: Some(user), matches, counters, before: None, origin }
    }

    fn judged(after: &After<'_>) -> Decision<Started, Refusal> {
        judge(after, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([3; 32])))
    }

    fn counted(changes: &[Change]) -> Vec<(Handle, Span)> {
        let failures = changes.iter().filter_map(|change| match change {
            Change::CountFailure { key, leak, .. } => Some((*key, *leak)),
            _ => None,
        });
        failures.collect()
    }

    #[test]
    fn whoever_guesses_at_names_is_told_of_by_what_counts_as_their_address() {
        // red with the address as it is: an IPv6 subscriber has more addresses than there are rows.
        let counters = counters(&[]);
        for (address, wanted) in [("192.0.2.1", "192.0.2.1"), ("2001:db8:0:5:1::1", "2001:db8:0:5::/64"), ("", "")] {
            let origin = Origin { address: address.into(), ..Origin::default() };
            let after = After { user: None, matches: false, counters: &counters, before: None, origin: &origin };
            let judged = judged(&after);
            let told = judged.changes.iter().filter_map(|change| match change {
                Change::CountStranger { address, .. } => Some(address.as_str()),
                _ => None,
            });
            assert_eq!(told.collect::<Vec<_>>(), [wanted]);
        }
    }

    #[test]
    fn bf_04_a_guess_counts_for_its_address_and_networks_at_every_door_and_only_where_it_has_one() {
        let (ada, origin) = (person("ada"), Origin::default());
        for shared in [&[ADDRESS, NETWORK][..], &[]] {
            let counters = counters(shared);
            let after = after(&ada, false, &counters, &origin);
            let (signed_in, confirmed) = (judged(&after), confirm(&after, NOW));
            let open = leave_open(&after, NOW);
            assert!(signed_in.reply.is_err() && confirmed.reply.is_err() && open.reply.is_err());
            for changes in [signed_in.changes, confirmed.changes, open.changes] {
                assert_eq!(counted(&changes), shared.iter().map(|one| (one.key, one.leak)).collect::<Vec<_>>());
                assert!(changes.iter().any(|change| matches!(change, Change::Record(_))));
                assert!(!changes.iter().any(|change| matches!(change, Change::ForgetAttempts { .. })));
            }
        }
    }

    #[test]
    fn a_failure_tells_by_way_of_which_application_it_came_at_every_door() {
        // red with `Event::new` in `failure`.
        let (ada, counters) = (person("ada"), counters(&[]));
        for client in [None, Some("shop".into())] {
            let origin = Origin::default().by_way_of(client.as_ref());
            let after = after(&ada, false, &counters, &origin);
            let (signed_in, confirmed) = (judged(&after), confirm(&after, NOW));
            for changes in [signed_in.changes, confirmed.changes, leave_open(&after, NOW).changes] {
                let told = changes.iter().filter_map(|change| match change {
                    Change::Record(event) => Some(&event.client),
                    _ => None,
                });
                assert_eq!(told.collect::<Vec<_>>(), [&client]);
            }
        }
    }

    #[test]
    fn bf_07_each_of_the_counters_can_hold_an_attempt_back_and_a_held_one_is_not_counted() {
        // red if `begin` asked fewer than all shared counters, or admitted an attempt in a crowd.
        let policy = Policy::default();
        let of = |address: (i64, usize), network: (i64, usize)| {
            let seen = |shared: Shared, (failures, beside)| {
                let counter = Some(Counter { expires: NOW.0 + failures * shared.leak.0, ..Counter::default() });
                Seen { shared, counter, beside }
            };
            let shared = [seen(ADDRESS, address), seen(NETWORK, network)];
            let before = Before { key: ACCOUNT, account: None, shared: &shared, policy: &policy };
            let begun = begin(&before, NOW);
            assert_eq!(begun.reply.is_ok(), !begun.changes.is_empty());
            begun.reply.err()
        };
        assert_eq!(of((50, 0), (500, 0)), None);
        assert_eq!(of((51, 0), (0, 0)), Some(Held::Wait(ADDRESS.leak)));
        assert_eq!(of((0, 0), (501, 0)), Some(Held::Wait(NETWORK.leak)));
        assert_eq!(of((50, 1), (0, 0)), Some(Held::Crowded(ADDRESS.key, 0)));
        assert_eq!(of((0, 0), (499, 2)), Some(Held::Crowded(NETWORK.key, 1)));
    }

    #[test]
    fn the_right_current_password_clears_the_count() {
        let (ada, origin, counters) = (person("ada"), Origin::default(), counters(&[ADDRESS]));
        let confirmed = confirm(&after(&ada, true, &counters, &origin), NOW);
        assert!(confirmed.reply.is_ok());
        assert!(matches!(confirmed.changes[..], [Change::ForgetAttempts { key }] if key == ACCOUNT));
    }
}
