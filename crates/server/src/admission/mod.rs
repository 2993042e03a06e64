//! Which requests may come in now. Each kind of work has places of its own, so that a flood of one kind does not slow
//! the others, and clients that fail too often have to wait.
//!
//! The cost of a password is not known here: its hash has a gate of its own, in `hasher`.

mod lane;
mod refusals;

pub use lane::{Lane, LaneState, Permit};

use crate::config::Config;
use crate::net::{AddressKey, Cidr, Client};
use app::Fault;
use app::rates::{Rate, Rates, Standing};
use app::stopwatch::{Stage, timed};
use hasher::Hasher;
use refusals::{Hashing, Ready, Refusals};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of work that a door does. Every route names its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// What applications request all day: tokens, introspection, userinfo.
    Tokens,
    /// Keys and discovery: they share the places of tokens; of the rates, only that of the address applies to them.
    Metadata,
    /// Pages, and forms without a password.
    Pages,
    /// Forms with a password: they wait for a hash.
    Passwords,
    /// Work that costs next to nothing and always has to be answered.
    Free,
}

/// The places and the rates of a server.
pub struct Admission {
    tokens: Arc<Lane>,
    pages: Arc<Lane>,
    passwords: Arc<Lane>,
    commands: Arc<Lane>,
    realm: Option<Rates<Pace>>,
    failures: Option<Rates<Account>>,
    exempt: Vec<Cidr>,
    refusals: Refusals,
}

/// How many operators' commands run at a time.
const COMMANDS: usize = 16;

/// What is counted of an address, each count apart. A client that does wrong is slowed at every door; a crowd behind
/// one address that finds no room keeps out neither its users who are signed in already nor their applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Book {
    /// Requests that were wrong.
    Wrong,
    /// Requests of applications for which there was no room.
    Applications,
    /// Requests for pages for which there was no room, by clients that claim to be signed in.
    Inside,
    /// The same, by clients that do not.
    Outside,
}

/// What caused a request, as far as the browser tells (Fetch Metadata, W3C). Each is counted apart: no page of another
/// site can keep its visitors, or others at their address, out of the pages here or out of their applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The user: through a page of ours, by a link, or with a program.
    Visitor,
    /// A script of a registered application, on its own page.
    Application,
    /// Any other page of another site.
    Foreign,
}

/// An address, a book, and the sender of the requests counted there.
type Account = (AddressKey, Book, Sender);

/// A request counted as failed, and as refused if that may happen, until its outcome is known.
pub struct Debt {
    wrong: (Account, Standing),
    refused: Option<(Account, Standing)>,
}

/// How a request went, as far as its sender is responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// Nothing is held against the sender.
    Well,
    /// The sender did something wrong.
    Wrong,
    /// There was no room for the request.
    Refused,
    /// There was no room, and the sender's proof of being signed in proved nothing.
    Stranger,
}

/// A request counted for the realm; dropping this before the request has a place (its client may leave) uncounts it.
struct Counted<'a> {
    realm: &'a Rates<Pace>,
    pace: Pace,
    standing: Option<Standing>,
}

impl<'a> Counted<'a> {
    fn of(realm: &'a Rates<Pace>, pace: Pace) -> Result<Self, Fault> {
        let standing = Some(realm.count(&pace).map_err(Fault::Over)?);
        Ok(Counted { realm, pace, standing })
    }

    fn keep(mut self) {
        self.standing = None;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(standing) = &self.standing {
            self.realm.give_back(&self.pace, standing);
        }
    }
}

impl Admission {
    /// Makes the configured places and rates.
    pub fn of(config: &Config) -> Self {
        let limits = &config.limits;
        let lane = |count| Lane::new(count, limits.max_wait);
        let twice = |per_second: u32| Rate { per_second, burst: per_second.saturating_mul(2) };
        let failures = Rate { per_second: limits.failures_per_address, burst: limits.failures_burst };
        Admission {
            tokens: lane(limits.tokens),
            pages: lane(limits.pages),
            passwords: lane(limits.passwords),
            commands: lane(COMMANDS),
            realm: Rates::new(twice(limits.requests_per_realm)),
            failures: Rates::new(failures),
            exempt: limits.exempt_addresses.clone(),
            refusals: Refusals::new(),
        }
    }

