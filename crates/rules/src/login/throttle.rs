//! Slows a guesser down without locking anybody out for good.
//!
//! Failures are counted per account (or per account and known device), per address and per network around it. A few are
//! free; after that each further attempt on an account has to wait, twice as long each time up to a limit, and for a day
//! once a hundred have failed; success clears the count. An address or a network, which many may share, is held to a
//! steady rate of failures instead.

use crate::decision::Change;
use crate::secret::{Handle, mac};
use crate::time::{Span, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How guessers are slowed down.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// With so many failures, attempts on one account begin to wait.
    pub free: i64,
    /// The same of one address.
    pub address_free: i64,
    /// How many times as many failures as an address the network around it may have; zero: networks are not counted.
    pub network_factor: i64,
    /// The first wait.
    pub base: Span,
    /// The longest wait.
    pub max: Span,
    /// How long without a failure it takes until the count is forgotten, for each failure that it has.
    pub forget: Span,
    /// How long it takes until one failure of an address is forgiven.
    pub leak: Span,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            free: 5,
            address_free: 50,
            network_factor: 10,
            base: Span::seconds(1),
            max: Span::minutes(15),
            forget: Span::hours(24),
            leak: Span::seconds(30),
        }
    }
}

/// A counter written further ahead than this comes from a clock that was wrong for a while. It counts for nothing, or
/// it would keep a user out for as long as that clock was ahead. Nodes' clocks may not differ by as much.
pub const ASTRAY: Span = Span::minutes(15);

/// NIST SP 800-63B §3.2.2: no more failures of one account in a row than these, but for one a day, so that nobody is
/// kept out for good.
pub const IN_A_ROW: i64 = 100;
/// The wait once so many have failed.
pub const EXHAUSTED: Span = Span::hours(24);

/// By how many the count of a wait may have fallen since: attempts beside it were given back.
const GIVEN_BACK: i64 = 8;

/// What is known of earlier failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// How many failures so far.
    pub count: i64,
    /// No attempt before then (milliseconds since 1970). In a shared counter: when the last failure was.
    pub until: i64,
    /// When it is forgotten (milliseconds since 1970).
    pub expires: i64,
}

/// An attempt that counts as failed from now on, until it is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Which counter.
    pub key: Handle,
    /// The counter as seen: the guard.
    pub seen: Counter,
    /// The counter as it becomes.
    pub next: Counter,
}

impl Policy {
    /// Returns the wait after `failures`, when `free` of them cost nothing.
    pub fn wait(&self, failures: i64, free: i64) -> Span {
        if failures >= IN_A_ROW {
            return self.longest(failures);
        }
        if failures < free {
            return Span::ZERO;
        }
        let doublings = u32::try_from(failures - free).unwrap_or(u32::MAX).min(30);
        Span(self.base.0.saturating_mul(1 << doublings).min(self.max.0))
    }

    /// The longest wait after `failures`.
    fn longest(&self, failures: i64) -> Span {
        if failures < IN_A_ROW { self.max } else { self.max.max(EXHAUSTED) }
    }

    /// How long `failures` are kept in mind: whoever pauses until they are forgotten has no more guesses, in the long
    /// run, than one for each such time.
    fn kept(&self, failures: i64) -> Span {
        Span(self.forget.0.saturating_mul(failures.clamp(1, IN_A_ROW)))
    }

    /// Admits an attempt, or says how long it has to wait. An admitted attempt is counted before it is worked on, so
    /// that a hundred parallel guesses count as a hundred.
    pub fn admit(&self, key: Handle, seen: Option<Counter>, free: i64, now: Time) -> Result<Counted, Span> {
        let seen = seen.unwrap_or_default();
        let before = if self.counts(&seen, now) { seen } else { Counter::default() };
        if before.until > now.0 {
            return Err(Time(before.until).since(now));
        }
        let count = before.count + 1;
        let until = match self.wait(count, free) {
            // Not `now`: by the clock of an attempt that read it a moment earlier, that would be a wait.
            Span::ZERO => 0,
            wait => (now + wait).0,
        };
        Ok(Counted { key, seen, next: Counter { count, until, expires: (now + self.kept(count)).0 } })
    }

