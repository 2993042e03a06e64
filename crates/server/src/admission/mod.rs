//! Who may come in now. Each kind of work has places of its own, so that one kind's flood does not slow the others, and
//! whoever fails too often has to wait.
//!
//! What a password costs is not known here: its hash has a gate of its own, in `hasher`.

mod lane;

pub use lane::{Lane, LaneState, Permit};

use crate::config::Config;
use crate::net::{AddressKey, Cidr, Client};
use app::Fault;
use app::fault::span;
use app::rates::{Rate, Rates, Standing};
use app::stopwatch::{Stage, timed};
use std::sync::Arc;
use std::time::Duration;

/// What kind of work a door does. Every route says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// What applications ask all day: tokens, introspection, userinfo, keys.
    Tokens,
    /// Pages, and forms without a password.
    Pages,
    /// Forms with a password: they wait for a hash.
    Passwords,
    /// What costs next to nothing and has to be answered always.
    Free,
}

/// The places and the rates of a server.
pub struct Admission {
    tokens: Arc<Lane>,
    pages: Arc<Lane>,
    passwords: Arc<Lane>,
    commands: Arc<Lane>,
    realm: Option<Rates<Pace>>,
    failures: Option<Rates<Sender>>,
    exempt: Vec<Cidr>,
}

/// Commands of operators that are carried out at a time.
const COMMANDS: usize = 16;

/// An address, and whether it is another site's page that had its browser send the request: what fails of that is counted apart,
/// so that no page keeps its visitors, and whoever shares their address, out of our pages.
type Sender = (AddressKey, bool);

/// Counted as failed until it is known how it went.
pub struct Debt {
    key: Sender,
    standing: Standing,
}

