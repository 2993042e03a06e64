//! Which job is next: fair sharing between tenants, then the networks of a tenant, then the addresses of one.
//!
//! All levels use self-clocked fair queueing (Golestani, 1994): every flow has a tag that advances by the cost of what
//! it was served, and the smallest tag is next. A flow that arrives starts at the tag last served, but no further ahead
//! of the others than the mean cost of a waiting job: after a job hundreds of times as expensive it would wait for
//! hundreds of theirs. So waiting flows get equal shares of hashing time whatever the length of their queues, a
//! newcomer waits for at most about one job of every other flow, and a flow that comes and goes gains nothing by it.
//!
//! Jobs of one kind are cheaper together, so [`Fair::pop_alike`] takes some before their turn; their flows pay for them
//! as for any other service. Within a queue, jobs may overtake its first job only a few times.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

/// On whose behalf a password is hashed: tenants share the pool equally, then networks in a tenant, then addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairKey {
    tenant: Tenant,
    address: u128,
    throttled: bool,
}

impl FairKey {
    /// A visitor of `tenant` (a realm's id) from `address`. Each 64-bit network of IPv6 counts as one address, since
    /// one household or server gets a whole one; all those of one 48-bit network, which is what a site gets, together
    /// get the share of one IPv4 address.
    pub fn new(tenant: &str, address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
        };
        FairKey { tenant: Tenant::Of(tenant.into()), address, throttled: false }
    }

    /// The same key, for a caller that has failed so often that its guesses are being slowed down: few of a worker's
    /// refusals are computed again here, and nobody waits for that, so that guessers take no time of this machine.
    #[must_use]
    pub fn throttled(self) -> Self {
        FairKey { throttled: true, ..self }
    }
    /// The key of jobs that nobody asked for: a party of its own, as large as a tenant, whose places nobody takes.
    pub(crate) fn ours() -> Self {
        FairKey { tenant: Tenant::Ours, address: 0, throttled: false }
    }
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled
    }
}

/// The parties that share the pool's time first. No tenant's name can be that of the pool itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Tenant {
    Ours,
    Of(Arc<str>),
}

/// The network that an address belongs to: one party may have thousands of addresses in it.
fn network_of(address: u128) -> u128 {
    match Ipv6Addr::from_bits(address).to_ipv4_mapped() {
        Some(_) => address,
        None => address >> 80 << 80,
    }
}

/// When a flow is served: by tag, then by arrival. Flows that come back have numbers below zero.
type Turn = (u64, i64);

/// Flows that share equally. Costs are nanoseconds, never zero; a flow exists as long as one of its jobs waits.
struct Level<K, C> {
    /// The tag up to which service has advanced.
    clock: u64,
    arrivals: i64,
    returns: i64,
    waiting: u64,
    /// How many jobs wait.
    many: u64,
    /// Tags of flows that left before the clock reached their tag: they resume there if they come back.
    gone: HashMap<K, u64>,
    /// The same, by tag.
    owed: BTreeSet<(u64, K)>,
    flows: HashMap<K, Flow<C>>,
    turns: BTreeMap<Turn, K>,
    sizes: BTreeSet<(u64, K)>,
}

struct Flow<C> {
    turn: Turn,
    /// Cost of all that waits in the flow.
    waiting: u64,
    inner: C,
}

impl<K, C> Default for Level<K, C> {
    fn default() -> Self {
        let (flows, turns, sizes) = (HashMap::new(), BTreeMap::new(), BTreeSet::new());
        let (gone, owed) = (HashMap::new(), BTreeSet::new());
        Level { clock: 0, arrivals: 0, returns: 0, waiting: 0, many: 0, gone, owed, flows, turns, sizes }
    }
}

impl<K: Ord + Hash + Clone, C: Default> Level<K, C> {
    /// Returns the flow `key`, new or not, for something of `cost` that enters it.
    fn enter(&mut self, key: &K, cost: u64) -> &mut C {
        self.arrivals += 1;
        self.waiting += cost;
        self.many += 1;
        let flow = self.flows.entry(key.clone()).or_insert_with(|| {
            let owed = self.gone.remove(key).unwrap_or_default();
            self.owed.remove(&(owed, key.clone()));
            let tag = owed.max(self.clock);
            let turn = (tag, self.arrivals);
            self.turns.insert(turn, key.clone());
            Flow { turn, waiting: 0, inner: C::default() }
        });
        self.sizes.remove(&(flow.waiting, key.clone()));
        flow.waiting += cost;
        self.sizes.insert((flow.waiting, key.clone()));
        &mut flow.inner
    }

