use super::*;

#[test]
fn waits_double_up_to_the_limit() {
    let policy = Policy::default();
    assert_eq!(policy.wait(4, 5), Span::ZERO);
    assert_eq!(policy.wait(5, 5), Span::seconds(1));
    assert_eq!(policy.wait(7, 5), Span::seconds(4));
    assert_eq!(policy.wait(99, 5), policy.max);
    // NIST SP 800-63B §3.2.2.
    assert_eq!([policy.wait(100, 5), policy.wait(1000, 5)], [EXHAUSTED; 2]);
    let slow = Policy { max: Span::days(2), ..policy };
    assert_eq!(slow.wait(100, 5), slow.max);
}

#[test]
fn after_the_free_failures_an_attempt_has_to_wait_and_nobody_waits_for_ever() {
    let policy = Policy::default();
    let (key, mut seen, mut now, mut guesses) = (Handle([0; 32]), None, Time(1_000), 0);
    let end = now + Span::hours(1);
    while now < end {
        match policy.admit(key, seen, policy.free, now) {
            Ok(counted) => {
                guesses += 1;
                seen = Some(counted.next);
            }
            Err(wait) => {
                assert!(wait <= policy.max);
                now = now + wait;
            }
        }
    }
    assert!(guesses < 25, "{guesses} guesses in an hour");
}

#[test]
fn after_a_hundred_failures_in_a_row_there_is_one_a_day_however_the_guesser_pauses() {
    // Red without `longest` in `wait`; and where a count is forgotten after a day: a guesser would pause at 99.
    let (policy, key, days) = (Policy::default(), Handle([0; 32]), 400);
    for pause_at in 1..=IN_A_ROW + 5 {
        let (mut seen, mut now, mut guesses) = (None::<Counter>, Time(1_000), 0);
        let end = now + Span::days(days);
        while now < end {
            if let Some(known) = seen.filter(|known| known.count >= pause_at) {
                (seen, now) = (None, Time(known.expires));
                continue;
            }
            match policy.admit(key, seen, policy.free, now) {
                Ok(counted) => (seen, guesses) = (Some(counted.next), guesses + 1),
                Err(wait) => now = now + wait,
            }
        }
        assert!(guesses <= IN_A_ROW + days, "{guesses} guesses in {days} days, with pauses at {pause_at}");
    }
}

#[test]
fn what_is_given_back_does_not_make_a_count_one_of_a_wrong_clock() {
    // red without GIVEN_BACK: a hundred failures would be forgotten with the attempts beside the last.
    let (policy, key, mut seen, mut now) = (Policy::default(), Handle([0; 32]), None, Time(1_000));
    for _ in 0..IN_A_ROW {
        now = seen.map_or(now, |seen: Counter| Time(seen.until.max(now.0)));
        seen = policy.admit(key, seen, policy.free, now).ok().map(|counted| counted.next);
    }
    let last = seen.expect("counted");
    for back in 0..5 {
        let seen = Counter { count: last.count - back, ..last };
        assert_eq!(policy.admit(key, Some(seen), policy.free, now), Err(EXHAUSTED), "{back}");
    }
}

#[test]
fn what_is_free_is_free_for_one_whose_clock_is_behind() {
    let policy = Policy::default();
    let counted = policy.admit(Handle([0; 32]), None, policy.free, Time(1_001)).expect("admitted");
    assert!(policy.admit(Handle([0; 32]), Some(counted.next), policy.free, Time(1_000)).is_ok());
}

/// An address with so many failures that have not drained, and so many attempts under way.
fn seen(failures: i64, beside: usize) -> Seen {
    let policy = Policy::default();
    let shared = Shared { key: Handle([2; 32]), free: policy.address_free, leak: policy.leak };
    Seen { shared, counter: Some(Counter { expires: failures * policy.leak.0, ..Counter::default() }), beside }
}

#[test]
fn an_address_is_held_to_a_steady_rate_of_failures() {
    let leak = Policy::default().leak;
    assert_eq!(Seen { counter: None, ..seen(0, 0) }.admits(Time(0)), Ok(50));
    assert_eq!(seen(50, 0).admits(Time(0)), Ok(0));
    assert_eq!(seen(51, 0).admits(Time(0)), Err(Held::Wait(leak)));
    assert_eq!(seen(51, 0).admits(Time(leak.0)), Ok(0));
}

#[test]
fn bf_what_is_under_way_counts_like_a_failure() {
    // red without `beside` in Seen::admits.
    let crowded = |left| Err(Held::Crowded(Handle([2; 32]), left));
    assert_eq!((seen(0, 50).admits(Time(0)), seen(0, 51).admits(Time(0))), (Ok(0), crowded(50)));
    assert_eq!((seen(48, 2).admits(Time(0)), seen(48, 3).admits(Time(0))), (Ok(0), crowded(2)));
    // A failure that has drained in part is still a failure.
    assert_eq!(seen(50, 1).admits(Time(1)), crowded(0));
}

#[test]
fn a_crowd_of_which_nobody_has_failed_waits_for_nobody() {
    // red without `spotless` in crowd, or if one of several counters were enough.
    let beside = |shared, at| crowd(shared, Time(at)).iter().map(|seen| seen.beside).collect::<Vec<_>>();
    let never = Seen { counter: None, ..seen(0, 9) };
    assert_eq!(beside(vec![never, seen(0, 99)], 0), [0, 0]);
    assert_eq!(beside(vec![never, seen(1, 99)], 0), [9, 99]);
    assert_eq!(beside(vec![never, seen(1, 99)], Policy::default().leak.0), [0, 0], "it has drained");
}