    /// Takes a place for work of this kind; `None` if it needs none. The request is counted for the realm before it
    /// waits: each kind of work apart, and only work that is done. Trusted machines, and requests for keys and
    /// discovery, neither count for that rate nor are bound by it: anybody may ask for those as often as they like.
    ///
    /// # Errors
    /// [`Fault::Over`] for the realm's rate; [`Fault::Busy`], at once or when the wait budget is used up.
    pub async fn enter(&self, pace: Pace, client: &Client) -> Result<Option<Permit>, Fault> {
        let Some(lane) = self.lane(pace) else { return Ok(None) };
        let realm = self.realm.as_ref().filter(|_| pace != Pace::Metadata && !self.lists(client));
        let counted = realm.map(|realm| Counted::of(realm, pace)).transpose()?;
        let entered = timed(Stage::Door, lane.enter()).await.map_err(|wait| Fault::Busy(wait.into()))?;
        counted.into_iter().for_each(Counted::keep);
        Ok(Some(entered))
    }

    /// Takes a place for a command of an operator. Operators are trusted: no rate applies to them.
    ///
    /// # Errors
    /// When to come back.
    pub async fn command(&self) -> Result<Permit, Duration> {
        self.commands.enter().await
    }

    /// Counts a request as failed before it is worked on, for its client's address, and apart by its sender;
    /// [`Admission::settle`] takes that back. Work that is always answered counts if it fails, too. `inside` returns
    /// whether the request claims to belong to a session or to have a token, which may be made up.
    ///
    /// # Errors
    /// [`Fault::Over`]: too many requests from there have failed, or were refused.
    pub fn owe(
        &self,
        pace: Pace,
        (client, sender): (&Client, Sender),
        inside: impl FnOnce() -> bool,
    ) -> Result<Option<Debt>, Fault> {
        let (Some(failures), Some(address)) = (&self.failures, client.key()) else { return Ok(None) };
        if self.is_exempt(client) {
            return Ok(None);
        }
        let count = |book| {
            let account = (address, book, sender);
            failures.count(&account).map(|standing| (account, standing))
        };
        let wrong = match count(Book::Wrong) {
            Ok(wrong) => wrong,
            Err(_) if pace == Pace::Free => return Ok(None),
            Err(over) => return Err(Fault::Over(over)),
        };
        match Book::of_refusals(pace, inside).map(count).transpose() {
            Ok(refused) => Ok(Some(Debt { wrong, refused })),
            Err(over) => {
                failures.give_back(&wrong.0, &wrong.1);
                Err(Fault::Over(over))
            }
        }
    }

    /// Gives back what was counted, unless the request went that way; then returns how its sender stands. A request
    /// whose old session proved nothing counts with those outside.
    pub fn settle(&self, debt: Debt, went: Went) -> Option<Standing> {
        let (failures, Debt { wrong, refused }) = (self.failures.as_ref()?, debt);
        if went != Went::Wrong {
            failures.give_back(&wrong.0, &wrong.1);
        }
        let (address, _, sender) = wrong.0;
        // Unless those outside are over their rate: otherwise made-up sessions would never be limited.
        let outside =
            (went == Went::Stranger).then(|| failures.count(&(address, Book::Outside, sender)).ok()).flatten();
        let is_kept = went == Went::Refused || went == Went::Stranger && outside.is_none();
        if let Some((account, standing)) = refused.filter(|_| !is_kept) {
            failures.give_back(&account, &standing);
        }
        match went {
            Went::Well => None,
            Went::Wrong => Some(wrong.1),
            Went::Refused | Went::Stranger => outside.or(refused.map(|(_, standing)| standing)),
        }
    }

    /// Delays a refusal of a request that `came` then until its turn: see [`refusals`]. Its client is to stay away for
    /// `absence`. Machines that the operator lists are told at once. Returns how long it waited.
    pub async fn tell(&self, client: &Client, (came, absence): (Instant, Duration), hasher: &Hasher) -> Duration {
        if self.lists(client) {
            return Duration::ZERO;
        }
        let ready = Ready { address: client.key(), came, absence };
        let ready_at = Instant::now();
        if let Some(turn) = self.refusals.turn(&ready, ready_at, || Hashing::of(hasher)) {
            timed(Stage::Pace, tokio::time::sleep(turn.wait)).await;
        }
        ready_at.elapsed()
    }

    /// Acts as if hashing were short of cores: refusals go out at this pace for as long as a test takes.
    #[cfg(test)]
    pub fn slow_refusals(&self, each: Duration) {
        self.refusals.slow_down(each);
    }

    /// Returns how many refusals waited for their turn.
    pub fn slowed(&self) -> u64 {
        self.refusals.slowed()
    }

