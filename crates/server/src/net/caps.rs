//! How many connections there may be, in all and from one address. A request that shares its connection with others
//! counts as another connection: it holds as much memory.

use super::{AddressKey, Cidr, LOOPBACK, NetworkKey};
use crate::config::Config;
use crate::hashing;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How often connections are told to make way: by then, the address that holds most has had the time to do so.
const MAKE_WAY_EVERY: Duration = Duration::from_millis(100);

/// The most connections that the users behind one address plausibly hold at a time: an address that holds more makes
/// way before a network whose addresses hold few each.
const PEOPLE: usize = 64;

/// The number of files kept for things other than connections, if there are that many.
const OTHER_FILES: u64 = 1024;
/// A server at rest has half as many open, besides one for each hashing thread.
const FEWEST_OTHERS: u64 = 64;

/// Counts open connections. Connections of exempt networks, including loopback, count only towards the total.
///
/// If no place is left for a newcomer, the address that holds most of them makes way, or, if no address holds more than
/// users plausibly do, the network that holds most: their connections that wait for a request are closed. So neither a
/// few addresses nor a large network can keep everybody else out. If one address has nearly all its places, its own
/// connections without a request for some seconds are closed: its users who are done make way for new ones.
pub struct Caps {
    total: usize,
    per_address: usize,
    exempt: Vec<Cidr>,
    /// The names of the two caps.
    names: [&'static str; 2],
    open: Mutex<Open>,
    refused: [AtomicU64; Full::ALL.len()],
    cut: [AtomicU64; Cut::ALL.len()],
}

/// Why a connection was cut before either side had finished with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its TLS handshake took too long.
    Handshake,
    /// Nothing came in time, or the rest of a request's headers did not.
    Silent,
    /// HTTP/2: its client did not take a response.
    Untaken,
    /// It made way for others.
    MadeWay,
    /// It sent too much that belongs to no request.
    Chatter,
}

impl Cut {
    /// All reasons, as they are counted.
    const ALL: [Cut; 5] = [Cut::Handshake, Cut::Silent, Cut::Untaken, Cut::MadeWay, Cut::Chatter];

    fn name(self) -> &'static str {
        match self {
            Cut::Handshake => "handshake",
            Cut::Silent => "silent",
            Cut::Untaken => "untaken",
            Cut::MadeWay => "made_way",
            Cut::Chatter => "chatter",
        }
    }
}

#[derive(Default)]
struct Open {
    total: usize,
    by_address: HashMap<AddressKey, Held>,
    /// When connections were last told to make way.
    made_way: Option<Instant>,
}

/// The places that one address holds.
#[derive(Default)]
struct Held {
    places: usize,
    make_way: Arc<Notify>,
    /// Wakes its quiet connections.
    step_aside: Arc<Notify>,
    /// When they were last woken.
    told: Option<Instant>,
}

impl Held {
    /// Returns the signal for its quiet connections to make way for others of the same address.
    fn steps_aside(&mut self) -> Option<Arc<Notify>> {
        if self.told.is_some_and(|at| at.elapsed() < MAKE_WAY_EVERY) {
            return None;
        }
        self.told = Some(Instant::now());
        Some(Arc::clone(&self.step_aside))
    }
}

impl Caps {
    /// Allows at most `total` connections, `per_address` of them from one address outside `exempt` and loopback.
    pub fn new(total: usize, per_address: usize, exempt: Vec<Cidr>) -> Arc<Self> {
        let exempt = exempt.into_iter().chain(LOOPBACK).collect();
        Arc::new(Caps::called(["connections", "connections of one address"], (total, per_address), exempt))
    }

    fn called(names: [&'static str; 2], (total, per_address): (usize, usize), exempt: Vec<Cidr>) -> Self {
        let open = Mutex::default();
        Caps { total, per_address, exempt, names, open, refused: Default::default(), cut: Default::default() }
    }

    /// Likewise, but loopback counts as any other address.
    #[cfg(test)]
    pub fn counting_all(total: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Caps::called(["connections", "connections of one address"], (total, per_address), Vec::new()))
    }