#[test]
fn who_has_to_wait_is_told_so_whoever_is_under_way() {
    let leak = Policy::default().leak;
    assert_eq!(all_admit(&[seen(0, 51), seen(51, 0), seen(52, 9)], Time(0)), Err(Held::Wait(Span(2 * leak.0))));
    assert_eq!(all_admit(&[seen(0, 0), seen(0, 51)], Time(0)), Err(Held::Crowded(Handle([2; 32]), 50)));
    assert_eq!(all_admit(&[seen(0, 0), seen(45, 2)], Time(0)), Ok(3));
    assert_eq!(all_admit(&[], Time(0)), Ok(i64::MAX), "nothing that is shared");
}

#[test]
fn bf_07_an_address_shares_its_networks_with_its_neighbors_and_nobody_else() {
    // red without the networks in Policy::shared_by.
    let policy = Policy::default();
    let of = |address: &str| policy.shared_by(&[7; 32], "sign-in", address.parse().expect("an address"));
    let alike = |one: &str, other: &str| {
        let both: Vec<_> = of(one).into_iter().zip(of(other)).collect();
        both.into_iter().map(|(one, other)| one.key == other.key).collect::<Vec<_>>()
    };
    assert_eq!(alike("192.0.2.1", "192.0.2.254"), [false, true]);
    assert_eq!(alike("192.0.2.1", "192.0.3.1"), [false, false]);
    assert_eq!(alike("192.0.2.1", "::ffff:192.0.2.1"), [true, true]);
    // Red without TRANSLATED: everybody behind a translator would be one subscriber.
    assert_eq!(alike("192.0.2.1", "64:ff9b::192.0.2.1"), [true, true]);
    assert_eq!(alike("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.254"), [false, true]);
    assert_eq!(alike("64:ff9b::192.0.2.1", "64:ff9b::198.51.100.1"), [false, false]);
    assert_eq!(alike("2001:db8:1:203::1", "2001:db8:1:203:ffff::"), [true, true, true]);
    assert_eq!(alike("2001:db8:1:203::1", "2001:db8:1:2ff::1"), [false, true, true]);
    assert_eq!(alike("2001:db8:1:203::1", "2001:db8:1:303::1"), [false, false, true]);
    assert_eq!(alike("2001:db8:1:203::1", "2001:db8:2:203::1"), [false, false, false]);
    let figures = |address: &str| of(address).iter().map(|one| (one.free, one.leak.0)).collect::<Vec<_>>();
    assert_eq!(figures("192.0.2.1"), [(50, 30_000), (500, 3_000)]);
    assert_eq!(figures("2001:db8::1"), [(50, 30_000), (500, 3_000), (2_000, 750)]);
}

#[test]
fn an_address_of_ipv4_is_itself_however_it_is_written() {
    for (written, whose) in [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("64:ff9b::192.0.2.1", "192.0.2.1"),
        ("64:ff9b::ffff:ffff", "255.255.255.255"),
        ("64:ff9b::", "0.0.0.0"),
        // Beside the prefix there is no IPv4 address that anybody could read.
        ("64:ff9b::1:192.0.2.1", "64:ff9b::1:c000:201"),
        ("64:ff9b:1::192.0.2.1", "64:ff9b:1::c000:201"),
        ("64:ff9a::192.0.2.1", "64:ff9a::c000:201"),
        ("::192.0.2.1", "::192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        let address: IpAddr = written.parse().expect("an address");
        assert_eq!(subscriber(address), whose.parse::<IpAddr>().expect("an address"), "{written}");
    }
    assert_eq!(counted_as("64:ff9b::192.0.2.1".parse().expect("an address")), "192.0.2.1");
    assert_eq!(counted_as("64:ff9b:1::1".parse().expect("an address")), "64:ff9b:1::/64");
}

#[test]
fn networks_that_are_not_counted_have_no_counters() {
    let policy = Policy { network_factor: 0, ..Policy::default() };
    for address in ["192.0.2.1", "2001:db8::1"] {
        assert_eq!(policy.shared_by(&[7; 32], "sign-in", address.parse().expect("an address")).len(), 1);
    }
}

#[test]
fn who_has_used_up_what_is_free_is_slowed() {
    let policy = Policy::default();
    let of = |count, expires| Some(Counter { count, until: 0, expires });
    assert!(!policy.slows(None, &[], Time(0)));
    assert!(!policy.slows(of(policy.free - 1, 10), &[], Time(0)));
    assert!(policy.slows(of(policy.free, 10), &[], Time(0)));
    assert!(!policy.slows(of(policy.free, 10), &[], Time(10)), "forgotten by then");
    let used = seen(policy.address_free, 0);
    assert!(!policy.slows(None, &[used], Time(1)));
    assert!(policy.slows(None, &[seen(0, 0), used], Time(0)));
}

#[test]
fn a_counter_is_forgotten_after_its_time() {
    let policy = Policy::default();
    let old = Counter { count: 500, until: 900_000, expires: 1_000_000 };
    let counted = policy.admit(Handle([0; 32]), Some(old), policy.free, Time(1_000_000)).expect("admitted");
    assert_eq!(counted.next.count, 1);
}