    /// Returns whether a request comes from this machine, a listed proxy itself, or a network that the operator trusts.
    /// A request through an unlisted proxy there may be anybody's, and so may one whose sender a proxy does not name.
    pub fn trusts(&self, client: &Client) -> bool {
        let may_be_anybodys = client.untrusted_forwarding || client.unnamed;
        !may_be_anybodys && (client.key().is_none() || self.is_exempt(client))
    }

    /// Returns whether a request comes from a network that the operator lists: nothing is counted for its address.
    pub fn lists(&self, client: &Client) -> bool {
        self.exempt.iter().any(|network| network.contains(client.address))
    }

    fn is_exempt(&self, client: &Client) -> bool {
        client.address.is_loopback() || self.lists(client)
    }

    fn lane(&self, pace: Pace) -> Option<&Arc<Lane>> {
        match pace {
            Pace::Tokens | Pace::Metadata => Some(&self.tokens),
            Pace::Pages => Some(&self.pages),
            Pace::Passwords => Some(&self.passwords),
            Pace::Free => None,
        }
    }

    /// Returns the longest that a request waits for a place.
    pub fn max_wait(&self) -> Duration {
        self.tokens.budget
    }

    /// Returns the lanes of requests, each with its name.
    pub fn lanes(&self) -> [(&'static str, LaneState); 3] {
        [("tokens", &self.tokens), ("pages", &self.pages), ("passwords", &self.passwords)]
            .map(|(name, lane)| (name, lane.state()))
    }

    /// Returns all lanes with their names, including that of commands.
    pub fn all_lanes(&self) -> impl Iterator<Item = (&'static str, LaneState)> {
        self.lanes().into_iter().chain([("commands", self.commands.state())])
    }
}

impl Book {
    /// Returns the book in which a request counts if there is no room.
    fn of_refusals(pace: Pace, inside: impl FnOnce() -> bool) -> Option<Book> {
        match pace {
            Pace::Tokens | Pace::Metadata => Some(Book::Applications),
            Pace::Pages | Pace::Passwords => Some(if inside() { Book::Inside } else { Book::Outside }),
            Pace::Free => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ProxyHeader, Sources};
    use crate::net::{Peer, Proxies, client_address};
    use hyper::HeaderMap;

    fn admission(options: &[(&'static str, &str)]) -> Admission {
        let flags = options.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Admission::of(&Config::load(Sources { flags, ..Sources::default() }).unwrap())
    }

    /// A client from outside.
    fn somebody() -> Client {
        at("203.0.113.7:5000")
    }

    fn at(address: &str) -> Client {
        let peer = Peer { address: address.parse().unwrap(), tls: false };
        client_address(&peer, &HeaderMap::new(), &Proxies { trusted: Vec::new(), header: ProxyHeader::XForwardedFor })
    }

    #[tokio::test]
    async fn the_realm_has_a_rate_for_each_kind_of_work_and_who_is_over_it_takes_no_place() {
        // Red without the realm in `enter`, or where it is counted behind the lane.
        let admission = admission(&[("limits.requests_per_realm", "1"), ("limits.tokens", "3")]);
        let client = somebody();
        let tokens = || admission.enter(Pace::Tokens, &client);
        let held = (tokens().await.unwrap(), tokens().await.unwrap());
        assert!(held.0.is_some() && held.1.is_some(), "twice as many at once");
        // One more request is let in each second, however long this takes.
        let mut admitted = 2;
        let over = loop {
            match tokens().await {
                Ok(_) => admitted += 1,
                Err(fault) => break fault,
            }
        };
        assert!(
            matches!(over, Fault::Over(over) if over.standing.limit == 2 && over.standing.remaining == 0),
            "{over}"
        );
        let [(_, lane), ..] = admission.lanes();
        assert_eq!((lane.admitted_total, lane.refused_total, lane.running), (admitted, 0, 2));
        assert!(admission.enter(Pace::Pages, &client).await.is_ok(), "pages are another kind");
        assert!(admission.enter(Pace::Free, &client).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn keys_and_trusted_machines_are_no_part_of_the_realms_rate() {
        // Red where `enter` counts everybody: a client that asks for keys all the time would deny applications tokens.
        let options = [("limits.requests_per_realm", "1"), ("limits.exempt_addresses", "203.0.113.0/24")];
        for (options, pace) in [(&options[..1], Pace::Metadata), (&options[..], Pace::Tokens)] {
            let admission = admission(options);
            for _ in 0..20 {
                assert!(admission.enter(pace, &somebody()).await.is_ok(), "{pace:?}");
            }
            assert!(admission.enter(Pace::Tokens, &at("198.51.100.7:5000")).await.is_ok());
        }
    }

    #[test]
    fn what_a_page_of_another_site_has_sent_keeps_nobody_out() {
        // Red where failures are counted for the address alone, or in two books: two thousand missing pictures would
        // shut out the user there, or the applications in their browser.
        let admission = admission(&[("limits.failures_per_address", "1"), ("limits.failures_burst", "3")]);
        let client = somebody();
        let owe = |sender| admission.owe(Pace::Tokens, (&client, sender), || false);
        let all = [Sender::Foreign, Sender::Application, Sender::Visitor];
        for (at, sender) in all.into_iter().enumerate() {
            while owe(sender).is_ok() {}
            assert!(all[at + 1..].iter().all(|other| owe(*other).is_ok()), "{sender:?}");
        }
        assert!(all.into_iter().any(|sender| owe(sender).is_err()), "and each of them is bound by its own");
    }

    #[test]
    fn a_crowd_that_finds_no_room_keeps_nobody_out_who_is_inside() {
        // Red with one counter per address: a school that signs in would shut out its pages and its applications.
        let client = somebody();
        let fresh = || admission(&[("limits.failures_per_address", "1"), ("limits.failures_burst", "3")]);
        let went = |admission: &Admission, pace, inside, went| {
            let owed = admission.owe(pace, (&client, Sender::Visitor), || inside).ok()?;
            owed.map(|debt| admission.settle(debt, went))
        };
        let may = |admission: &Admission, pace, inside| went(admission, pace, inside, Went::Well).is_some();
        // A cookie of yesterday proves nothing: its refusals count with the crowd, unless that is over its rate.
        for (inside, how) in [(false, Went::Refused), (true, Went::Stranger)] {
            let admission = fresh();
            for _ in 0..3 {
                went(&admission, Pace::Pages, inside, how);
            }
            assert!(!may(&admission, Pace::Passwords, false), "the crowd is told to slow down");
            assert!(may(&admission, Pace::Pages, true) && may(&admission, Pace::Tokens, false));
        }
        // Nor are made-up sessions without a limit.
        let admission = fresh();
        let refused = (0..20).filter(|_| went(&admission, Pace::Pages, true, Went::Stranger).is_some()).count();
        assert!((6..20).contains(&refused), "{refused}");
        // Requests with a session that may be made up have a limit of their own, and so do applications.
        let admission = fresh();
        while went(&admission, Pace::Pages, true, Went::Refused).is_some() {}
        assert!(may(&admission, Pace::Passwords, false) && may(&admission, Pace::Tokens, false));
        while went(&admission, Pace::Tokens, false, Went::Refused).is_some() {}
        assert!(!may(&admission, Pace::Metadata, false) && may(&admission, Pace::Passwords, false));
        // Wrong requests count at every door.
        let admission = fresh();
        while went(&admission, Pace::Pages, true, Went::Wrong).is_some() {}
        for (pace, inside) in [(Pace::Metadata, false), (Pace::Passwords, false), (Pace::Pages, true)] {
            assert!(!may(&admission, pace, inside), "{pace:?}");
        }
    }

    #[tokio::test]
    async fn who_finds_no_place_does_not_count_for_the_realm() {
        // Red without the giving back in `enter`.
        let options = [("limits.requests_per_realm", "1"), ("limits.pages", "1"), ("limits.max_wait", "10ms")];
        let admission = admission(&options);
        let client = somebody();
        let held = admission.enter(Pace::Pages, &client).await.unwrap();
        for _ in 0..20 {
            let refused = admission.enter(Pace::Pages, &client).await.err();
            assert!(matches!(refused, Some(Fault::Busy(_))), "{refused:?}");
        }
        drop(held);
        assert!(admission.enter(Pace::Pages, &client).await.is_ok());
    }

    #[tokio::test]
    async fn who_leaves_while_they_wait_for_a_place_does_not_count_for_the_realm() {
        // Red where `enter` gives back only refused requests.
        let options = [("limits.requests_per_realm", "1"), ("limits.pages", "1"), ("limits.max_wait", "60s")];
        let (admission, client) = (admission(&options), somebody());
        let held = admission.enter(Pace::Pages, &client).await.unwrap();
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..20 {
            let mut waits = std::pin::pin!(admission.enter(Pace::Pages, &client));
            assert!(waits.as_mut().poll(context).is_pending());
        }
        drop(held);
        assert!(admission.enter(Pace::Pages, &client).await.is_ok());
    }
}
