//! The life of a signing key: next, active, retiring, retired.
//!
//! A key is published before it signs, for longer than any cache of the key set, and stays published after it stops
//! signing until the last token that it signed has expired (OpenID Connect Core §10.1.1).

use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::id::Kid;
use crate::jose::Alg;
use crate::time::{Span, Time};

/// How long others may keep our key set (`max-age` of the JWKS answer).
pub const JWKS_CACHE: Span = Span::minutes(15);
/// How long a key is published before it signs.
pub const LEAD: Span = Span::hours(1);

/// A signing key as the facts tell. The private part is sealed under the master key.
#[derive(Clone)]
pub struct Key {
    /// Its `kid`.
    pub kid: Kid,
    /// What it signs with.
    pub alg: Alg,
    /// The public JWK as JSON.
    pub public: String,
    /// The private key, encrypted.
    pub sealed: Vec<u8>,
    /// When it was made and first published.
    pub created: Time,
    /// From when it signs.
    pub active_from: Time,
    /// Until when it is published, once a successor has been named.
    pub publish_until: Option<Time>,
    /// When it was thrown out: nothing that it signed is believed.
    pub revoked_at: Option<Time>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).field("alg", &self.alg).finish_non_exhaustive()
    }
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Published, does not sign yet.
    Next,
    /// Signs.
    Active,
    /// No longer signs, still published.
    Retiring,
    /// Neither.
    Retired,
}

impl Stage {
    /// The stage's name.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Next => "next",
            Stage::Active => "active",
            Stage::Retiring => "retiring",
            Stage::Retired => "retired",
        }
    }
}

impl Key {
    /// Whether it belongs in the published set, and whether what it signed is believed.
    pub fn is_published(&self, now: Time) -> bool {
        self.revoked_at.is_none() && self.publish_until.is_none_or(|until| !until.has_come(now))
    }
}

/// The key that signs with `alg` at `now`: the newest that has become active.
pub fn signer(keys: &[Key], alg: Alg, now: Time) -> Option<&Key> {
    keys.iter()
        .filter(|key| key.alg == alg && key.is_published(now) && key.active_from.has_come(now))
        .max_by(|a, b| (a.active_from, &a.kid).cmp(&(b.active_from, &b.kid)))
}

/// Where `key` stands among `keys`.
pub fn stage(keys: &[Key], key: &Key, now: Time) -> Stage {
    if !key.is_published(now) {
        Stage::Retired
    } else if signer(keys, key.alg, now).is_some_and(|signer| signer.kid == key.kid) {
        Stage::Active
    } else if key.active_from.has_come(now) {
        Stage::Retiring
    } else {
        Stage::Next
    }
}

/// Brings in `fresh`. With a key of its algorithm in service it signs after [`LEAD`] and the older ones stay published
/// until everything they signed has expired; without one it signs at once.
pub fn rotate(keys: &[Key], mut fresh: Key, longest_token: Span, now: Time) -> Decision<Kid, &'static str> {
    if keys.iter().any(|key| key.kid == fresh.kid) {
        return Decision::refuse("a key of that id exists");
    }
    let in_service = signer(keys, fresh.alg, now).is_some();
    fresh.active_from = if in_service { now + LEAD } else { now };
    let until = fresh.active_from + longest_token + JWKS_CACHE + Span::minutes(5);
    let kid = fresh.kid.clone();
    let mut decision = Decision::accept(kid.clone());
    for key in keys.iter().filter(|key| key.alg == fresh.alg && key.is_published(now) && key.publish_until.is_none()) {
        decision = decision.and(Change::RetireKey { kid: key.kid.clone(), until });
    }
    let event = Event::new(Kind::KeyRotated, now).detail("kid", kid.as_str());
    decision.and(Change::AddKey(Box::new(fresh))).and(Change::BumpEpoch).and(Change::Record(event))
}

/// Throws a key out. The last signer of its algorithm cannot go before a successor signs.
pub fn revoke(keys: &[Key], kid: &Kid, now: Time) -> Decision<(), &'static str> {
    let Some(key) = keys.iter().find(|key| &key.kid == kid) else {
        return Decision::refuse("no key has that id");
    };
    let others: Vec<Key> = keys.iter().filter(|other| &other.kid != kid).cloned().collect();
    let mut decision = Decision::accept(());
    if signer(keys, key.alg, now).is_some_and(|signer| &signer.kid == kid) && signer(&others, key.alg, now).is_none() {
        let Some(heir) =
            others.iter().filter(|o| o.alg == key.alg && o.is_published(now)).min_by_key(|o| o.active_from)
        else {
            return Decision::refuse("it is the only signing key of its algorithm: rotate first");
        };
        decision = decision.and(Change::ActivateKey { kid: heir.kid.clone(), at: now });
    }
    let event = Event::new(Kind::KeyRevoked, now).detail("kid", kid.as_str());
    decision.and(Change::RevokeKey { kid: kid.clone(), at: now }).and(Change::BumpEpoch).and(Change::Record(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kid: &str, active_from: i64) -> Key {
        Key {
            kid: kid.into(),
            alg: Alg::ES256,
            public: String::new(),
            sealed: Vec::new(),
            created: Time(0),
            active_from: Time(active_from),
            publish_until: None,
            revoked_at: None,
        }
    }

    #[test]
    fn a_new_key_is_published_longer_than_any_cache_before_it_signs() {
        let now = Time(1_000_000);
        let decision = rotate(&[key("old", 0)], key("new", 0), Span::minutes(15), now);
        let added = decision.changes.iter().find_map(|change| match change {
            Change::AddKey(key) => Some(key.active_from),
            _ => None,
        });
        assert!(added.is_some_and(|from| from >= now + JWKS_CACHE));
    }

    #[test]
    fn an_old_key_stays_until_the_last_token_it_signed_has_expired() {
        let (now, ttl) = (Time(1_000_000), Span::hours(2));
        let decision = rotate(&[key("old", 0)], key("new", 0), ttl, now);
        let until = decision.changes.iter().find_map(|change| match change {
            Change::RetireKey { until, .. } => Some(*until),
            _ => None,
        });
        assert!(until.is_some_and(|until| until > now + LEAD + ttl));
    }

    #[test]
    fn the_first_key_signs_at_once() {
        let mut first = key("first", 99);
        let decision = rotate(&[], first.clone(), Span::minutes(15), Time(5));
        assert!(decision.reply.is_ok());
        first.active_from = Time(5);
        assert_eq!(stage(&[first.clone()], &first, Time(5)), Stage::Active);
    }

    #[test]
    fn the_only_signer_cannot_be_revoked_without_an_heir() {
        assert!(revoke(&[key("only", 0)], &"only".into(), Time(5)).reply.is_err());
        let next = key("next", 1_000_000);
        let decision = revoke(&[key("old", 0), next], &"old".into(), Time(5));
        assert!(decision.changes.iter().any(|change| matches!(change, Change::ActivateKey { .. })));
    }
}
