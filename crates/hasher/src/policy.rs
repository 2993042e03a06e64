//! What a new hash costs, and when a stored one is older than today's policy.

use crate::{
    argon2::{Algorithm, BadCost, Cost, Version},
    formats::{Argon2Hash, BoundHash, Recipe, Stored},
    pepper::{Key, Keys},
};

/// Length of a new salt, in bytes (RFC 9106 §3.1 recommends 128 bits).
pub const SALT_BYTES: usize = 16;
/// Length of a new tag, in bytes (RFC 9106 §4 recommends 256 bits).
pub const TAG_BYTES: usize = 32;

/// What new hashes look like: Argon2id version 1.3 at this cost, with a 16-byte salt and a 32-byte tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The cost of a new hash.
    pub(crate) cost: Cost,
}

impl Default for Policy {
    /// m=19456 (19 MiB), t=2, p=1: the row of OWASP's that fits a machine with 512 MiB.
    fn default() -> Self {
        const DEFAULT: Policy = match Policy::new(19_456, 2, 1) {
            Ok(policy) => policy,
            Err(_) => panic!("a row of OWASP's"),
        };
        DEFAULT
    }
}

impl Policy {
    /// Most memory of one hash, in KiB: 1 GiB, as for every stored hash.
    pub const MAX_MEMORY: u32 = 1 << 20;
    /// Most passes, likewise.
    pub const MAX_PASSES: u32 = 64;
    /// Most lanes, likewise.
    pub const MAX_LANES: u32 = 64;

    /// Argon2id with `memory` in KiB (at most [`Policy::MAX_MEMORY`]), `passes` (at most [`Policy::MAX_PASSES`]) and
    /// `lanes` (at most [`Policy::MAX_LANES`]), and no less than OWASP's list: see [`Policy::meets_owasp`].
    ///
    /// # Errors
    /// [`BadCost`] names the parameter that lies outside these limits, or OWASP's list.
    pub const fn new(memory: u32, passes: u32, lanes: u32) -> Result<Self, BadCost> {
        match Self::weak(memory, passes, lanes) {
            Ok(policy) if !policy.meets_owasp() => Err(BELOW_OWASP),
            other => other,
        }
    }

    /// As [`Policy::new`], but as cheap as you like: one pass over 8 KiB is a fast digest, which attackers guess at once
    /// when the database is stolen. For tests and measurements, and for hashes whose cost somebody else answers for.
    ///
    /// # Errors
    /// [`BadCost`] names the parameter that lies outside the limits.
    pub const fn weak(memory: u32, passes: u32, lanes: u32) -> Result<Self, BadCost> {
        if lanes == 0 || lanes > Self::MAX_LANES {
            return Err(BadCost("lanes must be 1 to 64"));
        }
        if passes == 0 || passes > Self::MAX_PASSES {
            return Err(BadCost("passes must be 1 to 64"));
        }
        if memory < 8 * lanes || memory > Self::MAX_MEMORY {
            return Err(BadCost("memory must be 8 KiB per lane to 1 GiB"));
        }
        match Cost::new(memory, passes, lanes) {
            Ok(cost) => Ok(Policy { cost }),
            Err(bad) => Err(bad),
        }
    }

    /// The cost of a new hash: memory (in KiB), passes and lanes.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// How the text of most hashes begins that take as long as a new one and can be verified with these keys: of those
    /// that name a key, only the ones that name today's. Where new hashes are bound to their account, plain ones are
    /// not among these: they are computed only here, which may take another time.
    pub fn beginnings(&self, keys: &Keys) -> [String; 2] {
        let cost = format!("m={},t={},p={}", self.cost.memory(), self.cost.passes(), self.cost.lanes());
        // To the end of the last id: another id may begin with it.
        let plain = format!("$argon2id$v=19${cost}$");
        match (keys.pepper().map(Key::id), keys.binding().map(Key::id)) {
            (Some(pepper), Some(binding)) => {
                let bound = format!("$pv1${cost},keyid={pepper},bindid={binding}$");
                [bound.clone(), bound]
            }
            (Some(pepper), None) => [plain, format!("$argon2id$v=19${cost},keyid={pepper}$")],
            (None, _) => [plain.clone(), plain],
        }
    }

