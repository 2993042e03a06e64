//! Slowing a guesser without locking anybody out for good.
//!
//! Failures are counted per account (or per account and known device) and per address. A few are free; after that each
//! further attempt on an account has to wait, twice as long each time up to a limit, and success clears the count. An
//! address, which many may share, is held to a steady rate of failures instead.

use crate::secret::{Handle, mac};
use crate::time::{Span, Time};

/// How guessers are slowed.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Failures of one account that cost no wait.
    pub free: i64,
    /// Failures of one address that cost no wait.
    pub address_free: i64,
    /// The first wait.
    pub base: Span,
    /// The longest wait.
    pub max: Span,
    /// After so long without a failure the count is forgotten.
    pub forget: Span,
    /// How long it takes until one failure of an address is forgiven.
    pub leak: Span,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            free: 5,
            address_free: 50,
            base: Span::seconds(1),
            max: Span::minutes(15),
            forget: Span::hours(24),
            leak: Span::seconds(30),
        }
    }
}

/// What is known of earlier failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// How many, this far.
    pub count: i64,
    /// No attempt before then (milliseconds since 1970).
    pub until: i64,
    /// Forgotten then (milliseconds since 1970).
    pub expires: i64,
}

/// An attempt that counts as failed from now on, until it is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Which counter.
    pub key: Handle,
    /// What was seen: the guard.
    pub seen: Counter,
    /// What it becomes.
    pub next: Counter,
}

impl Policy {
    /// The wait after `failures`, when `free` of them cost nothing.
    pub fn wait(&self, failures: i64, free: i64) -> Span {
        if failures < free {
            return Span::ZERO;
        }
        let doublings = u32::try_from(failures - free).unwrap_or(u32::MAX).min(30);
        Span(self.base.0.saturating_mul(1 << doublings).min(self.max.0))
    }

    /// Whether an attempt may be made now; if not, how long to wait. If so, it is counted before it is worked on, so
    /// that a hundred parallel guesses are a hundred.
    pub fn admit(&self, key: Handle, seen: Option<Counter>, free: i64, now: Time) -> Result<Counted, Span> {
        let seen = seen.unwrap_or_default();
        let before = if Time(seen.expires).has_come(now) { Counter::default() } else { seen };
        if before.until > now.0 {
            return Err(Time(before.until).since(now));
        }
        let count = before.count + 1;
        let until = match self.wait(count, free) {
            // Not `now`: by the clock of an attempt that looked a moment earlier that would be a wait.
            Span::ZERO => 0,
            wait => (now + wait).0,
        };
        Ok(Counted { key, seen, next: Counter { count, until, expires: (now + self.forget).0 } })
    }

    /// Whether an account or an address has failed so often that its guesses are slowed down.
    pub fn slows(&self, account: Option<Counter>, address: Option<Counter>, now: Time) -> bool {
        let live = |seen: &Counter| !Time(seen.expires).has_come(now);
        let account = account.filter(live).is_some_and(|seen| seen.count >= self.free);
        let backlog = Time(address.map_or(0, |seen| seen.expires)).since(now);
        account || backlog >= Span(self.leak.0.saturating_mul(self.address_free))
    }

    /// Whether somebody who shares a counter with many others (an address, or guesses of user codes) may try; if not,
    /// how long to wait. Failures drain one after another, so that an office behind one address is never shut out for
    /// long: a generic cell rate, whose only state is when the last failure will have drained.
    pub fn leaky_admits(&self, seen: Option<Counter>, free: i64, now: Time) -> Result<(), Span> {
        let backlog = Time(seen.map_or(0, |seen| seen.expires)).since(now);
        let allowance = Span(self.leak.0.saturating_mul(free));
        if backlog <= allowance { Ok(()) } else { Err(Span(backlog.0 - allowance.0)) }
    }
}

/// Which counter an attempt falls under: one for an account, however it was written; one more for each device that
/// has signed in to it before, so that a stranger's failures do not keep its owner out.
pub fn account_key(secret: &[u8; 32], account: &str, device: Option<&str>) -> Handle {
    Handle(match device {
        None => mac(secret, &[b"account", account.as_bytes()]),
        Some(device) => mac(secret, &[b"device", account.as_bytes(), device.as_bytes()]),
    })
}

/// The counter of an address (`/64` for IPv6, as the caller cut it).
pub fn address_key(secret: &[u8; 32], address: &str) -> Handle {
    Handle(mac(secret, &[b"address", address.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let policy = Policy::default();
        assert_eq!(policy.wait(4, 5), Span::ZERO);
        assert_eq!(policy.wait(5, 5), Span::seconds(1));
        assert_eq!(policy.wait(7, 5), Span::seconds(4));
        assert_eq!(policy.wait(1000, 5), policy.max);
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
    fn what_is_free_is_free_for_one_whose_clock_is_behind() {
        let policy = Policy::default();
        let counted = policy.admit(Handle([0; 32]), None, policy.free, Time(1_001)).expect("admitted");
        assert!(policy.admit(Handle([0; 32]), Some(counted.next), policy.free, Time(1_000)).is_ok());
    }

    #[test]
    fn an_address_is_held_to_a_steady_rate_of_failures() {
        let policy = Policy::default();
        let after = |failures: i64| Some(Counter { expires: failures * policy.leak.0, ..Counter::default() });
        assert!(policy.leaky_admits(None, 50, Time(0)).is_ok());
        assert!(policy.leaky_admits(after(50), 50, Time(0)).is_ok());
        assert_eq!(policy.leaky_admits(after(51), 50, Time(0)), Err(policy.leak));
        assert!(policy.leaky_admits(after(51), 50, Time(policy.leak.0)).is_ok());
    }

    #[test]
    fn who_has_used_up_what_is_free_is_slowed() {
        let policy = Policy::default();
        let of = |count, expires| Some(Counter { count, until: 0, expires });
        assert!(!policy.slows(None, None, Time(0)));
        assert!(!policy.slows(of(policy.free - 1, 10), None, Time(0)));
        assert!(policy.slows(of(policy.free, 10), None, Time(0)));
        assert!(!policy.slows(of(policy.free, 10), None, Time(10)), "forgotten by then");
        let backlog = policy.address_free * policy.leak.0;
        assert!(!policy.slows(None, of(0, backlog - 1), Time(0)));
        assert!(policy.slows(None, of(0, backlog), Time(0)));
    }

    #[test]
    fn a_counter_is_forgotten_after_its_time() {
        let policy = Policy::default();
        let old = Counter { count: 500, until: 900_000, expires: 1_000_000 };
        let counted = policy.admit(Handle([0; 32]), Some(old), policy.free, Time(1_000_000)).expect("admitted");
        assert_eq!(counted.next.count, 1);
    }
}
