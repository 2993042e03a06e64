use super::*;
use proptest::prelude::*;

fn key(tenant: &str, host: u8) -> FairKey {
    FairKey::new(tenant, IpAddr::from([192, 0, 2, host]))
}

fn order<T>(queue: &mut Fair<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.pop()).collect()
}

#[test]
fn a_flood_of_one_tenant_does_not_delay_another() {
    let mut queue = Fair::new();
    for host in 0..200 {
        queue.push(&key("noisy", host), 5, "noisy");
    }
    queue.pop();
    queue.push(&key("quiet", 1), 5, "quiet");
    queue.push(&key("quiet", 1), 5, "quiet");
    let order = order(&mut queue);
    let places: Vec<_> = (0..).zip(&order).filter(|(_, who)| **who == "quiet").map(|(at, _)| at).collect();
    assert_eq!(places, [1, 3]);
}

#[test]
fn nobody_takes_the_place_of_what_tests_workers() {
    // Red where `dispensable` or `whose_room` takes any tenant: a crowd would push out the jobs that expose liars.
    let mut queue = Fair::new();
    for _ in 0..20 {
        queue.push(&FairKey::ours(), 5, "test");
    }
    for host in [0, 1, 2, 3, 0, 1, 2, 3] {
        queue.push(&key("main", host), 5, "job");
    }
    assert_eq!(queue.make_room(&key("main", 9), 5, 5), Some(vec!["job"]));
    assert_eq!(queue.shed(1000), ["job"; 7]);
    assert_eq!(queue.len(), 20);
}

/// Red where our key is a name: a flood of a tenant so named would keep its places, and take turns from canaries.
#[test]
fn no_tenant_is_called_as_ours() {
    for name in ["", "\0", "\0ours", "ours"] {
        assert_ne!(FairKey::new(name, IpAddr::from([0, 0, 0, 0])).tenant, FairKey::ours().tenant);
        let mut queue = Fair::new();
        for _ in 0..20 {
            queue.push(&key(name, 1), 5, "flood");
        }
        assert_eq!(queue.make_room(&key("main", 1), 5, 5), Some(vec!["flood"]), "{name:?}");
    }
}

#[test]
fn addresses_of_a_tenant_take_turns() {
    let mut queue = Fair::new();
    for n in 0..3 {
        queue.push(&key("main", 1), 5, (1, n));
    }
    for n in 0..2 {
        queue.push(&key("main", 2), 5, (2, n));
    }
    assert_eq!(order(&mut queue), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)]);
}

/// Red without networks: one party has 65,536 /64 addresses in its /48, so none of its queues is long.
#[test]
fn thousands_of_addresses_of_one_network_are_one_party() {
    let site = |subnet: u16| {
        let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, subnet, 0, 0, 0, 1);
        FairKey::new("main", IpAddr::V6(address))
    };
    let other = FairKey::new("main", IpAddr::V6("2001:db8:2::1".parse().unwrap()));
    let mut queue = Fair::new();
    for subnet in 0..1000 {
        queue.push(&site(subnet), 5, "site");
    }
    for newcomer in [&key("main", 1), &other] {
        assert_eq!(queue.make_room(newcomer, 5, 5), Some(vec!["site"]));
        queue.push(newcomer, 5, "newcomer");
    }
    assert_eq!(queue.make_room(&site(1), 5, 5), None, "of itself nobody gets room");
    let first: Vec<_> = (0..4).filter_map(|_| queue.pop()).collect();
    assert_eq!(first.iter().filter(|who| **who == "newcomer").count(), 2, "{first:?}");
}

#[test]
fn shares_are_of_time_not_of_jobs() {
    let mut queue = Fair::new();
    for _ in 0..100 {
        queue.push(&key("dear", 1), 50, "dear");
        queue.push(&key("cheap", 1), 5, "cheap");
    }
    let first: Vec<_> = (0..44).filter_map(|_| queue.pop()).collect();
    let dear = first.iter().filter(|who| **who == "dear").count();
    assert!((3..=5).contains(&dear), "{dear} dear jobs beside {} cheap ones", first.len() - dear);
}

#[test]
fn coming_and_going_gains_nothing() {
    let mut queue = Fair::new();
    for _ in 0..100 {
        queue.push(&key("steady", 1), 5, "steady");
    }
    let mut served = [0, 0];
    for _ in 0..50 {
        queue.push(&key("hopping", 1), 5, "hopping");
        while let Some(who) = queue.pop() {
            served[usize::from(who == "hopping")] += 1;
            if who == "hopping" {
                break;
            }
        }
    }
    assert!(served[0] >= 49, "{served:?}");
}

