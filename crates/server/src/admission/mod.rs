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
    realm: Option<Rates<Pace>>,
    failures: Option<Rates<AddressKey>>,
    exempt: Vec<Cidr>,
}

/// Counted as failed until it is known how it went.
pub struct Debt {
    key: AddressKey,
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
            realm: Rates::new(twice(limits.requests_per_realm)),
            failures: Rates::new(failures),
            exempt: limits.exempt_addresses.clone(),
        }
    }

    /// A place for work of this kind; `None` where it needs none.
    ///
    /// # Errors
    /// [`Fault::Over`] the realm's rate; [`Fault::Busy`], at once or when the budget of waiting is over.
    pub async fn enter(&self, pace: Pace) -> Result<Option<Permit>, Fault> {
        let Some(lane) = self.lane(pace) else { return Ok(None) };
        let permit = timed(Stage::Door, lane.enter()).await.map_err(|wait| Fault::Busy(span(wait)))?;
        // Each kind of work by itself here, too, and only what is worked on.
        if let Some(realm) = &self.realm {
            realm.count(&pace).map_err(Fault::Over)?;
        }
        Ok(Some(permit))
    }

    /// Counts a request of `client` as failed before it is worked on; [`Admission::settle`] takes that back.
    ///
    /// # Errors
    /// [`Fault::Over`]: too many from there have failed.
    pub fn owe(&self, pace: Pace, client: &Client) -> Result<Option<Debt>, Fault> {
        let (Some(failures), Some(key)) = (&self.failures, client.key()) else { return Ok(None) };
        if pace == Pace::Free || self.is_exempt(client) {
            return Ok(None);
        }
        failures.count(&key).map(|standing| Some(Debt { key, standing })).map_err(Fault::Over)
    }

    /// Gives back what was counted, unless the request failed; then says how its sender stands.
    pub fn settle(&self, debt: Debt, failed: bool) -> Option<Standing> {
        if !failed && let Some(failures) = &self.failures {
            failures.give_back(&debt.key, &debt.standing);
        }
        failed.then_some(debt.standing)
    }

    /// Whether a request comes from this machine, a listed proxy itself, or a network that the operator trusts.
    pub fn trusts(&self, client: &Client) -> bool {
        client.key().is_none() || self.is_exempt(client)
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

    /// Every lane with its name.
    pub fn lanes(&self) -> [(&'static str, LaneState); 3] {
        [("tokens", &self.tokens), ("pages", &self.pages), ("passwords", &self.passwords)]
            .map(|(name, lane)| (name, lane.state()))
    }
}
