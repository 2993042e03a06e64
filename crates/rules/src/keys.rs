//! The life of a signing key: next, active, retiring, retired.
//!
//! A key is published before it signs, for longer than any cache of the key set, and stays published after it stops
//! signing until the last token that it signed has expired (OpenID Connect Core §10.1.1).

use crate::decision::{Change, Decision};
use crate::events::{Event, Kind};
use crate::id::Kid;
use crate::jose::Alg;
use crate::realm::is_believable;
use crate::time::{Span, Time};
use std::cmp::Ordering;

/// How long others may cache our key set (`max-age` of the JWKS answer).
pub const JWKS_CACHE: Span = Span::minutes(15);
/// How long a key is published before it signs.
pub const LEAD: Span = Span::hours(1);

const KNOWN: &str = "a key of that id exists";

/// A signing key, as stored. The private part is sealed under the master key.
#[derive(Clone)]
pub struct Key {
    /// Its `kid`.
    pub kid: Kid,
    /// The algorithm that it signs with.
    pub alg: Alg,
    /// The public JWK as JSON.
    pub public: String,
    /// The private key, encrypted. Empty once it was destroyed.
    pub sealed: Vec<u8>,
    /// When it was created and first published.
    pub created: Time,
    /// The time from which it signs.
    pub active_from: Time,
    /// The time until which it is published, once a successor has been named.
    pub publish_until: Option<Time>,
    /// When it was revoked: nothing that it signed is believed.
    pub revoked_at: Option<Time>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).field("alg", &self.alg).finish_non_exhaustive()
    }
}

/// The stage of a key's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Published, does not sign yet.
    Next,
    /// Signs.
    Active,
    /// No longer signs, still published.
    Retiring,
    /// Neither signs nor is published.
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
    /// Whether the key belongs in the published set, and whether anything it signed is believed.
    pub fn is_published(&self, now: Time) -> bool {
        self.revoked_at.is_none() && self.publish_until.is_none_or(|until| !until.has_come(now))
    }
    /// Whether its private half, which is still there, is of no more use at `now`: it was revoked by then, or its
    /// publication has ended (NIST SP 800-57 part 1, §8.3.4). What it signed is recognized by the public half.
    pub fn is_past(&self, now: Time) -> bool {
        let over = [self.publish_until, self.revoked_at].into_iter().flatten().any(|at| at.has_come(now));
        over && !self.sealed.is_empty()
    }
}

/// Returns the key that signs with `alg` at `now`: the newest active one. By the clock of the node that added the keys
/// there always is one. By a clock that is behind, or was read before the keys were, it is the first key to come.
pub fn signer(keys: &[Key], alg: Alg, now: Time) -> Option<&Key> {
    let published = || keys.iter().filter(|key| key.alg == alg && key.is_published(now));
    let active = published().filter(|key| key.active_from.has_come(now)).max_by(|a, b| in_turn(a, b));
    active.or_else(|| published().min_by(|a, b| in_turn(a, b)))
}

/// Compares keys by the order in which they sign.
fn in_turn(a: &Key, b: &Key) -> Ordering {
    (a.active_from, &a.kid).cmp(&(b.active_from, &b.kid))
}

/// Returns the stage of `key` among `keys`.
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

/// Returns until when a key must stay published if its successor signs from `from` on: until the last token that the
/// key signs has expired, and the clocks and caches of others have caught up.
fn stays_until(from: Time, longest_token: Span) -> Time {
    from + longest_token + JWKS_CACHE + Span::minutes(5)
}

/// Returns the key of `alg` that will sign last: the only one whose publication has no end yet.
fn latest<'a>(keys: impl IntoIterator<Item = &'a Key>, alg: Alg, now: Time) -> Option<&'a Key> {
    let published = keys.into_iter().filter(|key| key.alg == alg && key.is_published(now));
    published.max_by(|a, b| in_turn(a, b))
}

/// When a new key of `alg` starts to sign: after [`LEAD`] and after the keys already waiting; at once if none signs.
fn takes_over(keys: &[Key], alg: Alg, now: Time) -> Time {
    match (signer(keys, alg, now), latest(keys, alg, now)) {
        (Some(_), Some(before)) => (now + LEAD).max(before.active_from + Span(1)),
        _ => now,
    }
}

