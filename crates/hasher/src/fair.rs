//! Who is next: fair sharing between tenants, and within a tenant between addresses.
//!
//! Both levels use self-clocked fair queueing (Golestani, 1994): every flow has a tag that moves ahead by the cost of
//! what it was served, the smallest tag is next, and a flow that arrives starts at the tag last served. So flows that
//! wait get equal shares of hashing time whatever the length of their queues, a newcomer waits for at most about one
//! job of every other flow, and a flow that comes and goes gains nothing by it.
//!
//! Jobs of one kind are cheaper together, so [`Fair::pop_alike`] takes some before their turn; their flows pay for it as
//! for any other service. What it jumps over within a queue it jumps over a few times only.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    hash::Hash,
    net::IpAddr,
    sync::Arc,
};

/// On whose behalf a password is hashed: tenants share the pool equally, then the addresses within a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairKey {
    tenant: Arc<str>,
    address: u128,
}

impl FairKey {
    /// A visitor of `tenant` (a realm's id) from `address`. The 64-bit networks of IPv6 count as one address each,
    /// since one household or server gets a whole one.
    pub fn new(tenant: &str, address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
        };
        FairKey { tenant: tenant.into(), address }
    }
}

/// When a flow is served: by tag, then by arrival.
type Turn = (u64, u64);

/// Flows that share equally. Costs are nanoseconds, never zero; a flow exists as long as something of it waits.
struct Level<K, C> {
    /// The tag up to which service has come.
    clock: u64,
    arrivals: u64,
    waiting: u64,
    flows: HashMap<K, Flow<C>>,
    turns: BTreeMap<Turn, K>,
    sizes: BTreeSet<(u64, K)>,
}

struct Flow<C> {
    turn: Turn,
    /// Cost of all that waits in it.
    waiting: u64,
    inner: C,
}

impl<K, C> Default for Level<K, C> {
    fn default() -> Self {
        let (flows, turns, sizes) = (HashMap::new(), BTreeMap::new(), BTreeSet::new());
        Level { clock: 0, arrivals: 0, waiting: 0, flows, turns, sizes }
    }
}

impl<K: Ord + Hash + Clone, C: Default> Level<K, C> {
    /// The flow `key`, new or not, into which something of `cost` comes.
    fn enter(&mut self, key: &K, cost: u64) -> &mut C {
        self.arrivals += 1;
        self.waiting += cost;
        let flow = self.flows.entry(key.clone()).or_insert_with(|| {
            let turn = (self.clock, self.arrivals);
            self.turns.insert(turn, key.clone());
            Flow { turn, waiting: 0, inner: C::default() }
        });
        self.sizes.remove(&(flow.waiting, key.clone()));
        flow.waiting += cost;
        self.sizes.insert((flow.waiting, key.clone()));
        &mut flow.inner
    }

    /// Something of `cost` has left the flow `key`; if it was `served`, the flow's turn moves on.
    fn leave(&mut self, key: &K, cost: u64, served: bool) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        self.waiting -= cost;
        self.sizes.remove(&(flow.waiting, key.clone()));
        flow.waiting -= cost;
        if served {
            self.arrivals += 1;
            self.turns.remove(&flow.turn);
            flow.turn = (flow.turn.0 + cost, self.arrivals);
            self.turns.insert(flow.turn, key.clone());
            self.clock = self.clock.max(flow.turn.0);
        }
        if flow.waiting == 0 {
            self.turns.remove(&flow.turn);
            self.flows.remove(key);
        } else {
            self.sizes.insert((flow.waiting, key.clone()));
        }
    }

    fn next(&self) -> Option<&K> {
        self.turns.first_key_value().map(|(_, key)| key)
    }
    /// The flows, whose turn is first first.
    fn in_turn(&self) -> impl Iterator<Item = (&K, &C)> {
        self.turns.values().filter_map(|key| Some((key, self.inner(key)?)))
    }
    fn largest(&self) -> Option<&(u64, K)> {
        self.sizes.last()
    }
    fn inner(&self, key: &K) -> Option<&C> {
        self.flows.get(key).map(|flow| &flow.inner)
    }
    fn inner_mut(&mut self, key: &K) -> Option<&mut C> {
        self.flows.get_mut(key).map(|flow| &mut flow.inner)
    }
    fn waiting(&self, key: &K) -> u64 {
        self.flows.get(key).map_or(0, |flow| flow.waiting)
    }
}