    /// True when the cost covers one of the equally strong rows of OWASP's Password Storage Cheat Sheet: 46 MiB once,
    /// 19 MiB twice, 12 MiB three times, 9 MiB four times, 7 MiB five times.
    pub const fn meets_owasp(&self) -> bool {
        meets_owasp(self.cost)
    }

    /// True when `stored`, just verified, should be replaced: it has another format, algorithm, version or pepper, is
    /// bound by another key (or unlike new ones is bound, or is not), has a shorter salt or tag, or a cost that
    /// [`Policy::raise`] changes: more memory or more blocks than today's suffice, unless only today's satisfies OWASP.
    pub(crate) fn outdates(&self, stored: &Stored, keys: &Keys) -> bool {
        match &stored.0 {
            Recipe::Argon2(hash) => self.outdates_plain(hash, keys),
            Recipe::Bound(hash) => self.outdates_bound(hash, keys),
            Recipe::Wrapped(_)
            | Recipe::Bcrypt(_)
            | Recipe::Pbkdf2(_)
            | Recipe::Scrypt(_)
            | Recipe::Chain(_)
            | Recipe::ShaCrypt(_)
            | Recipe::Firebase(_) => true,
        }
    }

    fn outdates_plain(&self, hash: &Argon2Hash, keys: &Keys) -> bool {
        let params = hash.params();
        keys.binding().is_some()
            || params.algorithm != Algorithm::Argon2id
            || params.version != Version::V19
            || hash.key_id() != keys.pepper().map(Key::id)
            || hash.has_data()
            || hash.salt().len() < SALT_BYTES
            || (params.tag_bytes as usize) < TAG_BYTES
            || self.raised(params.cost) != params.cost
    }

    fn outdates_bound(&self, hash: &BoundHash, keys: &Keys) -> bool {
        keys.binding().map(Key::id) != Some(hash.binding())
            || keys.pepper().map(Key::id) != Some(hash.pepper())
            || hash.salt().len() < SALT_BYTES
            || self.raised(hash.cost()) != hash.cost()
    }

    /// The cost with which to replace `stored`: today's, or its own where today's would lower it. The cost of another
    /// algorithm than Argon2 cannot be compared with Argon2's, and gives way to today's.
    pub(crate) fn raise(&self, stored: &Stored) -> Cost {
        match &stored.0 {
            Recipe::Argon2(hash) => self.raised(hash.params().cost),
            Recipe::Bound(hash) => self.raised(hash.cost()),
            Recipe::Wrapped(hash) => self.raised(hash.outer().params().cost),
            Recipe::Bcrypt(_)
            | Recipe::Pbkdf2(_)
            | Recipe::Scrypt(_)
            | Recipe::Chain(_)
            | Recipe::ShaCrypt(_)
            | Recipe::Firebase(_) => self.cost,
        }
    }

    /// Today's cost when it is worth at least as much as `old`, and `old` when that is worth more. Each may have more
    /// of one thing, memory or blocks: then `old` stays if it satisfies OWASP (or today's does not either), else the
    /// larger of each is taken. A second application changes nothing: nobody is hashed again at every sign-in.
    fn raised(&self, old: Cost) -> Cost {
        let new = self.cost;
        // First, so that of two costs of equal worth with other lanes, today's is taken: then sign-ins take one time.
        if covers(new, old) {
            return new;
        }
        if covers(old, new) {
            return old;
        }
        if meets_owasp(old) || !meets_owasp(new) {
            return old;
        }
        let (memory, passes) = (old.memory().max(new.memory()), old.passes().max(new.passes()));
        Cost::new(memory, passes, new.lanes()).unwrap_or(new)
    }
}

/// True when an attacker pays at least as much for `one` as for `other`, both in memory and in blocks. Two costs may
/// each fail this: one has more memory, the other more passes.
const fn covers(one: Cost, other: Cost) -> bool {
    one.memory() >= other.memory() && one.blocks() >= other.blocks()
}

/// OWASP's rows: KiB and passes.
const OWASP: [(u32, u32); 5] = [(47_104, 1), (19_456, 2), (12_288, 3), (9_216, 4), (7_168, 5)];
const BELOW_OWASP: BadCost = BadCost(
    "memory and passes are below OWASP's list: 47104 KiB with 1, 19456 with 2, 12288 with 3, 9216 with 4, 7168 with 5",
);

