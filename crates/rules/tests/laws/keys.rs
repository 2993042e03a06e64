//! Signing keys: rotated, revoked and left alone for months, there is always one to sign with, known before it signs.

use crate::cases;
use crate::tables::Tables;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rules::id::Kid;
use rules::jose::Alg;
use rules::keys::{JWKS_CACHE, Key, Stage, revoke, rotate, signer, stage, throw_out};
use rules::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

const ALGS: [Alg; 2] = [Alg::ES256, Alg::RS256];
/// The longest life of a token.
const LONGEST: Span = Span::minutes(15);

#[derive(Clone, Debug)]
enum Act {
    Rotate(usize),
    Revoke(u8),
    /// Throw the signer out: what an operator does whose key has leaked. So many do it at once.
    ThrowOut(usize, u8),
    Wait(Span),
}

fn act() -> impl Strategy<Value = Act> {
    let spans = vec![
        Span(1),
        Span::minutes(4),
        Span::minutes(15),
        Span::minutes(31),
        Span::hours(1),
        Span::hours(2),
        Span::days(40),
    ];
    prop_oneof![
        3 => (0usize..2).prop_map(Act::Rotate),
        2 => any::<u8>().prop_map(Act::Revoke),
        1 => (0usize..2, 1u8..4).prop_map(|(alg, operators)| Act::ThrowOut(alg, operators)),
        5 => proptest::sample::select(spans).prop_map(Act::Wait),
    ]
}

/// Keys, what they signed, and how they came to sign.
struct Keyring {
    now: Time,
    tables: Tables,
    made: usize,
    /// Keys that have signed.
    signed: BTreeSet<Kid>,
    /// The last moment at which a token of each key may still be good.
    good_until: BTreeMap<Kid, Time>,
    /// When a key of each algorithm was last thrown out.
    revoked: BTreeMap<&'static str, Time>,
}

impl Keyring {
    fn new() -> Self {
        let (tables, now) = (Tables::default(), Time(1_700_000_000_000));
        let (signed, good_until, revoked) = Default::default();
        let mut keyring = Keyring { now, tables, made: 0, signed, good_until, revoked };
        ALGS.into_iter().for_each(|alg| keyring.rotate(alg));
        keyring
    }

    fn fresh(&mut self, alg: Alg) -> Key {
        self.made += 1;
        Key {
            kid: Kid(format!("k{}", self.made)),
            alg,
            public: String::new(),
            sealed: Vec::new(),
            created: self.now,
            active_from: self.now,
            publish_until: None,
            revoked_at: None,
        }
    }

    fn rotate(&mut self, alg: Alg) {
        let key = self.fresh(alg);
        let decision = rotate(&self.tables.keys, vec![key], LONGEST, self.now);
        self.tables.apply(&decision.changes).expect("a new key is new");
    }

    /// HD-05: of many who throw the same key out one does, and nobody else leaves anything behind.
    fn throw_out(&mut self, alg: Alg, operators: u8) -> Result<(), TestCaseError> {
        let Some(kid) = signer(&self.tables.keys, alg, self.now).map(|key| key.kid.clone()) else { return Ok(()) };
        let next = |keys: &[Key], now| {
            keys.iter().filter(|key| key.alg == alg && stage(keys, key, now) == Stage::Next).count()
        };
        let (known, waiting) = (self.tables.keys.len(), next(&self.tables.keys, self.now));
        for operator in 0..operators {
            let heir = self.fresh(alg);
            let decision = throw_out(&self.tables.keys, &kid, heir, LONGEST, self.now);
            prop_assert_eq!(decision.reply.is_ok(), operator == 0);
            prop_assert!(operator == 0 || decision.changes.is_empty());
            self.tables.apply(&decision.changes).expect("an heir is new");
        }
        self.revoked.insert(alg.name(), self.now);
        let came = self.tables.keys.len() - known;
        prop_assert_eq!(came, usize::from(waiting == 0), "one heir, and only where none waited");
        Ok(())
    }

    fn revoke(&mut self, kid: &Kid) {
        let decision = revoke(&self.tables.keys, kid, LONGEST, self.now);
        if decision.reply.is_ok() {
            let alg = self.tables.keys.iter().find(|key| key.kid == *kid).map_or("", |key| key.alg.name());
            self.tables.apply(&decision.changes).expect("the key is there");
            self.revoked.insert(alg, self.now);
        }
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        match act {
            Act::Rotate(alg) => self.rotate(ALGS[*alg]),
            Act::Revoke(which) => {
                let kid = self.tables.keys[usize::from(*which) % self.tables.keys.len()].kid.clone();
                self.revoke(&kid);
            }
            Act::ThrowOut(alg, operators) => self.throw_out(ALGS[*alg], *operators)?,
            Act::Wait(span) => return self.wait(*span),
        }
        self.check()
    }

    /// Looks at every moment at which something can change, and just before.
    fn wait(&mut self, span: Span) -> Result<(), TestCaseError> {
        let end = self.now + span;
        let turns = self.tables.keys.iter().flat_map(|key| [Some(key.active_from), key.publish_until]).flatten();
        let mut moments: Vec<Time> = turns.chain(self.good_until.values().copied()).collect();
        moments.extend(moments.clone().into_iter().map(|moment| moment - Span(1)));
        moments.retain(|moment| *moment > self.now && *moment < end);
        moments.push(end);
        moments.sort_unstable();
        for moment in moments {
            self.now = moment;
            self.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let now = self.now;
        for alg in ALGS {
            let Some(key) = signer(&self.tables.keys, alg, now) else {
                return Err(TestCaseError::fail(format!("nobody signs with {}", alg.name())));
            };
            let first_of_all = !self.tables.keys.iter().any(|other| other.alg == alg && other.created < key.created);
            let after_revocation = self.revoked.get(alg.name()).is_some_and(|revoked| *revoked >= key.created);
            let known = now.since(key.created) >= JWKS_CACHE;
            let begins = self.signed.insert(key.kid.clone());
            let fine = !begins || known || first_of_all || after_revocation;
            prop_assert!(fine, "{} signs before everybody can know it", key.kid);
            self.good_until.insert(key.kid.clone(), now + LONGEST);
        }
        for key in self.tables.keys.iter().filter(|key| key.revoked_at.is_none()) {
            let good = self.good_until.get(&key.kid).is_some_and(|until| !until.has_come(now));
            prop_assert!(!good || key.is_published(now), "{} is gone before what it signed", key.kid);
        }
        for key in self.tables.keys.iter().filter(|key| key.revoked_at.is_some()) {
            prop_assert!(!key.is_published(now), "{} was thrown out and is believed", key.kid);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// OpenID Connect Core §10.1.1.
    #[test]
    fn one_key_signs_at_every_moment_and_whoever_needs_it_knows_it(acts in proptest::collection::vec(act(), 1..40)) {
        let mut keyring = Keyring::new();
        for act in &acts {
            keyring.act(act)?;
        }
    }
}
