//! Throttling: how many guesses get through, whatever their timing, and that nobody is kept out for good.

use crate::cases;
use crate::tables::Tables;
use proptest::prelude::*;
use rules::decision::Change;
use rules::login::attempt::{Before, begin};
use rules::login::throttle::{ASTRAY, Counted, Counter, EXHAUSTED, Held, IN_A_ROW, Policy, Seen, Shared};
use rules::{Handle, Span, Time};

const ACCOUNT: Handle = Handle([1; 32]);
const ADDRESS: Handle = Handle([2; 32]);
const START: Time = Time(1_700_000_000_000);
/// As often as `app::settle` tries.
const TRIES: usize = 12;

fn counter(tables: &Tables, key: Handle) -> Option<Counter> {
    tables.counters.get(&key.0).copied()
}

fn address(tables: &Tables, policy: &Policy, beside: usize) -> Seen {
    let shared = Shared { key: ADDRESS, free: policy.address_free, leak: policy.leak };
    Seen { shared, counter: counter(tables, ADDRESS), beside }
}

fn begun(tables: &Tables, policy: &Policy, now: Time) -> rules::Decision<Counted, Held> {
    let shared = [address(tables, policy, 0)];
    begin(&Before { key: ACCOUNT, account: counter(tables, ACCOUNT), shared: &shared, policy }, now)
}

/// One attempt, settled: counted, or told how long to wait.
fn attempt(tables: &mut Tables, policy: &Policy, now: Time) -> Result<Counted, Span> {
    let decision = begun(tables, policy, now);
    tables.apply(&decision.changes).expect("nobody disturbs");
    decision.reply.map_err(|held| match held {
        Held::Wait(wait) => wait,
        Held::Crowded(..) => unreachable!("nobody is beside"),
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
            let failures = counter(&tables, ACCOUNT).map_or(0, |counter| counter.count);
            if let Err(wait) = attempt(&mut tables, &policy, now) {
                let longest = if failures < IN_A_ROW { policy.max } else { EXHAUSTED };
                prop_assert!(wait <= longest, "{wait:?}");
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
        let mut rivals: Vec<_> = (0..100).map(|_| begun(&tables, &policy, now)).collect();
        let mut through = 0;
        for rival in &mut rivals {
            for _ in 0..TRIES {
                if tables.apply(&rival.changes).is_ok() {
                    through += i64::from(rival.reply.is_ok());
                    break;
                }
                *rival = begun(&tables, &policy, now);
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
            let failures = counter(&tables, ACCOUNT).map_or(0, |counter| counter.count);
            if let Ok(counted) = attempt(&mut tables, &policy, now) {
                let forgotten = counted.next.count == 1;
                tables.apply(&[Change::GiveBack(counted)]).expect("always");
                let after = counter(&tables, ACCOUNT).map_or(0, |counter| counter.count);
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
            let seen = address(&tables, &policy, 0);
            match seen.admits(now) {
                Err(held) => {
                    let Held::Wait(wait) = held else { unreachable!("nobody is beside") };
                    prop_assert!(wait <= policy.leak, "{wait:?}");
                    prop_assert!(seen.admits(now + wait).is_ok());
                }
                Ok(_) => {
                    tables.apply(&[seen.shared.failed(now)]).expect("always");
                    failures += 1;
                    let drained = now.since(START).0 / policy.leak.0;
                    prop_assert!(failures <= policy.address_free + 1 + drained, "{failures} in {:?}", now.since(START));
                }
            }
        }
    }
    /// A clock that was ahead for a while, by however much: once it is right again nobody waits for it to be so late. Red
    /// without ASTRAY in `Policy::counts` (accounts), in `Seen::backlog` (addresses), or in what CountFailure makes of the
    /// counter (the next failure).
    #[test]
    fn a_clock_that_was_ahead_keeps_nobody_out(
        ahead in prop_oneof![0i64..7_200_000, 0i64..315_360_000_000].prop_map(Span), failures in 1usize..80
    ) {
        let (policy, mut tables, mut now) = (Policy::default(), Tables::default(), START + ahead);
        for _ in 0..failures {
            tables.apply(&[address(&tables, &policy, 0).shared.failed(now)]).expect("always");
            now = now + attempt(&mut tables, &policy, now).err().unwrap_or(Span::ZERO);
        }
        let most = |longest: Span| Span(longest.0 + ASTRAY.0);
        let account = counter(&tables, ACCOUNT).unwrap_or_default();
        let wait = policy.admit(ACCOUNT, Some(account), policy.free, START).err().unwrap_or(Span::ZERO);
        prop_assert!(wait <= most(policy.max), "the account waits for {wait:?}");
        let drains = |failures: usize| Span(policy.leak.0 * i64::try_from(failures).expect("few"));
        for more in 0..3 {
            let seen = address(&tables, &policy, 0);
            if let Err(Held::Wait(wait)) = seen.admits(START) {
                prop_assert!(wait <= most(drains(failures + more)), "the address waits for {wait:?}");
            }
            tables.apply(&[seen.shared.failed(START)]).expect("always");
        }
    }

    /// Guesses from one address that overlap in any way: each may be let in, and fail, at any later step. However they
    /// overlap, no more are judged than of guesses in turn.
    #[test]
    fn guesses_in_parallel_fail_no_more_often_than_in_turn(
        steps in proptest::collection::vec((any::<bool>(), (0i64..2_000).prop_map(Span)), 1..300)
    ) {
        let (policy, mut tables, mut now) = (Policy::default(), Tables::default(), START);
        let (mut under_way, mut judged) = (0, 0);
        for (comes, pause) in steps {
            now = now + pause;
            let seen = address(&tables, &policy, under_way);
            if comes && seen.admits(now).is_ok() {
                under_way += 1;
            } else if !comes && under_way > 0 {
                tables.apply(&[seen.shared.failed(now)]).expect("always");
                (under_way, judged) = (under_way - 1, judged + 1);
            }
            let most = policy.address_free + 1 + now.since(START).0 / policy.leak.0;
            prop_assert!(judged + i64::try_from(under_way).expect("few") <= most, "{judged} and {under_way}");
        }
    }
}