const fn meets_owasp(cost: Cost) -> bool {
    // A constant function has no iterators.
    let mut row = 0;
    while row < OWASP.len() {
        if cost.memory() >= OWASP[row].0 && cost.passes() >= OWASP[row].1 {
            return true;
        }
        row += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zeroize::Zeroizing;

    use super::*;
    use crate::{KeyId, Subject, formats::Draft};

    const ALICE: Subject<'_> = Subject { realm: "main", user: "alice" };

    fn cost(memory: u32, passes: u32) -> Cost {
        Cost::new(memory, passes, 1).unwrap()
    }
    /// A hash as new ones are made, with a tag that no test looks at.
    fn stored(cost: Cost, keys: &Keys) -> Stored {
        let seal = Draft::new(cost, b"", [1; 16], (ALICE, keys)).seal;
        seal.stored(&[2; 32])
    }
    /// Key bytes made from the id, so that no two keys are the same.
    fn bytes(id: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        bytes[..id.len()].copy_from_slice(id);
        bytes
    }
    fn pepper(id: &[u8]) -> Key {
        Key::pepper(KeyId::new(id).unwrap(), bytes(id))
    }
    fn binding(id: &[u8]) -> Key {
        Key::binding(KeyId::new(id).unwrap(), bytes(id))
    }
    fn keys<const N: usize>(keys: [Key; N]) -> Keys {
        Keys::new(keys).unwrap()
    }

    #[test]
    fn a_cheaper_hash_is_replaced_and_a_dearer_one_is_not() {
        let policy = Policy::default();
        let table = [
            (19_456, 2, false),
            (19_456, 1, true),
            (9_216, 4, true),
            (9_216, 5, false), // fewer KiB, but more blocks: replacing it would lower one of them
            (47_104, 1, false),
            (65_536, 3, false),
            (8, 1, true),
            (20_000, 1, true), // more memory, but below OWASP
        ];
        let none = Keys::default();
        for (memory, passes, outdated) in table {
            let stored = stored(cost(memory, passes), &none);
            assert_eq!(policy.outdates(&stored, &none), outdated, "m={memory} t={passes}");
        }
    }

    #[test]
    fn a_replacement_never_lowers_the_cost() {
        let policy = Policy::default();
        let raised = |memory, passes| policy.raise(&stored(cost(memory, passes), &Keys::default()));
        assert_eq!(raised(4_096, 3), policy.cost);
        assert_eq!(raised(65_536, 3), cost(65_536, 3));
        assert_eq!(raised(9_216, 5), cost(9_216, 5));
        assert_eq!(raised(20_000, 1), cost(20_000, 2));
        // Of equal worth, today's is taken, or sign-ins would be evened out for as long as the old one is there.
        let lanes = |lanes| Cost::new(65_536, 3, lanes).unwrap();
        let policy = Policy { cost: lanes(1) };
        assert_eq!(policy.raise(&stored(lanes(4), &Keys::default())), lanes(1));
    }

    #[test]
    fn another_pepper_a_short_tag_or_an_older_algorithm_is_replaced() {
        let (policy, none) = (Policy::default(), Keys::default());
        let (first, second) = (keys([pepper(b"k1")]), keys([pepper(b"k2"), pepper(b"k1")]));
        assert!(policy.outdates(&stored(policy.cost, &none), &first));
        assert!(!policy.outdates(&stored(policy.cost, &first), &first));
        assert!(policy.outdates(&stored(policy.cost, &first), &second), "rotated");
        assert!(policy.outdates(&stored(policy.cost, &first), &none));
        let tag = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for (text, salt, tag, outdated) in [
            ("argon2id$v=19$m=19456,t=2,p=1", "AAAAAAAAAAAAAAAAAAAAAA", tag, false),
            ("argon2i$v=19$m=19456,t=2,p=1", "AAAAAAAAAAAAAAAAAAAAAA", tag, true),
            ("argon2d$v=19$m=19456,t=2,p=1", "AAAAAAAAAAAAAAAAAAAAAA", tag, true),
            ("argon2id$v=16$m=19456,t=2,p=1", "AAAAAAAAAAAAAAAAAAAAAA", tag, true),
            ("argon2id$v=19$m=19456,t=2,p=1,data=AAAA", "AAAAAAAAAAAAAAAAAAAAAA", tag, true),
            ("argon2id$v=19$m=19456,t=2,p=1", "AAAAAAAAAAA", tag, true),
            ("argon2id$v=19$m=19456,t=2,p=1", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA", true),
        ] {
            let stored = format!("${text}${salt}${tag}").parse().unwrap();
            assert_eq!(policy.outdates(&stored, &none), outdated, "{text}");
        }
    }

    #[test]
    fn another_binding_is_replaced() {
        let policy = Policy::default();
        let plain = keys([pepper(b"k1")]);
        let bound = keys([pepper(b"k1"), binding(b"b1")]);
        let rotated = keys([pepper(b"k1"), binding(b"b2"), binding(b"b1")]);
        let repeppered = keys([pepper(b"k2"), pepper(b"k1"), binding(b"b1")]);
        for (made, now, outdated) in [
            (&plain, &bound, true),
            (&bound, &bound, false),
            (&bound, &rotated, true),
            (&bound, &repeppered, true),
            (&bound, &plain, true),
        ] {
            assert_eq!(policy.outdates(&stored(policy.cost, made), now), outdated, "{made:?} {now:?}");
        }
        assert!(policy.outdates(&stored(cost(64, 1), &bound), &bound));
        assert!(!policy.outdates(&stored(cost(65_536, 3), &bound), &bound));
    }

    /// Red where any key may follow the cost: a hash whose key is missing would pass for one that can be verified.
    #[test]
    fn a_hash_begins_like_new_ones_only_if_it_takes_as_long_and_names_no_key_but_todays() {
        let policy = Policy::default();
        let (none, plain) = (Keys::default(), keys([pepper(b"p1"), pepper(b"p0")]));
        let bound = keys([pepper(b"p1"), binding(b"b1"), pepper(b"p0"), binding(b"b0")]);
        // Base64 of `p10` begins with that of `p1`.
        let (older, longer) = (keys([pepper(b"p0")]), keys([pepper(b"p10")]));
        let rebound = keys([pepper(b"p1"), binding(b"b0")]);
        let repeppered = keys([pepper(b"p0"), binding(b"b1")]);
        for (made, of, begins) in [
            (&none, &none, true),
            (&plain, &none, false),
            (&bound, &none, false),
            (&none, &plain, true),
            (&plain, &plain, true),
            (&older, &plain, false),
            (&longer, &plain, false),
            (&bound, &plain, false),
            (&bound, &bound, true),
            (&rebound, &bound, false),
            (&repeppered, &bound, false),
            (&plain, &bound, false),
            (&none, &bound, false),
        ] {
            let is_like_new = |text: &str| policy.beginnings(of).iter().any(|beginning| text.starts_with(beginning));
            assert_eq!(is_like_new(&stored(policy.cost, made).to_string()), begins, "{made:?} {of:?}");
            assert!(!is_like_new(&stored(cost(64, 1), made).to_string()), "{made:?} {of:?}");
        }
    }

    #[test]
    fn owasp_rows_pass_and_less_does_not() {
        for (memory, passes, meets) in
            [(19_456, 2, true), (47_104, 1, true), (7_168, 5, true), (7_168, 4, false), (19_455, 2, false)]
        {
            assert_eq!(Policy::weak(memory, passes, 1).unwrap().meets_owasp(), meets);
            // Nobody has a weak policy without saying so.
            let named = Policy::new(memory, passes, 1);
            assert_eq!(named, if meets { Policy::weak(memory, passes, 1) } else { Err(BELOW_OWASP) });
        }
    }

    proptest! {
        /// Neither memory nor blocks fall, the result satisfies OWASP if new hashes do, and a second time nothing
        /// changes.
        #[test]
        fn raising_never_lowers_and_ends(old in (8u32..1 << 20, 1u32..=64), new in (8u32..1 << 20, 1u32..=64)) {
            let policy = Policy { cost: cost(new.0, new.1) };
            let old = cost(old.0, old.1);
            let raised = policy.raised(old);
            prop_assert!(covers(raised, old));
            prop_assert!(meets_owasp(raised) || !policy.meets_owasp());
            prop_assert_eq!(policy.raised(raised), raised);
        }
    }
}