    /// Whether an account's counter is neither forgotten nor written by a wrong clock.
    fn counts(&self, seen: &Counter, now: Time) -> bool {
        let (until, expires) = (Time(seen.until), Time(seen.expires));
        let in_time = until <= now + self.longest(seen.count + GIVEN_BACK) + ASTRAY;
        !expires.has_come(now) && in_time && expires <= now + self.kept(IN_A_ROW) + ASTRAY
    }

    /// Whether an account, an address or a network has failed so often that its guesses are slowed down.
    pub fn slows(&self, account: Option<Counter>, shared: &[Seen], now: Time) -> bool {
        let account = account.filter(|seen| self.counts(seen, now)).is_some_and(|seen| seen.count >= self.free);
        account || shared.iter().any(|seen| seen.left(now) <= 0)
    }

    /// Returns the counters that an address shares for `what` it does: its own (a /64 in IPv6) and those of its
    /// networks, which are larger and may fail more often (BF-07). An IPv6 customer has a /56, at times a /48.
    pub fn shared_by(&self, secret: &[u8; 32], what: &str, address: IpAddr) -> Vec<Shared> {
        let networks = match subscriber(address) {
            IpAddr::V4(one) => vec![(counted_as(address), 1), (cut_v4(one, 24), self.network_factor)],
            IpAddr::V6(one) => vec![
                (counted_as(address), 1),
                (cut_v6(one, 56), self.network_factor),
                (cut_v6(one, 48), self.network_factor * WIDER),
            ],
        };
        let counted = networks.into_iter().filter(|(_, times)| *times > 0);
        counted
            .map(|(network, times)| Shared {
                key: address_key(secret, &format!("{what}:{network}")),
                free: self.address_free.saturating_mul(times),
                leak: Span((self.leak.0 / times).max(1)),
            })
            .collect()
    }

    /// Returns a counter of guesses that cost as much as failures of an account, and drain like those of an address.
    pub fn shared_as(&self, key: Handle) -> Shared {
        Shared { key, free: self.free, leak: self.leak }
    }
}

/// How many times as many failures a /48 may have as a /56.
const WIDER: i64 = 4;

/// `64:ff9b::/96`, behind which translators put all of IPv4 (RFC 6052 §2.1).
const TRANSLATED: u128 = 0x0064_ff9b << 96;

/// Returns the subscriber's address: the IPv4 address behind one that is written as IPv6, whether mapped (RFC 4291
/// §2.5.5.2) or translated on its way to an IPv6-only network. A translator has one /64 for everybody, so counters have
/// to look behind it. Only counters do: trust, and the lines of the audit log, go by the address that came.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(one) if one.to_bits() >> 32 == TRANSLATED >> 32 => Ipv4Addr::from_bits(one.to_bits() as u32).into(),
        other => other,
    }
}

/// Returns what counts as one address, as text: `192.0.2.1`, or `2001:db8::/64`, the least that a subscriber is given
/// (RFC 6177 §2). Otherwise one subscriber could be as many as they like.
pub fn counted_as(address: IpAddr) -> String {
    match subscriber(address) {
        IpAddr::V4(one) => one.to_string(),
        IpAddr::V6(one) => cut_v6(one, 64),
    }
}

/// `192.0.2.0/24`.
fn cut_v4(address: Ipv4Addr, length: u32) -> String {
    format!("{}/{length}", Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << (32 - length))))
}

/// `2001:db8::/48`.
fn cut_v6(address: Ipv6Addr, length: u32) -> String {
    format!("{}/{length}", Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - length))))
}

/// A counter that many may share, by their address or otherwise. Its failures drain one after another, so that an
/// office behind one address is never shut out for long: a generic cell rate algorithm, whose only state is when the
/// last failure will have drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Which counter.
    pub key: Handle,
    /// Failures that cost no wait.
    pub free: i64,
    /// How long it takes until one failure is forgiven.
    pub leak: Span,
}

