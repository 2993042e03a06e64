//! Secrets kept outside the database: the pepper (RFC 9106 §3.1, K), the key that binds a verifier to its account, and
//! secrets of the systems that hashes were imported from. A stored hash names the key it needs by a [`KeyId`].

mod error;

use std::{fmt, slice, str::FromStr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use hmac::Mac;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{
    argon2::{self, Block, Cost, H0, Params, Tag},
    cpu::Level,
    formats::{params, prf::Prf},
};

pub use error::{KeysError, Twice};

/// Names a key in a stored hash (`keyid` of the PHC string format): 1 to 8 bytes, not secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    bytes: [u8; KeyId::MAX],
    len: u8,
}

impl KeyId {
    /// Longest id, in bytes.
    pub const MAX: usize = 8;

    /// Makes an id of 1 to 8 bytes; `None` for any other length.
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..id.len()).filter(|room| !room.is_empty())?.copy_from_slice(id);
        Some(KeyId { bytes, len: id.len() as u8 })
    }
    /// Reads the text of an id in a stored hash, which is what `Display` writes: unpadded base64. A name as people
    /// write it is for [`KeyId::new`]: here `p1` is no id, and `main` is another one.
    ///
    /// # Errors
    /// [`BadKey`] when it is not base64 of 1 to 8 bytes.
    pub fn from_base64(text: &str) -> Result<Self, BadKey> {
        STANDARD_NO_PAD.decode(text).ok().and_then(|id| KeyId::new(&id)).ok_or(BadKey)
    }
    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Writes the id as stored hashes do: in unpadded base64, which [`KeyId::from_base64`] reads.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD_NO_PAD.encode(self.as_bytes()))
    }
}

/// What a key is for. Ids of different roles are different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Goes into every hash beside the password (RFC 9106 §3.1, K).
    Pepper,
    /// Authenticates bound verifiers.
    Binding,
    /// A secret of the system that made imported hashes.
    Import,
}

impl Role {
    const ALL: [Role; 3] = [Role::Pepper, Role::Binding, Role::Import];

    /// The role's name in a [`KeyCheck`].
    pub const fn name(self) -> &'static str {
        match self {
            Role::Pepper => "pepper",
            Role::Binding => "binding",
            Role::Import => "import",
        }
    }
}

/// A secret, its id and its role. Cheap to clone; wiped when the last clone drops; prints only its name.
#[derive(Clone)]
pub struct Key {
    role: Role,
    id: KeyId,
    bytes: Arc<Zeroizing<Vec<u8>>>,
}

impl Key {
    /// A 256-bit key that goes into every hash beside the password, so that the database alone is not enough to guess
    /// passwords. If it is lost, so is every password hashed with it.
    pub fn pepper(id: KeyId, key: Zeroizing<[u8; 32]>) -> Self {
        Key::new(Role::Pepper, id, &*key)
    }
    /// A 256-bit key that binds verifiers to their account. It must not be the pepper.
    pub fn binding(id: KeyId, key: Zeroizing<[u8; 32]>) -> Self {
        Key::new(Role::Binding, id, &*key)
    }
    /// A secret of another system, of any length, as it is shown there: Firebase's signer key in base64, Devise's
    /// pepper.
    pub fn import(id: KeyId, key: Zeroizing<Vec<u8>>) -> Self {
        Key { role: Role::Import, id, bytes: Arc::new(key) }
    }
    fn new(role: Role, id: KeyId, key: &[u8]) -> Self {
        Key { role, id, bytes: Arc::new(Zeroizing::new(key.to_vec())) }
    }

    /// The name of the key in stored hashes.
    pub fn id(&self) -> KeyId {
        self.id
    }
    /// What the key is for.
    pub fn role(&self) -> Role {
        self.role
    }
    /// What to keep in the database, so that another key of the same name is noticed at start. For an import key it
    /// takes as long as a password's hash, in 19 MiB, on the calling thread.
    pub fn check(&self) -> KeyCheck {
        match self.role {
            Role::Pepper | Role::Binding => self.fast_check(),
            Role::Import => self.slow_check(),
        }
    }