/// Adds every key of `fresh`, or none. If a key of its algorithm is in service, a new key signs after [`LEAD`] and
/// older keys stay published until everything they signed has expired. Otherwise the new key signs at once.
pub fn rotate(keys: &[Key], fresh: Vec<Key>, longest_token: Span, now: Time) -> Decision<Vec<Kid>, &'static str> {
    let mut line = keys.to_vec();
    let (mut made, mut changes) = (Vec::new(), Vec::new());
    let mut algs: Vec<Alg> = fresh.iter().map(|key| key.alg).collect();
    algs.dedup();
    for alg in algs {
        changes.extend(bring_forward(&mut line, alg, longest_token, now));
    }
    for mut key in fresh {
        if line.iter().any(|known| known.kid == key.kid) {
            return Decision::refuse(KNOWN);
        }
        key.active_from = takes_over(&line, key.alg, now);
        let until = Some(stays_until(key.active_from, longest_token));
        changes.extend(latest(&line, key.alg, now).map(|before| Change::RetireKey { kid: before.kid.clone(), until }));
        changes.extend(comes_in(&key, now));
        made.push(key.kid.clone());
        line.push(key);
    }
    changes.extend((!made.is_empty()).then_some(Change::BumpEpoch));
    Decision { changes, reply: Ok(made) }
}

/// Moves keys dated by a clock that was ahead to the earliest start that a key may have: new keys would wait for them.
fn bring_forward(keys: &mut [Key], alg: Alg, longest_token: Span, now: Time) -> Vec<Change> {
    let signs = signer(keys, alg, now).map(|key| key.kid.clone());
    let mut line: Vec<&mut Key> = keys.iter_mut().filter(|key| key.alg == alg && key.is_published(now)).collect();
    line.sort_by(|a, b| in_turn(a, b));
    let (mut changes, mut before) = (Vec::new(), None);
    for key in &mut line {
        let soonest = if signs.as_ref() == Some(&key.kid) { now } else { now + LEAD };
        let from = before.map_or(soonest, |before: Time| soonest.max(before + Span(1)));
        if !is_believable(key.created, now) && from < key.active_from {
            key.active_from = from;
            changes.push(Change::ActivateKey { kid: key.kid.clone(), at: from });
        }
        before = Some(key.active_from);
    }
    if !changes.is_empty() {
        changes.extend(line.windows(2).map(|pair| {
            let until = Some(stays_until(pair[1].active_from, longest_token));
            Change::RetireKey { kid: pair[0].kid.clone(), until }
        }));
    }
    changes
}

fn comes_in(key: &Key, now: Time) -> [Change; 2] {
    let event = Event::new(Kind::KeyRotated, now).detail("kid", key.kid.as_str());
    [Change::AddKey(Box::new(key.clone())), Change::Record(event)]
}

/// Revokes `kid`. If it signs and no other key waits to take over, adds `heir`, a new key of its algorithm, in the same
/// step: of many callers at once, one revokes the key and one heir is added. Returns the heir that was added.
pub fn throw_out(
    keys: &[Key],
    kid: &Kid,
    mut heir: Key,
    longest_token: Span,
    now: Time,
) -> Decision<Option<Kid>, &'static str> {
    let signs = signer(keys, heir.alg, now).is_some_and(|key| key.kid == *kid);
    let waits = |key: &Key| key.alg == heir.alg && stage(keys, key, now) == Stage::Next;
    if !signs || keys.iter().any(waits) {
        return revoke(keys, kid, longest_token, now).map(|()| None);
    }
    if keys.iter().any(|key| key.kid == heir.kid) {
        return Decision::refuse(KNOWN);
    }
    heir.active_from = takes_over(keys, heir.alg, now);
    let coming = comes_in(&heir, now);
    let made = heir.kid.clone();
    let mut line = keys.to_vec();
    line.push(heir);
    let Decision { changes, reply } = revoke(&line, kid, longest_token, now);
    match reply {
        Ok(()) => Decision { changes: coming.into_iter().chain(changes).collect(), reply: Ok(Some(made)) },
        Err(why) => Decision::refuse(why),
    }
}