struct Entry<T> {
    id: u64,
    cost: u64,
    item: T,
}

/// What waits for one address, first come first served, but for [`Fair::pop_alike`].
struct Line<T> {
    entries: VecDeque<Entry<T>>,
    /// How often the first was jumped over.
    jumped: u32,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line { entries: VecDeque::new(), jumped: 0 }
    }
}

impl<T> Line<T> {
    /// How often the first may be jumped over. Without a limit, a job could wait for ever behind later ones of its own
    /// address that always are somebody's company.
    const JUMPS: u32 = 8;

    /// Where the first is that is `alike`, among those that may be taken. `looks` bounds the search.
    fn find(&self, looks: &mut usize, alike: impl Fn(&T) -> bool) -> Option<usize> {
        let reach = if self.jumped < Self::JUMPS { self.entries.len() } else { 1 };
        let found = self.entries.iter().take(reach.min(*looks)).position(|entry| alike(&entry.item));
        *looks -= found.map_or(reach.min(*looks), |at| at + 1);
        found
    }

    fn remove(&mut self, at: usize) -> Option<Entry<T>> {
        if at == 0 {
            self.jumped = 0;
        }
        self.entries.remove(at)
    }

    fn jump_to(&mut self, at: usize) -> Option<Entry<T>> {
        self.jumped += u32::from(at > 0);
        self.remove(at)
    }
}

/// What waits, in fair order.
pub(crate) struct Fair<T> {
    tenants: Level<Arc<str>, Level<u128, Line<T>>>,
    len: usize,
    last_id: u64,
}

impl<T> Fair<T> {
    pub(crate) fn new() -> Self {
        Fair { tenants: Level::default(), len: 0, last_id: 0 }
    }
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
    /// The cost of all that wait, in nanoseconds.
    pub(crate) fn cost(&self) -> u64 {
        self.tenants.waiting
    }

    /// Puts `item` at the end of its address's queue; the answer names it for [`Fair::remove`].
    pub(crate) fn push(&mut self, key: &FairKey, cost: u64, item: T) -> u64 {
        self.len += 1;
        self.last_id += 1;
        let id = self.last_id;
        let line = self.tenants.enter(&key.tenant, cost).enter(&key.address, cost);
        line.entries.push_back(Entry { id, cost, item });
        id
    }

    /// What [`Fair::pop`] would take, with the number that names it.
    pub(crate) fn peek(&self) -> Option<(u64, &T)> {
        let addresses = self.tenants.inner(self.tenants.next()?)?;
        addresses.inner(addresses.next()?)?.entries.front().map(|entry| (entry.id, &entry.item))
    }

    /// What [`Fair::pop_alike`] would take first, but for its cost.
    pub(crate) fn peek_alike(&self, alike: impl Fn(&T) -> bool) -> Option<&T> {
        let mut looks = Self::LOOKS;
        let (tenant, address, at) = self.find(&mut looks, &alike)?;
        Some(&self.tenants.inner(&tenant)?.inner(&address)?.entries.get(at)?.item)
    }