    /// Makes the configured caps, for a process that may have so many `files` open. Listed proxies are exempt: their
    /// address stands for everybody behind them.
    pub fn of(config: &Config, files: u64) -> Arc<Self> {
        let limits = &config.limits;
        let exempt = limits.exempt_addresses.iter().chain(&config.proxy.trusted).copied().chain(LOOPBACK).collect();
        let names = ["limits.connections", "limits.connections_per_address"];
        let threads = hashing::limits(config).map_or(0, |(threads, _)| threads);
        let total = limits.connections.min(within(files, threads as u64));
        let mut per_address = limits.connections_per_address;
        if total < limits.connections {
            // The configured number may be all places that there are.
            per_address = per_address.min((total / 4).max(1));
            tracing::info!(
                files,
                connections = total,
                "limits.connections is lowered: fewer files may be open (ulimit -n)"
            );
        }
        Arc::new(Caps::called(names, (total, per_address), exempt))
    }

    /// Takes a place for a connection from `address`, or for one more request on it; dropping it gives it back.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let exempt = self.exempt.iter().any(|network| network.contains(address));
        let key = (!exempt).then(|| AddressKey::of(address));
        let mut open = self.lock();
        let of_address = key.and_then(|key| open.by_address.get(&key)).map_or(0, |held| held.places);
        if of_address >= self.per_address || open.total >= self.total {
            let full = if of_address >= self.per_address { Full::OfAddress } else { Full::OfAll };
            let makes_way = match full {
                Full::OfAll => open.who_makes_way(key),
                Full::OfAddress => open.within_address(key),
            };
            drop(open);
            makes_way.iter().for_each(|told| told.notify_waiters());
            self.refuse(address, full);
            return Err(full);
        }
        open.total += 1;
        let ways = key.map(|key| {
            let held = open.by_address.entry(key).or_default();
            held.places += 1;
            (Arc::clone(&held.make_way), Arc::clone(&held.step_aside))
        });
        // Before the last place is taken, so that no newcomer is refused for coming after others.
        let nearly_all = of_address >= self.per_address - self.per_address / 8;
        let makes_way = if nearly_all { open.within_address(key) } else { Vec::new() };
        drop(open);
        makes_way.iter().for_each(|told| told.notify_waiters());
        Ok(Place { caps: Arc::clone(self), key, ways })
    }

    /// Returns how many places are taken now.
    pub fn open(&self) -> usize {
        self.lock().total
    }

    /// Returns how many places there are.
    pub fn most(&self) -> usize {
        self.total
    }

    /// Returns the connections closed at once, and requests refused, since the start, by the cap that was reached.
    pub fn refused(&self) -> [(&'static str, u64); Full::ALL.len()] {
        Full::ALL.map(|full| (full.name(), self.refused[full as usize].load(Ordering::Relaxed)))
    }

    /// Returns the connections that were cut since the start, by reason.
    pub fn cut(&self) -> [(&'static str, u64); Cut::ALL.len()] {
        Cut::ALL.map(|why| (why.name(), self.cut[why as usize].load(Ordering::Relaxed)))
    }

    fn refuse(&self, address: IpAddr, full: Full) {
        let count = self.refused[full as usize].fetch_add(1, Ordering::Relaxed) + 1;
        // A flood must not become a flood of log lines: the 1st, 2nd, 4th, 8th … refusal is logged.
        if count.is_power_of_two() {
            let cap = self.names[full as usize];
            tracing::warn!(%address, cap, count, "connection refused");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Returns the signals for connections to make way for a newcomer.
    fn who_makes_way(&mut self, newcomer: Option<AddressKey>) -> Vec<Arc<Notify>> {
        if self.made_way.is_some_and(|at| at.elapsed() < MAKE_WAY_EVERY) {
            return Vec::new();
        }
        // Whatever is found: the search through all addresses is what has to be rare.
        self.made_way = Some(Instant::now());
        let holds = newcomer.and_then(|key| self.by_address.get(&key)).map_or(0, |held| held.places);
        let most = self.by_address.values().max_by_key(|held| held.places).filter(|most| most.places > holds + 1);
        match most {
            Some(most) if most.places > PEOPLE => vec![Arc::clone(&most.make_way)],
            most => match self.largest_network(newcomer) {
                Some(largest) => self.within(largest),
                None => most.map(|most| Arc::clone(&most.make_way)).into_iter().collect(),
            },
        }
    }

    /// Returns the signal for the quiet connections of one address.
    fn within_address(&mut self, key: Option<AddressKey>) -> Vec<Arc<Notify>> {
        let held = key.and_then(|key| self.by_address.get_mut(&key));
        held.and_then(Held::steps_aside).into_iter().collect()
    }

    /// Returns the network that holds most, if that is more than the newcomer's network would hold.
    fn largest_network(&self, newcomer: Option<AddressKey>) -> Option<NetworkKey> {
        let mut networks: HashMap<NetworkKey, usize> = HashMap::new();
        for (key, held) in &self.by_address {
            *networks.entry(key.network()).or_default() += held.places;
        }
        let holds = newcomer.and_then(|key| networks.get(&key.network()).copied()).unwrap_or(0);
        let most = networks.into_iter().max_by_key(|(_, places)| *places);
        most.filter(|(_, places)| *places > holds + 1).map(|(network, _)| network)
    }

    fn within(&self, network: NetworkKey) -> Vec<Arc<Notify>> {
        let inside = self.by_address.iter().filter(|(key, _)| key.network() == network);
        inside.map(|(_, held)| Arc::clone(&held.make_way)).collect()
    }
}

/// Returns how many of a process's files can be connections. The rest is for what has to go on under any load: the
/// database, hashing threads, operators' commands, scrapers, backups, certificates. A few connections are allowed
/// however few files there are.
fn within(files: u64, hashing: u64) -> usize {
    let others = (files / 4).clamp(FEWEST_OTHERS, OTHER_FILES) + hashing;
    usize::try_from(files.saturating_sub(others).max(files / 8)).unwrap_or(usize::MAX)
}

/// Which places are all taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Those of all addresses.
    OfAll,
    /// Those of one address.
    OfAddress,
}

impl Full {
    /// Both caps, as they are counted.
    const ALL: [Full; 2] = [Full::OfAll, Full::OfAddress];

    fn name(self) -> &'static str {
        match self {
            Full::OfAll => "total",
            Full::OfAddress => "address",
        }
    }
}

/// A connection's place among those that may be open.
pub struct Place {
    caps: Arc<Caps>,
    key: Option<AddressKey>,
    /// Wake those that make way for others, and those that step aside for their own address.
    ways: Option<(Arc<Notify>, Arc<Notify>)>,
}

impl Place {
    /// Notes that this server ends the connection: cut, if there is a reason for that.
    pub fn end(&self, address: SocketAddr, why: Option<Cut>) {
        if let Some(why) = why {
            self.cut(why);
            tracing::debug!(%address, ?why, "connection was cut");
        }
    }

    /// Counts the connection as cut.
    pub fn cut(&self, why: Cut) {
        self.caps.cut[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a future that is ready once this address has to make way; `None` if it never has to.
    pub fn made_to_go(&self) -> Option<OwnedNotified> {
        self.ways.as_ref().map(|(make_way, _)| Arc::clone(make_way).notified_owned())
    }

    /// Returns a future that is ready once the address's quiet connections have to go; `None` if they never have to.
    pub fn asked_aside(&self) -> Option<OwnedNotified> {
        self.ways.as_ref().map(|(_, step_aside)| Arc::clone(step_aside).notified_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.caps.lock();
        open.total -= 1;
        let Some(key) = self.key else { return };
        match open.by_address.get_mut(&key) {
            Some(held) if held.places > 1 => held.places -= 1,
            _ => {
                open.by_address.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_gets_it_back() {
        let caps = Caps::new(100, 2, vec!["10.0.0.0/8".parse().unwrap()]);
        let admit = |text: &str| caps.admit(text.parse().unwrap()).ok();
        let first = admit("2001:db8::1");
        let second = admit("2001:db8::2");
        assert!(first.is_some() && second.is_some());
        assert!(admit("2001:db8::3").is_none(), "the /64 has two already");
        assert!(admit("2001:db8:0:1::3").is_some());
        drop(first);
        assert!(admit("2001:db8::3").is_some());
        let many: Vec<_> = (0..10).flat_map(|_| [admit("127.0.0.1"), admit("10.1.1.1"), admit("::1")]).collect();
        assert!(many.iter().all(Option::is_some));
        assert_eq!((caps.open(), caps.refused()), (31, [("total", 0), ("address", 1)]));
        drop((second, many));
        assert_eq!((caps.open(), caps.lock().by_address.len()), (0, 0));
    }

    /// Red without `within` in `Caps::of`, or where half of few files are connections, or hashing threads get none.
    #[test]
    fn connections_leave_files_for_everything_else() {
        for (files, hashing, most) in
            [(64, 2, 8), (128, 2, 62), (200, 2, 134), (256, 40, 152), (1024, 2, 766), (4096, 2, 3070), (8192, 2, 7166)]
        {
            assert_eq!(within(files, hashing), most, "{files} {hashing}");
        }
        let config = Config::load(crate::config::Sources::default()).unwrap();
        let most = |files| Caps::of(&config, files).most();
        assert_eq!([1 << 20, u64::MAX].map(most), [config.limits.connections; 2]);
        assert!(most(1024) < config.limits.connections);
    }

    #[test]
    fn who_makes_way_is_looked_for_rarely_also_where_nobody_does() {
        let caps = Caps::new(2, 2, Vec::new());
        let admit = |text: &str| caps.admit(text.parse().unwrap());
        let both = [admit("192.0.2.1"), admit("192.0.2.2")];
        assert!(both.iter().all(Result::is_ok) && caps.lock().made_way.is_none());
        assert_eq!(admit("192.0.2.3").err(), Some(Full::OfAll));
        assert!(caps.lock().made_way.is_some());
    }

    #[tokio::test]
    async fn who_holds_most_makes_way_for_who_holds_less() {
        let caps = Caps::new(5, 4, Vec::new());
        let admit = |text: &str| caps.admit(text.parse().unwrap());
        let many: Vec<_> = (0..4).filter_map(|_| admit("192.0.2.1").ok()).collect();
        let one = admit("192.0.2.2").ok().unwrap();
        let told = |place: &Place| Box::pin(place.made_to_go().unwrap());
        let (mut most, mut least) = (told(&many[0]), told(&one));
        // `notify_waiters` wakes only futures that exist already.
        assert_eq!(admit("192.0.2.3").err(), Some(Full::OfAll));
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut most).await.is_ok());
        assert!(tokio::time::timeout(Duration::ZERO, &mut least).await.is_err());
        let mut again = told(&many[0]);
        assert_eq!(admit("192.0.2.3").err(), Some(Full::OfAll));
        assert!(tokio::time::timeout(Duration::ZERO, &mut again).await.is_err(), "not at once again");
        assert_eq!(admit("192.0.2.1").err(), Some(Full::OfAddress));
        assert!(tokio::time::timeout(Duration::ZERO, &mut least).await.is_err(), "nobody makes way for who has most");
        drop(many);
        assert!(admit("192.0.2.3").is_ok());
    }

    #[tokio::test]
    async fn of_one_address_who_is_done_makes_way_for_who_comes() {
        // Red without within_address in admit.
        let caps = Caps::new(1000, 16, Vec::new());
        let admit = |text: &str| caps.admit(text.parse().unwrap());
        let neighbor = admit("198.51.100.7").unwrap();
        let mut idle: Vec<_> = (0..14).map(|_| admit("192.0.2.1").unwrap()).collect();
        let told = |place: &Place| Box::pin(place.asked_aside().unwrap());
        let (mut own, mut other) = (told(&idle[0]), told(&neighbor));
        // The next to last: two places are left for newcomers while the others go.
        idle.push(admit("192.0.2.1").unwrap());
        assert!(tokio::time::timeout(Duration::ZERO, &mut own).await.is_ok());
        assert!(tokio::time::timeout(Duration::ZERO, &mut other).await.is_err());
        let mut again = told(&idle[0]);
        idle.push(admit("192.0.2.1").unwrap());
        assert_eq!(admit("192.0.2.1").err(), Some(Full::OfAddress));
        assert!(tokio::time::timeout(Duration::ZERO, &mut again).await.is_err(), "not at once again");
        caps.lock().by_address.values_mut().for_each(|held| held.told = None);
        assert_eq!(admit("192.0.2.1").err(), Some(Full::OfAddress));
        assert!(tokio::time::timeout(Duration::ZERO, &mut again).await.is_ok());
    }

    /// Returns whether a place has to make way for a connection from `newcomer`, which finds none.
    async fn makes_way(caps: &Arc<Caps>, place: &Place, newcomer: &str) -> bool {
        caps.lock().made_way = None;
        let mut told = Box::pin(place.made_to_go().unwrap());
        assert_eq!(caps.admit(newcomer.parse().unwrap()).err(), Some(Full::OfAll));
        tokio::time::timeout(Duration::ZERO, &mut told).await.is_ok()
    }

    #[tokio::test]
    async fn a_network_of_many_that_hold_one_each_makes_way() {
        // Red without largest_network in who_makes_way.
        let networks: [fn(u32) -> String; 2] = [|nth| format!("2001:db8:7:{nth:x}::1"), |nth| format!("192.0.2.{nth}")];
        for network in networks {
            let caps = Caps::new(203, 100, Vec::new());
            let admit = |text: &str| caps.admit(text.parse().unwrap()).ok().unwrap();
            let many: Vec<_> = (0..200).map(|nth| admit(&network(nth))).collect();
            let household = [(); 3].map(|()| admit("198.51.100.7"));
            assert!(makes_way(&caps, &many[0], "203.0.113.9").await);
            assert!(makes_way(&caps, &many[199], "203.0.113.9").await);
            assert!(!makes_way(&caps, &household[0], "203.0.113.9").await, "who is at home elsewhere stays");
            assert!(!makes_way(&caps, &many[0], &network(201)).await, "nor does a network make way for its own");
        }
    }

    #[tokio::test]
    async fn one_address_that_holds_what_no_people_do_makes_way_before_a_network() {
        // Red without PEOPLE in who_makes_way.
        let caps = Caps::new(300, 100, Vec::new());
        let admit = |text: &str| caps.admit(text.parse().unwrap()).ok().unwrap();
        let one: Vec<_> = (0..100).map(|_| admit("198.51.100.7")).collect();
        let many: Vec<_> = (0..200).map(|nth| admit(&format!("192.0.2.{nth}"))).collect();
        assert!(makes_way(&caps, &one[0], "203.0.113.9").await);
        assert!(!makes_way(&caps, &many[0], "203.0.113.9").await);
    }

    /// Red without `per_address` in `Caps::of`.
    #[test]
    fn where_few_files_may_be_open_no_address_takes_all_of_them() {
        let config = Config::load(crate::config::Sources::default()).unwrap();
        let caps = Caps::of(&config, 1024);
        let one: Vec<_> = std::iter::from_fn(|| caps.admit("192.0.2.1".parse().unwrap()).ok()).collect();
        assert_eq!(one.len(), caps.most() / 4);
        assert!(caps.admit("192.0.2.2".parse().unwrap()).is_ok());
    }

    #[test]
    fn the_total_holds_for_everybody() {
        let caps = Caps::new(1, 1, Vec::new());
        let first = caps.admit("127.0.0.1".parse().unwrap());
        assert!(first.is_ok());
        assert_eq!(caps.admit("127.0.0.1".parse().unwrap()).err(), Some(Full::OfAll));
    }
}