/// Red where newcomers start at the tag that an expensive job brought: they would wait for as much of the flood.
#[test]
fn a_dear_job_does_not_put_newcomers_behind_a_flood() {
    let mut queue = Fair::new();
    for _ in 0..2000 {
        queue.push(&key("main", 1), 5, "flood");
    }
    queue.pop();
    queue.push(&key("main", 2), 2000, "dear");
    while queue.pop() != Some("dear") {}
    queue.push(&key("main", 3), 5, "newcomer");
    let first: Vec<_> = (0..2).filter_map(|_| queue.pop()).collect();
    assert!(first.contains(&"newcomer"), "{first:?}");
    // The flow that had it pays for it all the same, even after it has gone.
    queue.push(&key("main", 2), 5, "dear again");
    let served: Vec<_> = (0..390).filter_map(|_| queue.pop()).collect();
    assert!(!served.contains(&"dear again"), "{served:?}");
    assert!((0..20).any(|_| queue.pop() == Some("dear again")));
}

/// How many jobs of one address with much waiting are served out of a hundred, while a newcomer comes each time.
fn served_beside_newcomers(mut queue: Fair<&'static str>) -> usize {
    for _ in 0..100 {
        queue.push(&key("main", 255), 100, "steady");
    }
    let served = (0..100).filter(|host| {
        queue.push(&key("main", *host), 100, "new");
        queue.pop() == Some("steady")
    });
    served.count()
}

/// Red where the clock goes by the cheapest waiting job: a waiting job would be served after hundreds of newcomers.
#[test]
fn one_cheap_job_does_not_put_off_who_waits_behind_newcomers() {
    let mut queue = Fair::new();
    queue.push(&key("main", 253), 5000, "dear");
    queue.pop();
    queue.push(&key("main", 253), 1, "cheap, and behind what was dear");
    assert!(served_beside_newcomers(queue) >= 10);
}

#[test]
fn a_flood_of_newcomers_does_not_put_off_who_waits() {
    // Many wait by then, and each has its turn.
    assert!(served_beside_newcomers(Fair::new()) >= 10);
}

#[test]
fn company_is_taken_in_fair_order_and_paid_for() {
    let mut queue = Fair::new();
    for n in 0..4 {
        queue.push(&key("noisy", 1), 5, ('a', n));
    }
    queue.push(&key("quiet", 1), 5, ('b', 0));
    queue.push(&key("quiet", 2), 5, ('a', 10));
    queue.push(&key("third", 1), 5, ('a', 20));
    assert_eq!(queue.pop(), Some(('a', 0)));
    assert_eq!(queue.pop_alike((2, 64), |item| item.0 == 'a'), [('a', 10), ('a', 20)], "others before the noisy one");
    assert_eq!(queue.pop(), Some(('a', 1)), "its turn is before that of who was served with less waiting");
    assert_eq!(order(&mut queue), [('b', 0), ('a', 2), ('a', 3)]);
}

#[test]
fn who_waits_alone_of_a_kind_is_not_jumped_over_for_ever() {
    let mut queue = Fair::new();
    let mut batches = 0;
    queue.push(&key("main", 1), 5, 'a');
    queue.push(&key("main", 2), 5, 'b');
    loop {
        // Two addresses that always keep each other company, with a turn that falls on the first.
        queue.push(&key("main", 1), 5, 'a');
        queue.push(&key("main", 2), 5, 'a');
        let first = queue.pop().unwrap();
        if first == 'b' {
            break;
        }
        queue.pop_alike((1, 64), |item| *item == first);
        batches += 1;
        assert!(batches <= 20, "for ever");
    }
}

#[test]
fn a_search_for_company_ends() {
    let mut queue = Fair::new();
    for n in 0..100_000u32 {
        queue.push(&FairKey::new("main", IpAddr::from(n.to_be_bytes())), 5, 'b');
    }
    queue.push(&key("main", 1), 5, 'a');
    assert!(queue.pop_alike((7, 64), |item| *item == 'a').is_empty(), "too far away");
    assert_eq!(queue.pop_alike((3, 64), |item| *item == 'b').len(), 3);
}