    /// Takes who is next.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let tenant = self.tenants.next()?.clone();
        let address = *self.tenants.inner(&tenant)?.next()?;
        self.take(&tenant, address, true, |line| line.remove(0))
    }

    /// Takes up to `most` that are `alike`, in the order in which it would be the turn of their flows if nothing else
    /// waited. Looks at no more than [`Fair::LOOKS`].
    pub(crate) fn pop_alike(&mut self, most: usize, alike: impl Fn(&T) -> bool) -> Vec<T> {
        let (mut out, mut looks) = (Vec::new(), Self::LOOKS);
        while out.len() < most {
            let Some((tenant, address, at)) = self.find(&mut looks, &alike) else { break };
            out.extend(self.take(&tenant, address, true, |line| line.jump_to(at)));
        }
        out
    }

    /// Jobs that one search looks at. Threads of low priority search while those that admit jobs wait for the queue:
    /// this bounds it to some microseconds.
    const LOOKS: usize = 64;

    fn find(&self, looks: &mut usize, alike: impl Fn(&T) -> bool) -> Option<(Arc<str>, u128, usize)> {
        for (tenant, addresses) in self.tenants.in_turn() {
            for (address, line) in addresses.in_turn() {
                if let Some(at) = line.find(looks, &alike) {
                    return Some((tenant.clone(), *address, at));
                }
                if *looks == 0 {
                    return None;
                }
            }
        }
        None
    }

    /// Takes out one that no longer wants to wait; `None` when it was taken before.
    pub(crate) fn remove(&mut self, key: &FairKey, id: u64) -> Option<T> {
        self.take(&key.tenant, key.address, false, |line| {
            let at = line.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
            line.remove(at)
        })
    }

    /// Makes room of at least `need` for a newcomer of `cost`, at the expense of the longest queue: the last to come of
    /// the tenant that has most waiting, or of another address of the newcomer's own. Answers `None` and changes
    /// nothing where that queue would end up shorter than the newcomer's.
    pub(crate) fn make_room(&mut self, key: &FairKey, cost: u64, need: u64) -> Option<Vec<T>> {
        let tenant = self.whose_room(key, cost.saturating_add(need))?;
        let (mut freed, mut out) = (0, Vec::new());
        while freed < need {
            let (_, address) = *self.tenants.inner(&tenant)?.largest()?;
            let before = self.cost();
            out.push(self.take(&tenant, address, false, |line| line.entries.pop_back())?);
            freed += before - self.cost();
        }
        Some(out)
    }

    /// Whether [`Fair::make_room`] would find room.
    pub(crate) fn would_make_room(&self, key: &FairKey, cost: u64, need: u64) -> bool {
        self.whose_room(key, cost.saturating_add(need)).is_some()
    }

    /// The tenant that has to give, if one does: someone's queue there is longer than the newcomer's by `margin`.
    fn whose_room(&self, key: &FairKey, margin: u64) -> Option<Arc<str>> {
        let longer = |largest: u64, own: u64| largest >= own.saturating_add(margin);
        let (largest, tenant) = self.tenants.largest()?;
        if *tenant != key.tenant && longer(*largest, self.tenants.waiting(&key.tenant)) {
            return Some(tenant.clone());
        }
        let addresses = self.tenants.inner(&key.tenant)?;
        let (largest, address) = addresses.largest()?;
        let gives = *address != key.address && longer(*largest, addresses.waiting(&key.address));
        gives.then(|| key.tenant.clone())
    }

    /// Takes everything, in no order.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    fn take(
        &mut self,
        tenant: &Arc<str>,
        address: u128,
        served: bool,
        choose: impl FnOnce(&mut Line<T>) -> Option<Entry<T>>,
    ) -> Option<T> {
        let addresses = self.tenants.inner_mut(tenant)?;
        let entry = choose(addresses.inner_mut(&address)?)?;
        addresses.leave(&address, entry.cost, served);
        self.tenants.leave(tenant, entry.cost, served);
        self.len -= 1;
        Some(entry.item)
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(queue.pop_alike(2, |item| item.0 == 'a'), [('a', 10), ('a', 20)], "others before the noisy one");
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
            // Two addresses that always have company for each other, with a turn that falls on the first.
            queue.push(&key("main", 1), 5, 'a');
            queue.push(&key("main", 2), 5, 'a');
            let first = queue.pop().unwrap();
            if first == 'b' {
                break;
            }
            queue.pop_alike(1, |item| *item == first);
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
        assert!(queue.pop_alike(7, |item| *item == 'a').is_empty(), "too far away");
        assert_eq!(queue.pop_alike(3, |item| *item == 'b').len(), 3);
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
        /// Whatever comes, leaves, is served or pushed out: nothing is lost or doubled, and the sums agree.
        #[test]
        fn books_balance(steps in prop::collection::vec((0u8..5, 0u8..3, 0u8..3, 1u64..60), 0..200)) {
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
                    3 => queue.pop_alike(usize::from(tenant) + 1, |n| n % 3 == cost % 3),
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
}
