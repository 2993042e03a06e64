//! Throttling: how many guesses get through, whatever their timing, and that nobody is kept out for good.

use crate::cases;
use crate::tables::Tables;
use proptest::prelude::*;
use rules::decision::Change;
use rules::login::attempt::{Before, Counters, begin};
use rules::login::throttle::{Counted, Counter, Policy};
use rules::{Handle, Span, Time};

const ADDRESS: Handle = Handle([2; 32]);
const COUNTERS: Counters = Counters { account: Handle([1; 32]), address: Some(ADDRESS) };
const START: Time = Time(1_700_000_000_000);
/// As often as `app::settle` tries.
const TRIES: usize = 12;

fn counter(tables: &Tables, key: Handle) -> Option<Counter> {
    tables.counters.get(&key.0).copied()
}

fn before<'a>(tables: &Tables, policy: &'a Policy) -> Before<'a> {
    let (account, address) = (counter(tables, COUNTERS.account), counter(tables, ADDRESS));
    Before { counters: COUNTERS, account, address, policy }
}

/// One attempt, settled: counted, or told how long to wait.
fn attempt(tables: &mut Tables, policy: &Policy, now: Time) -> Result<Counted, Span> {
    let decision = begin(&before(tables, policy), now);
    tables.apply(&decision.changes).expect("nobody disturbs");
    decision.reply.map_err(|refusal| match refusal {
        rules::login::attempt::Refusal::Wait(wait) => wait,
        rules::login::attempt::Refusal::Wrong => unreachable!("nothing was judged"),
    })
}

/// How many guesses somebody makes within `window` who never wastes a moment, reckoned without the rules.
fn most(policy: &Policy, window: Span) -> usize {
    let (mut at, mut wait, mut guesses) = (0, policy.base.0, usize::try_from(policy.free).expect("few"));
    while at + wait <= window.0 {
        at += wait;
        wait = (wait * 2).min(policy.max.0);
        guesses += 1;
    }
    guesses
}

fn pauses() -> impl Strategy<Value = Vec<Span>> {
    let pause = prop_oneof![3 => 0i64..3_000, 2 => 0i64..120_000, 1 => 0i64..1_800_000];
    proptest::collection::vec(pause.prop_map(Span), 1..120)
}

proptest! {
    #![proptest_config(cases(200))]

    /// In no window do more guesses at one account get through than the most patient and precise guesser makes.
    #[test]
    fn guesses_in_any_window_are_bounded(pauses in pauses()) {
        let (policy, mut tables, mut now) = (Policy::default(), Tables::default(), START);
        let mut admitted = Vec::new();
        for pause in pauses {
            now = now + pause;
            if attempt(&mut tables, &policy, now).is_ok() {
                admitted.push(now);
            }
        }
        for (at, from) in admitted.iter().enumerate() {
            for (count, until) in admitted[at..].iter().enumerate() {
                let window = until.since(*from);
                prop_assert!(count < most(&policy, window), "{} guesses within {:?}", count + 1, window);
            }
        }
    }

    /// Whoever waits as long as they were told gets in, and never waits longer than the limit.
    #[test]
    fn nobody_waits_longer_than_the_limit(pauses in pauses()) {
        let (policy, mut tables, mut now) = (Policy::default(), Tables::default(), START);
        for pause in pauses {
            now = now + pause;
            if let Err(wait) = attempt(&mut tables, &policy, now) {
                prop_assert!(wait <= policy.max, "{wait:?}");
                now = now + wait;
                prop_assert!(attempt(&mut tables, &policy, now).is_ok(), "kept out after {wait:?}");
            }
        }
    }

    /// A hundred guesses on the same facts: each counts before it is worked on, so no more than the free ones and the
    /// one whose turn it is get through.
    #[test]
    fn parallel_guesses_count_one_by_one(earlier in 0usize..12) {
        let (policy, mut tables) = (Policy::default(), Tables::default());
        let mut now = START;
        for _ in 0..earlier {
            now = now + attempt(&mut tables, &policy, now).err().unwrap_or(Span(1));
        }
        let mut rivals: Vec<_> = (0..100).map(|_| begin(&before(&tables, &policy), now)).collect();
        let mut through = 0;
        for rival in &mut rivals {
            for _ in 0..TRIES {
                if tables.apply(&rival.changes).is_ok() {
                    through += i64::from(rival.reply.is_ok());
                    break;
                }
                *rival = begin(&before(&tables, &policy), now);
            }
        }
        let left = policy.free - i64::try_from(earlier).expect("few");
        prop_assert!(through <= left.max(1), "{through} of a hundred after {earlier}");
    }

    /// An attempt that was counted and then not made leaves no trace, and erases none.
    #[test]
    fn what_was_not_tried_counts_neither_way(pauses in pauses()) {
        let (policy, mut tables, mut now) = (Policy::default(), Tables::default(), START);
        for pause in pauses {
            now = now + pause;
            let failures = counter(&tables, COUNTERS.account).map_or(0, |counter| counter.count);
            if let Ok(counted) = attempt(&mut tables, &policy, now) {
                let forgotten = counted.next.count == 1;
                tables.apply(&[Change::GiveBack(counted)]).expect("always");
                let after = counter(&tables, COUNTERS.account).map_or(0, |counter| counter.count);
                prop_assert_eq!(after, if forgotten { 0 } else { failures });
                prop_assert!(attempt(&mut tables, &policy, now).is_ok(), "it has to wait for nothing");
            }
        }
    }

    /// An address, which many share: a steady rate of failures beyond the free ones, and no wait longer than one
    /// failure takes to be forgiven.
    #[test]
    fn an_address_fails_at_a_steady_rate(pauses in proptest::collection::vec((0i64..40_000).prop_map(Span), 1..300)) {
        let (policy, mut tables, mut now, mut failures) = (Policy::default(), Tables::default(), START, 0);
        for pause in pauses {
            now = now + pause;
            let seen = counter(&tables, ADDRESS);
            match policy.leaky_admits(seen, policy.address_free, now) {
                Err(wait) => {
                    prop_assert!(wait <= policy.leak, "{wait:?}");
                    prop_assert!(policy.leaky_admits(seen, policy.address_free, now + wait).is_ok());
                }
                Ok(()) => {
                    let failed = Change::CountFailure { key: ADDRESS, at: now, leak: policy.leak };
                    tables.apply(&[failed]).expect("always");
                    failures += 1;
                    let drained = now.since(START).0 / policy.leak.0;
                    prop_assert!(failures <= policy.address_free + 1 + drained, "{failures} in {:?}", now.since(START));
                }
            }
        }
    }
}