impl Admission {
    /// As configured.
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
        }
    }

    /// A place for work of this kind; `None` where it needs none. It is counted for the realm before it waits for one: each
    /// kind of work by itself here, too, and only what is worked on.
    ///
    /// # Errors
    /// [`Fault::Over`] the realm's rate; [`Fault::Busy`], at once or when the budget of waiting is over.
    pub async fn enter(&self, pace: Pace) -> Result<Option<Permit>, Fault> {
        let Some(lane) = self.lane(pace) else { return Ok(None) };
        let counted = self.realm.as_ref().map(|realm| realm.count(&pace)).transpose().map_err(Fault::Over)?;
        let entered = timed(Stage::Door, lane.enter()).await;
        if let (Err(_), Some(realm), Some(standing)) = (&entered, &self.realm, counted) {
            realm.give_back(&pace, &standing);
        }
        entered.map(Some).map_err(|wait| Fault::Busy(span(wait)))
    }

    /// A place for a command of an operator. Whoever commands is trusted: no rate holds for them.
    ///
    /// # Errors
    /// When to come back.
    pub async fn command(&self) -> Result<Permit, Duration> {
        self.commands.enter().await
    }

    /// Counts a request of a client as failed before it is worked on, and [apart](Sender) where a page of another site had it sent;
    /// [`Admission::settle`] takes that back. What is always answered counts where it fails, too.
    ///
    /// # Errors
    /// [`Fault::Over`]: too many from there have failed.
    pub fn owe(&self, pace: Pace, (client, embedded): (&Client, bool)) -> Result<Option<Debt>, Fault> {
        let (Some(failures), Some(key)) = (&self.failures, client.key()) else { return Ok(None) };
        if self.is_exempt(client) {
            return Ok(None);
        }
        let key = (key, embedded);
        match failures.count(&key) {
            Ok(standing) => Ok(Some(Debt { key, standing })),
            Err(_) if pace == Pace::Free => Ok(None),
            Err(over) => Err(Fault::Over(over)),
        }
    }

    /// Gives back what was counted, unless the request failed; then says how its sender stands.
    pub fn settle(&self, debt: Debt, failed: bool) -> Option<Standing> {
        if !failed && let Some(failures) = &self.failures {
            failures.give_back(&debt.key, &debt.standing);
        }
        failed.then_some(debt.standing)
    }

    /// Whether a request comes from this machine, a listed proxy itself, or a network that the operator trusts. What comes
    /// through a proxy there that nobody listed may be anybody's.
    pub fn trusts(&self, client: &Client) -> bool {
        !client.untrusted_forwarding && (client.key().is_none() || self.is_exempt(client))
    }

    /// Whether a request comes from a network that the operator lists: nothing is counted for its address.
    pub fn lists(&self, client: &Client) -> bool {
        self.exempt.iter().any(|network| network.contains(client.address))
    }

    fn is_exempt(&self, client: &Client) -> bool {
        client.address.is_loopback() || self.lists(client)
    }

    fn lane(&self, pace: Pace) -> Option<&Arc<Lane>> {
        match pace {
            Pace::Tokens => Some(&self.tokens),
            Pace::Pages => Some(&self.pages),
            Pace::Passwords => Some(&self.passwords),
            Pace::Free => None,
        }
    }

    /// The longest that a request waits for a place.
    pub fn max_wait(&self) -> Duration {
        self.tokens.budget
    }

    /// The lanes of requests, each with its name.
    pub fn lanes(&self) -> [(&'static str, LaneState); 3] {
        [("tokens", &self.tokens), ("pages", &self.pages), ("passwords", &self.passwords)]
            .map(|(name, lane)| (name, lane.state()))
    }

    /// Every lane with its name, that of commands among them.
    pub fn all_lanes(&self) -> impl Iterator<Item = (&'static str, LaneState)> {
        self.lanes().into_iter().chain([("commands", self.commands.state())])
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

    #[tokio::test]
    async fn the_realm_has_a_rate_for_each_kind_of_work_and_who_is_over_it_takes_no_place() {
        // red without the realm in `enter`, or where it is counted behind the lane.
        let admission = admission(&[("limits.requests_per_realm", "1"), ("limits.tokens", "3")]);
        let tokens = || admission.enter(Pace::Tokens);
        let held = (tokens().await.unwrap(), tokens().await.unwrap());
        assert!(held.0.is_some() && held.1.is_some(), "twice as many at once");
        // One more a second is let in, however long this takes.
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
        assert!(admission.enter(Pace::Pages).await.is_ok(), "pages are another kind");
        assert!(admission.enter(Pace::Free).await.unwrap().is_none());
    }

    #[test]
    fn what_a_page_of_another_site_has_sent_keeps_nobody_out() {
        // red where failures are counted for the address alone: two thousand pictures that are not there would shut it out.
        let admission = admission(&[("limits.failures_per_address", "1"), ("limits.failures_burst", "3")]);
        let peer = Peer { address: "203.0.113.7:5000".parse().unwrap(), tls: false };
        let proxies = Proxies { trusted: Vec::new(), header: ProxyHeader::XForwardedFor };
        let client = client_address(&peer, &HeaderMap::new(), &proxies);
        let owe = |embedded| admission.owe(Pace::Pages, (&client, embedded));
        while owe(true).is_ok() {}
        assert!(owe(false).is_ok());
        while owe(false).is_ok() {}
        assert!(owe(true).is_err() && owe(false).is_err());
    }

    #[tokio::test]
    async fn who_finds_no_place_does_not_count_for_the_realm() {
        // red without the giving back in `enter`.
        let options = [("limits.requests_per_realm", "1"), ("limits.pages", "1"), ("limits.max_wait", "10ms")];
        let admission = admission(&options);
        let held = admission.enter(Pace::Pages).await.unwrap();
        for _ in 0..20 {
            let refused = admission.enter(Pace::Pages).await.err();
            assert!(matches!(refused, Some(Fault::Busy(_))), "{refused:?}");
        }
        drop(held);
        assert!(admission.enter(Pace::Pages).await.is_ok());
    }
}