    /// Enough for 256 random bits, which nobody can guess.
    fn fast_check(&self) -> KeyCheck {
        let mac = self.authenticate(&[CHECK, self.role.name().as_bytes(), self.id.as_bytes()]);
        self.checked(&mac.finalize().into_bytes())
    }

    /// For a secret that somebody may have made up (Devise's pepper): a guess costs as much as one at a password.
    fn slow_check(&self) -> KeyCheck {
        // The id comes last, so that no two keys have one salt.
        let salt = [CHECK, self.role.name().as_bytes(), self.id.as_bytes()].concat();
        let params = Params { tag_bytes: KeyCheck::BYTES as u32, ..params(CHECK_COST) };
        let h0 = H0::new(&params, &self.bytes, &salt, &[], &[]);
        let mut memory = Zeroizing::new(vec![Block::ZERO; params.memory_blocks()]);
        let mut tag = Tag::default();
        argon2::fill(Level::best(), &params, slice::from_ref(&h0), &mut memory, slice::from_mut(&mut tag));
        self.checked(&tag)
    }

    fn checked(&self, bytes: &[u8]) -> KeyCheck {
        let mut value = [0; KeyCheck::BYTES];
        value.copy_from_slice(&bytes[..KeyCheck::BYTES]);
        KeyCheck { role: self.role, id: self.id, value }
    }

    /// Whether `kept` was made from this key, by today's [`Key::check`] or as before import keys had slow ones.
    fn proves(&self, kept: &KeyCheck) -> bool {
        let is = |check: KeyCheck| bool::from(check.value.ct_eq(&kept.value));
        is(self.fast_check()) || self.role == Role::Import && is(self.slow_check())
    }

    /// How `other` repeats this key. A pepper that is only renamed is not changed; and roles use the bytes as they are,
    /// so anybody who learned the pepper would have the binding key.
    fn again(&self, other: &Key) -> Option<Twice> {
        if (self.role, self.id) == (other.role, other.id) {
            return Some(Twice::Name(other.id));
        }
        let same = bool::from(self.bytes.ct_eq(&other.bytes));
        same.then_some(Twice::Bytes { id: other.id, of: (self.role, self.id) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// HMAC-SHA-256 (RFC 2104) of fields, each after its length in bytes as a big-endian 64-bit number: no two lists of
    /// fields give the same message, and no list is the beginning of a list with another first field.
    pub(crate) fn authenticate(&self, fields: &[&[u8]]) -> Prf<Sha256> {
        let mut mac = Prf::of(&self.bytes);
        for field in fields {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac
    }
}

/// Tells a check from everything else that is made from a key.
const CHECK: &[u8] = b"key check";

/// The cost of slow checks. Every kept check depends on it, so it stays as it is whatever the policy.
const CHECK_COST: Cost = match Cost::new(19_456, 2, 1) {
    Ok(cost) => cost,
    Err(_) => panic!("within the limits of RFC 9106"),
};

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {}, …)", self.role.name(), self.id)
    }
}

/// Tells a key from another of the same name: 128 bits of an HMAC under the key, which nobody can guess, or, for an
/// import key, which somebody might, of Argon2id of the key (m=19456, t=2, p=1). Its text is `ROLE:KEYID:HEX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCheck {
    role: Role,
    id: KeyId,
    value: [u8; KeyCheck::BYTES],
}

impl KeyCheck {
    const BYTES: usize = 16;

    /// The role of the key.
    pub fn role(&self) -> Role {
        self.role
    }
    /// The name of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }
    /// The parameter by which a stored hash names the key that it needs; `,` or `$` follows it there.
    pub fn parameter(&self) -> String {
        let name = match self.role {
            Role::Pepper => "keyid",
            Role::Binding => "bindid",
            Role::Import => "importid",
        };
        format!("{name}={}", self.id)
    }
    /// Role and name for people, such as `pepper p1`. Two keys can share one only if their names are not text.
    pub fn name(&self) -> String {
        format!("{} {}", self.role.name(), String::from_utf8_lossy(self.id.as_bytes()))
    }
}