impl Shared {
    /// One more failure.
    pub fn failed(&self, at: Time) -> Change {
        Change::CountFailure { key: self.key, at, leak: self.leak }
    }
}

/// A shared counter and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Which counter.
    pub shared: Shared,
    /// Its failures.
    pub counter: Option<Counter>,
    /// Attempts that were let in and may turn out to be failures; none of them is among its failures yet.
    pub beside: usize,
}

/// Why an attempt may not be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Too many failed before: try again after this long.
    Wait(Span),
    /// If the attempts under way fail, too many will have failed by this counter: wait until only this many are left.
    Crowded(Handle, usize),
}

impl Seen {
    /// Joins each of `shared` with its counter and the number of attempts beside it; all three are in the same order.
    pub fn all(
        shared: &[Shared],
        counters: impl IntoIterator<Item = Option<Counter>>,
        beside: Vec<usize>,
    ) -> Vec<Self> {
        let known = shared.iter().zip(counters).zip(beside);
        known.map(|((shared, counter), beside)| Seen { shared: *shared, counter, beside }).collect()
    }

    /// How long it takes until its failures have drained.
    fn backlog(&self, now: Time) -> Span {
        let counter = self.counter.filter(|seen| Time(seen.until) <= now + ASTRAY);
        Time(counter.map_or(0, |seen| seen.expires)).since(now)
    }

    /// How much more may be drained, in milliseconds; negative when there is too much already.
    fn left(&self, now: Time) -> i64 {
        self.shared.leak.0.saturating_mul(self.shared.free) - self.backlog(now).0
    }

    /// Whether one more may try, and how many more after it. Attempts under way count like failures, so that of a
    /// hundred parallel guesses no more are heard than of a hundred in turn.
    pub fn admits(&self, now: Time) -> Result<i64, Held> {
        let left = self.left(now);
        if left < 0 {
            return Err(Held::Wait(Span(-left)));
        }
        let room = left / self.shared.leak.0.max(1);
        match room - i64::try_from(self.beside).unwrap_or(i64::MAX) {
            more if more < 0 => Err(Held::Crowded(self.shared.key, usize::try_from(room).unwrap_or(0))),
            more => Ok(more),
        }
    }
}

/// If no counter has a recent failure, the people who sign in at the same moment are a crowd and no guessers: none
/// counts as beside another. If some of them fail, their failures have to drain before the next is let in.
pub fn crowd(shared: Vec<Seen>, now: Time) -> Vec<Seen> {
    let spotless = shared.iter().all(|seen| seen.backlog(now) == Span::ZERO);
    shared.into_iter().map(|seen| if spotless { Seen { beside: 0, ..seen } } else { seen }).collect()
}

/// Whether all of `shared` admit one more; how many more after it, at most. A wait takes precedence over a crowd.
pub fn all_admit(shared: &[Seen], now: Time) -> Result<i64, Held> {
    let answers: Vec<_> = shared.iter().map(|seen| seen.admits(now)).collect();
    let waits = answers.iter().filter_map(|answer| match answer {
        Err(Held::Wait(wait)) => Some(*wait),
        _ => None,
    });
    if let Some(wait) = waits.max() {
        return Err(Held::Wait(wait));
    }
    answers.into_iter().try_fold(i64::MAX, |least, answer| answer.map(|more| least.min(more)))
}

/// Returns the key of the counter of an attempt: one for an account, however it was written, and one more for each
/// device that has signed in to it before, so that a stranger's failures do not keep the owner out.
pub fn account_key(secret: &[u8; 32], account: &str, device: Option<&str>) -> Handle {
    Handle(match device {
        None => mac(secret, &[b"account", account.as_bytes()]),
        Some(device) => mac(secret, &[b"device", account.as_bytes(), device.as_bytes()]),
    })
}

/// Returns the key of the counter of an address or a network, given as text.
fn address_key(secret: &[u8; 32], address: &str) -> Handle {
    Handle(mac(secret, &[b"address", address.as_bytes()]))
}

#[cfg(test)]
mod tests;