#[test]
fn a_64_bit_network_is_one_address() {
    let of = |text: &str| FairKey::new("main", text.parse().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
}

#[test]
fn room_is_made_by_the_longest_queue_and_its_last_comer() {
    let mut queue = Fair::new();
    for n in 0..4 {
        queue.push(&key("noisy", 1), 5, n);
    }
    queue.push(&key("quiet", 1), 5, 9);
    assert_eq!(queue.make_room(&key("new", 1), 5, 5), Some(vec![3]));
    assert_eq!(queue.make_room(&key("quiet", 2), 5, 1), Some(vec![2]));
    assert_eq!(queue.make_room(&key("quiet", 1), 5, 5), None, "each would have what the other has now");
    assert_eq!(queue.make_room(&key("noisy", 1), 5, 5), None);
    assert_eq!(queue.make_room(&key("noisy", 2), 5, 5), Some(vec![1]), "from another address of its own tenant");
    assert_eq!(queue.make_room(&key("noisy", 2), 5, 5), None);
    assert_eq!((queue.len(), queue.cost()), (2, 10));
}

#[test]
fn room_is_made_within_a_tenant_too() {
    let mut queue = Fair::new();
    for n in 0..4 {
        queue.push(&key("main", 1), 5, n);
    }
    assert_eq!(queue.make_room(&key("main", 2), 5, 7), Some(vec![3, 2]));
    assert_eq!(queue.make_room(&key("main", 1), 5, 1), None);
}

proptest! {
    /// Whatever arrives, leaves, is served or pushed out: nothing is lost or doubled, and the sums agree.
    #[test]
    fn books_balance(steps in prop::collection::vec((0u8..6, 0u8..3, 0u8..3, 1u64..60), 0..200)) {
        let mut queue = Fair::new();
        let mut inside: BTreeMap<u64, (FairKey, u64, u64)> = BTreeMap::new();
        for (n, (step, tenant, host, cost)) in (0u64..).zip(steps) {
            let key = key(["a", "b", "c"][usize::from(tenant)], host);
            let left = match step {
                0 | 1 => {
                    let id = queue.push(&key, cost, n);
                    inside.insert(n, (key, cost, id));
                    vec![]
                }
                2 => queue.pop().into_iter().collect(),
                3 => queue.pop_alike((usize::from(tenant) + 1, 64), |n| n % 3 == cost % 3),
                5 => {
                    if let Some(taken) = queue.pop() {
                        let (key, cost, id) = &inside[&taken];
                        queue.put_back(key, *cost, (*id, taken));
                    }
                    vec![]
                }
                _ => match inside.keys().nth(cost as usize % inside.len().max(1)) {
                    Some(n) if host == 0 => {
                        let (key, _, id) = &inside[n];
                        queue.remove(key, *id).into_iter().collect()
                    }
                    _ => queue.make_room(&key, cost, cost).unwrap_or_default(),
                },
            };
            for n in left {
                prop_assert!(inside.remove(&n).is_some());
            }
            prop_assert_eq!(queue.len(), inside.len());
            prop_assert_eq!(queue.cost(), inside.values().map(|(_, cost, _)| cost).sum::<u64>());
        }
        let mut rest = queue.drain();
        rest.sort_unstable();
        prop_assert_eq!(rest, inside.into_keys().collect::<Vec<_>>());
        prop_assert!(queue.tenants.flows.is_empty() && queue.tenants.turns.is_empty() && queue.tenants.sizes.is_empty());
    }
}

#[test]
fn what_is_put_back_is_where_it_was() {
    let mut queue = Fair::new();
    let ids: Vec<_> = (0..4).map(|n| queue.push(&key("main", 1), 5, n)).collect();
    let taken: Vec<_> = (0..3).filter_map(|_| queue.pop()).collect();
    assert_eq!(taken, [0, 1, 2]);
    queue.put_back(&key("main", 1), 5, (ids[1], 1));
    queue.put_back(&key("main", 1), 5, (ids[0], 0));
    assert_eq!(queue.len(), 3);
    assert_eq!(queue.remove(&key("main", 1), ids[1]), Some(1));
    assert_eq!(order(&mut queue), [0, 3]);
}

#[test]
fn the_longest_queues_lose_their_last() {
    let mut queue = Fair::new();
    for n in 0..6 {
        queue.push(&key("noisy", 1), 5, ("noisy", n));
    }
    queue.push(&key("quiet", 1), 5, ("quiet", 0));
    assert_eq!(queue.shed(14), [("noisy", 5), ("noisy", 4), ("noisy", 3)]);
    assert_eq!(queue.cost(), 20);
    assert_eq!(queue.shed(1000).len(), 4);
    assert_eq!((queue.len(), queue.cost()), (0, 0));
}

#[test]
fn what_comes_back_has_not_lost_its_turn_to_those_who_came_since() {
    // Red with `enter` in place of come_back in Fair::put_back: it would come after all of them, and have paid twice.
    let mut queue = Fair::new();
    let first = queue.push(&key("main", 0), 5, 0);
    queue.push(&key("main", 0), 5, 200);
    assert_eq!(queue.pop(), Some(0));
    for n in 1..100 {
        queue.push(&key("main", n), 5, n);
    }
    queue.put_back(&key("main", 0), 5, (first, 0));
    assert_eq!((queue.pop(), queue.pop()), (Some(0), Some(1)));
    let after: Vec<_> = order(&mut queue);
    assert_eq!(
        after.iter().position(|n| *n == 200),
        Some(98),
        "its next one waits for one of everybody else: {after:?}"
    );
}

#[test]
fn in_a_crowd_those_go_who_came_last_whatever_theirs_cost() {
    // Red with `largest` in place of dispensable in Fair::shed.
    let mut queue = Fair::new();
    for n in 0..20 {
        queue.push(&key("main", n), 50 - u64::from(n % 7), n);
    }
    assert_eq!(queue.shed(100), [19, 18, 17]);
    assert_eq!(order(&mut queue), (0..17).collect::<Vec<_>>());
}