impl fmt::Display for KeyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.role.name(), self.id)?;
        self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for KeyCheck {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let (role, rest) = text.split_once(':').ok_or(BadKey)?;
        let (id, value) = rest.split_once(':').ok_or(BadKey)?;
        let role = Role::ALL.into_iter().find(|known| known.name() == role).ok_or(BadKey)?;
        let value = crate::formats::text::hex(value).and_then(|value| value.try_into().ok()).ok_or(BadKey)?;
        Ok(KeyCheck { role, id: KeyId::from_base64(id)?, value })
    }
}

/// A text that is no key id or key check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKey;

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a key id of 1 to 8 bytes, or not a key check")
    }
}

impl std::error::Error for BadKey {}

/// The keys that stored hashes may name. The first pepper and the first binding key are for new hashes, the others
/// verify and ask for a rehash. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<[Key]>);

impl Keys {
    /// Takes all keys, of any role, in the order in which new hashes prefer them.
    ///
    /// # Errors
    /// [`KeysError`] when two keys of a role have one id, two keys have the same bytes, a key is empty, or there is a
    /// binding key and no pepper.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, KeysError> {
        let keys: Arc<[Key]> = keys.into_iter().collect();
        for (at, key) in keys.iter().enumerate() {
            if key.bytes.is_empty() {
                return Err(KeysError::Empty(key.role, key.id));
            }
            if let Some(twice) = keys[..at].iter().find_map(|other| other.again(key)) {
                return Err(KeysError::Repeated(key.role, twice));
            }
        }
        let keys = Keys(keys);
        if keys.binding().is_some() && keys.pepper().is_none() {
            return Err(KeysError::BindingWithoutPepper);
        }
        Ok(keys)
    }
    /// The pepper of new hashes.
    pub fn pepper(&self) -> Option<&Key> {
        self.0.iter().find(|key| key.role == Role::Pepper)
    }
    /// The key that binds new hashes. Without one they are plain PHC strings.
    pub fn binding(&self) -> Option<&Key> {
        self.0.iter().find(|key| key.role == Role::Binding)
    }
    /// The key of this role and name.
    pub fn find(&self, role: Role, id: KeyId) -> Option<&Key> {
        self.0.iter().find(|key| key.role == role && key.id == id)
    }
    /// What to keep in the database for each key; each step computes a [`Key::check`].
    pub fn checks(&self) -> impl Iterator<Item = KeyCheck> {
        self.0.iter().map(Key::check)
    }
    /// Compares a kept check with these keys; call this at start for each kept check. Like [`Key::check`], it blocks
    /// for an import key.
    ///
    /// # Errors
    /// [`KeysError::Missing`] when no key has this name (every hash that names the key is lost until it is back, so
    /// remove a key only when no hash names it), [`KeysError::Wrong`] when another key has it.
    pub fn confirm(&self, kept: &KeyCheck) -> Result<(), KeysError> {
        let key = self.find(kept.role, kept.id).ok_or(KeysError::Missing(kept.role, kept.id))?;
        if key.proves(kept) { Ok(()) } else { Err(KeysError::Wrong(kept.role, kept.id)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &[u8]) -> KeyId {
        KeyId::new(name).unwrap()
    }
    fn pepper(name: &[u8], byte: u8) -> Key {
        Key::pepper(id(name), Zeroizing::new([byte; 32]))
    }
    fn binding(name: &[u8], byte: u8) -> Key {
        Key::binding(id(name), Zeroizing::new([byte; 32]))
    }

    #[test]
    fn a_key_id_has_one_to_eight_bytes() {
        assert_eq!(KeyId::new(b""), None);
        assert_eq!(KeyId::new(b"k").unwrap().as_bytes(), b"k");
        assert_eq!(KeyId::new(b"12345678").unwrap().as_bytes(), b"12345678");
        assert_eq!(KeyId::new(b"123456789"), None);
        assert_eq!(id(b"k1").to_string(), "azE");
        assert_eq!(KeyId::from_base64("azE"), Ok(id(b"k1")));
        assert!(KeyId::from_base64("p1").is_err() && KeyId::from_base64("main") != Ok(id(b"main")));
        for text in ["azE=", "", "p", "AAAAAAAAAAAA"] {
            assert_eq!(KeyId::from_base64(text), Err(BadKey), "{text}");
        }
    }

    #[test]
    fn a_key_prints_only_its_name() {
        let key = pepper(b"k1", 0xab);
        assert_eq!(format!("{key:?}"), "Key(pepper azE, …)");
        assert_eq!(format!("{:?}", Keys::new([key]).unwrap()), "Keys([Key(pepper azE, …)])");
    }

    #[test]
    fn a_wrong_key_is_found_and_so_is_a_missing_one() {
        let keys = Keys::new([pepper(b"k1", 1), binding(b"k1", 3)]).unwrap();
        let kept: Vec<String> = keys.checks().map(|check| check.to_string()).collect();
        // python3: hmac.new(b"\1"*32, lp(b"key check")+lp(b"pepper")+lp(b"k1"), "sha256").hexdigest()[:32]
        assert_eq!(
            kept,
            ["pepper:azE:a070e5658d65fe0c9ddcfe2411f75faf", "binding:azE:8cc861667997aaa99daa71eb829e5f20"]
        );
        for check in &kept {
            let check: KeyCheck = check.parse().unwrap();
            assert_eq!(keys.confirm(&check), Ok(()));
            let other = Keys::new([pepper(b"k1", 2), binding(b"k1", 4)]).unwrap();
            assert_eq!(other.confirm(&check), Err(KeysError::Wrong(check.role(), id(b"k1"))));
            let renamed = Keys::new([pepper(b"k2", 1), binding(b"k2", 3)]).unwrap();
            assert_eq!(renamed.confirm(&check), Err(KeysError::Missing(check.role(), id(b"k1"))));
        }
        for text in ["", "pepper", "pepper:azE", "pepper:azE:00", "salt:azE:00000000000000000000000000000000"] {
            assert_eq!(text.parse::<KeyCheck>(), Err(BadKey), "{text}");
        }
    }

    /// Another system's secret may be a word, which could be guessed from an HMAC at once.
    #[test]
    fn an_import_key_is_proved_by_a_slow_hash_and_by_the_hmac_of_before() {
        let import = |secret: &[u8]| Key::import(id(b"dv"), Zeroizing::new(secret.to_vec()));
        let (key, other) = (import(b"changeme1"), import(b"changeme2"));
        let (kept, before) = (key.check(), key.fast_check());
        let params = ::argon2::Params::new(19_456, 2, 1, Some(16)).unwrap();
        let theirs = ::argon2::Argon2::new(::argon2::Algorithm::Argon2id, ::argon2::Version::V0x13, params);
        let mut value = [0; 16];
        theirs.hash_password_into(b"changeme1", b"key checkimportdv", &mut value).unwrap();
        assert_eq!(kept.value, value);
        assert_eq!(before.to_string(), "import:ZHY:b237e25ea4251d5ddc7880c2de51b0cc");
        let keys = Keys::new([key]).unwrap();
        for check in [kept, before] {
            let check: KeyCheck = check.to_string().parse().unwrap();
            assert_eq!(keys.confirm(&check), Ok(()));
            let others = Keys::new([other.clone()]).unwrap();
            assert_eq!(others.confirm(&check), Err(KeysError::Wrong(Role::Import, id(b"dv"))));
        }
    }

    /// As stored hashes write it, which shows what still needs a key: ids of different roles are different names.
    #[test]
    fn a_parameter_is_of_one_role() {
        let import = Key::import(id(b"k1"), Zeroizing::new(vec![1]));
        let parameters = [pepper(b"k1", 1), binding(b"k1", 1), import].map(|key| key.check().parameter());
        assert_eq!(parameters, ["keyid=azE", "bindid=azE", "importid=azE"]);
        let firebase = "$firebase$ln=14,r=8,p=1,importid=azE$42xEC+ixf3L2lwc$AAAAAAAAAAAAAAAAAAAAAA";
        let argon2 = "$argon2id$v=19$m=64,t=2,p=1,keyid=azE$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
        let bcrypt = "$devise$importid=azE$2b$10$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
        for text in [firebase, argon2, bcrypt] {
            let stored: crate::Stored = text.parse().unwrap();
            let needs: Vec<_> = stored.keys().collect();
            for (role, parameter) in [(Role::Pepper, &parameters[0]), (Role::Import, &parameters[2])] {
                let named = text.contains(&format!("{parameter}$")) || text.contains(&format!("{parameter},"));
                assert_eq!(named, needs.contains(&(role, id(b"k1"))), "{text} {parameter}");
            }
        }
    }

    #[test]
    fn keys_that_make_no_sense_are_refused() {
        let keys = [pepper(b"a", 1), pepper(b"b", 2), binding(b"a", 3)];
        assert!(Keys::new(keys.clone()).is_ok(), "one name in two roles");
        let twice = Keys::new(keys.into_iter().chain([pepper(b"a", 4)])).err();
        assert_eq!(twice, Some(KeysError::Repeated(Role::Pepper, Twice::Name(id(b"a")))));
        assert_eq!(Keys::new([binding(b"a", 1)]).err(), Some(KeysError::BindingWithoutPepper));
        let empty = Key::import(id(b"fb"), Zeroizing::default());
        assert_eq!(Keys::new([empty]).err(), Some(KeysError::Empty(Role::Import, id(b"fb"))));
    }

    /// Red without `Twice::Bytes`: a copy of the old file under a new name would pass for a changed pepper.
    #[test]
    fn one_secret_has_one_name_and_one_role() {
        let import = |name: &[u8], secret: &[u8]| Key::import(id(name), Zeroizing::new(secret.to_vec()));
        let (others, byte) = ([pepper(b"p0", 8), binding(b"b0", 9)], [0x61; 32]);
        for (first, second, told) in [
            (pepper(b"p1", 0x61), pepper(b"p2", 0x61), ["the pepper key p2", "the pepper key p1"]),
            (binding(b"b1", 0x61), binding(b"b2", 0x61), ["the binding key b2", "the binding key b1"]),
            (pepper(b"k1", 0x61), binding(b"k1", 0x61), ["the binding key k1", "the pepper key k1"]),
            (import(b"dv", b"changeme"), import(b"old", b"changeme"), ["the import key old", "the import key dv"]),
            (pepper(b"p1", 0x61), import(b"dv", &byte), ["the import key dv", "the pepper key p1"]),
        ] {
            let error = Keys::new(others.clone().into_iter().chain([first, second])).err().unwrap().to_string();
            let [one, another] = told;
            assert_eq!(error, format!("{one} is the same secret as {another}: each needs one of its own"));
            assert!(!error.contains("changeme") && !error.contains("aaaa"), "{error}");
        }
        let longer = Keys::new([import(b"dv", b"changeme"), import(b"old", b"changeme1")]);
        assert!(longer.is_ok(), "one that begins like another is another");
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        let key = pepper(b"k1", 1);
        let mac = |fields: &[&[u8]]| key.authenticate(fields).finalize().into_bytes();
        assert_ne!(mac(&[b"ab", b"c"]), mac(&[b"a", b"bc"]));
        assert_ne!(mac(&[b"abc"]), mac(&[b"abc", b""]));
    }
}