    /// Something of `cost` that was taken as served comes back into the flow `key`: the flow is where it was before,
    /// and has paid nothing. A flow that is no longer remembered had its turn long ago, and is first.
    fn come_back(&mut self, key: &K, cost: u64) -> Option<&mut C> {
        let was = self.flows.get(key).map(|flow| flow.turn.0).or_else(|| self.gone.get(key).copied());
        self.enter(key, cost);
        self.returns -= 1;
        let first = self.turns.first_key_value().map_or(0, |((tag, _), _)| *tag);
        let flow = self.flows.get_mut(key)?;
        self.turns.remove(&flow.turn);
        flow.turn = (was.map_or(first, |tag| tag.saturating_sub(cost)), self.returns);
        self.turns.insert(flow.turn, key.clone());
        Some(&mut flow.inner)
    }

    /// Something of `cost` has left the flow `key`; if it was `served`, the flow's turn moves on.
    fn leave(&mut self, key: &K, cost: u64, served: bool) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        self.waiting -= cost;
        self.many -= 1;
        self.sizes.remove(&(flow.waiting, key.clone()));
        flow.waiting -= cost;
        if served {
            self.arrivals += 1;
            // A flow that is served as company may be far ahead of those whose turn it is.
            let first = self.turns.first_key_value().map_or(flow.turn.0, |((tag, _), _)| *tag);
            let step = self.waiting.checked_div(self.many).map_or(cost, |mean| mean.min(cost));
            self.clock = self.clock.max(first + step);
            self.turns.remove(&flow.turn);
            flow.turn = (flow.turn.0 + cost, self.arrivals);
            self.turns.insert(flow.turn, key.clone());
        }
        let tag = flow.turn.0;
        if flow.waiting == 0 {
            self.turns.remove(&flow.turn);
            self.flows.remove(key);
            self.gone.insert(key.clone(), tag);
            self.owed.insert((tag, key.clone()));
        } else {
            self.sizes.insert((flow.waiting, key.clone()));
        }
        if self.waiting == 0 {
            self.clock = self.owed.last().map_or(0, |(tag, _)| *tag).max(self.clock);
        }
        self.forgive();
    }

    /// Forgets the flows that have gone and whose tag the clock has reached, and more if too many are left.
    fn forgive(&mut self) {
        while let Some((tag, _)) = self.owed.first()
            && (*tag <= self.clock || self.owed.len() > Self::MOST_GONE)
        {
            let Some((_, key)) = self.owed.pop_first() else { return };
            self.gone.remove(&key);
        }
    }

    /// Most flows that are remembered after they have gone.
    const MOST_GONE: usize = 4096;

    fn next(&self) -> Option<&K> {
        self.turns.first_key_value().map(|(_, key)| key)
    }
    /// The flows in the order of their turns.
    fn in_turn(&self) -> impl Iterator<Item = (&K, &C)> {
        self.turns.values().filter_map(|key| Some((key, self.inner(key)?)))
    }
    fn largest(&self) -> Option<&(u64, K)> {
        self.sizes.last()
    }

    /// The flow that has to go first where all wait too long: of those with the most waiting, give or take the mean
    /// cost of a job, the one whose turn would come last. So in a crowd of people with one job each, nobody goes for
    /// the price of theirs.
    fn dispensable(&self) -> Option<&K> {
        let (most, largest) = self.largest()?;
        let margin = self.waiting.checked_div(self.many).unwrap_or(0);
        let near = |key: &&K| self.waiting(key).saturating_add(margin) > *most;
        self.turns.values().rev().take(LOOKS).find(near).or(Some(largest))
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

/// Most flows that are looked at to find one that has to go.
const LOOKS: usize = 256;

struct Entry<T> {
    id: u64,
    cost: u64,
    item: T,
}

/// The jobs that wait for one address, first come first served, except for [`Fair::pop_alike`].
struct Line<T> {
    entries: VecDeque<Entry<T>>,
    /// How often the first job was overtaken.
    jumped: u32,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line { entries: VecDeque::new(), jumped: 0 }
    }
}