/// Revokes a key. The others close ranks, so that there is a published signer at every moment: each stays published
/// until what it signs before its successor takes over has expired, and the last has no end.
pub fn revoke(keys: &[Key], kid: &Kid, longest_token: Span, now: Time) -> Decision<(), &'static str> {
    let Some(key) = keys.iter().find(|key| &key.kid == kid) else {
        return Decision::refuse("no key has that id");
    };
    if key.revoked_at.is_some() {
        return Decision::refuse("it is revoked already");
    }
    let mut changes = Vec::new();
    if key.is_published(now) {
        let alike = |other: &&Key| &other.kid != kid && other.alg == key.alg && other.is_published(now);
        let mut line: Vec<Key> = keys.iter().filter(alike).cloned().collect();
        line.sort_by(in_turn);
        if line.is_empty() {
            return Decision::refuse("it is the only signing key of its algorithm: rotate first");
        }
        changes = close_ranks(line, longest_token, now);
    }
    let event = Event::new(Kind::KeyRevoked, now).detail("kid", kid.as_str());
    Decision::accept(())
        .with(changes)
        .and(Change::RevokeKey { kid: kid.clone(), at: now })
        .and(Change::BumpEpoch)
        .and(Change::Record(event))
}

/// Returns the changes after which the keys of `line`, in signing order, follow each other without a gap.
fn close_ranks(mut line: Vec<Key>, longest_token: Span, now: Time) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Some(first) = line.first_mut().filter(|first| !first.active_from.has_come(now)) {
        first.active_from = now;
        changes.push(Change::ActivateKey { kid: first.kid.clone(), at: now });
    }
    for pair in line.windows(2) {
        let until = stays_until(pair[1].active_from, longest_token);
        if pair[0].publish_until.is_none_or(|end| end < until) {
            changes.push(Change::RetireKey { kid: pair[0].kid.clone(), until: Some(until) });
        }
    }
    let last = line.last().filter(|last| last.publish_until.is_some());
    changes.extend(last.map(|last| Change::RetireKey { kid: last.kid.clone(), until: None }));
    changes
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
        let decision = rotate(&[key("old", 0)], vec![key("new", 0)], Span::minutes(15), now);
        let added = decision.changes.iter().find_map(|change| match change {
            Change::AddKey(key) => Some(key.active_from),
            _ => None,
        });
        assert!(added.is_some_and(|from| from >= now + JWKS_CACHE));
    }

    #[test]
    fn keys_of_a_clock_that_was_ahead_do_not_hold_up_those_that_come_after() {
        // red without bring_forward in rotate.
        let (now, ahead, ttl) = (Time(1_000_000_000), Time(1_000_000_000) + Span::days(10_000), Span::minutes(15));
        let dated = |kid: &str, made: Time, from: Time| Key { created: made, active_from: from, ..key(kid, 0) };
        type Case<'a> = (&'a [Key], &'a [(&'a str, Time)]);
        let cases: [Case<'_>; 2] = [
            // All of them: the first start was at that time.
            (&[dated("first", ahead, ahead)], &[("first", now), ("new", now + LEAD)]),
            // A successor that was added meanwhile.
            (
                &[dated("old", Time(0), Time(0)), dated("next", ahead, ahead + LEAD)],
                &[("next", now + LEAD), ("new", now + LEAD + Span(1))],
            ),
        ];
        for (keys, expected) in cases {
            let decision = rotate(keys, vec![dated("new", now, now)], ttl, now);
            let signs = |change: &Change| match change {
                Change::ActivateKey { kid, at } => Some((kid.as_str().to_owned(), *at)),
                Change::AddKey(key) => Some((key.kid.as_str().to_owned(), key.active_from)),
                _ => None,
            };
            let signs: Vec<(String, Time)> = decision.changes.iter().filter_map(signs).collect();
            assert_eq!(signs, expected.iter().map(|(kid, at)| ((*kid).to_owned(), *at)).collect::<Vec<_>>());
            for change in &decision.changes {
                if let Change::RetireKey { kid, until } = change {
                    assert!(until.is_none_or(|until| until < now + Span::hours(3)), "{kid:?} stays for years");
                }
            }
        }
        let ours = rotate(&[key("old", 0), dated("next", now, now + LEAD)], vec![dated("new", now, now)], ttl, now);
        assert!(!ours.changes.iter().any(|change| matches!(change, Change::ActivateKey { .. })));
    }

    #[test]
    fn an_old_key_stays_until_the_last_token_it_signed_has_expired() {
        let (now, ttl) = (Time(1_000_000), Span::hours(2));
        let decision = rotate(&[key("old", 0)], vec![key("new", 0)], ttl, now);
        let until = decision.changes.iter().find_map(|change| match change {
            Change::RetireKey { until, .. } => *until,
            _ => None,
        });
        assert!(until.is_some_and(|until| until > now + LEAD + ttl));
    }

    #[test]
    fn the_first_key_signs_at_once() {
        let mut first = key("first", 99);
        let decision = rotate(&[], vec![first.clone()], Span::minutes(15), Time(5));
        assert!(decision.reply.is_ok());
        first.active_from = Time(5);
        assert_eq!(stage(&[first.clone()], &first, Time(5)), Stage::Active);
    }

    #[test]
    fn where_every_key_is_yet_to_come_by_this_clock_the_first_of_them_signs() {
        // red without min_by in signer: a node whose clock is behind could sign nothing once another revoked a key.
        let thrown = Key { revoked_at: Some(Time(100)), ..key("thrown out", 0) };
        let keys = [thrown, key("later", 200), key("heir", 100), key("heir of its time", 100)];
        assert_eq!(signer(&keys, Alg::ES256, Time(99)).map(|key| key.kid.as_str()), Some("heir"));
        assert_eq!(stage(&keys, &keys[2], Time(99)), Stage::Active);
        assert_eq!(stage(&keys, &keys[1], Time(99)), Stage::Next);
        assert!(signer(&keys, Alg::RS256, Time(99)).is_none());
    }

    #[test]
    fn the_only_signer_cannot_be_revoked_without_an_heir() {
        assert!(revoke(&[key("only", 0)], &"only".into(), Span::hours(1), Time(5)).reply.is_err());
        let next = key("next", 1_000_000);
        let decision = revoke(&[key("old", 0), next], &"old".into(), Span::hours(1), Time(5));
        assert!(decision.changes.iter().any(|change| matches!(change, Change::ActivateKey { .. })));
    }

    #[test]
    fn of_several_keys_all_come_in_or_none() {
        let (now, ttl) = (Time(1_000_000), Span::minutes(15));
        let both = rotate(&[key("old", 0)], vec![key("new", 0), key("newer", 0)], ttl, now);
        assert_eq!(both.reply, Ok(vec!["new".into(), "newer".into()]));
        let starts: Vec<Time> = both.changes.iter().filter_map(added).map(|key| key.active_from).collect();
        assert!(starts[0] < starts[1], "one after the other");
        let twice = rotate(&[key("old", 0)], vec![key("new", 0), key("old", 0)], ttl, now);
        assert!(twice.reply.is_err() && twice.changes.is_empty());
        assert!(rotate(&[key("old", 0)], vec![], ttl, now).changes.is_empty());
    }

    fn added(change: &Change) -> Option<&Key> {
        match change {
            Change::AddKey(key) => Some(key),
            _ => None,
        }
    }

    #[test]
    fn hd_05_a_key_that_is_thrown_out_leaves_one_heir_and_only_where_it_needs_one() {
        let (now, ttl) = (Time(2_000_000), Span::hours(1));
        let thrown = throw_out(&[key("old", 0)], &"old".into(), key("heir", 0), ttl, now);
        assert_eq!(thrown.reply, Ok(Some("heir".into())));
        assert_eq!(thrown.changes.iter().filter_map(added).count(), 1);
        let at_once = |change: &Change| matches!(change, Change::ActivateKey { at, .. } if *at == now);
        assert!(thrown.changes.iter().any(at_once), "nobody else is left to sign");
        // A caller that is late, one that finds another key waiting, and one that revokes a key which does not sign.
        let gone = Key { revoked_at: Some(now), ..key("old", 0) };
        let next = key("next", 9_000_000);
        for (keys, kid) in [
            (vec![gone, key("new", 1_000)], "old"),
            (vec![key("old", 0), next.clone()], "old"),
            (vec![key("old", 0), next], "next"),
            (vec![key("old", 0), key("new", 1_000)], "old"),
            (vec![key("old", 0)], "unknown"),
        ] {
            let thrown = throw_out(&keys, &kid.into(), key("heir", 0), ttl, now);
            assert_eq!(thrown.changes.iter().filter_map(added).count(), 0, "{kid}");
            assert!(!matches!(thrown.reply, Ok(Some(_))), "{kid}");
        }
    }

    #[test]
    fn whoever_signs_after_a_revocation_has_no_end_before_its_successor() {
        let mut old = key("old", 0);
        old.publish_until = Some(Time(7_000_000));
        let decision = revoke(&[old, key("new", 1_000)], &"new".into(), Span::hours(1), Time(2_000));
        let kept = |change: &Change| matches!(change, Change::RetireKey { kid, until: None } if kid.as_str() == "old");
        assert!(decision.changes.iter().any(kept));
    }
}