impl<T> Line<T> {
    /// How often the first job may be overtaken. Without a limit, it could wait for ever behind later jobs of its own
    /// address that always join others' batches.
    const JUMPS: u32 = 8;

    /// The place of the first job that is `alike`, among those that may be taken. `looks` bounds the search.
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

/// The addresses of a network, and what waits for each.
type Network<T> = Level<u128, Line<T>>;

/// The waiting jobs, in fair order.
pub(crate) struct Fair<T> {
    tenants: Level<Tenant, Level<u128, Network<T>>>,
    len: usize,
    last_id: u64,
}

impl<T> Fair<T> {
    pub(crate) fn new() -> Self {
        Fair { tenants: Level::default(), len: 0, last_id: 0 }
    }
    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
    /// The cost of all waiting jobs, in nanoseconds.
    pub(crate) fn cost(&self) -> u64 {
        self.tenants.waiting
    }

    /// Puts `item` at the end of its address's queue; the returned number names it for [`Fair::remove`].
    pub(crate) fn push(&mut self, key: &FairKey, cost: u64, item: T) -> u64 {
        self.len += 1;
        self.last_id += 1;
        let id = self.last_id;
        self.enter(key, cost).entries.push_back(Entry { id, cost, item });
        id
    }

    fn enter(&mut self, key: &FairKey, cost: u64) -> &mut Line<T> {
        let networks = self.tenants.enter(&key.tenant, cost);
        networks.enter(&network_of(key.address), cost).enter(&key.address, cost)
    }

    /// The number that the next [`Fair::push`] gives.
    pub(crate) fn upcoming(&self) -> u64 {
        self.last_id + 1
    }

    /// Puts back a job that was taken as served, under its old number: where it was, before those that came later.
    pub(crate) fn put_back(&mut self, key: &FairKey, cost: u64, (id, item): (u64, T)) {
        let network = self.tenants.come_back(&key.tenant, cost);
        let network = network.and_then(|networks| networks.come_back(&network_of(key.address), cost));
        let Some(line) = network.and_then(|addresses| addresses.come_back(&key.address, cost)) else { return };
        let at = line.entries.partition_point(|entry| entry.id < id);
        line.entries.insert(at, Entry { id, cost, item });
        self.len += 1;
    }

    /// Takes the last to come of the longest queues until at least `need` is freed, or nothing is left.
    pub(crate) fn shed(&mut self, need: u64) -> Vec<T> {
        let (before, mut out) = (self.cost(), Vec::new());
        while before - self.cost() < need {
            let Some((tenant, address)) = self.dispensable() else { break };
            out.extend(self.take(&tenant, address, false, |line| line.entries.pop_back()));
        }
        out
    }

    /// The job that [`Fair::pop`] would take, and the number that names it.
    pub(crate) fn peek(&self) -> Option<(u64, &T)> {
        let (tenant, address) = self.next()?;
        self.line(tenant, address)?.entries.front().map(|entry| (entry.id, &entry.item))
    }

    fn next(&self) -> Option<(&Tenant, u128)> {
        let tenant = self.tenants.next()?;
        let networks = self.tenants.inner(tenant)?;
        let addresses = networks.inner(networks.next()?)?;
        Some((tenant, *addresses.next()?))
    }

    fn line(&self, tenant: &Tenant, address: u128) -> Option<&Line<T>> {
        self.tenants.inner(tenant)?.inner(&network_of(address))?.inner(&address)
    }

    /// The tenant with the most waiting.
    fn largest_tenant(&self) -> Option<&(u64, Tenant)> {
        self.tenants.sizes.iter().rev().find(|(_, tenant)| *tenant != Tenant::Ours)
    }

    /// The address whose last job goes first where all wait too long.
    fn dispensable(&self) -> Option<(Tenant, u128)> {
        let tenant = self.tenants.dispensable().filter(|tenant| **tenant != Tenant::Ours);
        let tenant = tenant.or_else(|| Some(&self.largest_tenant()?.1))?;
        let networks = self.tenants.inner(tenant)?;
        let address = networks.inner(networks.dispensable()?)?.dispensable()?;
        Some((tenant.clone(), *address))
    }

    /// The address with the most waiting in this network of the tenant, or in the largest of its networks.
    fn longest(&self, tenant: &Tenant, network: Option<u128>) -> Option<u128> {
        let networks = self.tenants.inner(tenant)?;
        let network = network.or_else(|| Some(networks.largest()?.1))?;
        Some(networks.inner(&network)?.largest()?.1)
    }

    /// The job that [`Fair::pop_alike`] would take first.
    pub(crate) fn peek_alike(&self, mut looks: usize, alike: impl Fn(&T) -> bool) -> Option<&T> {
        let (tenant, address, at) = self.find(&mut looks, &alike)?;
        Some(&self.line(&tenant, address)?.entries.get(at)?.item)
    }

    /// Takes the next job.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (tenant, address) = self.next().map(|(tenant, address)| (tenant.clone(), address))?;
        self.take(&tenant, address, true, |line| line.remove(0))
    }

    /// Takes up to `most` jobs that are `alike`, in the order in which their flows would have their turns if nothing
    /// else waited. Looks at no more than `looks` jobs.
    pub(crate) fn pop_alike(&mut self, (most, mut looks): (usize, usize), alike: impl Fn(&T) -> bool) -> Vec<T> {
        let mut out = Vec::new();
        while out.len() < most {
            let Some((tenant, address, at)) = self.find(&mut looks, &alike) else { break };
            out.extend(self.take(&tenant, address, true, |line| line.jump_to(at)));
        }
        out
    }

    fn find(&self, looks: &mut usize, alike: impl Fn(&T) -> bool) -> Option<(Tenant, u128, usize)> {
        for (tenant, networks) in self.tenants.in_turn() {
            for (address, line) in networks.in_turn().flat_map(|(_, addresses)| addresses.in_turn()) {
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

    /// Takes out a job that is no longer to wait; `None` if it was taken before.
    pub(crate) fn remove(&mut self, key: &FairKey, id: u64) -> Option<T> {
        self.take(&key.tenant, key.address, false, |line| {
            let at = line.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
            line.remove(at)
        })
    }

    /// Makes room of at least `need` for a newcomer of `cost`, at the expense of the longest queue: takes the last jobs
    /// of the tenant with the most waiting, or of another network or address of the newcomer's own tenant. Returns
    /// `None` and changes nothing where that queue would end up shorter than the newcomer's.
    pub(crate) fn make_room(&mut self, key: &FairKey, cost: u64, need: u64) -> Option<Vec<T>> {
        let (tenant, network) = self.whose_room(key, cost.saturating_add(need))?;
        let (mut freed, mut out) = (0, Vec::new());
        while freed < need {
            let address = self.longest(&tenant, network)?;
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

    /// The tenant that has to give, and which of its networks, unless it is always the largest: a queue there is longer
    /// than the newcomer's by `margin`.
    fn whose_room(&self, key: &FairKey, margin: u64) -> Option<(Tenant, Option<u128>)> {
        let longer = |largest: u64, own: u64| largest >= own.saturating_add(margin);
        let (largest, tenant) = self.largest_tenant()?;
        if *tenant != key.tenant && longer(*largest, self.tenants.waiting(&key.tenant)) {
            return Some((tenant.clone(), None));
        }
        let (networks, own) = (self.tenants.inner(&key.tenant)?, network_of(key.address));
        let (largest, network) = networks.largest()?;
        if *network != own && longer(*largest, networks.waiting(&own)) {
            return Some((key.tenant.clone(), Some(*network)));
        }
        let addresses = networks.inner(&own)?;
        let (largest, address) = addresses.largest()?;
        let gives = *address != key.address && longer(*largest, addresses.waiting(&key.address));
        gives.then(|| (key.tenant.clone(), Some(own)))
    }

    /// Takes everything, in no order.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    fn take(
        &mut self,
        tenant: &Tenant,
        address: u128,
        served: bool,
        choose: impl FnOnce(&mut Line<T>) -> Option<Entry<T>>,
    ) -> Option<T> {
        let (networks, network) = (self.tenants.inner_mut(tenant)?, network_of(address));
        let addresses = networks.inner_mut(&network)?;
        let entry = choose(addresses.inner_mut(&address)?)?;
        addresses.leave(&address, entry.cost, served);
        networks.leave(&network, entry.cost, served);
        self.tenants.leave(tenant, entry.cost, served);
        self.len -= 1;
        Some(entry.item)
    }
}

#[cfg(test)]
mod tests;
